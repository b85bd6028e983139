//! Makes the entries of a chat's nodes.

use super::message::{Part, call_id, parts};
use crate::member::{Body, Node, NodeKind};
use crate::message::{self, Blocks, ModelMessage, Object, Usage, elements, whole};
use crate::value::{is_blank, joined, literal, text};
use treelined_core::json;

/// The entry of a node. A node has one record.
pub(super) fn body(node: &Node, records: &[&[u8]]) -> Body {
    let record = records.first().copied().unwrap_or_default();
    let message = json::get(record, "message");
    let (kind, members) = match &node.kind {
        NodeKind::User => (
            "message",
            message::user(&blocks(message).array(), node.time),
        ),
        NodeKind::Assistant => ("message", answer(node, record)),
        NodeKind::ToolResult => ("message", result(node, record)),
        NodeKind::Scaffolding => {
            let content = blocks(message).array();
            (
                "custom_message",
                message::scaffolding("qwen.notification", &content, true),
            )
        }
        NodeKind::Compaction { .. } => ("compaction", compaction(record)),
        _ => ("custom", message::duplicate(record)),
    };
    Body { kind, members }
}

/// The blocks of a message: texts, thoughts and images.
fn blocks(message: Option<&[u8]>) -> Blocks {
    let mut blocks = Blocks::default();
    for part in parts(message) {
        push(&mut blocks, part);
    }
    blocks
}

fn push(blocks: &mut Blocks, part: Part<'_>) {
    match part {
        Part::Text(raw) if !is_blank(raw) => blocks.text(raw),
        Part::Thought(raw) if !is_blank(raw) => blocks.thinking(raw, None),
        Part::Image { data, mime } => blocks.image(data, mime),
        _ => {}
    }
}

fn answer(node: &Node, record: &[u8]) -> Vec<u8> {
    let [message, model, usage] = json::get_each(record, ["message", "model", "usageMetadata"]);
    let (mut content, mut calls) = (Blocks::default(), 0);
    for part in parts(message) {
        match part {
            Part::Call {
                id,
                name,
                arguments,
            } => {
                let id = json::quoted(&call_id(id, calls));
                content.call(&id, literal(name).unwrap_or(b"\"unknown\""), arguments);
                calls += 1;
            }
            part => push(&mut content, part),
        }
    }
    ModelMessage {
        api: "google-generative-ai",
        provider: "qwen",
        model: literal(model),
        content,
        usage: usage.map(tokens).unwrap_or_default(),
        stop_reason: if calls > 0 { "toolUse" } else { "stop" },
        error: None,
        time: node.time,
    }
    .member()
}

fn tokens(usage: &[u8]) -> Usage {
    let names = [
        "promptTokenCount",
        "candidatesTokenCount",
        "thoughtsTokenCount",
        "cachedContentTokenCount",
    ];
    let [input, output, thoughts, cached] = json::get_each(usage, names).map(whole);
    Usage {
        input: input.saturating_sub(cached),
        output: output.saturating_add(thoughts),
        cache_read: cached,
        cache_write: 0,
    }
}

/// The result of the call whose id is in the note.
fn result(node: &Node, record: &[u8]) -> Vec<u8> {
    let wanted = node.note.as_deref().unwrap_or_default();
    let [message, outcome] = json::get_each(record, ["message", "toolCallResult"]);
    let results = parts(message).filter_map(|part| match part {
        Part::Result { id, name, response } => Some((id, name, response)),
        _ => None,
    });
    let mut numbered = results.enumerate();
    let found = numbered.find(|(number, (id, ..))| call_id(*id, *number) == wanted);
    let (name, response) = found.map_or((None, None), |(_, (_, name, response))| (name, response));
    let response = response.unwrap_or(b"{}");
    let [output, error] = json::get_each(response, ["output", "error"]);
    let mut content = Blocks::default();
    match literal(output).or(literal(error)) {
        Some(said) => content.text(said),
        None if response == b"{}" => {}
        None => content.text(&json::quoted(&String::from_utf8_lossy(response))),
    }
    for part in parts(message).filter(|part| !matches!(part, Part::Text(_))) {
        push(&mut content, part);
    }
    let status = outcome.and_then(|outcome| json::get(outcome, "status"));
    let has_failed = matches!(text(status).as_deref(), Some("error" | "cancelled"));
    let is_error = has_failed || error.is_some();
    let name = text(name).unwrap_or_default();
    message::tool_result(&json::quoted(wanted), &name, &content, is_error, node.time)
}

/// The entry of a compression. Its summary is the first message of the history that it keeps.
fn compaction(record: &[u8]) -> Vec<u8> {
    let history = json::get_path(record, &["systemPayload", "compressedHistory"]);
    let first = history.and_then(|history| elements(history).next());
    let texts = parts(first).filter_map(|part| match part {
        Part::Text(raw) => Some(raw),
        _ => None,
    });
    let summary = joined(texts);
    let info = ["systemPayload", "info", "originalTokenCount"];
    let before = whole(json::get_path(record, &info));
    let mut out = Vec::new();
    let mut object = Object::after(&mut out);
    object.raw("summary", &summary);
    object.raw("tokensBefore", before.to_string().as_bytes());
    out
}
