use super::context::{CallResult, EntryContext, ReplacedEntries};
use super::push_entry;
use super::writer::STRING_BYTES;
use serde_json::{Value, json};

/// The rendered entry with everything around it.
fn render_with(entry: &Value, context: &EntryContext<'_>, max_bytes: usize) -> Value {
    let mut out = Vec::new();
    push_entry(&mut out, entry.to_string().as_bytes(), context, max_bytes);
    serde_json::from_slice(&out)
        .unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(&out)))
}

fn blocks(entry: &Value) -> Value {
    let context = EntryContext {
        id: "e",
        ..EntryContext::default()
    };
    render_with(entry, &context, 1 << 20)["blocks"].take()
}

fn of_message(message: Value) -> Value {
    blocks(&json!({ "type": "message", "id": "e", "message": message }))
}

fn html(html: &str) -> Value {
    json!({ "kind": "html", "html": html })
}

fn text(text: &str) -> Value {
    json!({ "kind": "text", "text": text })
}

fn code(text: &str) -> Value {
    json!({ "kind": "code", "text": text })
}

#[test]
fn an_entry_has_the_facts_of_its_message_beside_its_blocks() {
    let context = EntryContext {
        id: "e",
        is_error: true,
        ..EntryContext::default()
    };
    let entry = |message: Value| json!({ "type": "message", "timestamp": "t", "message": message });
    assert_eq!(
        render_with(
            &entry(
                json!({ "role": "assistant", "content": [], "provider": "p", "model": "m", "toolName": "x" })
            ),
            &context,
            4096
        ),
        json!({ "entryId": "e", "type": "message", "role": "assistant", "timestamp": "t", "provider": "p", "model": "m",
            "isError": true, "blocks": [] })
    );
    let result = json!({ "role": "toolResult", "toolCallId": "c", "toolName": "bash", "content": "a", "model": "x" });
    assert_eq!(
        render_with(
            &entry(result),
            &EntryContext {
                is_error: false,
                ..context
            },
            4096
        ),
        json!({ "entryId": "e", "type": "message", "role": "toolResult", "timestamp": "t", "toolCallId": "c",
            "toolName": "bash", "blocks": [code("a")] })
    );
}

#[test]
fn messages_of_each_role_have_blocks() {
    assert_eq!(
        of_message(json!({ "role": "user", "content": "a\n*b*" })),
        json!([html("<p>a<br><em>b</em></p>")])
    );
    let content = json!([
        { "type": "thinking", "thinking": "*a*" },
        { "type": "thinking", "thinking": "", "redacted": true },
        { "type": "text", "text": "b\nc\n\n```rs\nd\n```" },
        { "type": "image", "mimeType": "image/svg+xml", "data": "PHN2Zz4=" },
        { "type": "toolCall", "id": "c", "name": "bash", "arguments": { "command": "ls" } },
        { "type": "unheard", "of": 1 },
    ]);
    assert_eq!(
        of_message(json!({ "role": "assistant", "content": content, "errorMessage": "<late>" })),
        json!([
            { "kind": "thinking", "html": "<p><em>a</em></p>" },
            html("<p>b<br>c</p>"),
            { "kind": "code", "language": "rs", "text": "d\n" },
            { "kind": "attachment", "mimeType": "image/svg+xml", "bytes": 5 },
            { "kind": "toolCall", "id": "c", "name": "bash", "argument": "ls", "arguments": "{\"command\":\"ls\"}" },
            { "kind": "code", "language": "json", "text": "{\"type\":\"unheard\",\"of\":1}" },
            text("<late>"),
        ])
    );
    let output = json!([{ "type": "text", "text": "*not* Markdown" }]);
    assert_eq!(
        of_message(json!({ "role": "toolResult", "content": output })),
        json!([code("*not* Markdown")])
    );
    let command = json!({
        "role": "bashExecution", "command": "ls", "output": "a", "exitCode": 2, "cancelled": false, "truncated": true,
        "fullOutputPath": "/tmp/x",
    });
    assert_eq!(
        of_message(command),
        json!([
            { "kind": "code", "language": "bash", "text": "ls" },
            code("a"),
            text("The exit code is 2."),
            text("The output is only a part. /tmp/x"),
        ])
    );
    for role in ["system", "custom", "hookMessage", "unheard"] {
        let message = json!({ "role": role, "content": "*a*\nb" });
        assert_eq!(
            of_message(message),
            json!([html("<p><em>a</em><br>b</p>")]),
            "{role}"
        );
    }
    let summary = json!({ "role": "compactionSummary", "summary": "a", "tokensBefore": 7 });
    assert_eq!(
        of_message(summary),
        json!([{ "kind": "summary", "of": "compaction", "title": "Compaction", "html": "<p>a</p>", "tokens": 7 }])
    );
}

