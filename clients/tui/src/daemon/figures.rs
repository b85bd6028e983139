//! Texts about the open session: its sums, and what a model sees of it.

use crate::model::document;
use crate::{text, time};
use serde_json::Value;
use std::time::Duration;
use treelined_client::{Client, Error, Message, ModelStats, Tokens};

/// Bytes shown of the context.
const SHOWN: usize = 512 << 10;

/// Columns of the names of sums.
const NAMES: usize = 11;

/// Describes messages, tokens, cost and time.
pub(super) async fn stats(client: &Client) -> Result<String, Error> {
    let stats = client.get_stats().await?;
    let mut lines = Vec::new();
    let mut row = |name: &str, value: String| lines.push(format!("{name:<NAMES$} {value}"));
    let by_role = stats.messages.iter();
    let by_role = by_role.map(|(role, count)| format!("{} {role}", grouped(*count)));
    row("messages", by_role.collect::<Vec<_>>().join(", "));
    row("tool calls", grouped(stats.tool_calls));
    row("tokens", tokens(&stats.tokens));
    // Most tools do not record what an answer has cost.
    row(
        "cost",
        match stats.cost > 0.0 {
            true => format!("{:.4}", stats.cost),
            false => "unknown".to_owned(),
        },
    );
    row(
        "context",
        format!("{} tokens", grouped(stats.context_tokens)),
    );
    let active = Duration::from_millis(stats.active_ms);
    row("active", time::elapsed(active));
    for (name, at) in [("began", &stats.started_at), ("ended", &stats.ended_at)] {
        if let Some(at) = at {
            row(name, time::local(at));
        }
    }
    for (at, model) in stats.models.iter().enumerate() {
        row(if at == 0 { "models" } else { "" }, of_model(model));
    }
    let shown: Vec<String> = lines.iter().map(|line| text::line(line)).collect();
    Ok(shown.join("\n"))
}

fn tokens(tokens: &Tokens) -> String {
    let parts = [
        (tokens.input, "read"),
        (tokens.output, "written"),
        (tokens.cache_read, "from the cache"),
        (tokens.cache_write, "to the cache"),
    ];
    let known = parts.into_iter().filter(|(count, _)| *count > 0);
    let named: Vec<String> = known
        .map(|(count, what)| format!("{} {what}", grouped(count)))
        .collect();
    match named.is_empty() {
        true => "unknown".to_owned(),
        false => named.join(", "),
    }
}

fn of_model(model: &ModelStats) -> String {
    let name = format!("{} {}", model.provider, model.model_id);
    format!("{}, {} messages", name.trim(), grouped(model.messages))
}

/// Separates thousands: `12,345`.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Writes the messages that a model sees, whole, each below its role.
pub(super) async fn context(client: &Client) -> Result<String, Error> {
    let messages = client.get_context().await?.messages.unwrap_or_default();
    let count = messages.len();
    let mut out = match count {
        1 => "1 message".to_owned(),
        _ => format!("{count} messages"),
    };
    for (at, message) in messages.iter().enumerate() {
        if out.len() > SHOWN {
            out.push_str(&format!("\n\n… and {} more", count - at));
            break;
        }
        out.push_str(&of_message(message));
    }
    Ok(out)
}

fn of_message(message: &Message) -> String {
    let value = serde_json::to_value(message).unwrap_or_default();
    let role = value.get("role").and_then(Value::as_str).unwrap_or("?");
    let said = match value.get("content").and_then(Value::as_array) {
        Some(blocks) => blocks
            .iter()
            .filter_map(of_block)
            .collect::<Vec<_>>()
            .join("\n"),
        None => document::plain_text(&value),
    };
    let said: Vec<String> = text::lines(said.trim_end()).collect();
    format!("\n\n── {} ──\n{}", text::line(role), said.join("\n"))
}

/// Returns the text of a block, with calls and images named; `None` for others.
fn of_block(block: &Value) -> Option<String> {
    match block.get("type")?.as_str()? {
        "text" => Some(block.get("text")?.as_str()?.to_owned()),
        "toolCall" => Some(format!("→ {}", document::call(block))),
        "image" => Some("[image]".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn messages_of_the_context_are_whole_with_their_calls() {
        let content = json!([
            {"type": "text", "text": "one\ntwo"},
            {"type": "toolCall", "id": "c", "name": "bash", "arguments": {"command": "ls"}},
            {"type": "image", "mimeType": "image/png", "data": ""},
        ]);
        let message = Message::new("assistant", content);
        assert_eq!(
            of_message(&message),
            "\n\n── assistant ──\none\ntwo\n→ bash(command: ls)\n[image]"
        );
    }

    #[test]
    fn thousands_are_separated() {
        for (count, shown) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(count), shown);
        }
    }
}
