//! Makes the entries of a conversation's nodes.

use super::message::{MappedNode, Message, Text};
use super::reader::REPEATED;
use crate::member::{Body, Node, NodeKind};
use crate::message::{self, Blocks, ModelMessage, Object, Usage, literal};
use crate::value::{is_blank, joined, text};
use treelined_core::json;

/// The deepest nesting of content that is copied unchanged.
const DEEPEST: usize = 200;

/// The entry of a node. Its single record is a node of `mapping`.
pub(super) fn body(node: &Node, records: &[&[u8]]) -> Body {
    let record = records.first().copied().unwrap_or_default();
    let message = MappedNode::read(record).message;
    let message = message.unwrap_or_else(|| Message::read(b"{}"));
    let (kind, members) = match &node.kind {
        NodeKind::User => ("message", user(node, &message)),
        NodeKind::Assistant => ("message", answer(node, &message)),
        NodeKind::ToolResult => ("message", result(node, &message)),
        NodeKind::Scaffolding => {
            let is_tool = message.role() == "tool";
            let kind = if is_tool {
                "chatgpt.tool"
            } else {
                "chatgpt.context"
            };
            let content = blocks(&message).array();
            (
                "custom_message",
                message::scaffolding(kind, &content, is_tool),
            )
        }
        _ if node.note.as_deref() == Some(REPEATED) => ("custom", message::duplicate(record)),
        _ => ("custom", notice(&message)),
    };
    Body { kind, members }
}

/// The blocks of a message.
fn blocks(message: &Message<'_>) -> Blocks {
    let mut blocks = Blocks::default();
    for text in message.texts() {
        match &text {
            text if is_blank(text.raw()) => {}
            Text::Thought(raw) => blocks.thinking(raw, None),
            text => blocks.text(text.raw()),
        }
    }
    blocks
}

fn user(node: &Node, message: &Message<'_>) -> Vec<u8> {
    let mut blocks = blocks(message);
    for name in message.attachments() {
        let name = text(Some(name)).unwrap_or_default();
        blocks.text(&json::quoted(&format!("[file: {name}]")));
    }
    message::user(&blocks.array(), node.time)
}

fn answer(node: &Node, message: &Message<'_>) -> Vec<u8> {
    let recipient = message.recipient();
    let content = match &recipient {
        Some(tool) => {
            let mut blocks = Blocks::default();
            let arguments = arguments(message);
            blocks.call(
                &json::quoted(&node.key),
                &json::quoted(tool),
                Some(&arguments),
            );
            blocks
        }
        None => blocks(message),
    };
    let known = node.note.as_deref().map(json::quoted);
    let finish = message.metadata("finish_details");
    let finish = text(finish.and_then(|finish| json::get(finish, "type")));
    ModelMessage {
        api: "chatgpt",
        provider: "openai",
        model: literal(message.metadata("model_slug")).or(known.as_deref()),
        content,
        usage: Usage::default(),
        stop_reason: match (recipient.is_some(), finish.as_deref()) {
            (true, _) => "toolUse",
            (false, Some("interrupted")) => "aborted",
            (false, Some("max_tokens")) => "length",
            (false, _) => "stop",
        },
        error: None,
        time: node.time,
    }
    .member()
}

/// The arguments of a call: an object is copied, any other text becomes the member `input`.
fn arguments(message: &Message<'_>) -> Vec<u8> {
    let texts = message.texts();
    let input = joined(texts.iter().map(Text::raw));
    let said = json::string(&input).unwrap_or_default();
    let is_object = |raw: &[u8]| {
        let whole = json::value_span(raw).is_ok();
        whole && raw.starts_with(b"{") && json::depth(raw) <= DEEPEST
    };
    let raw = said.trim().as_bytes();
    match is_object(raw) {
        true => raw.to_vec(),
        false => [b"{\"input\":", &*input, b"}"].concat(),
    }
}

fn result(node: &Node, message: &Message<'_>) -> Vec<u8> {
    let call = json::quoted(node.note.as_deref().unwrap_or_default());
    let tool = message.tool().unwrap_or_default();
    let is_error = message.kind() == "system_error";
    message::tool_result(&call, &tool, &blocks(message), is_error, node.time)
}

fn notice(message: &Message<'_>) -> Vec<u8> {
    let content = message.content.filter(|raw| json::depth(raw) <= DEEPEST);
    let mut data = b"{".to_vec();
    let mut object = Object::new(&mut data);
    object.text("role", &message.role());
    if let Some(content) = content {
        object.raw("content", content);
    }
    data.push(b'}');
    let mut out = Vec::with_capacity(data.len() + 64);
    let mut object = Object::after(&mut out);
    object.text("customType", "chatgpt.notice");
    object.raw("data", &data);
    out
}
