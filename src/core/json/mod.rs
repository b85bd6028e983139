//! Raw JSON over bytes: validate, find members, decode strings, splice.
//!
//! Owns the grammar by which stored lines are read and edited: RFC 8259 as JavaScript's `JSON.parse`
//! accepts it. So lone surrogate escapes, numbers out of range, any nesting depth and duplicate members
//! (the last one counts) are valid. Nothing here builds a value or serializes one: an edit keeps all other
//! bytes. It does not know entries and does not check UTF-8: bytes above 0x7f are accepted, and a decoded
//! string has U+FFFD for invalid ones. Nothing recurses: nesting costs one bit per level.

mod block;
mod edit;
mod literal;
mod plain;
#[cfg(test)]
mod tests;
mod walk;

use crate::bytes::part;
use std::borrow::Cow;
use std::fmt;

pub use edit::{
    push_one_line, push_raw, push_string, push_strings, quoted, quoted_or_null, splice,
    with_member, without_member,
};
use literal::skip_string;
pub use literal::{LONGEST_CHAR, chars, first_char, id, string};
pub use plain::{first_of, plain_words};
pub use walk::{Visitor, walk};

/// Positions in bytes, end exclusive.
pub type Span = std::ops::Range<usize>;

/// A text is not JSON. `at` is the byte offset of the first wrong byte, or the length of the text if only
/// its end is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed {
    pub at: usize,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not JSON from byte {} on", self.at)
    }
}

impl std::error::Error for Malformed {}

/// Position after white space (space, tab, line feed, carriage return).
#[inline]
pub fn skip_space(text: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\n' | b'\r') = text.get(at) {
        at += 1;
    }
    at
}

/// Validates a whole text, one value with white space around it, and returns the value's span.
pub fn value_span(text: &[u8]) -> Result<Span, Malformed> {
    let start = skip_space(text, 0);
    let end = skip_value(text, start)?;
    match skip_space(text, end) {
        at if at < text.len() => Err(Malformed { at }),
        _ => Ok(start..end),
    }
}

/// Validates the value that starts exactly at `at` and returns the position after it. The rest of the text
/// is not read: `01` is a `0` with another byte after it.
#[inline]
pub fn skip_value(text: &[u8], at: usize) -> Result<usize, Malformed> {
    match text.get(at) {
        Some(b'"') => Ok(skip_string(text, at)?.end),
        Some(b'{' | b'[') => walk(text, at, &mut ()),
        _ => skip_scalar(text, at),
    }
}

/// One member of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The key as written, without its quotes.
    pub key: Span,
    /// Whether the key has a backslash, so that its bytes are not its name.
    pub key_escaped: bool,
    pub value: Span,
}

impl Member {
    /// Whether the member's name, escapes decoded, is `name`.
    pub fn is(&self, text: &[u8], name: &str) -> bool {
        *self.name(text) == *name.as_bytes()
    }

    /// The member's name, escapes decoded.
    #[inline]
    pub fn name<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        key_name(text, &self.key, self.key_escaped)
    }

    fn start(&self) -> usize {
        self.key.start.saturating_sub(1)
    }
}

/// The key of a member whose value has not been read yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The key as written, without its quotes.
    pub key: Span,
    /// Whether the key has a backslash, so that its bytes are not its name.
    pub escaped: bool,
    /// Where the value starts.
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
fn key_name<'a>(text: &'a [u8], key: &Span, escaped: bool) -> Cow<'a, [u8]> {
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

/// A streaming walk over the members of one object, which validates all that it skips.
///
/// [`next`](Self::next) skips whole members. A caller that walks a value itself uses
/// [`next_key`](Self::next_key), walks the value from `value_at`, and passes its end to
/// [`resume`](Self::resume), so that no byte is read twice.
#[derive(Debug)]
pub struct Members<'a> {
    text: &'a [u8],
    at: usize,
    first: bool,
    done: bool,
}

impl<'a> Members<'a> {
    /// Starts at `text[at]`, which must be `{`.
    pub fn open(text: &'a [u8], at: usize) -> Result<Self, Malformed> {
        match text.get(at) {
            Some(b'{') => Ok(Self {
                text,
                at: at + 1,
                first: true,
                done: false,
            }),
            _ => Err(Malformed { at }),
        }
    }

