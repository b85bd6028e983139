//! Summaries of branches: the preparation, the request to a summarizer, the goal, and the outline. protocol.md §4.5,
//! semantics.md §2.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use crate::config::{file, script};
use crate::harness::*;

/// u1 a1 | s2 u2 a2 k1 u3 a3 k2 u4 a4. The compaction `k2` keeps the entries from `u2` on. `k1` is an earlier
/// compaction, and `s2` is a system message.
fn compacted(d: &mut Daemon, first_kept: Json) {
    d.chain(&["u1", "a1"]);
    let read = |id: &str, path: &str| tool_call(id, "read", json!({"path": path}));
    d.ok("append_entries", json!({"entries": [
        {"type": "message", "id": "s2", "message": {"role": "system", "content": "rules"}},
        {"type": "message", "id": "u2", "message": user("make it fast")},
        {"type": "message", "id": "a2", "message": assistant_with(json!([read("c1", "early.rs")]))},
        {"type": "compaction", "id": "k1", "summary": "FIRST", "firstKeptEntryId": "u2", "tokensBefore": 1,
         "details": {"readFiles": ["noted.rs"], "modifiedFiles": []}},
        {"type": "message", "id": "u3", "message": user("text of u3")},
        {"type": "message", "id": "a3", "message": assistant("text of a3")},
        {"type": "compaction", "id": "k2", "summary": "SECOND", "firstKeptEntryId": first_kept, "tokensBefore": 1},
        {"type": "message", "id": "u4", "message": user("text of u4")},
        {"type": "message", "id": "a4", "message": assistant("text of a4")},
    ]}));
}

fn prepared(d: &mut Daemon, target: &str) -> Json {
    let params = json!({"targetId": target, "dryRun": true});
    d.ok("navigate_tree", params)["preparation"].clone()
}

fn unasked() -> Daemon {
    let mut d = Daemon::quiet();
    d.create();
    d
}

/// The entries that the nearest compaction keeps were once neither in its summary nor among the entries to summarize,
/// so no summarizer read them. Now the preparation has them.
#[test]
fn the_preparation_holds_the_entries_that_the_nearest_compaction_kept() {
    let cases = [
        (json!("u2"), "a1", &["u2", "a2", "u3", "a3"][..]),
        (json!("a3"), "a1", &["a3"]),
        (json!("s2"), "a1", &["u2", "a2", "u3", "a3"]),
        // The kept part begins above the common ancestor. Only its abandoned entries are in the preparation.
        (json!("a1"), "a1", &["u2", "a2", "u3", "a3"]),
        (json!("u1"), "a2", &["u3", "a3"]),
        (json!("u2"), "a3", &[]),
        (Json::Null, "a1", &[]),
    ];
    for (first_kept, target, expect) in cases {
        let mut d = unasked();
        compacted(&mut d, first_kept.clone());
        let preparation = prepared(&mut d, target);
        let case = format!("keeping {first_kept}, to {target}: {preparation}");
        assert_eq!(preparation["previousSummary"], "SECOND", "{case}");
        assert_eq!(ids(&preparation["keptEntries"]), expect, "{case}");
        assert_eq!(
            ids(&preparation["entriesToSummarize"]),
            ["u4", "a4"],
            "{case}"
        );
        assert!(preparation.get("keptEntryIds").is_none(), "{case}");
        if expect.contains(&"a3") {
            let kept = preparation["keptEntries"].as_array().unwrap();
            assert_eq!(kept.last(), Some(&d.entry("a3")), "full entries");
        }
    }
    let mut d = unasked();
    compacted(&mut d, json!("u2"));
    let preparation = prepared(&mut d, "k2");
    for member in ["previousSummary", "keptEntries", "keptEntryIds"] {
        assert!(
            preparation.get(member).is_none(),
            "no compaction on the way: {preparation}"
        );
    }
}

/// Clients once counted `entriesToSummarize` to show the size of the abandoned branch. But this list begins after a
/// compaction, and is absent if it is too large. `abandonedCount` counts every abandoned entry except leaf records.
#[test]
fn the_preparation_counts_every_abandoned_step() {
    let mut d = unasked();
    compacted(&mut d, json!("u2"));
    assert_eq!(prepared(&mut d, "a1")["abandonedCount"], 9);
    assert_eq!(prepared(&mut d, "k2")["abandonedCount"], 2);
    assert_eq!(
        prepared(&mut d, "u2")["abandonedCount"],
        7,
        "the target is the common ancestor"
    );
    d.set_leaf(Some("a4"));
    d.set_leaf(Some("a3"));
    d.ok(
        "append_label",
        json!({"targetId": "u1", "label": "x", "entryId": "l1"}),
    );
    assert_eq!(
        prepared(&mut d, "a1")["abandonedCount"],
        6,
        "neither a label nor a leaf record"
    );
    d.set_leaf(Some("a1"));
    assert_eq!(
        prepared(&mut d, "a4")["abandonedCount"],
        0,
        "nothing on the way forward"
    );
}

