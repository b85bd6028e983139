//! Compares the scan with a slow and simple reader, over random lines.

use super::*;
use serde_json::Value;

const SCALARS: [&str; 18] = [
    "null",
    "true",
    "false",
    "0",
    "1",
    "-0.0",
    "2.0",
    "1.5",
    "1e2",
    "18446744073709551615",
    "\"\"",
    "\"a\"",
    "\"\\u0061\\n\"",
    "\"treelined.leaf\"",
    "\"error\"",
    "\" \\n\"",
    "[]",
    "{}",
];
const ROLES: [&str; 7] = [
    "user",
    "assistant",
    "assistant",
    "assistant",
    "toolResult",
    "bashExecution",
    "hookMessage",
];
const TYPES: [&str; 13] = [
    "message",
    "message",
    "message",
    "message",
    "compaction",
    "branch_summary",
    "custom",
    "custom_message",
    "label",
    "session_info",
    "usage",
    "context_edit",
    "new",
];
const MESSAGE_MEMBERS: [&str; 7] = [
    "role",
    "content",
    "isError",
    "toolName",
    "stopReason",
    "exitCode",
    "cancelled",
];
const ENTRY_MEMBERS: [&str; 20] = [
    "background",
    "group",
    "copiedFrom",
    "id",
    "parentId",
    "timestamp",
    "message",
    "message",
    "customType",
    "data",
    "display",
    "fromId",
    "merge",
    "targetId",
    "label",
    "name",
    "tokensBefore",
    "firstKeptEntryId",
    "firstKeptEntryIndex",
    "version",
];

/// The envelope of a line, read in a slow and obvious way; `None` if serde_json cannot represent the line.
    #[rustfmt::skip]
    fn naive(line: &str) -> Option<Envelope<'static>> {
        let value: Value = serde_json::from_str(line).ok()?;
        let text = |value: &Value| value.as_str().map(|text| Cow::<str>::Owned(text.to_owned()));
        let full = |value: &Value| text(value).filter(|text| !text.is_empty());
        let whole = |value: &Value| {
            value.as_u64().or_else(|| value.as_f64().filter(|n| n.fract() == 0.0 && *n >= 0.0).map(|n| n as u64))
        };
        let wire = value["type"].as_str().unwrap();
        let leaf = wire == "custom" && value["customType"] == "treelined.leaf";
        let kind = if leaf { Kind::LeafRecord } else { Kind::of(wire) };
        let is_background = value["background"] == true && !leaf;
        let background = is_background.then(|| Background { group: full(&value["group"]) });
        let copied_from = text(&value["copiedFrom"]["sessionId"]).zip(text(&value["copiedFrom"]["entryId"]));
        let copied_from = copied_from.map(|(session_id, entry_id)| CopiedFrom { session_id, entry_id });
        let message = &value["message"];
        let role = message["role"].as_str().map_or(Role::None, Role::of);
        let is_text = |text: &Value| text.as_str().is_some_and(|text| !text.trim().is_empty());
        let content = &message["content"];
        let mut blocks = content.as_array().into_iter().flatten();
        let has_text = is_text(content)
            || blocks.any(|block| block["type"] == "text" && is_text(&block["text"]));
        let ended = match message["stopReason"].as_str() {
            None => true,
            Some(reason) => ["", "stop", "toolUse"].contains(&reason),
        };
        let facts = match kind {
            Kind::Message => Facts::Message {
                role,
                silent: role == Role::Assistant && !has_text && ended,
                is_error: match role {
                    Role::ToolResult => message["isError"] == true,
                    Role::Assistant => message["stopReason"] == "error" || message["stopReason"] == "aborted",
                    Role::BashExecution => {
                        message["cancelled"] == true || message["exitCode"].as_f64().is_some_and(|n| n != 0.0)
                    }
                    _ => false,
                },
                tool_name: text(&message["toolName"]).filter(|_| role == Role::ToolResult),
                said: match message.get("content") {
                    Some(_) if matches!(role, Role::User | Role::Assistant) => {
                        let time = message["timestamp"].as_f64().map(|time| time as i64);
                        time.map_or(MessageTime::WithEntry, MessageTime::At)
                    }
                    _ => MessageTime::Never,
                },
            },
            Kind::Compaction => Facts::Compaction {
                tokens_before: whole(&value["tokensBefore"]),
                first_kept_entry_id: text(&value["firstKeptEntryId"]),
                first_kept_entry_index: whole(&value["firstKeptEntryIndex"]),
            },
            Kind::BranchSummary => Facts::BranchSummary { from_id: text(&value["fromId"]), merge: value["merge"] == true },
            Kind::Label => Facts::Label { target_id: text(&value["targetId"]), label: full(&value["label"]) },
            Kind::SessionInfo => Facts::SessionInfo { name: full(&value["name"]) },
            Kind::CustomMessage => Facts::CustomMessage { display: value["display"] != false },
            Kind::ContextEdit => Facts::ContextEdit { target_id: text(&value["targetId"]) },
            Kind::LeafRecord => Facts::LeafRecord { from: text(&value["data"]["from"]), cause: text(&value["data"]["cause"]) },
            _ => Facts::None,
        };
        let parent = match value.get("parentId") {
            Some(Value::Null) => Parent::Null,
            Some(Value::String(id)) => Parent::Id(id.clone().into()),
            _ => Parent::Absent,
        };
        Some(Envelope { kind, id: text(&value["id"]), parent, timestamp: text(&value["timestamp"]), facts, background, copied_from, odd: false })
    }

