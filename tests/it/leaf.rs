//! The leaf as a part of the file: leaf records, undo, redo and the navigation log, after restarts and beside programs
//! that do not know leaf records. session-file.md §4.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use crate::harness::*;

/// Closes the session and opens it in a new process.
fn restarted(d: Daemon, path: &PathBuf) -> Daemon {
    let home: Arc<Home> = d.stop();
    let before = fs::read(path).unwrap();
    let mut d = Daemon::quiet_in(&home);
    d.open(path);
    assert_eq!(
        fs::read(path).unwrap(),
        before,
        "nothing is written at exit or on open"
    );
    d
}

fn opened(log: &Log) -> Daemon {
    let home = Home::new();
    let path = log.save(&home);
    let mut d = Daemon::quiet_in(&home);
    d.open(&path);
    d
}

#[test]
fn a_leaf_record_has_its_documented_members() {
    let (mut d, path) = two_turns();
    d.set_leaf(Some("a1"));
    d.set_leaf(None);
    d.ok("branch", json!({"entryId": "u2"}));
    d.ok("navigate_tree", json!({"targetId": "a2"}));
    d.ok("undo_navigation", json!({}));
    d.ok("redo_navigation", json!({}));
    let records = &file_lines(&path)[5..];
    let null = Json::Null;
    let expected = [
        (json!("a1"), json!("a2"), "set_leaf"),
        (null.clone(), json!("a1"), "set_leaf"),
        (json!("u2"), null, "branch"),
        (json!("a2"), json!("u2"), "navigate_tree"),
        (json!("u2"), json!("a2"), "undo"),
        (json!("a2"), json!("u2"), "redo"),
    ];
    assert_eq!(records.len(), expected.len());
    for (record, (parent, from, cause)) in records.iter().zip(expected) {
        let members: Vec<_> = record
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(
            members,
            ["type", "customType", "id", "parentId", "timestamp", "data"]
        );
        assert_eq!(
            (&record["type"], &record["customType"]),
            (&json!("custom"), &json!("treelined.leaf"))
        );
        assert!(
            record["id"].as_str().is_some_and(|id| id.len() == 8),
            "{record}"
        );
        assert!(
            record["timestamp"]
                .as_str()
                .is_some_and(|t| t.len() == 24 && t.ends_with('Z')),
            "{record}"
        );
        assert_eq!(record["parentId"], parent, "{record}");
        assert_eq!(
            record["data"].to_string(),
            json!({"from": from, "cause": cause}).to_string()
        );
    }
}

#[test]
fn leaf_records_are_hidden_from_every_method() {
    let (mut d, path) = two_turns();
    d.set_leaf(Some("a1"));
    let record = file_lines(&path).pop().unwrap()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(d.ids(), ["u1", "a1", "u2", "a2"]);
    assert_eq!(
        ids(&d.ok("get_tree", json!({"filter": "all"}))["nodes"]),
        ["u1", "a1", "u2", "a2"]
    );
    assert_eq!(
        ids(&d.ok("get_children", json!({"entryId": "a1"}))["entries"]),
        ["u2"]
    );
    assert_eq!(d.path_ids(None), ["u1", "a1"]);
    assert_eq!(d.open(&path)["session"]["entryCount"], 4);
    assert_eq!(
        d.ok("get_tree", json!({"filter": "all"}))["nodes"][1]["childCount"],
        1
    );
    for (method, params) in [
        ("get_entry", json!({"entryId": record})),
        ("get_path", json!({"entryId": record})),
        ("get_children", json!({"entryId": record})),
        ("get_label", json!({"entryId": record})),
        ("get_entries", json!({"since": record})),
        ("set_leaf", json!({"leafId": record})),
        ("branch", json!({"entryId": record})),
        ("navigate_tree", json!({"targetId": record})),
        ("append_label", json!({"targetId": record, "label": "x"})),
        (
            "append_message",
            json!({"message": user("x"), "parentId": record}),
        ),
        ("get_context", json!({"leafId": record})),
        ("get_tree", json!({"rootId": record})),
        ("fork_session", json!({"entryId": record})),
    ] {
        d.err_kind(method, params, "entryNotFound");
    }
    d.ok(
        "append_message",
        json!({"message": user("x"), "entryId": "u3"}),
    );
    assert_eq!(
        file_lines(&path).pop().unwrap()["parentId"],
        "a1",
        "never a record as parent"
    );
}

#[test]
fn the_position_survives_a_restart() {
    for place in [Some("u1"), Some("a1"), Some("u2"), None] {
        let (mut d, path) = two_turns();
        d.set_leaf(place);
        let mut d = restarted(d, &path);
        assert_eq!(d.leaf(), json!(place));
        d.user("u9", "on from here");
        assert_eq!(d.entry("u9")["parentId"], json!(place));
    }
}

