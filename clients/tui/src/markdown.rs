//! Markdown within a line: emphasis, code and links become plain text with marked parts.
//!
//! The result is for reading, not for editing. A mark without a closing mark stays as text. The closing mark is
//! searched in the next [`FAR`] bytes only, so that the time is linear in the text.

use crate::text;
use std::ops::Range;

/// The most bytes between a mark and its closing mark.
const FAR: usize = 2000;

/// The emphasis of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Emphasis {
    pub strong: bool,
    pub slanted: bool,
    pub code: bool,
    pub link: bool,
    pub struck: bool,
}

/// Plain text with marked parts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prose {
    pub text: String,
    /// The ranges of the marked parts, in bytes of `text`, in order and disjoint.
    pub marks: Vec<(Range<usize>, Emphasis)>,
}

impl Prose {
    /// Makes a text without marked parts.
    pub fn plain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            marks: Vec::new(),
        }
    }

    /// Parses the marks in a line.
    pub fn parse(line: &str) -> Self {
        let mut out = Self::default();
        out.add(line, Emphasis::default(), 0);
        out
    }

    fn push(&mut self, text: &str, emphasis: Emphasis) {
        let begin = self.text.len();
        self.text.push_str(text);
        if emphasis == Emphasis::default() || text.is_empty() {
            return;
        }
        match self.marks.last_mut() {
            Some((range, last)) if range.end == begin && *last == emphasis => {
                range.end = self.text.len();
            }
            _ => self.marks.push((begin..self.text.len(), emphasis)),
        }
    }

    /// Adds a part of the text. `emphasis` is the emphasis of the marks around the part; `depth` is the number of these
    /// marks.
    fn add(&mut self, part: &str, emphasis: Emphasis, depth: usize) {
        let mut rest = part;
        let mut before = ' ';
        while let Some(at) = rest.find(['\\', '`', '*', '_', '~', '[', '!']) {
            let (plain, marked) = rest.split_at(at);
            self.push(plain, emphasis);
            before = plain.chars().next_back().unwrap_or(before);
            let used = self.mark(marked, before, emphasis, depth);
            let used = match used {
                0 => {
                    let wide = marked.chars().next().map_or(1, char::len_utf8);
                    self.push(marked.get(..wide).unwrap_or_default(), emphasis);
                    wide
                }
                used => used,
            };
            before = marked
                .get(..used)
                .and_then(|used| used.chars().next_back())
                .unwrap_or(before);
            rest = marked.get(used..).unwrap_or_default();
        }
        self.push(rest, emphasis);
    }

    /// Adds the marked part at the beginning of `marked`. Returns the number of bytes used; 0 if there is no mark.
    fn mark(&mut self, marked: &str, before: char, emphasis: Emphasis, depth: usize) -> usize {
        let mut chars = marked.chars();
        match (chars.next(), chars.next()) {
            (Some('\\'), Some(next)) if next.is_ascii_punctuation() => {
                self.push(next.encode_utf8(&mut [0; 4]), emphasis);
                2
            }
            (Some('`'), _) => {
                let ticks = marked.len() - marked.trim_start_matches('`').len();
                let fence = marked.get(..ticks).unwrap_or_default();
                let Some((code, used)) = between(marked, fence, fence) else {
                    return 0;
                };
                let code = code.strip_prefix(' ').unwrap_or(code);
                let code = code.strip_suffix(' ').unwrap_or(code);
                self.push(
                    code,
                    Emphasis {
                        code: true,
                        ..emphasis
                    },
                );
                used
            }
            (Some(mark @ ('*' | '_')), next) if depth < 4 => {
                let is_strong = next == Some(mark);
                let fence: String = std::iter::repeat_n(mark, 1 + usize::from(is_strong)).collect();
                if mark == '_' && before.is_alphanumeric() {
                    return 0;
                }
                let Some((inner, used)) = enclosed(marked, &fence) else {
                    return 0;
                };
                let behind = marked.get(used..).and_then(|rest| rest.chars().next());
                if mark == '_' && behind.is_some_and(char::is_alphanumeric) {
                    return 0;
                }
                let emphasis = match is_strong {
                    true => Emphasis {
                        strong: true,
                        ..emphasis
                    },
                    false => Emphasis {
                        slanted: true,
                        ..emphasis
                    },
                };
                self.add(inner, emphasis, depth + 1);
                used
            }
            (Some('~'), Some('~')) if depth < 4 => match enclosed(marked, "~~") {
                Some((inner, used)) => {
                    self.add(
                        inner,
                        Emphasis {
                            struck: true,
                            ..emphasis
                        },
                        depth + 1,
                    );
                    used
                }
                None => 0,
            },
            (Some('['), _) if depth < 4 => self.link(marked, emphasis, depth),
            (Some('!'), Some('[')) => match parts_of_link(marked.get(1..).unwrap_or_default()) {
                Some((name, _, used)) => {
                    self.push(&format!("[image: {name}]"), emphasis);
                    used + 1
                }
                None => 0,
            },
            _ => 0,
        }
    }

    /// Adds a link: its text, and its target if the target differs from the text.
    fn link(&mut self, marked: &str, emphasis: Emphasis, depth: usize) -> usize {
        let Some((name, target, used)) = parts_of_link(marked) else {
            return 0;
        };
        let begin = self.text.len();
        self.add(
            name,
            Emphasis {
                link: true,
                ..emphasis
            },
            depth + 1,
        );
        let shown = self.text.get(begin..).unwrap_or_default();
        if shown != target {
            self.push(&format!(" ({target})"), emphasis);
        }
        used
    }

    /// Breaks the text into lines of at most `columns`, like [`text::wrap`]. The marked parts are kept.
    pub fn wrap(&self, columns: usize) -> Vec<Prose> {
        let lines = text::wrap(&self.text, columns);
        if self.marks.is_empty() {
            return lines.into_iter().map(Self::plain).collect();
        }
        let mut from = 0;
        let mut out = Vec::with_capacity(lines.len());
        for (at, line) in lines.into_iter().enumerate() {
            let mut indent = 0;
            if at > 0 {
                // The break has replaced the spaces. The new line may begin with the indentation of the first line.
                indent = line.len() - line.trim_start_matches(' ').len();
                let rest = self.text.get(from..).unwrap_or_default();
                from += rest.len() - rest.trim_start_matches(' ').len();
            }
            let end = from + line.len() - indent;
            let inside = self.marks.iter().filter_map(|(range, emphasis)| {
                let cut = range.start.clamp(from, end)..range.end.clamp(from, end);
                let moved = cut.start - from + indent..cut.end - from + indent;
                (!moved.is_empty()).then_some((moved, *emphasis))
            });
            let marks = inside.collect();
            out.push(Self { text: line, marks });
            from = end;
        }
        out
    }

    /// Puts `text` in front of this text.
    pub fn behind(self, text: &str) -> Self {
        let by = text.len();
        let moved = self.marks.into_iter();
        Self {
            text: format!("{text}{}", self.text),
            marks: moved
                .map(|(range, emphasis)| (range.start + by..range.end + by, emphasis))
                .collect(),
        }
    }

    /// Returns all parts in order, each with its emphasis.
    pub fn parts(&self) -> Vec<(&str, Emphasis)> {
        let mut parts = Vec::new();
        let mut from = 0;
        for (range, emphasis) in &self.marks {
            parts.push((from..range.start, Emphasis::default()));
            parts.push((range.clone(), *emphasis));
            from = range.end;
        }
        parts.push((from..self.text.len(), Emphasis::default()));
        let parts = parts.into_iter();
        let texts = parts.filter_map(|(range, emphasis)| Some((self.text.get(range)?, emphasis)));
        texts.filter(|(text, _)| !text.is_empty()).collect()
    }
}

