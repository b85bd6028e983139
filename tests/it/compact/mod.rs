//! `prepare_compaction` and `compact`: where the context is cut, what the daemon asks, writes and announces,
//! and the context afterwards. semantics.md §1 and §4.

mod answers;
mod preparation;
mod sizes;

use crate::harness::*;

/// A daemon without a client that answers questions. The `outline` summarizer writes the summaries.
fn unasked() -> Daemon {
    let home = Home::new();
    let mut d = Daemon::start_in(&home, &["--summarizer", "outline"], &[]);
    d.ignore_bookkeeping();
    d.ignore("session_before_compact");
    d
}

/// A daemon with a client that answers `session_before_compact`.
fn asked() -> Daemon {
    let mut d = Daemon::start_with(&["--summarizer", "none"], &[]);
    d.ignore_bookkeeping();
    d.init(json!({"answers": {"session_before_compact": {}}}));
    d.create();
    d
}

/// Eight messages of 100 estimated tokens each, in four turns.
fn talk(d: &mut Daemon) {
    for n in 1..=4 {
        d.user(&format!("u{n}"), &"x".repeat(400));
        d.assistant(&format!("a{n}"), &"y".repeat(400));
    }
}

fn calling(d: &mut Daemon, id: &str, calls: &[&str]) {
    let calls: Vec<Json> = calls
        .iter()
        .map(|call| tool_call(call, "read", json!({"path": format!("{call}.rs")})))
        .collect();
    let message = assistant_with(json!(calls));
    d.ok("append_message", json!({"message": message, "entryId": id}));
}

fn answered(d: &mut Daemon, id: &str, call: &str, size: usize) {
    let message = tool_result(call, "read", &"z".repeat(size), false);
    d.ok("append_message", json!({"message": message, "entryId": id}));
}

#[track_caller]
fn prepare(d: &mut Daemon, keep: u64) -> Json {
    let params = json!({"keepRecentTokens": keep});
    d.ok("prepare_compaction", params)["preparation"].clone()
}

/// The ids of the entries in the context.
fn context_ids(d: &mut Daemon) -> Vec<String> {
    ids(&d.ok("get_context", json!({}))["entryIds"])
}
