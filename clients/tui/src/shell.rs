//! Quotes commands for a shell.

use crate::text::is_control;

/// Returns the words as one command line.
pub fn command_line(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

/// Returns whether the words can safely be pasted into a terminal. They must not contain control characters. Quotes do
/// not help, since a terminal interprets a pasted line break or escape sequence as a key.
pub fn is_safe(words: &[String]) -> bool {
    !words.iter().any(|word| word.contains(is_control))
}

fn quoted(word: &str) -> String {
    let is_plain = |char: char| {
        char.is_ascii_alphanumeric()
            || matches!(char, '_' | '-' | '.' | '/' | ':' | '=' | ',' | '@' | '+')
    };
    // zsh replaces `=word` with the path of a program, so such a word is quoted.
    let is_plain = !word.is_empty() && !word.starts_with('=') && word.chars().all(is_plain);
    match is_plain {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_as_a_shell_reads_it() {
        let words = ["treelined", "a-1", "it's; rm *", ""].map(str::to_owned);
        assert_eq!(command_line(&words), r"treelined a-1 'it'\''s; rm *' ''");
        let words = ["=ls", "a=b"].map(str::to_owned);
        assert_eq!(command_line(&words), "'=ls' a=b");
    }

    /// Marks of direction, separators of lines and tags were once copied, since the table here did not have all of them.
    #[test]
    fn a_command_with_control_characters_is_not_safe() {
        assert!(is_safe(&["ä 漢字 'x'".to_owned(), String::new()]));
        for char in [
            '\0',
            '\n',
            '\r',
            '\t',
            '\u{1b}',
            '\u{7f}',
            '\u{9b}',
            '\u{61c}',
            '\u{200f}',
            '\u{2028}',
            '\u{202e}',
            '\u{2066}',
            '\u{206a}',
            '\u{fff9}',
            '\u{e0041}',
        ] {
            assert!(!is_safe(&["a".to_owned(), format!("b{char}")]), "{char:?}");
        }
    }
}
