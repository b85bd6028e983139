//! Passing an object or array with everything in it, and telling a visitor what is met on the way.
//!
//! Nothing recurses: nesting costs one bit per level.

use super::{Key, Malformed, Nesting, Span, skip_key, skip_scalar, skip_space, skip_string};

/// Is told what a walk meets. Containers without elements are told of as [`Visitor::leaf`].
pub trait Visitor {
    /// An object or array with something in it begins at `at`.
    fn open(&mut self, _at: usize, _is_object: bool) {}

    /// The key of the next member.
    fn key(&mut self, _text: &[u8], _key: &Key) {}

    /// A value that holds no other.
    fn leaf(&mut self, _text: &[u8], _value: Span) {}

    /// What was opened last ends before `end`.
    fn close(&mut self, _end: usize, _is_object: bool) {}
}

/// Wants to know nothing.
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
