//! Navigations that are aborted or cancelled, or during which other requests change the session.

use super::*;

#[test]
fn a_waiting_navigation_can_be_aborted() {
    for params in [json!({}), json!({"navigationId": "n1"})] {
        let mut d = asked();
        let (id, event) = ask(&mut d, json!({"targetId": "a1", "navigationId": "n1"}));
        assert_eq!(
            d.ok("abort_navigation", json!({"navigationId": "another"}))["aborted"],
            false
        );
        assert_eq!(d.ok("abort_navigation", params)["aborted"], true);
        assert_eq!(d.notification("event_resolved")["outcome"], "aborted");
        left_alone(&mut d, &id, "aborted");
        d.err_kind(
            "answer_event",
            json!({"eventId": event["eventId"], "result": {}}),
            "eventNotPending",
        );
        assert_eq!(
            d.ok("abort_navigation", json!({}))["aborted"],
            false,
            "nothing runs any more"
        );
    }
}

#[test]
fn cancel_request_works_in_both_spellings_and_both_forms() {
    for (method, member, as_request) in [
        ("$/cancel_request", "requestId", false),
        ("$/cancel_request", "requestId", true),
        ("$/cancelRequest", "id", false),
        ("$/cancelRequest", "id", true),
    ] {
        let mut d = asked();
        let (id, _) = ask(&mut d, json!({"targetId": "a1"}));
        let mut params = json!({});
        params[member] = id.clone();
        if as_request {
            assert_eq!(d.ok(method, params), json!({}), "{method}");
        } else {
            d.notify(method, params);
        }
        assert_eq!(
            d.notification("event_resolved")["outcome"],
            "aborted",
            "{method}"
        );
        left_alone(&mut d, &id, "aborted");
    }
}

#[test]
fn cancelling_a_request_that_does_not_run_is_ignored() {
    let mut d = unasked();
    d.notify("$/cancel_request", json!({"requestId": 424242}));
    d.notify("$/cancelRequest", json!({"id": "nobody"}));
    assert_eq!(
        d.ok("$/cancel_request", json!({"requestId": "nobody"})),
        json!({})
    );
    let id = d.send("navigate_tree", json!({"targetId": "a1"}));
    assert_eq!(d.response(&id).unwrap()["newLeafId"], "a1");
    d.notify("$/cancel_request", json!({"requestId": id}));
    assert_eq!(
        d.leaf(),
        "a1",
        "already committed: the normal result has won"
    );
}

/// A cancel or abort of a queued navigation was once answered with an error, or had no effect on the navigation.
#[test]
fn a_queued_navigation_can_be_cancelled_and_aborted() {
    for (method, params) in [
        (
            "navigate_tree",
            json!({"targetId": "a1", "navigationId": "n1"}),
        ),
        ("pop", json!({})),
        ("merge_branch", json!({"tipId": "b1"})),
    ] {
        for how in ["cancel", "abort", "abort by name"] {
            let mut d = asked();
            d.ignore_bookkeeping();
            d.below(Some("a1"), "b1");
            d.set_leaf(Some("a3"));
            let file = std::fs::File::open(d.home.only_file()).unwrap();
            file.lock().unwrap();
            let waiting = d.send("append_label", json!({"targetId": "u1", "label": "x"}));
            let navigation = d.send(method, params.clone());
            let other = json!({"navigationId": "another"});
            assert_eq!(d.ok("abort_navigation", other)["aborted"], false);
            match how {
                "cancel" => {
                    d.ok("$/cancel_request", json!({"requestId": navigation}));
                }
                "abort by name" if method == "navigate_tree" => {
                    let named = json!({"navigationId": "n1"});
                    assert_eq!(d.ok("abort_navigation", named)["aborted"], true);
                }
                _ => assert_eq!(d.ok("abort_navigation", json!({}))["aborted"], true),
            }
            file.unlock().unwrap();
            d.response(&waiting).unwrap();
            let result = d.response(&navigation).unwrap();
            assert_eq!(
                (&result["cancelled"], &result["reason"]),
                (&json!(true), &json!("aborted")),
                "{method}, {how}"
            );
            assert_eq!(result["oldLeafId"], result["newLeafId"]);
        }
    }
}

#[test]
fn closing_the_session_aborts_its_navigation() {
    for method in ["close_session", "delete_session"] {
        let mut d = asked();
        let opened = d.ok("list_sessions", json!({}))["sessions"][0]["sessionId"].clone();
        let (id, _) = ask(&mut d, json!({"targetId": "a1"}));
        d.ok(method, json!({"sessionId": opened}));
        let result = d
            .response(&id)
            .expect("an aborted navigation is not an error");
        assert_eq!(
            (&result["cancelled"], &result["reason"]),
            (&json!(true), &json!("aborted")),
            "{method}"
        );
        assert_eq!(
            d.notification("event_resolved")["outcome"],
            "aborted",
            "{method}"
        );
    }
}

#[test]
fn a_second_navigation_finds_the_session_busy() {
    let mut d = asked();
    let (id, event) = ask(&mut d, json!({"targetId": "a1", "navigationId": "n1"}));
    let error = d.err(
        "navigate_tree",
        json!({"targetId": "a2", "navigationId": "n2"}),
    );
    assert_eq!((error.code, error.kind.as_str()), (1101, "sessionBusy"));
    assert_eq!(
        (error.details("by"), error.details("navigationId")),
        (&json!("navigation"), &json!("n1"))
    );
    assert_eq!(
        d.err("navigate_tree", json!({"targetId": "nobody"})).kind,
        "sessionBusy",
        "the first step comes before the second"
    );
    d.answer(&event, json!({}));
    assert_eq!(d.response(&id).unwrap()["newLeafId"], "a1");
    d.notification("event_resolved");
    d.notification("session_tree");
    let (id, event) = ask(&mut d, json!({"targetId": "a2"}));
    d.answer(&event, json!({}));
    assert_eq!(d.response(&id).unwrap()["newLeafId"], "a2", "free again");
    d.notification("event_resolved");
    d.notification("session_tree");
}