#[test]
fn a_merge_prepares_the_other_branch_with_the_entries_its_compaction_kept() {
    let mut d = Daemon::quiet();
    d.init(json!({"answers": {"session_before_tree": {}}}));
    d.create();
    compacted(&mut d, json!("a3"));
    d.set_leaf(Some("a1"));
    d.chain(&["u9"]);
    let id = d.send("merge_branch", json!({"tipId": "a4"}));
    let event = d.notification("session_before_tree");
    let preparation = &event["preparation"];
    assert_eq!(ids(&preparation["keptEntries"]), ["a3"]);
    assert_eq!(ids(&preparation["entriesToSummarize"]), ["u4", "a4"]);
    assert_eq!(preparation["abandonedCount"], 9);
    d.answer(&event, json!({"summary": {"summary": "S"}}));
    d.notification("event_resolved");
    let result = d.response(&id).unwrap();
    assert_eq!(result["fromHook"], true);
    assert_eq!(result["summaryEntry"]["fromId"], "a4");
}

/// The size limit was once compared only with the entries to summarize. Now both lists count, and both become ids.
#[test]
fn entries_that_are_too_large_together_with_the_kept_ones_become_ids() {
    let mut d = Daemon::start();
    d.ignore_bookkeeping();
    d.ignore("event_resolved");
    d.init(json!({"answers": {"session_before_tree": {}}, "maxFrameBytes": 65536}));
    d.create();
    d.chain(&["u1", "a1"]);
    d.user("u2", &"w".repeat(40_000));
    let compaction = json!({"type": "compaction", "id": "k", "summary": "K", "firstKeptEntryId": "u2", "tokensBefore": 1});
    d.ok("append_entries", json!({"entries": [compaction]}));
    d.user("u3", &"w".repeat(40_000));
    let check = |preparation: &Json| {
        assert_eq!(preparation["truncated"], true);
        assert_eq!(preparation["keptEntryIds"], json!(["u2"]));
        assert_eq!(preparation["entryIds"], json!(["u3"]));
        assert_eq!(preparation["previousSummary"], "K");
        for member in ["keptEntries", "entriesToSummarize"] {
            assert!(preparation.get(member).is_none(), "{member}");
        }
    };
    check(&prepared(&mut d, "a1"));
    let id = d.send(
        "navigate_tree",
        json!({"targetId": "a1", "summarize": true}),
    );
    let event = d.notification("session_before_tree");
    check(&event["preparation"]);
    d.answer(&event, json!({"cancel": true}));
    d.response(&id).unwrap();
}

/// A daemon whose summarizer writes its input to a file, and the path of the file.
fn commanded() -> (Daemon, PathBuf) {
    let home = Home::new();
    let heard = home.files().join("request");
    let program = script(
        &home,
        "summarize",
        &format!("cat > {}; echo text", heard.display()),
    );
    let config =
        format!("[summarizer]\nuse = \"command\"\n[summarizer.command]\nargv = [{program:?}]\n");
    let path = file(&home, &config);
    let mut d = Daemon::start_in(&Arc::clone(&home), &["--config", &path], &[]);
    d.ignore_bookkeeping();
    d.create();
    (d, heard)
}

