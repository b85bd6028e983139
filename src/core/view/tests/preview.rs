//! Tests previews and the other facts of a row, and how much of a line they read.

use super::*;
use crate::entry::{Kind, Role};
use crate::summary::{MERGE_PREAMBLE, PREAMBLE};
use crate::view::line::PreviewLine;
use crate::view::preview::COMPACTED;
use proptest::prelude::*;

#[track_caller]
fn facts(line: &str) -> RowFacts<'_> {
    let session = Session::of([line.to_owned()]);
    let outline = Outline::new(
        &session.tree,
        Scope {
            filter: Filter::All,
            ..Scope::default()
        },
    );
    let snapshot = Snapshot::take(&session.tree, &outline, outline.kept());
    let entry = snapshot.entry(0).unwrap();
    let of_row = entry.subject();
    let subject = Subject {
        calls: true,
        ..of_row
    };
    let facts = RowFacts::of_line(line.as_bytes(), subject);
    // The extract gives the same facts, for rows and for their results.
    let mut extract = Vec::new();
    facts.push_extract(subject, &mut extract);
    let of_extract = |len: usize| RowFacts::of_extract(&extract[..len], subject);
    assert_eq!(of_extract(extract.len()), Some(facts.clone()));
    for end in 0..extract.len() {
        assert_ne!(of_extract(end), Some(facts.clone()));
    }
    // The subject of the line before another program edited the line in place. The daemon has not noticed the edit.
    let kind = match subject.kind {
        Kind::Label => Kind::Message,
        _ => Kind::Label,
    };
    let other = Subject { kind, ..subject };
    assert_eq!(RowFacts::of_extract(&extract, other), None);
    let without_calls = RowFacts {
        calls: Vec::new(),
        ..facts.clone()
    };
    assert_eq!(RowFacts::of_line(line.as_bytes(), of_row), without_calls);
    assert_eq!(RowFacts::of_extract(&extract, of_row), Some(without_calls));
    // The facts of a head equal the facts of the whole line.
    for subject in [subject, of_row] {
        let whole = RowFacts::of_line(line.as_bytes(), subject);
        for end in 0..line.len() {
            if let Some(head) = RowFacts::of_head(&line.as_bytes()[..end], subject) {
                let calls = whole.calls.clone();
                let head = RowFacts { calls, ..head };
                assert_eq!(head, whole, "from {end} bytes");
            }
        }
        assert_eq!(RowFacts::of_head(line.as_bytes(), subject), Some(whole));
    }
    facts
}

#[track_caller]
fn check(line: &str, preview: &str) {
    assert_eq!(facts(line).preview, preview);
}

#[track_caller]
fn check_message(rest: &str, preview: &str) {
    check(&message("a", "", 1, rest), preview);
}

#[track_caller]
fn check_entry(kind: &str, rest: &str, preview: &str) {
    check(&entry("a", "", 1, kind, rest), preview);
}