#[test]
fn a_navigation_fails_if_the_leaf_moved_meanwhile() {
    for (method, params, leaf) in [
        (
            "append_message",
            json!({"message": user("meanwhile"), "entryId": "u4"}),
            "u4",
        ),
        ("set_leaf", json!({"leafId": "u2"}), "u2"),
        ("branch", json!({"entryId": "u2"}), "u2"),
    ] {
        let mut d = asked();
        d.ignore("session_tree");
        let (id, event) = ask(&mut d, json!({"targetId": "a1", "summarize": true}));
        d.ok(method, params);
        assert_eq!(d.leaf(), leaf, "{method} does not wait");
        let before = lines(&d);
        d.answer(&event, json!({"summary": {"summary": "S"}}));
        let error = d.response(&id).expect_err("the leaf moved");
        assert_eq!(
            (error.code, error.kind.as_str()),
            (1201, "leafMoved"),
            "{method}"
        );
        assert_eq!(error.details("leafId"), leaf, "{method}");
        d.notification("event_resolved");
        assert_eq!(lines(&d), before, "nothing written");
        assert_eq!(d.leaf(), leaf);
    }
}

#[test]
fn bookkeeping_appended_meanwhile_does_not_fail_a_navigation() {
    let mut d = asked();
    d.ignore("session_info_changed");
    let (id, event) = ask(&mut d, json!({"targetId": "a1"}));
    d.ok("append_label", json!({"targetId": "u1", "label": "x"}));
    d.ok("set_session_name", json!({"name": "n"}));
    // The client that is asked saves its state. This once made the move fail.
    let entries = json!({"entries": [{"type": "custom", "customType": "todo.state"}]});
    let left = d.ok("append_entries", entries)["leafId"].clone();
    d.answer(&event, json!({}));
    let result = d.response(&id).unwrap();
    d.notification("event_resolved");
    let announced = d.notification("session_tree");
    for moved in [&result, &announced] {
        assert_eq!(
            (&moved["oldLeafId"], &moved["newLeafId"]),
            (&left, &json!("a1")),
            "{moved}"
        );
    }
    assert_eq!(d.leaf(), "a1");
    d.ok("undo_navigation", json!({}));
    d.notification("session_tree");
    assert_eq!(d.leaf(), left);
}

#[test]
fn a_waiting_navigation_does_not_block_other_sessions() {
    let mut d = asked();
    let first = d.ok("list_sessions", json!({}))["sessions"][0]["sessionId"].clone();
    let (id, event) = ask(&mut d, json!({"targetId": "a1"}));
    let second = d.create();
    d.ok(
        "append_message",
        json!({"sessionId": second, "message": user("x"), "entryId": "x1"}),
    );
    assert_eq!(
        d.ok("get_leaf", json!({"sessionId": second}))["leafId"],
        "x1"
    );
    d.answer(&event, json!({}));
    d.response(&id).unwrap();
    d.notification("event_resolved");
    assert_eq!(d.notification("session_tree")["sessionId"], first);
}

/// The daemon once checked for an abort before the hook ran but not after it, and committed the hook's summary.
#[test]
fn an_abort_sent_before_the_answer_commits_nothing() {
    let mut d = Daemon::quiet();
    d.ignore("event_resolved");
    d.init(json!({"answers": {"session_before_tree": {}}}));
    d.create();
    d.chain(&["u1", "a1", "u2"]);
    let path = d.home.only_file();
    let id = d.send(
        "navigate_tree",
        json!({"targetId": "a1", "summarize": true}),
    );
    let event = d.notification("session_before_tree");
    // The abort and the answer are one write. In either order, the daemon must commit nothing after the abort.
    let (abort, answer) = (json!("abort"), json!("answer"));
    d.send_together(&[
        (abort.clone(), "abort_navigation", json!({})),
        (
            answer.clone(),
            "answer_event",
            json!({"eventId": event["eventId"], "result": {"summary": {"summary": "S"}}}),
        ),
    ]);
    assert_eq!(d.response(&abort).unwrap()["aborted"], true);
    assert_eq!(
        d.response(&answer).expect_err("nobody waits any more").kind,
        "eventNotPending"
    );
    assert_eq!(d.response(&id).unwrap()["reason"], "aborted");
    assert_eq!(d.leaf(), "u2");
    assert_eq!(file_lines(&path).len(), 4);
}

/// A close once found no running navigation, since the earlier one had not begun, and closed the session. The
/// navigation then failed with `sessionNotFound`.
#[test]
fn a_close_right_behind_a_navigation_aborts_it() {
    for _ in 0..10 {
        let mut d = Daemon::quiet();
        d.ignore("event_resolved");
        d.init(json!({"answers": {"session_before_tree": {}}}));
        d.create();
        d.chain(&["a", "b", "c"]);
        d.send_together(&[
            (json!("go"), "navigate_tree", json!({"targetId": "a"})),
            (json!("close"), "close_session", json!({})),
        ]);
        assert_eq!(
            d.response(&json!("go")).expect("aborted")["reason"],
            "aborted"
        );
        d.response(&json!("close")).expect("closed");
        let announced = d.order();
        let last = |name: &str| announced.iter().rposition(|announced| announced == name);
        assert!(
            last("event_resolved") < last("session_closed"),
            "{announced:?}"
        );
    }
}
