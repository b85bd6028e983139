//! The end of the daemon: by the end of its input, by signals, by `shutdown`, and by a client that has closed stdout.

use std::io::Write;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::harness::*;

#[test]
fn empty_input_ends_with_success() {
    let output = Home::new().run(&[], &[], "").clean();
    assert_eq!(output.text(), "");
}

#[test]
fn every_accepted_request_is_answered_and_stored_at_eof() {
    let home = Home::new();
    let mut lines = vec![request(&json!("c"), "create_session", &json!({}))];
    lines.extend((0..500).map(|n| {
        request(
            &json!(n),
            "append_message",
            &json!({"message": user("x"), "entryId": format!("e{n}")}),
        )
    }));
    let input: String = lines.iter().map(|l| format!("{l}\n")).collect();
    let answers = home.run(&[], &[], input).clean().responses();
    assert_eq!(answers.len(), 501);
    assert_eq!(
        file_lines(&home.only_file()).len(),
        501,
        "header and 500 entries"
    );
}

/// Starts a navigation that waits for the client's answer.
fn waiting_navigation() -> (Daemon, Json) {
    let mut d = Daemon::start();
    for name in ["entries_appended", "session_opened", "session_closed"] {
        d.ignore(name);
    }
    d.init(json!({"answers": {"session_before_tree": {}}}));
    d.create();
    d.chain(&["u1", "a1", "u2"]);
    let id = d.send("navigate_tree", json!({"targetId": "a1"}));
    let event = d.notification("session_before_tree");
    assert!(event["timeoutMs"].as_u64() > Some(0), "{event}");
    (d, id)
}

/// The daemon waits neither for the timeout of the question nor for the 5 s that running requests have.
#[track_caller]
fn ends_with_the_question_aborted(end: impl Fn(&mut Daemon)) {
    takes_at_most(Duration::from_secs(4), || {
        let (mut d, id) = waiting_navigation();
        end(&mut d);
        let began = Instant::now();
        assert_eq!(d.exited(), Some(0));
        let took = began.elapsed();
        is_aborted(d, &id);
        took
    });
}

#[track_caller]
fn is_aborted(mut d: Daemon, id: &Json) {
    let result = d
        .response(id)
        .expect("a cancelled navigation is not an error");
    assert_eq!(result["cancelled"], true, "{result}");
    assert_eq!(result["reason"], "aborted", "{result}");
    assert_eq!(d.notification("event_resolved")["outcome"], "aborted");
    let home = d.stop();
    assert_eq!(
        file_lines(&home.only_file()).len(),
        4,
        "nothing was written"
    );
}

#[test]
fn eof_aborts_open_questions() {
    ends_with_the_question_aborted(Daemon::close_stdin);
}

#[test]
fn sigterm_ends_like_eof() {
    ends_with_the_question_aborted(|d| d.signal(Signal::TERM));
}

#[test]
fn sigint_ends_like_eof() {
    ends_with_the_question_aborted(|d| d.signal(Signal::INT));
}

#[test]
fn shutdown_answers_and_ends_like_eof() {
    ends_with_the_question_aborted(|d| assert_eq!(d.ok("shutdown", json!({})), json!({})));
}

#[test]
fn a_closed_stdout_ends_the_daemon() {
    let home = Home::new();
    let mut child = home.command(&[], &[]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    drop(child.stdout.take());
    let line = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"list_sessions\"}\n";
    stdin.write_all(line).unwrap();
    // Stdin stays open, so only the broken pipe can end the daemon.
    wait(&mut child, DEADLINE);
    drop(stdin);
}

/// At the end of stdin the process once ended with answers still in its buffers.
#[test]
fn large_replies_are_sent_whole_at_eof() {
    let mut input = String::new();
    for (id, method, params) in [
        (json!("c"), "create_session", json!({})),
        (
            json!("a"),
            "append_message",
            json!({"message": user(&"x".repeat(100_000)), "entryId": "u1"}),
        ),
    ] {
        input.push_str(&format!("{}\n", request(&id, method, &params)));
    }
    for n in 0..100 {
        input.push_str(&format!(
            "{}\n",
            request(&json!(n), "get_entry", &json!({"entryId": "u1"}))
        ));
    }
    let answers = Home::new().run(&[], &[], input).clean().responses();
    assert_eq!(answers.len(), 102);
    for n in 0..100 {
        let content = &answers[&n.to_string()]["result"]["entry"]["message"]["content"];
        assert_eq!(
            content.as_str().map(str::len),
            Some(100_000),
            "answer {n} is whole"
        );
    }
}
