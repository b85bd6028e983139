//! Renders one entry as blocks, according to its type and role.

use super::content::push_json;
use super::context::EntryContext;
use super::message;
use super::pieces::{SummaryKind, push_line, push_preview, push_summary};
use super::writer::BlockWriter;
use treelined_core::json::{self};

/// Appends an entry as one JSON object, `RenderedEntry` of protocol.md §15.2, of about `max_bytes` at most. To fit,
/// long strings are cut first, then blocks are left out.
///
/// `entry` is the entry as clients receive it, in UTF-8. Values of a wrong type count as missing.
pub fn push_entry(out: &mut Vec<u8>, entry: &[u8], context: &EntryContext<'_>, max_bytes: usize) {
    let mut writer = BlockWriter::new(out, max_bytes);
    let [kind, timestamp, message, custom_type] =
        json::get_each(entry, ["type", "timestamp", "message", "customType"]);
    let kind = kind.and_then(json::string).unwrap_or_default();
    writer.push(b"{");
    writer.whole("entryId", context.id);
    writer.name("type", Some(&kind));
    let message = match &*kind {
        "message" => message.unwrap_or_default(),
        _ => b"",
    };
    push_head(&mut writer, message, timestamp, custom_type);
    if context.is_error {
        writer.flag("isError", true);
    }
    writer.blocks("blocks", |writer| match &*kind {
        "message" => message::push(writer, message, context),
        kind => push_other(writer, kind, entry, context),
    });
    if writer.omitted() > 0 {
        writer.number("omittedBlocks", writer.omitted());
    }
    writer.push(b"}");
}

/// Writes the members that are not blocks.
fn push_head(
    writer: &mut BlockWriter<'_>,
    message: &[u8],
    timestamp: Option<&[u8]>,
    custom_type: Option<&[u8]>,
) {
    let names = [
        "role",
        "customType",
        "provider",
        "model",
        "toolCallId",
        "toolName",
    ];
    let [role, own_type, provider, model, call, tool] = json::get_each(message, names);
    let mut name = |name, raw: Option<&[u8]>| {
        let text = raw.and_then(json::string);
        writer.name(name, text.as_deref());
    };
    name("role", role);
    name("timestamp", timestamp);
    name("customType", custom_type.or(own_type));
    match role {
        Some(b"\"assistant\"") => {
            name("provider", provider);
            name("model", model);
        }
        Some(b"\"toolResult\"") => {
            name("toolCallId", call);
            name("toolName", tool);
        }
        _ => {}
    }
}

/// Writes the blocks of an entry that is not a message.
fn push_other(writer: &mut BlockWriter<'_>, kind: &str, entry: &[u8], context: &EntryContext<'_>) {
    let text = |name: &str| json::get(entry, name).and_then(json::string);
    match kind {
        "branch_summary" => push_summary(writer, SummaryKind::of_branch(entry), entry, context),
        "compaction" => push_summary(writer, SummaryKind::Compaction, entry, context),
        "custom_message" => {
            push_preview(writer, context);
            let content = json::get(entry, "content").unwrap_or_default();
            message::push_content(writer, content, context);
        }
        "custom" => {
            push_preview(writer, context);
            if let Some(data) = json::get(entry, "data") {
                push_json(writer, data);
            }
        }
        "context_edit" => push_context_edit(writer, entry, context),
        "model_change" => {
            let of = [text("provider"), text("modelId")];
            push_line(writer, &of.map(Option::unwrap_or_default).join("/"));
        }
        "mode_change" => push_line(writer, &text("mode").unwrap_or_default()),
        "thinking_level_change" => {
            push_line(writer, &text("thinkingLevel").unwrap_or_default());
        }
        "label" => push_line(writer, &text("label").unwrap_or_default()),
        "session_info" => push_line(writer, &text("name").unwrap_or_default()),
        "usage" => {
            let parts = [text("kind"), text("provider"), text("model"), text("note")];
            let parts: Vec<_> = parts.into_iter().flatten().collect();
            push_line(writer, &parts.join(" · "));
            if let Some(usage) = json::get(entry, "usage") {
                push_json(writer, usage);
            }
        }
        _ => push_json(writer, entry),
    }
}

fn push_context_edit(writer: &mut BlockWriter<'_>, entry: &[u8], context: &EntryContext<'_>) {
    let [target, replacement] = json::get_each(entry, ["targetId", "replacement"]);
    let target = target.and_then(json::string).unwrap_or_default();
    match replacement.and_then(|replacement| json::get(replacement, "content")) {
        None => push_line(writer, &format!("Leaves out {target}")),
        Some(content) => {
            push_line(writer, &format!("Replaces the content of {target}"));
            message::push_content(writer, content, context);
        }
    }
}
