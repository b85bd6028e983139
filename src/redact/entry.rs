//! Redacts the strings of an entry, as raw JSON.

use super::{Redactor, Report};
use crate::json;
use std::borrow::Cow;

/// Members with ids. They stay as they are, since other entries refer to them.
const IDS: [&str; 8] = [
    "id",
    "parentId",
    "targetId",
    "fromId",
    "firstKeptEntryId",
    "toolCallId",
    "sessionId",
    "entryId",
];
/// Members with JSON of tools and plugins, in which no member is an id of ours.
const FOREIGN: [&str; 4] = ["arguments", "details", "data", "input"];

impl Redactor {
    /// The entry with the secrets of its strings replaced, except ids. JSON that is no JSON stays as it is.
    pub(crate) fn entry<'e>(&self, entry: &'e [u8], report: Report<'_>) -> Cow<'e, [u8]> {
        if !self.may_change(entry) {
            return Cow::Borrowed(entry);
        }
        let mut walk = StringWalk::default();
        let mut out = Vec::with_capacity(entry.len());
        let mut done = 0;
        while let Some((span, is_id)) = walk.next(entry) {
            let raw = entry.get(span.clone()).unwrap_or_default();
            let Some(text) = json::string(raw).filter(|_| !is_id) else {
                continue;
            };
            let redacted = self.text(&text, report);
            if *redacted != *text {
                out.extend_from_slice(entry.get(done..span.start).unwrap_or_default());
                json::push_string(&mut out, &redacted);
                done = span.end;
            }
        }
        if done == 0 {
            return Cow::Borrowed(entry);
        }
        out.extend_from_slice(entry.get(done..).unwrap_or_default());
        Cow::Owned(out)
    }
}

/// Whether raw JSON has an escape of a printable ASCII character, so that a search in its bytes misses text.
pub(super) fn has_escaped_text(raw: &[u8]) -> bool {
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        match rest.get(at + 1..) {
            Some([b'u', b'0', b'0', b'2'..=b'7', ..] | [b'/', ..]) => return true,
            Some([_, after @ ..]) => rest = after,
            _ => return false,
        }
    }
    false
}

/// The strings of a JSON text, in order.
#[derive(Default)]
struct StringWalk {
    at: usize,
    depth: usize,
    /// Whether the last key names an id.
    at_id: bool,
    /// The depth of a foreign member's key, while the walk is in its value.
    foreign: Option<usize>,
}

impl StringWalk {
    /// The next string with its quotes, and whether it is an id.
    fn next(&mut self, text: &[u8]) -> Option<(json::Span, bool)> {
        loop {
            let byte = *text.get(self.at)?;
            match byte {
                b'"' => break,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.foreign.is_some_and(|depth| self.depth < depth) {
                        self.foreign = None;
                    }
                }
                _ => {}
            }
            self.at += 1;
        }
        let start = self.at;
        self.at = json::skip_value(text, start).ok()?;
        let span = start..self.at;
        let is_key = text.get(json::skip_space(text, self.at)) == Some(&b':');
        if !is_key {
            return Some((span, self.at_id && self.foreign.is_none()));
        }
        let name = json::string(text.get(span.clone())?)?;
        if self.foreign.is_none_or(|depth| self.depth <= depth) {
            let is_foreign = FOREIGN.contains(&&*name);
            self.foreign = is_foreign.then_some(self.depth);
            self.at_id = IDS.contains(&&*name);
        }
        Some((span, false))
    }
}
