//! Reads raw JSON: skips values, walks over members and elements.

use super::literal::skip_string;
use super::scan::{Key, key_name, skip_key, skip_scalar, skip_space};
use super::span::{Malformed, Span};
use super::walk::walk;
use std::borrow::Cow;

/// Validates a whole text (one value, with white space around it) and returns the value's span.
pub fn value_span(text: &[u8]) -> Result<Span, Malformed> {
    let start = skip_space(text, 0);
    let end = skip_value(text, start)?;
    match skip_space(text, end) {
        at if at < text.len() => Err(Malformed { at }),
        _ => Ok(start..end),
    }
}

/// Validates the value that starts exactly at `at` and returns the position after it. The rest of the text is not
/// read: in `01` the value is `0`.
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

    pub(super) fn start(&self) -> usize {
        self.key.start.saturating_sub(1)
    }
}

/// A streaming walk over the members of one object, which validates all that it skips.
///
/// [`next_member`](Self::next_member) skips whole members. A caller that walks a value itself uses
/// [`next_key`](Self::next_key), walks the value from `value_at`, and passes its end to
/// [`resume`](Self::resume), so that no byte is read twice.
#[derive(Debug)]
pub struct Members<'a> {
    pub(super) text: &'a [u8],
    pub(super) at: usize,
    pub(super) first: bool,
    pub(super) done: bool,
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

    /// Continues after a member that ends at `at`.
    pub(crate) fn after(text: &'a [u8], at: usize) -> Self {
        Self {
            text,
            at,
            first: false,
            done: false,
        }
    }

    /// Reads the next key. The walk then stops at the value of the key until [`resume`](Self::resume) is called.
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

    /// Skips the value at which the walk has stopped, and returns its span.
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

    /// The position after the closing brace. Call it only after the last member.
    pub fn end(&self) -> usize {
        self.at
    }
}

/// A streaming walk over the elements of one array; see [`Members`] for walking the elements themselves.
#[derive(Debug)]
pub struct Elements<'a> {
    pub(super) text: &'a [u8],
    pub(super) at: usize,
    pub(super) first: bool,
    pub(super) done: bool,
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

    /// The position where the next element starts. The walk then stops until [`resume`](Self::resume) is called.
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

    /// The position after the closing bracket. Call it only after the last element.
    pub(crate) fn end(&self) -> usize {
        self.at
    }
}

/// Moves to the start of the next member or element, or past `close`.
#[inline]
pub(super) fn next_item(
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

/// The raw value of a top-level member of a valid object. If several members have this name, the last one counts. White
/// space may surround the object. `None` if there is no such member, or if the text is not an object.
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

/// Like [`get`], for each of these names, in one pass.
pub fn get_each<'a, const N: usize>(object: &'a [u8], names: [&str; N]) -> MemberValues<'a, N> {
    pick(object, skip_space(object, 0), names).map_or([None; N], |(picked, _)| picked)
}

/// The raw values of several members. Of members with the same name the last one counts.
pub type MemberValues<'a, const N: usize> = [Option<&'a [u8]>; N];

/// Like [`get`], for several members of the object that starts exactly at `at`. Also returns the position after the
/// object.
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

/// Like [`get`], down a path of member names: `get_path(entry, &["message", "role"])`.
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
