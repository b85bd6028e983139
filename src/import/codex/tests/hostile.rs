//! Damaged and malicious files.

use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::fmt::Write;
use treelined_core::test_support::time;

const FIXTURES: [&str; 3] = [
    "0.169-paginated/rollout-2026-11-22T02-44-46-01a20124-4777-7de2-915b-ef7ddcee9bbf_01a20124-4d64-7851-ba36-1181d73e9a08",
    "0.169-legacy/rollout-2026-11-22T02-47-32-01a20126-d84d-7e30-8bb8-c82a25e866fc",
    "0.130-rollback/rollout-2026-11-22T02-58-01-01a20130-6fe2-74f2-ab32-1ba913fb223d",
];

/// A torn line is not a record. So a cut inside a line gives the same result as a cut before the line.
#[test]
fn a_file_cut_at_any_byte_is_read_as_far_as_it_goes() {
    for name in FIXTURES {
        let path = format!("codex/{name}.jsonl");
        let whole = fixture(&path);
        let all = read(&path, &whole).member;
        let mut lines = BTreeSet::new();
        for cut in whole.len() - 4096..whole.len() {
            let before = whole[..cut].iter().rposition(|byte| *byte == b'\n');
            let line = before.map_or(0, |before| before + 1);
            match treelined_core::json::value_span(&whole[line..cut]) {
                Ok(_) => lines.insert(cut),
                Err(_) => lines.insert(line),
            };
        }
        assert!(lines.len() > 2);
        for cut in lines {
            let part = read(&path, &whole[..cut]).member;
            let pairs = part.nodes.iter().zip(&all.nodes);
            for (cut, node) in pairs.filter(|(cut, _)| !cut.is_open) {
                assert_eq!((&cut.key, &cut.parent), (&node.key, &node.parent));
                assert_eq!((&cut.places, &cut.note), (&node.places, &node.note));
                assert_eq!(cut.kind, node.kind);
            }
        }
    }
}

/// Reads a file while it grows: the closed nodes equal the nodes of the whole file.
#[test]
fn a_node_that_is_not_open_never_changes() {
    for name in FIXTURES {
        let path = format!("codex/{name}.jsonl");
        let whole = fixture(&path);
        let all = read(&path, &whole).member;
        let ends = (0..whole.len()).filter(|at| whole[*at] == b'\n');
        for end in ends {
            let part = read(&path, &whole[..=end]).member;
            let settled = part.nodes.iter().take_while(|node| !node.is_open);
            for (cut, node) in settled.zip(&all.nodes) {
                let of = |node: &Node| (node.key.clone(), node.places.clone(), node.note.clone());
                assert_eq!(of(cut), of(node), "{path} cut at {end}");
                assert_eq!((&cut.parent, &cut.kind), (&node.parent, &node.kind));
                assert_eq!(cut.fingerprint, node.fingerprint);
            }
        }
    }
}

fn words() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "session_meta",
        "response_item",
        "event_msg",
        "turn_context",
        "compacted",
        "message",
        "user",
        "token_usage_record",
        "assistant",
        "developer",
        "reasoning",
        "function_call",
        "item_completed",
        "function_call_output",
        "custom_tool_call",
        "local_shell_call",
        "web_search_call",
        "Extension",
        "image_generation_call",
        "tool_search_call",
        "thread_rolled_back",
        "token_count",
        "1",
        "2",
        "user_message",
        "task_complete",
        "turn_aborted",
        "exec_command_end",
        "CommandExecution",
        "",
        "input_text",
        "output_text",
        "input_image",
        "data:image/png;base64,AA==",
        "{\"a\":1}",
        "Plan",
        "2026-01-01T00:00:00.000Z",
        "<environment_context>",
        "collab_agent_spawn_end",
        "thinking",
        "\u{2028}",
    ])
    .prop_map(String::from)
}

