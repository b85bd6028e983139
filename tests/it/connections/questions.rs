//! Before events are sent to all connections that have the session open and answer this event.

use crate::config::{file, script};
use crate::harness::*;

const EVENT: &str = "session_before_tree";

fn answering() -> Json {
    json!({"answers": {EVENT: {}}})
}

/// A session with messages u1, a1 and u2. It is open for `count` guards and for one client that only navigates.
fn guards(shared: &SharedDaemon, count: usize) -> (Daemon, Vec<Daemon>) {
    let mut mover = shared.client("mover", json!({}));
    let id = mover.create();
    mover.chain(&["u1", "a1", "u2"]);
    let guards = (0..count).map(|number| {
        let mut guard = shared.client(&format!("guard {number}"), answering());
        guard.ok("open_session", json!({"sessionId": id}));
        guard
    });
    let guards = guards.collect();
    (mover, guards)
}

fn navigate(mover: &mut Daemon) -> Json {
    mover.send(
        "navigate_tree",
        json!({"targetId": "a1", "summarize": false}),
    )
}

#[track_caller]
fn check_aborted(mover: &mut Daemon, navigation: &Json) {
    let result = mover.response(navigation).unwrap();
    assert_eq!(
        (&result["cancelled"], &result["reason"]),
        (&json!(true), &json!("aborted"))
    );
}

#[test]
fn a_veto_of_one_client_holds_the_navigation_of_another() {
    let shared = SharedDaemon::start();
    let (mut mover, mut guards) = guards(&shared, 2);
    let navigation = navigate(&mut mover);
    let heard = mover.notification(EVENT);
    assert_eq!(heard["timeoutMs"], 0, "the mover does not answer");
    let events: Vec<Json> = guards
        .iter_mut()
        .map(|guard| guard.notification(EVENT))
        .collect();
    assert!(
        events
            .iter()
            .all(|event| event["timeoutMs"].as_u64() > Some(0))
    );
    assert!(
        events
            .iter()
            .all(|event| event["eventId"] == heard["eventId"])
    );
    guards[0].answer(&events[0], json!({}));
    guards[1].answer(&events[1], json!({"cancel": true}));
    let result = mover.response(&navigation).unwrap();
    assert_eq!(result["cancelled"], true);
    for client in guards.iter_mut().chain([&mut mover]) {
        let resolved = client.notification("event_resolved");
        assert_eq!(
            (&resolved["outcome"], &resolved["by"]),
            (&json!("cancelled"), &json!("guard 1"))
        );
    }
    assert_eq!(mover.leaf(), "u2");
}

#[test]
fn a_navigation_proceeds_once_all_have_answered() {
    let shared = SharedDaemon::start();
    let (mut mover, mut guards) = guards(&shared, 2);
    let navigation = navigate(&mut mover);
    for index in [1, 0] {
        mover.still_waits(&navigation);
        let event = guards[index].notification(EVENT);
        guards[index].answer(&event, json!({}));
    }
    assert_eq!(mover.response(&navigation).unwrap()["newLeafId"], "a1");
    mover.ignore("event_resolved");
    guards
        .iter_mut()
        .for_each(|guard| guard.ignore("event_resolved"));
}

/// The death of a guard during a question once counted as no opinion, so that a crashed guard consented. Now
/// `onFailure` decides; its default is to cancel.
#[test]
fn a_client_that_dies_while_it_is_asked_has_failed() {
    let declared = [
        json!({}),
        json!([]),
        json!({"onFailure": null}),
        json!({"onFailure": "cancel"}),
    ];
    for declared in declared {
        for ending in ["disconnects", "shuts down"] {
            let shared = SharedDaemon::start();
            let mut mover = shared.client("mover", json!({}));
            let id = mover.create();
            mover.chain(&["u1", "a1", "u2"]);
            let mut guard = shared.client("guard", json!({"answers": {EVENT: declared}}));
            guard.ok("open_session", json!({"sessionId": id}));
            guard.ignore("event_resolved");
            let navigation = navigate(&mut mover);
            guard.notification(EVENT);
            mover.still_waits(&navigation);
            match ending {
                "disconnects" => drop(guard),
                _ => drop(guard.ok("shutdown", json!({}))),
            }
            let result = mover.response(&navigation).unwrap();
            assert_eq!(result["cancelled"], true, "{declared} {ending}");
            assert_eq!(result["reason"], "hookFailed", "{declared} {ending}");
            assert_eq!(result["by"], "guard", "{declared} {ending}");
            let resolved = mover.notification("event_resolved");
            assert_eq!(
                (&resolved["outcome"], &resolved["by"]),
                (&json!("cancelled"), &json!("guard"))
            );
            assert_eq!(mover.leaf(), "u2");
        }
    }
}

