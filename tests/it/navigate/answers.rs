//! Answers to the question before a navigation: a cancel, no opinion, or a summary; late and missing answers; and
//! requests for more time.

use std::time::Duration;

use super::*;

#[test]
fn a_cancel_changes_nothing() {
    let mut d = asked();
    let (id, event) = ask(&mut d, json!({"targetId": "a1", "navigationId": "n1"}));
    assert_eq!(d.answer(&event, json!({"cancel": true}))["accepted"], true);
    let resolved = d.notification("event_resolved");
    assert_eq!(resolved["eventId"], event["eventId"]);
    assert_eq!(resolved["event"], "session_before_tree");
    assert_eq!(resolved["navigationId"], "n1");
    assert_eq!(resolved["outcome"], "cancelled");
    left_alone(&mut d, &id, "cancelledByClient");
}

#[test]
fn an_empty_answer_lets_the_navigation_proceed() {
    let mut d = asked();
    let (id, event) = ask(&mut d, json!({"targetId": "a1"}));
    d.still_waits(&id);
    assert_eq!(d.leaf(), "a3", "reads never wait for a question");
    d.answer(&event, json!({}));
    assert_eq!(d.notification("event_resolved")["outcome"], "proceed");
    assert_eq!(d.response(&id).unwrap()["newLeafId"], "a1");
    assert_eq!(d.notification("session_tree")["newLeafId"], "a1");
    assert_eq!(d.leaf(), "a1");
}

#[test]
fn a_clients_summary_is_stored_as_given() {
    let mut d = asked();
    let (id, event) = ask(&mut d, json!({"targetId": "a1", "summarize": true}));
    let given = json!({"summary": "  as given\n", "details": {"z": 1.0, "a": [1, {"n": null}]}});
    d.answer(&event, json!({"summary": given}));
    assert_eq!(d.notification("event_resolved")["outcome"], "summary");
    let result = d.response(&id).unwrap();
    let summary = &result["summaryEntry"];
    assert_eq!(summary["type"], "branch_summary");
    assert_eq!(
        summary["parentId"], "a1",
        "it hangs at the new leaf position"
    );
    assert_eq!(
        summary["fromId"], "a3",
        "the abandoned leaf, not the destination"
    );
    assert_eq!(summary["summary"], "  as given\n");
    assert_eq!(summary["details"], given["details"]);
    assert_eq!(summary["fromHook"], true);
    assert_eq!(result["fromHook"], true);
    assert_eq!(
        (&result["oldLeafId"], &result["newLeafId"]),
        (&json!("a3"), &summary["id"])
    );
    let announced = d.notification("session_tree");
    assert_eq!(
        (&announced["newLeafId"], &announced["oldLeafId"]),
        (&summary["id"], &json!("a3"))
    );
    assert_eq!(announced["cause"], "navigate_tree");
    assert_eq!(announced["summaryEntry"], *summary);
    assert_eq!(announced["fromHook"], true);
    assert_eq!(
        lines(&d).last(),
        Some(summary),
        "one entry, and no leaf record besides"
    );
    assert_eq!(lines(&d).len(), 8);
    assert_eq!(d.leaf(), summary["id"]);
}

#[test]
fn a_summary_at_the_empty_position_is_a_root() {
    let mut d = asked();
    let (id, event) = ask(&mut d, json!({"targetId": "u1", "summarize": true}));
    d.answer(&event, json!({"summary": {"summary": "S"}}));
    d.notification("event_resolved");
    d.notification("session_tree");
    let summary = d.response(&id).unwrap()["summaryEntry"].clone();
    assert_eq!(
        (&summary["parentId"], &summary["fromId"]),
        (&Json::Null, &json!("a3")),
        "a root, beside u1"
    );
    assert_eq!(d.path_ids(None).len(), 1);
}

#[test]
fn a_clients_summary_is_ignored_if_none_was_requested() {
    let mut d = asked();
    let (id, event) = ask(&mut d, json!({"targetId": "a1"}));
    d.answer(&event, json!({"summary": {"summary": "unasked for"}}));
    d.notification("event_resolved");
    d.notification("session_tree");
    let result = d.response(&id).unwrap();
    assert!(result.get("summaryEntry").is_none(), "{result}");
    assert_eq!(result["newLeafId"], "a1");
    assert!(lines(&d).iter().all(|l| l["type"] != "branch_summary"));
}

