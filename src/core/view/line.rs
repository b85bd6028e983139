//! One line of text from stored JSON, cut to a number of characters.

use crate::json;
use crate::terminal::is_control;

/// Text on one line: without control characters, with white space folded to single spaces, trimmed, and
/// with at most `PreviewLine::LIMIT` characters.
#[derive(Debug, Clone)]
pub struct PreviewLine {
    /// The most characters.
    limit: usize,
    /// The text in UTF-8.
    text: Vec<u8>,
    /// The number of characters in `text`, plus one if white space follows the text.
    length: usize,
    /// Whether white space comes between `text` and the next character.
    gap: bool,
}

impl Default for PreviewLine {
    fn default() -> Self {
        Self::of(Self::LIMIT)
    }
}

impl PreviewLine {
    /// The most characters (Unicode scalar values) of a line.
    pub(super) const LIMIT: usize = 200;

    /// An empty line of at most `limit` characters.
    pub(super) const fn of(limit: usize) -> Self {
        Self {
            limit,
            text: Vec::new(),
            length: 0,
            gap: false,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether further text cannot change the line.
    pub fn is_full(&self) -> bool {
        self.length >= self.limit
    }

    pub fn into_text(self) -> String {
        String::from_utf8(self.text).unwrap_or_default()
    }

    /// Ends the current word: white space comes before the next character.
    pub fn gap(&mut self) {
        self.gap = true;
    }

    /// Appends another line, with the character `between` before it if both lines have text.
    pub(super) fn join(&mut self, between: char, other: &PreviewLine) {
        if !self.is_empty() && !other.is_empty() {
            self.push(between);
        }
        self.append(other);
    }

    /// Appends another line.
    pub(super) fn append(&mut self, other: &PreviewLine) {
        self.push_str(&String::from_utf8_lossy(&other.text));
    }

    pub fn push_str(&mut self, text: &str) {
        let mut rest = text;
        while !self.is_full() {
            let after = self.push_plain(rest.as_bytes()).len();
            rest = rest.get(rest.len() - after..).unwrap_or_default();
            let Some(char) = rest.chars().next() else {
                return;
            };
            self.push(char);
            rest = rest.get(char.len_utf8()..).unwrap_or_default();
        }
    }

    #[inline]
    pub(super) fn push(&mut self, char: char) {
        match char {
            '!'..='~' => self.push_visible(char),
            ' ' | '\u{feff}' => self.gap = true,
            _ if char.is_whitespace() => self.gap = true,
            _ if is_control(char) => {}
            _ => self.push_visible(char),
        }
    }

    #[inline]
    fn push_visible(&mut self, char: char) {
        if std::mem::take(&mut self.gap) && !self.text.is_empty() {
            self.length += 1;
            if !self.is_full() {
                self.text.push(b' ');
            }
        }
        if !self.is_full() {
            let mut utf8 = [0; 4];
            self.extend(char.encode_utf8(&mut utf8).as_bytes());
            self.length += 1;
        }
    }

    /// Appends the text of a string literal. `cut` says that the end of the literal is missing; then a
    /// last character that may be incomplete is left out.
    pub fn push_literal(&mut self, raw: &[u8], cut: bool) {
        self.push_inside(raw.strip_prefix(b"\"").unwrap_or_default(), cut);
    }

    /// Appends the rest of a string literal, like [`push_literal`](Self::push_literal).
    pub(super) fn push_inside(&mut self, mut rest: &[u8], cut: bool) {
        while !self.is_full() {
            rest = self.push_plain(rest);
            let in_pieces = cut
                && rest.len() < json::LONGEST_CHAR
                && matches!(rest.first(), Some(b'\\' | 0x80..));
            if self.is_full() || in_pieces {
                return;
            }
            let Some((char, length)) = json::first_char(rest) else {
                return;
            };
            self.push(char);
            rest = rest.get(length..).unwrap_or_default();
        }
    }

    /// Appends text up to the first byte that needs decoding or folding; returns the rest.
    fn push_plain<'a>(&mut self, text: &'a [u8]) -> &'a [u8] {
        let spaced = self.gap && !self.is_empty();
        let room = self.limit.saturating_sub(self.length + usize::from(spaced));
        let end = json::plain_words(text.get(..room).unwrap_or(text));
        let (plain, rest) = text.split_at_checked(end).unwrap_or((b"", text));
        if !plain.is_empty() {
            if spaced {
                self.text.push(b' ');
                self.length += 1;
            }
            self.gap = false;
            self.extend(plain);
            self.length += plain.len();
        }
        rest
    }

    #[inline]
    fn extend(&mut self, utf8: &[u8]) {
        if self.text.capacity() == 0 {
            // Most lines are filled up to the limit.
            self.text = Vec::with_capacity(self.limit + utf8.len());
        }
        self.text.extend_from_slice(utf8);
    }
}
