//! The context of a path: `get_context` in every format, and `get_stats`. semantics.md §1.

mod calls;
mod edits;
mod formats;
mod path;

use crate::harness::*;

fn opened(log: &Log) -> Daemon {
    let home = Home::new();
    let path = log.save(&home);
    let mut d = Daemon::quiet_in(&home);
    d.open(&path);
    d
}

/// A message in one line: its role and its text.
fn line(message: &Json) -> String {
    let role = message["role"].as_str().expect("a role");
    let said = match role {
        "branchSummary" | "compactionSummary" => message["summary"].as_str().unwrap().to_owned(),
        "bashExecution" => message["command"].as_str().unwrap().to_owned(),
        _ => match &message["content"] {
            Json::String(text) => text.clone(),
            Json::Array(parts) => parts.iter().filter_map(|p| p["text"].as_str()).collect(),
            other => panic!("content {other}"),
        },
    };
    format!("{role}: {said}")
}

#[track_caller]
fn messages(d: &mut Daemon, params: Json) -> Vec<Json> {
    d.ok("get_context", params)["messages"]
        .as_array()
        .expect("messages")
        .clone()
}

/// Compares the context at `leaf` (`""`: the leaf of the session) with one line per message.
#[track_caller]
fn check(log: &Log, leaf: &str, expected: &[&str]) {
    let mut d = opened(log);
    let params = if leaf.is_empty() {
        json!({})
    } else {
        json!({"leafId": leaf})
    };
    let lines: Vec<_> = messages(&mut d, params).iter().map(line).collect();
    assert_eq!(lines, expected);
}

fn plain() -> Log {
    Log::new("s1")
        .user("u1", "", "one")
        .assistant("a1", "u1", "two")
        .user("u2", "a1", "three")
        .assistant("a2", "u2", "four")
}

fn compacted(first_kept: &str) -> Log {
    plain()
        .entry(
            "compaction",
            "k1",
            "a2",
            json!({"summary": "SUM", "firstKeptEntryId": first_kept, "tokensBefore": 99}),
        )
        .user("u3", "k1", "five")
}
