//! Questions and messages to a person. protocol.md §13.

use crate::harness::*;

/// The capabilities of a client that shows questions to a person.
fn screen() -> Json {
    json!({"ui": ["select", "confirm", "input", "editor"]})
}

/// A daemon with a client that asks, and two clients that show questions to a person.
fn asker_and_two_people() -> (SharedDaemon, Daemon, [Daemon; 2]) {
    let shared = SharedDaemon::start();
    let asker = shared.client("guard", screen());
    let people = ["left", "right"].map(|name| shared.client(name, screen()));
    (shared, asker, people)
}

fn select() -> Json {
    json!({"kind": "select", "title": "Where to?", "options": ["Stay", "Leave"]})
}

#[test]
fn the_first_answer_wins_and_the_others_learn_of_it() {
    let (_shared, mut asker, [mut left, mut right]) = asker_and_two_people();
    let question = json!({
        "kind": "select", "title": "Where to?", "message": "The tests fail.", "options": ["Stay", "Leave"],
        "placeholder": "a place", "initial": "Stay", "timeoutMs": 60_000,
    });
    let id = asker.send("ask_user", question.clone());
    let (first, second) = (
        left.notification("user_asked"),
        right.notification("user_asked"),
    );
    assert_eq!(first, second);
    let mut expect = question;
    expect["eventId"] = first["eventId"].clone();
    expect["by"] = json!("guard");
    assert_eq!(first, expect);
    asker.still_waits(&id);
    right.answer(&second, json!({"value": "Leave"}));
    assert_eq!(asker.response(&id).unwrap(), json!({"value": "Leave"}));
    assert_eq!(
        left.notification("event_resolved"),
        json!({"eventId": first["eventId"], "event": "user_asked", "outcome": "answered", "by": "right"})
    );
    let late = json!({"eventId": first["eventId"], "result": {"value": "Stay"}});
    left.err_kind("answer_event", late, "eventNotPending");
    right.no_notification("event_resolved");
}

#[test]
fn each_kind_has_its_value() {
    let (_shared, mut asker, [mut left, right]) = asker_and_two_people();
    drop(right);
    for (kind, value, wrong) in [
        ("select", json!("Stay"), json!("Elsewhere")),
        ("confirm", json!(false), json!("no")),
        ("input", json!(""), json!(true)),
        ("editor", json!("two\nlines"), json!(false)),
    ] {
        let mut question = select();
        question["kind"] = json!(kind);
        let id = asker.send("ask_user", question);
        let event = left.notification("user_asked");
        let answer = json!({"eventId": event["eventId"], "result": {"value": wrong}});
        let error = left.err_kind("answer_event", answer, "invalidParams");
        assert_eq!(error.details("field"), "result.value");
        left.answer(&event, json!({"value": value}));
        assert_eq!(
            asker.response(&id).unwrap(),
            json!({"value": value}),
            "{kind}"
        );
    }
}

#[test]
fn a_person_can_dismiss_a_question_or_not_answer_in_time() {
    let (_shared, mut asker, [mut left, mut right]) = asker_and_two_people();
    let id = asker.send("ask_user", select());
    let event = left.notification("user_asked");
    assert_eq!(right.notification("user_asked")["timeoutMs"], 600_000);
    left.answer(&event, json!({"dismissed": true}));
    let dismissed = json!({"dismissed": true, "reason": "dismissed"});
    assert_eq!(asker.response(&id).unwrap(), dismissed);
    assert_eq!(right.notification("event_resolved")["outcome"], "dismissed");

    let mut question = select();
    question["timeoutMs"] = json!(20);
    let late = json!({"dismissed": true, "reason": "timeout"});
    assert_eq!(asker.ok("ask_user", question), late);
    for person in [&mut left, &mut right] {
        person.notification("user_asked");
        assert_eq!(person.notification("event_resolved")["outcome"], "timeout");
    }
}

#[test]
fn nobody_is_asked_who_has_not_declared_the_kind() {
    let shared = SharedDaemon::start();
    let mut asker = shared.client("guard", screen());
    let mut silent = shared.client("script", json!({}));
    let error = asker.err_kind("ask_user", select(), "noUser");
    assert_eq!(error.code, 1401);
    let mut some = shared.client(
        "some",
        json!({"ui": {"confirm": {}, "input": false, "hologram": {}}}),
    );
    asker.err_kind("ask_user", select(), "noUser");
    asker.err_kind("ask_user", json!({"kind": "input", "title": "t"}), "noUser");
    let id = asker.send("ask_user", json!({"kind": "confirm", "title": "Sure?"}));
    let event = some.notification("user_asked");
    silent.no_notification("user_asked");
    some.answer(&event, json!({"value": true}));
    assert_eq!(asker.response(&id).unwrap(), json!({"value": true}));
}

