//! Labels and session names as they are shown: on one line, without white space around them.

use crate::terminal::is_control;
use std::borrow::Cow;

/// The most bytes of the name of a branch. There is a limit because each list and each tree contains the name
/// (protocol.md §3.20).
pub const MOST_BRANCH_NAME: usize = 1024;

/// `text` on one line and trimmed. Line breaks (CR LF counts as one) and other control characters become
/// spaces. Empty if nothing is left to show.
pub fn normalized(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return Cow::Borrowed(text.trim());
    }
    let line = text.replace("\r\n", " ").replace(is_control, " ");
    Cow::Owned(line.trim().to_owned())
}

/// The normalized text; `None` if the text is blank. A blank text removes the name or label.
pub fn given(text: &str) -> Option<String> {
    Some(normalized(text).into_owned()).filter(|text| !text.is_empty())
}

/// The normalized name of a branch, cut at the limit; `None` if the name is blank.
pub fn of_branch(text: &str) -> Option<String> {
    let mut name = given(text)?;
    let mut ends = (0..=MOST_BRANCH_NAME.min(name.len())).rev();
    let end = ends.find(|end| name.is_char_boundary(*end));
    name.truncate(end.unwrap_or_default());
    Some(name)
}

/// A working directory in the form in which directories are compared: without repeated and trailing `/` and
/// without `.`. Links and `..` stay.
pub fn directory(cwd: &str) -> String {
    let parts = cwd
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".");
    let parts = parts.collect::<Vec<_>>().join("/");
    match cwd.starts_with('/') {
        true => format!("/{parts}"),
        false => parts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_trimmed_line() {
        for (text, expect) in [
            ("a  b", "a  b"),
            (" \ta\u{a0}", "a"),
            ("a\r\nb\nc\rd", "a b c d"),
            ("\u{7}a\u{1b}[2J\u{2028}b\u{85}", "a [2J b"),
            ("\u{7} \n", ""),
            ("", ""),
        ] {
            assert_eq!(normalized(text), expect, "{text:?}");
            assert_eq!(normalized(expect), expect, "a second time changes nothing");
        }
        assert_eq!(given(" \r\n"), None);
        assert_eq!(given(" x ").as_deref(), Some("x"));
    }
}
