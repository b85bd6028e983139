//! The entry of each node.
//!
//! | Claude Code | entry |
//! |---|---|
//! | `assistant` records with one `message.id` | `message`, role `assistant`: their blocks in the order of the records |
//! | block `text`, `thinking`, `redacted_thinking`, `tool_use` | `text`, `thinking` (with `thinkingSignature`), `toolCall` |
//! | `usage` of the last of these records | `usage`: the others have a stub of `output_tokens` |
//! | `stop_reason` | `stopReason`: `max_tokens` and `model_context_window_exceeded` become `length`, `refusal` becomes `error`; any other becomes `toolUse` if the message has a call, else `stop` |
//! | `isApiErrorMessage`, `isAbortedMidStream` | `stopReason` `error` with `errorMessage`, `aborted` |
//! | block `tool_result` of a `user` record | `message`, role `toolResult`; the texts that the harness puts beside the results in the record are appended to the last result |
//! | other `user` records, words of the user beside a result, `queued_command`, `queue-operation` `remove` | `message`, role `user` |
//! | records of the row above that have `isMeta`, or whose text begins with a tag of the harness | `custom_message` `claude-code.<tag>` (`claude-code.meta` without a tag), hidden if `isMeta` |
//! | block `image` with `base64` | `image` |
//! | `compact_boundary` with `isCompactSummary` | `compaction`: the summary's text, `preTokens` |
//! | events: `system`, `attachment`, `mode` | `custom` `claude-code.<type>` with the members that say what happened |
//! | a record with the same id as an earlier record, but with another body | `custom` `import.duplicate` with the record |
//! | a subagent | `custom` `subagent`; the writer adds its session |
//!
//! `<persisted-output>` stubs stay unchanged: the origin has the file that they name.

use super::record::{self, Fields, tag};
use crate::member::{Body, Node, NodeKind};
use crate::message::{self, Blocks, ModelMessage, Object, Usage, elements, literal, whole};
use treelined_core::json::{self, Members};

/// The note of a node whose record has the same id as an earlier record.
pub(super) const DUPLICATE: &str = "duplicate";

pub(super) fn body(node: &Node, records: &[&[u8]]) -> Body {
    let fields: Vec<Fields<'_>> = records
        .iter()
        .filter_map(|raw| message_fields(raw))
        .collect();
    let first = fields.first().copied().unwrap_or_default();
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
            members: message::user(&user_content(content(&first)), node.time),
        },
        NodeKind::Scaffolding => Body {
            kind: "custom_message",
            members: scaffolding(&first),
        },
        NodeKind::Compaction { .. } => Body {
            kind: "compaction",
            members: compaction(&fields),
        },
        NodeKind::Subagent { .. } => Body {
            kind: "custom",
            members: br#","customType":"subagent""#.to_vec(),
        },
        NodeKind::Custom if node.note.as_deref() == Some(DUPLICATE) => Body {
            kind: "custom",
            members: message::duplicate(records.first().copied().unwrap_or(b"{}")),
        },
        NodeKind::Custom | NodeKind::ModelChange => Body {
            kind: "custom",
            members: event(&first, records.first().copied().unwrap_or_default()),
        },
    }
}

/// The members of a record, or of the message of a subagent if the record has one.
fn message_fields(record: &[u8]) -> Option<Fields<'_>> {
    let fields = Fields::read(record)?;
    Some(fields.agent_message().unwrap_or(fields))
}

/// The raw content of a message of the user.
fn content<'a>(fields: &Fields<'a>) -> &'a [u8] {
    let of_message = fields.message.and_then(|raw| json::get(raw, "content"));
    let prompt = || fields.attachment.and_then(|raw| json::get(raw, "prompt"));
    let content = of_message.or_else(prompt).or(fields.content);
    content.unwrap_or(b"\"\"")
}

