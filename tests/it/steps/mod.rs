//! Steps of the conversation and bookkeeping (semantics.md, "The terms"; session-file.md §4.2, §4.3).
//!
//! A state entry of a plugin once counted as a step. So `expectedLeafId` failed after a guard had recorded a turn, and
//! a move failed if a client saved its state while it was asked. Branches were named after state entries. After a state
//! entry of a stale process, the newest turns looked abandoned.

mod writers;

use std::path::Path;

use crate::harness::*;

/// Checks that a new process opens the file at this entry, without diagnostics.
#[track_caller]
fn opens_silently(d: Daemon, path: &Path, leaf_id: &str) {
    let home = d.stop();
    let opened = Daemon::quiet_in(&home).open(path);
    assert_eq!(opened["session"]["leafId"], leaf_id);
    assert_eq!(opened["diagnostics"], json!([]));
}

/// Appends a state entry of a plugin at the leaf.
#[track_caller]
fn state(d: &mut Daemon, id: &str) {
    let entry =
        json!({"type": "custom", "customType": "todo.state", "id": id, "data": {"open": 3}});
    d.ok("append_entries", json!({"entries": [entry]}));
}

/// Appends a state entry as another program does, without a lock.
fn foreign_state(path: &std::path::Path, id: &str, parent: &str) {
    let members = json!({"customType": "todo.state", "data": {}});
    foreign_append(path, &entry_line(7, "custom", id, parent, members));
}

fn last_line(path: &std::path::Path) -> Json {
    file_lines(path).pop().unwrap()
}

#[test]
fn each_type_is_a_step_or_bookkeeping() {
    let entries = [
        (json!({"type": "message", "message": user("x")}), true),
        (
            json!({"type": "custom_message", "customType": "x", "content": "x", "display": false}),
            true,
        ),
        (
            json!({"type": "compaction", "summary": "x", "firstKeptEntryId": null, "tokensBefore": 1}),
            true,
        ),
        (
            json!({"type": "branch_summary", "fromId": "a2", "summary": "x"}),
            true,
        ),
        (
            json!({"type": "context_edit", "targetId": "u1", "replacement": null}),
            true,
        ),
        (
            json!({"type": "model_change", "provider": "x", "modelId": "x"}),
            true,
        ),
        (
            json!({"type": "thinking_level_change", "thinkingLevel": "high"}),
            true,
        ),
        (json!({"type": "org.example.unknown", "x": 1}), true),
        (
            json!({"type": "label", "targetId": "u1", "label": "x"}),
            false,
        ),
        (json!({"type": "session_info", "name": "x"}), false),
        (
            json!({"type": "custom", "customType": "x", "data": 1}),
            false,
        ),
        (
            json!({"type": "custom", "customType": "note", "data": {"targetId": "u1"}}),
            false,
        ),
        (
            json!({"type": "usage", "kind": "x", "provider": "x", "model": "x", "usage": {"input": 1}}),
            false,
        ),
    ];
    for (mut entry, is_step) in entries {
        let (mut d, _) = two_turns();
        entry["id"] = json!("x1");
        d.ok("append_entries", json!({"entries": [entry]}));
        let tips = d.ok("list_branches", json!({}))["branches"].clone();
        let tip = if is_step { "x1" } else { "a2" };
        assert_eq!(
            (&tips[0]["tipId"], &tips[0]["isActive"]),
            (&json!(tip), &json!(true)),
            "{entry}"
        );
        let there = d.ok("navigate_tree", json!({"targetId": "a2", "dryRun": true}));
        let reason = if is_step {
            Json::Null
        } else {
            json!("alreadyThere")
        };
        assert_eq!(there["reason"], reason, "{entry}");
        let params = json!({"message": user("x"), "expectedLeafId": "a2"});
        match is_step {
            true => assert_eq!(d.err("append_message", params).kind, "leafMoved", "{entry}"),
            false => assert_eq!(
                d.ok("append_message", params)["durability"],
                "interval",
                "{entry}"
            ),
        }
    }
}

#[test]
fn set_leaf_and_branch_compare_ids() {
    let (mut d, path) = two_turns();
    state(&mut d, "s1");
    assert_eq!(d.set_leaf(Some("a2"))["newLeafId"], "a2");
    assert_eq!(
        last_line(&path)["data"],
        json!({"from": "s1", "cause": "set_leaf"})
    );
    assert_eq!(d.ok("branch", json!({"entryId": "s1"}))["newLeafId"], "s1");
    assert_eq!(
        last_line(&path)["data"],
        json!({"from": "a2", "cause": "branch"})
    );
    let stays = d.set_leaf(Some("s1"));
    assert_eq!(
        (&stays["oldLeafId"], &stays["durability"]),
        (&json!("s1"), &json!("none"))
    );
}