    /// Continues after a member that ends at `at`, the first or a later one.
    pub(crate) fn behind(text: &'a [u8], at: usize) -> Self {
        Self {
            text,
            at,
            first: false,
            done: false,
        }
    }

    /// The next key; the walk is then at its value and waits for [`resume`](Self::resume).
    #[inline]
    pub fn next_key(&mut self) -> Result<Option<Key>, Malformed> {
        if !next_item(
            self.text,
            &mut self.at,
            &mut self.first,
            &mut self.done,
            b'}',
        )? {
            return Ok(None);
        }
        let key = skip_key(self.text, self.at)?;
        self.at = key.value_at;
        Ok(Some(key))
    }

    /// Continues after a value that the caller walked itself: `end` is the position after it.
    #[inline]
    pub fn resume(&mut self, end: usize) {
        self.at = end;
    }

    /// Skips the value at which the walk is, and returns its span.
    #[inline]
    pub fn value(&mut self) -> Result<Span, Malformed> {
        let start = self.at;
        self.at = skip_value(self.text, start)?;
        Ok(start..self.at)
    }

    /// The next member, its value validated; `None` after the last one.
    pub fn next_member(&mut self) -> Result<Option<Member>, Malformed> {
        let Some(key) = self.next_key()? else {
            return Ok(None);
        };
        let value = self.value()?;
        Ok(Some(Member {
            key: key.key,
            key_escaped: key.escaped,
            value,
        }))
    }

    /// After the last member: the position after the closing brace.
    pub fn end(&self) -> usize {
        self.at
    }
}

/// A streaming walk over the elements of one array; see [`Members`] for walking the elements themselves.
#[derive(Debug)]
pub struct Elements<'a> {
    text: &'a [u8],
    at: usize,
    first: bool,
    done: bool,
}

impl<'a> Elements<'a> {
    /// Starts at `text[at]`, which must be `[`.
    pub fn open(text: &'a [u8], at: usize) -> Result<Self, Malformed> {
        match text.get(at) {
            Some(b'[') => Ok(Self {
                text,
                at: at + 1,
                first: true,
                done: false,
            }),
            _ => Err(Malformed { at }),
        }
    }

    /// Where the next element starts; the walk then waits for [`resume`](Self::resume).
    #[inline]
    pub(crate) fn next_at(&mut self) -> Result<Option<usize>, Malformed> {
        let more = next_item(
            self.text,
            &mut self.at,
            &mut self.first,
            &mut self.done,
            b']',
        )?;
        Ok(more.then_some(self.at))
    }

    /// Continues after an element that the caller walked itself.
    #[inline]
    pub(crate) fn resume(&mut self, end: usize) {
        self.at = end;
    }

    /// The next element, validated; `None` after the last one.
    pub fn next_value(&mut self) -> Result<Option<Span>, Malformed> {
        let Some(start) = self.next_at()? else {
            return Ok(None);
        };
        self.at = skip_value(self.text, start)?;
        Ok(Some(start..self.at))
    }

    /// After the last element: the position after the closing bracket.
    pub(crate) fn end(&self) -> usize {
        self.at
    }
}

/// Moves to the start of the next member or element, or past `close`.
#[inline]
fn next_item(
    text: &[u8],
    at: &mut usize,
    first: &mut bool,
    done: &mut bool,
    close: u8,
) -> Result<bool, Malformed> {
    if *done {
        return Ok(false);
    }
    let next = skip_space(text, *at);
    match text.get(next) {
        Some(&byte) if byte == close => {
            *at = next + 1;
            *done = true;
            return Ok(false);
        }
        Some(b',') if !*first => *at = skip_space(text, next + 1),
        Some(_) if *first => *at = next,
        _ => return Err(Malformed { at: next }),
    }
    *first = false;
    Ok(true)
}

/// The raw value of a top-level member of a valid object (the last one of that name), white space
/// around the object allowed; `None` if there is none or the text is no object.
pub fn get<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut found = None;
    let mut members = Members::open(object, skip_space(object, 0)).ok()?;
    while let Some(member) = members.next_member().ok()? {
        if member.is(object, name) {
            found = Some(member.value);
        }
    }
    object.get(found?)
}

