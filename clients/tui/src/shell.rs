//! Commands as a shell reads them.

/// Returns the words as one command line.
pub fn command_line(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |char: char| {
        char.is_ascii_alphanumeric()
            || matches!(char, '_' | '-' | '.' | '/' | ':' | '=' | ',' | '@' | '+')
    };
    match !word.is_empty() && word.chars().all(is_plain) {
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
    }
}