/// A guard closed its input while its own request was running. Once the guard was still asked, and its end counted as a
/// close of the session, which means no opinion. The answer of the guard cannot arrive, so the guard has failed.
#[test]
fn a_client_whose_input_has_ended_has_failed() {
    let home = Home::new();
    let (asked, release) = (home.files().join("asked"), home.files().join("release"));
    let (is_asked, is_released) = (asked.display(), release.display());
    let body = format!("touch {is_asked}; while [ ! -e {is_released} ]; do sleep 0.02; done");
    let hook = script(&home, "hook", &body);
    let text = format!(
        "[[hooks]]\nevents = [\"session_before_compact\"]\nargv = [{hook:?}]\ntimeout_ms = 60000\n"
    );
    let config = file(&home, &text);
    let shared = SharedDaemon::start_in(
        &home,
        &["--config", &config, "--summarizer", "outline"],
        &[],
    );
    let mut mover = shared.client("mover", json!({}));
    let id = mover.create();
    mover.chain(&["u1", "a1", "u2"]);
    let mut guard = shared.client("guard", answering());
    guard.ignore("event_resolved");
    let own = guard.create();
    guard.chain(&["v1", "b1", "v2", "b2"]);
    guard.ok("open_session", json!({"sessionId": id}));
    // The guard has a request that runs until the hook ends.
    let compaction = guard.send("compact", json!({"sessionId": own, "keepRecentTokens": 1}));
    eventually("its own request runs", || asked.exists());
    guard.close_stdin();
    // The daemon notices the end of the input a little later.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let navigation = navigate(&mut mover);
    let result = mover.response(&navigation).unwrap();
    assert_eq!(
        why_cancelled(&result),
        [
            "hookFailed",
            "guard",
            "its connection ended while it was asked"
        ]
    );
    assert_eq!(mover.notification("event_resolved")["outcome"], "cancelled");
    std::fs::write(&release, "").unwrap();
    guard.ignore("session_before_compact");
    guard.ignore("session_compact");
    assert_eq!(guard.response(&compaction).unwrap()["cancelled"], false);
}

#[test]
fn a_client_that_closes_the_session_or_lets_operations_proceed_has_no_opinion() {
    for ending in ["closes", "disconnects"] {
        let shared = SharedDaemon::start();
        let mut mover = shared.client("mover", json!({}));
        let id = mover.create();
        mover.chain(&["u1", "a1", "u2"]);
        let on_failure = if ending == "closes" {
            "cancel"
        } else {
            "proceed"
        };
        let answers = json!({"answers": {EVENT: {"onFailure": on_failure}}});
        let mut guard = shared.client("guard", answers);
        guard.ok("open_session", json!({"sessionId": id}));
        guard.ignore("event_resolved");
        mover.ignore("event_resolved");
        let navigation = navigate(&mut mover);
        guard.notification(EVENT);
        mover.still_waits(&navigation);
        match ending {
            "closes" => drop(guard.ok("close_session", json!({}))),
            _ => drop(guard),
        }
        let result = mover.response(&navigation).unwrap();
        assert_eq!(result["newLeafId"], "a1", "{ending}");
    }
}

