//! Steps over the parts of raw JSON: white space, keys and scalars.

use super::literal::{skip_string, string};
use super::span::{Malformed, Span};
use crate::bytes::part;
use std::borrow::Cow;

/// Position after white space (space, tab, line feed, carriage return).
#[inline]
pub fn skip_space(text: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\n' | b'\r') = text.get(at) {
        at += 1;
    }
    at
}

/// The key of a member whose value has not been read yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The key as written, without its quotes.
    pub key: Span,
    /// Whether the key has a backslash, so that its bytes are not its name.
    pub escaped: bool,
    /// The position where the value starts.
    pub value_at: usize,
}

impl Key {
    /// Whether the key's name, escapes decoded, is `name`.
    pub fn is(&self, text: &[u8], name: &str) -> bool {
        *self.name(text) == *name.as_bytes()
    }

    /// The key's name, escapes decoded.
    #[inline]
    pub fn name<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        key_name(text, &self.key, self.escaped)
    }
}

#[inline]
pub(super) fn key_name<'a>(text: &'a [u8], key: &Span, escaped: bool) -> Cow<'a, [u8]> {
    let raw = part(text, key.clone());
    if !escaped {
        return Cow::Borrowed(raw);
    }
    match text
        .get(key.start.saturating_sub(1)..key.end + 1)
        .and_then(string)
    {
        Some(Cow::Owned(name)) => Cow::Owned(name.into_bytes()),
        _ => Cow::Borrowed(raw),
    }
}

/// The open containers, the innermost one last. Each is one bit, which is set for an object.
#[derive(Default)]
pub(super) struct Nesting {
    pub(super) innermost: u64,
    pub(super) depth: usize,
    /// The full words of the outer levels.
    pub(super) outer: Vec<u64>,
}

impl Nesting {
    #[inline]
    pub(super) fn push(&mut self, object: bool) {
        if self.depth != 0 && self.depth.is_multiple_of(64) {
            self.outer.push(self.innermost);
        }
        self.innermost = self.innermost << 1 | u64::from(object);
        self.depth += 1;
    }

    #[inline]
    pub(super) fn pop(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.innermost >>= 1;
        if self.depth != 0 && self.depth.is_multiple_of(64) {
            let outer = self.outer.pop();
            debug_assert!(outer.is_some(), "`outer` has a word for every 64 levels");
            self.innermost = outer.unwrap_or_default();
        }
    }

    /// Whether the innermost open container is an object; `None` if no container is open.
    #[inline]
    pub(super) fn top(&self) -> Option<bool> {
        (self.depth != 0).then_some(self.innermost & 1 == 1)
    }
}

/// Skips `"key" :` and the white space after it.
#[inline]
pub(super) fn skip_key(text: &[u8], at: usize) -> Result<Key, Malformed> {
    let literal = skip_string(text, at)?;
    let colon = skip_space(text, literal.end);
    if text.get(colon) != Some(&b':') {
        return Err(Malformed { at: colon });
    }
    Ok(Key {
        key: at + 1..literal.end - 1,
        escaped: literal.escaped,
        value_at: skip_space(text, colon + 1),
    })
}

/// Skips a number, `true`, `false` or `null`.
#[inline]
pub(super) fn skip_scalar(text: &[u8], at: usize) -> Result<usize, Malformed> {
    let rest = text.get(at..).unwrap_or_default();
    let word: &[u8] = match rest.first_chunk::<4>() {
        Some(b"true" | b"null") => return Ok(at + 4),
        Some(b"fals") => b"false",
        Some([b'-' | b'0'..=b'9', ..]) => return skip_number(text, at),
        _ => match rest.first() {
            Some(b't') => b"true",
            Some(b'f') => b"false",
            Some(b'n') => b"null",
            _ => return skip_number(text, at),
        },
    };
    match rest.iter().zip(word).take_while(|(a, b)| a == b).count() {
        same if same == word.len() => Ok(at + same),
        same => Err(Malformed { at: at + same }),
    }
}

pub(super) fn skip_number(text: &[u8], at: usize) -> Result<usize, Malformed> {
    let mut at = at + usize::from(text.get(at) == Some(&b'-'));
    at = match text.get(at) {
        Some(b'0') => at + 1,
        _ => skip_digits(text, at)?,
    };
    if text.get(at) == Some(&b'.') {
        at = skip_digits(text, at + 1)?;
    }
    if let Some(b'e' | b'E') = text.get(at) {
        at += 1;
        at += usize::from(matches!(text.get(at), Some(b'+' | b'-')));
        at = skip_digits(text, at)?;
    }
    Ok(at)
}

/// Skips at least one decimal digit.
pub(super) fn skip_digits(text: &[u8], start: usize) -> Result<usize, Malformed> {
    let mut at = start;
    // No branch predictor can know where a number ends, so eight digits are tested at a time.
    while let Some(word) = text.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let digits = leading_digits(*word);
        at += digits;
        if digits < 8 {
            return some_digits(start, at);
        }
    }
    while let Some(b'0'..=b'9') = text.get(at) {
        at += 1;
    }
    some_digits(start, at)
}

#[inline]
pub(super) fn some_digits(start: usize, at: usize) -> Result<usize, Malformed> {
    if at == start {
        Err(Malformed { at })
    } else {
        Ok(at)
    }
}

/// The number of decimal digits at the start of the bytes.
#[inline]
pub(super) fn leading_digits(bytes: [u8; 8]) -> usize {
    const EACH: u64 = u64::MAX / 255;
    let word = u64::from_le_bytes(bytes);
    // The upper half of a digit's byte is 3, and stays 3 if 6 is added. Only a byte that is not a digit
    // carries into the next byte, so a carry affects only bytes after the last digit.
    let upper = word & (EACH * 0xf0) ^ (EACH * 0x30);
    let upper_of_more = word.wrapping_add(EACH * 6) & (EACH * 0xf0) ^ (EACH * 0x30);
    ((upper | upper_of_more).trailing_zeros() / 8) as usize
}