/// Returns the beginning of `text`, at most [`FAR`] bytes.
fn near(text: &str) -> &str {
    let mut end = text.len().min(FAR);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// Returns the text between `open`, with which `marked` begins, and the next `close`. Also returns the number of bytes
/// of the text with both marks.
fn between<'a>(marked: &'a str, open: &str, close: &str) -> Option<(&'a str, usize)> {
    let rest = near(marked.strip_prefix(open)?);
    let end = rest.find(close)?;
    Some((rest.get(..end)?, open.len() + end + close.len()))
}

/// Like [`between`], for marks of emphasis, whose inner sides must touch a word.
fn enclosed<'a>(marked: &'a str, fence: &str) -> Option<(&'a str, usize)> {
    let rest = near(marked.strip_prefix(fence)?);
    if rest.starts_with([' ', '*', '_', '~']) {
        return None;
    }
    let mut from = 0;
    loop {
        let at = from + rest.get(from..)?.find(fence)?;
        let inner = rest.get(..at)?;
        let behind = rest.get(at + fence.len()..)?;
        // A single mark must not be half of a double mark.
        let is_longer = fence.len() == 1 && (behind.starts_with(fence) || inner.ends_with(fence));
        if !inner.is_empty() && !inner.ends_with(' ') && !is_longer {
            return Some((inner, at + 2 * fence.len()));
        }
        let run = behind.len() - behind.trim_start_matches(fence).len();
        from = at + fence.len() + run;
    }
}

