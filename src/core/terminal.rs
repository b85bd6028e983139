//! Makes text safe for a terminal, and measures its width in columns.
//!
//! Sessions have text of models, tools and strangers. If such text is printed unchanged, it can move the cursor,
//! change the window's title, fill the clipboard, or reorder words. This module replaces the characters that do
//! so; the crate `treelined_redact` has the table of these characters.

use std::borrow::Cow;
use std::fmt::Write;
pub use treelined_redact::unseen::is_control;
pub use treelined_redact::unseen::is_unseen;

/// `text` as one line, in which each control character is replaced by a visible character without effect: C0 and DEL by
/// their pictures (`␛`), the others by U+FFFD. The rest of an escape sequence is plain text.
pub fn line(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let shown = text.chars().map(|char| match char {
        '\0'..='\u{1f}' => picture(u32::from(char)),
        '\u{7f}' => '\u{2421}',
        char if is_control(char) => char::REPLACEMENT_CHARACTER,
        char => char,
    });
    Cow::Owned(shown.collect())
}

/// The picture of a C0 control.
fn picture(code: u32) -> char {
    char::from_u32(0x2400 + code).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// JSON text in which each raw control character becomes its `\u` escape, which has the same value and no effect.
/// Line feeds separate tokens and stay.
pub fn json(text: &str) -> Cow<'_, str> {
    let escaped = |char| is_control(char) && char != '\n';
    if !text.contains(escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for char in text.chars() {
        match char {
            // These characters are only between tokens: in strings, JSON has them escaped.
            '\t' | '\r' => out.push(' '),
            char if escaped(char) => {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    // Writing to a string cannot fail.
                    let _written = write!(out, "\\u{unit:04x}");
                }
            }
            char => out.push(char),
        }
    }
    Cow::Owned(out)
}

/// The width of sanitized `text`, in columns.
pub fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// `text` if it fits into `columns`; else its beginning and `mark`, which together fit.
pub fn cut<'a>(text: &'a str, columns: usize, mark: &str) -> Cow<'a, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let room = columns.saturating_sub(width(mark));
    let mut taken = 0;
    let fits = |char: &char| {
        taken += char_width(*char);
        taken <= room
    };
    let mut head: String = text.chars().take_while(fits).collect();
    head.truncate(head.trim_end().len());
    head.push_str(mark);
    Cow::Owned(head)
}

/// The width of one character in columns, as terminals commonly draw it. It is decided for blocks of Unicode, not
/// for each character. A wrong width only makes an edge ragged.
const fn char_width(char: char) -> usize {
    match char {
        '\u{300}'..='\u{36f}'
        | '\u{483}'..='\u{489}'
        | '\u{591}'..='\u{5bd}'
        | '\u{610}'..='\u{61a}'
        | '\u{64b}'..='\u{65f}'
        | '\u{e34}'..='\u{e3a}'
        | '\u{e47}'..='\u{e4e}'
        | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}'
        | '\u{200b}'..='\u{200d}'
        | '\u{2060}'..='\u{2064}'
        | '\u{20d0}'..='\u{20ff}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{fe20}'..='\u{fe2f}'
        | '\u{feff}'
        | '\u{e0100}'..='\u{e01ef}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{231a}'..='\u{231b}'
        | '\u{23e9}'..='\u{23ec}'
        | '\u{2614}'..='\u{2615}'
        | '\u{2648}'..='\u{2653}'
        | '\u{26a1}'
        | '\u{2705}'
        | '\u{2728}'
        | '\u{274c}'
        | '\u{274e}'
        | '\u{2753}'..='\u{2757}'
        | '\u{2795}'..='\u{2797}'
        | '\u{2b50}'
        | '\u{2b55}'
        | '\u{2e80}'..='\u{303e}'
        | '\u{3041}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{a4cf}'
        | '\u{a960}'..='\u{a97f}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff01}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f18e}'
        | '\u{1f191}'..='\u{1f19a}'
        | '\u{1f200}'..='\u{1f64f}'
        | '\u{1f680}'..='\u{1f6ff}'
        | '\u{1f7e0}'..='\u{1f7eb}'
        | '\u{1f900}'..='\u{1f9ff}'
        | '\u{1fa70}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tags, separators and annotations once reached the terminal, since each part of the program had its own table,
    /// and no table had all these characters.
    #[test]
    fn no_control_gets_through() {
        let every = || (0..=0x10_ffff).filter_map(char::from_u32);
        let all: String = every().filter(|char| is_control(*char)).collect();
        for hidden in
            "\u{1b}\u{85}\u{2028}\u{2029}\u{202e}\u{206a}\u{fff9}\u{e0000}\u{e0041}\u{e007f}"
                .chars()
        {
            assert!(all.contains(hidden), "{hidden:?}");
        }
        assert!(!line(&all).contains(is_control));
        assert_eq!(line(&all).chars().count(), all.chars().count());
        assert!(!json(&all).contains(|char| is_control(char) && char != '\n'));
        // The controls of Unicode are among these characters.
        assert!(every().filter(|char| char.is_control()).all(is_control));
    }

    #[test]
    fn sequences_become_text() {
        for (text, shown) in [
            ("plain ä 漢字 🌳", "plain ä 漢字 🌳"),
            ("\u{1b}[31mred\u{1b}[0m", "␛[31mred␛[0m"),
            ("\u{1b}]0;title\u{7}", "␛]0;title␇"),
            (
                "\u{1b}]8;;http://x\u{1b}\\link\u{9c}",
                "␛]8;;http://x␛\\link\u{fffd}",
            ),
            ("\u{9b}2J\u{7f}\r\n\t", "\u{fffd}2J␡␍␊␉"),
            ("user\u{202e}txt.exe\u{2066}", "user\u{fffd}txt.exe\u{fffd}"),
        ] {
            assert_eq!(line(text), shown, "{text:?}");
        }
    }

    #[test]
    fn json_keeps_its_value() {
        let text = "{\"a\":\"\u{9b}2J \u{202e}\u{7f}\u{e0041}\"}";
        let shown = json(text);
        assert_eq!(shown, r#"{"a":"\u009b2J \u202e\u007f\udb40\udc41"}"#);
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&shown), value(text));
    }

    #[test]
    fn text_is_cut_to_columns() {
        for (text, columns, shown) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("ab cd", 4, "ab…"),
            ("漢字漢字", 8, "漢字漢字"),
            ("漢字漢字", 7, "漢字漢…"),
            ("漢字漢字", 6, "漢字…"),
            ("e\u{301}e\u{301}", 2, "e\u{301}e\u{301}"),
            ("abc", 0, "…"),
        ] {
            assert_eq!(cut(text, columns, "…"), shown, "{text} in {columns}");
        }
    }
}
