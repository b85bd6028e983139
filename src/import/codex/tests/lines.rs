//! Small rollouts. Each of them tests one rule.

use super::*;
use serde_json::{Value, json};

/// A rollout with these records. Each has a type and a payload, and is one second later than the previous record.
fn rollout(records: &[(&str, Value)]) -> Source {
    let mut bytes = Vec::new();
    for (number, (kind, payload)) in records.iter().enumerate() {
        let time = format!("2026-01-01T00:{:02}:{:02}.000Z", number / 60, number % 60);
        let line = json!({"timestamp": time, "type": kind, "payload": payload});
        bytes.extend_from_slice(line.to_string().as_bytes());
        bytes.push(b'\n');
    }
    read("rollout.jsonl", &bytes)
}

fn meta() -> (&'static str, Value) {
    (
        "session_meta",
        json!({"id": "t", "cwd": "/w", "model_provider": "p"}),
    )
}

fn item(payload: Value) -> (&'static str, Value) {
    ("response_item", payload)
}

fn event(payload: Value) -> (&'static str, Value) {
    ("event_msg", payload)
}

fn user(text: &str) -> (&'static str, Value) {
    message("user", "input_text", text)
}

fn answer(text: &str) -> (&'static str, Value) {
    message("assistant", "output_text", text)
}

fn message(role: &str, kind: &str, text: &str) -> (&'static str, Value) {
    let content = json!([{"type": kind, "text": text}]);
    item(json!({"type": "message", "role": role, "content": content}))
}

fn call(id: &str) -> (&'static str, Value) {
    let arguments = "{\"cmd\":\"ls\"}";
    item(
        json!({"type": "function_call", "name": "exec_command", "call_id": id, "arguments": arguments}),
    )
}

fn output(id: &str) -> (&'static str, Value) {
    item(json!({"type": "function_call_output", "call_id": id, "output": "done"}))
}

fn rolled_back(turns: Value) -> (&'static str, Value) {
    event(json!({"type": "thread_rolled_back", "num_turns": turns}))
}

fn one(source: &Source) -> BTreeSet<String> {
    paths(&CodexFormat, std::slice::from_ref(source))
}

/// The entries of all nodes of a kind.
fn entries(source: &Source, kind: &NodeKind) -> Vec<Value> {
    let nodes = source.member.nodes.iter();
    let wanted = nodes.filter(|node| node.kind == *kind);
    wanted
        .map(|node| source.entry(&CodexFormat, node))
        .collect()
}

#[test]
fn rollbacks_in_a_row_compose_on_the_path() {
    let turns = |from: usize, to: usize| {
        (from..to).flat_map(|turn| [user(&format!("{turn}")), answer(&format!("a{turn}"))])
    };
    let mut records = vec![meta()];
    records.extend(turns(0, 4));
    records.extend([rolled_back(json!(1)), rolled_back(json!(1))]);
    records.extend(turns(4, 5));
    records.push(rolled_back(json!(2)));
    records.extend(turns(5, 6));
    let all = [
        "U:0 > A:a0 > U:1 > A:a1 > U:2 > A:a2 > U:3 > A:a3",
        "U:0 > A:a0 > U:1 > A:a1 > U:4 > A:a4",
        "U:0 > A:a0 > U:5 > A:a5",
    ];
    assert_eq!(one(&rollout(&records)), all.map(String::from).into());

    // A number above the number of turns means all of them; an invalid number is ignored.
    for (turns, path) in [
        (json!(u64::MAX), "U:new"),
        (json!(1e30), "U:new"),
        (json!(-1), "U:0 > A:a0 > U:new"),
        (json!("1"), "U:0 > A:a0 > U:new"),
        (json!(0), "U:0 > A:a0 > U:new"),
    ] {
        let records = [
            meta(),
            user("0"),
            answer("a0"),
            rolled_back(turns),
            user("new"),
        ];
        assert!(one(&rollout(&records)).contains(path), "{path}");
    }
}

