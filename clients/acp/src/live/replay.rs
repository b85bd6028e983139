//! Makes the updates that replay a path, as an agent sends them when it loads a session. Pure.

use serde_json::{Value, json};

/// The updates of an entry. Their `messageId` is the id of the entry, so that the editor can fork there.
pub(crate) fn updates(entry: &Value) -> Vec<Value> {
    let message = entry.get("message").unwrap_or(&Value::Null);
    let role = message.get("role").and_then(Value::as_str);
    let id = entry.get("id").unwrap_or(&Value::Null);
    match role {
        Some("user") => chunks(message, id),
        Some("assistant") => answer(message, id),
        Some("toolResult") => vec![result(message)],
        _ => Vec::new(),
    }
}

fn blocks(message: &Value) -> Vec<Value> {
    match message.get("content") {
        Some(Value::String(text)) => vec![json!({ "type": "text", "text": text })],
        Some(Value::Array(blocks)) => blocks.clone(),
        _ => Vec::new(),
    }
}

fn chunks(message: &Value, id: &Value) -> Vec<Value> {
    let blocks = blocks(message);
    let blocks = blocks.iter().filter_map(shown);
    let chunks = blocks.map(
        |block| json!({ "sessionUpdate": "user_message_chunk", "messageId": id, "content": block }),
    );
    chunks.collect()
}

/// A block of ACP for a text or an image.
fn shown(block: &Value) -> Option<Value> {
    match block.get("type").and_then(Value::as_str)? {
        "text" => Some(json!({ "type": "text", "text": block.get("text")? })),
        "image" => Some(json!({
            "type": "image", "data": block.get("data")?, "mimeType": block.get("mimeType")?,
        })),
        _ => None,
    }
}

fn answer(message: &Value, id: &Value) -> Vec<Value> {
    let update = |block: &Value| {
        let member = |name: &str| block.get(name).unwrap_or(&Value::Null).clone();
        let chunk = |kind: &str, text: Value| {
            let content = json!({ "type": "text", "text": text });
            json!({ "sessionUpdate": kind, "messageId": id, "content": content })
        };
        match block.get("type").and_then(Value::as_str)? {
            "text" => Some(chunk("agent_message_chunk", member("text"))),
            "thinking" => Some(chunk("agent_thought_chunk", member("thinking"))),
            "toolCall" => Some(json!({
                "sessionUpdate": "tool_call", "toolCallId": member("id"), "title": member("name"),
                "status": "pending", "rawInput": member("arguments"),
            })),
            _ => None,
        }
    };
    blocks(message).iter().filter_map(update).collect()
}

fn result(message: &Value) -> Value {
    let is_error = message.get("isError") == Some(&Value::Bool(true));
    let blocks = blocks(message);
    let content = blocks.iter().filter_map(shown);
    let content = content.map(|block| json!({ "type": "content", "content": block }));
    json!({
        "sessionUpdate": "tool_call_update",
        "toolCallId": message.get("toolCallId"),
        "status": if is_error { "failed" } else { "completed" },
        "content": Value::from_iter(content),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_calls_and_results_are_replayed() {
        let entry = |message: Value| json!({ "type": "message", "id": "a", "message": message });
        let user = entry(json!({ "role": "user", "content": "one" }));
        let text = json!({ "type": "text", "text": "one" });
        let chunk =
            json!({ "sessionUpdate": "user_message_chunk", "messageId": "a", "content": text });
        assert_eq!(updates(&user), [chunk]);
        let answer = entry(json!({ "role": "assistant", "content": [
            { "type": "thinking", "thinking": "Hm." }, { "type": "text", "text": "I look." },
            { "type": "toolCall", "id": "c1", "name": "bash", "arguments": { "command": "ls" } } ] }));
        let replayed = updates(&answer);
        let kinds: Vec<_> = replayed
            .iter()
            .map(|update| &update["sessionUpdate"])
            .collect();
        assert_eq!(
            kinds,
            ["agent_thought_chunk", "agent_message_chunk", "tool_call"]
        );
        assert_eq!(replayed[2]["rawInput"]["command"], "ls");
        let result = entry(
            json!({ "role": "toolResult", "toolCallId": "c1", "isError": true,
            "content": [{ "type": "text", "text": "total 0" }, { "type": "other" }] }),
        );
        let replayed = updates(&result);
        assert_eq!(replayed[0]["status"], "failed");
        assert_eq!(replayed[0]["content"][0]["content"]["text"], "total 0");
        assert_eq!(replayed[0]["content"].as_array().unwrap().len(), 1);
        assert!(updates(&json!({ "type": "label", "label": "x" })).is_empty());
    }
}
