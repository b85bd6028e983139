//! One entry as blocks, by its type and role.

use super::writer::{BlockWriter, Text};
use super::{CallResult, EntryContext, markdown};
use crate::bytes::part;
use crate::json::{self, Elements};

/// Appends an entry as one JSON object, `RenderedEntry` of protocol.md §15.2, in at most about `max_bytes`: long strings
/// are cut first, then blocks are left out.
///
/// `entry` is the entry as clients receive it; values of a wrong shape count as absent.
pub(crate) fn push_entry(
    out: &mut Vec<u8>,
    entry: &[u8],
    context: &EntryContext<'_>,
    max_bytes: usize,
) {
    let mut writer = BlockWriter::new(out, max_bytes);
    writer.push(b"{");
    writer.whole("entryId", context.id);
    let [kind, timestamp, message] = json::get_each(entry, ["type", "timestamp", "message"]);
    let kind = kind.and_then(json::string).unwrap_or_default();
    writer.name("type", &kind);
    let message = message.unwrap_or_default();
    let [role, content] = json::get_each(message, ["role", "content"]);
    if let Some(role) = role.and_then(json::string) {
        writer.name("role", &role);
    }
    if let Some(timestamp) = timestamp.and_then(json::string) {
        writer.name("timestamp", &timestamp);
    }
    writer.blocks("blocks", |writer| match &*kind {
        "message" => push_content(writer, content.unwrap_or_default(), context),
        _ => writer.block("code", |writer| {
            let text = String::from_utf8_lossy(entry);
            writer.text("text", Text::Decoded(&text));
            writer.name("language", "json");
        }),
    });
    if writer.omitted() > 0 {
        writer.number("omittedBlocks", writer.omitted());
    }
    writer.push(b"}");
}

fn push_content(writer: &mut BlockWriter<'_>, content: &[u8], context: &EntryContext<'_>) {
    if let Some(text) = Text::of(Some(content)) {
        return push_html(writer, text);
    }
    let Ok(mut blocks) = Elements::open(content, 0) else {
        return;
    };
    while let Ok(Some(span)) = blocks.next() {
        let block = part(content, span);
        let [kind, text, thinking] = json::get_each(block, ["type", "text", "thinking"]);
        match kind.and_then(json::string).as_deref() {
            Some("text") => {
                if let Some(text) = Text::of(text) {
                    push_html(writer, text);
                }
            }
            Some("thinking") => {
                if let Some(text) = Text::of(thinking) {
                    writer.block("thinking", |writer| writer.whole("html", &html(text)));
                }
            }
            Some("toolCall") => push_call(writer, block, context.results),
            _ => {}
        }
    }
}

fn html(text: Text<'_>) -> String {
    let mut html = String::new();
    markdown::push_html(&mut html, &text.decoded());
    html
}

fn push_html(writer: &mut BlockWriter<'_>, text: Text<'_>) {
    writer.block("html", |writer| writer.whole("html", &html(text)));
}

fn push_call(writer: &mut BlockWriter<'_>, call: &[u8], results: &[CallResult<'_>]) {
    let [id, name, arguments] = json::get_each(call, ["id", "name", "arguments"]);
    let id = id.and_then(json::string).unwrap_or_default();
    let name = name.and_then(json::string).unwrap_or_default();
    let result = results.iter().find(|result| result.call_id == id);
    writer.block("toolCall", |writer| {
        writer.name("id", &id);
        writer.name("name", &name);
        let arguments = String::from_utf8_lossy(arguments.unwrap_or_default());
        writer.text("arguments", Text::Decoded(&arguments));
        if let Some(result) = result {
            writer.key("result");
            writer.push(b"{");
            writer.whole("entryId", result.entry_id);
            writer.flag("isError", result.is_error);
            if let Some(entry) = result.entry {
                writer.blocks("blocks", |writer| {
                    let content = json::get_path(entry, &["message", "content"]);
                    push_content(
                        writer,
                        content.unwrap_or_default(),
                        &EntryContext::default(),
                    );
                });
            }
            writer.push(b"}");
        }
    });
}
