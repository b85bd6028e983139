//! Blocks that entries and messages both have.

use super::context::EntryContext;
use super::writer::{BlockWriter, Text};
use treelined_core::json::{Elements, MemberValues};
use treelined_core::summary::frame;
use treelined_core::{json, summary};

/// Writes the text that the renderer makes of a custom message.
pub(super) fn push_preview(writer: &mut BlockWriter<'_>, context: &EntryContext<'_>) {
    if let Some(preview) = context.preview {
        push_line(writer, preview);
    }
}

/// Writes a `text` block, unless the text is empty.
pub(super) fn push_line(writer: &mut BlockWriter<'_>, text: &str) {
    if !text.is_empty() {
        writer.block("text", |writer| writer.text("text", Text::Decoded(text)));
    }
}

/// The kind of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SummaryKind {
    Branch,
    Merge,
    Compaction,
}

impl SummaryKind {
    pub(super) fn of_branch(entry: &[u8]) -> Self {
        match json::get(entry, "merge") {
            Some(b"true") => Self::Merge,
            _ => Self::Branch,
        }
    }

    pub(super) const fn of(self) -> &'static str {
        match self {
            Self::Branch | Self::Merge => "branch",
            Self::Compaction => "compaction",
        }
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Branch => "Summary of a branch",
            Self::Merge => "Summary of a merged branch",
            Self::Compaction => "Compaction",
        }
    }
}

/// Writes the `summary` block of an entry or a message.
pub(super) fn push_summary(
    writer: &mut BlockWriter<'_>,
    kind: SummaryKind,
    of: &[u8],
    context: &EntryContext<'_>,
) {
    let members: MemberValues<'_, 3> = json::get_each(of, ["summary", "details", "tokensBefore"]);
    let [text, details, tokens] = members;
    let text = text.and_then(json::string).unwrap_or_default();
    let text = frame::without_files(&text);
    let preambles = [summary::PREAMBLE, summary::MERGE_PREAMBLE];
    let text = preambles
        .iter()
        .find_map(|preamble| text.strip_prefix(preamble))
        .unwrap_or(text);
    let html = super::content::html(text, writer.room());
    if html.is_none() {
        // A summary that cannot become HTML becomes a separate `text` block.
        push_line(writer, text);
    }
    writer.block("summary", |writer| {
        writer.whole("of", kind.of());
        writer.whole("title", kind.title());
        writer.whole("html", &html.unwrap_or_default());
        if let Some(replaced) = context.replaced {
            writer.object("replaced", |writer| {
                writer.whole("firstId", replaced.first);
                writer.whole("lastId", replaced.last);
            });
        }
        if let Some(details) = details.filter(|details| details.starts_with(b"{")) {
            push_files(writer, details);
        }
        if let Some(tokens) = tokens.and_then(number) {
            writer.number("tokens", tokens);
        }
    });
}

/// Writes the lists of files in the details of a summary, if the details have lists.
pub(super) fn push_files(writer: &mut BlockWriter<'_>, details: &[u8]) {
    let lists = json::get_each(details, ["readFiles", "modifiedFiles"]);
    if lists.iter().all(Option::is_none) {
        return;
    }
    writer.object("files", |writer| {
        for (name, list) in ["readFiles", "modifiedFiles"].into_iter().zip(lists) {
            writer.blocks(name, |writer| {
                let Ok(mut elements) = Elements::open(list.unwrap_or_default(), 0) else {
                    return;
                };
                while let Ok(Some(span)) = elements.next_value() {
                    let path = list.and_then(|list| json::string(list.get(span)?));
                    if let Some(path) = path {
                        writer.element(&path);
                    }
                }
            });
        }
    });
}

/// A whole number that is not negative.
pub(super) fn number(raw: &[u8]) -> Option<u64> {
    let number: f64 = std::str::from_utf8(raw).ok()?.parse().ok()?;
    number.is_finite().then(|| json::saturated(number))
}
