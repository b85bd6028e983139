//! Reads of the tree: `get_tree` with every option, labels, children, paths, branches, entries and their pages.
//! protocol.md §3 and §6.

mod archive;
mod branches;
mod candidates;
mod drawn;
mod entries;
mod filters;
pub(crate) mod left;
mod nested;
mod pages;
mod queries;
mod rows;
mod shed;
mod tools;

use crate::harness::*;

/// Two branches below a1; the leaf is on the later one.
///
/// ```text
/// u1 ─ a1 ┬ u2 ─ a2
///         └ u3 ─ c3 (only tool calls) ─ t3 (failed) ─ a3
/// ```
fn two_branches() -> Log {
    Log::new("s1")
        .user("u1", "", "Start here")
        .assistant("a1", "u1", "Hello")
        .user("u2", "a1", "go left")
        .assistant("a2", "u2", "left it is")
        .user("u3", "a1", "go right")
        .message(
            "c3",
            "u3",
            assistant_with(json!([tool_call("call", "read", json!({"path": "x.rs"}))])),
        )
        .message(
            "t3",
            "c3",
            tool_result("call", "read", "no such file", true),
        )
        .assistant("a3", "t3", "right it is")
}

fn opened(log: &Log) -> Daemon {
    let home = Home::new();
    let path = log.save(&home);
    let mut d = Daemon::quiet_in(&home);
    d.open(&path);
    d
}

#[track_caller]
fn tree_ids(d: &mut Daemon, params: Json) -> Vec<String> {
    ids(&d.ok("get_tree", params)["nodes"])
}

#[track_caller]
fn row(tree: &Json, id: &str) -> Json {
    let nodes = tree["nodes"].as_array().unwrap();
    nodes
        .iter()
        .find(|n| n["id"] == id)
        .unwrap_or_else(|| panic!("no row {id} in {tree}"))
        .clone()
}

/// The values of one member in all rows.
#[track_caller]
fn column(tree: &Json, member: &str) -> Vec<Json> {
    tree["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| n[member].clone())
        .collect()
}

fn with_bookkeeping() -> Log {
    two_branches()
        .label("l1", "a3", "u2", json!("Left turn"))
        .entry("session_info", "i1", "l1", json!({"name": "N"}))
        .entry(
            "thinking_level_change",
            "h1",
            "i1",
            json!({"thinkingLevel": "high"}),
        )
        .entry(
            "model_change",
            "m1",
            "h1",
            json!({"provider": "p", "modelId": "m"}),
        )
        .entry(
            "custom",
            "x1",
            "m1",
            json!({"customType": "state", "data": 1}),
        )
        .entry(
            "context_edit",
            "e1",
            "x1",
            json!({"targetId": "u2", "replacement": null}),
        )
        .entry(
            "usage",
            "g1",
            "e1",
            json!({"kind": "k", "provider": "p", "model": "m", "usage": {}}),
        )
        .entry(
            "custom_message",
            "v1",
            "g1",
            json!({"customType": "c", "content": "visible", "display": true}),
        )
        .entry(
            "custom_message",
            "n1",
            "v1",
            json!({"customType": "c", "content": "invisible", "display": false}),
        )
        .entry(
            "compaction",
            "k1",
            "n1",
            json!({"summary": "S", "firstKeptEntryId": "u3", "tokensBefore": 1234}),
        )
        .entry(
            "branch_summary",
            "b1",
            "k1",
            json!({"fromId": "a2", "summary": "B"}),
        )
}

/// A conversation that uses the tools of several agents.
fn with_tools() -> Log {
    let call = |id: &str, name: &str, arguments: Json| tool_call(id, name, arguments);
    Log::new("s1")
        .user("u1", "", "Fix it")
        .message(
            "calls",
            "u1",
            assistant_with(json!([
                call(
                    "c1",
                    "bash",
                    json!({"timeout": 9, "command": "cargo\ttest\n"})
                ),
                call(
                    "c2",
                    "Edit",
                    json!({"old_string": "a", "file_path": "src/lib.rs"})
                ),
                call("c3", "weather", json!({"days": 2, "town": "Ulm"})),
            ])),
        )
        .message(
            "failed",
            "calls",
            tool_result("c1", "bash", "--\n3 failed\nsee above", true),
        )
        .message(
            "edited",
            "failed",
            tool_result("c2", "Edit", "Done.", false),
        )
        .message(
            "other",
            "edited",
            tool_result("c3", "weather", "Sun\nRain\n\n", false),
        )
        .message(
            "lost",
            "other",
            tool_result("gone", "grep", "a.rs:1\n", false),
        )
        .message("bare", "lost", tool_result("c1", "bash", "", false))
        .assistant("a2", "bare", "Done")
}
