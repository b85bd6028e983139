//! `begin_turn`, `end_turn` and `send_message`: the three dispositions, the order, the queue, and the methods that are
//! refused during a turn. semantics.md §5.

mod branches;

use crate::harness::*;

fn begun() -> Daemon {
    let mut d = Daemon::quiet();
    d.init(json!({}));
    d.create();
    d.chain(&["u1", "a1"]);
    d
}

fn message(text: &str) -> Json {
    json!({"customType": "plugin", "content": text, "display": true})
}

fn with(mut params: Json, member: &str, value: Json) -> Json {
    params[member] = value;
    params
}

#[test]
fn outside_a_turn_a_message_is_appended() {
    let mut d = begun();
    let params = with(message("hi"), "details", json!({"n": 1.0}));
    let result = d.ok("send_message", with(params, "entryId", json!("m1")));
    assert_eq!(result["disposition"], "appended");
    assert_eq!(result["entryId"], "m1");
    assert_eq!(result["durability"], "interval");
    let entry = d.entry("m1");
    assert_eq!(entry["type"], "custom_message");
    assert_eq!(entry["customType"], "plugin");
    assert_eq!(entry["content"], "hi");
    assert_eq!(entry["display"], true);
    assert_eq!(entry["details"], json!({"n": 1.0}));
    assert_eq!(entry["parentId"], "a1");
    d.no_notification("turn_requested");
}

#[test]
fn outside_a_turn_trigger_turn_requests_a_turn() {
    let mut d = begun();
    let result = d.ok(
        "send_message",
        with(message("hi"), "triggerTurn", json!(true)),
    );
    assert_eq!(result["disposition"], "turnRequested");
    assert_eq!(
        d.notification("turn_requested")["entryId"],
        result["entryId"]
    );
    assert_eq!(d.leaf(), result["entryId"]);
}

/// A queued message with `triggerTurn` once made the client begin another turn whenever it had ended one. Now queued
/// messages never request a turn.
#[test]
fn during_a_turn_messages_are_queued_in_order_and_request_no_turn() {
    let mut d = begun();
    d.ok("begin_turn", json!({}));
    for n in 1..=3 {
        let params = with(message(&format!("m{n}")), "triggerTurn", json!(n == 2));
        let result = d.ok("send_message", params);
        assert_eq!(result["disposition"], "queued");
        assert_eq!(result["durability"], "none");
        d.assistant(&format!("b{n}"), "working");
    }
    assert_eq!(d.leaf(), "b3");
    d.ok("end_turn", json!({}));
    let entries = d.ok("get_path", json!({}))["entries"].clone();
    let texts: Vec<&Json> = entries.as_array().unwrap()[5..]
        .iter()
        .map(|entry| &entry["content"])
        .collect();
    assert_eq!(texts, ["m1", "m2", "m3"]);
    d.ok("end_turn", json!({}));
    assert_eq!(d.ids().len(), 8, "nothing waits any more");
    d.no_notification("turn_requested");
}

#[test]
fn a_message_sent_twice_is_one_message() {
    let mut d = begun();
    d.ok("begin_turn", json!({}));
    let params = with(message("hi"), "entryId", json!("m1"));
    for _ in 0..2 {
        let result = d.ok("send_message", params.clone());
        assert_eq!(result["disposition"], "queued");
    }
    let other = with(message("other"), "entryId", json!("m1"));
    d.err_kind("send_message", other.clone(), "duplicateEntryId");
    d.ok("end_turn", json!({}));
    assert_eq!(d.leaf(), "m1");
    d.ok("begin_turn", json!({}));
    let result = d.ok("send_message", params);
    assert_eq!(
        (&result["disposition"], &result["entryId"]),
        (&json!("appended"), &json!("m1"))
    );
    d.err_kind("send_message", other, "duplicateEntryId");
    d.ok("end_turn", json!({}));
    assert_eq!(d.ids(), ["u1", "a1", "m1"]);
}

#[test]
fn a_queued_message_whose_id_is_taken_does_not_block_the_queue() {
    let mut d = begun();
    d.ok("begin_turn", json!({}));
    d.ok(
        "send_message",
        with(message("first"), "entryId", json!("m1")),
    );
    d.ok("send_message", message("second"));
    d.assistant("m1", "took the id");
    d.ok("end_turn", json!({}));
    let entries = d.ok("get_path", json!({}))["entries"].clone();
    assert_eq!(entries[2]["id"], "m1");
    assert_eq!(entries[3]["content"], "first");
    assert_eq!(entries[4]["content"], "second");
}

