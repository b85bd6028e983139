//! Compares the scan with a naive reader, and tests unusual lines one by one.

use super::*;

mod naive;

fn entry(line: &str) -> Envelope<'_> {
    match scan_line(line.as_bytes()) {
        Ok(Line::Entry(envelope)) => envelope,
        other => panic!("{line}: {other:?}"),
    }
}

fn id(text: &str) -> Option<Cow<'_, str>> {
    Some(Cow::Borrowed(text))
}

const MESSAGE: &str = r#"{"type":"message","id":"b2","parentId":"a1","timestamp":"2025-11-20T23:33:50.805Z","message":{"role":"toolResult","toolCallId":"t","toolName":"read","content":[{"type":"text","text":"a\nb"}],"isError":true,"timestamp":1}}"#;

#[test]
fn a_line_in_canonical_order_borrows_everything() {
    let envelope = entry(MESSAGE);
    assert!(matches!(envelope.id, Some(Cow::Borrowed("b2"))));
    let facts = Facts::Message {
        role: Role::ToolResult,
        silent: false,
        is_error: true,
        tool_name: id("read"),
        said: MessageTime::Never,
    };
    let expected = Envelope {
        kind: Kind::Message,
        id: id("b2"),
        parent: Parent::Id("a1".into()),
        timestamp: id("2025-11-20T23:33:50.805Z"),
        facts,
        background: None,
        copied_from: None,
        odd: false,
    };
    assert_eq!(envelope, expected);
}

#[test]
fn member_order_escapes_and_duplicates_do_not_matter() {
    let expected = Envelope {
        odd: true,
        ..entry(MESSAGE)
    };
    for line in [
        r#"{"message":{"isError":true,"content":"x","toolName":"read","role":"toolResult"},"timestamp":"2025-11-20T23:33:50.805Z","parentId":"a1","id":"b2","type":"message"}"#,
        r#" {"typ\u0065":"mess\u0061ge","id":"b\u0032","parentId":"\u00611","timestamp":"2025-11-20T23:33:50.805Z","m\u0065ssage":{"r\u006fle":"t\u006folResult","toolName":"re\u0061d","isError":true}} "#,
        r#"{"type":"label","id":7,"parentId":null,"timestamp":0,"message":{"role":"user"},"type":"message","id":"b2","parentId":"a1","timestamp":"2025-11-20T23:33:50.805Z","message":{"role":"user","isError":false,"toolName":"read","role":"toolResult","isError":true}}"#,
    ] {
        assert_eq!(entry(line), expected);
    }
}

