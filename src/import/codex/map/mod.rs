//! Makes the entries of nodes:
//!
//! | Codex | entry |
//! |---|---|
//! | `message`, role `user`, by a person | `message` `user` |
//! | `message`, other roles; `agent_message`, `inter_agent_communication` | `custom_message` `codex.<role>`, not displayed |
//! | `message` `assistant`, `reasoning`, calls: the items of a response | `message` `assistant`: text, thinking, toolCall |
//! | outputs, with the events of the call | `message` `toolResult`, the events' members in `details` |
//! | `compacted` | `compaction` |
//! | `turn_context` with another model | `model_change` |
//! | other events that are shown | `custom` `codex.<event>` |
//! | the first event about a subagent | `custom` `subagent` |
//!
//! | content | block |
//! |---|---|
//! | `input_text`, `output_text`, `refusal` | `text` |
//! | `input_image` with a `data:` URL | `image` |
//! | `reasoning`: its text, else its summary | `thinking` |
//! | `function_call` | `toolCall`; arguments that are not an object: `_raw` |
//! | `custom_tool_call` | `toolCall` with the argument `input` |
//! | `local_shell_call`, `web_search_call` | `toolCall` with the members of `action` |
//! | `image_generation_call` | `toolCall` with the argument `prompt` |
//! | another object with a type | as it is |

use super::record::{self, Line};
use crate::member::{Body, Member, Node, NodeKind};
use std::borrow::Cow;
use treelined_core::json::{self};

mod blocks;
mod elements;

/// The members of events that become `details` of a result.
const DETAILS: [&str; 9] = [
    "status",
    "exit_code",
    "duration",
    "aggregated_output",
    "success",
    "changes",
    "results",
    "error",
    "new_thread_id",
];

