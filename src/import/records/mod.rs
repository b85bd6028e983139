//! Cuts the bytes of a source into records, which are JSON values.
//!
//! Every byte is in exactly one record, in white space, or in a stretch that is reported as unparsable. A record is the
//! value of one line. Lines that are not one value are searched for whole objects ([`damage`]). The time is linear in
//! the bytes of any input. UTF-8 is not checked: strings of a record may have invalid bytes.

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

/// Longest line that is read, in bytes. It is in memory as a whole. The rest of a longer line is skipped.
const LONGEST: usize = 128 << 20;
/// The memory of a line above this size, in bytes, is freed after it.
const LARGE: usize = 32 << 20;

/// The arrangement of a source's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One record a line.
    Lines,
    /// The whole source is one record, over any number of lines; but a source whose first line is a record has lines.
    Document,
}

/// A part of a source.
#[derive(Debug)]
pub enum Piece<'a> {
    /// The next bytes up to the cut, before their pieces. Together they are the source.
    Text(&'a [u8]),
    Record(Record<'a>),
    Unparsable(Place, Reason),
}

/// Cuts a stream into pieces. It takes the bytes in chunks of any size, and keeps the incomplete line at the end of the
/// last chunk.
#[derive(Debug, Clone)]
pub struct Splitter {
    layout: Layout,
    /// A line of a document that is not blank has been read.
    has_first_line: bool,
    /// See [`LONGEST`].
    longest: usize,
    /// The beginning of a line.
    kept: Vec<u8>,
    /// The start of the incomplete line, in bytes.
    line_at: u64,
    /// Bytes of this line that were skipped, since it is too long.
    passed_over: u64,
    /// Records so far.
    number: u64,
    beginnings: Beginnings,
    /// Bytes that were read, once for each time.
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

    /// Takes the next bytes of the source and gives each piece that they complete to `take`, in order.
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

    /// Whether the first line, which ends with `end`, is a record; `None` if it is blank.
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
            // Whatever it is, it is not the beginning of a document.
            _ => Some(true),
        }
    }

    /// Whether the source is one record over several lines.
    pub fn is_document(&self) -> bool {
        self.layout == Layout::Document
    }

    /// Ends the source. A last line without a line break is cut only if the source is complete (`is_final`) or the line
    /// is too long; a document only if it is whole or the source is complete. Returns the offset of the end of the cut
    /// part, in bytes.
    pub fn finish(&mut self, is_final: bool, take: &mut (impl FnMut(Piece<'_>) + ?Sized)) -> u64 {
        let is_whole = self.layout == Layout::Document && json::value_span(&self.kept).is_ok();
        if is_final || is_whole || self.passed_over > 0 {
            self.end_line(&[], take);
        }
        self.line_at
    }

    /// Records so far.
    pub(crate) fn records(&self) -> u64 {
        self.number
    }

    /// Bytes that were read, once for each time.
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

    /// Cuts the line that ends with `end`.
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

    /// Cuts a whole line.
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

    /// Cuts a line that is not one value.
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

    /// Gives a part of the line at `at`, without white space at its start: a record, or the reason why it is none.
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
