//! Recovers the whole objects on a damaged line, and the torn pieces between them (session-file.md §2).
//!
//! Opening, listing, repairing and migrating all call this module, so they recover the same entries. It finds every
//! whole entry that the damage leaves, in time that is linear in the length of the line.
//!
//! Why the time is linear: an object is walked from its opening brace only if no earlier walk has met this brace as the
//! start of a value. A walk that met the brace knows where the object ends, or where the walk fails. A brace that a
//! running walk has not met is inside a string of that walk. A second walk that starts there reads each string of the
//! first walk as text between strings, and the text between strings as a string, until one of the walks fails. So at
//! most two walks pass any byte.

use std::ops::Range;
use treelined_core::bytes::part;
use treelined_core::entry::{Line, scan};
use treelined_core::json::{self, Key, Span, Visitor};

/// A part of a damaged line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinePart {
    pub span: Range<usize>,
    /// Whether the part is a whole object.
    pub whole: bool,
}

/// The parts of a damaged line.
#[derive(Debug, Default)]
pub struct RecoveredLine {
    /// The pieces in reading order. This is file order with one exception: the header comes before the parts of
    /// the torn piece that precedes it. Blanks and NUL bytes between pieces are left out.
    pub pieces: Vec<LinePart>,
    /// The number of bytes read; a byte that is read twice counts twice.
    pub steps: u64,
}

/// Splits a damaged line into whole objects and the torn pieces between them. `version` is the version of the
/// session, or `None` before its header is found. In that case the first whole header on the line counts,
/// wherever it is. It gives the version for the rest of the line and for the torn piece before it.
pub fn recover(text: &[u8], mut version: Option<u64>) -> RecoveredLine {
    let mut recovered = RecoveredLine::default();
    let mut inner: Option<Vec<WholeObject>> = None;
    let mut next_inner = 0;
    let mut at = 0;
    loop {
        at = skip_space_and_nul(text, at);
        if at >= text.len() {
            return recovered;
        }
        let start = at;
        // Only objects count. Another value may hide the start of an object: for example, a string may be open
        // where the line was torn.
        let passed = match text.get(start) {
            Some(b'{') => json::skip_value(text, start),
            _ => Err(json::Malformed { at: start }),
        };
        let end = match passed {
            Ok(end) | Err(json::Malformed { at: end }) => end,
        };
        recovered.steps += (end - start) as u64 + 1;
        if passed.is_ok() {
            at = end;
            recovered.push(start..end, true);
            version = version.or_else(|| header_version(text, start));
            continue;
        }
        let objects = inner.get_or_insert_with(|| objects(text, start, &mut recovered.steps));
        let rest = objects.get(next_inner..).unwrap_or_default();
        let found = rest
            .iter()
            .position(|object| object.start >= start && object.is_line(version));
        let Some(object) = found.and_then(|found| rest.get(found)) else {
            recovered.push(start..text.len(), false);
            return recovered;
        };
        next_inner += found.map_or(0, |found| found + 1);
        (at, recovered.steps) = (object.end, recovered.steps + object.len());
        let header = version
            .is_none()
            .then(|| header_version(text, object.start));
        if let Some(Some(header)) = header {
            version = Some(header);
            recovered.push(object.start..object.end, true);
            recovered.push_parts(text, start..object.start, header);
        } else {
            recovered.push(start..object.start, false);
            recovered.push(object.start..object.end, true);
        }
    }
}

impl RecoveredLine {
    fn push(&mut self, span: Range<usize>, whole: bool) {
        self.pieces.push(LinePart { span, whole });
    }

    /// Adds the objects in a part of the line. `version` is the version of the session.
    fn push_parts(&mut self, text: &[u8], span: Range<usize>, version: u64) {
        let start = span.start;
        let parts = recover(part(text, span), Some(version));
        self.steps += parts.steps;
        for LinePart { span, whole } in parts.pieces {
            self.push(start + span.start..start + span.end, whole);
        }
    }
}

fn header_version(text: &[u8], at: usize) -> Option<u64> {
    match scan::scan_first(text, at) {
        Ok((Line::Header(header), _)) if header.id.is_some() => Some(header.version),
        _ => None,
    }
}

fn skip_space_and_nul(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let skipped = rest
        .iter()
        .take_while(|byte| matches!(byte, 0 | b' ' | b'\t' | b'\r'));
    at + skipped.count()
}

/// A whole object that may have been a separate line.
struct WholeObject {
    start: usize,
    end: usize,
    has: MemberSet,
}

impl WholeObject {
    fn len(&self) -> u64 {
        (self.end - self.start) as u64
    }

    /// Whether the object was a separate line, and not an object inside a damaged line. An entry has an id, a
    /// parent and a timestamp; in version 1 only a timestamp.
    fn is_line(&self, version: Option<u64>) -> bool {
        let is_session = self.has.all(MemberSet::SESSION);
        match version {
            None => self.has.all(MemberSet::HEADER),
            Some(0 | 1) => !is_session && self.has.all(MemberSet::TYPE.with(MemberSet::TIMESTAMP)),
            Some(_) => !is_session && self.has.all(MemberSet::ENTRY),
        }
    }
}

