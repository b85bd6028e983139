//! The form of a record: its nesting, and the first keys of its object.

use treelined_core::json;
use treelined_core::json::{Key, Malformed, Visitor};
use xxhash_rust::xxh3::xxh3_64;

/// The deepest nesting of containers that are not empty. The innermost one may have an empty container in it.
pub(super) const DEEPEST: u32 = 255;

/// The most beginnings of records that are remembered.
pub(super) const MOST_BEGINNINGS: usize = 64;

/// The facts about a value that decide whether it is a record.
#[derive(Debug, Default)]
pub(super) struct Form {
    pub(super) depth: u32,
    pub(super) deepest: u32,
    /// The number of keys of the outermost object that were hashed, at most two.
    pub(super) keys: u8,
    /// The hash of these keys.
    pub(super) beginning: u64,
}

impl Form {
    /// Checks the value that starts at `start`. Returns the position after it.
    pub(super) fn value(&mut self, line: &[u8], start: usize) -> Result<usize, Malformed> {
        match line.get(start) {
            Some(b'{' | b'[') => json::walk(line, start, self),
            _ => json::skip_value(line, start),
        }
    }

    /// The reason why the value is not a record; `None` if it is one.
    pub(super) fn reason(&self) -> Option<Reason> {
        (self.deepest > DEEPEST).then_some(Reason::TooDeep)
    }
}

impl Visitor for Form {
    #[inline]
    fn open(&mut self, _at: usize, _is_object: bool) {
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
    }

    #[inline]
    fn key(&mut self, text: &[u8], key: &Key) {
        if self.depth == 1 && self.keys < 2 {
            self.keys += 1;
            let name = xxh3_64(&key.name(text));
            self.beginning = self.beginning.rotate_left(5) ^ name;
        }
    }

    #[inline]
    fn close(&mut self, _end: usize, _is_object: bool) {
        self.depth = self.depth.saturating_sub(1);
    }
}

/// The hashes of the first two keys of records that are alone on their lines. They help to distinguish a record from
/// an object inside a torn record.
#[derive(Debug, Clone, Default)]
pub(super) struct Beginnings(pub(super) Vec<u64>);

impl Beginnings {
    #[inline]
    pub(super) fn learn(&mut self, form: &Form) {
        if form.keys > 0 && !self.has(form) && self.0.len() < MOST_BEGINNINGS {
            self.0.push(form.beginning);
        }
    }

    #[inline]
    pub(super) fn has(&self, form: &Form) -> bool {
        self.0.contains(&form.beginning)
    }
}

/// The reason why a range of a source is not a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    NotJson,
    /// The value is nested deeper than 256 levels.
    TooDeep,
    /// The line has more than 128 MiB.
    TooLong,
}
