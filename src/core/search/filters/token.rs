//! Cuts a text into words, phrases, patterns and filters.

use super::keys::Filter;

/// A part of the text, by bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'t> {
    pub start: usize,
    pub end: usize,
    pub kind: TokenKind<'t>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind<'t> {
    Word(&'t str),
    Phrase(&'t str),
    Excluded(&'t str),
    ExcludedPhrase(&'t str),
    Pattern(&'t str),
    /// `value_at` is the index of the value in bytes, after the `"` of the value.
    Filter {
        filter: Filter,
        value: &'t str,
        value_at: usize,
    },
}

/// The number of characters before a byte.
pub(super) fn characters(text: &str, byte: usize) -> usize {
    text.get(..byte).unwrap_or(text).chars().count()
}

/// The tokens of a text, in order.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = Token<'_>> {
    // `may_close` says whether a later slash may close a pattern, so that the text is searched only once for such a
    // slash.
    let (mut end, mut may_close) = (0, true);
    std::iter::from_fn(move || {
        let rest = text.get(end..)?;
        let start = end + rest.find(|c: char| !c.is_whitespace())?;
        let (kind, len) = token(text.get(start..)?, start, &mut may_close);
        end = start + len;
        Some(Token { start, end, kind })
    })
}

/// The token with which `rest` begins, and its length in bytes. `start` is the index of `rest` in the text, in bytes.
/// `may_close` says whether a slash after the token may close a pattern.
fn token<'t>(rest: &'t str, start: usize, may_close: &mut bool) -> (TokenKind<'t>, usize) {
    if let Some((phrase, len)) = phrase(rest) {
        return (TokenKind::Phrase(phrase), len);
    }
    if *may_close && rest.starts_with('/') {
        if let Some((pattern, len)) = pattern(rest) {
            return (TokenKind::Pattern(pattern), len);
        }
        *may_close = false;
    }
    if let Some(excluded) = rest.strip_prefix('-') {
        if let Some((phrase, len)) = phrase(excluded) {
            return (TokenKind::ExcludedPhrase(phrase), len + 1);
        }
        let word = word(excluded);
        // In commands such as `set -u`, `rm -rf` and `go test -tags=x`, the dash begins an option, so the word is not
        // excluded. One or two letters are in most entries, so most entries would be left out.
        let is_option = word.is_ascii() && (word.len() <= 2 || word.contains('='));
        if excluded.starts_with(char::is_alphanumeric) && !is_option {
            return (TokenKind::Excluded(word), word.len() + 1);
        }
    }
    let word = word(rest);
    let Some((filter, value)) = filter_in(word) else {
        return (TokenKind::Word(word), word.len());
    };
    let before = word.len() - value.len();
    let (value, len, quote) = match rest.get(before..).and_then(phrase) {
        Some((phrase, len)) => (phrase, len, 1),
        None => (value, value.len(), 0),
    };
    let value_at = start + before + quote;
    let kind = TokenKind::Filter {
        filter,
        value,
        value_at,
    };
    (kind, before + len)
}

fn word(rest: &str) -> &str {
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    rest.get(..end).unwrap_or_default()
}

/// The phrase at the beginning, and its length with the quotes. The end of the text also closes a phrase.
fn phrase(rest: &str) -> Option<(&str, usize)> {
    let inner = rest.strip_prefix('"')?;
    Some(match inner.find('"') {
        Some(end) => (inner.get(..end)?, end + 2),
        None => (inner, rest.len()),
    })
}

/// The pattern at the beginning, and its length with the slashes. A slash closes the pattern if it ends a word and has
/// no backslash before it.
fn pattern(rest: &str) -> Option<(&str, usize)> {
    let inner = rest.strip_prefix('/')?;
    let mut ends = inner.match_indices('/').map(|(end, _)| end);
    let end = ends.find(|end| {
        let after = inner.get(end + 1..).unwrap_or_default();
        let before = inner.get(..*end).unwrap_or_default();
        let ends_word = after.is_empty() || after.starts_with(char::is_whitespace);
        ends_word && !before.is_empty() && !before.ends_with('\\')
    })?;
    Some((inner.get(..end)?, end + 2))
}

/// The filter with which a word begins, and the rest of the word.
pub(super) fn filter_in(word: &str) -> Option<(Filter, &str)> {
    let (name, value) = word.split_once(':')?;
    Some((Filter::of(name)?, value))
}