#[test]
fn a_navigation_to_the_message_in_front_of_a_state_entry_is_not_a_move() {
    let (mut d, path) = two_turns();
    state(&mut d, "s1");
    let lines = file_lines(&path).len();
    let stays = d.ok("navigate_tree", json!({"targetId": "a2"}));
    assert_eq!(
        (&stays["reason"], &stays["newLeafId"]),
        (&json!("alreadyThere"), &json!("s1"))
    );
    assert_eq!((d.leaf(), file_lines(&path).len()), (json!("s1"), lines));
}

#[test]
fn a_new_leaf_with_the_step_of_the_old_one_is_not_a_move() {
    let (mut d, path) = two_turns();
    d.set_leaf(Some("a1"));
    state(&mut d, "s1");
    let lines = file_lines(&path).len();
    let edits = d.ok("navigate_tree", json!({"targetId": "u2"}));
    assert_eq!(edits["editorText"], "text of u2");
    assert_eq!(
        (&edits["oldLeafId"], &edits["newLeafId"]),
        (&json!("s1"), &json!("s1"))
    );
    assert_eq!(file_lines(&path).len(), lines, "no record");

    let labelled = d.ok("navigate_tree", json!({"targetId": "u2", "label": "again"}));
    assert_eq!(labelled["labelEntry"]["parentId"], "s1");
    assert_eq!(labelled["labelEntry"]["targetId"], "u2");
    assert_eq!(d.path_ids(None)[..3], ["u1", "a1", "s1"]);
}

#[test]
fn a_merge_of_bookkeeping_alone_is_already_there() {
    let (mut d, path) = two_turns();
    foreign_state(&path, "f1", "a1");
    let merged = d.ok("merge_branch", json!({"tipId": "f1"}));
    assert_eq!(
        (&merged["reason"], d.leaf()),
        (&json!("alreadyThere"), json!("a2"))
    );
}

#[test]
fn undo_passes_over_positions_with_the_step_of_the_leaf() {
    let (mut d, _) = two_turns();
    state(&mut d, "s1");
    d.set_leaf(Some("a1"));
    d.set_leaf(Some("s1"));
    d.set_leaf(Some("a2"));
    // The undo stack is now s1, a1, s1. The last s1 belongs to the same step as the leaf.
    assert_eq!(d.ok("undo_navigation", json!({}))["newLeafId"], "a1");
    assert_eq!(d.ok("redo_navigation", json!({}))["newLeafId"], "a2");
    assert_eq!(d.ok("undo_navigation", json!({}))["newLeafId"], "a1");
    assert_eq!(d.ok("undo_navigation", json!({}))["newLeafId"], "s1");
    d.err_kind("undo_navigation", json!({}), "nothingToUndo");
}

#[test]
fn bookkeeping_makes_no_branch_and_no_tip() {
    let (mut d, path) = two_turns();
    state(&mut d, "s1");
    foreign_state(&path, "f1", "a1");
    foreign_state(&path, "f2", "f1");
    let branches = d.ok("list_branches", json!({}))["branches"].clone();
    assert_eq!(branches.as_array().unwrap().len(), 1, "{branches}");
    let only = &branches[0];
    assert_eq!(
        (&only["tipId"], &only["forkId"]),
        (&json!("a2"), &Json::Null)
    );
    assert_eq!(only["preview"], "text of a2");
    assert_eq!(only["lastActivity"], d.entry("a2")["timestamp"]);
    assert_eq!(only["isActive"], true);

    // A branch below a state entry forks at the nearest step above it.
    d.below(Some("f2"), "u3");
    let branches = d.ok("list_branches", json!({}))["branches"].clone();
    let forks: Vec<&Json> = branches
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["forkId"])
        .collect();
    assert_eq!(forks, ["a1", "a1"]);
}

#[test]
fn an_empty_summary_writes_no_entry() {
    let mut d = Daemon::start_with(&["--summarizer", "outline"], &[]);
    for name in ["entries_appended", "session_opened"] {
        d.ignore(name);
    }
    d.init(json!({"answers": {"session_before_tree": {}}}));
    d.create();
    d.chain(&["u1", "a1", "u2", "a2"]);
    let path = d.home.only_file();
    let params = json!({"targetId": "a1", "summarize": true, "label": "here"});
    let id = d.send("navigate_tree", params);
    let event = d.notification("session_before_tree");
    d.answer(&event, json!({"summary": {"summary": " \n"}}));
    d.notification("event_resolved");
    d.notification("session_tree");
    let moved = d.response(&id).unwrap();
    assert_eq!(moved["summaryEntry"], Json::Null, "{moved}");
    assert_eq!(moved["labelEntry"]["targetId"], "a1");
    let types: Vec<Json> = file_lines(&path)[5..]
        .iter()
        .map(|line| line["type"].clone())
        .collect();
    assert_eq!(
        types,
        ["custom", "label"],
        "a record of the move, and the label"
    );

    let blank = json!({"entryId": "a2", "summary": {"summary": ""}});
    assert_eq!(d.ok("branch", blank)["summaryEntry"], Json::Null);
    assert_eq!(last_line(&path)["data"]["cause"], "branch");
    d.notification("session_tree");
    let blank = json!({"entryId": null, "summary": {"summary": ""}});
    d.err_kind("branch", blank, "invalidParams");
}

