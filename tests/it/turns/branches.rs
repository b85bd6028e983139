//! Turns of branches that grow in the background (protocol.md §3.13).

use super::*;

fn grow(d: &mut Daemon, parent: &str, id: &str) {
    let params = json!({"message": user(id), "entryId": id, "parentId": parent, "keepLeaf": true});
    d.ok("append_message", params);
}

fn begin(d: &mut Daemon, entry: &str) -> Json {
    d.ok("begin_turn", json!({"entryId": entry}))["turnId"].clone()
}

/// u1 → a1, with two prompts below a1 in the background.
fn with_candidates() -> Daemon {
    let mut d = begun();
    grow(&mut d, "a1", "b1");
    grow(&mut d, "a1", "c1");
    d
}

#[test]
fn several_turns_run_at_once() {
    let mut d = with_candidates();
    let first = begin(&mut d, "b1");
    let second = begin(&mut d, "c1");
    let own = d.ok("begin_turn", json!({}))["turnId"].clone();
    assert!(first != second && second != own);
    for (parent, id) in [("b1", "b2"), ("c1", "c2")] {
        grow(&mut d, parent, id);
    }
    d.user("u2", "go on");
    for turn in [&first, &own, &second] {
        d.ok("end_turn", json!({"turnId": turn}));
    }
    assert_eq!(d.leaf(), "u2");
    for turn in [json!("gone"), first] {
        d.ok("end_turn", json!({"turnId": turn}));
    }
    let refused = d.err("begin_turn", json!({"entryId": "nowhere"}));
    assert_eq!(refused.kind, "entryNotFound");
}

#[test]
fn what_is_refused_is_in_the_table() {
    let mut d = with_candidates();
    for name in [
        "session_tree",
        "session_opened",
        "session_fork",
        "session_before_fork",
        "session_closed",
    ] {
        d.ignore(name);
    }
    d.ignore("branches_changed");
    let turn = begin(&mut d, "b1");
    grow(&mut d, "b1", "b2");
    for (method, params) in [
        ("archive_branch", json!({"entryId": "b2"})),
        ("archive_branch", json!({"entryId": "u1"})),
        ("close_session", json!({})),
        (
            "delete_session",
            json!({"sessionId": d.ok("get_entries", json!({})).get("sessionId")}),
        ),
    ] {
        let params = match method {
            "delete_session" => {
                let path = d.home.only_file();
                json!({"sessionId": file_lines(&path)[0]["id"]})
            }
            _ => params,
        };
        let error = d.err_kind(method, params, "sessionBusy");
        assert_eq!(
            (error.details("by"), error.details("turnId")),
            (&json!("turn"), &turn),
            "{method}"
        );
    }
    d.ok("archive_branch", json!({"entryId": "c1"}));
    d.ok("set_leaf", json!({"leafId": "u1"}));
    d.ok("undo_navigation", json!({}));
    d.ok("navigate_tree", json!({"targetId": "b2"}));
    d.ok("navigate_tree", json!({"targetId": "a1"}));
    let forked = d.ok("fork_session", json!({}));
    let id = forked["session"]["sessionId"].clone();
    d.ok("close_session", json!({"sessionId": id}));
    let sent = d.ok("send_message", message("at the leaf"));
    assert_eq!(sent["disposition"], "appended");
    d.ok("end_turn", json!({"turnId": turn}));
    d.ok("archive_branch", json!({"entryId": "b2"}));
    d.ok("close_session", json!({}));
}

#[test]
fn messages_go_to_the_branch_of_their_turn() {
    let mut d = with_candidates();
    let (first, second) = (begin(&mut d, "b1"), begin(&mut d, "c1"));
    for (turn, text) in [(&first, "one"), (&second, "two"), (&first, "three")] {
        let params = with(message(text), "turnId", turn.clone());
        let sent = d.ok("send_message", with(params, "triggerTurn", json!(true)));
        assert_eq!(sent["disposition"], "queued");
    }
    grow(&mut d, "b1", "b2");
    d.user("u2", "go on");
    let stale = with(message("x"), "turnId", first.clone());
    let stale = with(stale, "expectedLeafId", json!("b1"));
    let moved = d.err("send_message", stale);
    assert_eq!(
        (moved.kind.as_str(), moved.details("leafId")),
        ("leafMoved", &json!("b2"))
    );
    d.ok("end_turn", json!({"turnId": first}));
    d.ok("end_turn", json!({"turnId": second}));
    let said = |d: &mut Daemon, tip: &str| -> Vec<Json> {
        let entries = d.ok("get_entries", json!({"types": ["custom_message"]}))["entries"].clone();
        let below = entries.as_array().unwrap().iter().filter(|entry| {
            let id = entry["id"].as_str().unwrap();
            d.path_ids(Some(id)).contains(&tip.to_owned())
        });
        below.map(|entry| entry["content"].clone()).collect()
    };
    assert_eq!(said(&mut d, "b2"), ["one", "three"]);
    assert_eq!(said(&mut d, "c1"), ["two"]);
    assert_eq!(d.leaf(), "u2");
    d.no_notification("turn_requested");
    let gone = d.err("send_message", with(message("x"), "turnId", first));
    assert_eq!(gone.details("field"), "turnId");
}

#[test]
fn a_turn_whose_messages_cannot_be_written_goes_on() {
    let mut d = with_candidates();
    let turn = begin(&mut d, "b1");
    d.ok(
        "send_message",
        with(message("kept"), "turnId", turn.clone()),
    );
    let path = d.home.only_file();
    let away = d.home.files().join("away.jsonl");
    std::fs::rename(&path, &away).unwrap();
    d.err_kind("end_turn", json!({"turnId": turn}), "sessionDeleted");
    std::fs::rename(&away, &path).unwrap();
    d.ok("end_turn", json!({"turnId": turn}));
    let last = d.ok("get_entries", json!({"types": ["custom_message"]}))["entries"].clone();
    assert_eq!(
        (&last[0]["content"], &last[0]["parentId"]),
        (&json!("kept"), &json!("b1"))
    );
}

/// A message of the turn was once appended below a side question, which is not on the branch of the turn.
#[test]
fn a_message_does_not_go_below_a_question_beside_the_branch() {
    let mut d = with_candidates();
    let turn = begin(&mut d, "b1");
    let aside = json!({"message": user("aside"), "entryId": "q1", "parentId": "b1", "keepLeaf": true, "group": "btw"});
    d.ok("append_message", aside);
    let params = with(message("mine"), "turnId", turn.clone());
    d.ok("send_message", with(params, "entryId", json!("m1")));
    d.ok("end_turn", json!({"turnId": turn}));
    assert_eq!(d.entry("m1")["parentId"], "b1");
}

/// If the answer to a message was lost, a retry was once refused after the turn had written the message.
#[test]
fn a_message_that_was_written_is_answered_again() {
    let mut d = with_candidates();
    let turn = begin(&mut d, "b1");
    let sent = |text: &str| {
        let params = with(message(text), "turnId", turn.clone());
        with(params, "entryId", json!("m1"))
    };
    let queued = d.ok("send_message", sent("mine"));
    assert_eq!(queued["disposition"], "queued");
    d.ok("end_turn", json!({"turnId": turn}));
    let path = d.home.only_file();
    let before = std::fs::read(&path).unwrap();
    let again = d.ok("send_message", sent("mine"));
    assert_eq!(
        (&again["disposition"], &again["entryId"]),
        (&json!("appended"), &json!("m1"))
    );
    d.err_kind("send_message", sent("another"), "duplicateEntryId");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}
