//! The trees that are made from records.

use super::super::ClaudeCode;
use super::{called, main, main_unchecked, record, result, said, text, user};
use crate::member::{Base, NodeKind};
use crate::tests::testing::{outline, read, shape};

/// Parallel calls are written as A1 → A2, A1 → R1 and A2 → R2, and the conversation continues from R1 or from R2. A
/// tree of the records themselves would have one call and its result on a branch that ends.
#[test]
fn records_with_one_message_id_are_one_message_with_its_results_below() {
    let source = user("u", "-", 0, "go")
        + &said("a1", "u", 1, "M")
        + &called("a2", "a1", 2, "M", "c1")
        + &called("a3", "a2", 3, "M", "c2")
        + &result("r2", "a3", 4, "c2", "")
        + &record(
            "progress",
            "p",
            "a2",
            5,
            r#""data":{"type":"hook_progress"}"#,
        )
        + &result("r1", "p", 6, "c1", "")
        + &said("b", "r2", 7, "N");
    let member = main(&source);
    assert_eq!(
        shape(&member),
        ["- u", "u M", "M r2/r:c2", "r2/r:c2 r1/r:c1", "r1/r:c1 N"]
    );
    let message = text(&source, &member, 1);
    assert!(
        message.contains(r#""input":3,"output":3,"#),
        "the last usage: {message}"
    );
    assert!(message.contains(r#""stopReason":"toolUse""#), "{message}");
    assert!(text(&source, &member, 2).contains(r#""toolName":"Bash""#));
    assert_eq!(member.leaf, Some(4));
    let alias = |id: &str| member.aliases.iter().find(|(alias, _)| &**alias == id);
    assert_eq!(
        alias("a2").map(|(_, at)| *at),
        Some(3),
        "children hang below the results"
    );
    assert_eq!(alias("p").map(|(_, at)| *at), Some(3));
}

#[test]
fn a_synthetic_message_is_separate() {
    let source = user("u", "-", 0, "go")
        + &said("a", "u", 1, "M")
        + &said("s", "u", 2, "M").replace(r#""model":"m""#, r#""model":"<synthetic>""#);
    let member = main(&source);
    assert_eq!(shape(&member), ["- u", "u M", "u s"]);
    let failed = source.replace(
        r#""type":"assistant","uuid":"s""#,
        r#""isApiErrorMessage":true,"type":"assistant","uuid":"s""#,
    );
    let message = text(&failed, &main(&failed), 2);
    assert!(
        message.contains(r#""stopReason":"error","errorMessage":"s""#),
        "{message}"
    );
}

#[test]
fn children_of_a_record_without_an_entry_hang_at_its_parent() {
    let source = record(
        "progress",
        "h",
        "-",
        0,
        r#""data":{"type":"hook_progress"}"#,
    ) + &user("u", "h", 1, "go")
        + &record(
            "attachment",
            "t",
            "u",
            2,
            r#""attachment":{"type":"todo_reminder"}"#,
        )
        + &said("a", "t", 3, "M")
        + &record("system", "s", "a", 4, r#""subtype":"turn_duration""#)
        + "{\"type\":\"file-history-snapshot\",\"messageId\":\"u\"}\n"
        + &user("v", "s", 5, "on")
        + &user("w", "a", 6, "otherwise");
    let member = main(&source);
    assert_eq!(shape(&member), ["- u", "u M", "M v", "M w"]);
    let counts: Vec<(&str, u64)> = member.origin_only.iter().map(|(a, b)| (&**a, *b)).collect();
    let expected = [
        ("attachment/todo_reminder", 1),
        ("file-history-snapshot", 1),
        ("progress/hook_progress", 1),
        ("system/turn_duration", 1),
    ];
    assert_eq!(counts, expected);
}

#[test]
fn events_are_links_and_never_leaves_or_roots() {
    let error = r#""subtype":"api_error","error":{"status":529},"retryAttempt":1"#;
    let source = record("system", "e0", "-", 0, error)
        + &user("u", "e0", 1, "go")
        + &record("system", "e1", "u", 2, error)
        + &said("a", "e1", 3, "M")
        + "{\"type\":\"permission-mode\",\"permissionMode\":\"default\"}\n"
        + "{\"type\":\"permission-mode\",\"permissionMode\":\"plan\"}\n"
        + &user("v", "a", 4, "on")
        + &record("system", "e2", "v", 5, error);
    let member = main(&source);
    assert_eq!(shape(&member), ["- u", "u e1", "e1 M", "M #5", "#5 v"]);
    assert_eq!(member.origin_only.get("system/api_error"), Some(&2));
    assert_eq!(
        member.origin_only.get("permission-mode"),
        Some(&1),
        "the first only begins"
    );
    let event = text(&source, &member, 1);
    assert!(event.contains(r#""customType":"claude-code.api_error","data":{"error":{"status":529},"retryAttempt":1}"#), "{event}");
    assert!(text(&source, &member, 3).contains("claude-code.permission-mode"));
}

fn compacted(metadata: &str) -> String {
    user("u", "-", 0, "go")
        + &said("a", "u", 1, "M")
        + &user("v", "a", 2, "on")
        + &said("b", "v", 3, "N")
        + &record(
            "system",
            "cb",
            "-",
            4,
            &format!(
                r#""subtype":"compact_boundary","logicalParentUuid":"b","compactMetadata":{{"preTokens":77{metadata}}}"#
            ),
        )
        + &record(
            "user",
            "cs",
            "cb",
            5,
            r#""isCompactSummary":true,"message":{"content":"In short"}"#,
        )
}

#[test]
fn a_boundary_with_its_summary_is_one_compaction() {
    let source = compacted("") + &user("w", "cs", 6, "next");
    let member = main(&source);
    assert_eq!(shape(&member), ["- u", "u M", "M v", "v N", "N cb", "cb w"]);
    assert_eq!(
        member.nodes[4].kind,
        NodeKind::Compaction { first_kept: None }
    );
    let summary = text(&source, &member, 4);
    assert!(
        summary.contains(r#""summary":"In short","tokensBefore":77"#),
        "{summary}"
    );
    // If there is no summary, the earlier messages stay.
    let torn = source.replace(r#""isCompactSummary":true,"#, "");
    let member = main(&torn);
    assert!(matches!(member.nodes[4].kind, NodeKind::Custom));
}

/// Newer versions keep the last messages. Later records name a kept message as their parent, although the compaction
/// is between the two.
#[test]
fn messages_that_stay_in_the_context_are_kept_by_the_compaction() {
    let segment = r#","preservedSegment":{"headUuid":"v","anchorUuid":"cs","tailUuid":"b"}"#;
    let listed = r#","preservedMessages":{"anchorUuid":"cs","uuids":["v","b"]}"#;
    let expected = ["- u", "u M", "M v", "v N", "N cb", "cb w"];
    for metadata in [segment, listed] {
        let source = compacted(metadata) + &user("w", "b", 6, "next");
        let member = main(&source);
        assert_eq!(shape(&member), expected);
        assert_eq!(
            member.nodes[4].kind,
            NodeKind::Compaction {
                first_kept: Some(2)
            }
        );
    }
    // The kept messages are repeated below the summary, with the same uuids.
    let source = compacted("")
        + &user("v", "cs", 2, "on")
        + &said("b", "v", 3, "N")
        + &user("w", "b", 6, "next");
    let member = main(&source);
    assert_eq!(shape(&member), expected);
    assert_eq!(
        member.nodes[4].kind,
        NodeKind::Compaction {
            first_kept: Some(2)
        }
    );
    assert_eq!(
        (member.duplicates, member.origin_only.get("user")),
        (1, Some(&1))
    );
}

#[test]
fn a_compaction_after_a_rewind_is_on_the_branch_that_it_goes_on_from() {
    let source = compacted("").replace(r#""logicalParentUuid":"b""#, r#""logicalParentUuid":"x""#)
        + &user("x", "a", 2, "otherwise")
        + &user("w", "cs", 6, "next");
    assert_eq!(
        shape(&main(&source)),
        ["- u", "u M", "M v", "v N", "M x", "x cb", "cb w"]
    );
    let missing = compacted("").replace(
        r#""logicalParentUuid":"b""#,
        r#""logicalParentUuid":"gone""#,
    );
    let member = main(&missing);
    assert_eq!(shape(&member)[4], "?gone cb");
}

/// A compaction may write messages again, at the same position and with the same time, but with new uuids.
#[test]
fn a_sibling_with_the_same_time_and_content_is_a_copy() {
    let source = user("u", "-", 0, "go")
        + &said("a", "u", 1, "M")
        + &user("v", "a", 2, "on")
        + &said("b", "v", 3, "N")
        + &user("v2", "a", 2, "on")
        + &said("b", "v2", 3, "N").replace(r#""uuid":"b""#, r#""uuid":"b2""#)
        + &user("w", "b2", 4, "next");
    let member = main(&source);
    assert_eq!(shape(&member), ["- u", "u M", "M v", "v N", "N w"]);
    assert_eq!(member.origin_only.values().sum::<u64>(), 2);
    let other = source.replace(r#""uuid":"v2","parentUuid":"a","sessionId":"S","cwd":"/w","timestamp":"2026-01-01T00:00:02.000Z""#, r#""uuid":"v2","parentUuid":"a","timestamp":"2026-01-01T00:00:09.000Z""#);
    assert_eq!(
        outline(&main(&other)).forks,
        1,
        "at another time it is a branch"
    );
}

#[test]
fn texts_of_the_harness_are_not_messages_of_a_person() {
    for (body, name) in [
        ("<command-name>/x</command-name>", "command"),
        ("\\n  <local-command-stdout>x", "command-output"),
        ("[Request interrupted by user for tool use]", "interruption"),
    ] {
        let source = user("u", "-", 0, body);
        let member = main(&source);
        assert_eq!(member.nodes[0].kind, NodeKind::Scaffolding);
        let said = text(&source, &member, 0);
        assert!(
            said.contains(&format!("\"claude-code.{name}\"")) && said.contains(r#""display":true"#),
            "{said}"
        );
    }
    let meta = user("u", "-", 0, "Base directory").replace("\"uuid\"", "\"isMeta\":true,\"uuid\"");
    assert!(
        text(&meta, &main(&meta), 0)
            .contains(r#""claude-code.meta","content":"Base directory","display":false"#)
    );
    assert_eq!(
        main(&user("u", "-", 0, "look at <command-name>")).nodes[0].kind,
        NodeKind::User
    );
}

#[test]
fn queued_messages_are_on_the_path() {
    let queued = r#""attachment":{"type":"queued_command","prompt":[{"type":"text","text":"also"}],"commandMode":"prompt"}"#;
    let source = user("u", "-", 0, "go")
        + &called("a", "u", 1, "M", "c")
        + &result("r", "a", 2, "c", "")
        + &record("attachment", "q", "r", 3, queued)
        + &said("b", "q", 4, "N");
    let member = main(&source);
    assert_eq!(shape(&member), ["- u", "u M", "M r/r:c", "r/r:c q", "q N"]);
    assert_eq!(member.nodes[3].kind, NodeKind::User);
    let notice = source.replace(r#""text":"also""#, r#""text":"<task-notification>""#);
    assert_eq!(main(&notice).nodes[3].kind, NodeKind::Scaffolding);
    let older = user("u", "-", 0, "go")
        + &called("a", "u", 1, "M", "c")
        + r#"{"type":"queue-operation","operation":"enqueue","content":"also"}"#
        + "\n"
        + r#"{"type":"queue-operation","operation":"remove","content":"also"}"#
        + "\n"
        + r#"{"type":"queue-operation","operation":"remove","content":"and"}"#
        + "\n"
        + &result("r", "a", 2, "c", "")
        + &said("b", "r", 4, "N");
    let member = main(&older);
    assert_eq!(
        shape(&member),
        ["- u", "u M", "M r/r:c", "r/r:c #3", "#3 #4", "#4 N"]
    );
    assert!(text(&older, &member, 3).contains(r#""content":"also""#));
}

#[test]
fn a_missing_parent_is_named_by_its_key() {
    let source = record(
        "progress",
        "p",
        "gone",
        0,
        r#""data":{"type":"hook_progress"}"#,
    ) + &user("u", "p", 1, "go")
        + &result("r", "lost", 2, "c", "");
    assert_eq!(shape(&main_unchecked(&source)), ["?gone u", "?lost r/r:c"]);
}

#[test]
fn cycles_and_later_parents_are_read() {
    let source = user("u", "v", 0, "1")
        + &user("v", "u", 1, "2")
        + &user("w", "w", 2, "3")
        + &user("x", "y", 3, "4")
        + &user("y", "v", 4, "5");
    assert_eq!(shape(&main(&source)), ["- u", "u v", "- w", "v y", "y x"]);
    let results_first =
        user("u", "-", 0, "go") + &result("r", "u", 1, "c", "") + &called("a", "u", 2, "M", "c");
    assert_eq!(shape(&main(&results_first)), ["- u", "u M", "M r/r:c"]);
}

#[test]
fn records_without_ids_are_a_chain() {
    let source = "{\"type\":\"user\",\"message\":{\"content\":\"a\"}}\n\
        {\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"Read\",\"input\":[]}]}}\n\
        {\"type\":\"user\",\"message\":{\"content\":\"b\"}}\n";
    let member = main(source);
    assert_eq!(shape(&member), ["- #0", "#0 #1", "#1 #2"]);
    assert!(text(source, &member, 1).contains(r#""arguments":{"_raw":"[]"}"#));
    assert!(!text(source, &member, 0).contains("timestamp"));
}

#[test]
fn forks_name_the_records_that_they_copy() {
    let from =
        |uuid: &str| format!(r#""forkedFrom":{{"sessionId":"P","messageUuid":"{uuid}"}},"type""#);
    let source = user("u2", "-", 0, "go").replacen("\"type\"", &from("u1"), 1)
        + &said("a2", "u2", 1, "M").replacen("\"type\"", &from("a1"), 1)
        + &user("v", "a2", 2, "on");
    let member = main(&source);
    assert_eq!(shape(&member), ["- u1", "u1 M", "M v"]);
    assert_eq!(
        member.base,
        Base::CopyOf {
            native_id: "P".into()
        }
    );
}

#[test]
fn the_best_title_counts_and_the_leaf_is_where_the_tool_goes_on() {
    let messages = user("u", "-", 0, "go") + &said("a", "u", 1, "M") + &user("v", "a", 2, "on");
    let summaries = "{\"type\":\"summary\",\"summary\":\"Elsewhere\",\"leafUuid\":\"x\"}\n\
        {\"type\":\"summary\",\"summary\":\"Sum\",\"leafUuid\":\"a\"}\n";
    let titled = |lines: &str| main(&format!("{messages}{lines}")).title;
    assert_eq!(
        titled("{\"type\":\"summary\",\"summary\":\"Elsewhere\",\"leafUuid\":\"x\"}\n"),
        None
    );
    assert_eq!(titled(summaries).as_deref(), Some("Sum"));
    let ai = "{\"type\":\"ai-title\",\"aiTitle\":\"Ai\"}\n";
    assert_eq!(titled(&format!("{ai}{summaries}")).as_deref(), Some("Ai"));
    let custom = "{\"type\":\"custom-title\",\"customTitle\":\"Own\"}\n";
    assert_eq!(titled(&format!("{custom}{ai}")).as_deref(), Some("Own"));
    let prompt = "{\"type\":\"last-prompt\",\"lastPrompt\":\"x\",\"leafUuid\":\"a\"}\n";
    assert_eq!(main(&messages).leaf, Some(2));
    assert_eq!(main(&format!("{messages}{prompt}")).leaf, Some(1));
    let later = format!("{messages}{prompt}{}", user("w", "a", 3, "again"));
    assert_eq!(main(&later).leaf, Some(3), "later records come later");
}

#[test]
fn the_session_is_named_by_the_file_if_records_have_its_name() {
    let source = user("u", "-", 0, "go").replace("\"S\"", "\"P\"") + &user("v", "u", 1, "on");
    let named = |path: &str| {
        read(&ClaudeCode, path, source.as_bytes())
            .remove(0)
            .native_id
    };
    assert_eq!(named("x/P.jsonl"), "P");
    assert_eq!(named("x/full.jsonl"), "S");
    let empty = read(&ClaudeCode, "x/full.jsonl", b"{}\n7\n").remove(0);
    assert_eq!(empty.native_id, "full");
    assert_eq!(empty.origin_only.get("not an object"), Some(&1));
}

#[test]
fn the_last_model_message_is_open_until_it_is_answered_and_followed() {
    let open = |source: &str| -> String {
        let nodes = main(source).nodes;
        nodes
            .iter()
            .map(|node| if node.is_open { 'o' } else { '.' })
            .collect()
    };
    let mut source = user("u", "-", 0, "go") + &called("a", "u", 1, "M", "c");
    assert_eq!(open(&source), ".o");
    source += &result("r", "a", 2, "c", "");
    assert_eq!(open(&source), ".oo");
    source += &called("b", "r", 3, "M", "d");
    assert_eq!(open(&source), ".oo");
    let interrupted = source.clone() + &user("i", "b", 4, "[Request interrupted by user]");
    assert_eq!(open(&interrupted), ".ooo", "a call has no result");
    assert_eq!(open(&(interrupted + &said("n", "i", 5, "N"))), "....o");
    source += &result("s", "b", 4, "d", "");
    assert_eq!(open(&source), ".ooo");
    assert_eq!(open(&(source.clone() + &user("v", "s", 5, "on"))), ".....");
    assert_eq!(
        open(&(source + &record("system", "t", "s", 5, r#""subtype":"turn_duration""#))),
        "...."
    );
}

/// Once the second record had no entry, and only the number of records in the origin showed that it existed.
#[test]
fn a_second_record_with_an_id_and_another_body_is_kept() {
    let begin =
        user("u1", "-", 0, "one") + &said("a1", "u1", 1, "M1") + &user("u2", "a1", 2, "two");
    let other = user("u2", "a1", 3, "something else");
    let end = said("a2", "u2", 4, "M2");
    let source = format!("{begin}{other}{other}{end}");
    let member = main(&source);
    let chain = ["- u1", "u1 M1", "M1 u2", "u2 u2#3", "u2#3 M2"];
    assert_eq!(shape(&member), chain);
    let kept = text(&source, &member, 3);
    assert!(
        kept.starts_with(
            r#"{"type":"custom","customType":"import.duplicate","data":{"type":"user""#
        ),
        "{kept}"
    );
    assert!(kept.contains("something else"), "{kept}");
    // The third record has the same bytes as the second.
    assert_eq!((member.duplicates, member.origin_only.len()), (1, 0));
    // This is the last entry, but not the leaf.
    let source = begin + &other;
    let member = main(&source);
    assert_eq!(shape(&member), chain[..4]);
    assert_eq!(member.leaf, Some(2));
    // The new records are an answer with the id of a message of the user, and a command without a body.
    let source =
        source + &said("u1", "u2", 5, "M3") + &record("progress", "u1", "u2", 6, r#""data":1"#);
    let member = main(&source);
    assert_eq!(shape(&member)[4], "u2#3 u1#4");
    assert_eq!(member.origin_only.get("progress"), Some(&1));
}

/// Once the user's text beside a result became part of the tool's text: `[tool_result, text]` became one entry
/// `toolResult`.
#[test]
fn a_text_beside_a_result_is_a_message_of_the_user() {
    let with_text = |uuid: &str, parent: &str, call: &str, text: &str| {
        result(uuid, parent, 2, call, "").replace(
            r#""content":"done"}]"#,
            &format!(r#""content":"done"}},{{"type":"text","text":"{text}"}}]"#),
        )
    };
    let source = user("u", "-", 0, "go")
        + &called("a", "u", 1, "M", "c")
        + &with_text("r", "a", "c", "no, the other one")
        + &said("b", "r", 3, "N");
    let member = main(&source);
    assert_eq!(
        shape(&member),
        ["- u", "u M", "M r/r:c", "r/r:c r/text", "r/text N"]
    );
    assert_eq!(member.nodes[3].kind, NodeKind::User);
    assert!(!text(&source, &member, 2).contains("the other one"));
    let told = text(&source, &member, 3);
    assert!(
        told.contains(r#""content":[{"type":"text","text":"no, the other one"}]"#),
        "{told}"
    );
    // The results of parallel calls come before the texts beside them.
    let parallel = user("u", "-", 0, "go")
        + &called("a", "u", 1, "M", "c")
        + &called("a2", "a", 1, "M", "d")
        + &with_text("r", "a", "c", "wait")
        + &result("s", "a2", 2, "d", "")
        + &said("b", "r", 3, "N");
    assert_eq!(
        shape(&main(&parallel)),
        [
            "- u",
            "u M",
            "M r/r:c",
            "r/r:c s/r:d",
            "s/r:d r/text",
            "r/text N"
        ]
    );
}

/// Once a message that the model got while it worked became two entries, because Claude Code 2.1.330 writes two records
/// for the message: an attachment, and a record that the wait has ended.
#[test]
fn a_message_to_a_working_model_is_one_entry() {
    let attachment = record(
        "attachment",
        "q",
        "r",
        3,
        r#""attachment":{"type":"queued_command","prompt":"also","source_uuid":"k","delivery_id":"d","commandMode":"prompt"}"#,
    );
    let remove = r#"{"type":"queue-operation","operation":"remove","reason":"absorbed_mid_turn","commandUuid":"k","deliveryId":"d","content":"also"}"#.to_owned() + "\n";
    let source = |told: &[&str]| {
        user("u", "-", 0, "go")
            + &called("a", "u", 1, "M", "c")
            + &result("r", "a", 2, "c", "")
            + &told.concat()
            + &said("b", "q", 4, "N")
    };
    let members = |told: &[&str]| main(&source(told));
    let one = members(&[&attachment, &remove]);
    assert_eq!(shape(&one), ["- u", "u M", "M r/r:c", "r/r:c q", "q N"]);
    assert_eq!(one.origin_only.get("queue-operation/remove"), Some(&1));
    let one = members(&[&remove, &attachment]);
    assert_eq!(shape(&one), ["- u", "u M", "M r/r:c", "r/r:c #3", "#3 N"]);
    assert_eq!(one.origin_only.get("attachment/queued_command"), Some(&1));
    // In older versions, the record that the wait has ended has no id.
    let older = remove.replace(r#","commandUuid":"k","deliveryId":"d""#, "");
    assert_eq!(members(&[&older, &attachment]).nodes.len(), 5);
    // Other messages are still entries.
    let other = remove
        .replace(r#""k""#, r#""k2""#)
        .replace(r#""d""#, r#""d2""#);
    assert_eq!(members(&[&attachment, &other]).nodes.len(), 6);
    assert_eq!(members(&[&attachment, &older, &older]).nodes.len(), 6);
}