#[test]
fn the_last_line_decides_where_a_file_opens() {
    let log = Log::new("s1")
        .user("u1", "", "x")
        .assistant("a1", "u1", "x")
        .record("r1", "u1", "a1");
    assert_eq!(opened(&log).leaf(), "u1");
    assert_eq!(opened(&log.clone().user("u2", "a1", "x")).leaf(), "u2");
    assert_eq!(
        opened(&log.clone().label("l1", "a1", "u1", json!("x"))).leaf(),
        "l1",
        "labels advance the leaf"
    );
    assert_eq!(
        opened(&log.clone().record("r2", "", "u1")).leaf(),
        Json::Null
    );
    assert_eq!(
        opened(&log.record("r2", "r1", "u1")).leaf(),
        "u1",
        "a record below a record resolves"
    );
}

#[test]
fn an_append_writes_no_leaf_record() {
    let (mut d, path) = two_turns();
    d.set_leaf(Some("a1"));
    d.chain(&["u3", "a3", "u4"]);
    let records = file_lines(&path)
        .iter()
        .filter(|l| l["customType"] == "treelined.leaf")
        .count();
    assert_eq!(records, 1, "one per move, never per message");
}

// --- undo and redo ---

/// The example of session-file.md §4: A→B→C, undo to B, append x, redo to C, undo to x.
fn story(restart: bool) {
    let mut d = Daemon::quiet();
    d.create();
    d.chain(&["A", "B", "C"]);
    let path = d.home.only_file();
    let mut d = if restart { restarted(d, &path) } else { d };
    d.set_leaf(Some("A"));
    d.set_leaf(Some("B"));
    d.set_leaf(Some("C"));
    let pause = |d: Daemon| if restart { restarted(d, &path) } else { d };
    let mut d = pause(d);
    let result = d.ok("undo_navigation", json!({}));
    assert_eq!(
        (&result["oldLeafId"], &result["newLeafId"]),
        (&json!("C"), &json!("B"))
    );
    d.ok(
        "append_message",
        json!({"message": assistant("x"), "entryId": "x"}),
    );
    let mut d = pause(d);
    assert_eq!(d.leaf(), "x");
    let result = d.ok("redo_navigation", json!({}));
    assert_eq!(
        (&result["oldLeafId"], &result["newLeafId"]),
        (&json!("x"), &json!("C"))
    );
    let mut d = pause(d);
    let result = d.ok("undo_navigation", json!({}));
    assert_eq!(
        (&result["oldLeafId"], &result["newLeafId"]),
        (&json!("C"), &json!("x"))
    );
    let mut d = pause(d);
    assert_eq!(d.leaf(), "x");
    assert_eq!(d.ok("undo_navigation", json!({}))["newLeafId"], "A");
    // The first move started at C.
    assert_eq!(d.ok("undo_navigation", json!({}))["newLeafId"], "C");
    d.err_kind("undo_navigation", json!({}), "nothingToUndo");
    for expected in ["A", "x", "C"] {
        let mut e = pause(d);
        assert_eq!(e.ok("redo_navigation", json!({}))["newLeafId"], expected);
        d = e;
    }
    d.err_kind("redo_navigation", json!({}), "nothingToUndo");
}

#[test]
fn undo_and_redo_walk_the_log() {
    story(false);
}

#[test]
fn undo_and_redo_survive_restarts() {
    story(true);
}

#[test]
fn a_move_empties_the_redo_stack() {
    let (mut d, _) = two_turns();
    d.set_leaf(Some("u1"));
    assert_eq!(d.ok("undo_navigation", json!({}))["newLeafId"], "a2");
    d.set_leaf(Some("a1"));
    let error = d.err("redo_navigation", json!({}));
    assert_eq!((error.code, error.kind.as_str()), (1207, "nothingToUndo"));
    assert_eq!(d.ok("undo_navigation", json!({}))["newLeafId"], "a2");
}

#[test]
fn undo_and_redo_are_announced_with_their_cause() {
    let mut d = Daemon::start();
    for name in ["session_opened", "session_closed", "entries_appended"] {
        d.ignore(name);
    }
    d.create();
    d.chain(&["u1", "a1"]);
    d.set_leaf(Some("u1"));
    d.notification("session_tree");
    d.ok("undo_navigation", json!({}));
    let announced = d.notification("session_tree");
    assert_eq!(
        (
            &announced["cause"],
            &announced["oldLeafId"],
            &announced["newLeafId"]
        ),
        (&json!("undo"), &json!("u1"), &json!("a1"))
    );
    d.ok("redo_navigation", json!({}));
    assert_eq!(d.notification("session_tree")["cause"], "redo");
}

