//! Markdown on one line: the words without the marks.
//!
//! A mark is removed only where Markdown gives it a meaning, so `2 * 3`, `*.rs`, `__init__` and `a_b` stay. How a
//! character is shown depends on at most [`LOOK`] bytes after it, so the beginning of a text gives the same line as the
//! whole text.

use super::line::PreviewLine;
use crate::json;
use memchr::memmem;

/// The most bytes after a character on which its display depends.
pub(super) const LOOK: usize = 200;
/// The most marks of quotes and list items at the beginning of a line.
const MOST_NESTED: usize = 4;

/// Text that is appended in pieces.
#[derive(Debug, Clone)]
pub(super) struct PlainText {
    is_line_start: bool,
    /// Whether the text is inside a fenced block of code.
    is_code: bool,
}

impl Default for PlainText {
    fn default() -> Self {
        Self {
            is_line_start: true,
            is_code: false,
        }
    }
}

impl PlainText {
    /// Appends the words of `text` without its last `held` bytes. Those bytes are read only to find the meaning of the
    /// bytes before them.
    pub(super) fn push(&mut self, line: &mut PreviewLine, text: &str, held: usize) {
        let end = text.len().saturating_sub(held);
        let mut at = 0;
        while at < end && !line.is_full() {
            let rest = text.get(at..).unwrap_or_default();
            let (row, length) = match rest.find('\n') {
                Some(found) => (rest.get(..found).unwrap_or_default(), found + 1),
                None => (rest, rest.len()),
            };
            let pushed = row.len().min(end - at);
            self.push_row(line, row, pushed);
            at += length;
            self.is_line_start = length > row.len();
            if self.is_line_start {
                line.gap();
            }
        }
    }

    /// Appends the first `end` bytes of `row`, which may be the rest of a row.
    fn push_row(&mut self, line: &mut PreviewLine, row: &str, end: usize) {
        let mut at = 0;
        if std::mem::take(&mut self.is_line_start) {
            let words = row.trim_start();
            if words.starts_with("```") || words.starts_with("~~~") {
                self.is_code = !self.is_code;
                return;
            }
            if !self.is_code {
                if is_rule(row) {
                    return;
                }
                at = row.len() - block(words, line.is_empty()).len();
            }
        }
        match self.is_code {
            true => line.push_str(row.get(..end).unwrap_or(row)),
            false => push_inline(line, row, at, end),
        }
    }
}

/// Whether a row is a horizontal rule, or the line below the head of a table.
fn is_rule(row: &str) -> bool {
    let marks = || row.chars().filter(|char| !char.is_whitespace());
    let is_mark = |char| matches!(char, '-' | '=' | '*' | '_' | '|' | ':');
    row.len() <= LOOK && marks().take(3).count() == 3 && marks().all(is_mark)
}

/// A row without the marks of headings and quotes. If `is_first`, the mark of a list item is removed too.
fn block(row: &str, is_first: bool) -> &str {
    let mut rest = row;
    for _ in 0..MOST_NESTED {
        let after = match rest.as_bytes() {
            [b'#', ..] => {
                let text = rest.trim_start_matches('#');
                let is_heading = rest.len() - text.len() <= 6 && text.starts_with(' ');
                is_heading.then_some(text)
            }
            [b'>', ..] => rest.get(1..),
            [b'-' | b'*' | b'+', b' ', ..] if is_first => rest.get(2..),
            _ => None,
        };
        match after {
            Some(after) => rest = after.trim_start(),
            None => break,
        }
    }
    rest
}

/// Appends the bytes `at..end` of a row without the marks of emphasis, code and links.
fn push_inline(line: &mut PreviewLine, row: &str, mut at: usize, end: usize) {
    let is_table = row.trim_start().starts_with('|');
    // For each open mark, the offset where it is closed and the offset where the text continues.
    let mut closed: Vec<(usize, usize)> = Vec::new();
    while at < end && !line.is_full() {
        if let Some(found) = closed.iter().position(|(start, _)| *start == at) {
            at = closed.swap_remove(found).1;
            continue;
        }
        let rest = row.get(at..).unwrap_or_default();
        let starts = closed.iter().map(|(start, _)| *start);
        let next = starts.filter(|start| *start > at).min();
        let words = words(rest, end.min(next.unwrap_or(end)) - at);
        if !words.is_empty() {
            line.push_str(words);
            at += words.len();
            continue;
        }
        let Some(first) = rest.chars().next() else {
            return;
        };
        let (shown, length, close) = match first {
            '*' | '_' | '~' => emphasis(rest, row.get(..at).unwrap_or_default()),
            '`' => code(rest),
            '[' | '!' => link(rest),
            '<' => address(rest),
            '\\' => escape(rest),
            '|' if is_table => (" ", 1, None),
            _ => {
                line.push(first);
                at += first.len_utf8();
                continue;
            }
        };
        line.push_str(shown);
        closed.extend(close.map(|(start, length)| (at + start, at + start + length)));
        at += length;
    }
}

/// The beginning of a text that has no marks: up to the first mark, but not beyond the character that contains the byte
/// `most`.
fn words(text: &str, most: usize) -> &str {
    let bytes = text.as_bytes();
    let bytes = bytes.get(..most).unwrap_or(bytes);
    let mut end = json::first_of(bytes, br"*_~`[!<\|");
    while !text.is_char_boundary(end) {
        end += 1;
    }
    text.get(..end).unwrap_or_default()
}

/// The part at the beginning of a text: the text to show, the number of bytes that it replaces, and the offset and
/// length in bytes of its closing mark.
type Mark<'t> = (&'t str, usize, Option<(usize, usize)>);

/// The first `length` bytes, shown unchanged.
fn literal(rest: &str, length: usize) -> Mark<'_> {
    (rest.get(..length).unwrap_or(rest), length, None)
}

