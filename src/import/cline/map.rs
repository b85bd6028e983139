//! Makes the entries of a task's nodes.

use super::message::{Block, Listener, Said, block, blocks};
use super::request::usage;
use crate::member::{Body, Node, NodeKind};
use crate::message::{self, Blocks, Object, elements, whole};
use crate::value::{Writer, is_blank, joined, literal};
use treelined_core::json;

/// The entry of a node. Its records are a message or a result, and a message on the screen.
pub(super) fn body(node: &Node, records: &[&[u8]]) -> Body {
    let first = records.first().copied().unwrap_or_default();
    let message = json::get(first, "message").unwrap_or(b"{}");
    let ui = records.get(1).copied();
    let (kind, members) = match &node.kind {
        NodeKind::User => ("message", user(node, message)),
        NodeKind::Assistant => ("message", answer(node, message, ui)),
        NodeKind::ToolResult => ("message", result(node, first)),
        NodeKind::Compaction { .. } => ("compaction", compaction(message, ui)),
        _ => {
            let content = program(message).array();
            (
                "custom_message",
                message::scaffolding("cline.message", &content, true),
            )
        }
    };
    Body { kind, members }
}

fn user(node: &Node, message: &[u8]) -> Vec<u8> {
    let (mut content, mut listener) = (Blocks::default(), Listener::default());
    for block in blocks(message) {
        match block {
            Block::Text(literal) => {
                for said in listener.hear(literal).into_iter().flatten() {
                    if let Said::User(words) = said {
                        content.text(&[b"\"", words, b"\""].concat());
                    }
                }
            }
            Block::Image { data, mime } => content.image(data, mime),
            Block::Other(block) => content.other(block),
            _ => {}
        }
    }
    message::user(&content.array(), node.time)
}

/// The texts of the program in a message of the user.
fn program(message: &[u8]) -> Blocks {
    let (mut content, mut listener) = (Blocks::default(), Listener::default());
    for block in blocks(message) {
        let Block::Text(literal) = block else {
            continue;
        };
        for said in listener.hear(literal).into_iter().flatten() {
            if let Said::Program(literal) = said {
                content.text(literal);
            }
        }
    }
    content
}

fn answer(node: &Node, message: &[u8], ui: Option<&[u8]>) -> Vec<u8> {
    let (mut content, mut calls) = (Blocks::default(), 0);
    for block in blocks(message) {
        match block {
            Block::Text(literal) => content.text(literal),
            Block::Thought { said, signature } => content.thinking(said, signature),
            Block::Hidden(data) => content.hidden_thinking(data),
            Block::Image { data, mime } => content.image(data, mime),
            Block::Call { id, name, input } => {
                let id = literal(id).filter(|id| *id != b"\"\"");
                let id = id.map_or_else(|| json::quoted(&format!("#{calls}")), <[u8]>::to_vec);
                let name = literal(name).unwrap_or(b"\"unknown\"");
                content.call(&id, name, input.filter(|input| *input != b"null"));
                calls += 1;
            }
            Block::Result | Block::Plain(_) => {}
            Block::Other(block) => content.other(block),
        }
    }
    let info = json::get(message, "modelInfo");
    let info = info.or_else(|| json::get_path(ui?, &["ui", "modelInfo"]));
    let names = ["modelId", "id", "providerId", "provider"];
    let [model, id, provider, other] = json::get_each(info.unwrap_or(b"{}"), names);
    let noted = node.note.as_deref().map(json::quoted);
    let model = literal(model).or(literal(id)).or(noted.as_deref());
    let provider = literal(provider).or(literal(other));
    let mut out = Writer::default();
    out.open_message("assistant");
    out.member("content", &content.array());
    out.text("api", "anthropic-messages");
    out.member("provider", provider.unwrap_or(b"\"unknown\""));
    out.member("model", model.unwrap_or(b"\"unknown\""));
    usage(message, ui).write(&mut out);
    out.text("stopReason", if calls > 0 { "toolUse" } else { "stop" });
    out.close_message(node.time);
    out.0
}

/// The result of a call. The note has the name of the tool and the id of the call.
fn result(node: &Node, block: &[u8]) -> Vec<u8> {
    let note = node.note.as_deref().and_then(|note| note.split_once('\n'));
    let (name, call) = note.unwrap_or_default();
    let [content, is_error] = json::get_each(block, ["content", "is_error"]);
    let content = content.unwrap_or(b"null");
    let mut said = Blocks::default();
    if let Some(words) = literal(Some(content)).filter(|words| !is_blank(words)) {
        said.text(words);
    }
    let mut has_failed = is_error == Some(b"true");
    for part in elements(content) {
        has_failed |= json::get(part, "success") == Some(b"false");
        push_output(&mut said, part);
    }
    message::tool_result(&json::quoted(call), name, &said, has_failed, node.time)
}

/// Adds a part of an output: a text, an image, or the result of one of several commands.
fn push_output(said: &mut Blocks, part: &[u8]) {
    match block(part) {
        Some(Block::Text(literal)) => said.text(literal),
        Some(Block::Image { data, mime }) => said.image(data, mime),
        Some(Block::Other(other) | Block::Plain(other)) => {
            match literal(json::get(other, "result")) {
                Some(result) => said.text(result),
                None => said.text(&json::quoted(&String::from_utf8_lossy(other))),
            }
        }
        _ => {}
    }
}

/// The entry of a summary that replaces the messages before it.
fn compaction(message: &[u8], ui: Option<&[u8]>) -> Vec<u8> {
    let texts = blocks(message).filter_map(|block| match block {
        Block::Text(literal) => Some(literal),
        _ => None,
    });
    let names = ["ui", "contextCondense", "prevContextTokens"];
    let before = whole(ui.and_then(|ui| json::get_path(ui, &names)));
    let mut out = Vec::new();
    let mut object = Object::after(&mut out);
    object.raw("summary", &joined(texts));
    object.raw("tokensBefore", before.to_string().as_bytes());
    out
}