fn heard(path: &PathBuf) -> Json {
    parse(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Summarizers once read the previous summary and the entries after it, but not the entries that the compaction had
/// kept.
#[test]
fn a_summarizer_reads_the_context_in_its_order() {
    let (mut d, path) = commanded();
    compacted(&mut d, json!("u3"));
    let edit =
        json!({"type": "context_edit", "targetId": "u3", "replacement": {"content": "edited u3"}});
    d.ok("append_entries", json!({"entries": [edit]}));
    let result = d.ok(
        "navigate_tree",
        json!({"targetId": "a1", "summarize": true}),
    );
    let request = heard(&path);
    assert_eq!(request["previousSummary"], "SECOND");
    assert_eq!(ids(&request["keptEntries"]), ["u3", "a3"]);
    assert_eq!(ids(&request["entriesToSummarize"]), ["u4", "a4"]);
    assert_eq!(ids(&request["entries"]), ["u3", "a3", "u4", "a4"]);
    assert_eq!(request["entries"][0]["message"]["content"], "edited u3");
    let prompt = request["prompt"]["user"].as_str().unwrap();
    let parts = [
        "SECOND",
        "edited u3",
        "text of a3",
        "text of u4",
        "text of a4",
    ];
    let places: Vec<_> = parts.iter().map(|part| prompt.find(part)).collect();
    assert!(
        places.iter().all(Option::is_some) && places.is_sorted(),
        "{prompt}"
    );
    assert!(!prompt.contains("text of u3"), "{prompt}");

    // File names come from all abandoned entries, including those that a compaction replaces.
    let read = json!(["early.rs", "noted.rs"]);
    assert_eq!(request["readFiles"], read);
    assert_eq!(result["summaryEntry"]["details"]["readFiles"], read);
    assert_eq!(result["fromHook"], false, "there whenever a summary is");
}

/// A summary once lacked the goal of a branch, since the request that began the branch is often above it.
#[test]
fn the_goal_is_the_target_or_the_first_request_or_the_nearest_above() {
    let (mut d, path) = commanded();
    d.chain(&["u1", "a1", "u2", "a2", "u3", "a3"]);
    let mut goal_of = |from: &str, method: &str, params: Json| {
        d.set_leaf(Some(from));
        d.ok(method, params);
        heard(&path).get("goal").cloned()
    };
    let to = |target: &str| json!({"targetId": target, "summarize": true});
    let text = |text: &str| Some(json!(text));
    assert_eq!(
        goal_of("a3", "navigate_tree", to("u2")),
        text("text of u2"),
        "the target"
    );
    assert_eq!(
        goal_of("a3", "navigate_tree", to("a1")),
        text("text of u2"),
        "the first request"
    );
    assert_eq!(goal_of("a3", "navigate_tree", to("u3")), text("text of u3"));
    assert_eq!(goal_of("a3", "pop", json!({})), text("text of u3"));
    d.below(Some("a2"), "b1");
    d.ok(
        "append_message",
        json!({"message": assistant("x"), "entryId": "b2", "parentId": "a2"}),
    );
    d.ok("navigate_tree", to("a3"));
    assert_eq!(
        heard(&path)["goal"],
        "text of u2",
        "the nearest above, and u3 is on another path"
    );

    // A custom message on the path is a target like a user message. A message that an edit leaves out has no
    // text.
    d.set_leaf(Some("a3"));
    d.ok("append_entries", json!({"entries": [
        {"type": "custom_message", "id": "c1", "customType": "x", "content": "a plugin asks", "display": true},
        {"type": "message", "id": "a5", "message": assistant("y")},
    ]}));
    d.ok("navigate_tree", to("c1"));
    assert_eq!(heard(&path)["goal"], "a plugin asks");
    d.set_leaf(Some("a5"));
    d.ok(
        "append_entries",
        json!({"entries": [
            {"type": "context_edit", "targetId": "u2", "replacement": null},
            {"type": "context_edit", "targetId": "u3", "replacement": {"content": "instead"}},
        ]}),
    );
    d.ok("navigate_tree", to("a1"));
    assert_eq!(heard(&path)["goal"], "instead");
}

#[test]
fn a_branch_without_any_request_has_no_goal() {
    let (mut d, path) = commanded();
    d.ok(
        "append_message",
        json!({"message": assistant("first"), "entryId": "a1"}),
    );
    d.ok(
        "append_message",
        json!({"message": assistant("second"), "entryId": "a2"}),
    );
    d.ok(
        "navigate_tree",
        json!({"targetId": "a1", "summarize": true}),
    );
    assert!(heard(&path).get("goal").is_none());
}

/// An outline once wrote "(none recorded)" under every heading, and began with the goal alone.
#[test]
fn an_outline_begins_with_the_request_and_the_last_answer_and_leaves_out_empty_lists() {
    let mut d = Daemon::start_with(&["--summarizer", "outline"], &[]);
    d.ignore_bookkeeping();
    d.create();
    d.chain(&["u1", "a1", "u2", "a2"]);
    let result = d.ok(
        "navigate_tree",
        json!({"targetId": "u2", "summarize": true}),
    );
    let summary = result["summaryEntry"]["summary"].as_str().unwrap();
    let lines: Vec<&str> = summary.lines().collect();
    assert!(
        lines[0].starts_with("This is a summary of a branch"),
        "{summary}"
    );
    assert!(
        lines[2].contains("text of u2") && lines[2].contains("text of a2"),
        "{summary}"
    );
    for absent in [
        "none recorded",
        "## Key Decisions",
        "### Blocked",
        "### Done",
        "## Constraints",
    ] {
        assert!(!summary.contains(absent), "{absent} in {summary}");
    }
}