#[test]
fn a_message_of_the_harness_is_not_a_turn() {
    let kinds = |kind: &str, text: &str| {
        let content = json!([{"type": "input_text", "text": text}]);
        let said = json!({"content_item_kinds": [kind]});
        item(
            json!({"type": "message", "role": "user", "content": content,
            "internal_chat_message_metadata_passthrough": said}),
        )
    };
    let shown = |text: &str| event(json!({"type": "user_message", "message": text}));
    let records = [
        meta(),
        message("developer", "input_text", "Rules"),
        user("<environment_context>\n<cwd>/w</cwd>"),
        user("# AGENTS.md instructions for /w"),
        kinds(
            "environments.environment_context",
            "Plain, but of the harness",
        ),
        kinds("user.text", "<environment_context> typed by a person"),
        answer("a"),
        user("<skill is a word> that a person typed"),
        shown("<skill is a word> that a person typed"),
        answer("b"),
        user("No event, no tag"),
    ];
    let source = rollout(&records);
    let typed: Vec<Value> = entries(&source, &NodeKind::User);
    assert_eq!(typed.len(), 3, "{typed:#?}");
    let scaffolding = entries(&source, &NodeKind::Scaffolding);
    assert_eq!(scaffolding.len(), 4);
    assert_eq!(scaffolding[0]["customType"], "codex.developer");
    assert_eq!(scaffolding[0]["display"], false);
    // An event that confirms the last message of the user may still follow.
    let open: Vec<bool> = source
        .member
        .nodes
        .iter()
        .map(|node| node.is_open)
        .collect();
    assert_eq!(open.iter().filter(|open| **open).count(), 1);
    assert_eq!(open.last(), Some(&true));
}