#[test]
fn a_question_ends_when_the_last_person_leaves() {
    let (_shared, mut asker, [mut left, mut right]) = asker_and_two_people();
    let id = asker.send("ask_user", select());
    left.notification("user_asked");
    right.notification("user_asked");
    drop(left);
    asker.still_waits(&id);
    drop(right);
    assert_eq!(asker.response(&id).unwrap_err().kind, "noUser");
}

#[test]
fn a_cancelled_question_is_taken_back() {
    let (_shared, mut asker, [mut left, mut right]) = asker_and_two_people();
    let id = asker.send("ask_user", select());
    for person in [&mut left, &mut right] {
        person.notification("user_asked");
    }
    asker.notify("$/cancel_request", json!({"requestId": id}));
    assert_eq!(asker.response(&id).unwrap_err().code, -32800);
    for person in [&mut left, &mut right] {
        assert_eq!(person.notification("event_resolved")["outcome"], "aborted");
    }
}

#[test]
fn a_bad_question_is_refused_with_its_field() {
    let mut d = Daemon::start();
    for (params, field) in [
        (json!({"kind": "guess", "title": "t"}), "kind"),
        (json!({"kind": "input"}), "title"),
        (json!({"kind": "input", "title": ""}), "title"),
        (json!({"kind": "input", "title": "t".repeat(501)}), "title"),
        (json!({"kind": "select", "title": "t"}), "options"),
        (
            json!({"kind": "select", "title": "t", "options": vec!["x"; 1001]}),
            "options",
        ),
        (
            json!({"kind": "input", "title": "t", "message": "m".repeat(1 << 17)}),
            "message",
        ),
    ] {
        let error = d.err_kind("ask_user", params, "invalidParams");
        assert_eq!(error.details("field"), field);
    }
    let unknown = json!({"kind": "input", "title": "t", "sessionId": "other"});
    d.err_kind("ask_user", unknown, "sessionNotFound");
    let long = json!({"message": "m".repeat(1 << 17), "level": "info"});
    let error = d.err_kind("notify_user", long, "invalidParams");
    assert_eq!(error.details("field"), "message");
}

#[test]
fn a_message_reaches_every_other_person() {
    let (shared, mut asker, [mut left, mut right]) = asker_and_two_people();
    let mut deaf = shared.client("deaf", json!({"ui": [], "optOut": ["user_notified"]}));
    let mut script = shared.client("script", json!({}));
    let said = json!({"message": "The build is green.", "level": "warning"});
    assert_eq!(
        asker.ok("notify_user", said.clone()),
        json!({"delivered": 2})
    );
    let mut expect = said;
    expect["by"] = json!("guard");
    for person in [&mut left, &mut right] {
        assert_eq!(person.notification("user_notified"), expect);
    }
    deaf.no_notification("user_notified");
    script.no_notification("user_notified");
}

#[test]
fn a_question_about_a_session_reaches_those_who_have_it_open() {
    let (_shared, mut asker, [mut left, mut right]) = asker_and_two_people();
    let session = asker.create();
    asker.user("u1", "hello");
    let mut question = select();
    question["sessionId"] = json!(session);
    asker.err_kind("ask_user", question.clone(), "noUser");
    left.ok("open_session", json!({"sessionId": session}));
    let id = asker.send("ask_user", question);
    let event = left.notification("user_asked");
    assert_eq!(event["sessionId"], json!(session));
    left.answer(&event, json!({"value": "Stay"}));
    asker.response(&id).unwrap();
    let said = json!({"message": "m", "level": "error", "sessionId": session});
    assert_eq!(asker.ok("notify_user", said), json!({"delivered": 1}));
    assert_eq!(
        left.notification("user_notified")["sessionId"],
        json!(session)
    );
    right.no_notification("user_asked");
    right.no_notification("user_notified");
}

/// The daemon continues to read from a client that it has asked, so that the answer can arrive.
#[test]
fn a_command_can_ask_a_person() {
    let (shared, mut asker, [mut left, right]) = asker_and_two_people();
    drop(right);
    let mut caller = shared.client("editor", json!({}));
    asker.ok("register_command", json!({"name": "leave"}));
    let run = caller.send("run_command", json!({"name": "leave"}));
    let invoked = asker.notification("command_invoked");
    let asked = asker.send("ask_user", json!({"kind": "confirm", "title": "Leave?"}));
    let question = left.notification("user_asked");
    left.answer(&question, json!({"value": true}));
    assert_eq!(asker.response(&asked).unwrap(), json!({"value": true}));
    asker.answer(&invoked, json!({"output": "left"}));
    assert_eq!(caller.response(&run).unwrap()["output"], "left");
}