#[test]
fn a_stale_writers_bookkeeping_is_reported() {
    let (d, path) = two_turns();
    let home = d.stop();
    foreign_state(&path, "s1", "a1");
    let before = std::fs::read(&path).unwrap();
    let mut d = Daemon::quiet_in(&home);
    let opened = d.open(&path);
    assert_eq!(
        opened["session"]["leafId"], "s1",
        "as in pi, the last line decides"
    );
    let found = json!({
        "kind": "leafBesideNewest", "line": 0, "offset": 0, "length": 0,
        "newestTipId": "a2", "at": stamp(7), "by": "todo.state", "newerTurns": 1,
    });
    assert_eq!(opened["diagnostics"], json!([found]));
    assert_eq!(
        d.open(&path)["diagnostics"],
        json!([found]),
        "also if it is open already"
    );
    assert_eq!(d.ok("get_leaf", json!({}))["diagnostics"], json!([found]));
    assert_eq!(std::fs::read(&path).unwrap(), before);

    d.ok("navigate_tree", json!({"targetId": "a2"}));
    assert_eq!(d.ok("get_leaf", json!({})).get("diagnostics"), None);
    opens_silently(d, &path, "a2");
}

/// After a daemon had written a label at the newest step, the last line of the file was once a record. The record named
/// the stale position, or the newest step before the stale entry. In both cases the diagnostic was missing.
#[test]
fn a_kept_place_does_not_silence_the_report() {
    for is_stale_first in [true, false] {
        let (mut newer, path) = two_turns();
        let home = std::sync::Arc::clone(&newer.home);
        let mut keeper = Daemon::quiet_in(&home);
        keeper.open(&path);
        newer.chain(&["u3", "a3"]);
        let label = json!({"targetId": "u1", "label": "x"});
        if is_stale_first {
            foreign_state(&path, "s1", "a1");
            newer.ok("append_label", label);
        } else {
            keeper.ok("append_label", label);
            foreign_state(&path, "s1", "a1");
        }
        let records = file_lines(&path);
        let records = records
            .iter()
            .filter(|line| line["customType"] == "treelined.leaf");
        let causes: Vec<_> = records.map(|line| &line["data"]["cause"]).collect();
        assert_eq!(causes, ["keep"]);
        let mut reader = Daemon::quiet_in(&home);
        let opened = reader.open(&path);
        assert_eq!(opened["session"]["leafId"], "s1");
        let found = &opened["diagnostics"][0];
        assert_eq!(
            (&found["kind"], &found["newestTipId"], &found["newerTurns"]),
            (&json!("leafBesideNewest"), &json!("a3"), &json!(2)),
            "stale first: {is_stale_first}"
        );
    }
}

#[test]
fn going_back_and_labelling_is_not_reported() {
    let (mut d, path) = two_turns();
    d.set_leaf(Some("a1"));
    d.ok("append_label", json!({"targetId": "a1", "label": "x"}));
    state(&mut d, "s1");
    assert_eq!(d.ok("get_leaf", json!({})).get("diagnostics"), None);
    opens_silently(d, &path, "s1");
}

#[test]
fn bookkeeping_ends_with_a_record_that_keeps_the_files_leaf() {
    let (mut newer, path) = two_turns();
    let home = std::sync::Arc::clone(&newer.home);
    let mut older = Daemon::quiet_in(&home);
    older.open(&path);
    newer.chain(&["u3", "a3"]);
    let writes = [
        (
            "append_label",
            json!({"targetId": "u1", "label": "x", "entryId": "l1"}),
        ),
        ("set_session_name", json!({"name": "x"})),
        (
            "append_entries",
            json!({"entries": [
                {"type": "custom", "customType": "todo.state"},
                {"type": "usage", "kind": "x", "provider": "x", "model": "x", "usage": {"input": 1}},
            ]}),
        ),
        ("navigate_tree", json!({"targetId": "a2", "label": "y"})),
    ];
    for (method, params) in writes {
        let before = older.leaf();
        older.ok(method, params);
        let record = last_line(&path);
        assert_eq!(record["customType"], "treelined.leaf", "{method}");
        assert_eq!(
            (&record["parentId"], &record["data"]),
            (&json!("a3"), &json!({"from": "a3", "cause": "keep"}))
        );
        assert_ne!(older.leaf(), before, "its own leaf is the new entry");
    }
    older.ok(
        "append_message",
        json!({"message": user("x"), "entryId": "u9"}),
    );
    assert_eq!(
        last_line(&path)["id"],
        "u9",
        "steps move the leaf of the file"
    );
    let log = older.ok("get_navigation_log", json!({}));
    assert_eq!(log["moves"], json!([]), "a kept place is not a move");
    older.err_kind("undo_navigation", json!({}), "nothingToUndo");
}
