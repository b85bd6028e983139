//! Writes and edits JSON text: string literals, lines of the protocol and of the file, members. An edit keeps all
//! other bytes.

use super::plain::next_to_escape;
use super::read::{Member, Members};
use super::scan::skip_space;
use super::span::Span;
use crate::bytes::part;

/// Appends `texts` as an array of string literals.
pub fn push_strings(out: &mut Vec<u8>, texts: &[String]) {
    out.push(b'[');
    for (at, text) in texts.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        push_string(out, text);
    }
    out.push(b']');
}

/// Appends `text` as a JSON string literal. U+2028 and U+2029 are escaped, because some readers treat them as line
/// ends (protocol.md §1).
pub fn push_string(out: &mut Vec<u8>, text: &str) {
    push_utf8(out, text.as_bytes());
}

/// A JSON string literal.
pub fn quoted(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    push_string(&mut out, text);
    out
}

/// A JSON string literal, or null.
pub fn quoted_or_null(text: Option<&str>) -> Vec<u8> {
    text.map_or_else(|| b"null".to_vec(), quoted)
}

/// Like [`push_string`], for bytes that are known to be UTF-8.
pub(crate) fn push_utf8(out: &mut Vec<u8>, bytes: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    let mut copied = 0;
    let mut at = 0;
    loop {
        at = next_to_escape(bytes, at);
        let Some(&byte) = bytes.get(at) else { break };
        let (escape, length): (&[u8], usize) = match byte {
            b'"' => (b"\\\"", 1),
            b'\\' => (b"\\\\", 1),
            0x08 => (b"\\b", 1),
            0x0c => (b"\\f", 1),
            b'\n' => (b"\\n", 1),
            b'\r' => (b"\\r", 1),
            b'\t' => (b"\\t", 1),
            0..0x20 => {
                let digit = HEX.get(usize::from(byte & 15)).copied().unwrap_or(b'0');
                (&[b'\\', b'u', b'0', b'0', b'0' + (byte >> 4), digit], 1)
            }
            0xe2 => match line_separator(bytes, at) {
                Some(escape) => (escape, 3),
                None => {
                    at += 1;
                    continue;
                }
            },
            _ => {
                at += 1;
                continue;
            }
        };
        out.extend_from_slice(part(bytes, copied..at));
        out.extend_from_slice(escape);
        at += length;
        copied = at;
    }
    out.extend_from_slice(part(bytes, copied..));
    out.push(b'"');
}

/// Appends JSON for a line of a session file: line breaks become spaces, all other bytes stay. In valid JSON raw line
/// breaks are only between tokens, so nothing needs to be parsed.
pub fn push_one_line(out: &mut Vec<u8>, raw: &[u8]) {
    push_replaced(out, raw, memchr::memchr2_iter(b'\n', b'\r', raw));
}

/// Appends JSON for a line of the protocol (protocol.md §1, §3), like [`push_one_line`]. It also escapes U+2028 and
/// U+2029, which can only be inside strings.
pub fn push_raw(out: &mut Vec<u8>, raw: &[u8]) {
    push_replaced(out, raw, memchr::memchr3_iter(b'\n', b'\r', 0xe2, raw));
}

/// Appends `raw`. At `places`, line breaks become spaces and line separators become escapes; all other bytes stay.
fn push_replaced(out: &mut Vec<u8>, raw: &[u8], places: impl Iterator<Item = usize>) {
    out.reserve(raw.len());
    let mut copied = 0;
    for at in places {
        let (replacement, length): (&[u8], usize) = if raw.get(at) == Some(&0xe2) {
            match line_separator(raw, at) {
                Some(escape) => (escape, 3),
                None => continue,
            }
        } else {
            (b" ", 1)
        };
        out.extend_from_slice(part(raw, copied..at));
        out.extend_from_slice(replacement);
        copied = at + length;
    }
    out.extend_from_slice(part(raw, copied..));
}

/// The escape for U+2028 or U+2029, if one of these characters starts at `at`.
fn line_separator(text: &[u8], at: usize) -> Option<&'static [u8]> {
    match text.get(at..at + 3)? {
        [0xe2, 0x80, 0xa8] => Some(b"\\u2028"),
        [0xe2, 0x80, 0xa9] => Some(b"\\u2029"),
        _ => None,
    }
}

/// A byte-exact edit: replaces the given spans of `text`, which must be in order and disjoint (an empty span inserts).
/// A span that is out of order or out of bounds is left out.
pub fn splice(text: &[u8], edits: &[(Span, &[u8])]) -> Vec<u8> {
    let added: usize = edits.iter().map(|(_, new)| new.len()).sum();
    let mut out = Vec::with_capacity(text.len() + added);
    let mut copied = 0;
    for (span, new) in edits {
        let Some(kept) = text.get(copied..span.start) else {
            continue;
        };
        if span.end < span.start || span.end > text.len() {
            continue;
        }
        out.extend_from_slice(kept);
        out.extend_from_slice(new);
        copied = span.end;
    }
    out.extend_from_slice(part(text, copied..));
    out
}

/// A valid object with the top-level member `name` set to the raw JSON `value`: the last member of that name gets the
/// value, or a new one is added after the last member. A text that is not an object is returned unchanged.
pub fn with_member(object: &[u8], name: &str, value: &[u8]) -> Vec<u8> {
    let Some(members) = members_of(object) else {
        return object.to_vec();
    };
    if let Some(member) = members.iter().rev().find(|member| member.is(object, name)) {
        return splice(object, &[(member.value.clone(), value)]);
    }
    let mut added = Vec::with_capacity(name.len() + value.len() + 4);
    let at = match members.last() {
        Some(last) => {
            added.push(b',');
            last.value.end
        }
        None => skip_space(object, 0) + 1,
    };
    push_string(&mut added, name);
    added.push(b':');
    added.extend_from_slice(value);
    splice(object, &[(at..at, &added)])
}

/// A valid object without any top-level member called `name`. A text that is not an object is returned unchanged.
pub fn without_member(object: &[u8], name: &str) -> Vec<u8> {
    let members = members_of(object).unwrap_or_default();
    let mut edits: Vec<(Span, &[u8])> = Vec::new();
    // Removing a member also removes the comma before it. A removed member at the start of the object has no comma
    // before it. So everything up to the first member that stays is removed.
    let mut head = None;
    let mut previous_end = None;
    for member in &members {
        match (member.is(object, name), previous_end) {
            (true, Some(end)) => edits.push((end..member.value.end, b"")),
            (true, None) => {
                let start = head.map_or(member.start(), |head: Span| head.start);
                head = Some(start..member.value.end);
                continue;
            }
            (false, _) => {
                if let Some(head) = head.take() {
                    edits.push((head.start..member.start(), b""));
                }
            }
        }
        previous_end = Some(member.value.end);
    }
    if let Some(head) = head {
        edits.push((head, b""));
    }
    splice(object, &edits)
}

fn members_of(object: &[u8]) -> Option<Vec<Member>> {
    let mut members = Members::open(object, skip_space(object, 0)).ok()?;
    let mut all = Vec::new();
    while let Some(member) = members.next_member().ok()? {
        all.push(member);
    }
    Some(all)
}