#[test]
fn a_requested_summary_that_no_client_gives_needs_a_summarizer() {
    let mut d = asked_with(&["--summarizer", "none"]);
    let (id, event) = ask(&mut d, json!({"targetId": "a1", "summarize": true}));
    d.answer(&event, json!({}));
    d.notification("event_resolved");
    assert_eq!(
        d.response(&id).expect_err("nobody gave one").kind,
        "summarizerUnavailable"
    );
    assert_eq!(d.leaf(), "a3");
    assert_eq!(lines(&d).len(), 7);
}

/// The `usage` of a client's summary was once refused, so the cost of the summary was not counted.
#[test]
fn a_clients_summary_carries_its_usage() {
    let mut d = asked();
    let before = d.ok("get_stats", json!({}));
    let usage =
        json!({"input": 10, "output": 5, "cacheRead": 2, "cacheWrite": 1, "cost": {"total": 0.25}});
    let (id, event) = ask(&mut d, json!({"targetId": "a1", "summarize": true}));
    let wrong =
        json!({"eventId": event["eventId"], "result": {"summary": {"summary": "S", "usage": 5}}});
    d.err_kind("answer_event", wrong, "invalidParams");
    d.answer(&event, json!({"summary": {"summary": "S", "usage": usage}}));
    d.notification("event_resolved");
    let announced = d.notification("session_tree");
    let result = d.response(&id).unwrap();
    assert_eq!(result["summaryEntry"]["usage"], usage);
    assert_eq!(announced["summaryEntry"]["usage"], usage);
    let params = json!({"entryId": "a2", "summary": {"summary": "S", "usage": usage}});
    let result = d.ok("branch", params);
    assert_eq!(result["summaryEntry"]["usage"], usage);
    d.notification("session_tree");
    assert_eq!(lines(&d).last().unwrap()["usage"], usage);
    let params = json!({"entryId": "a2", "summary": {"summary": "S", "usage": null}});
    assert!(
        d.ok("branch", params)["summaryEntry"]
            .get("usage")
            .is_none()
    );
    d.notification("session_tree");
    let stats = d.ok("get_stats", json!({}));
    for (name, more) in [
        ("input", 20),
        ("output", 10),
        ("cacheRead", 4),
        ("cacheWrite", 2),
    ] {
        let count = |stats: &Json| stats["tokens"][name].as_u64().unwrap();
        assert_eq!(count(&stats), count(&before) + more, "{name}");
    }
    let cost = |stats: &Json| stats["cost"].as_f64().unwrap();
    assert!((cost(&stats) - cost(&before) - 0.5).abs() < 1e-9);
    let most = json!({"input": 1e300, "cost": {"total": 1e308}});
    for _ in 0..2 {
        let params = json!({"entryId": "a2", "summary": {"summary": "S", "usage": most}});
        d.ok("branch", params);
        d.notification("session_tree");
    }
    let stats = d.ok("get_stats", json!({}));
    assert!(
        stats["cost"].is_number(),
        "what cannot be written is cut: {stats}"
    );
}

#[test]
fn an_unanswered_question_proceeds_unless_on_no_answer_is_cancel() {
    let mut d = asked();
    let (id, event) = ask(
        &mut d,
        json!({"targetId": "a1", "answerTimeoutMs": 100, "onNoAnswer": "cancel"}),
    );
    assert_eq!(d.notification("event_resolved")["outcome"], "timeout");
    left_alone(&mut d, &id, "noAnswer");
    let error = d.err(
        "answer_event",
        json!({"eventId": event["eventId"], "result": {}}),
    );
    assert_eq!(
        (error.code, error.kind.as_str()),
        (1400, "eventNotPending"),
        "too late"
    );

    let (id, _) = ask(&mut d, json!({"targetId": "a1", "answerTimeoutMs": 100}));
    assert_eq!(d.notification("event_resolved")["outcome"], "timeout");
    assert_eq!(d.response(&id).unwrap()["newLeafId"], "a1");
    d.notification("session_tree");
}

