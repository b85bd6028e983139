//! What the model would see: `get_context` in both formats, and `get_stats`. semantics.md §1.

use crate::harness::*;

fn opened(log: &Log) -> Daemon {
    let home = Home::new();
    let path = log.save(&home);
    let mut d = Daemon::quiet_in(&home);
    d.open(&path);
    d
}

/// A message in one line: its role and what it says.
fn line(message: &Json) -> String {
    let role = message["role"].as_str().expect("a role");
    let said = match role {
        "branchSummary" | "compactionSummary" => message["summary"].as_str().unwrap().to_owned(),
        "bashExecution" => message["command"].as_str().unwrap().to_owned(),
        _ => match &message["content"] {
            Json::String(text) => text.clone(),
            Json::Array(parts) => parts.iter().filter_map(|p| p["text"].as_str()).collect(),
            other => panic!("content {other}"),
        },
    };
    format!("{role}: {said}")
}

#[track_caller]
fn messages(d: &mut Daemon, params: Json) -> Vec<Json> {
    d.ok("get_context", params)["messages"]
        .as_array()
        .expect("messages")
        .clone()
}

/// The agent's context at `leaf` (`""`: where the leaf is), a line per message.
#[track_caller]
fn check(log: &Log, leaf: &str, expected: &[&str]) {
    let mut d = opened(log);
    let params = if leaf.is_empty() {
        json!({})
    } else {
        json!({"leafId": leaf})
    };
    let lines: Vec<_> = messages(&mut d, params).iter().map(line).collect();
    assert_eq!(lines, expected);
}

fn plain() -> Log {
    Log::new("s1")
        .user("u1", "", "one")
        .assistant("a1", "u1", "two")
        .user("u2", "a1", "three")
        .assistant("a2", "u2", "four")
}

#[test]
fn the_path_is_the_context() {
    check(
        &plain(),
        "",
        &[
            "user: one",
            "assistant: two",
            "user: three",
            "assistant: four",
        ],
    );
    check(&plain(), "a1", &["user: one", "assistant: two"]);
    let mut d = opened(&plain().user("u3", "a1", "aside"));
    let context = d.ok("get_context", json!({}));
    assert_eq!(context["entryIds"], json!(["u1", "a1", "u3"]));
    assert_eq!(
        context["messages"][1],
        assistant("two"),
        "messages as stored"
    );
    d.err_kind("get_context", json!({"leafId": "nobody"}), "entryNotFound");
}

#[test]
fn no_leaf_no_messages() {
    let mut d = opened(&plain());
    d.set_leaf(None);
    let context = d.ok("get_context", json!({}));
    assert_eq!(
        (&context["messages"], &context["entryIds"]),
        (&json!([]), &json!([]))
    );
    assert_eq!(
        (&context["thinkingLevel"], &context["model"]),
        (&json!("off"), &Json::Null)
    );
}

#[test]
fn settings_are_the_last_on_the_path() {
    let log = Log::new("s1")
        .user("u1", "", "one")
        .entry(
            "model_change",
            "m1",
            "u1",
            json!({"provider": "p1", "modelId": "m1"}),
        )
        .entry(
            "thinking_level_change",
            "t1",
            "m1",
            json!({"thinkingLevel": "low"}),
        )
        .assistant("a1", "t1", "two")
        .entry(
            "thinking_level_change",
            "t2",
            "a1",
            json!({"thinkingLevel": "high"}),
        )
        .entry(
            "model_change",
            "m2",
            "t2",
            json!({"provider": "p2", "modelId": "m2"}),
        );
    let mut d = opened(&log);
    for (leaf, level, model) in [
        ("u1", "off", Json::Null),
        ("m1", "off", json!({"provider": "p1", "modelId": "m1"})),
        ("t1", "low", json!({"provider": "p1", "modelId": "m1"})),
        ("a1", "low", json!({"provider": "prov", "modelId": "mod"})),
        ("t2", "high", json!({"provider": "prov", "modelId": "mod"})),
        ("m2", "high", json!({"provider": "p2", "modelId": "m2"})),
    ] {
        let context = d.ok("get_context", json!({"leafId": leaf}));
        assert_eq!(
            (&context["thinkingLevel"], &context["model"]),
            (&json!(level), &model),
            "at {leaf}"
        );
    }
}

#[test]
fn bookkeeping_is_no_message() {
    let log = plain()
        .label("l1", "a2", "u1", json!("x"))
        .entry("custom", "c1", "l1", json!({"customType": "x", "data": {}}))
        .entry("session_info", "i1", "c1", json!({"name": "x"}))
        .entry(
            "usage",
            "g1",
            "i1",
            json!({"kind": "k", "provider": "p", "model": "m", "usage": {}}),
        )
        .entry("never_heard_of", "n1", "g1", json!({"content": "x"}));
    check(
        &log,
        "",
        &[
            "user: one",
            "assistant: two",
            "user: three",
            "assistant: four",
        ],
    );
}