#[test]
fn entries_without_messages_have_blocks() {
    let of = |entry: Value| blocks(&entry);
    let opening = format!(
        "{}\n\n*a*\n\n<read-files>\nr\n</read-files>",
        treelined_core::summary::PREAMBLE
    );
    let entry = json!({
        "type": "branch_summary", "fromId": "x", "summary": opening,
        "details": { "readFiles": ["r", 5], "modifiedFiles": [] },
    });
    let context = EntryContext {
        id: "e",
        replaced: Some(ReplacedEntries {
            first: "b",
            last: "x",
        }),
        ..EntryContext::default()
    };
    assert_eq!(
        render_with(&entry, &context, 4096)["blocks"],
        json!([{ "kind": "summary", "of": "branch", "title": "Summary of a branch", "html": "<p><em>a</em></p>",
            "replaced": { "firstId": "b", "lastId": "x" }, "files": { "readFiles": ["r"], "modifiedFiles": [] } }])
    );
    let merged = json!({ "type": "branch_summary", "summary": "a", "merge": true });
    assert_eq!(of(merged)[0]["title"], "Summary of a merged branch");
    let compaction =
        json!({ "type": "compaction", "summary": "a", "tokensBefore": 1200, "details": 5 });
    assert_eq!(
        of(compaction),
        json!([{ "kind": "summary", "of": "compaction", "title": "Compaction", "html": "<p>a</p>", "tokens": 1200 }])
    );
    assert_eq!(
        of(json!({ "type": "model_change", "provider": "p", "modelId": "m" })),
        json!([text("p/m")])
    );
    assert_eq!(
        of(json!({ "type": "thinking_level_change", "thinkingLevel": "high" })),
        json!([text("high")])
    );
    assert_eq!(
        of(json!({ "type": "label", "targetId": "x", "label": "<b>" })),
        json!([text("<b>")])
    );
    assert_eq!(of(json!({ "type": "label", "targetId": "x" })), json!([]));
    assert_eq!(
        of(json!({ "type": "session_info", "name": "n" })),
        json!([text("n")])
    );
    let usage = json!({ "type": "usage", "kind": "title", "model": "m", "usage": { "input": 1 } });
    assert_eq!(
        of(usage),
        json!([text("title · m"), { "kind": "code", "language": "json", "text": "{\"input\":1}" }])
    );
    assert_eq!(
        of(json!({ "type": "context_edit", "targetId": "x", "replacement": null })),
        json!([text("Leaves out x")])
    );
    assert_eq!(
        of(json!({ "type": "context_edit", "targetId": "x", "replacement": { "content": "*a*" } })),
        json!([text("Replaces the content of x"), html("<p><em>a</em></p>")])
    );
}

#[test]
fn entries_of_plugins_have_blocks() {
    let unheard = json!({ "type": "unheard", "of": "</script>" });
    assert_eq!(
        blocks(&unheard),
        json!([{ "kind": "code", "language": "json", "text": unheard.to_string() }])
    );
    let context = EntryContext {
        id: "e",
        preview: Some("2 of 3"),
        ..EntryContext::default()
    };
    let custom =
        json!({ "type": "custom_message", "customType": "todo", "content": "a", "display": true });
    let rendered = render_with(&custom, &context, 4096);
    assert_eq!(rendered["customType"], "todo");
    assert_eq!(
        rendered["blocks"],
        json!([text("2 of 3"), html("<p>a</p>")])
    );
    let state = json!({ "type": "custom", "customType": "todo", "data": { "a": 1 } });
    assert_eq!(
        render_with(&state, &context, 4096)["blocks"],
        json!([text("2 of 3"), { "kind": "code", "language": "json", "text": "{\"a\":1}" }])
    );
}

#[test]
fn damaged_entries_have_the_blocks_that_can_be_read() {
    for entry in [
        json!({}),
        json!({ "type": 5 }),
        json!({ "type": "message" }),
        json!({ "type": "message", "message": 5 }),
        json!({ "type": "message", "message": { "role": "user" } }),
        json!({ "type": "message", "message": { "role": "user", "content": 5 } }),
        json!({ "type": "message", "message": { "role": "user", "content": { "type": "text", "text": "a" } } }),
        json!({ "type": "message", "message": { "role": "assistant", "content": [{ "type": "text", "text": 5 }] } }),
        json!({ "type": "message", "message": { "role": ["user"], "content": [] } }),
        json!({ "type": "compaction" }),
        json!({ "type": "branch_summary", "summary": 5, "details": { "readFiles": 5 } }),
        json!({ "type": "model_change" }),
        json!({ "type": "custom_message", "content": null }),
    ] {
        assert!(blocks(&entry).is_array(), "{entry}");
    }
    let content = json!([5, null, "text", ["a"], { "text": "a" }, { "type": "text", "text": "b" },
        { "type": "toolCall" }, { "type": "image" }]);
    let found = of_message(json!({ "role": "assistant", "content": content }));
    let kinds: Vec<_> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|block| &block["kind"])
        .collect();
    assert_eq!(
        kinds,
        [
            "code",
            "code",
            "code",
            "code",
            "code",
            "html",
            "toolCall",
            "attachment"
        ]
    );
    // Text that is no longer JSON.
    for cut in [
        "",
        "{",
        "{\"type\":\"mess",
        "{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"a",
    ] {
        let mut out = Vec::new();
        push_entry(&mut out, cut.as_bytes(), &EntryContext::default(), 4096);
        serde_json::from_slice::<Value>(&out).unwrap();
    }
}