#[test]
fn moves_of_the_leaf_are_refused_during_a_turn() {
    let mut d = begun();
    d.ok("begin_turn", json!({}));
    let session = d.ok("get_leaf", json!({}));
    assert_eq!(session["leafId"], "a1");
    for (method, params) in [
        ("begin_turn", json!({})),
        ("set_leaf", json!({"leafId": "u1"})),
        ("branch", json!({"entryId": "u1"})),
        ("undo_navigation", json!({})),
        ("redo_navigation", json!({})),
        ("navigate_tree", json!({"targetId": "u1"})),
        ("pop", json!({"summarize": false})),
        ("merge_branch", json!({"tipId": "u1"})),
        ("compact", json!({})),
        ("fork_session", json!({})),
        ("close_session", json!({})),
    ] {
        let error = d.err_kind(method, params, "sessionBusy");
        assert_eq!(error.details("by"), "turn", "{method}");
        assert_eq!(error.data["retryable"], true, "{method}");
    }
    d.user("u2", "appending works");
    d.ok("append_label", json!({"targetId": "u2", "label": "l"}));
    d.ok("cherry_pick", json!({"entryIds": ["u1"]}));
    d.ok("end_turn", json!({}));
    d.ok("navigate_tree", json!({"targetId": "a1"}));
    assert_eq!(d.leaf(), "a1");
}

#[test]
fn a_turn_cannot_begin_while_a_navigation_waits() {
    let mut d = Daemon::quiet();
    d.init(json!({"answers": {"session_before_tree": {}}}));
    d.create();
    d.chain(&["u1", "a1"]);
    let id = d.send("navigate_tree", json!({"targetId": "u1"}));
    let event = d.notification("session_before_tree");
    let error = d.err_kind("begin_turn", json!({}), "sessionBusy");
    assert_eq!(error.details("by"), "navigation");
    d.answer(&event, json!({}));
    d.notification("event_resolved");
    d.response(&id).unwrap();
    d.ok("begin_turn", json!({}));
}

#[test]
fn queued_messages_are_kept_when_the_end_of_a_turn_cannot_be_written() {
    let mut d = begun();
    d.ok("begin_turn", json!({}));
    d.ok("send_message", message("first"));
    d.ok("send_message", message("second"));
    let path = d.home.only_file();
    let away = d.home.files().join("away.jsonl");
    std::fs::rename(&path, &away).unwrap();
    d.err_kind("end_turn", json!({}), "sessionDeleted");
    std::fs::rename(&away, &path).unwrap();
    // The turn is over. Queued messages are written before later ones.
    d.ok("send_message", message("third"));
    let entries = d.ok("get_path", json!({}))["entries"].clone();
    let texts: Vec<&Json> = entries.as_array().unwrap()[2..]
        .iter()
        .map(|entry| &entry["content"])
        .collect();
    assert_eq!(texts, ["first", "second", "third"]);
}

#[test]
fn queued_messages_are_written_at_the_end_of_stdin() {
    let mut d = begun();
    d.ok("begin_turn", json!({}));
    d.ok("send_message", message("kept"));
    let home = d.stop();
    let last = file_lines(&home.only_file()).pop().unwrap();
    assert_eq!(last["content"], "kept");
    assert_eq!(last["parentId"], "a1");
}

#[test]
fn a_malformed_message_is_refused() {
    let mut d = begun();
    for content in [json!(5), json!([5]), json!([{"type": "text"}])] {
        let params = with(message(""), "content", content);
        let error = d.err_kind("send_message", params, "entryInvalid");
        assert_eq!(error.details("field"), "content");
    }
    let stale = with(message("x"), "expectedLeafId", json!("u1"));
    d.err_kind("send_message", stale.clone(), "leafMoved");
    d.ok("begin_turn", json!({}));
    d.err_kind("send_message", stale, "leafMoved");
    d.ok("end_turn", json!({}));
    assert_eq!(d.leaf(), "a1");
}
