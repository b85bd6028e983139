//! `navigate_tree` and its question: the steps of a navigation, the client's answers, aborts, and what the daemon
//! writes and announces. protocol.md §4, §5 and §7.

mod abort;
mod answers;
mod labels;
mod notifications;
mod outline;
mod target;

use crate::harness::*;

const CONVERSATION: [&str; 6] = ["u1", "a1", "u2", "a2", "u3", "a3"];

/// A daemon without a client that answers, so that no navigation waits.
fn unasked() -> Daemon {
    let mut d = Daemon::quiet();
    d.create();
    d.chain(&CONVERSATION);
    d
}

/// A daemon with a client that answers. Every notification except those of appends must be claimed.
fn asked_with(args: &[&str]) -> Daemon {
    let mut d = Daemon::start_with(args, &[]);
    for name in ["session_opened", "session_closed", "entries_appended"] {
        d.ignore(name);
    }
    d.init(json!({"answers": {"session_before_tree": {}}}));
    d.create();
    d.chain(&CONVERSATION);
    d
}

fn asked() -> Daemon {
    asked_with(&[])
}

fn lines(d: &Daemon) -> Vec<Json> {
    file_lines(&d.home.only_file())
}

/// Starts a navigation. Returns the id of its request and the question.
#[track_caller]
fn ask(d: &mut Daemon, params: Json) -> (Json, Json) {
    let id = d.send("navigate_tree", params);
    let event = d.notification("session_before_tree");
    (id, event)
}

/// Checks that the navigation was cancelled for this reason, and that it changed neither the leaf nor the file.
#[track_caller]
fn left_alone(d: &mut Daemon, id: &Json, reason: &str) {
    let result = d.response(id).expect("not an error");
    assert_eq!(
        (&result["cancelled"], &result["reason"]),
        (&json!(true), &json!(reason)),
        "{result}"
    );
    assert_eq!(d.leaf(), "a3");
    assert_eq!(lines(d).len(), 7, "header and six messages");
    d.no_notification("session_tree");
}
