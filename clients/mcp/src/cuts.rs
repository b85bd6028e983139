//! Where a text may be cut.

/// The longest word that is not cut, in characters. Identifiers and paths are words.
const WORD: usize = 64;
/// The beginning of a mark in the place of a secret.
const MARK: &str = "[redacted:";
/// The most bytes of such a mark before its end.
const LONGEST_MARK: usize = 64;

/// Whether any common program ends a line at this character.
pub fn is_line_end(c: char) -> bool {
    matches!(
        c,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// The first `max` bytes at most, and the number of bytes left out.
pub fn cut(text: &str, max: usize) -> (&str, usize) {
    let end = boundary(text, max);
    (text.get(..end).unwrap_or_default(), text.len() - end)
}

/// At most `max` characters, of whole words.
pub fn shortened(line: &str, max: usize) -> String {
    let Some((end, _)) = line.char_indices().nth(max) else {
        return line.to_owned();
    };
    let (head, rest) = line.split_at_checked(end).unwrap_or((line, ""));
    let mut end = boundary(line, end);
    if !rest.starts_with(char::is_whitespace) {
        let mut last = head.char_indices().rev().take(WORD + 1);
        if let Some((space, _)) = last.find(|(_, c)| c.is_whitespace()) {
            end = end.min(space);
        }
    }
    let head = line.get(..end).unwrap_or_default();
    format!("{}…", head.trim_end())
}

/// The last position at or before this byte that is not within a character, and not within the mark of a secret.
pub fn boundary(text: &str, at: usize) -> usize {
    let at = char_boundary(text, at);
    // A mark that begins shortly before this position may continue after it.
    let start = char_boundary(text, at.saturating_sub(LONGEST_MARK));
    let end = char_boundary(text, at + MARK.len() - 1);
    let near = text.get(start..end).unwrap_or_default();
    let mark = near.rfind(MARK).map(|mark| start + mark);
    let is_open = |mark: &usize| {
        let begun = text.get(*mark..at);
        begun.is_some_and(|begun| !begun.is_empty() && !begun.contains(']'))
    };
    mark.filter(is_open).unwrap_or(at)
}

/// The start of the word at this byte, unless the word is too long.
pub fn word_start(text: &str, at: usize) -> usize {
    let at = boundary(text, at);
    let head = text.get(..at).unwrap_or_default();
    let mut last = head.char_indices().rev().take(WORD + 1);
    match last.find(|(_, c)| c.is_whitespace()) {
        Some((space, c)) => space + c.len_utf8(),
        None if head.chars().nth(WORD).is_none() => 0,
        None => at,
    }
}

fn char_boundary(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    let mut all = (0..=at).rev();
    all.find(|at| text.is_char_boundary(*at))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cut once left the half of a mark, so that its secret looked like a text of the record.
    #[test]
    fn no_mark_of_a_secret_is_cut() {
        let text = "key=[redacted:github-token] end";
        let mark = "key=".len().."key=[redacted:github-token]".len();
        for at in 0..=text.len() {
            let (shown, left_out) = cut(text, at);
            let expected = if mark.contains(&at) { mark.start } else { at };
            assert_eq!((shown.len(), left_out), (expected, text.len() - expected));
        }
        assert_eq!(cut("é[redacted:é", 1), ("", 14));
        assert_eq!(boundary("no [mark] here", 5), 5);
        assert_eq!(boundary("[redacted:a] then [b", 19), 19);
        assert_eq!(
            shortened("the key [redacted:github-token] is old", 20),
            "the key…"
        );
        // A text can have the beginning of a mark without its end.
        let endless = format!("[redacted:{}", "x".repeat(200));
        assert_eq!(cut(&endless, 150).0.len(), 150);
        let glued = "x".repeat(80);
        assert_eq!(
            shortened(&format!("{glued}[redacted:word]"), 85),
            format!("{glued}…")
        );
    }

    #[test]
    fn words_are_whole_unless_they_are_long() {
        assert_eq!(shortened("see src/find/run.rs", 12), "see…");
        assert_eq!(
            shortened("see src/find/run.rs then", 19),
            "see src/find/run.rs…"
        );
        assert_eq!(shortened("see", 3), "see");
        assert_eq!(word_start("see src/find/run.rs", 10), 4);
        assert_eq!(word_start("src/find/run.rs", 10), 0);
        let long = "é".repeat(200);
        assert_eq!(word_start(&long, 151), 150);
        assert_eq!(shortened(&long, 100), format!("{}…", "é".repeat(100)));
    }
}