#[test]
fn a_call_has_its_changes_and_its_result() {
    let call = |name: &str, arguments: Value| {
        json!({ "type": "message", "message": { "role": "assistant", "content": [
            { "type": "toolCall", "id": "c", "name": name, "arguments": arguments },
        ] } })
    };
    let result = json!({ "type": "message", "message": { "role": "toolResult", "content": [
        { "type": "text", "text": "fn a() {}" },
    ] } });
    let result = result.to_string();
    let with = |entry: Option<&[u8]>, call_id: &str, of: &Value| {
        let results = [CallResult {
            call_id,
            entry_id: "r",
            is_error: true,
            entry,
        }];
        let context = EntryContext {
            results: &results,
            ..EntryContext::default()
        };
        render_with(of, &context, 1 << 20)["blocks"][0].take()
    };
    let read = call("Read", json!({ "file_path": "src/a.rs" }));
    let blocks = json!([{ "kind": "code", "language": "rs", "text": "fn a() {}" }]);
    assert_eq!(
        with(Some(result.as_bytes()), "c", &read)["result"],
        json!({ "entryId": "r", "isError": true, "blocks": blocks })
    );
    assert_eq!(
        with(None, "c", &read)["result"],
        json!({ "entryId": "r", "isError": true })
    );
    assert_eq!(with(None, "other", &read).get("result"), None);
    let edit = call(
        "Edit",
        json!({ "file_path": "a.rs", "old_string": "a", "new_string": "b" }),
    );
    assert_eq!(
        with(None, "c", &edit)["blocks"],
        json!([{ "kind": "diff", "path": "a.rs", "text": "-a\n+b\n" }])
    );
    let write = call("Write", json!({ "file_path": "a.py", "content": "x = 1" }));
    assert_eq!(
        with(None, "c", &write)["blocks"],
        json!([{ "kind": "code", "language": "py", "text": "x = 1" }])
    );
}

#[test]
fn long_strings_are_cut_at_a_character_and_say_by_how_much() {
    let message =
        json!({ "role": "toolResult", "content": format!("a{}", "é".repeat(STRING_BYTES)) });
    let entry = json!({ "type": "message", "message": message });
    let rendered = render_with(&entry, &EntryContext::default(), 4 * STRING_BYTES);
    let block = &rendered["blocks"][0];
    assert_eq!(
        block["text"].as_str().unwrap().len(),
        STRING_BYTES - 1,
        "not within é"
    );
    assert_eq!(block["truncated"], STRING_BYTES + 2);
}

/// The bytes of a rendered entry that are allowed in addition to its limit.
const HEAD_BYTES: usize = 2048;

#[test]
fn an_entry_stays_within_its_limit() {
    let many = vec![json!({ "type": "text", "text": "a" }); 10_000];
    let calls: Vec<_> = (0..1000)
        .map(|at| json!({ "type": "toolCall", "id": at.to_string(), "name": "n".repeat(1000), "arguments": { "a": "\u{1}".repeat(100) } }))
        .collect();
    for content in [
        json!("a".repeat(100_000)),
        json!("\u{1}\"\\\n".repeat(100_000)),
        json!("\u{2028}".repeat(100_000)),
        json!("- a\n".repeat(50_000)),
        json!("`<`\n\n```\nx\n```\n".repeat(10_000)),
        json!(many),
        json!(calls),
        json!([{ "type": "image", "data": format!("iVBORw0KGgoA{}", "A".repeat(100_000)) }]),
        json!([{ "type": "thinking", "thinking": "a ".repeat(50_000) }]),
    ] {
        for role in ["user", "assistant", "toolResult", "unheard"] {
            let message = json!({ "role": role, "content": content });
            let entry = json!({ "type": "message", "message": message }).to_string();
            for max_bytes in [4096, 10_000, 65_536] {
                let mut out = Vec::new();
                push_entry(
                    &mut out,
                    entry.as_bytes(),
                    &EntryContext::default(),
                    max_bytes,
                );
                assert!(
                    out.len() <= max_bytes + HEAD_BYTES,
                    "{} {max_bytes} {role} {entry:.99}",
                    out.len()
                );
                let rendered: Value = serde_json::from_slice(&out).unwrap();
                let is_cut = |value: &Value| {
                    value.get("truncated").is_some() || value["kind"] == "attachment"
                };
                let blocks = rendered["blocks"].as_array().unwrap();
                let is_told = rendered.get("omittedBlocks").is_some() || blocks.iter().any(is_cut);
                assert!(is_told, "{max_bytes} {role} {entry:.99}");
            }
        }
    }
}

/// A client that shows text must not get half of a surrogate pair, which JSON can carry and UTF-8 cannot.
#[test]
fn lone_surrogates_become_replacement_characters() {
    let entry = br#"{"type":"message","message":{"role":"toolResult","content":"a\ud800b\u0041"}}"#;
    let mut out = Vec::new();
    push_entry(&mut out, entry, &EntryContext::default(), 4096);
    let rendered: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(rendered["blocks"][0]["text"], "a\u{fffd}bA");
}