pub(super) fn body(_member: &Member, node: &Node, records: &[&[u8]]) -> Body {
    let lines: Vec<Line<'_>> = records.iter().map(|record| Line::parse(record)).collect();
    let mut out = Vec::new();
    let kind = match &node.kind {
        NodeKind::User => {
            out.extend_from_slice(br#","message":{"role":"user","content":"#);
            push_content(&mut out, &lines);
            push_end(&mut out, node);
            "message"
        }
        NodeKind::Scaffolding => {
            scaffolding(&mut out, &lines);
            "custom_message"
        }
        NodeKind::Assistant => {
            assistant(&mut out, node, &lines);
            "message"
        }
        NodeKind::ToolResult => {
            tool_result(&mut out, node, &lines);
            "message"
        }
        NodeKind::Compaction { .. } => {
            compaction(&mut out, node, &lines);
            "compaction"
        }
        NodeKind::ModelChange => {
            model_change(&mut out, node, &lines);
            "model_change"
        }
        NodeKind::Custom => {
            custom(&mut out, &lines);
            "custom"
        }
        NodeKind::Subagent { .. } => {
            subagent(&mut out, &lines);
            "custom"
        }
    };
    Body { kind, members: out }
}

/// Ends a message, with the time of its record if there is one.
fn push_end(out: &mut Vec<u8>, node: &Node) {
    if let Some(time) = node.time {
        out.extend_from_slice(b",\"timestamp\":");
        out.extend_from_slice(time.to_string().as_bytes());
    }
    out.push(b'}');
}

fn push_content(out: &mut Vec<u8>, lines: &[Line<'_>]) {
    let content = lines
        .first()
        .and_then(|line| json::get(line.payload, "content"));
    out.push(b'[');
    blocks::content(out, content.unwrap_or_default());
    out.push(b']');
}

fn scaffolding(out: &mut Vec<u8>, lines: &[Line<'_>]) {
    let line = lines.first();
    let role = match line.map(|line| (&*line.kind, line.payload_kind())) {
        Some(("response_item", kind)) if kind == "message" => {
            line.and_then(|line| record::text(line.payload, "role"))
        }
        _ => Some("agent_message".into()),
    };
    out.extend_from_slice(b",\"customType\":");
    let role = role.unwrap_or_default();
    json::push_string(out, &format!("codex.{role}"));
    out.extend_from_slice(b",\"content\":");
    push_content(out, lines);
    out.extend_from_slice(b",\"display\":false");
}

fn assistant(out: &mut Vec<u8>, node: &Node, lines: &[Line<'_>]) {
    out.extend_from_slice(br#","message":{"role":"assistant","content":["#);
    let mut is_first = true;
    for (number, line) in lines.iter().enumerate() {
        let mut block = Vec::new();
        blocks::item(&mut block, line, || format!("{}/{number}", node.key));
        if block.is_empty() {
            continue;
        }
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        out.append(&mut block);
    }
    out.push(b']');
    out.extend_from_slice(node.note.as_deref().unwrap_or_default().as_bytes());
    push_end(out, node);
}

fn tool_result(out: &mut Vec<u8>, node: &Node, lines: &[Line<'_>]) {
    let is_output = |line: &&Line<'_>| line.kind == "response_item";
    let answer = lines.iter().find(is_output).or(lines.first());
    let payload = answer.map(|line| line.payload).unwrap_or_default();
    let output = subject(payload);
    out.extend_from_slice(br#","message":{"role":"toolResult","toolCallId":"#);
    match record::call_id(output) {
        Some(id) => json::push_raw(out, id),
        None => json::push_string(out, &node.key),
    }
    if let Some(name) = &node.note {
        out.extend_from_slice(b",\"toolName\":");
        json::push_string(out, name);
    }
    out.extend_from_slice(b",\"content\":[");
    blocks::output(out, output);
    out.push(b']');
    let events: Vec<&[u8]> = lines
        .iter()
        .filter(|line| line.kind == "event_msg")
        .map(|line| subject(line.payload))
        .collect();
    push_details(out, &events);
    let mut verdicts = events.iter().map(|event| record::has_failed(event));
    let verdict = verdicts.find_map(|verdict| verdict);
    let failed = verdict.or_else(|| blocks::has_failed(output));
    out.extend_from_slice(match failed {
        Some(true) => b",\"isError\":true",
        _ => b",\"isError\":false",
    });
    push_end(out, node);
}

/// Appends `details` with the members of the events. Each name is taken from the first event that has it.
fn push_details(out: &mut Vec<u8>, events: &[&[u8]]) {
    let mut separator: &[u8] = b",\"details\":{";
    let mut given = [false; DETAILS.len()];
    for event in events {
        let values = json::get_each(event, DETAILS);
        for ((name, value), is_given) in DETAILS.iter().zip(values).zip(&mut given) {
            let Some(value) = value.filter(|value| *value != b"null" && !*is_given) else {
                continue;
            };
            *is_given = true;
            out.extend_from_slice(separator);
            separator = b",";
            json::push_string(out, name);
            out.push(b':');
            blocks::value(out, value);
        }
    }
    if separator == b"," {
        out.push(b'}');
    }
}

fn compaction(out: &mut Vec<u8>, node: &Node, lines: &[Line<'_>]) {
    let payload = lines.iter().find(|line| line.kind == "compacted");
    let payload = payload.map(|line| line.payload).unwrap_or_default();
    out.extend_from_slice(b",\"summary\":");
    match json::get(payload, "message").filter(|_| record::text(payload, "message").is_some()) {
        Some(summary) => json::push_raw(out, summary),
        None => json::push_string(out, &replacement(payload)),
    }
    let note = node.note.as_deref().unwrap_or(",\"tokensBefore\":0");
    out.extend_from_slice(note.as_bytes());
}

/// The readable text of `replacement_history`. It is used if the provider has made the summary of the compaction,
/// because that summary is encrypted.
fn replacement(payload: &[u8]) -> String {
    let history = json::get(payload, "replacement_history").unwrap_or_default();
    let mut texts: Vec<String> = Vec::new();
    for item in blocks::elements(history) {
        let content = json::get(item, "content").unwrap_or_default();
        let pieces = blocks::elements(content).filter_map(|piece| record::text(piece, "text"));
        texts.extend(pieces.map(Cow::into_owned));
    }
    texts.join("\n\n")
}

fn model_change(out: &mut Vec<u8>, node: &Node, lines: &[Line<'_>]) {
    out.extend_from_slice(b",\"provider\":");
    json::push_string(out, node.note.as_deref().unwrap_or("openai"));
    out.extend_from_slice(b",\"modelId\":");
    let model = lines
        .first()
        .and_then(|line| json::get(line.payload, "model"));
    json::push_raw(out, model.unwrap_or(b"\"\""));
}

fn custom(out: &mut Vec<u8>, lines: &[Line<'_>]) {
    let payload = lines.first().map(|line| line.payload).unwrap_or(b"null");
    let data = subject(payload);
    let kind = record::text(data, "type").unwrap_or_default();
    out.extend_from_slice(b",\"customType\":");
    json::push_string(out, &format!("codex.{kind}"));
    out.extend_from_slice(b",\"data\":");
    blocks::value(out, data);
}

fn subagent(out: &mut Vec<u8>, lines: &[Line<'_>]) {
    const NAMES: [&str; 4] = [
        "agent_path",
        "new_agent_nickname",
        "new_agent_role",
        "prompt",
    ];
    let payload = lines.first().map(|line| line.payload).unwrap_or_default();
    let values = json::get_each(subject(payload), NAMES);
    out.extend_from_slice(br#","customType":"subagent","data":{"tool":"codex""#);
    for (name, value) in NAMES.iter().zip(values) {
        if let Some(value) = value.filter(|value| *value != b"null") {
            out.push(b',');
            json::push_string(out, name);
            out.push(b':');
            blocks::value(out, value);
        }
    }
    out.push(b'}');
}

/// The object with the members of an event: its `item` if the event says that an item is completed, else the payload.
fn subject(payload: &[u8]) -> &[u8] {
    let [kind, item] = json::get_each(payload, ["type", "item"]);
    match kind.and_then(json::string).as_deref() {
        Some("item_completed") => item.unwrap_or(payload),
        _ => payload,
    }
}
