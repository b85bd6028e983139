//! Routes messages of both sides, without a process.

use super::*;
use std::time::{Duration, Instant};

fn id(json: &str) -> Box<RawValue> {
    serde_json::from_str(json).unwrap()
}

/// A router in which the editor session `a` continues in the agent session `b`.
fn moved() -> Router {
    let mut router = Router::default();
    router.agents.switch("a", "b");
    router
}

#[test]
fn only_the_id_of_the_session_is_changed() {
    let line = |session: &str| {
        format!(
            "{{\"x\":[1e400,\"\\ud800\"],\"params\" : {{\"update\":{{ }},\"sessionId\": \"{session}\" }} ,\"method\":\"session/update\"}}\r\n"
        )
    };
    let mut router = moved();
    match router.editor_says(line("a").as_bytes()) {
        FromEditor::Passes {
            recorded: Some(recorded),
            sent: None,
            ..
        } => assert_eq!(String::from_utf8(recorded).unwrap(), line("b")),
        other => panic!("{other:?}"),
    }
    match router.agent_says(line("b").as_bytes()).passes {
        Passes::Changed(changed) => assert_eq!(String::from_utf8(changed).unwrap(), line("a")),
        other => panic!("{other:?}"),
    }
    let other = router.agent_says(line("c").as_bytes());
    assert!(matches!(other.passes, Passes::Same), "{other:?}");
    let left = router.agent_says(line("a").as_bytes());
    assert!(
        matches!(left.passes, Passes::Not) && !left.is_unrecorded,
        "{left:?}"
    );
}

#[test]
fn nobody_is_asked_in_a_session_that_was_left() {
    let mut router = moved();
    for (method, expected) in [
        ("session/request_permission", "\"outcome\":\"cancelled\""),
        ("fs/read_text_file", "\"error\""),
    ] {
        let ask = json!({ "id": 7, "method": method, "params": { "sessionId": "a" } });
        let asked = router.agent_says(ask.to_string().as_bytes());
        assert!(matches!(asked.passes, Passes::Not), "{asked:?}");
        let reply = String::from_utf8(asked.reply.unwrap()).unwrap();
        assert!(
            reply.contains("\"id\":7") && reply.contains(expected),
            "{reply}"
        );
    }
}

#[test]
fn responses_to_our_requests_are_for_nobody_else() {
    let mut router = moved();
    let (line, mut response) = router.agents.request("session/new", "{}");
    let request: Value = serde_json::from_slice(&line).unwrap();
    let answer = json!({ "id": request["id"], "result": { "sessionId": "c" } }).to_string();
    let answered = router.agent_says(answer.as_bytes());
    assert!(answered.is_unrecorded && matches!(answered.passes, Passes::Not));
    assert_eq!(response.try_recv().unwrap().get(), answer);
    // A second answer of the agent to the same request goes nowhere.
    let again = router.agent_says(answer.as_bytes());
    assert!(matches!(again.passes, Passes::Not), "{again:?}");
}

#[test]
fn while_a_session_is_opened_for_a_move_its_updates_are_muted_and_its_questions_are_not() {
    let mut router = moved();
    router.agents.set_unnamed(Some("a"));
    let update = json!({ "method": "session/update", "params": { "sessionId": "c" } });
    let muted = router.agent_says(update.to_string().as_bytes());
    assert!(
        muted.is_unrecorded && matches!(muted.passes, Passes::Not),
        "{muted:?}"
    );
    let ask = json!({ "id": 1, "method": "x", "params": { "sessionId": "c" } });
    match router.agent_says(ask.to_string().as_bytes()).passes {
        Passes::Changed(line) => assert!(line.ends_with(b"{\"sessionId\":\"a\"}}")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_prompt_waits_for_no_move_and_a_message_that_is_too_long_is_refused() {
    let mut router = moved();
    router.sessions.insert("a".to_owned(), Session::default());
    router.set_moving("a", true);
    let prompt = json!({ "id": 1, "method": "session/prompt", "params": { "sessionId": "a" } });
    let refused = router.editor_says(prompt.to_string().as_bytes());
    assert!(matches!(refused, FromEditor::Answered(_)), "{refused:?}");
    router.set_moving("a", false);
    let passes = router.editor_says(prompt.to_string().as_bytes());
    assert!(matches!(passes, FromEditor::Passes { .. }), "{passes:?}");
    assert!(router.agents.is_running("b"));
    router.agents.ends(&id("1"));
    assert!(!router.agents.is_running("b"));

    assert!(matches!(too_long(&prompt), FromEditor::Answered(_)));
    assert!(matches!(
        too_long(&json!({ "method": "x" })),
        FromEditor::Ends
    ));
    assert!(matches!(too_long(&json!({ "id": 1 })), FromEditor::Ends));
}

#[test]
fn settings_are_kept_by_kind_with_the_last_one() {
    let mut router = moved();
    router.sessions.insert("a".to_owned(), Session::default());
    for (method, params) in [
        (
            "session/set_mode",
            json!({ "sessionId": "a", "modeId": "x" }),
        ),
        (
            "session/set_config_option",
            json!({ "sessionId": "a", "configId": "m", "value": 1 }),
        ),
        (
            "session/set_config_option",
            json!({ "sessionId": "a", "configId": "n", "value": 2 }),
        ),
        (
            "session/set_mode",
            json!({ "sessionId": "a", "modeId": "y" }),
        ),
    ] {
        let line = json!({ "id": 1, "method": method, "params": params }).to_string();
        router.editor_says(line.as_bytes());
    }
    let settings = router.settings("a").into_iter();
    let made: Vec<_> = settings
        .map(|(_, params)| with_session_in(params.get(), "c"))
        .collect();
    assert_eq!(
        made,
        [
            r#"{"sessionId":"c","configId":"m","value":1}"#,
            r#"{"sessionId":"c","configId":"n","value":2}"#,
            r#"{"sessionId":"c","modeId":"y"}"#
        ]
    );
}

#[test]
fn a_session_is_closed_some_time_after_it_was_left_and_the_oldest_of_many_at_once() {
    let mut router = moved();
    let age = Duration::from_secs(300);
    let now = Instant::now();
    assert!(router.agents.due_to_close(now, age, 3).is_empty());
    assert_eq!(router.agents.due_to_close(now + age, age, 3), ["a"]);
    assert!(!router.agents.has_left());
    for session in ["c", "d", "e", "f", "g"] {
        router.agents.switch("a", session);
    }
    assert_eq!(router.agents.due_to_close(now, age, 3), ["b", "c"]);
}