#[test]
fn a_veto_says_who_and_why() {
    let shared = SharedDaemon::start();
    let (mut mover, mut guards) = guards(&shared, 1);
    let navigation = navigate(&mut mover);
    let event = guards[0].notification(EVENT);
    let refused = [
        json!({"cancel": true, "reason": "\u{e9}".repeat(501)}),
        json!({"cancel": false, "reason": "building"}),
        json!({"reason": "building"}),
    ];
    for result in refused {
        let answer = json!({"eventId": event["eventId"], "result": result});
        let error = guards[0].err_kind("answer_event", answer, "invalidParams");
        assert_eq!(error.data["details"]["field"], "result.reason");
        mover.still_waits(&navigation);
    }
    let why = format!("building \u{1f6e0}\n{}", "\u{e9}".repeat(489));
    guards[0].answer(&event, json!({"cancel": true, "reason": why}));
    let result = mover.response(&navigation).unwrap();
    assert_eq!(result["reason"], "cancelledByClient");
    assert_eq!(
        (&result["by"], &result["message"]),
        (&json!("guard 0"), &json!(why))
    );
    for client in [&mut mover, &mut guards[0]] {
        let resolved = client.notification("event_resolved");
        assert_eq!(
            (&resolved["by"], &resolved["message"]),
            (&json!("guard 0"), &json!(why))
        );
    }
}

#[test]
fn only_clients_that_were_asked_can_answer() {
    let shared = SharedDaemon::start();
    let (mut mover, mut guards) = guards(&shared, 1);
    let mut stranger = shared.client("stranger", answering());
    let navigation = navigate(&mut mover);
    let event = guards[0].notification(EVENT);
    let answer = json!({"eventId": event["eventId"], "result": {"cancel": true}});
    stranger.err_kind("answer_event", answer.clone(), "eventNotPending");
    mover.err_kind("answer_event", answer, "eventNotPending");
    let more = json!({"eventId": event["eventId"], "extendMs": 60_000});
    mover.err_kind("answer_event", more.clone(), "eventNotPending");
    guards[0].ok("answer_event", more);
    guards[0].answer(&event, json!({}));
    mover.response(&navigation).unwrap();
    mover.ignore("event_resolved");
    guards[0].ignore("event_resolved");
}

#[test]
fn any_client_of_the_session_can_abort_a_navigation() {
    let shared = SharedDaemon::start();
    let (mut mover, mut guards) = guards(&shared, 1);
    let navigation = navigate(&mut mover);
    guards[0].notification(EVENT);
    let aborted = guards[0].ok("abort_navigation", json!({}));
    assert_eq!(aborted["aborted"], true);
    check_aborted(&mut mover, &navigation);
    mover.ignore("event_resolved");
    guards[0].ignore("event_resolved");
}

#[test]
fn a_close_that_is_not_the_last_aborts_only_the_connections_own_navigation() {
    let shared = SharedDaemon::start();
    let (mut mover, mut guards) = guards(&shared, 1);
    let mut other = shared.client("other", json!({}));
    other.ok("open_session", json!({"path": shared.home.only_file()}));
    for client in [&mut mover, &mut other, &mut guards[0]] {
        client.ignore("event_resolved");
    }
    let navigation = navigate(&mut mover);
    guards[0].notification(EVENT);
    other.ok("close_session", json!({}));
    mover.still_waits(&navigation);
    mover.ok("close_session", json!({}));
    check_aborted(&mut mover, &navigation);
    assert_eq!(guards[0].leaf(), "u2");
}

#[test]
fn a_cancel_reaches_only_requests_of_its_own_connection() {
    let shared = SharedDaemon::start();
    let (mut mover, mut guards) = guards(&shared, 1);
    for client in [&mut mover, &mut guards[0]] {
        client.ignore("event_resolved");
    }
    let navigation = navigate(&mut mover);
    guards[0].notification(EVENT);
    guards[0].notify("$/cancel_request", json!({"requestId": navigation}));
    guards[0].ok("list_sessions", json!({}));
    mover.still_waits(&navigation);
    // The same request id is free on the other connection.
    guards[0].send_as(navigation.clone(), "list_sessions", json!({}));
    guards[0].response(&navigation).unwrap();
    mover.notify("$/cancel_request", json!({"requestId": navigation}));
    check_aborted(&mut mover, &navigation);
}
