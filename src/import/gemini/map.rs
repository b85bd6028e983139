//! Makes the entries of nodes:
//!
//! | Gemini CLI | entry |
//! |---|---|
//! | `user` | `message`, role `user`; `<session_context>` and hooks: `custom_message`, hidden |
//! | `gemini` (`model`) | `message`, role `assistant`: each member of the last record that has it |
//! | `thoughts` | block `thinking`: subject and description |
//! | `content`: text or parts `text`, `inlineData` | blocks `text`, `image` |
//! | `toolCalls`, parts `functionCall` | blocks `toolCall` |
//! | `result` of a call, or parts `functionResponse` | `message`, role `toolResult`: `response.output`, or all of `response` |
//! | `status` `error`, `cancelled` | `isError` |
//! | `tokens` `input` − `cached`, `output` + `thoughts`, `cached` | `usage` `input`, `output`, `cacheRead` |
//! | the first new message of a compression | `compaction` |
//! | `info`, `error`, `warning` | `custom` `gemini.<type>` |

use super::message::{Call, Fields, call_key, response};
use crate::member::{Body, Node, NodeKind};
use crate::message::{self, Blocks, ModelMessage, Object, Usage, elements, literal, whole};
use std::collections::HashSet;
use treelined_core::json;

pub(super) fn body(node: &Node, records: &[&[u8]]) -> Body {
    let fields: Vec<Fields<'_>> = records.iter().map(|raw| Fields::read(raw)).collect();
    let first = fields.last().copied().unwrap_or_default();
    match &node.kind {
        NodeKind::Assistant => Body {
            kind: "message",
            members: assistant(node, &fields),
        },
        NodeKind::ToolResult => Body {
            kind: "message",
            members: tool_result(node, &first),
        },
        NodeKind::User => Body {
            kind: "message",
            members: message::user(&user_content(&first), node.time),
        },
        NodeKind::Scaffolding => Body {
            kind: "custom_message",
            members: message::scaffolding("gemini.context", &user_content(&first), false),
        },
        NodeKind::Compaction { .. } => Body {
            kind: "compaction",
            members: compaction(node, &first),
        },
        NodeKind::Subagent { .. } => Body {
            kind: "custom",
            members: br#","customType":"subagent""#.to_vec(),
        },
        NodeKind::Custom | NodeKind::ModelChange => Body {
            kind: "custom",
            members: event(&first),
        },
    }
}