/// Returns the text and the target of a link, and the number of its bytes.
fn parts_of_link(marked: &str) -> Option<(&str, &str, usize)> {
    let (name, used) = between(marked, "[", "](")?;
    if name.contains('[') {
        return None;
    }
    let rest = marked.get(used - 1..)?;
    let (target, more) = between(rest, "(", ")")?;
    let target = target.split(' ').next()?;
    Some((name, target, used - 1 + more))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text with a letter and brackets around marked parts.
    fn shown(prose: &Prose) -> String {
        let parts = prose.parts().into_iter();
        let one = |(text, emphasis): (&str, Emphasis)| {
            let mut letters = String::new();
            for (is, letter) in [
                (emphasis.strong, 'b'),
                (emphasis.slanted, 'i'),
                (emphasis.code, 'c'),
                (emphasis.link, 'l'),
                (emphasis.struck, 's'),
            ] {
                letters.extend(is.then_some(letter));
            }
            match letters.is_empty() {
                true => text.to_owned(),
                false => format!("{letters}[{text}]"),
            }
        };
        parts.map(one).collect()
    }

    #[test]
    fn marks_become_parts() {
        for (line, expected) in [
            (
                "a **bold** and *slanted* word",
                "a b[bold] and i[slanted] word",
            ),
            ("__b__ _i_ ~~s~~ `c`", "b[b] i[i] s[s] c[c]"),
            ("**a *b* c**", "b[a ]bi[b]b[ c]"),
            ("`` a`b `` and `**x**`", "c[a`b] and c[**x**]"),
            ("[the `file`](src/main.rs)", "l[the ]cl[file] (src/main.rs)"),
            ("[x](x) ![a](b.png)", "l[x] [image: a]"),
            // These are not marks.
            ("2 * 3 * 4, a_b_c and *open", "2 * 3 * 4, a_b_c and *open"),
            ("**", "**"),
            ("\\*a\\* [a] (b) `", "*a* [a] (b) `"),
            ("***", "***"),
        ] {
            assert_eq!(shown(&Prose::parse(line)), expected, "{line}");
        }
    }

    #[test]
    fn wrapped_lines_keep_their_marks() {
        let prose = Prose::parse("  one **two three** `four` five");
        let lines: Vec<String> = prose.wrap(11).iter().map(shown).collect();
        assert_eq!(lines, ["  one b[two]", "  b[three]", "  c[four] five"]);
        assert_eq!(shown(&Prose::parse("*a*").behind("• ")), "• i[a]");
    }

    /// Every part of any text is at the boundaries of characters, and wrapping loses no mark of a word.
    #[test]
    fn odd_text_does_not_break_it() {
        let odd = [
            "漢**字漢**字 `é` *[漢](x)*",
            "*****a*****",
            "[[[](((",
            "_`*_`*~~",
            "\\",
        ];
        for line in odd {
            for columns in 1..20 {
                for wrapped in Prose::parse(line).wrap(columns) {
                    let joined: String = wrapped.parts().iter().map(|(text, _)| *text).collect();
                    assert_eq!(joined, wrapped.text, "{line} in {columns}");
                }
            }
        }
    }

    #[test]
    fn many_open_marks_take_linear_time() {
        let line = "*a [b ".repeat(40_000);
        assert_eq!(Prose::parse(&line).text.len(), line.len());
    }
}
