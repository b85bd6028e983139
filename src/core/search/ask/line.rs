//! The terms of a stored line, for an index of lines.

use super::terms::{Term, Tokenizer};

use crate::entry::scan::scan_line;
use crate::entry::{Facts, Line, Role};
use crate::search::{decoded, each_field_with_kind};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// The different terms in the first `most` bytes of a line's texts, sorted. A damaged line, a header and a blank line
/// have none.
pub fn terms_of_line(line: &[u8], most: usize) -> Vec<Term> {
    let Ok(Line::Entry(envelope)) = scan_line(line) else {
        return Vec::new();
    };
    let role = match envelope.facts {
        Facts::Message { role, .. } => role,
        _ => Role::None,
    };
    let (mut tokenizer, mut left) = (Tokenizer::default(), most);
    let mut terms = HashSet::new();
    each_field_with_kind(line, envelope.kind, role, |_, raw| {
        let text = decoded(raw);
        let mut fits = (0..=left.min(text.len())).rev();
        let end = fits.find(|end| text.is_char_boundary(*end));
        let text = text.get(..end.unwrap_or(0)).unwrap_or_default();
        left -= text.len();
        tokenizer.each(text, |token| {
            terms.insert(token.term);
        });
        // The bytes that are left may be too few for the next character.
        match left < 4 {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    let mut terms: Vec<Term> = terms.into_iter().collect();
    terms.sort_unstable();
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_terms_of_the_first_bytes_are_taken() {
        let line = r#"{"type":"message","id":"a","message":{"role":"user","content":"cache caches ééé key"}}"#;
        let of = |most| terms_of_line(line.as_bytes(), most).len();
        assert_eq!([of(0), of(6), of(14), of(15), of(1000)], [0, 1, 1, 2, 3]);
        assert!(terms_of_line(br#"{"type":"session","id":"cache"}"#, 1000).is_empty());
        assert!(terms_of_line(b"cache", 1000).is_empty());
    }
}
