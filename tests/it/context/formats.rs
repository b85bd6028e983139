//! The formats `agent`, `llm` and `entries`, and the counts of `get_stats`.

use super::*;

/// The ids of the context's entries at `leaf`. They must equal the ids of the delivered entries.
#[track_caller]
fn entry_ids(d: &mut Daemon, leaf: &str) -> Vec<String> {
    let context = d.ok("get_context", json!({"format": "entries", "leafId": leaf}));
    assert!(context.get("messages").is_none(), "{context}");
    let found = ids(&context["entryIds"]);
    assert_eq!(ids(&context["entries"]), found);
    for (entry, id) in context["entries"].as_array().unwrap().iter().zip(&found) {
        assert_eq!(*entry, d.entry(id), "as stored");
    }
    found
}

#[test]
fn format_entries_holds_stored_entries_in_the_order_of_the_context() {
    let log = Log::new("s1")
        .message("s0", "", json!({"role": "system", "content": "be brief"}))
        .user("u1", "s0", "one")
        .assistant("a1", "u1", "two")
        .message("s2", "a1", json!({"role": "system", "content": "be long"}))
        .entry(
            "thinking_level_change",
            "t1",
            "s2",
            json!({"thinkingLevel": "high"}),
        )
        .label("l1", "t1", "u1", json!("x"))
        .entry(
            "context_edit",
            "e1",
            "l1",
            json!({"targetId": "a1", "replacement": null}),
        )
        .entry(
            "compaction",
            "k1",
            "e1",
            json!({"summary": "K", "firstKeptEntryId": "a1", "tokensBefore": 9}),
        )
        .user("u3", "k1", "three");
    let mut d = opened(&log);
    assert_eq!(entry_ids(&mut d, "t1"), ["s0", "u1", "a1", "s2", "t1"]);
    // The compaction comes first, then the entries that it keeps without system messages, then the later entries.
    assert_eq!(
        entry_ids(&mut d, "u3"),
        ["k1", "a1", "t1", "l1", "e1", "u3"]
    );
    let entries = d.ok("get_context", json!({"format": "entries"}));
    let agent = d.ok("get_context", json!({}));
    for member in ["thinkingLevel", "model"] {
        assert_eq!(entries[member], agent[member], "{member}");
    }
    let nothing = d.ok("get_context", json!({"format": "entries", "leafId": null}));
    assert_eq!(nothing["entries"], json!([]));
    assert_eq!(nothing["thinkingLevel"], "off");
}

#[test]
fn summaries_and_custom_messages_become_messages() {
    let log = Log::new("s1")
        .user("u1", "", "one")
        .entry(
            "branch_summary",
            "b1",
            "u1",
            json!({"fromId": "gone", "summary": "BRANCH"}),
        )
        .entry(
            "branch_summary",
            "b2",
            "b1",
            json!({"fromId": "root", "summary": ""}),
        )
        .entry(
            "custom_message",
            "c1",
            "b2",
            json!({
                "customType": "note", "content": "shown", "display": true, "details": {"k": 1.0},
            }),
        )
        .entry(
            "custom_message",
            "c2",
            "c1",
            json!({"customType": "note", "content": "unseen", "display": false}),
        );
    check(
        &log,
        "",
        &[
            "user: one",
            "branchSummary: BRANCH",
            "custom: shown",
            "custom: unseen",
        ],
    );
    let mut d = opened(&log);
    let agent = messages(&mut d, json!({"format": "agent"}));
    assert_eq!(
        (&agent[1]["fromId"], &agent[1]["timestamp"]),
        (&json!("gone"), &json!(stamp_ms(2)))
    );
    assert_eq!(agent[2]["customType"], "note");
    assert_eq!(agent[2]["display"], true);
    assert_eq!(agent[2]["details"], json!({"k": 1.0}));
    assert_eq!(agent[2]["timestamp"], stamp_ms(4));
    assert_eq!(agent[3]["display"], false);
}

/// A path with a message of every role, and with shell commands that succeed, fail, are cut, or are excluded.
fn every_role() -> Log {
    let bash = |members: Json| {
        let mut message = json!({
            "role": "bashExecution", "command": "ls -l", "output": "total 0", "exitCode": 0, "cancelled": false,
            "truncated": false, "timestamp": 5,
        });
        for (name, value) in members.as_object().unwrap() {
            message[name] = value.clone();
        }
        message
    };
    Log::new("s1")
        .message(
            "s0",
            "",
            json!({"role": "system", "content": "be good", "timestamp": 1}),
        )
        .user("u1", "s0", "one")
        .message(
            "c1",
            "u1",
            assistant_with(json!([tool_call("k", "read", json!({"path": "x"}))])),
        )
        .message("t1", "c1", tool_result("k", "read", "content of x", false))
        .entry(
            "branch_summary",
            "b1",
            "t1",
            json!({"fromId": "gone", "summary": "BRANCH"}),
        )
        .entry(
            "custom_message",
            "m1",
            "b1",
            json!({"customType": "note", "content": "from a plugin", "display": true}),
        )
        .message("x1", "m1", bash(json!({})))
        .message(
            "x2",
            "x1",
            bash(json!({"command": "false", "output": "", "exitCode": 37})),
        )
        .message(
            "x3",
            "x2",
            bash(json!({"truncated": true, "fullOutputPath": "/tmp/full.log"})),
        )
        .message(
            "x4",
            "x3",
            bash(json!({"command": "secret", "excludeFromContext": true})),
        )
}

