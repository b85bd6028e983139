//! One line of text out of stored JSON, cut at a number of characters.

use crate::json;

/// Text on one line: control characters removed, white space folded to single spaces, none at
/// either end, and no more than [`Line::LIMIT`] characters.
#[derive(Debug, Default)]
pub struct Line {
    text: String,
    /// Characters in `text`; one more where the last one would be white space.
    length: usize,
    /// White space stands between `text` and what comes next.
    gap: bool,
}

impl Line {
    /// Characters (Unicode scalar values).
    pub const LIMIT: usize = 200;

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether nothing that comes could change it.
    pub fn is_full(&self) -> bool {
        self.length >= Self::LIMIT
    }

    pub fn into_text(self) -> String {
        self.text
    }

    /// What comes next is a word of its own.
    pub fn gap(&mut self) {
        self.gap = true;
    }

    /// Appends another line, `between` before it if both say something.
    pub fn join(&mut self, between: char, other: &Line) {
        if !self.is_empty() && !other.is_empty() {
            self.push(between);
        }
        self.push_str(&other.text);
    }

    pub fn push_str(&mut self, text: &str) {
        text.chars().for_each(|char| self.push(char));
    }

    #[inline]
    pub fn push(&mut self, char: char) {
        match char {
            '!'..='~' => self.push_visible(char),
            ' ' | '\u{feff}' => self.gap = true,
            _ if char.is_whitespace() => self.gap = true,
            _ if char.is_control() => {}
            _ => self.push_visible(char),
        }
    }

    #[inline]
    fn push_visible(&mut self, char: char) {
        if std::mem::take(&mut self.gap) && !self.text.is_empty() {
            self.length += 1;
            if !self.is_full() {
                self.text.push(' ');
            }
        }
        if !self.is_full() {
            self.text.push(char);
            self.length += 1;
        }
    }

    /// Appends what a string literal says; `cut` if its end is missing, and then without the last
    /// character, which may be in pieces.
    pub fn push_literal(&mut self, raw: &[u8], cut: bool) {
        self.push_chars(json::chars(raw), cut);
    }

    /// Appends what is left of a string literal; `cut` as of [`push_literal`](Self::push_literal).
    pub fn push_chars(&mut self, mut chars: impl Iterator<Item = char>, cut: bool) {
        let mut held = None;
        while !self.is_full()
            && let Some(char) = chars.next()
        {
            if let Some(before) = held.replace(char) {
                self.push(before);
            }
        }
        if let Some(last) = held.filter(|_| !cut) {
            self.push(last);
        }
    }

    /// Appends JSON as it stands.
    pub fn push_raw(&mut self, raw: &[u8]) {
        for chunk in raw.utf8_chunks() {
            for char in chunk.valid().chars() {
                if self.is_full() {
                    return;
                }
                self.push(char);
            }
            if !chunk.invalid().is_empty() {
                self.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }
}
