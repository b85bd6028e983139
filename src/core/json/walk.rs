//! Walks an object or array with all its contents and calls a visitor on the way.
//!
//! Nothing recurses: nesting costs one bit per level.

use super::literal::skip_string;
use super::scan::{Key, Nesting, skip_key, skip_scalar, skip_space};
use super::span::{Malformed, Span};

/// Receives the parts of a walk. An empty container is a [`Visitor::leaf`].
pub trait Visitor {
    /// An object or array that is not empty begins at `at`.
    fn open(&mut self, _at: usize, _is_object: bool) {}

    /// The key of the next member.
    fn key(&mut self, _text: &[u8], _key: &Key) {}

    /// A value without other values in it.
    fn leaf(&mut self, _text: &[u8], _value: Span) {}

    /// The innermost open container ends before `end`.
    fn close(&mut self, _end: usize, _is_object: bool) {}
}

/// Ignores everything.
impl Visitor for () {}

/// Validates the value that starts exactly at `at` and returns the position after it.
pub fn walk(text: &[u8], mut at: usize, visitor: &mut impl Visitor) -> Result<usize, Malformed> {
    let mut open = Nesting::default();
    loop {
        let start = at;
        at = match text.get(at) {
            Some(b'"') => skip_string(text, at)?.end,
            Some(b'{') => match skip_space(text, at + 1) {
                at if text.get(at) == Some(&b'}') => at + 1,
                first => {
                    open.push(true);
                    visitor.open(at, true);
                    let key = skip_key(text, first)?;
                    visitor.key(text, &key);
                    at = key.value_at;
                    continue;
                }
            },
            Some(b'[') => match skip_space(text, at + 1) {
                at if text.get(at) == Some(&b']') => at + 1,
                first => {
                    open.push(false);
                    visitor.open(at, false);
                    at = first;
                    continue;
                }
            },
            _ => skip_scalar(text, at)?,
        };
        visitor.leaf(text, start..at);
        loop {
            let Some(in_object) = open.top() else {
                return Ok(at);
            };
            at = skip_space(text, at);
            match (text.get(at), in_object) {
                (Some(b','), true) => {
                    let key = skip_key(text, skip_space(text, at + 1))?;
                    visitor.key(text, &key);
                    at = key.value_at;
                    break;
                }
                (Some(b','), false) => {
                    at = skip_space(text, at + 1);
                    break;
                }
                (Some(b'}'), true) | (Some(b']'), false) => {
                    open.pop();
                    at += 1;
                    visitor.close(at, in_object);
                }
                _ => return Err(Malformed { at }),
            }
        }
    }
}