#[test]
fn an_answer_to_an_unknown_question_is_refused() {
    let mut d = asked();
    let error = d.err(
        "answer_event",
        json!({"eventId": "no-such-event", "result": {}}),
    );
    assert_eq!((error.code, error.kind.as_str()), (1400, "eventNotPending"));
}

#[test]
fn the_same_answer_twice_gets_the_same_acknowledgement() {
    let mut d = asked();
    let (id, event) = ask(&mut d, json!({"targetId": "a1"}));
    let first = d.answer(&event, json!({"label": "x"}));
    let second = d.answer(&event, json!({"label": "x"}));
    assert_eq!(first["accepted"], true);
    assert_eq!(second["accepted"], true);
    d.response(&id).unwrap();
    d.notification("event_resolved");
    d.notification("session_tree");
    assert_eq!(lines(&d).iter().filter(|l| l["type"] == "label").count(), 1);
}

#[test]
fn a_client_can_extend_the_time_for_its_answer() {
    let mut d = asked();
    let (id, event) = ask(
        &mut d,
        json!({"targetId": "a1", "answerTimeoutMs": 5000, "onNoAnswer": "cancel"}),
    );
    let extended = d.ok(
        "answer_event",
        json!({"eventId": event["eventId"], "extendMs": 60000}),
    );
    assert_eq!(extended["accepted"], true);
    let left = extended["timeoutMs"].as_u64().expect("what is left");
    assert!((50_000..=61_000).contains(&left), "{left}");
    let extended = d.ok(
        "answer_event",
        json!({"eventId": event["eventId"], "extendMs": 86_400_000_u64}),
    );
    assert!(
        extended["timeoutMs"].as_u64().unwrap() <= 600_000,
        "at most limits.maxAnswerMs: {extended}"
    );
    std::thread::sleep(Duration::from_millis(5500));
    d.still_waits(&id);
    d.answer(&event, json!({}));
    assert_eq!(d.response(&id).unwrap()["newLeafId"], "a1");
    d.notification("event_resolved");
    d.notification("session_tree");
}

#[test]
fn a_clients_summary_replaces_that_of_the_summarizer() {
    let mut d = asked_with(&["--summarizer", "outline"]);
    let (id, event) = ask(&mut d, json!({"targetId": "a1", "summarize": true}));
    d.answer(&event, json!({"summary": {"summary": "mine"}}));
    assert_eq!(d.response(&id).unwrap()["summaryEntry"]["summary"], "mine");
    d.notification("event_resolved");
    d.notification("session_tree");
    let (id, event) = ask(&mut d, json!({"targetId": "a3", "summarize": true}));
    d.answer(&event, json!({"customInstructions": "about the end"}));
    d.notification("event_resolved");
    d.notification("session_tree");
    let summary = d.response(&id).unwrap()["summaryEntry"].clone();
    assert_ne!(summary["summary"], "mine");
    assert!(
        summary.get("fromHook").is_none(),
        "an override is not a summary: {summary}"
    );
}

#[test]
fn from_hook_is_the_member_in_the_file_and_in_results() {
    let mut d = Daemon::quiet();
    d.init(json!({"answers": {"session_before_tree": {}, "session_before_compact": {}}}));
    d.create();
    d.chain(&["u1", "a1", "u2", "a2"]);
    let id = d.send("compact", json!({"keepRecentTokens": 1}));
    let event = d.notification("session_before_compact");
    d.answer(&event, json!({"compaction": {"summary": "S"}}));
    d.notification("event_resolved");
    assert_eq!(
        d.response(&id).unwrap()["compactionEntry"]["fromHook"],
        true
    );
    assert_eq!(d.notification("session_compact")["fromHook"], true);
    let id = d.send(
        "navigate_tree",
        json!({"targetId": "a1", "summarize": true}),
    );
    let event = d.notification("session_before_tree");
    d.answer(&event, json!({"summary": {"summary": "S"}}));
    d.notification("event_resolved");
    let result = d.response(&id).unwrap();
    assert_eq!(result["fromHook"], true);
    assert_eq!(result["summaryEntry"]["fromHook"], true);
    let lines = file_lines(&d.home.only_file());
    let hooked = lines.iter().filter(|line| line["fromHook"] == true);
    assert_eq!(hooked.count(), 2);
}
