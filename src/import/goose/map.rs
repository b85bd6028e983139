//! Makes the entries of goose's messages.

use super::super::member::{Body, Node, NodeKind};
use super::super::value::{Usage, Value, Writer, count, is_blank, joined, literal, number};
use super::record::{self, Block, Item, Message};
use treelined_core::json::{self, Elements};

/// The entry of a node.
pub(super) fn body(node: &Node, records: &[&[u8]]) -> Body {
    let messages: Vec<Message<'_>> = records
        .iter()
        .filter_map(|record| message(record))
        .collect();
    let blocks: Vec<Block<'_>> = messages.iter().flat_map(Message::blocks).collect();
    let mut out = Writer::default();
    let kind = match &node.kind {
        NodeKind::User => {
            user(&mut out, node, &blocks);
            "message"
        }
        NodeKind::Assistant => {
            answer(&mut out, node, &messages, &blocks);
            "message"
        }
        NodeKind::ToolResult => {
            result(&mut out, node, &blocks);
            "message"
        }
        NodeKind::Scaffolding => {
            out.text("customType", "goose.context");
            out.member("content", &texts(&blocks));
            out.member("display", b"false");
            "custom_message"
        }
        NodeKind::Compaction { .. } => {
            out.member("summary", &texts(&blocks));
            out.number("tokensBefore", 0);
            "compaction"
        }
        NodeKind::Custom | NodeKind::ModelChange | NodeKind::Subagent { .. } => {
            out.text("customType", "goose.notice");
            let content = messages.first().map(|message| message.content.raw());
            out.open(Some("data"), b'{');
            out.optional("content", content);
            out.close(b'}');
            "custom"
        }
    };
    Body {
        kind,
        members: out.0,
    }
}

fn message(record: &[u8]) -> Option<Message<'_>> {
    match record::read(record)? {
        Item::Message(message) => Some(message),
        Item::Session(_) | Item::Other(_) => None,
    }
}

/// All texts, as one string literal.
fn texts(blocks: &[Block<'_>]) -> Vec<u8> {
    joined(blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(*text),
        _ => None,
    }))
}

/// Writes a block of a kind that messages of every role may have.
fn content(out: &mut Writer, block: &Block<'_>) {
    match block {
        Block::Text(text) if !is_blank(text) => out.block("text", "text", text),
        Block::Image { data, mime } => out.image(data, mime),
        _ => {}
    }
}

fn user(out: &mut Writer, node: &Node, blocks: &[Block<'_>]) {
    out.open_message("user");
    out.open(Some("content"), b'[');
    blocks.iter().for_each(|block| content(out, block));
    out.close(b']');
    out.close_message(node.time);
}

fn answer(out: &mut Writer, node: &Node, messages: &[Message<'_>], blocks: &[Block<'_>]) {
    out.open_message("assistant");
    out.open(Some("content"), b'[');
    for block in blocks {
        match block {
            Block::Thinking { text, signature } => {
                out.open(None, b'{');
                out.text("type", "thinking");
                out.member("thinking", text);
                out.optional("thinkingSignature", *signature);
                out.close(b'}');
            }
            Block::Call { id, value, error } => {
                let [name, arguments] =
                    json::get_each(value.unwrap_or_default(), ["name", "arguments"]);
                let name = literal(name).unwrap_or(b"\"unknown\"");
                // If goose could not parse the call, the error of goose replaces the arguments.
                out.call(id, name, arguments.or(*error));
            }
            block => content(out, block),
        }
    }
    out.close(b']');
    model(out, node, messages);
    let metadata = messages
        .iter()
        .rev()
        .filter_map(|message| message.metadata.as_ref());
    if let Some(usage) = metadata.filter_map(usage).next() {
        usage.write(out);
    }
    let has_calls = blocks
        .iter()
        .any(|block| matches!(block, Block::Call { .. }));
    out.text("stopReason", if has_calls { "toolUse" } else { "stop" });
    out.close_message(node.time);
}

/// Writes the model of the message. If the message has none, the note has the session's model.
fn model(out: &mut Writer, node: &Node, messages: &[Message<'_>]) {
    let mut metadata = messages
        .iter()
        .filter_map(|message| message.metadata.as_ref());
    if let Some(inference) = metadata.find_map(|metadata| metadata.get("inference")) {
        let [provider, model, requested] =
            json::get_each(inference, ["provider", "model", "requestedModel"]);
        out.optional("provider", literal(provider));
        out.optional("model", literal(model).or(literal(requested)));
    } else if let Some(note) = node.note.as_deref() {
        let mut both = elements(note.as_bytes());
        out.optional("provider", literal(both.next()));
        out.optional("model", literal(both.next()));
    }
}

fn usage(metadata: &Value<'_>) -> Option<Usage> {
    let names = [
        "inputTokens",
        "outputTokens",
        "totalTokens",
        "cacheReadTokens",
        "cacheWriteTokens",
        "cost",
    ];
    let [input, output, total, read, write, cost] = json::get_each(metadata.get("usage")?, names);
    Some(Usage {
        input: count(input)?,
        output: count(output)?,
        cache_read: count(read).unwrap_or(0),
        cache_write: count(write).unwrap_or(0),
        total: count(total),
        cost: number(cost),
    })
}

/// Writes the result of the call whose id and tool are in the note.
fn result(out: &mut Writer, node: &Node, blocks: &[Block<'_>]) {
    let mut note = elements(node.note.as_deref().unwrap_or_default().as_bytes());
    let (call, tool) = (note.next().unwrap_or(b"\"\""), note.next());
    let named = json::string(call);
    let found = blocks.iter().find_map(|block| match block {
        Block::Result { id, value, error } if json::id(id) == named => Some((*id, *value, *error)),
        _ => None,
    });
    let (id, value, error) = found.unwrap_or((call, None, None));
    out.open_message("toolResult");
    out.member("toolCallId", id);
    out.optional("toolName", literal(tool).filter(|tool| !is_blank(tool)));
    out.open(Some("content"), b'[');
    let [items, failed] = json::get_each(value.unwrap_or_default(), ["content", "isError"]);
    // Older versions store the content directly as the value.
    for item in elements(items.or(value).unwrap_or_default()) {
        let [text, data, mime, resource] =
            json::get_each(item, ["text", "data", "mimeType", "resource"]);
        let resource = resource.and_then(|resource| json::get(resource, "text"));
        if let Some(text) = literal(text).or(literal(resource)) {
            out.block("text", "text", text);
        } else if let Some((data, mime)) = literal(data).zip(literal(mime)) {
            out.image(data, mime);
        }
    }
    if let Some(error) = literal(error) {
        out.block("text", "text", error);
    }
    out.close(b']');
    let is_error = error.is_some() || failed == Some(b"true");
    out.member("isError", if is_error { b"true" } else { b"false" });
    out.close_message(node.time);
}

fn elements(array: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut elements = Elements::open(array, 0).ok();
    std::iter::from_fn(move || array.get(elements.as_mut()?.next_value().ok()??))
}
