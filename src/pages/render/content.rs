//! The content of messages and results.

use super::markdown::Part;

use super::writer::{BLOCK_BYTES, BlockWriter, Text};
use super::{image, markdown};
use treelined_core::bytes::part;
use treelined_core::json;
use treelined_core::json::Elements;

/// Writes the blocks of a tool's output, which is shown unchanged.
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

/// Calls `see` for each part of a content, with the type of the part and the part.
pub(super) fn each_part(content: &[u8], mut see: impl FnMut(&str, &[u8])) {
    let Ok(mut parts) = Elements::open(content, 0) else {
        return;
    };
    while let Ok(Some(span)) = parts.next_value() {
        let block = part(content, span);
        let kind = json::get(block, "type").and_then(json::string);
        see(&kind.unwrap_or_default(), block);
    }
}

/// Writes Markdown as `html` and `code` blocks, or as a `text` block if it cannot become HTML.
pub(super) fn push_markdown(writer: &mut BlockWriter<'_>, text: Text<'_>) {
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

/// Whether these parts are sure to fit into `room` bytes of JSON.
pub(super) fn fits(parts: &[Part], room: usize) -> bool {
    let sizes = parts.iter().map(|part| match part {
        Part::Html(text) | Part::Code { text, .. } => BLOCK_BYTES + literal_bytes(text),
    });
    sizes.sum::<usize>() <= room
}

/// The most bytes that a text needs as a JSON literal.
pub(super) fn literal_bytes(text: &str) -> usize {
    let escapes = text.bytes().filter(|byte| match byte {
        b'"' | b'\\' | 0xe2 => true,
        byte => *byte < b' ',
    });
    text.len() + 5 * escapes.count()
}

/// A text as HTML; `None` if the HTML does not fit into `room` bytes of JSON.
pub(super) fn html(markdown: &str, room: usize) -> Option<String> {
    markdown::html(markdown).filter(|html| literal_bytes(html) <= room)
}

/// Writes raw JSON as a `code` block.
pub(super) fn push_json(writer: &mut BlockWriter<'_>, raw: &[u8]) {
    let text = String::from_utf8_lossy(raw);
    writer.code(Text::Decoded(&text), Some("json"));
}
