//! Encodes [`RowFacts`] as bytes, for the cache (`log::preview_cache`).
//!
//! The facts depend only on a stored line and on the subject for which the line was read, so they are
//! valid as long as both stay the same.

use super::facts::{RowFacts, ToolCall};
use super::subject::Subject;
use crate::bytes::Cursor;
use crate::tools::LineCounts;
use crate::tree::Flags;
use std::borrow::Cow;

/// Bits that say which facts are present.
const TOOL_NAME: u16 = 1;
const TOKENS: u16 = 1 << 1;
const KIND: u16 = 1 << 2;
const ROLE: u16 = 1 << 3;
const TIMESTAMP: u16 = 1 << 4;
const TOOL_CALL_ID: u16 = 1 << 5;
const CALLS: u16 = 1 << 6;
const ASIDE: u16 = 1 << 7;
const LINES: u16 = 1 << 8;

impl RowFacts<'_> {
    /// Appends the facts as bytes. The facts must include an assistant's calls.
    pub fn push_extract(&self, subject: Subject, out: &mut Vec<u8>) {
        out.extend_from_slice(&taken_for(subject));
        let bit = |is: bool, bit| if is { bit } else { 0 };
        let there = bit(self.tool_name.is_some(), TOOL_NAME)
            | bit(self.tokens.is_some(), TOKENS)
            | bit(self.kind.is_some(), KIND)
            | bit(self.role.is_some(), ROLE)
            | bit(self.timestamp.is_some(), TIMESTAMP)
            | bit(self.tool_call_id.is_some(), TOOL_CALL_ID)
            | bit(!self.calls.is_empty(), CALLS)
            | bit(self.is_aside, ASIDE)
            | bit(self.lines > 0, LINES);
        out.extend_from_slice(&there.to_le_bytes());
        push_text(out, &self.preview);
        if let Some(tokens) = self.tokens {
            out.extend_from_slice(&tokens.to_le_bytes());
        }
        if self.lines > 0 {
            out.extend_from_slice(&self.lines.to_le_bytes());
        }
        let texts = [&self.tool_name, &self.kind, &self.role, &self.timestamp];
        for text in texts.into_iter().chain([&self.tool_call_id]).flatten() {
            push_text(out, text);
        }
        for call in &self.calls {
            for text in [&call.id, &call.name, &call.summary] {
                push_text(out, text);
            }
            out.extend_from_slice(&call.changes.to_le_bytes());
            // `u32::MAX` stands for no count, since no edit adds or removes so many lines.
            let none = LineCounts {
                added: u32::MAX,
                removed: u32::MAX,
            };
            let lines = call.lines.unwrap_or(none);
            out.extend_from_slice(&lines.added.to_le_bytes());
            out.extend_from_slice(&lines.removed.to_le_bytes());
        }
    }

    /// Reads the facts; `None` if the bytes are not an extract, or are an extract for another subject.
    pub fn of_extract(bytes: &[u8], subject: Subject) -> Option<RowFacts<'_>> {
        let mut fields = Cursor::new(bytes);
        if fields.take(3)? != taken_for(subject) {
            return None;
        }
        let there = u16::from_le_bytes(fields.take(2)?.try_into().ok()?);
        let has = |bit| there & bit != 0;
        let preview = text(&mut fields)?;
        let tokens = match has(TOKENS) {
            true => Some(fields.u64()?),
            false => None,
        };
        let lines = match has(LINES) {
            true => fields.u32()?,
            false => 0,
        };
        let mut optional = |bit| match has(bit) {
            true => Some(Some(text(&mut fields)?)),
            false => Some(None),
        };
        let mut facts = RowFacts {
            preview,
            tokens,
            lines,
            is_aside: has(ASIDE),
            tool_name: optional(TOOL_NAME)?,
            kind: optional(KIND)?,
            role: optional(ROLE)?,
            timestamp: optional(TIMESTAMP)?,
            tool_call_id: optional(TOOL_CALL_ID)?,
            calls: Vec::new(),
        };
        while has(CALLS) && subject.calls && !fields.is_at_end() {
            facts.calls.push(ToolCall {
                id: text(&mut fields)?,
                name: text(&mut fields)?,
                summary: text(&mut fields)?,
                changes: fields.u32()?,
                lines: {
                    let (added, removed) = (fields.u32()?, fields.u32()?);
                    (added < u32::MAX).then_some(LineCounts { added, removed })
                },
            });
        }
        if has(CALLS) && !subject.calls {
            return Some(facts);
        }
        fields.is_at_end().then_some(facts)
    }
}

/// The parts of a subject on which the facts depend.
fn taken_for(subject: Subject) -> [u8; 3] {
    let flag = |flag| u8::from(subject.flags.has(flag));
    let flags = flag(Flags::ERROR) | flag(Flags::ODD_TIMESTAMP) << 1;
    [subject.kind as u8, subject.role as u8, flags]
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    // A text whose length needs more than 16 bits makes the extract too long to be kept.
    let len = u16::try_from(text.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn text<'a>(fields: &mut Cursor<'a>) -> Option<Cow<'a, str>> {
    let len = fields.u16()?;
    let bytes = fields.take(usize::from(len))?;
    simdutf8::basic::from_utf8(bytes).ok().map(Cow::Borrowed)
}
