//! Finds the records on a line that is not one value: records whose line break was lost, and torn ones between them.
//!
//! An object is a record if another one or the end of the line follows it, with at most white space and NUL between
//! them. Objects inside a torn record are followed by a comma or a bracket, so they do not count. If the record was
//! torn directly after such an object, the object counts only if it begins as this source's records do.
//!
//! Why it is linear: an object is walked from its opening brace only if no walk has met that brace as the start of a
//! value. A brace that a running walk has not met is inside a string of that walk. A walk from there reads as text
//! what the other reads as strings, until one of them fails; so at most two walks pass any byte.

use super::form::{Beginnings, DEEPEST, Form};
use treelined_core::json::{self, Key, Malformed, Span, Visitor};

/// The search for the records of one line.
pub(super) struct LineSearch<'a> {
    line: &'a [u8],
    at: usize,
    /// The positions at which a walk has met an object: one bit each.
    met: Vec<u64>,
    /// Bytes that were read, once for each time.
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

    /// The next object that is a record, except for its depth.
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
                // Text in a string may have `{}`, but no braces with a key, since its quotes are escaped.
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

    /// The next brace that no walk has met.
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

    /// Position after white space and NUL.
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

/// One walk from a brace.
struct Walk<'m> {
    met: &'m mut [u64],
    form: Form,
    /// The open containers of the walk, outermost first, down to the depth of records.
    open: Vec<usize>,
    /// The last closed container, if it is an object and not the outermost.
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
