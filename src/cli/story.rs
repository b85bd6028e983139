//! The conversation of `treelined demo`, as params of the calls.

use serde_json::{Value, json};

pub(super) fn handshake() -> Value {
    json!({
        "protocolVersion": 1,
        "clientInfo": { "name": "treelined demo", "version": env!("CARGO_PKG_VERSION") },
        "capabilities": { "answers": { "session_before_tree": {} } },
    })
}

pub(super) fn session() -> Value {
    json!({ "cwd": "/home/you/importer", "name": "A faster import" })
}

/// The first attempt, up to its failure.
pub(super) fn first_attempt() -> Value {
    json!({ "entries": [
        user("e1", "The import takes 40 s for 10,000 rows. Make it faster."),
        assistant("e2", "I will look at it first.", call("c1", "read", json!({ "path": "src/import.rs" }))),
        result("e3", "c1", "read", "for row in rows { db.insert(row)?; }", false),
        assistant("e4", "Every row is a transaction. Two ways: COPY, or batches.", Value::Null),
        user("e5", "Try COPY."),
        assistant("e6", "Writing the rows as a COPY stream.",
            call("c2", "edit", json!({ "path": "src/import.rs" }))),
        result("e7", "c2", "edit", "1 file changed", false),
        assistant("e8", "", call("c3", "bash", json!({ "command": "cargo test" }))),
        result("e9", "c3", "bash", "3 tests failed: NULL came back as an empty string", true),
        assistant("e10", "2 s, but COPY turns NULL into empty strings. It needs an encoder.", Value::Null),
    ]})
}

/// A navigation back to the answer that named both solutions.
pub(super) fn back() -> Value {
    json!({ "targetId": "e4", "summarize": true })
}

/// The answer of the client, which labels the summary. A client could also send its own summary, or
/// `cancel`.
pub(super) fn answer() -> Value {
    json!({ "label": "COPY: fails" })
}

pub(super) fn second_attempt() -> Value {
    json!({ "entries": [
        user("e11", "Then batches, and keep the NULLs."),
        assistant("e12", "500 rows a transaction: 3 s, and all tests pass.", Value::Null),
    ]})
}

fn user(id: &str, text: &str) -> Value {
    message(id, json!({ "role": "user", "content": text }))
}

/// A message with text, a tool call, or both.
fn assistant(id: &str, text: &str, call: Value) -> Value {
    let mut content = Vec::new();
    if !text.is_empty() {
        content.push(json!({ "type": "text", "text": text }));
    }
    if !call.is_null() {
        content.push(call);
    }
    message(id, json!({ "role": "assistant", "content": content }))
}

fn call(id: &str, name: &str, arguments: Value) -> Value {
    json!({ "type": "toolCall", "id": id, "name": name, "arguments": arguments })
}

fn result(id: &str, call: &str, name: &str, text: &str, is_error: bool) -> Value {
    let content = json!([{ "type": "text", "text": text }]);
    message(
        id,
        json!({ "role": "toolResult", "toolCallId": call, "toolName": name, "content": content, "isError": is_error }),
    )
}

fn message(id: &str, message: Value) -> Value {
    json!({ "type": "message", "id": id, "message": message })
}