// --- compaction ---

fn compacted(first_kept: &str) -> Log {
    plain()
        .entry(
            "compaction",
            "k1",
            "a2",
            json!({"summary": "SUM", "firstKeptEntryId": first_kept, "tokensBefore": 99}),
        )
        .user("u3", "k1", "five")
}

#[test]
fn a_compaction_stands_first_then_the_kept_then_the_rest() {
    check(
        &compacted("u2"),
        "",
        &[
            "compactionSummary: SUM",
            "user: three",
            "assistant: four",
            "user: five",
        ],
    );
    check(
        &compacted("u2"),
        "a2",
        &[
            "user: one",
            "assistant: two",
            "user: three",
            "assistant: four",
        ],
    );
    let mut d = opened(&compacted("u2"));
    let context = d.ok("get_context", json!({}));
    let summary = &context["messages"][0];
    assert_eq!(
        (&summary["tokensBefore"], &summary["timestamp"]),
        (&json!(99), &json!(stamp_ms(5)))
    );
    assert_eq!(context["entryIds"], json!(["k1", "u2", "a2", "u3"]));
}

#[test]
fn nothing_is_kept_from_its_own_id_or_off_the_path() {
    check(
        &compacted("k1"),
        "",
        &["compactionSummary: SUM", "user: five"],
    );
    check(
        &compacted("nobody"),
        "",
        &["compactionSummary: SUM", "user: five"],
    );
    let off_path = Log::new("s1")
        .user("u1", "", "one")
        .user("side", "u1", "aside")
        .assistant("a1", "u1", "two")
        .entry(
            "compaction",
            "k1",
            "a1",
            json!({"summary": "SUM", "firstKeptEntryId": "side", "tokensBefore": 1}),
        );
    check(&off_path, "", &["compactionSummary: SUM"]);
}

#[test]
fn only_the_latest_compaction_counts() {
    let log = compacted("u2")
        .assistant("a3", "u3", "six")
        .entry(
            "compaction",
            "k2",
            "a3",
            json!({"summary": "SUM2", "firstKeptEntryId": "a2", "tokensBefore": 1}),
        )
        .user("u4", "k2", "seven");
    check(
        &log,
        "",
        &[
            "compactionSummary: SUM2",
            "assistant: four",
            "user: five",
            "assistant: six",
            "user: seven",
        ],
    );
}

#[test]
fn a_compaction_brings_its_system_message_and_leaves_kept_ones_out() {
    let log = Log::new("s1")
        .message(
            "s0",
            "",
            json!({"role": "system", "content": "old system", "timestamp": 1}),
        )
        .user("u1", "s0", "one")
        .message(
            "s2",
            "u1",
            json!({"role": "system", "content": "kept system", "timestamp": 1}),
        )
        .assistant("a1", "s2", "two")
        .entry(
            "compaction",
            "k1",
            "a1",
            json!({
                "summary": "SUM", "firstKeptEntryId": "u1", "tokensBefore": 1,
                "systemMessage": {"role": "system", "content": "checkpoint", "timestamp": 2},
            }),
        )
        .user("u2", "k1", "three");
    check(
        &log,
        "",
        &[
            "system: checkpoint",
            "compactionSummary: SUM",
            "user: one",
            "assistant: two",
            "user: three",
        ],
    );
    check(
        &log,
        "a1",
        &[
            "system: old system",
            "user: one",
            "system: kept system",
            "assistant: two",
        ],
    );
    let mut d = opened(&log);
    let llm = messages(&mut d, json!({"format": "llm"}));
    assert_eq!(
        (&llm[0]["role"], &llm[1]["role"]),
        (&json!("system"), &json!("user"))
    );
}

// --- edits ---

#[test]
fn an_edit_replaces_or_leaves_out_and_the_latest_wins() {
    let log = plain()
        .entry("context_edit", "e1", "a2", json!({"targetId": "u1", "replacement": null}))
        .entry("context_edit", "e2", "e1", json!({"targetId": "a1", "replacement": {"content": [{"type": "text", "text": "edited"}]}}))
        .entry("context_edit", "e3", "e2", json!({"targetId": "u1", "replacement": {"content": "back, changed"}}));
    check(
        &log,
        "e1",
        &["assistant: two", "user: three", "assistant: four"],
    );
    check(
        &log,
        "e2",
        &["assistant: edited", "user: three", "assistant: four"],
    );
    check(
        &log,
        "e3",
        &[
            "user: back, changed",
            "assistant: edited",
            "user: three",
            "assistant: four",
        ],
    );
    check(
        &log,
        "a2",
        &[
            "user: one",
            "assistant: two",
            "user: three",
            "assistant: four",
        ],
    );
    let mut d = opened(&log);
    let edited = &messages(&mut d, json!({}))[1];
    assert_eq!(
        (&edited["model"], &edited["role"]),
        (&json!("mod"), &json!("assistant")),
        "only the content changes"
    );
}

