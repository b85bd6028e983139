//! The last messages of the branch that is shown first, as HTML for readers without JavaScript.
//!
//! Only the blocks that the module `render` makes have markup. Every other string is escaped.

use super::document::push_escaped;
use super::packer::rendered;
use super::source::PageSource;
use serde_json::Value;
use treelined_core::entry::{Kind, Role};
use treelined_core::error::Result;
pub(crate) use treelined_core::tree::Flags;
use treelined_core::view::Entry;

/// The most bytes of the element `#static`.
const MAX_BYTES: usize = 1_000_000;

/// The element `#static`.
pub(super) fn html(source: &PageSource) -> Result<String> {
    let mut messages = Vec::new();
    // The size of the element without messages, with the longest possible number of messages that
    // are left out.
    let mut bytes = element(source, &[], usize::MAX).len();
    let mut left_out = 0;
    let mut reader = source.content.reader();
    for row in path_to_selected(source) {
        let Some(fetch) = source.fetches.get(row) else {
            continue;
        };
        let item = source
            .all
            .rows()
            .get(row)
            .map(treelined_core::view::Row::item);
        let Some(entry) = item.and_then(|item| source.snapshot.entry(item)) else {
            continue;
        };
        if !is_message(&entry) {
            continue;
        }
        let is_full = left_out > 0 || bytes + fetch.place.len as usize > MAX_BYTES;
        if is_full && !messages.is_empty() {
            left_out += 1;
            continue;
        }
        let read = reader.entry(fetch)?;
        let look = source.content.look(&read.json, entry.subject());
        let shown = rendered(entry.id, &read.json, look.preview.as_deref());
        let html = message(&shown);
        if bytes + html.len() > MAX_BYTES {
            left_out += 1;
            continue;
        }
        bytes += html.len();
        messages.push(html);
    }
    Ok(element(source, &messages, left_out))
}

/// The rows of the path: from the row that is shown first up to its root.
fn path_to_selected(source: &PageSource) -> impl Iterator<Item = usize> {
    let rows = source.all.rows();
    std::iter::successors(source.part.selected, |at| rows.get(*at)?.parent())
}

fn is_message(entry: &Entry<'_>) -> bool {
    if entry.flags.has(Flags::HIDDEN) {
        return false;
    }
    match entry.kind {
        Kind::Message => entry.role != Role::ToolResult,
        Kind::CustomMessage | Kind::Compaction | Kind::BranchSummary => true,
        _ => false,
    }
}

/// The element with these messages. In `messages` the last message comes first.
fn element(source: &PageSource, messages: &[String], left_out: usize) -> String {
    let mut out = String::from("<div id=\"static\">\n<h1>");
    push_escaped(&mut out, &source.head.title);
    out.push_str("</h1>\n<p>");
    let about = match left_out {
        0 => "The active branch of this session, without the output of tools.".to_owned(),
        count => format!(
            "The last messages of the active branch, without the output of tools; {count} earlier messages are left out."
        ),
    };
    out.push_str(&about);
    out.push_str(" The whole tree needs JavaScript.</p>\n");
    for message in messages.iter().rev() {
        out.push_str(message);
    }
    out.push_str("</div>\n");
    out
}

/// A message as HTML, made from its blocks.
fn message(entry: &Value) -> String {
    let mut out = String::from("<section>\n<h2>");
    let text = |name: &str| entry.get(name).and_then(Value::as_str);
    push_escaped(&mut out, text("role").or(text("type")).unwrap_or_default());
    out.push_str("</h2>\n");
    for block in entry
        .get("blocks")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        push_block(&mut out, block);
    }
    out.push_str("</section>\n");
    out
}

fn push_block(out: &mut String, block: &Value) {
    let text = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
    match text("kind") {
        "html" => out.push_str(text("html")),
        "thinking" => {
            out.push_str("<details><summary>Thinking</summary>");
            out.push_str(text("html"));
            out.push_str("</details>");
        }
        "summary" => {
            out.push_str("<h3>");
            push_escaped(out, text("title"));
            out.push_str("</h3>");
            out.push_str(text("html"));
        }
        "toolCall" => {
            out.push_str("<p>");
            push_escaped(out, text("name"));
            out.push_str(": <code>");
            push_escaped(out, text("argument"));
            out.push_str("</code></p>");
        }
        "image" => {
            out.push_str("<p><img alt=\"\" src=\"data:");
            push_escaped(out, text("mimeType"));
            out.push_str(";base64,");
            push_escaped(out, text("data"));
            out.push_str("\"></p>");
        }
        "attachment" => {
            out.push_str("<p>Attachment: ");
            push_escaped(out, text("mimeType"));
            out.push_str("</p>");
        }
        _ => {
            out.push_str("<pre>");
            push_escaped(out, text("text"));
            out.push_str("</pre>");
        }
    }
    out.push('\n');
}
