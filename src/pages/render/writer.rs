//! Writes the JSON of blocks, with a limit of bytes for each entry.

use std::borrow::Cow;
use treelined_core::json;

/// The most bytes of a name, such as a role, a tool, a model, or the id of a call.
const NAME_BYTES: usize = 256;
/// The bytes that the names and the structure of a block need.
pub(super) const BLOCK_BYTES: usize = 512;

/// A string to write.
#[derive(Debug, Clone, Copy)]
pub(super) enum Text<'a> {
    /// A JSON string literal, quotes included.
    Literal(&'a [u8]),
    Decoded(&'a str),
}

impl<'a> Text<'a> {
    /// The text of a raw value; `None` if the value is not a string.
    pub(super) fn of(raw: Option<&'a [u8]>) -> Option<Self> {
        raw.filter(|raw| raw.starts_with(b"\"")).map(Self::Literal)
    }

    pub(super) fn decoded(self) -> Cow<'a, str> {
        match self {
            Self::Literal(raw) => json::string(raw).unwrap_or_default(),
            Self::Decoded(text) => text.into(),
        }
    }
}

/// Writes one entry. Each opened object is closed, even if no bytes are left.
pub(super) struct BlockWriter<'o> {
    out: &'o mut Vec<u8>,
    /// The length of `out` at which the entry is full.
    end: usize,
    omitted: u64,
}

impl<'o> BlockWriter<'o> {
    pub(super) fn new(out: &'o mut Vec<u8>, max_bytes: usize) -> Self {
        let end = out.len().saturating_add(max_bytes);
        Self {
            out,
            end,
            omitted: 0,
        }
    }

    /// The number of bytes that are left.
    pub(super) fn room(&self) -> usize {
        self.end.saturating_sub(self.out.len())
    }

    /// The number of blocks that did not fit.
    pub(super) fn omitted(&self) -> u64 {
        self.omitted
    }

    pub(super) fn push(&mut self, json: &[u8]) {
        self.out.extend_from_slice(json);
    }

    /// Writes one block if there is room for it: `{"kind":…` and the members that `write` adds.
    pub(super) fn block(&mut self, kind: &str, write: impl FnOnce(&mut Self)) {
        if self.room() < BLOCK_BYTES {
            self.omitted += 1;
            return;
        }
        if self.out.last() != Some(&b'[') {
            self.out.push(b',');
        }
        self.push(b"{\"kind\":");
        json::push_string(self.out, kind);
        write(self);
        self.out.push(b'}');
    }

    /// Writes the member `name` with an array, and the blocks that `write` adds to it.
    pub(super) fn blocks(&mut self, name: &str, write: impl FnOnce(&mut Self)) {
        self.key(name);
        self.out.push(b'[');
        write(self);
        self.out.push(b']');
    }

    /// Writes the name of a member.
    pub(super) fn key(&mut self, name: &str) {
        if self.out.last() != Some(&b'{') {
            self.out.push(b',');
        }
        json::push_string(self.out, name);
        self.out.push(b':');
    }

    pub(super) fn number(&mut self, name: &str, value: u64) {
        self.key(name);
        let digits = value.to_string();
        self.push(digits.as_bytes());
    }

    pub(super) fn flag(&mut self, name: &str, value: bool) {
        self.key(name);
        self.push(if value { b"true" } else { b"false" });
    }

    /// Writes a string without cutting it.
    pub(super) fn whole(&mut self, name: &str, text: &str) {
        self.key(name);
        json::push_string(self.out, text);
    }

    /// Writes a name, cut to [`NAME_BYTES`], if there is one.
    pub(super) fn name(&mut self, member: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.whole(member, name(text));
        }
    }

    /// Writes a string as an element of an array, if there is room for it.
    pub(super) fn element(&mut self, text: &str) {
        if self.room() < text.len() + BLOCK_BYTES {
            return;
        }
        if self.out.last() != Some(&b'[') {
            self.out.push(b',');
        }
        json::push_string(self.out, text);
    }

    /// Writes the member `name` with an object, and the members that `write` adds to it.
    pub(super) fn object(&mut self, name: &str, write: impl FnOnce(&mut Self)) {
        self.key(name);
        self.out.push(b'{');
        write(self);
        self.out.push(b'}');
    }

    /// Writes a `code` block.
    pub(super) fn code(&mut self, text: Text<'_>, language: Option<&str>) {
        self.block("code", |writer| {
            writer.name("language", language);
            writer.text("text", text);
        });
    }

    /// Writes a string that may be long. If the string must be cut, also writes how much is missing.
    pub(super) fn text(&mut self, name: &str, text: Text<'_>) {
        self.key(name);
        let room = self.room().saturating_sub(BLOCK_BYTES / 2);
        if let Text::Literal(raw) = text
            && raw.len() <= room.min(STRING_BYTES)
            && memchr::memmem::find(raw, b"\\u").is_none()
        {
            return json::push_raw(self.out, raw);
        }
        let text = text.decoded();
        let start = self.out.len();
        let mut kept = prefix(&text, STRING_BYTES.min(room));
        json::push_string(self.out, kept);
        if self.out.len() - start > room + 2 {
            self.out.truncate(start);
            kept = prefix(kept, fitting(kept, room));
            json::push_string(self.out, kept);
        }
        if kept.len() < text.len() {
            self.number("truncated", (text.len() - kept.len()) as u64);
        }
    }
}

/// A name, cut to [`NAME_BYTES`].
pub(super) fn name(text: &str) -> &str {
    prefix(text, NAME_BYTES)
}

/// The longest beginning of `text` that has at most `bytes` bytes.
fn prefix(text: &str, bytes: usize) -> &str {
    let mut ends = (0..=bytes).rev().take_while(|_| bytes < text.len());
    let fitting = ends.find_map(|end| text.get(..end));
    fitting.unwrap_or(text)
}

/// The length of the longest beginning of `text` whose JSON literal has at most `room` bytes inside
/// its quotes.
fn fitting(text: &str, room: usize) -> usize {
    let mut literal = 0;
    for (at, char) in text.char_indices() {
        literal += match char {
            '"' | '\\' | '\n' | '\r' | '\t' => 2,
            '\0'..' ' | '\u{2028}' | '\u{2029}' => 6,
            _ => char.len_utf8(),
        };
        if literal > room {
            return at;
        }
    }
    text.len()
}

/// The most bytes of one string. A longer string is cut.
pub(crate) const STRING_BYTES: usize = 1 << 20;