fn assistant(node: &Node, records: &[Fields<'_>]) -> Vec<u8> {
    let mut all = Fields::default();
    for fields in records {
        let is_said = |raw: &&[u8]| !matches!(*raw, b"\"\"" | b"[]" | b"null");
        all.content = fields.content.filter(is_said).or(all.content);
        all.thoughts = fields.thoughts.filter(is_said).or(all.thoughts);
        all.tokens = fields.tokens.filter(is_said).or(all.tokens);
        all.calls = fields.calls.filter(is_said).or(all.calls);
        all.model = fields.model.or(all.model);
    }
    let mut content = Blocks::default();
    for thought in all.thoughts.into_iter().flat_map(elements) {
        push_thought(&mut content, thought);
    }
    push_content(&mut content, &all);
    let mut named = HashSet::new();
    let mut has_call = false;
    for (index, call) in all.calls().enumerate() {
        let key = call_key(call.id, index);
        let id = json::quoted(&key);
        if named.insert(key) {
            has_call = true;
            let name = call.name.unwrap_or(b"\"\"");
            content.call(call.id.unwrap_or(&id), name, call.arguments);
        }
    }
    ModelMessage {
        api: "google-generative-ai",
        provider: "google",
        model: all.model,
        content,
        usage: all.tokens.map(usage).unwrap_or_default(),
        stop_reason: if has_call { "toolUse" } else { "stop" },
        error: None,
        time: node.time,
    }
    .member()
}

fn push_thought(out: &mut Blocks, thought: &[u8]) {
    let [subject, description] = json::get_each(thought, ["subject", "description"]);
    match (literal(subject), literal(description)) {
        (Some(subject), Some(description)) => {
            let subject = subject.strip_suffix(b"\"").unwrap_or_default();
            let description = description.strip_prefix(b"\"").unwrap_or_default();
            out.thinking(&[subject, b"\\n", description].concat(), None);
        }
        (text, other) => text
            .or(other)
            .into_iter()
            .for_each(|text| out.thinking(text, None)),
    }
}

/// Appends the blocks for texts and images.
fn push_content(out: &mut Blocks, fields: &Fields<'_>) {
    if let Some(text) = literal(fields.content).filter(|text| *text != b"\"\"") {
        out.text(text);
    }
    for part in fields.parts() {
        push_part(out, part);
    }
}

fn push_part(out: &mut Blocks, part: &[u8]) {
    if part.starts_with(b"\"") {
        return out.text(part);
    }
    let [text, thought, data] = json::get_each(part, ["text", "thought", "inlineData"]);
    match literal(text) {
        Some(text) if thought == Some(b"true") => out.thinking(text, None),
        Some(text) => out.text(text),
        None => {}
    }
    let [mime_type, data] = json::get_each(data.unwrap_or(b"{}"), ["mimeType", "data"]);
    if let (Some(mime_type), Some(data)) = (literal(mime_type), literal(data))
        && mime_type.starts_with(b"\"image/")
    {
        out.image(data, mime_type);
    }
}

/// The content of a user's message. A raw string is copied; other content becomes blocks.
fn user_content(fields: &Fields<'_>) -> Vec<u8> {
    if let Some(text) = literal(fields.content) {
        return text.to_vec();
    }
    let mut blocks = Blocks::default();
    push_content(&mut blocks, fields);
    blocks.array()
}

fn usage(tokens: &[u8]) -> Usage {
    let names = ["input", "output", "cached", "thoughts"];
    let [input, output, cached, thoughts] = json::get_each(tokens, names).map(whole);
    Usage {
        input: input.saturating_sub(cached),
        output: output.saturating_add(thoughts),
        cache_read: cached,
        cache_write: 0,
    }
}

/// The note of a result's node. It has the index of the call in `toolCalls`, or the index of the part with the
/// response.
pub(super) fn result_note(is_listed: bool, index: usize) -> Box<str> {
    let list = if is_listed { 'c' } else { 'p' };
    format!("{list}{index}").into()
}

fn tool_result(node: &Node, fields: &Fields<'_>) -> Vec<u8> {
    let note = node.note.as_deref().unwrap_or_default();
    let (list, index) = note.split_at_checked(1).unwrap_or_default();
    let index: usize = index.parse().unwrap_or(usize::MAX);
    let mut content = Blocks::default();
    if list == "c" {
        let mut calls = fields.calls.into_iter().flat_map(elements);
        let call = Call::listed(calls.nth(index).unwrap_or(b"{}"));
        push_result(&mut content, call.result.unwrap_or(b"[]"));
        if content.is_empty()
            && let Some(display) = call.display
        {
            content.text(display);
        }
        let id = json::quoted(&call_key(call.id, index));
        let name = call.name.and_then(json::string).unwrap_or_default();
        let id = call.id.unwrap_or(&id);
        return message::tool_result(id, &name, &content, call.has_failed(), node.time);
    }
    let part = fields.parts().nth(index).unwrap_or(b"{}");
    push_result(&mut content, part);
    let [id, name, answer] =
        json::get_each(response(part).unwrap_or(b"{}"), ["id", "name", "response"]);
    let name = literal(name).and_then(json::string).unwrap_or_default();
    let id = literal(id).unwrap_or(b"\"\"");
    let is_error = answer.is_some_and(|raw| json::get(raw, "error").is_some());
    message::tool_result(id, &name, &content, is_error, node.time)
}

/// Appends the blocks of a result, which is a text, a part, or an array of parts.
fn push_result(out: &mut Blocks, result: &[u8]) {
    match result.first() {
        Some(b'"') => out.text(result),
        Some(b'[') => elements(result).for_each(|part| push_answer(out, part)),
        _ => push_answer(out, result),
    }
}

fn push_answer(out: &mut Blocks, part: &[u8]) {
    let Some(response) = response(part) else {
        return push_part(out, part);
    };
    let [answer, parts] = json::get_each(response, ["response", "parts"]);
    let answer = answer.unwrap_or(b"{}");
    let [output, error] = json::get_each(answer, ["output", "error"]);
    match literal(output).or(literal(error)) {
        Some(text) => out.text(text),
        None if answer == b"{}" => {}
        None => out.text(&json::quoted(&String::from_utf8_lossy(answer))),
    }
    parts
        .into_iter()
        .flat_map(elements)
        .for_each(|part| push_part(out, part));
}

fn compaction(node: &Node, fields: &Fields<'_>) -> Vec<u8> {
    // A compression without a new message has no summary, because its record is not a message.
    let is_message = node.note.is_none();
    let mut out = Vec::new();
    let mut object = Object::after(&mut out);
    match literal(fields.content).filter(|_| is_message) {
        Some(text) => object.raw("summary", text),
        None if is_message => object.text("summary", &fields.text()),
        None => object.raw("summary", b"\"\""),
    }
    object.raw("tokensBefore", b"0");
    out
}

fn event(fields: &Fields<'_>) -> Vec<u8> {
    let kind = fields.kind.and_then(json::string).unwrap_or_default();
    let mut data = b"{".to_vec();
    Object::new(&mut data).text("text", &fields.text());
    data.push(b'}');
    let mut out = Vec::new();
    let mut object = Object::after(&mut out);
    object.text("customType", &format!("gemini.{kind}"));
    object.raw("data", &data);
    out
}