/// The part of the text from `start` on that may be examined.
fn near(text: &str, start: usize) -> &str {
    let text = text.get(start..).unwrap_or_default();
    let mut end = text.len().min(LOOK - 16);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

fn emphasis<'t>(rest: &'t str, before: &str) -> Mark<'t> {
    let is_word = |char: Option<char>| char.is_some_and(|char| char.is_ascii_alphanumeric());
    let Some(mark) = rest.chars().next() else {
        return literal(rest, 0);
    };
    let run = rest.len() - rest.trim_start_matches(mark).len();
    let is_known = if mark == '~' { run == 2 } else { run <= 3 };
    let inside = near(rest, run);
    let opens = inside
        .chars()
        .next()
        .is_some_and(|char| !char.is_whitespace());
    if !is_known || !opens || is_word(before.chars().next_back()) {
        return literal(rest, run);
    }
    let marks = rest.get(..run).unwrap_or_default();
    for (length, _) in inside.match_indices(marks) {
        let text = inside.get(..length).unwrap_or_default();
        let after = inside.get(length + run..).unwrap_or_default();
        let last = text.chars().next_back();
        let closes = last.is_some_and(|last| !last.is_whitespace() && last != mark)
            && !after.starts_with(mark)
            && !is_word(after.chars().next());
        // A name such as `__init__` has no emphasis.
        if closes && (marks != "__" || text.contains(' ')) {
            return ("", run, Some((run + length, run)));
        }
    }
    literal(rest, run)
}

fn code(rest: &str) -> Mark<'_> {
    let run = rest.len() - rest.trim_start_matches('`').len();
    let marks = rest.get(..run).unwrap_or_default();
    let found = memmem::find(near(rest, run).as_bytes(), marks.as_bytes());
    match found.filter(|_| run < 4) {
        Some(length) => {
            let text = rest.get(run..run + length).unwrap_or_default();
            (text, run + length + run, None)
        }
        None => literal(rest, run),
    }
}

/// A link or an image: its text.
fn link(rest: &str) -> Mark<'_> {
    let mark = if rest.starts_with("![") { 2 } else { 1 };
    let inside = near(rest, mark);
    let found = inside
        .split_once("](")
        .filter(|_| !rest.starts_with('!') || mark == 2);
    if let Some((text, target)) = found
        && !text.contains('[')
        && let Some(length) = target.find(')')
        && !target.get(..length).unwrap_or_default().contains(' ')
    {
        return ("", mark, Some((mark + text.len(), length + 3)));
    }
    literal(rest, 1)
}

/// A bare address in angle brackets.
fn address(rest: &str) -> Mark<'_> {
    let inside = near(rest, 1);
    let length = inside
        .find(['>', ' '])
        .filter(|_| inside.starts_with("http"));
    match length.filter(|length| {
        inside
            .get(*length..)
            .is_some_and(|end| end.starts_with('>'))
    }) {
        Some(length) => (inside.get(..length).unwrap_or_default(), length + 2, None),
        None => literal(rest, 1),
    }
}

fn escape(rest: &str) -> Mark<'_> {
    match rest.get(1..2) {
        Some(char) if "*_`[]#~|".contains(char) => (char, 2, None),
        _ => literal(rest, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        let mut line = PreviewLine::default();
        PlainText::default().push(&mut line, text, 0);
        line.into_text()
    }

    /// Rows of answers once showed `## Done **Fix 1**: see [it](https://a.b)`.
    #[test]
    fn marks_are_dropped_where_markdown_knows_them() {
        for (text, shown) in [
            ("## Review\n\n**What**: stop `it`", "Review What: stop it"),
            ("- one\n- two", "one - two"),
            ("1. one\n2. two", "1. one 2. two"),
            ("> said\n> so", "said so"),
            (
                "see [the docs](https://a.b/c) and ![it](x.png)",
                "see the docs and it",
            ),
            ("<https://a.b> it", "https://a.b it"),
            (
                "Run:\n```rust\nfn main() {}\n```\ndone",
                "Run: fn main() {} done",
            ),
            ("| a | b |\n|---|---|\n| 1 | 2 |", "a b 1 2"),
            ("one\n---\ntwo", "one two"),
            ("***both*** *one* _two_ ~~three~~", "both one two three"),
            ("**重要**です", "重要です"),
            ("**see `a_b*` and *c* now**", "see a_b* and c now"),
            (r"a \*literal\* star", "a *literal* star"),
        ] {
            assert_eq!(plain(text), shown, "{text:?}");
        }
    }

    #[test]
    fn other_text_stays() {
        for text in [
            "2 * 3 * 4 = 24",
            "*.rs and *.md",
            "a_b_c __init__ x**2 **kwargs",
            "fix #12 and C:\\dir",
            "Vec<T> [done] a[0](1 2) !important",
            "an unclosed ` and ** stay",
            "~/home ~5 -x --all",
        ] {
            assert_eq!(plain(text), text);
        }
    }

    /// A head of 4 KiB is read first. It must give the same row as the whole line.
    #[test]
    fn a_part_of_a_text_gives_a_part_of_its_line() {
        let text =
            "**bold** and [a](b) `code` *it* __x y__ <http://a> ~~z~~ # - > | \n## h\n".repeat(12);
        let mut whole = PreviewLine::of(10_000);
        PlainText::default().push(&mut whole, &text, 0);
        let whole = whole.into_text();
        for end in 0..text.len() {
            let mut line = PreviewLine::of(10_000);
            PlainText::default().push(&mut line, &text[..end], LOOK);
            let line = line.into_text();
            assert!(whole.starts_with(&line), "{end}: {line}");
        }
    }
}
