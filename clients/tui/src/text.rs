//! Sanitized text, and its width in columns.
//!
//! Sessions contain text that models, tools and other programs wrote. If such text is printed unchanged, it
//! can move the cursor, change the title of the window, fill the clipboard, or reverse the order of words.
//! Every text from the daemon passes through [`line`] or [`lines`] before it enters the model.
//!
//! Columns are counted by grapheme clusters, like in ratatui. Terminals disagree about the width of emoji that
//! invisible characters join or style, and one column of difference spoils the line. So these invisible characters are
//! removed, and flags are written as letters. Then the width is the same in every terminal.

pub use treelined_redact::unseen::is_control;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The number of columns between tab stops.
const TAB: usize = 4;

/// Returns whether `char` has no column, or does not look the same in all terminals: soft hyphen,
/// zero-width space, word joiner, byte order mark, and the styles and skin tones of emoji.
const fn is_invisible(char: char) -> bool {
    matches!(
        char,
        '\u{ad}' | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{fe0e}' | '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}'
    )
}

/// Returns the letter of a regional indicator. Two such indicators form a flag, whose width differs between
/// terminals. A flag that is wider than expected would leave remains on the screen.
fn letter_of_flag(char: char) -> Option<char> {
    let at = u32::from(char).checked_sub(0x1f1e6)?;
    ('A'..='Z').nth(at as usize)
}

/// Returns whether `previous` can be joined with the next character to one emoji.
const fn joins_emoji(previous: char) -> bool {
    matches!(previous, '\u{2190}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}')
}

/// Returns `text` as one line. Each control character is replaced by a visible one.
pub fn line(text: &str) -> String {
    line_with_starts(text, |_| {})
}

/// Like [`line`]. Also calls `starts` for each character of `text`, with the byte offset at which the
/// character begins in the line.
pub fn line_with_starts(text: &str, mut starts: impl FnMut(usize)) -> String {
    let mut out = String::with_capacity(text.len());
    let mut previous = ' ';
    for char in text.chars() {
        starts(out.len());
        match char {
            '\0'..='\u{1f}' => out.push(picture(char)),
            '\u{7f}' => out.push('\u{2421}'),
            char if is_control(char) => out.push(char::REPLACEMENT_CHARACTER),
            char if is_invisible(char) => continue,
            '\u{200d}' if joins_emoji(previous) => continue,
            char => out.push(letter_of_flag(char).unwrap_or(char)),
        }
        previous = char;
    }
    out
}

/// Returns the picture of a C0 control character.
fn picture(char: char) -> char {
    char::from_u32(0x2400 + u32::from(char)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Splits `text` into lines that are sanitized like by [`line`]; tabs are expanded. A line break at the end
/// adds no line.
pub fn lines(text: &str) -> impl Iterator<Item = String> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.split(['\n', '\u{2028}', '\u{2029}']).map(|text| {
        let text = text.strip_suffix('\r').unwrap_or(text);
        if text.contains('\t') {
            line(&expand_tabs(text))
        } else {
            line(text)
        }
    })
}

fn expand_tabs(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + TAB);
    let mut column = 0;
    for (at, piece) in text.split('\t').enumerate() {
        if at > 0 {
            let spaces = TAB - column % TAB;
            out.extend(std::iter::repeat_n(' ', spaces));
            column += spaces;
        }
        out.push_str(piece);
        column += width(piece);
    }
    out
}

/// Returns the width of a sanitized text in columns.
pub fn width(text: &str) -> usize {
    text.width()
}

/// Cuts `text` to `columns`. A cut text is its beginning and `…`.
pub fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut out = head(text, columns.saturating_sub(1)).trim_end().to_owned();
    if columns > 0 {
        out.push('…');
    }
    out
}

/// Cuts `text` to `columns`. A cut text is `…` and its end.
pub fn cut_front(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut taken = 0;
    let mut from = text.len();
    for (at, grapheme) in text.grapheme_indices(true).rev() {
        taken += width(grapheme);
        if taken >= columns {
            break;
        }
        from = at;
    }
    let tail = text.get(from..).unwrap_or_default();
    if columns > 0 {
        format!("…{tail}")
    } else {
        String::new()
    }
}

/// Returns the longest beginning of `text` that fits into `columns`. Graphemes are not cut.
pub fn head(text: &str, columns: usize) -> &str {
    let mut taken = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        taken += width(grapheme);
        if taken > columns {
            return text.get(..at).unwrap_or_default();
        }
    }
    text
}

/// Wraps one line into lines of at most `columns`, between words if possible. The following lines have the
/// indentation of the first one.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    if width(text) <= columns {
        return vec![text.to_owned()];
    }
    let spaces = text.len() - text.trim_start_matches(' ').len();
    let indent = if spaces < columns / 2 { spaces } else { 0 };
    let indent = " ".repeat(indent);
    let mut out = Vec::new();
    let mut current = String::new();
    let mut taken = 0;
    for word in text.split_inclusive(' ').flat_map(pieces) {
        let wide = width(word);
        if taken + wide <= columns {
            current.push_str(word);
            taken += wide;
            continue;
        }
        if word.trim().is_empty() {
            // The line break replaces the spaces.
            flush(&mut out, &mut current, &indent);
            taken = width(&current);
            continue;
        }
        if taken > indent.len() && wide <= columns - indent.len() {
            flush(&mut out, &mut current, &indent);
            current.push_str(word);
            taken = width(&current);
            continue;
        }
        for grapheme in word.graphemes(true) {
            let wide = width(grapheme);
            if taken + wide > columns && taken > indent.len() {
                flush(&mut out, &mut current, &indent);
                taken = indent.len();
            }
            current.push_str(grapheme);
            taken += wide;
        }
    }
    if current.trim().is_empty() {
        return out;
    }
    out.push(current);
    out
}