#[test]
    #[rustfmt::skip]
    fn every_kind_has_its_facts() {
        for (line, kind, facts) in [
            (r#""type":"thinking_level_change","thinkingLevel":"high""#, Kind::ThinkingLevelChange, Facts::None),
            (r#""type":"model_change","modelId":"m""#, Kind::ModelChange, Facts::None),
            (r#""type":"usage","kind":"x""#, Kind::Usage, Facts::None),
            (r#""type":"from_the_future","message":{"role":"user"}"#, Kind::Unknown, Facts::None),
            (r#""type":"session_info","name":"n\n""#, Kind::SessionInfo, Facts::SessionInfo { name: id("n\n") }),
            (r#""type":"session_info","name":"""#, Kind::SessionInfo, Facts::SessionInfo { name: None }),
            (r#""type":"session_info""#, Kind::SessionInfo, Facts::SessionInfo { name: None }),
            (r#""type":"label","targetId":"t","label":"l""#, Kind::Label, Facts::Label { target_id: id("t"), label: id("l") }),
            (r#""type":"label","targetId":"t","label":null"#, Kind::Label, Facts::Label { target_id: id("t"), label: None }),
            (r#""type":"label","targetId":null,"label":"""#, Kind::Label, Facts::Label { target_id: None, label: None }),
            (r#""type":"context_edit","targetId":"t""#, Kind::ContextEdit, Facts::ContextEdit { target_id: id("t") }),
            (r#""type":"branch_summary","fromId":"f""#, Kind::BranchSummary, Facts::BranchSummary { from_id: id("f"), merge: false }),
            (r#""type":"branch_summary","merge":true"#, Kind::BranchSummary, Facts::BranchSummary { from_id: None, merge: true }),
            (r#""type":"custom_message","display":true"#, Kind::CustomMessage, Facts::CustomMessage { display: true }),
            (r#""type":"custom_message","display":false"#, Kind::CustomMessage, Facts::CustomMessage { display: false }),
            (r#""type":"custom_message","display":0"#, Kind::CustomMessage, Facts::CustomMessage { display: true }),
            (r#""type":"custom_message""#, Kind::CustomMessage, Facts::CustomMessage { display: true }),
            (r#""type":"custom","customType":"mine","data":{"from":"x"}"#, Kind::Custom, Facts::None),
            (r#""type":"custom","customType":"treelined.leaf","data":{"from":"f","cause":"undo"}"#, Kind::LeafRecord, Facts::LeafRecord { from: id("f"), cause: id("undo") }),
            (r#""data":{"from":null},"customType":"treelined.leaf","type":"custom""#, Kind::LeafRecord, Facts::LeafRecord { from: None, cause: None }),
            (r#""type":"custom_message","customType":"treelined.leaf""#, Kind::CustomMessage, Facts::CustomMessage { display: true }),
            (r#""type":"compaction","tokensBefore":50.0,"firstKeptEntryId":"k""#, Kind::Compaction, Facts::Compaction { tokens_before: Some(50), first_kept_entry_id: id("k"), first_kept_entry_index: None }),
            (r#""type":"compaction","tokensBefore":-1,"firstKeptEntryId":null,"firstKeptEntryIndex":12"#, Kind::Compaction, Facts::Compaction { tokens_before: None, first_kept_entry_id: None, first_kept_entry_index: Some(12) }),
            (r#""type":"compaction","tokensBefore":1e400,"firstKeptEntryIndex":1.5"#, Kind::Compaction, Facts::Compaction { tokens_before: None, first_kept_entry_id: None, first_kept_entry_index: None }),
        ] {
            let line = format!("{{{line}}}");
            let envelope = entry(&line);
            assert_eq!((envelope.kind, &envelope.facts), (kind, &facts), "{line}");
            if let Some(name) = kind.name() {
                assert!(line.contains(&format!(r#""type":"{name}""#)));
            }
        }
    }

/// (role, silent, is_error, tool_name) of a message with these members.
#[track_caller]
fn check_message(members: &str, expected: (Role, bool, bool, Option<&str>)) {
    let line = format!(r#"{{"type":"message","message":{members}}}"#);
    let Facts::Message {
        role,
        silent,
        is_error,
        tool_name,
        ..
    } = entry(&line).facts
    else {
        panic!("{line}");
    };
    assert_eq!(
        (role, silent, is_error, tool_name.as_deref()),
        expected,
        "{line}"
    );
}

#[test]
fn roles() {
    for role in [
        Role::User,
        Role::Assistant,
        Role::ToolResult,
        Role::System,
        Role::BashExecution,
        Role::Custom,
        Role::BranchSummary,
        Role::CompactionSummary,
    ] {
        let name = role.name().unwrap();
        check_message(
            &format!(r#"{{"role":"{name}"}}"#),
            (role, role == Role::Assistant, false, None),
        );
    }
    check_message(
        r#"{"role":"hookMessage"}"#,
        (Role::Custom, false, false, None),
    );
    check_message(r#"{"role":"oracle"}"#, (Role::Other, false, false, None));
    for none in ["{}", r#"{"role":null}"#, "null", "[]", r#""user""#] {
        check_message(none, (Role::None, false, false, None));
    }
}

#[test]
fn an_assistant_without_text_is_silent_unless_it_ended_early() {
    let call = r#"{"type":"toolCall","name":"read","arguments":{"type":"text"}}"#;
    let thinking = r#"{"type":"thinking","thinking":"hm"}"#;
    let blank = r#"{"text":" \n\t\u00a0\ufeff\u3000 ","type":"text"}"#;
    let text = r#"{"type":"text","text":"\n\n ok"}"#;
    for (content, only) in [
        (format!("[{call}]"), true),
        (format!("[ {call} , {call} ]"), true),
        (format!("[{thinking},{call}]"), true),
        (format!("[{blank},{call}]"), true),
        (format!(r#"[{{"type":"text"}},{call}]"#), true),
        ("[]".into(), true),
        ("null".into(), true),
        (r#""said""#.into(), false),
        (r#"" \n ""#.into(), true),
        (format!("[{thinking}]"), true),
        (format!("[{blank}]"), true),
        (format!("[{call},{text}]"), false),
        (format!("[{call},1]"), true),
        (format!(r#"[{call},{{"type":"image"}}]"#), true),
        (format!(r#"[{call},{{}}]"#), true),
        (
            format!(r#"[{call},{{"type":"text","text":"\u0085"}}]"#),
            false,
        ),
        (format!(r#"["x"],"content":[{call}]"#), true),
    ] {
        let members = format!(r#"{{"content":{content},"role":"assistant"}}"#);
        check_message(&members, (Role::Assistant, only, false, None));
        let members = format!(r#"{{"role":"user","content":{content}}}"#);
        check_message(&members, (Role::User, false, false, None));
    }
    for (stop_reason, silent, is_error) in [
        (r#""stop""#, true, false),
        (r#""toolUse""#, true, false),
        (r#""""#, true, false),
        ("null", true, false),
        (r#""length""#, false, false),
        (r#""error""#, false, true),
        (r#""aborted""#, false, true),
    ] {
        let members =
            format!(r#"{{"stopReason":{stop_reason},"content":[{call}],"role":"assistant"}}"#);
        check_message(&members, (Role::Assistant, silent, is_error, None));
    }
}

#[test]
fn errors() {
    for (role, members, is_error) in [
        (Role::ToolResult, r#""isError":true"#, true),
        (Role::ToolResult, r#""isError":false"#, false),
        (Role::ToolResult, r#""isError":"true""#, false),
        (Role::ToolResult, r#""stopReason":"error""#, false),
        (Role::Assistant, r#""stopReason":"error""#, true),
        (Role::Assistant, r#""stopReason":"aborted""#, true),
        (
            Role::Assistant,
            r#""stopReason":"stop","isError":true"#,
            false,
        ),
        (Role::BashExecution, r#""exitCode":1"#, true),
        (Role::BashExecution, r#""exitCode":-1"#, true),
        (Role::BashExecution, r#""exitCode":0"#, false),
        (Role::BashExecution, r#""exitCode":-0.0e1"#, false),
        (Role::BashExecution, r#""exitCode":null"#, false),
        (Role::BashExecution, r#""exitCode":"1""#, false),
        (
            Role::BashExecution,
            r#""exitCode":0,"cancelled":true"#,
            true,
        ),
        (
            Role::User,
            r#""isError":true,"exitCode":1,"toolName":"x""#,
            false,
        ),
    ] {
        let message = format!(r#"{{"role":"{}",{members}}}"#, role.name().unwrap());
        let silent = role == Role::Assistant && !is_error;
        check_message(&message, (role, silent, is_error, None));
    }
}

#[test]
fn headers() {
    let check = |members: &str, version| {
        let line = format!(r#"{{{members}"id":"s","cwd":"C:\\a","type":"session"}}"#);
        let header = HeaderFacts {
            version,
            id: id("s"),
            timestamp: None,
            cwd: id("C:\\a"),
            parent_session: None,
            parent_entry_id: None,
            spawned_by: None,
            title: None,
        };
        assert_eq!(scan_line(line.as_bytes()), Ok(Line::Header(header)));
    };
    check("", 1);
    check(r#""version":null,"#, 1);
    check(r#""version":3,"message":{},"#, 3);
    check(r#""version":3.0,"#, 3);
    check(r#""version":99999999999999999999,"#, u64::MAX);
    for unreadable in ["\"3\"", "2.5", "-1", "[]", "1e400"] {
        check(&format!(r#""version":{unreadable},"#), u64::MAX);
    }
    let line = br#"{"type":"session","timestamp":"t","parentSession":"/p"}"#;
    let Ok(Line::Header(header)) = scan_line(line) else {
        panic!()
    };
    assert_eq!(
        (header.timestamp, header.parent_session),
        (id("t"), id("/p"))
    );
}

#[test]
fn parents_that_are_not_strings() {
    for (member, parent) in [
        ("", Parent::Absent),
        (r#","parentId":7"#, Parent::Absent),
        (r#","parentId":{}"#, Parent::Absent),
        (r#","parentId":null"#, Parent::Null),
        (r#","parentId":"""#, Parent::Id("".into())),
    ] {
        let line = format!(r#"{{"type":"usage"{member}}}"#);
        assert_eq!(entry(&line).parent, parent);
    }
}

#[test]
fn lines_that_are_not_entries() {
    for blank in ["", " ", "\r", " \t\r"] {
        assert_eq!(scan_line(blank.as_bytes()), Ok(Line::Blank));
        assert_eq!(
            scan_first(blank.as_bytes(), 0),
            Ok((Line::Blank, blank.len()))
        );
    }
    for line in [
        "42",
        "null",
        "[]",
        "\"message\"",
        "{}",
        r#"{"id":"x"}"#,
        r#"{"type":null}"#,
    ] {
        assert_eq!(
            scan_line(line.as_bytes()),
            Err(BadLine::NotAnObject),
            "{line}"
        );
    }
    for (line, at) in [
        ("42 43", 3),
        ("{} x", 3),
        ("\0\0", 0),
        ("{}{}", 2),
        ("[1", 2),
        ("{]", 1),
    ] {
        assert_eq!(
            scan_line(line.as_bytes()),
            Err(BadLine::InvalidJson { at }),
            "{line}"
        );
    }
    for end in 1..MESSAGE.len() {
        let torn = scan_line(&MESSAGE.as_bytes()[..end]);
        assert!(
            matches!(torn, Err(BadLine::InvalidJson { at }) if at <= end),
            "{end}"
        );
    }
}

#[test]
fn glued_lines_are_taken_one_by_one() {
    let line = format!(r#" {MESSAGE}{{"type":"usage"}} {{"type":"session"}}x"#);
    let (first, at) = scan_first(line.as_bytes(), 0).unwrap();
    assert_eq!(first, Line::Entry(entry(MESSAGE)));
    assert_eq!(at, 1 + MESSAGE.len());
    let (second, at) = scan_first(line.as_bytes(), at).unwrap();
    assert!(matches!(
        second,
        Line::Entry(Envelope {
            kind: Kind::Usage,
            ..
        })
    ));
    let (third, at) = scan_first(line.as_bytes(), at).unwrap();
    assert!(matches!(third, Line::Header(_)));
    let bad = BadLine::InvalidJson { at: line.len() - 1 };
    assert_eq!(scan_first(line.as_bytes(), at), Err(bad));
}

#[test]
fn nesting_has_no_limit() {
    let deep = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
    for member in ["data", "message", "other"] {
        let line = format!(r#"{{"{member}":{deep},"type":"custom"}}"#);
        assert_eq!(entry(&line).kind, Kind::Custom);
    }
    let line = format!(
        r#"{{"type":"message","message":{{"role":"user","content":[{{"a":{deep}}},{deep}]}}}}"#
    );
    assert_eq!(entry(&line).kind, Kind::Message);
}

/// The members at the start of an entry are read together if they have the written form; any white space between them
/// makes the scan read them one by one.
#[test]
fn the_usual_beginning_is_read_like_any_other() {
    let values = [
        r#""message""#,
        r#""session""#,
        r#""\u0061""#,
        "null",
        "7",
        r#"{"type":"x","id":[]}"#,
        r#""a"#,
        "nul",
        "",
    ];
    for kind in values {
        for id in values {
            for parent in values {
                for timestamp in values {
                    for rest in [
                        "}",
                        r#","message":{"role":"user"}}"#,
                        r#","id":"again"}"#,
                        ",",
                        "",
                    ] {
                        let usual = format!(
                            r#"{{"type":{kind},"id":{id},"parentId":{parent},"timestamp":{timestamp}{rest}"#
                        );
                        let spaced = usual.replacen("{\"type", "{ \"type", 1);
                        let after = |bad: BadLine| match bad {
                            BadLine::InvalidJson { at } => BadLine::InvalidJson { at: at - 1 },
                            other => other,
                        };
                        let expected = scan_line(spaced.as_bytes()).map_err(after);
                        assert_eq!(scan_line(usual.as_bytes()), expected, "{usual}");
                    }
                }
            }
        }
    }
}