fn below(seed: &mut u64, limit: usize) -> usize {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    (*seed >> 11) as usize % limit
}

/// An object of random members with these names. A value may or may not fit its member.
fn object(seed: &mut u64, names: &[&str], values: &[&str]) -> String {
    let mut out = String::from("{");
    for n in 0..below(seed, 9) {
        let name = names[below(seed, names.len())];
        let escaped = format!("\\u{:04x}{}", name.as_bytes()[0], &name[1..]);
        let name = if below(seed, 9) == 0 { &escaped } else { name };
        let value = values[below(seed, values.len())];
        out += &format!("{}\"{name}\":{value}", if n == 0 { "" } else { " ,\t" });
    }
    out + "}"
}

/// An object without its last brace, and the comma that the next member needs.
fn unfinished(mut object: String) -> (String, &'static str) {
    object.truncate(object.len() - 1);
    let comma = if object.len() > 1 { "," } else { "" };
    (object, comma)
}

/// An array of content blocks.
fn content(seed: &mut u64) -> String {
    let kinds = ["text", "toolCall", "thinking", "image"].map(|kind| format!("\"{kind}\""));
    let values: Vec<&str> = kinds.iter().map(String::as_str).chain(SCALARS).collect();
    let mut blocks = Vec::new();
    for _ in 0..below(seed, 4) {
        let mut block = object(seed, &["text", "type", "name"], &values);
        if below(seed, 2) == 0 {
            block = format!("{{\"type\":{}}}", kinds[below(seed, 3)]);
        }
        blocks.push(block);
    }
    format!("[{}]", blocks.join(","))
}

/// A random line that looks like an entry of a known shape, and may have faults.
fn line(seed: &mut u64) -> String {
    let content = content(seed);
    let mut values = SCALARS.to_vec();
    values.extend([content.as_str(), &content, &content]);
    let (mut message, comma) = unfinished(object(seed, &MESSAGE_MEMBERS, &values));
    let role = ROLES[below(seed, ROLES.len())];
    message += &format!("{comma}\"role\":\"{role}\",\"content\":{content}}}");
    let data = object(seed, &["from", "cause", "x"], &SCALARS);

    values.extend([message.as_str(), &message, &message, &data, &data]);
    let (mut line, comma) = unfinished(object(seed, &ENTRY_MEMBERS, &values));
    let last = if below(seed, 2) == 0 { &message } else { "0" };
    let kind = TYPES[below(seed, TYPES.len())];
    line += &format!("{comma}\"type\":\"{kind}\",\"message\":{last}}}");
    line
}

#[test]
fn agrees_with_a_naive_reader() {
    let mut seed = 0x5eed;
    let seed = &mut seed;
    let mut calls_only = 0;
    for _ in 0..30_000 {
        let line = line(seed);
        let ours = Envelope {
            odd: false,
            ..entry(&line)
        };
        assert_eq!(Some(&ours), naive(&line).as_ref(), "{line}");
        calls_only += usize::from(matches!(ours.facts, Facts::Message { silent: true, .. }));
        for _ in 0..3 {
            let mut broken = line.clone().into_bytes();
            let at = below(seed, broken.len());
            broken[at] = b"{}[],:\"\\ 0n\x01"[below(seed, 12)];
            let json = serde_json::from_slice::<serde::de::IgnoredAny>(&broken).is_ok();
            let refused = matches!(scan_line(&broken), Err(BadLine::InvalidJson { .. }));
            assert_eq!(refused, !json, "{}", String::from_utf8_lossy(&broken));
        }
    }
    assert!(calls_only > 100, "{calls_only}");
}