/// A set of bits: the members of an object that have the type that they have in a line.
#[derive(Clone, Copy, Default)]
struct MemberSet(u8);

impl MemberSet {
    const NOTHING: MemberSet = MemberSet(0);
    const TYPE: MemberSet = MemberSet(1);
    const ID: MemberSet = MemberSet(1 << 1);
    const PARENT: MemberSet = MemberSet(1 << 2);
    const TIMESTAMP: MemberSet = MemberSet(1 << 3);
    /// The `type` is `session`.
    const SESSION: MemberSet = MemberSet(1 << 4);
    const ENTRY: MemberSet = MemberSet(0b1111);
    const HEADER: MemberSet = MemberSet(MemberSet::SESSION.0 | MemberSet::ID.0);

    const fn with(self, other: MemberSet) -> MemberSet {
        MemberSet(self.0 | other.0)
    }

    const fn all(self, of: MemberSet) -> bool {
        self.0 & of.0 == of.0
    }

    fn set(&mut self, which: MemberSet, is_so: bool) {
        match is_so {
            true => self.0 |= which.0,
            false => self.0 &= !which.0,
        }
    }
}

/// Every whole object from `from` on that may have been a separate line, in order of its start.
fn objects(text: &[u8], from: usize, steps: &mut u64) -> Vec<WholeObject> {
    let mut met = ObjectFinder {
        met: vec![0; text.len() / 64 + 1],
        ..ObjectFinder::default()
    };
    let braces = memchr::memchr_iter(b'{', part(text, from..));
    for at in braces.map(|found| from + found) {
        if met.has_met(at) {
            continue;
        }
        met.open.clear();
        met.member = MemberSet::NOTHING;
        let end = match json::walk(text, at, &mut met) {
            Ok(end) | Err(json::Malformed { at: end }) => end,
        };
        *steps += (end - at) as u64 + 1;
    }
    met.found.sort_unstable_by_key(|object| object.start);
    met.found
}

/// Collects the objects that walks meet.
#[derive(Default)]
struct ObjectFinder {
    /// The positions at which an object was met, one bit for each position.
    met: Vec<u64>,
    /// The open objects of the walk, the outermost first.
    open: Vec<(u32, MemberSet)>,
    /// The member of the innermost object whose value comes next, if this member is in the set.
    member: MemberSet,
    found: Vec<WholeObject>,
}

impl ObjectFinder {
    fn has_met(&self, at: usize) -> bool {
        let word = self.met.get(at / 64).copied().unwrap_or_default();
        word >> (at % 64) & 1 == 1
    }
}

impl Visitor for ObjectFinder {
    fn open(&mut self, at: usize, is_object: bool) {
        if let (Some((_, has)), true) = (self.open.last_mut(), self.member.0 != 0) {
            has.set(self.member, false);
        }
        self.member = MemberSet::NOTHING;
        if is_object {
            if let Some(word) = self.met.get_mut(at / 64) {
                *word |= 1 << (at % 64);
            }
            let start = u32::try_from(at).unwrap_or(u32::MAX);
            self.open.push((start, MemberSet::NOTHING));
        }
    }

    fn key(&mut self, text: &[u8], key: &Key) {
        self.member = match &*key.name(text) {
            b"type" => MemberSet::TYPE,
            b"id" => MemberSet::ID,
            b"parentId" => MemberSet::PARENT,
            b"timestamp" => MemberSet::TIMESTAMP,
            _ => MemberSet::NOTHING,
        };
    }

    fn leaf(&mut self, text: &[u8], value: Span) {
        let member = std::mem::take(&mut self.member);
        let Some((_, has)) = self.open.last_mut().filter(|_| member.0 != 0) else {
            return;
        };
        let raw = part(text, value);
        let is_string = raw.first() == Some(&b'"');
        has.set(
            member,
            is_string || member.all(MemberSet::PARENT) && raw == b"null",
        );
        if member.all(MemberSet::TYPE) {
            has.set(
                MemberSet::SESSION,
                is_string && json::string(raw).is_some_and(|kind| kind == "session"),
            );
        }
    }

    fn close(&mut self, end: usize, is_object: bool) {
        self.member = MemberSet::NOTHING;
        if !is_object {
            return;
        }
        let Some((start, has)) = self.open.pop() else {
            return;
        };
        let may_be_a_line =
            has.all(MemberSet::TYPE.with(MemberSet::TIMESTAMP)) || has.all(MemberSet::HEADER);
        if may_be_a_line {
            self.found.push(WholeObject {
                start: start as usize,
                end,
                has,
            });
        }
    }
}

#[cfg(test)]
mod tests;
