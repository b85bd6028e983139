//! Makes the entries of a conversation's nodes.

use super::reader::{call_id, short};
use crate::member::{Body, Node, NodeKind};
use crate::message::{self, Blocks, ModelMessage, Usage, elements};
use crate::value::{is_blank, joined, literal, text};
use treelined_core::json;

/// The entry of a node. Its records are a message, or some blocks of an answer.
pub(super) fn body(node: &Node, records: &[&[u8]]) -> Body {
    let first = records.first().copied().unwrap_or_default();
    let (kind, members) = match &node.kind {
        NodeKind::User => ("message", user(node, first)),
        NodeKind::Assistant => ("message", answer(node, records)),
        NodeKind::ToolResult => ("message", result(node, first)),
        _ => {
            let [sender, name] = json::get_each(first, ["sender", "name"]);
            let (custom_type, content) = match (sender, name) {
                (None, Some(_)) => ("claude-ai.tool", output(first)),
                _ => ("claude-ai.message", words(first)),
            };
            let content = content.array();
            (
                "custom_message",
                message::scaffolding(custom_type, &content, true),
            )
        }
    };
    Body { kind, members }
}

/// The content of a message: the texts of its blocks, and then the names of its files. If no block has a text, the
/// member `text` is used.
fn words(message: &[u8]) -> Blocks {
    let names = ["content", "text", "attachments", "files"];
    let [content, said, attachments, files] = json::get_each(message, names);
    let mut blocks = Blocks::default();
    for block in content.into_iter().flat_map(elements) {
        add_words(&mut blocks, block);
    }
    if let (true, Some(said)) = (
        blocks.is_empty(),
        literal(said).filter(|said| !is_blank(said)),
    ) {
        blocks.text(said);
    }
    for file in attachments.into_iter().flat_map(elements) {
        let [name, content] = json::get_each(file, ["file_name", "extracted_content"]);
        let name = named(name);
        match literal(content).filter(|content| !is_blank(content)) {
            Some(content) => blocks.text(&joined([&*name, content])),
            None => blocks.text(&name),
        }
    }
    for file in files.into_iter().flat_map(elements) {
        blocks.text(&named(json::get(file, "file_name")));
    }
    blocks
}

/// The text that names a file, as a raw string.
fn named(name: Option<&[u8]>) -> Vec<u8> {
    let name = text(name).unwrap_or_default();
    json::quoted(&format!("[file: {name}]"))
}

fn add_words(blocks: &mut Blocks, block: &[u8]) {
    let [said, thought, signature] = json::get_each(block, ["text", "thinking", "signature"]);
    let words = |raw| literal(raw).filter(|raw| !is_blank(raw));
    if let Some(thought) = words(thought) {
        blocks.thinking(thought, literal(signature));
    } else if let Some(said) = words(said) {
        blocks.text(said);
    }
}

fn user(node: &Node, message: &[u8]) -> Vec<u8> {
    message::user(&words(message).array(), node.time)
}

fn answer(node: &Node, records: &[&[u8]]) -> Vec<u8> {
    let note = node.note.as_deref().and_then(|note| note.rsplit_once(':'));
    let (id, first) = note.unwrap_or(("", "0"));
    let first: usize = first.parse().unwrap_or_default();
    let (mut content, mut has_calls) = (Blocks::default(), false);
    if node.note.is_none() {
        content = records
            .first()
            .map(|message| words(message))
            .unwrap_or_default();
    }
    for (number, block) in records.iter().enumerate().filter(|_| node.note.is_some()) {
        let [kind, own, name, input] = json::get_each(block, ["type", "id", "name", "input"]);
        if text(kind).as_deref() != Some("tool_use") {
            add_words(&mut content, block);
            continue;
        }
        let own = text(own).filter(|own| !own.is_empty());
        let call = match &own {
            Some(own) => short(own).into_owned(),
            None => call_id(id, first + number),
        };
        let name = literal(name).unwrap_or(b"\"unknown\"");
        content.call(
            &json::quoted(&call),
            name,
            input.filter(|input| *input != b"null"),
        );
        has_calls = true;
    }
    ModelMessage {
        api: "anthropic-messages",
        provider: "anthropic",
        model: None,
        content,
        usage: Usage::default(),
        stop_reason: if has_calls { "toolUse" } else { "stop" },
        error: None,
        time: node.time,
    }
    .member()
}

/// The blocks of a tool's output.
fn output(block: &[u8]) -> Blocks {
    let mut blocks = Blocks::default();
    let content = json::get(block, "content").unwrap_or_default();
    if let Some(said) = literal(Some(content)) {
        blocks.text(said);
    }
    for part in elements(content) {
        match literal(json::get(part, "text")) {
            Some(said) => blocks.text(said),
            None => {
                let kind = text(json::get(part, "type")).unwrap_or_default();
                blocks.text(&json::quoted(&format!("[{kind}]")));
            }
        }
    }
    blocks
}

fn result(node: &Node, block: &[u8]) -> Vec<u8> {
    let [name, is_error] = json::get_each(block, ["name", "is_error"]);
    let call = json::quoted(node.note.as_deref().unwrap_or_default());
    let tool = text(name).unwrap_or_default();
    let is_error = is_error == Some(b"true");
    message::tool_result(&call, &tool, &output(block), is_error, node.time)
}
