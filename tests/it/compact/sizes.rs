//! Compactions that keep each possible size of a context: no tool result remains without its call.

use std::collections::HashSet;

use super::*;

/// The tool results of the context without their call before them.
fn dangling(context: &Json) -> Vec<String> {
    let mut calls = HashSet::new();
    let mut dangling = Vec::new();
    for message in context["messages"].as_array().unwrap() {
        if message["role"] == "assistant" {
            for block in message["content"].as_array().unwrap() {
                if block["type"] == "toolCall" {
                    calls.insert(block["id"].as_str().unwrap().to_owned());
                }
            }
        }
        if message["role"] == "toolResult" {
            let id = message["toolCallId"].as_str().unwrap();
            if !calls.contains(id) {
                dangling.push(id.to_owned());
            }
        }
    }
    dangling
}

/// Compacts from the leaf at each of these sizes, and moves back each time. Returns how often there was something to
/// compact.
fn compacted_at_every_size(d: &mut Daemon, sizes: impl Iterator<Item = u64>) -> usize {
    let leaf = d.leaf();
    let mut kept_before = 0;
    let mut compacted = 0;
    for keep in sizes {
        let result = d.call("compact", json!({"keepRecentTokens": keep}));
        let entry = match result {
            Ok(result) => result["compactionEntry"].clone(),
            Err(error) => {
                assert_eq!(error.kind, "nothingToCompact", "keeping {keep}");
                d.notification("session_compact_failed");
                continue;
            }
        };
        d.notification("session_compact");
        compacted += 1;
        let context = d.ok("get_context", json!({}));
        assert_eq!(dangling(&context), [""; 0], "keeping {keep}");
        let from = ids(&context["entryIds"]);
        assert_eq!(from[0], entry["id"].as_str().unwrap());
        assert_eq!(from[1], entry["firstKeptEntryId"].as_str().unwrap());
        assert!(from.len() >= kept_before, "keeping more keeps more");
        kept_before = from.len();
        d.ok("set_leaf", json!({"leafId": leaf}));
    }
    compacted
}

#[test]
fn a_real_session_compacted_at_every_size_has_no_result_without_its_call() {
    let Some(bytes) = real_session() else {
        return;
    };
    let mut d = unasked();
    let path = d.home.file("real.jsonl", &bytes);
    d.open(&path);
    assert_eq!(dangling(&d.ok("get_context", json!({}))), [""; 0]);
    let stride = if is_long_run() { 1_000 } else { 5_000 };
    let sizes = 100_000 / stride;
    let compacted = compacted_at_every_size(&mut d, (100..=100_000).step_by(stride));
    assert!(compacted > sizes * 9 / 10, "{compacted} compactions");
}

#[test]
fn turns_of_every_shape_compacted_at_every_size_have_no_result_without_its_call() {
    let mut d = unasked();
    d.create();
    let mut entries = Vec::new();
    let mut push = |message: Json| entries.push(json!({"type": "message", "message": message}));
    for turn in 0..60 {
        push(user(&"what next? ".repeat(1 + turn % 7)));
        // Several calls at once, answered in another order, with other messages in between.
        for step in 0..turn % 4 {
            let call = |n: usize| format!("call-{turn}-{step}-{n}");
            let count = 1 + (turn + step) % 3;
            let calls: Vec<Json> = (0..count)
                .map(|n| tool_call(&call(n), "read", json!({"path": "p"})))
                .collect();
            push(assistant_with(json!(calls)));
            for n in (0..count).rev() {
                push(tool_result(&call(n), "read", &"x".repeat(30 * n), false));
                if turn % 5 == 0 && n == 1 {
                    push(user("and hurry"));
                }
            }
        }
        match turn % 6 {
            // A turn that was interrupted.
            5 => push(assistant_with(json!([tool_call(
                "open",
                "bash",
                json!({})
            )]))),
            _ => push(assistant(&"done. ".repeat(turn % 9))),
        }
    }
    d.ok("append_entries", json!({"entries": entries}));
    assert_eq!(dangling(&d.ok("get_context", json!({}))), [""; 0]);
    let compacted = compacted_at_every_size(&mut d, (0..4_000).step_by(61));
    assert!(compacted > 20, "{compacted} compactions");
}

#[test]
fn a_real_session_can_be_compacted_many_times() {
    let Some(bytes) = real_session() else {
        return;
    };
    let mut d = unasked();
    let path = d.home.file("real.jsonl", &bytes);
    d.open(&path);
    let mut keep = 60_000;
    let mut times = 0;
    while keep > 100 {
        if d.call("compact", json!({"keepRecentTokens": keep})).is_ok() {
            let entry = d.notification("session_compact")["compactionEntry"].clone();
            times += 1;
            let context = d.ok("get_context", json!({}));
            assert_eq!(dangling(&context), [""; 0], "keeping {keep}");
            assert_eq!(ids(&context["entryIds"])[0], entry["id"].as_str().unwrap());
            d.user(&format!("next{times}"), "go on");
        } else {
            d.notification("session_compact_failed");
        }
        keep = keep * 2 / 3;
    }
    assert!(times > 8, "{times} compactions");
}