#[test]
fn a_summary_is_a_move_that_can_be_undone() {
    let (mut d, path) = two_turns();
    let summary = d.ok(
        "branch",
        json!({"entryId": "a1", "summary": {"summary": "S"}}),
    )["newLeafId"]
        .clone();
    let mut d = restarted(d, &path);
    assert_eq!(d.leaf(), summary);
    assert_eq!(d.ok("undo_navigation", json!({}))["newLeafId"], "a2");
    assert_eq!(d.ok("redo_navigation", json!({}))["newLeafId"], summary);
}

#[test]
fn the_log_lists_moves_newest_first() {
    let (mut d, path) = two_turns();
    d.set_leaf(Some("u1"));
    let summary = d.ok(
        "branch",
        json!({"entryId": "a1", "summary": {"summary": "S"}}),
    )["newLeafId"]
        .clone();
    d.set_leaf(None);
    d.ok("undo_navigation", json!({}));
    let mut d = restarted(d, &path);
    let moves = d.ok("get_navigation_log", json!({}))["moves"].clone();
    let seen: Vec<_> = moves
        .as_array()
        .unwrap()
        .iter()
        .map(|m| (m["from"].clone(), m["to"].clone()))
        .collect();
    assert_eq!(
        seen,
        [
            (Json::Null, summary.clone()),
            (summary.clone(), Json::Null),
            (json!("u1"), summary),
            (json!("a2"), json!("u1")),
        ]
    );
    assert_eq!(
        (&moves[0]["cause"], &moves[1]["cause"], &moves[3]["cause"]),
        (&json!("undo"), &json!("set_leaf"), &json!("set_leaf"))
    );
    assert!(moves[0]["at"].is_string(), "{moves}");
    assert_eq!(
        d.ok("get_navigation_log", json!({"limit": 2}))["moves"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn summaries_that_are_not_moves_are_not_in_the_log() {
    let log = Log::new("s1")
        .user("u1", "", "x")
        .assistant("a1", "u1", "x")
        .entry(
            "branch_summary",
            "m1",
            "a1",
            json!({"fromId": "u1", "summary": "merged", "merge": true}),
        )
        .entry(
            "branch_summary",
            "p1",
            "m1",
            json!({"fromId": "m1", "summary": "below where it comes from"}),
        );
    let mut d = opened(&log);
    assert_eq!(d.ok("get_navigation_log", json!({}))["moves"], json!([]));
    d.err_kind("undo_navigation", json!({}), "nothingToUndo");
}

#[test]
fn a_summary_from_the_empty_position_is_undone_to_it() {
    let log = Log::new("s1").user("u1", "", "x").entry(
        "branch_summary",
        "b1",
        "u1",
        json!({"fromId": "root", "summary": "S"}),
    );
    let mut d = opened(&log);
    assert_eq!(d.ok("undo_navigation", json!({}))["newLeafId"], Json::Null);
}

#[test]
fn undo_skips_positions_that_are_not_in_the_file() {
    let log = Log::new("s1")
        .user("u1", "", "x")
        .assistant("a1", "u1", "x")
        .record("r1", "u1", "a1")
        .record("r2", "a1", "vanished")
        .record("r3", "u1", "vanished-too");
    let mut d = opened(&log);
    assert_eq!(d.ok("undo_navigation", json!({}))["newLeafId"], "a1");
    d.err_kind("undo_navigation", json!({}), "nothingToUndo");
}

#[test]
fn moves_of_another_program_are_not_undone_here() {
    let (mut d, path) = two_turns();
    foreign_append(&path, &record_line(50, "rf", "u1", "a2"));
    d.user("u9", "takes notice");
    assert_eq!(d.entry("u9")["parentId"], "a2", "our leaf did not follow");
    d.err_kind("undo_navigation", json!({}), "nothingToUndo");
}

// --- beside programs that do not know leaf records ---

/// A session in which another program has treated records as entries: it has appended below them, labelled them, and
/// named them in summaries.
fn named_records() -> Log {
    Log::new("s1")
        .user("u1", "", "one")
        .assistant("a1", "u1", "two")
        .user("u2", "a1", "three")
        .record("r1", "a1", "u2")
        .record("r2", "r1", "a1")
        .user("u3", "r2", "below a record")
        .label("l1", "u3", "r1", json!("on a record"))
        .entry(
            "branch_summary",
            "b1",
            "l1",
            json!({"fromId": "r2", "summary": "S"}),
        )
        .record("r3", "", "b1")
        .user("u4", "r3", "below a record of nowhere")
        .entry(
            "branch_summary",
            "b2",
            "u4",
            json!({"fromId": "r3", "summary": "S"}),
        )
}

#[test]
fn references_to_leaf_records_are_resolved() {
    let mut d = opened(&named_records());
    assert_eq!(d.leaf(), "b2");
    assert_eq!(d.ids(), ["u1", "a1", "u2", "u3", "l1", "b1", "u4", "b2"]);
    assert_eq!(d.entry("u3")["parentId"], "a1");
    assert_eq!(d.entry("l1")["targetId"], "a1");
    assert_eq!(d.entry("b1")["fromId"], "a1");
    assert_eq!(d.entry("u4")["parentId"], Json::Null);
    assert_eq!(d.entry("b2")["fromId"], "root");
    assert_eq!(d.path_ids(Some("b1")), ["u1", "a1", "u3", "l1", "b1"]);
    assert_eq!(
        d.ok("get_label", json!({"entryId": "a1"}))["label"],
        "on a record"
    );
    assert_eq!(
        ids(&d.ok("get_children", json!({"entryId": "a1"}))["entries"]),
        ["u2", "u3"]
    );
    assert_eq!(
        ids(&d.ok("get_children", json!({"entryId": null}))["entries"]),
        ["u1", "u4"]
    );
    let tree = d.ok("get_tree", json!({"filter": "all"}));
    assert_eq!(tree["rootIds"], json!(["u1", "u4"]));
    for entry in d.ok("get_entries", json!({}))["entries"]
        .as_array()
        .unwrap()
    {
        let text = entry.to_string();
        assert!(
            !["\"r1\"", "\"r2\"", "\"r3\""]
                .iter()
                .any(|r| text.contains(r)),
            "{text}"
        );
    }
}

#[test]
fn a_kept_range_that_begins_at_a_record_begins_after_it() {
    let log = Log::new("s1")
        .user("u1", "", "one")
        .assistant("a1", "u1", "two")
        .record("r1", "a1", "u9")
        .user("u2", "r1", "three")
        .entry(
            "compaction",
            "k1",
            "u2",
            json!({"summary": "SUM", "firstKeptEntryId": "r1", "tokensBefore": 1}),
        )
        .user("u3", "k1", "four");
    let mut d = opened(&log);
    assert_eq!(
        d.entry("k1")["firstKeptEntryId"],
        "u2",
        "the next non-record on the path"
    );
    assert_eq!(
        d.ok("get_context", json!({}))["entryIds"],
        json!(["k1", "u2", "u3"])
    );
}

#[test]
fn a_program_that_ignores_leaf_records_resumes_at_our_leaf() {
    let (mut d, path) = two_turns();
    d.set_leaf(Some("a1"));
    let home = d.stop();
    let record = file_lines(&path).pop().unwrap();
    assert_eq!(record["parentId"], "a1", "its path to the root is ours");
    let record = record["id"].as_str().unwrap();
    foreign_append(
        &path,
        &entry_line(
            70,
            "message",
            "p1",
            record,
            json!({"message": user("from the other program")}),
        ),
    );
    let mut d = Daemon::quiet_in(&home);
    d.open(&path);
    assert_eq!(d.leaf(), "p1");
    assert_eq!(d.path_ids(None), ["u1", "a1", "p1"]);
}

/// `get_entry` once returned an entry that names a leaf record unresolved if the record came later in the file.
#[test]
fn a_reference_to_a_later_leaf_record_is_resolved() {
    let home = Home::new();
    let path = Log::new("later")
        .user("a", "", "x")
        .label("l", "a", "r", json!("L"))
        .record("r", "a", "l")
        .save(&home);
    let mut d = Daemon::quiet_in(&home);
    d.ok("open_session", json!({"path": path}));
    assert_eq!(d.ok("get_label", json!({"entryId": "a"}))["label"], "L");
    assert_eq!(
        d.ok("get_entry", json!({"entryId": "l"}))["entry"]["targetId"],
        "a"
    );
}

#[test]
fn a_session_reopens_at_its_leaf_or_where_another_program_appended_since() {
    let mut d = Daemon::quiet();
    d.create();
    d.chain(&["u1", "a1", "u2", "a2"]);
    d.ok("navigate_tree", json!({"targetId": "a1"}));
    let home = d.stop();
    let path = home.only_file();
    let mut d = Daemon::quiet_in(&home);
    assert_eq!(d.open(&path)["session"]["leafId"], "a1");
    let home = d.stop();
    foreign_append(
        &path,
        &entry_line(1, "message", "x1", "a2", json!({"message": user("x")})),
    );
    let mut d = Daemon::quiet_in(&home);
    assert_eq!(d.open(&path)["session"]["leafId"], "x1");
}
