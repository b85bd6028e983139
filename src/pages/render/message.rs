//! The blocks of a message, according to its role, and the blocks of a content.

use super::content::{each_part, html, push_json, push_markdown, push_output};
use super::context::EntryContext;
use super::pieces::{SummaryKind, number, push_line, push_preview, push_summary};
use super::writer::{BlockWriter, Text};
use super::{call, image};
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

fn push_thinking(writer: &mut BlockWriter<'_>, block: &[u8]) {
    let Some(text) = json::get(block, "thinking").and_then(json::string) else {
        return;
    };
    if text.trim().is_empty() {
        // The provider keeps the text of this thinking secret, so there is nothing to show.
        return;
    }
    match html(&text, writer.room()) {
        Some(html) => writer.block("thinking", |writer| writer.whole("html", &html)),
        None => push_line(writer, &text),
    }
}

/// Writes a command of the user and its output. If the command did not end normally, also writes how it ended.
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
