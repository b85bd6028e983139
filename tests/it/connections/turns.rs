//! A turn belongs to the connection that has begun it.

use crate::harness::*;

fn note(text: &str) -> Json {
    json!({"customType": "note", "content": text, "display": true})
}

#[test]
fn a_turn_ends_only_by_its_own_connection() {
    let shared = SharedDaemon::start();
    let mut agent = shared.client("agent", json!({}));
    let mut other = shared.client("other", json!({}));
    let id = agent.create();
    agent.user("u1", "go");
    other.ok("open_session", json!({"sessionId": id}));
    agent.ok("begin_turn", json!({}));
    for method in ["end_turn", "begin_turn"] {
        let error = other.err_kind(method, json!({}), "sessionBusy");
        assert_eq!(error.details("by"), "turn");
    }
    assert_eq!(other.ok("send_message", note("a"))["disposition"], "queued");
    // While a client has a turn, other clients can close the session.
    other.ok("close_session", json!({}));
    agent.err_kind("close_session", json!({}), "sessionBusy");
    agent.ok("end_turn", json!({}));
    assert_eq!(agent.ids().len(), 2);
}

#[test]
fn a_turn_ends_with_its_connection_and_queued_messages_are_appended() {
    let shared = SharedDaemon::start();
    let mut stays = shared.client("stays", json!({}));
    for ending in ["disconnects", "shuts down"] {
        let mut agent = shared.client("agent", json!({}));
        let id = agent.create();
        agent.user("u1", "go");
        stays.ok("open_session", json!({"sessionId": id}));
        agent.ok("begin_turn", json!({}));
        stays.ok("send_message", note("queued"));
        stays.err_kind("begin_turn", json!({}), "sessionBusy");
        stays.forget_order();
        match ending {
            "disconnects" => drop(agent),
            _ => drop(agent.ok("shutdown", json!({}))),
        }
        while !stays.order().iter().any(|name| name == "entries_appended") {
            stays.ok("get_leaf", json!({}));
        }
        assert_eq!(stays.ids().len(), 2, "{ending}");
        stays.ok("begin_turn", json!({}));
        stays.ok("end_turn", json!({}));
        stays.ok("close_session", json!({}));
    }
}

#[test]
fn turns_of_branches_end_with_their_connection() {
    let shared = SharedDaemon::start();
    let mut stays = shared.client("stays", json!({}));
    let id = stays.create();
    stays.user("u1", "go");
    let mut agent = shared.client("agent", json!({}));
    agent.ok("open_session", json!({"sessionId": id}));
    let prompt = json!({"message": user("x"), "entryId": "b1", "parentId": "u1", "keepLeaf": true});
    agent.ok("append_message", prompt);
    let turn = agent.ok("begin_turn", json!({"entryId": "b1"}))["turnId"].clone();
    let error = stays.err_kind("end_turn", json!({"turnId": turn}), "sessionBusy");
    assert_eq!(error.details("turnId"), &turn);
    let mut queued = note("queued");
    queued["turnId"] = turn;
    assert_eq!(stays.ok("send_message", queued)["disposition"], "queued");
    agent.err_kind("close_session", json!({}), "sessionBusy");
    drop(agent);
    eventually("the message is written", || stays.ids().len() == 3);
    let entries = stays.ok("get_entries", json!({}))["entries"].clone();
    assert_eq!(entries[2]["parentId"], "b1");
    assert_eq!(stays.leaf(), "u1");
    stays.ok("close_session", json!({}));
}