/// Splits a word, with the space after it, into pieces between which it may be broken. Wide characters belong to
/// scripts without spaces, so a line may be broken at each of them.
fn pieces(word: &str) -> Vec<&str> {
    let is_plain = word.chars().all(|char| char.width().unwrap_or(0) < 2);
    if !is_plain {
        return word.split_word_bounds().collect();
    }
    let bare = word.trim_end_matches(' ');
    let (bare, space) = word.split_at(bare.len());
    [bare, space]
        .into_iter()
        .filter(|piece| !piece.is_empty())
        .collect()
}

fn flush(out: &mut Vec<String>, current: &mut String, indent: &str) {
    let full = std::mem::replace(current, indent.to_owned());
    out.push(full.trim_end().to_owned());
}

/// Breaks one line at exactly `columns`. For code, where every space counts.
pub fn fold(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut out = Vec::new();
    let mut current = String::new();
    let mut taken = 0;
    for grapheme in text.graphemes(true) {
        let wide = width(grapheme);
        // A grapheme that is wider than the pane gets its own line.
        if taken + wide > columns && taken > 0 {
            out.push(std::mem::take(&mut current));
            taken = 0;
        }
        current.push_str(grapheme);
        taken += wide;
    }
    if !current.is_empty() || out.is_empty() {
        out.push(current);
    }
    out
}

/// An English noun for this number of things.
pub fn plural(count: usize, noun: &str) -> String {
    match count {
        1 => noun.to_owned(),
        _ => format!("{noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_control_character_is_kept() {
        let every: String = (0..=0x10_ffff).filter_map(char::from_u32).collect();
        let shown = line(&every);
        assert!(!shown.contains(is_control));
        assert!(!shown.contains(char::is_control));
        for shown in lines(&every) {
            assert!(!shown.contains(is_control));
        }
    }

    #[test]
    fn escape_sequences_become_visible_text() {
        for (text, shown) in [
            ("plain ä 漢字 🌳", "plain ä 漢字 🌳"),
            ("\u{1b}[31mred\u{1b}[0m", "␛[31mred␛[0m"),
            ("\u{1b}]52;c;cm0=\u{7}", "␛]52;c;cm0=␇"),
            ("\u{9b}2J\u{7f}\r\n", "\u{fffd}2J␡␍␊"),
            ("user\u{202e}txt.exe\u{2066}", "user\u{fffd}txt.exe\u{fffd}"),
            ("👩🏽\u{200d}💻 ❤\u{fe0f}", "👩💻 ❤"),
            ("flags 🇩🇪🇫🇷 🇿", "flags DEFR Z"),
            ("क\u{94d}\u{200d}ष", "क\u{94d}\u{200d}ष"),
        ] {
            assert_eq!(line(text), shown, "{text:?}");
        }
    }

    #[test]
    fn lines_are_split_and_tabs_expanded() {
        let shown: Vec<String> = lines("a\tb\r\n\u{1b}[2J\u{2028}c\n").collect();
        assert_eq!(shown, ["a   b", "␛[2J", "c"]);
    }

    #[test]
    fn text_is_cut_to_columns() {
        for (text, columns, front, back) in [
            ("abc", 3, "abc", "abc"),
            ("abcd", 3, "ab…", "…cd"),
            ("漢字漢字", 7, "漢字漢…", "…字漢字"),
            ("漢字漢字", 6, "漢字…", "…漢字"),
            ("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…", "…e\u{301}"),
            ("abc", 0, "", ""),
        ] {
            assert_eq!(cut(text, columns), front, "{text} in {columns}");
            assert_eq!(cut_front(text, columns), back, "{text} in {columns}");
        }
    }

    #[test]
    fn text_is_wrapped() {
        #[track_caller]
        fn check(text: &str, columns: usize, expect: &[&str]) {
            assert_eq!(wrap(text, columns), expect);
        }
        check("the build fails", 20, &["the build fails"]);
        check("the build fails again", 9, &["the build", "fails", "again"]);
        check("  - one two three", 10, &["  - one", "  two", "  three"]);
        check("abcdefghij", 4, &["abcd", "efgh", "ij"]);
        check("a abcdefghij", 4, &["a ab", "cdef", "ghij"]);
        check("漢字漢字漢字", 5, &["漢字", "漢字", "漢字"]);
        check("see (the) end", 9, &["see (the)", "end"]);
        check("漢字 (かな)", 9, &["漢字 (か", "な)"]);
        check("", 4, &[""]);
        check("abc", 0, &["a", "b", "c"]);
    }

    #[test]
    fn code_is_folded() {
        assert_eq!(fold("    let x;", 6), ["    le", "t x;"]);
        assert_eq!(fold("漢字", 1), ["漢", "字"]);
        assert_eq!(fold("", 4), [""]);
    }

    /// For every text and width, lines fit the width and lose only the spaces at breaks.
    #[test]
    fn wrapping_loses_no_word() {
        let texts = [
            "a bb  ccc dddd",
            "   indented text",
            "漢字 and e\u{301}e\u{301} mixed",
            "    ",
        ];
        for text in texts {
            for columns in 2..20 {
                let wrapped = wrap(text, columns);
                assert!(
                    wrapped.iter().all(|line| width(line) <= columns),
                    "{wrapped:?}"
                );
                let words = |text: &str| text.replace(' ', "");
                assert_eq!(words(&wrapped.concat()), words(text));
            }
        }
    }
}
