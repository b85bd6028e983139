//! Cuts the bytes of a source into records, which are JSON values.
//!
//! Every byte is in exactly one record, in white space, or in a range that is reported as unparsable. Normally a
//! record is the value of one line. If a line is not exactly one value, it is searched for whole objects
//! ([`damage`]). The time is linear in the bytes of any input. UTF-8 is not checked: strings may have invalid bytes.

mod damage;
mod form;
#[cfg(test)]
mod tests;

use super::member::{Place, Record};
use damage::LineSearch;
pub use form::Reason;
use form::{Beginnings, Form};
use std::borrow::Cow;
use treelined_core::json::{self, Span};

/// The longest line that is read, in bytes. It is in memory as a whole. If a line is longer, its rest is skipped.
const LONGEST: usize = 128 << 20;
/// After a line of more bytes than this, its memory is freed.
const LARGE: usize = 32 << 20;

/// The layout of a source's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One record on each line.
    Lines,
    /// The whole source is one record, over any number of lines. If its first line is a record, the layout is
    /// `Lines`.
    Document,
}

/// A part of a source.
#[derive(Debug)]
pub enum Piece<'a> {
    /// The next bytes of the source that were cut. They come before the pieces that they contain. All such bytes
    /// together are the source.
    Text(&'a [u8]),
    Record(Record<'a>),
    Unparsable(Place, Reason),
}

/// Cuts a stream into pieces. It reads the bytes in chunks of any size, and keeps the last line of a chunk until it
/// is complete.
#[derive(Debug, Clone)]
pub struct Splitter {
    layout: Layout,
    /// Whether the first line of a document was read. Blank lines do not count.
    has_first_line: bool,
    /// See [`LONGEST`].
    longest: usize,
    /// The beginning of the line that is not complete yet.
    kept: Vec<u8>,
    /// The position of that line in the source, in bytes.
    line_at: u64,
    /// The number of bytes of that line that were skipped because the line is too long.
    passed_over: u64,
    /// The number of records so far.
    number: u64,
    beginnings: Beginnings,
    /// The number of byte reads. A byte that is read twice counts twice.
    steps: u64,
}

impl Splitter {
    pub fn new(layout: Layout) -> Self {
        Self {
            layout,
            has_first_line: false,
            longest: LONGEST,
            kept: Vec::new(),
            line_at: 0,
            passed_over: 0,
            number: 0,
            beginnings: Beginnings::default(),
            steps: 0,
        }
    }

    /// Reads the next bytes of the source. Passes each piece that they complete to `take`, in order.
    pub fn push(&mut self, chunk: &[u8], take: &mut (impl FnMut(Piece<'_>) + ?Sized)) {
        let mut rest = chunk;
        while self.layout == Layout::Document
            && !self.has_first_line
            && let Some(end) = memchr::memchr(b'\n', rest)
        {
            let (line, after) = rest.split_at(end + 1);
            match self.first_line(line) {
                Some(true) => {
                    self.layout = Layout::Lines;
                    self.end_line(line, take);
                }
                found => {
                    self.has_first_line = found.is_some();
                    self.keep(line, take);
                }
            }
            rest = after;
        }
        if self.layout == Layout::Lines {
            while let Some(end) = memchr::memchr(b'\n', rest) {
                let (line, after) = rest.split_at(end + 1);
                self.end_line(line, take);
                rest = after;
            }
        }
        self.keep(rest, take);
    }

    /// Whether the first line is a record; `None` if it is blank. `end` has its last bytes.
    fn first_line(&mut self, end: &[u8]) -> Option<bool> {
        let line = match self.kept.is_empty() {
            true => Cow::Borrowed(end),
            false => Cow::Owned([&*self.kept, end].concat()),
        };
        self.steps += line.len() as u64;
        let start = json::skip_space(&line, 0);
        match line.get(start)? {
            b'{' if self.passed_over == 0 => {
                let end = json::skip_value(&line, start).ok();
                Some(end.is_some_and(|end| json::skip_space(&line, end) == line.len()))
            }
            // A complete line with another value is not the beginning of a document.
            _ => Some(true),
        }
    }

    /// Whether the layout is [`Layout::Document`].
    pub fn is_document(&self) -> bool {
        self.layout == Layout::Document
    }

    /// Ends the source. If the last line has no line break, it is cut only if the source is complete (`is_final`) or
    /// the line is too long. A document is cut only if its value is whole or the source is complete. Returns the end
    /// of the cut part, in bytes from the beginning.
    pub fn finish(&mut self, is_final: bool, take: &mut (impl FnMut(Piece<'_>) + ?Sized)) -> u64 {
        let is_whole = self.layout == Layout::Document && json::value_span(&self.kept).is_ok();
        if is_final || is_whole || self.passed_over > 0 {
            self.end_line(&[], take);
        }
        self.line_at
    }

    /// The number of records so far.
    pub(crate) fn records(&self) -> u64 {
        self.number
    }

    /// The number of byte reads. A byte that is read twice counts twice.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    fn keep(&mut self, part: &[u8], take: &mut (impl FnMut(Piece<'_>) + ?Sized)) {
        self.steps += part.len() as u64;
        if self.passed_over == 0 && self.kept.len() + part.len() <= self.longest {
            self.kept.extend_from_slice(part);
            return;
        }
        self.passed_over += (self.kept.len() + part.len()) as u64;
        let kept = std::mem::take(&mut self.kept);
        for text in [&*kept, part] {
            if !text.is_empty() {
                take(Piece::Text(text));
            }
        }
    }

    /// Cuts a line into pieces. `end` has its last bytes.
    fn end_line(&mut self, end: &[u8], take: &mut (impl FnMut(Piece<'_>) + ?Sized)) {
        if self.kept.is_empty() && self.passed_over == 0 {
            self.cut(end, take);
            return;
        }
        self.keep(end, take);
        if self.passed_over > 0 {
            let len = std::mem::take(&mut self.passed_over);
            let place = Place {
                at: self.line_at,
                len,
            };
            self.line_at += len;
            take(Piece::Unparsable(place, Reason::TooLong));
            return;
        }
        let mut line = std::mem::take(&mut self.kept);
        self.cut(&line, take);
        if line.capacity() <= LARGE {
            line.clear();
            self.kept = line;
        }
    }

    /// Cuts a line into pieces. `line` has all its bytes.
    fn cut(&mut self, line: &[u8], take: &mut (impl FnMut(Piece<'_>) + ?Sized)) {
        let at = self.line_at;
        self.line_at += line.len() as u64;
        self.steps += line.len() as u64;
        take(Piece::Text(line));
        let start = json::skip_space(line, 0);
        if start == line.len() {
            return;
        }
        let mut form = Form::default();
        let end = form.value(line, start);
        let Some(end) = end
            .ok()
            .filter(|end| json::skip_space(line, *end) == line.len())
        else {
            self.search(line, at, take);
            return;
        };
        self.beginnings.learn(&form);
        self.give(line, at, start..end, form.reason(), take);
    }

    /// Cuts a line that is not exactly one value.
    fn search(&mut self, line: &[u8], at: u64, take: &mut (impl FnMut(Piece<'_>) + ?Sized)) {
        let mut found = LineSearch::new(line);
        let mut passed = json::skip_space(line, 0);
        while let Some((object, form)) = found.next(&self.beginnings) {
            self.give(line, at, passed..object.start, Some(Reason::NotJson), take);
            passed = json::skip_space(line, object.end);
            self.give(line, at, object, form.reason(), take);
        }
        self.give(line, at, passed..line.len(), Some(Reason::NotJson), take);
        self.steps += found.steps;
    }

    /// Passes a part of the line at `at` to `take`, without white space at its start. `reason` says why the part is
    /// not a record.
    fn give(
        &mut self,
        line: &[u8],
        at: u64,
        span: Span,
        reason: Option<Reason>,
        take: &mut (impl FnMut(Piece<'_>) + ?Sized),
    ) {
        let Some(bytes) = line.get(span.clone()).filter(|bytes| !bytes.is_empty()) else {
            return;
        };
        let at = at + span.start as u64;
        if let Some(reason) = reason {
            let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
            let last = bytes.iter().rposition(|byte| !is_space(byte));
            let len = last.map_or(0, |last| last as u64 + 1);
            take(Piece::Unparsable(Place { at, len }, reason));
            return;
        }
        let number = self.number;
        self.number += 1;
        take(Piece::Record(Record { at, number, bytes }));
    }
}