/// As [`get`] for each of these names, in one walk.
pub fn get_each<'a, const N: usize>(object: &'a [u8], names: [&str; N]) -> MemberValues<'a, N> {
    pick(object, skip_space(object, 0), names).map_or([None; N], |(picked, _)| picked)
}

/// The raw values of several members, each the last one of its name.
pub type MemberValues<'a, const N: usize> = [Option<&'a [u8]>; N];

/// As [`get`] for several members, of the object that starts exactly at `at`; with the position after it.
pub(crate) fn pick<'a, const N: usize>(
    text: &'a [u8],
    at: usize,
    names: [&str; N],
) -> Result<(MemberValues<'a, N>, usize), Malformed> {
    let mut found = [None; N];
    let mut members = Members::open(text, at)?;
    while let Some(member) = members.next_member()? {
        let key = member.name(text);
        let named = names.iter().zip(&mut found);
        for (_, slot) in named.filter(|(name, _)| *key == *name.as_bytes()) {
            *slot = text.get(member.value.clone());
        }
    }
    Ok((found, members.end()))
}

/// As [`get`], down a path of member names: `get_path(entry, &["message", "role"])`.
pub fn get_path<'a>(object: &'a [u8], path: &[&str]) -> Option<&'a [u8]> {
    path.iter().try_fold(object, |value, name| get(value, name))
}

/// Deepest nesting of arrays and objects in a valid text; 0 for a scalar.
pub fn depth(text: &[u8]) -> usize {
    let (mut at, mut depth, mut deepest) = (0, 0_usize, 0);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                at = skip_string(text, at).map_or(text.len(), |literal| literal.end);
                continue;
            }
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    deepest
}

/// The open containers, innermost last, one bit each: set for an object.
#[derive(Default)]
struct Nesting {
    innermost: u64,
    depth: usize,
    /// The bits of full words further out.
    outer: Vec<u64>,
}

impl Nesting {
    #[inline]
    fn push(&mut self, object: bool) {
        if self.depth != 0 && self.depth.is_multiple_of(64) {
            self.outer.push(self.innermost);
        }
        self.innermost = self.innermost << 1 | u64::from(object);
        self.depth += 1;
    }

    #[inline]
    fn pop(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.innermost >>= 1;
        if self.depth != 0 && self.depth.is_multiple_of(64) {
            let outer = self.outer.pop();
            debug_assert!(outer.is_some(), "`outer` has a word for every 64 levels");
            self.innermost = outer.unwrap_or_default();
        }
    }

    /// Whether the innermost open container is an object; `None` outside of all.
    #[inline]
    fn top(&self) -> Option<bool> {
        (self.depth != 0).then_some(self.innermost & 1 == 1)
    }
}

/// Skips `"key" :` and the white space after it.
#[inline]
fn skip_key(text: &[u8], at: usize) -> Result<Key, Malformed> {
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

/// Skips a number or one of the three words.
#[inline]
fn skip_scalar(text: &[u8], at: usize) -> Result<usize, Malformed> {
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

fn skip_number(text: &[u8], at: usize) -> Result<usize, Malformed> {
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
fn skip_digits(text: &[u8], start: usize) -> Result<usize, Malformed> {
    let mut at = start;
    // No branch predictor can know the end of a number: so eight digits at a time.
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
fn some_digits(start: usize, at: usize) -> Result<usize, Malformed> {
    if at == start {
        Err(Malformed { at })
    } else {
        Ok(at)
    }
}

/// The number of decimal digits at the start of the bytes.
#[inline]
fn leading_digits(bytes: [u8; 8]) -> usize {
    const EACH: u64 = u64::MAX / 255;
    let word = u64::from_le_bytes(bytes);
    // A digit has 3 as its upper half, also with 6 added. A carry into the next byte comes from a byte that
    // is no digit, so it affects only later bytes.
    let upper = word & (EACH * 0xf0) ^ (EACH * 0x30);
    let upper_of_more = word.wrapping_add(EACH * 6) & (EACH * 0xf0) ^ (EACH * 0x30);
    ((upper | upper_of_more).trailing_zeros() / 8) as usize
}

/// `number` without its fraction; the ends of the range for larger and smaller numbers, 0 for NaN.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub fn saturated(number: f64) -> u64 {
    number as u64
}
