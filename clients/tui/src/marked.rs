//! Sanitized text in which the matches of a search are marked.

use crate::text;
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;

/// One line of sanitized text with marked parts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MarkedText {
    text: String,
    /// The ranges of the marked parts, in bytes of `text`. They are at boundaries of graphemes, in order, and
    /// disjoint.
    marks: Vec<Range<usize>>,
}

impl MarkedText {
    /// Sanitizes `raw`. The ranges are in Unicode code points of `raw`, from start to end (exclusive). Each range is
    /// widened to whole graphemes, since half a grapheme cannot be drawn.
    pub fn new(raw: &str, ranges: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let mut starts = Vec::with_capacity(raw.len() + 1);
        let text = text::line_with_starts(raw, |start| starts.push(start));
        starts.push(text.len());
        let mut bounds: Vec<usize> = text.grapheme_indices(true).map(|(at, _)| at).collect();
        bounds.push(text.len());
        let at = |point: usize| starts.get(point).copied().unwrap_or(text.len());
        let mut marks: Vec<Range<usize>> = Vec::new();
        for (start, end) in ranges {
            let (start, end) = (at(start), at(end));
            let before = bounds.partition_point(|bound| *bound <= start);
            let start = bounds.get(before.saturating_sub(1)).copied();
            let behind = bounds.partition_point(|bound| *bound < end);
            let (Some(start), Some(end)) = (start, bounds.get(behind).copied()) else {
                continue;
            };
            match marks.last_mut().filter(|last| start <= last.end) {
                Some(last) => last.end = last.end.max(end),
                None if start < end => marks.push(start..end),
                None => {}
            }
        }
        Self { text, marks }
    }

    /// Returns the text in at most `columns`, divided into parts that are marked or not. If the first mark of a long
    /// text would not be visible, the result begins shortly before this mark.
    pub fn parts(&self, columns: usize) -> Vec<(String, bool)> {
        let mut parts = Vec::new();
        if columns == 0 {
            return parts;
        }
        let (mut from, mut room) = (0, columns);
        let mut end = self.text.len();
        if text::width(&self.text) > columns {
            let visible = text::head(&self.text, columns.saturating_sub(1)).len();
            from = self.beginning(visible, columns);
            if from > 0 {
                parts.push(("…".to_owned(), false));
                room = room.saturating_sub(1);
            }
            if room == 0 {
                return parts;
            }
            let rest = self.text.get(from..).unwrap_or_default();
            if text::width(rest) > room {
                end = from + text::head(rest, room.saturating_sub(1)).len();
            }
        }
        let mut push = |range: Range<usize>, is_marked| {
            let part = self.text.get(range).unwrap_or_default();
            if !part.is_empty() {
                parts.push((part.to_owned(), is_marked));
            }
        };
        for mark in &self.marks {
            let mark = mark.start.clamp(from, end)..mark.end.clamp(from, end);
            push(from..mark.start, false);
            from = mark.end;
            push(mark, true);
        }
        push(from..end, false);
        if end < self.text.len() {
            parts.push(("…".to_owned(), false));
        }
        parts
    }

    /// Returns the byte at which the shown text begins. Only the first `visible` bytes of the text fit into
    /// `columns`.
    fn beginning(&self, visible: usize, columns: usize) -> usize {
        let Some(first) = self.marks.first().filter(|first| first.end > visible) else {
            return 0;
        };
        let before = self.text.get(..first.start).unwrap_or_default();
        let mut taken = 0;
        for (at, grapheme) in before.grapheme_indices(true).rev() {
            taken += text::width(grapheme);
            if taken > columns / 3 {
                return at + grapheme.len();
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the parts with brackets around marked ones.
    fn shown(raw: &str, ranges: &[(usize, usize)], columns: usize) -> String {
        let text = MarkedText::new(raw, ranges.iter().copied());
        let parts = text.parts(columns).into_iter();
        parts
            .map(|(part, is_marked)| match is_marked {
                true => format!("[{part}]"),
                false => part,
            })
            .collect()
    }

    #[test]
    fn ranges_are_code_points_of_the_text_as_it_was_written() {
        for (raw, range, expected) in [
            ("the build fails", (4, 9), "the [build] fails"),
            ("漢字 build", (3, 8), "漢字 [build]"),
            ("漢字漢字", (1, 3), "漢[字漢]字"),
            // A combining mark cannot be drawn apart from its letter.
            ("cafe\u{301} build", (6, 11), "cafe\u{301} [build]"),
            ("cafe\u{301}s", (3, 4), "caf[e\u{301}]s"),
            ("cafe\u{301}s", (4, 5), "caf[e\u{301}]s"),
            // Characters that are removed, replaced and spelled out.
            ("a\u{200b}b\u{1b}c", (2, 5), "a[b␛c]"),
            ("🇩🇪 build", (3, 8), "DE [build]"),
            ("👩🏽\u{200d}💻 build", (5, 10), "👩💻 [build]"),
            ("\u{200b}", (0, 1), ""),
            ("past the end", (9, 99), "past the [end]"),
        ] {
            assert_eq!(shown(raw, &[range], 80), expected, "{raw:?}");
        }
        assert_eq!(shown("aab", &[(0, 1), (1, 2)], 80), "[aa]b");
    }

    #[test]
    fn a_text_that_is_too_long_shows_its_first_mark() {
        let long = "one two three four five six seven eight";
        assert_eq!(shown(long, &[(0, 3), (34, 39)], 16), "[one] two three f…");
        assert_eq!(shown(long, &[(28, 33)], 16), "… six [seven] eig…");
        assert_eq!(shown(long, &[(34, 39)], 16), "…even [eight]");
        assert_eq!(shown("漢字漢字漢字漢字", &[(7, 8)], 9), "…漢[字]");
        for columns in 0..50 {
            let parts = MarkedText::new(long, [(28, 33), (34, 39)]).parts(columns);
            let wide: usize = parts.iter().map(|(part, _)| text::width(part)).sum();
            assert!(wide <= columns, "{parts:?} in {columns}");
            assert!(columns < 4 || parts.iter().any(|(_, is_marked)| *is_marked));
        }
    }
}
