//! The content of a message: its blocks, its text, its calls, and its estimated tokens. Reads raw JSON of
//! any shape; values of a wrong shape count as absent.

use super::agent::AgentMessage;
use crate::entry::Role;
use crate::json::{self, Elements};
use std::borrow::Cow;

/// Tokens counted for an image (semantics.md §2).
pub(crate) const IMAGE_TOKENS: u64 = 1200;

/// One block of a content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ContentBlock<'a> {
    /// A raw string literal.
    Text(&'a [u8]),
    /// A raw string literal.
    Thinking(&'a [u8]),
    Call(ToolCallBlock<'a>),
    Image,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolCallBlock<'a> {
    pub id: Option<Cow<'a, str>>,
    pub name: Cow<'a, str>,
    /// Raw JSON, an object if the writer followed the format; empty if absent.
    pub arguments: &'a [u8],
}

/// The blocks of a content (raw JSON). A string is one text block; any other value except an array has no
/// blocks. Blocks of unknown types are skipped.
pub(crate) fn blocks(content: &[u8]) -> impl Iterator<Item = ContentBlock<'_>> {
    let text = content
        .starts_with(b"\"")
        .then_some(ContentBlock::Text(content));
    let mut elements = Elements::open(content, 0).ok();
    let listed = std::iter::from_fn(move || {
        loop {
            let span = elements.as_mut()?.next_value().ok()??;
            if let Some(block) = content.get(span).and_then(block) {
                return Some(block);
            }
        }
    });
    text.into_iter().chain(listed)
}

fn block(raw: &[u8]) -> Option<ContentBlock<'_>> {
    let literal = |name| json::get(raw, name).filter(|raw| raw.starts_with(b"\""));
    Some(match &*json::string(literal("type")?)? {
        "text" => ContentBlock::Text(literal("text")?),
        "thinking" => ContentBlock::Thinking(literal("thinking")?),
        "image" => ContentBlock::Image,
        "toolCall" => ContentBlock::Call(ToolCallBlock {
            id: literal("id").and_then(json::string),
            name: literal("name").and_then(json::string)?,
            arguments: json::get(raw, "arguments").unwrap_or_default(),
        }),
        _ => return None,
    })
}

/// The text blocks of a content, joined.
pub(crate) fn text(content: &[u8], separator: &str) -> String {
    let mut joined = String::new();
    let mut first = true;
    for block in blocks(content) {
        if let ContentBlock::Text(literal) = block {
            if !first {
                joined.push_str(separator);
            }
            first = false;
            joined.push_str(&json::string(literal).unwrap_or_default());
        }
    }
    joined
}

/// The content of a message, raw; empty if absent.
pub(crate) fn of(message: &[u8]) -> &[u8] {
    json::get(message, "content").unwrap_or_default()
}

/// Estimated tokens of a message: its characters, including thinking and arguments, divided by four and rounded up. An
/// image counts as [`IMAGE_TOKENS`] (semantics.md §2).
pub(crate) fn estimated_tokens(message: &AgentMessage) -> u64 {
    let member = |name| json::get(&message.json, name).unwrap_or_default();
    let characters = match message.role {
        Role::BranchSummary | Role::CompactionSummary => characters(member("summary")),
        Role::BashExecution => characters(member("command")) + characters(member("output")),
        Role::System => {
            characters_of_blocks(of(&message.json))
                + written(member("sections"))
                + written(member("toolsAdded"))
        }
        Role::User | Role::Assistant | Role::ToolResult | Role::Custom => {
            characters_of_blocks(of(&message.json))
        }
        Role::None | Role::Other => 0,
    };
    characters.div_ceil(4)
}

fn characters_of_blocks(content: &[u8]) -> u64 {
    blocks(content)
        .map(|block| match block {
            ContentBlock::Text(literal) | ContentBlock::Thinking(literal) => characters(literal),
            ContentBlock::Call(call) => call.name.chars().count() as u64 + written(call.arguments),
            ContentBlock::Image => IMAGE_TOKENS * 4,
        })
        .sum()
}

/// The number of characters of a string literal, decoded.
fn characters(literal: &[u8]) -> u64 {
    json::chars(literal).count() as u64
}

/// The number of characters of raw JSON as written.
fn written(raw: &[u8]) -> u64 {
    raw.iter().filter(|byte| **byte & 0xc0 != 0x80).count() as u64
}