fn keys() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "timestamp",
        "ordinal",
        "type",
        "payload",
        "metadata",
        "role",
        "content",
        "text",
        "call_id",
        "id",
        "name",
        "arguments",
        "input",
        "action",
        "output",
        "item",
        "info",
        "total_token_usage",
        "usage",
        "last_token_usage",
        "input_tokens",
        "total_tokens",
        "num_turns",
        "model",
        "cwd",
        "history_base",
        "end_ordinal_exclusive",
        "thread_id",
        "forked_from_id",
        "source",
        "subagent",
        "parent_thread_id",
        "thread_spawn",
        "subagent_history_start_ordinal",
        "message",
        "replacement_history",
        "summary",
        "image_url",
        "results",
        "result",
        "exit_code",
        "namespace",
        "internal_chat_message_metadata_passthrough",
        "content_item_kinds",
        "new_thread_id",
        "compaction_output",
        "status",
        "success",
        "tools",
    ])
    .prop_map(String::from)
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => words().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<u64>().prop_map(Value::from),
        1 => (0_u64..30).prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            3 => prop::collection::vec((keys(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A line that has the outer form of the format, with any content.
fn lines() -> impl Strategy<Value = Value> {
    let payload = prop::collection::vec((keys(), values()), 0..6);
    let typed = (words(), words(), payload).prop_map(|(kind, inner, members)| {
        let mut payload: serde_json::Map<String, Value> = members.into_iter().collect();
        payload.insert("type".into(), inner.into());
        json!({"type": kind, "payload": payload})
    });
    prop_oneof![3 => typed, 1 => values()]
}

proptest! {
    #[test]
    fn any_value_in_any_place_is_read(lines in prop::collection::vec(lines(), 0..20)) {
        let mut text = String::new();
        for line in lines {
            let _ = writeln!(text, "{line}");
        }
        read("rollout-x.jsonl", text.as_bytes());
    }
}

fn line(payload: &Value, kind: &str) -> String {
    format!("{}\n", json!({"type": kind, "payload": payload}))
}

fn said(text: &str) -> String {
    let content = json!([{"type": "input_text", "text": text}]);
    let payload = json!({"type": "message", "role": "user", "content": content});
    line(&payload, "response_item")
}

fn called(id: usize) -> String {
    let payload = json!({"type": "function_call", "name": "f", "call_id": id.to_string()});
    line(&payload, "response_item")
}

fn ended(id: usize) -> String {
    let payload = json!({"type": "exec_command_end", "call_id": id.to_string(), "exit_code": 0});
    line(&payload, "event_msg")
}

fn back(turns: &Value) -> String {
    let payload = json!({"type": "thread_rolled_back", "num_turns": turns});
    line(&payload, "event_msg")
}

#[test]
fn long_conversations_are_read() {
    let read = |lines: &mut dyn Iterator<Item = String>| {
        let bytes: Vec<u8> = lines.flat_map(String::into_bytes).collect();
        testing::read(&CodexFormat, "rollout.jsonl", &bytes).member
    };
    let mut turns = (0..100_000).map(|turn| said(&turn.to_string()));
    assert_eq!(read(&mut turns).nodes.len(), 100_000);
    // These rollbacks go back by more turns than the file has, or by more than an integer can hold.
    let turns = (0..20_000).map(|turn| said(&turn.to_string()));
    let back_by_one = (0..10_000).map(|_| back(&json!(1)));
    let rest = [said("branch"), back(&json!(u64::MAX)), said("new")];
    let rolled = read(&mut turns.chain(back_by_one).chain(rest));
    let parents: Vec<_> = rolled.nodes.iter().map(|node| &node.parent).collect();
    assert_eq!(parents[20_000..], [&Parent::Node(9_999), &Parent::Base]);
}

#[test]
fn time_is_linear_in_the_number_of_records() {
    let bytes = |lines: &mut dyn Iterator<Item = String>| -> Vec<u8> {
        lines.flat_map(String::into_bytes).collect()
    };
    let sources: [&dyn Fn(usize) -> Vec<u8>; 3] = [
        &|size| bytes(&mut (0..size).map(|turn| said(&turn.to_string()))),
        &|size| {
            let turns = (0..size).map(|turn| said(&turn.to_string()));
            bytes(&mut turns.chain((0..size).map(|_| back(&json!(1)))))
        },
        &|size| {
            bytes(
                &mut (0..size)
                    .map(called)
                    .chain((0..2 * size).map(|id| ended(id % size))),
            )
        },
    ];
    for (number, source) in sources.iter().enumerate() {
        time::check_linear(&format!("source {number}"), [250, 8_000], |size| {
            let bytes = source(size);
            time::processor_time(|| testing::read(&CodexFormat, "rollout.jsonl", &bytes))
        });
    }
}

#[test]
fn deep_values_are_given_as_text() {
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let arguments = format!("{{\"a\":{deep}}}");
    let literal = Value::from(arguments.as_str());
    let bytes = format!(
        "{{\"type\":\"response_item\",\"payload\":{{\"type\":\"function_call\",\"call_id\":\"1\",\"arguments\":{arguments}}}}}\n\
         {{\"type\":\"response_item\",\"payload\":{{\"type\":\"function_call\",\"call_id\":\"2\",\"arguments\":{literal}}}}}\n\
         {{\"type\":\"response_item\",\"payload\":{{\"type\":\"message\",\"role\":\"user\",\"content\":[{{\"type\":\"x\",\"y\":{deep}}}]}}}}\n\
         {{\"type\":\"event_msg\",\"payload\":{{\"type\":\"error\",\"y\":{deep}}}}}\n"
    );
    let source = testing::read(&CodexFormat, "r.jsonl", bytes.as_bytes());
    for node in &source.member.nodes {
        let at = |at: u64, len: u64| &bytes.as_bytes()[at as usize..(at + len) as usize];
        let records: Vec<&[u8]> = node.places.iter().map(|p| at(p.at, p.len)).collect();
        let body = CodexFormat.body(&source.member, node, &records);
        let object = [b"{\"x\":0", &body.members[..], b"}"].concat();
        assert!(treelined_core::json::depth(&object) < 256);
    }
}
