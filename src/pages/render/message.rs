//! The blocks of a message, by its role, and of content.

use super::entry::{SummaryKind, number, push_json, push_line, push_preview, push_summary};
use super::markdown::{self, Part};
use super::writer::{BLOCK_BYTES, BlockWriter, Text};
use super::{EntryContext, call, image};
use std::borrow::Cow;
use treelined_core::bytes::part;
use treelined_core::json::{self, Elements};

/// Writes the blocks of a message.
pub(super) fn push(writer: &mut BlockWriter<'_>, message: &[u8], context: &EntryContext<'_>) {
    let [role, content, error] = json::get_each(message, ["role", "content", "errorMessage"]);
    let role = role.and_then(json::string).unwrap_or_default();
    let content = content.unwrap_or_default();
    match &*role {
        "user" => push_content(writer, content, context),
        "toolResult" => push_output(writer, content, None),
        "bashExecution" => push_command(writer, message),
        "branchSummary" => push_summary(writer, SummaryKind::Branch, message, context),
        "compactionSummary" => push_summary(writer, SummaryKind::Compaction, message, context),
        "assistant" => {
            push_content(writer, content, context);
            if let Some(error) = error.and_then(json::string) {
                push_line(writer, &error);
            }
        }
        "system" | "custom" | "hookMessage" => {
            push_preview(writer, context);
            push_content(writer, content, context);
        }
        _ => match content {
            [b'"' | b'[', ..] => push_content(writer, content, context),
            _ => push_json(writer, message),
        },
    }
}

/// Writes the blocks of a content: a text, or an array of parts.
pub(super) fn push_content(
    writer: &mut BlockWriter<'_>,
    content: &[u8],
    context: &EntryContext<'_>,
) {
    if let Some(text) = Text::of(Some(content)) {
        return push_markdown(writer, text);
    }
    each_part(content, |kind, block| match kind {
        "text" => {
            if let Some(text) = Text::of(json::get(block, "text")) {
                push_markdown(writer, text);
            }
        }
        "thinking" => push_thinking(writer, block),
        "toolCall" => call::push(writer, block, context.results),
        "image" => image::push(writer, block),
        _ => push_json(writer, block),
    });
}

/// Writes the blocks of a tool's output, which is shown as it is written.
pub(super) fn push_output(writer: &mut BlockWriter<'_>, content: &[u8], language: Option<&str>) {
    if let Some(text) = Text::of(Some(content)) {
        return writer.code(text, language);
    }
    each_part(content, |kind, block| match kind {
        "text" => {
            if let Some(text) = Text::of(json::get(block, "text")) {
                writer.code(text, language);
            }
        }
        "image" => image::push(writer, block),
        _ => push_json(writer, block),
    });
}

/// The ids of the tool calls of an assistant message.
pub(crate) fn call_ids(entry: &[u8]) -> Vec<Cow<'_, str>> {
    let content = json::get_path(entry, &["message", "content"]).unwrap_or_default();
    let mut ids = Vec::new();
    let Ok(mut parts) = Elements::open(content, 0) else {
        return ids;
    };
    while let Ok(Some(span)) = parts.next_value() {
        let [kind, id] = json::get_each(part(content, span), ["type", "id"]);
        if kind == Some(b"\"toolCall\"") {
            ids.extend(id.and_then(json::string));
        }
    }
    ids
}

/// Calls `see` with the type of each part of a content, and the part.
fn each_part(content: &[u8], mut see: impl FnMut(&str, &[u8])) {
    let Ok(mut parts) = Elements::open(content, 0) else {
        return;
    };
    while let Ok(Some(span)) = parts.next_value() {
        let block = part(content, span);
        let kind = json::get(block, "type").and_then(json::string);
        see(&kind.unwrap_or_default(), block);
    }
}

/// Writes Markdown as `html` and `code` blocks; as `text` if it cannot be HTML.
fn push_markdown(writer: &mut BlockWriter<'_>, text: Text<'_>) {
    let markdown = text.decoded();
    let is_short = markdown.len() <= writer.room();
    let parts = is_short.then(|| markdown::parts(&markdown));
    let parts = parts.flatten().filter(|parts| fits(parts, writer.room()));
    let Some(parts) = parts else {
        return writer.block("text", |writer| {
            writer.text("text", Text::Decoded(&markdown))
        });
    };
    for part in parts {
        match part {
            Part::Html(html) => writer.block("html", |writer| writer.whole("html", &html)),
            Part::Code { language, text } => {
                writer.code(Text::Decoded(&text), language.as_deref());
            }
        }
    }
}

/// Whether these parts surely fit into `room` bytes of JSON.
fn fits(parts: &[Part], room: usize) -> bool {
    let sizes = parts.iter().map(|part| match part {
        Part::Html(text) | Part::Code { text, .. } => BLOCK_BYTES + literal_bytes(text),
    });
    sizes.sum::<usize>() <= room
}

/// The size of a text as a JSON literal, at most.
fn literal_bytes(text: &str) -> usize {
    let escapes = text.bytes().filter(|byte| match byte {
        b'"' | b'\\' | 0xe2 => true,
        byte => *byte < b' ',
    });
    text.len() + 5 * escapes.count()
}

/// A text as HTML that fits into `room` bytes of JSON.
pub(super) fn html(markdown: &str, room: usize) -> Option<String> {
    markdown::html(markdown).filter(|html| literal_bytes(html) <= room)
}

fn push_thinking(writer: &mut BlockWriter<'_>, block: &[u8]) {
    let Some(text) = json::get(block, "thinking").and_then(json::string) else {
        return;
    };
    if text.trim().is_empty() {
        // The provider keeps the text to itself.
        return;
    }
    match html(&text, writer.room()) {
        Some(html) => writer.block("thinking", |writer| writer.whole("html", &html)),
        None => push_line(writer, &text),
    }
}

/// Writes a command of the user, its output, and its end if it is unusual.
fn push_command(writer: &mut BlockWriter<'_>, message: &[u8]) {
    let names = [
        "command",
        "output",
        "exitCode",
        "cancelled",
        "truncated",
        "fullOutputPath",
    ];
    let [command, output, exit_code, cancelled, truncated, path] = json::get_each(message, names);
    if let Some(command) = Text::of(command) {
        writer.code(command, Some("bash"));
    }
    if let Some(output) = Text::of(output).filter(|_| output != Some(b"\"\"")) {
        writer.code(output, None);
    }
    if cancelled == Some(b"true") {
        push_line(writer, "The command was cancelled.");
    } else if let Some(code) = exit_code.filter(|code| number(code).is_some_and(|code| code > 0)) {
        let code = String::from_utf8_lossy(code);
        push_line(writer, &format!("The exit code is {code}."));
    }
    if truncated == Some(b"true") {
        let path = path.and_then(json::string).unwrap_or_default();
        push_line(writer, &format!("The output is only a part. {path}"));
    }
}
