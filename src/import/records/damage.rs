//! Finds the records on a line that is not exactly one value. Line breaks between records were lost, and there may be
//! torn records between whole records.
//!
//! An object is a record if another record or the end of the line follows it, with at most white space and NUL between
//! them. An object inside a torn record is followed by a comma or a bracket, so it is not taken for a record. If the
//! torn record ends directly after such an object, the object counts only if its first keys are like the first keys of
//! other records of this source.
//!
//! The search is linear for this reason. A walk reads one object from its opening brace. A walk begins at a brace only
//! if no earlier walk has met this brace as the start of a value. If an earlier walk has passed the brace without
//! meeting it, the brace is inside a string of that walk. The two walks see strings and the text between them in
//! opposite ways, until one of them fails. So at most two walks pass any byte.

use super::form::{Beginnings, DEEPEST, Form};
use treelined_core::json::{self, Key, Malformed, Span, Visitor};

/// The search for the records of one line.
pub(super) struct LineSearch<'a> {
    line: &'a [u8],
    at: usize,
    /// One bit for each position: whether a walk has met an object there.
    met: Vec<u64>,
    /// The number of byte reads. A byte that is read twice counts twice.
    pub(super) steps: u64,
}

impl<'a> LineSearch<'a> {
    pub(super) fn new(line: &'a [u8]) -> Self {
        Self {
            line,
            at: 0,
            met: vec![0; line.len() / 64 + 1],
            steps: 0,
        }
    }

    /// The next object that is a record, unless it is nested too deeply.
    pub(super) fn next(&mut self, beginnings: &Beginnings) -> Option<(Span, Form)> {
        while let Some(start) = self.next_brace() {
            let mut walk = Walk {
                met: &mut self.met,
                form: Form::default(),
                open: Vec::new(),
                last: None,
            };
            let ended = json::walk(self.line, start, &mut walk);
            let (last, form) = (walk.last, walk.form);
            let end = match ended {
                Ok(end) | Err(Malformed { at: end }) => end,
            };
            self.steps += (end - start) as u64 + 1;
            if ended.is_ok() {
                self.at = end;
                // The text of a string may contain `{}`, but not braces with a key, because the quotes of the key are
                // escaped there.
                if form.keys > 0 && self.is_followed_by_record(end) {
                    return Some((start..end, form));
                }
                continue;
            }
            self.at = start + 1;
            let Some(inner) = last.filter(|inner| self.skip_blank(inner.end) >= end) else {
                continue;
            };
            let mut form = Form::default();
            let is_record = form.value(self.line, inner.start).is_ok() && beginnings.has(&form);
            self.steps += inner.len() as u64;
            if is_record && self.is_followed_by_record(inner.end) {
                self.at = inner.end;
                return Some((inner, form));
            }
        }
        None
    }

    /// The position of the next brace that no walk has met.
    fn next_brace(&mut self) -> Option<usize> {
        let rest = self.line.get(self.at..)?;
        let braces = memchr::memchr_iter(b'{', rest).map(|found| self.at + found);
        let mut unmet = braces.filter(|at| !bit(&self.met, *at));
        let found = unmet.next();
        self.steps += (found.unwrap_or(self.line.len()) - self.at) as u64;
        found
    }

    fn is_followed_by_record(&mut self, end: usize) -> bool {
        let next = self.skip_blank(end);
        matches!(self.line.get(next), None | Some(b'{'))
    }

    /// The position after white space and NUL.
    fn skip_blank(&mut self, at: usize) -> usize {
        let rest = self.line.get(at..).unwrap_or_default();
        let is_blank = |byte: &&u8| matches!(**byte, 0 | b' ' | b'\t' | b'\r' | b'\n');
        let blanks = rest.iter().take_while(is_blank).count();
        self.steps += blanks as u64;
        at + blanks
    }
}

fn bit(bits: &[u64], at: usize) -> bool {
    let word = bits.get(at / 64).copied().unwrap_or_default();
    word >> (at % 64) & 1 == 1
}

/// A walk through one object, from its brace.
struct Walk<'m> {
    met: &'m mut [u64],
    form: Form,
    /// The positions of the open containers, outermost first. Containers that are nested more deeply than a record may
    /// be are left out.
    open: Vec<usize>,
    /// The container that was closed last, if it is an object and not the outermost one.
    last: Option<Span>,
}

impl Visitor for Walk<'_> {
    fn open(&mut self, at: usize, is_object: bool) {
        self.form.open(at, is_object);
        if self.form.depth <= DEEPEST {
            self.open.push(at);
        }
        if let (true, Some(word)) = (is_object, self.met.get_mut(at / 64)) {
            *word |= 1 << (at % 64);
        }
    }

    fn key(&mut self, text: &[u8], key: &Key) {
        self.form.key(text, key);
    }

    fn close(&mut self, end: usize, is_object: bool) {
        let is_listed = self.form.depth <= DEEPEST;
        self.form.close(end, is_object);
        let start = is_listed.then(|| self.open.pop()).flatten();
        self.last = start.filter(|_| is_object).map(|start| start..end);
    }
}
