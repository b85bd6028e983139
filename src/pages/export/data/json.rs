//! Writes JSON for other programs. Many of them refuse lone surrogates, which session files may have.

use treelined_core::json::{self, Key, Span, Visitor};

/// Appends the name of a member to an object, with a comma if the object already has members.
pub(super) fn key(out: &mut Vec<u8>, name: &str) {
    if !matches!(out.last(), None | Some(b'{')) {
        out.push(b',');
    }
    json::push_string(out, name);
    out.push(b':');
}

/// Appends a member that is a text.
pub(super) fn text(out: &mut Vec<u8>, name: &str, text: &str) {
    key(out, name);
    json::push_string(out, text);
}

/// Appends a member that is a text or null.
pub(super) fn text_or_null(out: &mut Vec<u8>, name: &str, text: Option<&str>) {
    key(out, name);
    out.extend_from_slice(&json::quoted_or_null(text));
}

/// The text of the member `name` of an object.
pub(super) fn text_of<'a>(object: &'a [u8], name: &str) -> Option<std::borrow::Cow<'a, str>> {
    json::string(json::get(object, name)?)
}

/// The same JSON, with strings that every reader accepts.
pub(super) fn readable(raw: &[u8]) -> Vec<u8> {
    let mut texts = Texts {
        out: Vec::with_capacity(raw.len()),
        copied: 0,
    };
    // Malformed JSON is copied unchanged: the lines of a session are checked when they are read.
    let _walked = json::walk(raw, 0, &mut texts);
    let rest = raw.get(texts.copied..).unwrap_or_default();
    texts.out.extend_from_slice(rest);
    texts.out
}

struct Texts {
    out: Vec<u8>,
    copied: usize,
}

impl Texts {
    fn take(&mut self, text: &[u8], literal: Span) {
        let raw = text.get(literal.clone()).unwrap_or_default();
        if memchr::memchr(b'\\', raw).is_none() && raw.is_ascii() {
            return;
        }
        if let Some(decoded) = json::string(raw) {
            let before = text.get(self.copied..literal.start).unwrap_or_default();
            self.out.extend_from_slice(before);
            json::push_string(&mut self.out, &decoded);
            self.copied = literal.end;
        }
    }
}

impl Visitor for Texts {
    fn key(&mut self, text: &[u8], key: &Key) {
        self.take(text, key.key.start.saturating_sub(1)..key.key.end + 1);
    }

    fn leaf(&mut self, text: &[u8], value: Span) {
        self.take(text, value);
    }
}
