//! A text input with a cursor that moves by graphemes. It has one line or several.
//!
//! The search, the prompts and the editor use it. It keeps the text as it was typed or stored, including
//! joiners and marks, so that a draft is sent unchanged. Only the drawn rows are sanitized.

use crate::keys::Key;
use crate::text;
use crossterm::event::KeyCode;
use unicode_segmentation::UnicodeSegmentation;

/// A text with a cursor.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Input {
    text: String,
    /// The number of bytes before the cursor, which is at a boundary of graphemes.
    cursor: usize,
    multiline: bool,
}

impl Input {
    /// Makes an input of one line, with the cursor at its end.
    pub fn line(text: &str) -> Self {
        let mut input = Self::default();
        input.insert(text);
        input
    }

    /// Makes an input of several lines, with the cursor at the end.
    pub fn lines(text: &str) -> Self {
        let mut input = Self {
            multiline: true,
            ..Self::default()
        };
        input.insert(text);
        input
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the number of bytes before the cursor.
    pub fn cursor(&self) -> usize {
        self.cursor
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub fn clear(&mut self) {
        self.text.clear();
        self.cursor = 0;
    }

    /// Inserts typed or pasted text. In an input of one line, line breaks become spaces.
    pub fn insert(&mut self, typed: &str) {
        let mut typed = typed.replace("\r\n", "\n").replace('\r', "\n");
        if !self.multiline {
            typed = typed.replace('\n', " ");
        }
        self.text.insert_str(self.cursor, &typed);
        self.cursor += typed.len();
    }

    /// Replaces the text between `place` (in characters from the start) and the cursor.
    pub fn replace_before(&mut self, place: usize, text: &str) {
        let start = self.text.char_indices().nth(place);
        let start = start.map_or(self.text.len(), |(at, _)| at);
        self.cut_back(start.min(self.cursor));
        self.insert(text);
    }

    /// Handles a key. Returns whether it is an editing key, even if it changes nothing.
    pub fn key(&mut self, key: Key) -> bool {
        match key.code() {
            KeyCode::Char(char) if key.text().is_some() => {
                self.insert(char.encode_utf8(&mut [0; 4]));
            }
            KeyCode::Left if key.by_word() => self.cursor = self.word_before(),
            KeyCode::Right if key.by_word() => self.cursor = self.word_after(),
            KeyCode::Left => self.cursor = self.before(),
            KeyCode::Right => self.cursor = self.after(),
            KeyCode::Home => self.cursor = self.line_start(),
            KeyCode::End => self.cursor = self.line_end(),
            KeyCode::Backspace if key.by_word() => self.cut_back(self.word_before()),
            KeyCode::Backspace => self.cut_back(self.before()),
            KeyCode::Delete => {
                let end = self.after();
                self.text.replace_range(self.cursor..end, "");
            }
            KeyCode::Char(_) if key.is_ctrl('a') => self.cursor = self.line_start(),
            KeyCode::Char(_) if key.is_ctrl('e') => self.cursor = self.line_end(),
            KeyCode::Char(_) if key.is_ctrl('w') => self.cut_back(self.word_before()),
            KeyCode::Char(_) if key.is_ctrl('u') => self.cut_back(self.line_start()),
            KeyCode::Char(_) if key.is_ctrl('k') => {
                let end = self.line_end();
                self.text.replace_range(self.cursor..end, "");
            }
            _ => return false,
        }
        true
    }

    fn cut_back(&mut self, to: usize) {
        self.text.replace_range(to..self.cursor, "");
        self.cursor = to;
    }

    fn head(&self) -> &str {
        self.text.get(..self.cursor).unwrap_or_default()
    }

    fn tail(&self) -> &str {
        self.text.get(self.cursor..).unwrap_or_default()
    }

    fn before(&self) -> usize {
        let last = self.head().grapheme_indices(true).next_back();
        last.map_or(0, |(at, _)| at)
    }

    fn after(&self) -> usize {
        let next = self.tail().graphemes(true).next();
        self.cursor + next.map_or(0, str::len)
    }

    fn word_before(&self) -> usize {
        let last = self.head().unicode_word_indices().next_back();
        last.map_or(0, |(at, _)| at)
    }

    fn word_after(&self) -> usize {
        let next = self.tail().unicode_word_indices().next();
        let end = next.map(|(at, word)| self.cursor + at + word.len());
        end.unwrap_or(self.text.len())
    }

    fn line_start(&self) -> usize {
        self.head().rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        let end = self.tail().find('\n').map(|at| self.cursor + at);
        end.unwrap_or(self.text.len())
    }

    /// Returns the rows that are drawn in `columns`, and the row and the column of the cursor.
    pub fn layout(&self, columns: usize) -> (Vec<DrawnRow>, (usize, usize)) {
        // One column is reserved, since the cursor may be after the last character.
        let room = columns.max(3) - 1;
        let mut rows = Vec::new();
        let mut cursor = (0, 0);
        let mut start = 0;
        for line in self.text.split('\n') {
            let mut row = DrawnRow::at(start);
            let mut column = 0;
            for (at, grapheme) in line.grapheme_indices(true) {
                let shown = shown(grapheme);
                let wide = text::width(&shown);
                if column + wide > room && column > 0 {
                    rows.push(std::mem::replace(&mut row, DrawnRow::at(start + at)));
                    column = 0;
                }
                if start + at == self.cursor {
                    cursor = (rows.len(), column);
                }
                row.text.push_str(&shown);
                column += wide;
            }
            if start + line.len() == self.cursor {
                cursor = (rows.len(), column);
            }
            rows.push(row);
            start += line.len() + 1;
        }
        (rows, cursor)
    }

    /// Moves the cursor to the drawn row above or below.
    pub fn vertical(&mut self, columns: usize, down: bool) {
        let (rows, (row, column)) = self.layout(columns);
        let target = if down {
            row.checked_add(1)
        } else {
            row.checked_sub(1)
        };
        let Some((target, drawn)) = target.and_then(|to| Some((to, rows.get(to)?))) else {
            return;
        };
        let next = rows
            .get(target + 1)
            .map_or(self.text.len(), |row| row.start);
        let stretch = self.text.get(drawn.start..next).unwrap_or_default();
        let mut taken = 0;
        let mut to = drawn.start;
        for grapheme in stretch.graphemes(true) {
            let wide = text::width(&shown(grapheme));
            let ends_here = next < self.text.len() && to + grapheme.len() == next;
            if grapheme == "\n" || taken + wide > column || ends_here {
                break;
            }
            taken += wide;
            to += grapheme.len();
        }
        self.cursor = to;
    }
}

/// A drawn row of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrawnRow {
    /// The number of bytes of the text before this row.
    start: usize,
    /// The sanitized text.
    pub text: String,
}

impl DrawnRow {
    fn at(start: usize) -> Self {
        Self {
            start,
            text: String::new(),
        }
    }
}

/// Returns a grapheme in the form in which it is drawn.
fn shown(grapheme: &str) -> String {
    match grapheme {
        "\t" => "    ".to_owned(),
        grapheme => text::line(grapheme),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(input: &mut Input, keys: &str) {
        for name in keys.split(' ') {
            assert!(input.key(Key::parse(name).unwrap()), "{name}");
        }
    }

    #[test]
    fn graphemes_and_words_are_edited() {
        let mut input = Input::line("a e\u{301}漢");
        press(&mut input, "backspace backspace");
        assert_eq!(input.text(), "a ");
        press(&mut input, "b space c ctrl+left x home y");
        assert_eq!(input.text(), "ya b xc");
        press(&mut input, "end ctrl+w");
        assert_eq!(input.text(), "ya b ");
        press(&mut input, "left left ctrl+k ctrl+u");
        assert!(input.is_empty());
        press(&mut input, "backspace delete left right");
    }

    #[test]
    fn pasted_text_is_kept_and_drawn_without_controls() {
        let mut one = Input::line("");
        one.insert("a\r\nb\u{1b}[2J❤\u{fe0f}");
        assert_eq!(one.text(), "a b\u{1b}[2J❤\u{fe0f}");
        assert_eq!(drawn(&one, 20), ["a b␛[2J❤"]);
        let several = Input::lines("a\r\nb\rc\td\n");
        assert_eq!(several.text(), "a\nb\nc\td\n");
        assert_eq!(drawn(&several, 20), ["a", "b", "c    d", ""]);
    }

    fn drawn(input: &Input, columns: usize) -> Vec<String> {
        let (rows, _) = input.layout(columns);
        rows.into_iter().map(|row| row.text).collect()
    }

    #[test]
    fn the_cursor_moves_over_drawn_rows() {
        let mut input = Input::lines("abcdef\ngh");
        assert_eq!(drawn(&input, 5), ["abcd", "ef", "gh"]);
        let mut path = vec![input.layout(5).1];
        for down in [false, false, false, true, true, true] {
            input.vertical(5, down);
            path.push(input.layout(5).1);
        }
        assert_eq!(
            path,
            [(2, 2), (1, 2), (0, 2), (0, 2), (1, 2), (2, 2), (2, 2)]
        );
    }

    #[test]
    fn the_cursor_is_never_inside_a_grapheme() {
        let mut input = Input::lines("漢字e\u{301}\nabcdefgh\n漢漢漢漢");
        for (at, key) in "left up up home right down down left up end"
            .split(' ')
            .cycle()
            .take(200)
            .enumerate()
        {
            match key {
                "up" | "down" => input.vertical(3 + at % 7, key == "down"),
                key => press(&mut input, key),
            }
            let before = &input.text()[..input.cursor()];
            let all: Vec<&str> = input.text().graphemes(true).collect();
            assert!((0..=all.len()).any(|n| all[..n].concat() == before));
        }
    }
}
