//! Replaces the secrets in the strings of an entry, which is raw JSON (protocol.md §16). The crate `treelined_redact`
//! finds the secrets.

#[cfg(test)]
#[path = "../../../clients/redact/src/samples.rs"]
mod samples;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use treelined_core::json;
use treelined_redact::{FOREIGN_MEMBERS, ID_MEMBERS, mark};
pub use treelined_redact::{Redactor, Report};

/// Adds the redaction of entries to the redaction of text.
pub trait RedactEntry {
    /// The entry with the secrets in its strings replaced. Ids are not changed. An entry that is not JSON is returned
    /// unchanged.
    fn entry<'e>(&self, entry: &'e [u8], report: Report<'_>) -> Cow<'e, [u8]>;
}

impl RedactEntry for Redactor {
    fn entry<'e>(&self, entry: &'e [u8], report: Report<'_>) -> Cow<'e, [u8]> {
        if !self.may_change(entry) {
            return Cow::Borrowed(entry);
        }
        let mut walk = StringWalk::default();
        let mut out = Vec::with_capacity(entry.len());
        let mut done = 0;
        // The command line flag before a string, with the depth of the flag in the JSON.
        let mut flag: Option<(usize, String)> = None;
        while let Some((span, part)) = walk.next(entry) {
            let raw = entry.get(span.clone()).unwrap_or_default();
            let before = flag.take().filter(|(depth, _)| *depth == walk.depth);
            let Some(text) = json::string(raw).filter(|_| part != StringPart::Id) else {
                continue;
            };
            let mut redacted = self.text(&text, report);
            if part == StringPart::Foreign {
                let name = before.map_or_else(|| walk.name.clone(), |(_, flag)| flag);
                if *redacted == *text
                    && let Some(kind) = self.member(&name, &text)
                {
                    report(kind, &text);
                    redacted = mark(kind).into();
                }
                flag = treelined_redact::flag(&text).map(|flag| (walk.depth, flag.to_owned()));
            }
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

/// Passes the strings of an entry to `pass`, except ids.
pub(crate) fn strings(entry: &[u8], pass: &mut dyn FnMut(&str)) {
    let mut walk = StringWalk::default();
    while let Some((span, part)) = walk.next(entry) {
        let text = json::string(entry.get(span).unwrap_or_default());
        if let Some(text) = text.filter(|_| part != StringPart::Id) {
            pass(&text);
        }
    }
}

/// The strings of a JSON text, in order.
#[derive(Default)]
struct StringWalk {
    at: usize,
    depth: usize,
    /// The last key that was read.
    name: String,
    /// Whether the last key is the name of an id.
    at_id: bool,
    /// The depth of the key of a foreign member, while the walk is in the value of that member.
    foreign: Option<usize>,
}

/// The part of an entry to which a string belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StringPart {
    Id,
    /// A value in the JSON of a tool or plugin; it belongs to the last key.
    Foreign,
    Other,
}

impl StringWalk {
    /// The next string, with its quotes, and the part to which it belongs.
    fn next(&mut self, text: &[u8]) -> Option<(json::Span, StringPart)> {
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
            let part = match self.foreign {
                Some(_) => StringPart::Foreign,
                None if self.at_id => StringPart::Id,
                None => StringPart::Other,
            };
            return Some((span, part));
        }
        let name = json::string(text.get(span.clone())?)?;
        if self.foreign.is_none_or(|depth| self.depth <= depth) {
            let is_foreign = FOREIGN_MEMBERS.contains(&&*name);
            self.foreign = is_foreign.then_some(self.depth);
            self.at_id = ID_MEMBERS.contains(&&*name);
        }
        self.name = name.into_owned();
        Some((span, StringPart::Other))
    }
}
