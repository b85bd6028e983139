//! The most informative line of a tool result: the last line, or the first line of a failed result. Only lines with a
//! letter or a digit count.

use crate::json;

/// The line to look for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    First,
    Last,
}

/// The line as written inside the string literal; `None` if no line counts. If the end of the literal is
/// missing, the first line must be complete.
pub(super) fn telling_line(inside: &[u8], is_cut: bool, which: Which) -> Option<&[u8]> {
    let mut found = None;
    let mut rest = inside;
    loop {
        let (line, after) = next_line(rest);
        let is_whole = after.is_some() || !is_cut;
        if (is_whole || which == Which::Last) && counts(line) {
            found = Some(line);
            if which == Which::First {
                return found;
            }
        }
        match after {
            Some(after) => rest = after,
            None => return found,
        }
    }
}

/// The text before the next line break, and the text after it, if there is one.
fn next_line(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    let escapes = |at: usize| {
        let found = memchr::memchr(b'\\', text.get(at..)?)?;
        Some(at + found)
    };
    let mut at = 0;
    while let Some(slash) = escapes(at) {
        let escape = text.get(slash..).unwrap_or_default();
        let length = match escape.get(1) {
            Some(b'n' | b'r') => 2,
            Some(b'u')
                if matches!(
                    escape.get(2..6),
                    Some(b"000a" | b"000A" | b"000d" | b"000D")
                ) =>
            {
                6
            }
            _ => {
                at = slash + 2;
                continue;
            }
        };
        let line = text.get(..slash).unwrap_or_default();
        return (line, escape.get(length..));
    }
    (text, None)
}

fn counts(line: &[u8]) -> bool {
    let mut rest = line;
    while let Some((char, length)) = json::first_char(rest) {
        if char.is_alphanumeric() {
            return true;
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_or_last_line_with_a_letter_or_digit() {
        let check = |inside: &str, first: &str, last: &str| {
            let line = |which| telling_line(inside.as_bytes(), false, which).unwrap_or_default();
            assert_eq!(line(Which::First), first.as_bytes(), "{inside}");
            assert_eq!(line(Which::Last), last.as_bytes(), "{inside}");
        };
        check("", "", "");
        check("one", "one", "one");
        check(r"\n--\none\ntwo\n\n---\n", "one", "two");
        check(r"10%\r20%\r\n", "10%", "20%");
        check(r"\u000aone\u000d\u2514 é", "one", r"\u2514 é");
        // The letter of an escape does not count; an escaped backslash escapes nothing.
        check(r"\t\b\f\n\\n", r"\\n", r"\\n");
        check(r"a\\\nb", r"a\\", "b");
        check(r"\u001b\n\u0061", r"\u0061", r"\u0061");
    }

    #[test]
    fn a_first_line_without_its_end_does_not_count() {
        let line = |inside: &'static str| telling_line(inside.as_bytes(), true, Which::First);
        assert_eq!(line(r"one"), None);
        assert_eq!(line(r"--\none"), None);
        assert_eq!(line(r"one\n"), Some(&b"one"[..]));
        assert_eq!(line(r"one\"), None);
    }
}