#[test]
fn format_llm_has_four_roles() {
    let mut d = opened(&every_role());
    assert_eq!(messages(&mut d, json!({})).len(), 10, "the agent sees all");
    let llm = messages(&mut d, json!({"format": "llm"}));
    let roles: Vec<_> = llm.iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(
        roles,
        [
            "system",
            "user",
            "assistant",
            "toolResult",
            "user",
            "user",
            "user",
            "user",
            "user"
        ],
        "without what is excluded from context"
    );
    let said: Vec<_> = llm.iter().map(line).collect();
    assert!(
        said[4].contains("<summary>")
            && said[4].contains("BRANCH")
            && said[4].contains("</summary>"),
        "{}",
        said[4]
    );
    assert!(said[5].contains("from a plugin"), "{}", said[5]);
    assert!(
        said[6].contains("Ran `ls -l`") && said[6].contains("```") && said[6].contains("total 0"),
        "{}",
        said[6]
    );
    assert!(
        said[7].contains("Ran `false`") && said[7].contains("37"),
        "{}",
        said[7]
    );
    assert!(
        !said[6].contains("truncated") && said[8].contains("truncated"),
        "{}",
        said[8]
    );
}

#[test]
fn a_compaction_summary_becomes_a_user_message_for_the_llm() {
    let mut d = opened(&compacted("u2"));
    let llm = messages(&mut d, json!({"format": "llm"}));
    assert_eq!(llm[0]["role"], "user");
    let said = line(&llm[0]);
    assert!(
        said.contains("<summary>") && said.contains("SUM") && said.contains("</summary>"),
        "{said}"
    );
    assert!(
        said.len() > "user: <summary>SUM</summary>".len() + 10,
        "a sentence says what it is: {said}"
    );
    assert_eq!(llm.len(), 4);
}

#[test]
fn null_content_becomes_empty() {
    let log = Log::new("s1")
        .message(
            "s0",
            "",
            json!({"role": "system", "content": null, "timestamp": 1}),
        )
        .message(
            "u1",
            "s0",
            json!({"role": "user", "content": null, "timestamp": 1}),
        )
        .message("a1", "u1", assistant_with(Json::Null));
    let mut d = opened(&log);
    for format in ["agent", "llm"] {
        let contents: Vec<_> = messages(&mut d, json!({"format": format}))
            .iter()
            .map(|m| m["content"].clone())
            .collect();
        assert_eq!(contents, [json!(""), json!([]), json!([])], "{format}");
    }
}

#[test]
fn the_bytes_of_messages_are_kept() {
    let message =
        r#"{"role":"user","content":"x","big":12345678901234567890123,"one":1.0,"dup":1,"dup":2}"#;
    let line = format!(
        r#"{{"type":"message","id":"u1","parentId":null,"timestamp":"{}","message":{message}}}"#,
        stamp(1)
    );
    let mut d = opened(&Log::new("s1").raw(&line));
    let id = d.send("get_context", json!({}));
    let text = d.response_text(&id);
    assert!(text.contains(message), "{text}");
}

#[test]
fn stats_count_the_session() {
    let log = Log::new("s1")
        .user("u1", "", "one")
        .message("c1", "u1", assistant_with(json!([
            {"type": "text", "text": "reading"}, tool_call("k", "read", json!({})), tool_call("l", "read", json!({})),
        ])))
        .message("t1", "c1", tool_result("k", "read", "x", false))
        .assistant("a1", "t1", "two");
    let mut d = opened(&log);
    let stats = d.ok("get_stats", json!({}));
    assert_eq!(stats["messages"]["user"], 1, "{stats}");
    assert_eq!(stats["messages"]["assistant"], 2, "{stats}");
    assert_eq!(stats["messages"]["toolResult"], 1, "{stats}");
    assert_eq!(stats["toolCalls"], 2, "{stats}");
    for (name, each) in [
        ("input", 1),
        ("output", 2),
        ("cacheRead", 3),
        ("cacheWrite", 4),
    ] {
        assert_eq!(stats["tokens"][name], 2 * each, "{name} of {stats}");
    }
    assert_eq!(stats["cost"].as_f64(), Some(1.0), "{stats}");
    assert!(stats["contextTokens"].is_u64(), "{stats}");
}