fn assistant(node: &Node, records: &[Fields<'_>]) -> Vec<u8> {
    let mut out = ModelMessage {
        api: "anthropic-messages",
        provider: "anthropic",
        model: None,
        content: Blocks::default(),
        usage: Usage::default(),
        stop_reason: "stop",
        error: None,
        time: node.time,
    };
    let (mut has_call, mut is_error, mut is_aborted) = (false, false, false);
    let mut stop_reason = None;
    for fields in records {
        let message = fields.message.unwrap_or(b"{}");
        let names = ["content", "model", "usage", "stop_reason"];
        let [content, model, usage, reason] = json::get_each(message, names);
        let content = content.unwrap_or(b"\"\"");
        out.model = literal(model).or(out.model);
        stop_reason = literal(reason).or(stop_reason);
        is_error |= fields.is_error;
        is_aborted |= fields.is_aborted;
        if let Some(usage) = usage.filter(|raw| raw.starts_with(b"{")) {
            out.usage = usage_of(usage);
        }
        if let Some(text) = literal(Some(content)).filter(|text| *text != b"\"\"") {
            out.content.text(text);
            out.error = out.error.or(Some(text));
        }
        for (at, block) in elements(content).enumerate() {
            let [kind, text] = json::get_each(block, ["type", "text"]);
            has_call |= kind == Some(b"\"tool_use\"");
            out.error = out.error.or(literal(text));
            assistant_block(&mut out.content, fields, block, at);
        }
    }
    out.stop_reason = match stop_reason {
        _ if is_error => "error",
        _ if is_aborted => "aborted",
        Some(b"\"max_tokens\"" | b"\"model_context_window_exceeded\"") => "length",
        Some(b"\"refusal\"") => "error",
        _ if has_call => "toolUse",
        _ => "stop",
    };
    if out.stop_reason != "error" {
        out.error = None;
    }
    out.member()
}

fn usage_of(raw: &[u8]) -> Usage {
    let names = [
        "input_tokens",
        "output_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
    ];
    let [input, output, read, write] = json::get_each(raw, names);
    Usage {
        input: whole(input),
        output: whole(output),
        cache_read: whole(read),
        cache_write: whole(write),
    }
}

fn assistant_block(out: &mut Blocks, fields: &Fields<'_>, block: &[u8], at: usize) {
    let names = [
        "type",
        "text",
        "thinking",
        "signature",
        "data",
        "id",
        "name",
        "input",
    ];
    let [kind, text, thinking, signature, data, id, name, input] = json::get_each(block, names);
    let Some(kind) = kind.and_then(json::string) else {
        return;
    };
    match &*kind {
        "text" => literal(text).into_iter().for_each(|text| out.text(text)),
        "thinking" => {
            let thinking = literal(thinking).unwrap_or(b"\"\"");
            out.thinking(thinking, literal(signature));
        }
        "redacted_thinking" => {
            literal(data)
                .into_iter()
                .for_each(|data| out.hidden_thinking(data));
        }
        "tool_use" => {
            let own = || json::quoted(&record::call_id(fields.uuid, at));
            let id = literal(id).map_or_else(own, <[u8]>::to_vec);
            out.call(&id, literal(name).unwrap_or(b"\"\""), input);
        }
        "image" | "toolCall" => {}
        _ => out.other(block),
    }
}

/// Appends the block for a text or an image of a message in the role `user`. A `tool_result` is left out.
fn push_block(out: &mut Blocks, block: &[u8]) {
    let [kind, text, source] = json::get_each(block, ["type", "text", "source"]);
    let Some(kind) = kind.and_then(json::string) else {
        return;
    };
    match &*kind {
        "text" => literal(text).into_iter().for_each(|text| out.text(text)),
        "image" => {
            let source = source.unwrap_or(b"{}");
            let [data, mime_type] = json::get_each(source, ["data", "media_type"]);
            if let (Some(data), Some(mime_type)) = (literal(data), literal(mime_type)) {
                out.image(data, mime_type);
            }
        }
        "tool_result" | "thinking" | "toolCall" => {}
        _ => out.other(block),
    }
}

/// The content of a message in the role `user`. A raw string is copied; other content becomes blocks.
fn user_content(content: &[u8]) -> Vec<u8> {
    if content.starts_with(b"\"") {
        return content.to_vec();
    }
    let mut blocks = Blocks::default();
    elements(content).for_each(|block| push_block(&mut blocks, block));
    blocks.array()
}

/// The note of a result's node. It has three parts: the index of the result's block in the record, a mark that says
/// whether the texts beside the results belong to this result, and the name of the tool.
pub(super) fn result_note(block: usize, takes_rest: bool, name: &str) -> Box<str> {
    let mark = if takes_rest { '.' } else { ',' };
    format!("{block}{mark}{name}").into()
}

fn tool_result(node: &Node, record: &Fields<'_>) -> Vec<u8> {
    let note = node.note.as_deref().unwrap_or_default();
    let digits = note.bytes().take_while(u8::is_ascii_digit).count();
    let (block, rest) = note.split_at_checked(digits).unwrap_or_default();
    let (takes_rest, name) = match rest.strip_prefix('.') {
        Some(name) => (true, name),
        None => (false, rest.strip_prefix(',').unwrap_or_default()),
    };
    let all = content(record);
    let block = block.parse().ok().and_then(|at| elements(all).nth(at));
    let names = ["tool_use_id", "content", "is_error"];
    let [call, content, is_error] = json::get_each(block.unwrap_or(b"{}"), names);
    let mut blocks = Blocks::default();
    match content {
        Some(text) if text.starts_with(b"\"") => blocks.text(text),
        Some(content) => elements(content).for_each(|block| push_block(&mut blocks, block)),
        None => {}
    }
    if takes_rest {
        elements(all).for_each(|block| push_block(&mut blocks, block));
    }
    let call = literal(call).or(literal(record.source_call));
    let is_error = is_error == Some(b"true");
    message::tool_result(call.unwrap_or(b"\"\""), name, &blocks, is_error, node.time)
}

fn scaffolding(record: &Fields<'_>) -> Vec<u8> {
    let content = content(record);
    let name = match tag(content) {
        Some(tag) => format!("claude-code.{tag}"),
        None => "claude-code.meta".to_owned(),
    };
    message::scaffolding(&name, &user_content(content), !record.is_meta)
}

fn compaction(records: &[Fields<'_>]) -> Vec<u8> {
    let summary = records.iter().find(|fields| fields.is_summary);
    let content = summary.map_or(&b"\"\""[..], content);
    let tokens = records.iter().find_map(|fields| fields.compaction);
    let tokens = tokens.and_then(|raw| json::get(raw, "preTokens"));
    let mut out = Vec::with_capacity(content.len() + 64);
    let mut object = Object::after(&mut out);
    match content.starts_with(b"\"") {
        true => object.raw("summary", content),
        false => {
            let texts = elements(content).filter_map(|block| json::get(block, "text"));
            let texts: Vec<_> = texts.filter_map(json::string).collect();
            object.text("summary", &texts.join("\n"));
        }
    }
    object.raw("tokensBefore", whole(tokens).to_string().as_bytes());
    out
}

/// The members that every record has, such as its directory and time.
const ENVELOPE: [&[u8]; 16] = [
    b"type",
    b"subtype",
    b"uuid",
    b"parentUuid",
    b"logicalParentUuid",
    b"sessionId",
    b"session_id",
    b"timestamp",
    b"cwd",
    b"gitBranch",
    b"version",
    b"isSidechain",
    b"userType",
    b"slug",
    b"entrypoint",
    b"agentId",
];

fn event(fields: &Fields<'_>, record: &[u8]) -> Vec<u8> {
    let of_attachment = fields.attachment.and_then(|raw| json::get(raw, "type"));
    let name = of_attachment.or(fields.subtype).or(fields.kind);
    let name = name.and_then(json::string).unwrap_or_default();
    let mut data = b"{".to_vec();
    let mut object = Object::new(&mut data);
    let record = fields.attachment.unwrap_or(record);
    let mut members = Members::open(record, json::skip_space(record, 0)).ok();
    while let Some(Ok(Some(member))) = members.as_mut().map(Members::next_member) {
        let key = member.name(record);
        let value = record.get(member.value.clone()).unwrap_or(b"null");
        if !ENVELOPE.contains(&&*key) && json::depth(value) <= 200 {
            object.raw(&String::from_utf8_lossy(&key), value);
        }
    }
    data.push(b'}');
    let mut out = Vec::with_capacity(data.len() + 64);
    let mut object = Object::after(&mut out);
    object.text("customType", &format!("claude-code.{name}"));
    object.raw("data", &data);
    out
}