#[test]
fn an_edit_on_another_branch_does_not_count() {
    let log = plain()
        .entry(
            "context_edit",
            "e1",
            "a1",
            json!({"targetId": "u1", "replacement": null}),
        )
        .user("u9", "a2", "five");
    check(
        &log,
        "",
        &[
            "user: one",
            "assistant: two",
            "user: three",
            "assistant: four",
            "user: five",
        ],
    );
}

/// An edit of something that is no message of the context changed nothing, and was answered with success.
#[test]
fn an_edit_must_name_a_message_of_the_context_where_it_stands() {
    let log = plain()
        .entry(
            "thinking_level_change",
            "t1",
            "a2",
            json!({"thinkingLevel": "high"}),
        )
        .entry(
            "branch_summary",
            "b0",
            "t1",
            json!({"fromId": "gone", "summary": ""}),
        )
        .entry(
            "compaction",
            "k1",
            "b0",
            json!({"summary": "K", "firstKeptEntryId": "a1", "tokensBefore": 9}),
        )
        .user("u3", "k1", "five")
        .user("u9", "a1", "aside")
        .user("u4", "u3", "six");
    let mut d = opened(&log);
    let edit = |target: &str, parent: &str| json!({"entries": [{"type": "context_edit", "targetId": target, "parentId": parent, "replacement": null}]});
    for (target, parent) in [
        ("t1", "u4"),
        ("b0", "t1"),
        ("b0", "b0"),
        // Not kept by the compaction.
        ("u1", "u4"),
        // On another branch, and below.
        ("u9", "u4"),
        ("u4", "u3"),
    ] {
        let error = d.err_kind("append_entries", edit(target, parent), "entryInvalid");
        assert_eq!(error.details("index"), 0, "{target} below {parent}");
        assert_eq!(
            error.details("field"),
            "targetId",
            "{target} below {parent}"
        );
    }
    d.err_kind("append_entries", edit("nobody", "u4"), "entryNotFound");
    for (target, parent) in [
        ("u4", "u4"),
        ("a1", "u4"),
        ("k1", "u3"),
        ("u1", "a2"),
        ("u9", "u9"),
    ] {
        d.ok("append_entries", edit(target, parent));
    }
}

#[test]
fn an_edit_may_name_an_entry_of_its_own_batch_that_is_on_its_path() {
    let mut d = opened(&plain());
    let message = |id: &str| json!({"type": "message", "id": id, "message": user(id)});
    let edit = |target: &str| json!({"type": "context_edit", "targetId": target, "replacement": {"content": "edited"}});
    let compaction = |first: Json| json!({"type": "compaction", "summary": "s", "firstKeptEntryId": first, "tokensBefore": 1});
    d.ok(
        "append_entries",
        json!({"entries": [message("n1"), message("n2"), compaction(json!("n2")), edit("n2")]}),
    );
    let refused = json!([
        message("n3"),
        message("n4"),
        compaction(json!("n4")),
        edit("n3")
    ]);
    let error = d.err_kind(
        "append_entries",
        json!({"entries": refused}),
        "entryInvalid",
    );
    assert_eq!(error.details("index"), 3);
    let refused = json!([message("n3"), compaction(Json::Null), edit("n3")]);
    d.err_kind(
        "append_entries",
        json!({"entries": refused}),
        "entryInvalid",
    );
    // Requests that are written together: each sees those before it.
    let sent: Vec<_> = ["n5", "n6"]
        .iter()
        .map(|id| d.send("append_entries", json!({"entries": [message(id)]})))
        .collect();
    let edited = d.send("append_entries", json!({"entries": [edit("n5")]}));
    for id in sent.iter().chain([&edited]) {
        d.response(id).unwrap();
    }
}

// --- entries ---

/// The ids of the context's entries at `leaf`, which must be those of the entries.
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
fn entries_are_the_stored_ones_in_the_order_of_the_context() {
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
    // The latest compaction first, then what it keeps without system messages, then what follows.
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

// --- summaries and custom messages ---

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

#[test]
fn the_llm_format_knows_four_roles() {
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
    let log = Log::new("s1")
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
        );
    let mut d = opened(&log);
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
fn the_bytes_of_messages_survive() {
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
