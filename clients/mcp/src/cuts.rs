//! Where a text may be cut.

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

/// The last boundary between characters at or before this byte.
pub fn boundary(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    let is_boundary = |at: &usize| text.is_char_boundary(*at);
    (0..=at).rev().find(is_boundary).unwrap_or_default()
}