#[test]
fn messages() {
    check_message(r#""role":"user","content":"hello""#, "hello");
    check_message(
        r#""role":"user","content":[{"type":"text","text":"see"},{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"text","text":"this"}]"#,
        "see [image] this",
    );
    check_message(r#""role":"system","content":"be kind""#, "be kind");
    check_message(
        r#""role":"custom","customType":"x","content":"seen""#,
        "seen",
    );
    check_message(r#""role":"user","content":null"#, "");
    check_message(r#""role":"user""#, "");
    check_message(
        r#""role":"poet","content":["plain",7,{"text":"late","type":"text"}]"#,
        "plain late",
    );
    check_message(
        r#""role":"bashExecution","command":"ls\t-l\n","output":"x","exitCode":0"#,
        "$ ls -l",
    );
    check_message(
        r#""role":"branchSummary","summary":"went left","fromId":"b""#,
        "went left",
    );
    check_message(
        r#""role":"toolResult","toolCallId":"t","toolName":"read","content":[{"type":"text","text":"fn main"}]"#,
        "fn main",
    );
    check_entry("message", r#","message":"text""#, "");
}

/// The row of a tool result once showed the beginning of its text, which is the same for most results. The most
/// informative line is the last one with a letter or digit, and for an error the first one.
#[test]
fn a_tool_result_shows_its_last_line_and_an_error_its_first() {
    let check = |text: &str, expected: &str, of_error: &str| {
        let content = format!(
            r#""role":"toolResult","toolCallId":"t","toolName":"bash","content":[{{"type":"text","text":"{text}"}}]"#
        );
        check_message(&content, expected);
        check_message(&format!(r#"{content},"isError":true"#), of_error);
        check_message(&format!(r#""isError":true,{content}"#), of_error);
    };
    check("", "", "");
    check("one", "one", "one");
    check(r"\n---\n  one \t 1\n\ntwo\n...\n", "two", "one 1");
    let long = "x".repeat(100);
    check(&format!(r"{long}\n{long}y"), &long[..80], &long[..80]);
    let far = format!(r"first\n{}last", "z".repeat(10_000) + r"\n");
    check(&far, "last", "first");
    let blocks = |blocks: &str| {
        format!(r#""role":"toolResult","toolCallId":"t","toolName":"x","content":[{blocks}]"#)
    };
    let image = r#"{"type":"image","data":"AAAA","mimeType":"image/png"}"#;
    let text = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
    check_message(&blocks(image), "[image]");
    let several = [text("one"), image.to_owned(), text("two"), text("--")];
    check_message(&blocks(&several.join(",")), "two");
    check_message(
        &format!(r#"{},"isError":true"#, blocks(&several.join(","))),
        "one",
    );
}

#[test]
fn assistants() {
    let call = |name: &str, arguments: &str| {
        format!(r#"{{"type":"toolCall","id":"t","name":"{name}","arguments":{arguments}}}"#)
    };
    let read = call("read", r#"{"path":"a \"b\".rs","offset":10}"#);
    let edit = call("edit", r#"{ "edits" : [ {"old":"x"} ], "all":true}"#);
    let assistant =
        |blocks: &str, rest: &str| format!(r#""role":"assistant","content":[{blocks}]{rest}"#);
    check_message(
        &assistant(
            &format!(r#"{{"type":"thinking","thinking":"hm"}},{read},{edit}"#),
            "",
        ),
        r#"read a "b".rs, edit"#,
    );
    check_message(
        &assistant(&format!(r#"{read},{{"type":"text","text":"I read"}}"#), ""),
        "I read",
    );
    check_message(&assistant(r#"{"type":"thinking","thinking":"hm"}"#, ""), "");
    check_message(
        &assistant("", r#","stopReason":"error","errorMessage":"no credit""#),
        "no credit",
    );
    check_message(
        &assistant(&read, r#","stopReason":"aborted","errorMessage":"aborted""#),
        "aborted",
    );
    check_message(
        &assistant(&call("ls", "{}"), r#","stopReason":"error""#),
        "ls",
    );
    check_message(
        &assistant(
            r#"{"type":"text","text":"so far"}"#,
            r#","stopReason":"error","errorMessage":"x""#,
        ),
        "so far",
    );
    // A message that did not fail has no error to show.
    check_message(
        &assistant("", r#","stopReason":"stop","errorMessage":"old""#),
        "",
    );
    check_message(
        &assistant(
            r#"{"arguments":{"a":1},"name":"late","type":"toolCall"},{"type":"toolCall","name":"bare"}"#,
            "",
        ),
        "late, bare",
    );
    let line = message("a", "", 1, &assistant(&format!("{read},{edit}"), ""));
    let facts = facts(&line);
    let calls = facts
        .calls
        .iter()
        .map(|call| (&*call.id, &*call.name, &*call.summary, call.changes));
    let expected = [("t", "read", r#"a "b".rs"#, 0), ("t", "edit", "", 1)];
    assert_eq!(calls.collect::<Vec<_>>(), expected);
}

#[test]
fn other_entries() {
    check_entry(
        "compaction",
        r#","summary":"so far","tokensBefore":12"#,
        "so far",
    );
    check_entry(
        "branch_summary",
        r#","fromId":"root","summary":"a\n\nb""#,
        "a b",
    );
    for preamble in [PREAMBLE, MERGE_PREAMBLE] {
        // The same holds for a message that is not read to its end.
        let long = "x".repeat(5000);
        let summary = format!(r#","summary":"{preamble}\n\n{long}""#);
        check_entry("branch_summary", &summary, &long[..PreviewLine::LIMIT]);
        let summary = format!(r#","summary":"{preamble}\n\n## Goal\n{preamble}""#);
        check_entry("branch_summary", &summary, &format!("Goal {preamble}"));
        check_entry(
            "compaction",
            &summary,
            &format!("{preamble} Goal {preamble}"),
        );
    }
    for line in COMPACTED {
        let summary = format!(r#","summary":"{line}\n\n## Goal\n{line}""#);
        let shown: String = format!("Goal {line}")
            .chars()
            .take(PreviewLine::LIMIT)
            .collect();
        check_entry("compaction", &summary, &shown);
    }
    check_entry("model_change", r#","provider":"p","modelId":"m""#, "p/m");
    check_entry("model_change", r#","modelId":"m","provider":null"#, "m");
    check_entry(
        "thinking_level_change",
        r#","thinkingLevel":"high""#,
        "high",
    );
    check_entry("label", r#","targetId":"b","label":"here""#, "here");
    check_entry("label", r#","targetId":"b","label":null"#, "");
    check_entry("session_info", r#","name":"My session""#, "My session");
    check_entry(
        "custom",
        r#","customType":"my.state","data":{"customType":"no"}"#,
        "my.state",
    );
    check_entry(
        "custom_message",
        r#","customType":"n","content":[{"type":"text","text":"note"}],"display":true"#,
        "note",
    );
    check_entry(
        "context_edit",
        r#","targetId":"b","replacement":null"#,
        "[left out]",
    );
    check_entry(
        "context_edit",
        r#","targetId":"b","replacement":{"content":"shorter"}"#,
        "shorter",
    );
    check_entry(
        "usage",
        r#","kind":"summary","provider":"p","model":"m","usage":{}"#,
        "summary p/m",
    );
    check_entry("plan", r#","steps":[1]"#, "plan");
}

#[test]
fn one_line_without_control_characters() {
    check_message(
        r#""role":"user","content":"\r\n a\u001b[31m\tb\u0000\u009b\u007f  \u2028c\u2029\u0085 \ufeffd \n""#,
        "a[31m b c d",
    );
    check_message(
        r#""role":"user","content":"\ud83d\ude00 \ud83d \ude00x \ud83d\n é…""#,
        "😀 \u{fffd} \u{fffd}x \u{fffd} é…",
    );
    check_message(r#""role":"user","content":" \n\t ""#, "");
}

#[test]
fn two_hundred_characters() {
    let check = |text: &str, expected: &str| {
        check_message(&format!(r#""role":"user","content":"{text}""#), expected);
    };
    check(&"x".repeat(200), &"x".repeat(200));
    check(&"x".repeat(201), &"x".repeat(200));
    check(&"😀".repeat(250), &"😀".repeat(200));
    check(r"\ud83d\ude00".repeat(250).as_str(), &"😀".repeat(200));
    // White space at the end would be the 200th character.
    check(&format!("{} y", "x".repeat(199)), &"x".repeat(199));
    check(
        &format!("{} y", "x".repeat(198)),
        &format!("{} y", "x".repeat(198)),
    );
    check(&format!("{}{}", "  ".repeat(300), "y"), "y");
}

#[test]
fn tokens_tool_names_and_damage() {
    let compaction = |tokens: &str| {
        facts(&entry(
            "a",
            "",
            1,
            "compaction",
            &format!(r#","tokensBefore":{tokens},"summary":"s""#),
        ))
        .tokens
    };
    assert_eq!(compaction("1234567"), Some(1_234_567));
    assert_eq!(compaction("1.5e3"), Some(1500));
    assert_eq!(compaction("1.5"), None);
    assert_eq!(compaction("-1"), None);
    assert_eq!(compaction("\"12\""), None);
    let late = message(
        "a",
        "",
        1,
        r#""role":"toolResult","content":"out","toolName":"read""#,
    );
    assert_eq!(facts(&late).tool_name.as_deref(), Some("read"));
    let subject = Subject {
        kind: Kind::Message,
        role: Role::User,
        flags: Flags::NONE,
        calls: false,
    };
    let damaged = br#"{"type":"message","message":{"role":"user","content":"half of i"#;
    assert_eq!(RowFacts::of_line(damaged, subject).preview, "half of i");
    assert_eq!(RowFacts::of_head(damaged, subject), None);
    let invalid = b"{\"message\":{\"content\":\"a\xff\xc3\"}}";
    assert_eq!(
        RowFacts::of_line(invalid, subject).preview,
        "a\u{fffd}\u{fffd}"
    );
    assert_eq!(RowFacts::of_line(b"", subject), RowFacts::default());
    assert_eq!(RowFacts::of_line(b"[1]", subject), RowFacts::default());
}

/// The head of a long line is enough if it contains the shown members.
#[test]
fn long_bodies_are_not_read_whole() {
    let long = "lorem ipsum ".repeat(10_000);
    let call = format!(
        r#"{{"type":"toolCall","id":"t","name":"write","arguments":{{"content":"{long}"}}}}"#
    );
    let short = format!(r#"{{"type":"text","text":"short"}}],"details":"{long}""#);
    let suffices = |line: String| {
        let session = Session::of([line]);
        let outline = Outline::new(&session.tree, Scope::default());
        let snapshot = Snapshot::take(&session.tree, &outline, outline.kept());
        let entry = snapshot.entry(0).unwrap();
        let head = &session.stored(entry.place)[..FIRST_READ];
        RowFacts::of_head(head, entry.subject()).is_some()
    };
    let of = |rest: String| suffices(message("a", "", 1, &rest));
    assert!(of(format!(r#""role":"user","content":"{long}""#)));
    assert!(of(format!(r#""role":"user","content":[{short}"#)));
    assert!(of(format!(
        r#""role":"toolResult","toolCallId":"c","toolName":"t","content":[{short}"#
    )));
    assert!(of(format!(
        r#""role":"toolResult","toolCallId":"c","toolName":"t","isError":true,"content":"first\n{long}""#
    )));
    assert!(of(format!(
        r#""role":"bashExecution","command":"ls","output":"{long}""#
    )));
    assert!(suffices(entry(
        "a",
        "",
        1,
        "plan",
        &format!(r#","data":"{long}""#)
    )));
    // A shown member may follow later in the line.
    assert!(!of(format!(
        r#""role":"toolResult","content":"{long}","toolName":"t""#
    )));
    assert!(!of(format!(r#""role":"assistant","content":[{call}]"#)));
    assert!(!of(format!(
        r#""role":"assistant","content":[{call},{{"type":"text","text":"x"}}]"#
    )));
    assert!(!suffices(entry(
        "a",
        "",
        1,
        "compaction",
        &format!(r#","summary":"{long}","tokensBefore":1"#)
    )));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// The preview of any text has no control characters and no repeated spaces.
    #[test]
    fn any_text_becomes_a_line(text in "\\PC{0,40}|(.|\\s|[\u{0}-\u{1f}\u{7f}-\u{9f}\u{2028}\u{2029}]){0,300}|([a-z]{1,9} {0,2}|[a-z]{30}|\n|λ|\"|\\\\){0,80}") {
        let mut literal = Vec::new();
        crate::json::push_string(&mut literal, &text);
        let literal = String::from_utf8(literal).unwrap();
        let line = message("a", "", 1, &format!(r#""role":"bashExecution","command":{literal}"#));
        let preview = facts(&line).preview;
        let mut folded = "$ ".to_owned();
        for char in text.chars().filter(|c| c.is_whitespace() || !crate::terminal::is_control(*c)) {
            match char {
                '\u{feff}' => folded.push(' '),
                c if c.is_whitespace() => folded.push(' '),
                c => folded.push(c),
            }
        }
        let folded = folded.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        let cut: String = folded.chars().take(PreviewLine::LIMIT).collect();
        prop_assert_eq!(&preview, cut.trim_end());

        // The same holds for every head that is enough.
        let subject = Subject { kind: Kind::Message, role: Role::BashExecution, flags: Flags::NONE, calls: false };
        for end in (0..line.len()).rev().take(60).chain([line.len() / 2, line.len() / 3]) {
            if let Some(facts) = RowFacts::of_head(&line.as_bytes()[..end], subject) {
                prop_assert_eq!(&facts.preview, &preview);
            }
        }
    }

    /// Marks and elements of any kind, in any order: a head that is enough gives the line of the whole text.
    #[test]
    fn any_markdown_becomes_a_line(
        text in "([a-zé日]{1,9}| |\n|\\*{1,2}|_|`{1,3}|~~|\\[|\\]\\(a\\)|!|<a>|<system-reminder>|</system-reminder>|<command-name>|</command-name>|# |> |- |\\||\"|\\\\){0,120}"
    ) {
        let mut literal = Vec::new();
        crate::json::push_string(&mut literal, &text);
        let literal = String::from_utf8(literal).unwrap();
        let line = message("a", "", 1, &format!(r#""role":"user","content":{literal}"#));
        let preview = facts(&line).preview;
        prop_assert!(preview.chars().count() <= PreviewLine::LIMIT);
        prop_assert!(!preview.contains("  ") && preview.trim() == preview);
        let subject = Subject { kind: Kind::Message, role: Role::User, flags: Flags::NONE, calls: false };
        for end in (0..line.len()).rev().take(60).chain([line.len() / 2, line.len() / 3]) {
            if let Some(facts) = RowFacts::of_head(&line.as_bytes()[..end], subject) {
                prop_assert_eq!(&facts.preview, &preview);
            }
        }
    }

    /// Bytes that are not an entry cause no panic.
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for role in [Role::User, Role::Assistant, Role::ToolResult, Role::Other] {
            let subject = Subject { kind: Kind::Message, role, flags: Flags::ODD_TIMESTAMP, calls: true };
            let preview = RowFacts::of_line(&bytes, subject).preview;
            prop_assert!(preview.chars().count() <= PreviewLine::LIMIT);
        }
    }
}