#[test]
fn the_latest_message_is_open_until_something_follows_its_results() {
    let done = || event(json!({"type": "task_complete"}));
    let open = |records: &[(&'static str, Value)]| {
        let all = [
            &[meta(), user("u"), event(json!({"type": "user_message"}))],
            records,
        ]
        .concat();
        let nodes = rollout(&all).member.nodes;
        nodes
            .iter()
            .map(|node| u8::from(node.is_open))
            .collect::<Vec<_>>()
    };
    assert_eq!(open(&[]), [0]);
    assert_eq!(open(&[answer("a")]), [0, 1]);
    assert_eq!(open(&[answer("a"), done()]), [0, 0]);
    assert_eq!(open(&[call("1")]), [0, 1]);
    assert_eq!(open(&[call("1"), call("2"), output("2")]), [0, 1, 1]);
    assert_eq!(open(&[call("1"), output("1")]), [0, 1, 1]);
    assert_eq!(open(&[call("1"), done()]), [0, 0]);
    assert_eq!(open(&[call("1"), output("1"), answer("a")]), [0, 0, 0, 1]);
    assert_eq!(
        open(&[call("1"), user("v"), answer("a"), done()]),
        [0, 0, 0, 0]
    );
}

#[test]
fn details_of_a_result_are_those_of_its_events() {
    let failed = json!({"type": "exec_command_end", "call_id": "1", "exit_code": 2,
        "aggregated_output": "no", "duration": {"secs": 1, "nanos": 0}, "stdout": "no"});
    let patched = json!({"type": "item_completed", "item": {"type": "FileChange", "id": "2",
        "changes": {"/w/a": {"type": "add"}}, "status": "completed"}});
    let source = rollout(&[
        meta(),
        user("u"),
        call("1"),
        call("2"),
        event(failed),
        output("1"),
        output("2"),
        event(patched),
        event(json!({"type": "exec_command_end", "call_id": "unknown"})),
    ]);
    let results = entries(&source, &NodeKind::ToolResult);
    let [first, second] = [0, 1].map(|index| &results[index]["message"]);
    assert_eq!(first["isError"], true);
    let details =
        json!({"exit_code": 2, "aggregated_output": "no", "duration": {"secs": 1, "nanos": 0}});
    assert_eq!(first["details"], details);
    assert_eq!(first["toolName"], "exec_command");
    assert_eq!(second["isError"], false);
    assert_eq!(second["details"]["changes"]["/w/a"]["type"], "add");
    assert_eq!(source.member.origin_only["event_msg.exec_command_end"], 1);
}

#[test]
fn each_kind_of_call_has_its_name_and_arguments() {
    let search = json!({"type": "search", "query": "q"});
    let source = rollout(&[
        meta(),
        user("u"),
        item(
            json!({"type": "function_call", "name": "f", "call_id": "1", "arguments": "not json"}),
        ),
        item(json!({"type": "function_call", "name": "f", "call_id": "2", "arguments": "[1]"})),
        item(json!({"type": "function_call", "name": "f", "call_id": "3", "arguments": ""})),
        item(
            json!({"type": "function_call", "name": "f", "namespace": "mcp__s", "call_id": "4", "arguments": {"a": 1}}),
        ),
        item(
            json!({"type": "custom_tool_call", "name": "apply_patch", "call_id": "5", "input": "*** Begin Patch"}),
        ),
        item(
            json!({"type": "local_shell_call", "call_id": "6", "action": {"type": "exec", "command": ["ls"]}}),
        ),
        item(json!({"type": "web_search_call", "id": "ws", "action": search})),
        item(json!({"type": "tool_search_call", "call_id": "8", "arguments": {"query": "x"}})),
        item(
            json!({"type": "image_generation_call", "id": "ig", "revised_prompt": "A cat", "result": "aGk="}),
        ),
        event(json!({"type": "web_search_end", "call_id": "ws", "results": [{"title": "t"}]})),
        output("1"),
    ]);
    let calls = &entries(&source, &NodeKind::Assistant)[0]["message"];
    let calls: Vec<String> = calls["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| format!("{} {}", call["name"].as_str().unwrap(), call["arguments"]))
        .collect();
    let expected = [
        r#"f {"_raw":"not json"}"#,
        r#"f {"_raw":"[1]"}"#,
        "f {}",
        r#"mcp__s__f {"a":1}"#,
        r#"apply_patch {"input":"*** Begin Patch"}"#,
        r#"local_shell {"type":"exec","command":["ls"]}"#,
        r#"web_search {"type":"search","query":"q"}"#,
        r#"tool_search {"query":"x"}"#,
        r#"image_generation {"prompt":"A cat"}"#,
    ];
    assert_eq!(calls, expected);
    let results = entries(&source, &NodeKind::ToolResult);
    let results: Vec<&Value> = results.iter().map(|entry| &entry["message"]).collect();
    assert_eq!(results[0]["toolName"], "image_generation");
    assert_eq!(results[0]["content"][0]["data"], "aGk=");
    assert_eq!(results[1]["toolCallId"], "ws");
    assert_eq!(results[1]["content"][0]["text"], r#"[{"title":"t"}]"#);
    assert_eq!(results[2]["toolCallId"], "1");
}

#[test]
fn a_lone_surrogate_is_kept_as_it_is_written() {
    let line = |payload: &str| format!("{{\"type\":\"response_item\",\"payload\":{payload}}}\n");
    let text =
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"a\ud83d"}]}"#;
    let call = r#"{"type":"function_call","name":"f","call_id":"\ud83d","arguments":"{\"a\":\"\ud83d\"}"}"#;
    let inner =
        r#"{"type":"function_call","name":"f","call_id":"2","arguments":"{\"a\":\"\\ud83d\"}"}"#;
    let bytes = [line(text), line(call), line(inner)].concat();
    let source = read("r.jsonl", bytes.as_bytes());
    let body = |index: usize| {
        let node = &source.member.nodes[index];
        let at = |at: u64, len: u64| &bytes.as_bytes()[at as usize..(at + len) as usize];
        let records: Vec<&[u8]> = node.places.iter().map(|p| at(p.at, p.len)).collect();
        let body = CodexFormat.body(&source.member, node, &records);
        String::from_utf8(body.members).unwrap()
    };
    assert!(body(0).contains(r#""text":"a\ud83d""#));
    // Arguments whose text cannot be decoded are copied as their literal.
    assert!(
        body(1).contains(r#""id":"\ud83d","name":"f","arguments":{"_raw":"{\"a\":\"\ud83d\"}"}"#)
    );
    assert!(body(1).contains(r#""arguments":{"a":"\ud83d"}"#));
}

#[test]
fn lines_without_envelope_are_read_as_items() {
    let lines = [
        r#"{"id":"old","timestamp":"2025-06-01T00:00:00.000Z","instructions":null}"#,
        r#"{"record_type":"state"}"#,
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context><cwd>/old</cwd>"}]}"#,
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}"#,
        r#"{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"t"},{"type":"summary_text","text":"u"}]}"#,
        r#"{"type":"local_shell_call","id":"1","call_id":"1","action":{"command":["ls"]}}"#,
        r#"{"type":"function_call_output","call_id":"1","output":"{\"output\":\"x\",\"metadata\":{\"exit_code\":1}}"}"#,
    ];
    let source = read("rollout-x.jsonl", lines.join("\n").as_bytes());
    let member = &source.member;
    assert_eq!(
        (&*member.native_id, member.cwd.as_deref()),
        ("old", Some("/old"))
    );
    let path = "U:hi > A:(t\n\nu) local_shell{\"command\":[\"ls\"]} > R:local_shell";
    assert_eq!(one(&source), [path.to_owned()].into());
    let results = entries(&source, &NodeKind::ToolResult);
    assert_eq!(results[0]["message"]["isError"], true);
    assert_eq!(member.origin_only["unknown"], 1);
    assert_eq!(&*member.nodes[1].key, "old#3");
}

#[test]
fn a_subagent_begins_after_the_copy_of_its_parent() {
    let spawn = json!({"subagent": {"thread_spawn": {"parent_thread_id": "parent", "depth": 1}}});
    let meta = json!({"id": "child", "source": spawn, "subagent_history_start_ordinal": 3, "forked_from_id": "parent"});
    let records = [
        ("session_meta", meta),
        user("copied"),
        answer("copied too"),
        user("own"),
        answer("a"),
    ];
    let mut bytes = Vec::new();
    for (ordinal, (kind, payload)) in records.iter().enumerate() {
        let line = json!({"ordinal": ordinal, "type": kind, "payload": payload});
        bytes.extend_from_slice(format!("{line}\n").as_bytes());
    }
    let source = read("rollout.jsonl", &bytes);
    assert_eq!(one(&source), ["U:own > A:a".to_owned()].into());
    assert_eq!(source.member.base, Base::None);
    let spawner = source.member.spawned_by.as_ref().unwrap();
    assert_eq!(spawner.native_id, "parent");
    // In the parent's rollout, the first event about the subagent becomes an entry.
    let active =
        json!({"type": "SubAgentActivity", "agent_thread_id": "child", "agent_path": "/root/a"});
    let active = || event(json!({"type": "item_completed", "item": active.clone()}));
    let parent = rollout(&[
        super::lines::meta(),
        user("u"),
        call("1"),
        active(),
        output("1"),
        active(),
    ]);
    let native_id = "child".into();
    let entries = entries(&parent, &NodeKind::Subagent { native_id });
    let data = json!({"tool": "codex", "agent_path": "/root/a"});
    assert_eq!(
        entries,
        [json!({"type": "custom", "customType": "subagent", "data": data})]
    );
}

#[test]
fn a_summary_that_is_encrypted_is_replaced_by_what_can_be_read() {
    let kept = json!([
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "First"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Second"}]},
        {"type": "compaction", "encrypted_content": "AAAA"},
    ]);
    let source = rollout(&[
        meta(),
        user("First"),
        answer("a"),
        (
            "compacted",
            json!({"message": "", "replacement_history": kept}),
        ),
    ]);
    let entries = entries(&source, &NodeKind::Compaction { first_kept: None });
    assert_eq!(entries[0]["summary"], "First\n\nSecond");
    assert_eq!(entries[0]["tokensBefore"], 0);
}

#[test]
fn another_model_is_an_entry_once() {
    let model = |name: &str| ("turn_context", json!({"model": name}));
    let source = rollout(&[
        meta(),
        model("m"),
        user("u"),
        answer("a"),
        model("m"),
        user("v"),
        model("n"),
        answer("b"),
        event(json!({"type": "thread_name_updated", "thread_id": "t", "thread_name": "Mine"})),
        event(
            json!({"type": "thread_name_updated", "thread_id": "parent", "thread_name": "Not mine"}),
        ),
        event(json!({"type": "turn_aborted", "reason": "interrupted"})),
    ]);
    let path = "m > U:u > A:a > U:v > n > A:b > codex.turn_aborted";
    assert_eq!(one(&source), [path.to_owned()].into());
    assert_eq!(source.member.title.as_deref(), Some("Mine"));
    let changes = entries(&source, &NodeKind::ModelChange);
    assert_eq!(
        changes[1],
        json!({"type": "model_change", "provider": "p", "modelId": "n"})
    );
    let answers = entries(&source, &NodeKind::Assistant);
    assert_eq!(answers[1]["message"]["model"], "n");
}

/// Nodes are named by ordinals, which must therefore be unique in every file.
#[test]
fn a_record_whose_ordinal_does_not_grow_is_skipped() {
    let said = |ordinal: Value, text: &str| {
        let (kind, payload) = user(text);
        format!(
            "{}\n",
            json!({"ordinal": ordinal, "type": kind, "payload": payload})
        )
    };
    let lines = [
        said(json!(5), "a"),
        said(json!(5), "a"),
        said(json!(5), "b"),
        said(json!(2), "c"),
        said(json!(-1), "d"),
        said(json!(u64::MAX), "e"),
        said(json!(100), "f"),
    ];
    let source = read("r.jsonl", lines.concat().as_bytes());
    assert_eq!(source.member.duplicates, 1);
    let orders: Vec<u64> = source.member.nodes.iter().map(|node| node.order).collect();
    assert_eq!(orders, [5, 6, 7, 8, 9, 100]);
}
