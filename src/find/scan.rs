//! Finds the lines of session files that match, without opening the sessions.

use super::file::SearchedFile;
use super::labels::LabelledEntry;
use super::request::{EntryTest, SearchRequest};
use memchr::{memchr, memmem, memrchr};
use std::fs::File;
use std::io;
use std::ops::Range;
use treelined_core::bytes::index;
use treelined_core::entry::{Facts, Kind, Line, Role, scan};
use treelined_core::error::{Error, Result};
use treelined_core::timestamp::{self, Millis};
use treelined_files::cancel::Cancel;
use treelined_files::log::lines::{Lines, RawLine};
pub(crate) use treelined_files::os::FileAt;
use treelined_files::os::handle::HandleAccess;

/// Bytes read at a time: few enough to stay in the processor's cache until they are searched.
const CHUNK: usize = 256 << 10;

/// Lines that begin in a part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileRange {
    /// The number of the file.
    pub file: usize,
    /// Bytes from the start of the file.
    pub span: Range<u64>,
    /// Whether lines that are appended later belong to the range.
    pub grows: bool,
}

impl FileRange {
    /// Divides a part of a file into ranges of `size` bytes.
    pub(super) fn divide(
        file: usize,
        span: &Range<u64>,
        size: u64,
        grows: bool,
    ) -> impl Iterator<Item = Self> + use<> {
        let (start, end) = (span.start, span.end);
        let count = (end - start).div_ceil(size).max(u64::from(grows));
        (0..count).map(move |number| {
            let from = start + number * size;
            Self {
                file,
                span: from..end.min(from + size),
                grows: grows && number + 1 == count,
            }
        })
    }
}

/// A line whose entry matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MatchingLine {
    /// Bytes from the start of the file, with the line break.
    pub span: Range<u64>,
    pub score: u8,
    /// `None` if the entry has no readable time.
    pub at: Option<Millis>,
}

/// The lines of a file that a search needs.
#[derive(Debug, Default)]
pub(super) struct FileMatches {
    /// The matching lines, ascending.
    pub lines: Vec<MatchingLine>,
    /// Spans of damaged lines that may hold a match, ascending.
    pub damaged: Vec<Range<u64>>,
    /// Whether a label has a part of the query.
    pub has_labels: bool,
    /// Bytes of the file that were searched.
    pub scanned_bytes: u64,
}

impl FileMatches {
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.damaged.is_empty() && !self.has_labels
    }

    /// Joins the matches of two parts of the file. The parts may overlap.
    pub(super) fn joined(mut self, others: Self) -> Self {
        self.add(others);
        self.lines.sort_unstable_by_key(|line| line.span.start);
        self.damaged.sort_unstable_by_key(|span| span.start);
        // A labelled entry may be in two parts.
        self.lines.dedup_by_key(|line| line.span.start);
        self.damaged.dedup_by_key(|span| span.start);
        self
    }

    /// Adds the matches of a later part of the file.
    pub(super) fn add(&mut self, later: Self) {
        self.lines.extend(later.lines);
        self.damaged.extend(later.damaged);
        self.has_labels |= later.has_labels;
        self.scanned_bytes += later.scanned_bytes;
    }
}

/// Scans ranges of files one after the other, reusing memory.
pub(super) struct Scanner<'r> {
    request: &'r SearchRequest,
    test: EntryTest<'r>,
    cancel: &'r Cancel,
    buffer: Vec<u8>,
}

/// The label of an entry, if it has a part of the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryLabel<'l> {
    /// The labels of the file are unknown.
    Unknown,
    Absent,
    Text(&'l str),
}

impl<'l> EntryLabel<'l> {
    fn text(self) -> Option<&'l str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Unknown | Self::Absent => None,
        }
    }
}

impl<'r> Scanner<'r> {
    pub(super) fn new(request: &'r SearchRequest, cancel: &'r Cancel) -> Self {
        Self {
            request,
            test: EntryTest::new(request),
            cancel,
            buffer: Vec::new(),
        }
    }

    pub(super) fn scan(
        &mut self,
        searched: &SearchedFile,
        range: &FileRange,
    ) -> Result<FileMatches> {
        let (location, labelled) = (&searched.location, searched.labelled.as_deref());
        let file = location.folder.file(&location.name, HandleAccess::Read)?;
        let mut found = FileMatches::default();
        let scanned = self.scan_file(&file, range, labelled, &mut found);
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::Interrupted => Error::cancelled(),
            _ => Error::io(&format!("read {}", location.path().display()), &error),
        };
        scanned.map_err(failed)?;
        Ok(found)
    }

    fn scan_file(
        &mut self,
        file: &File,
        range: &FileRange,
        labelled: Option<&[LabelledEntry]>,
        found: &mut FileMatches,
    ) -> io::Result<()> {
        let Some(start) = first_line(file, &range.span, range.grows)? else {
            return Ok(());
        };
        let buffer = std::mem::take(&mut self.buffer);
        // A block of the index has whole lines, so reading stops at its end.
        let chunk = match range.grows {
            true => CHUNK,
            false => CHUNK.min(index(range.span.end.saturating_sub(start))),
        };
        let mut lines = Lines::in_chunks(file, start, chunk)
            .with_buffer(buffer)
            .with_cancel(self.cancel);
        while let Some(next) = lines.next_lines()? {
            let offset = next.offset;
            let bytes = next.bytes.unwrap_or_default();
            // Lines that begin after the range belong to the next range.
            let ours = match range.grows || next.offset + next.len < range.span.end {
                true => next.len + u64::from(next.terminated),
                false => lines_before(range.span.end, bytes, &next),
            };
            found.scanned_bytes += ours;
            let bytes = bytes.get(..index(ours)).unwrap_or(bytes);
            let inside = labelled.map(|all| labelled_in(all, offset..offset + ours));
            self.lines(bytes, offset, inside, found);
            if offset + ours >= range.span.end && !range.grows {
                break;
            }
        }
        self.buffer = lines.into_buffer();
        Ok(())
    }

    /// Searches adjacent lines. `offset` is the offset of the first line.
    fn lines(
        &mut self,
        lines: &[u8],
        offset: u64,
        labelled: Option<&[LabelledEntry]>,
        found: &mut FileMatches,
    ) {
        let request = self.request;
        let label = match labelled {
            Some(_) => EntryLabel::Absent,
            None => EntryLabel::Unknown,
        };
        let others = labelled.unwrap_or_default();
        let by_place = |at: u64| others.binary_search_by_key(&at, |entry| entry.span.start);
        let before = found.lines.len();
        request.query.each_candidate(lines, |at, line| {
            let at = offset + at as u64;
            if by_place(at).is_err() {
                self.line(line, at, label, found);
            }
        });
        for entry in others {
            let rest = lines.get(index(entry.span.start - offset)..);
            let rest = rest.unwrap_or_default();
            let line = rest.get(..memchr(b'\n', rest).unwrap_or(rest.len()));
            // A line that is too long for memory is searched when the session is opened.
            found.has_labels |= rest.is_empty();
            let label = EntryLabel::Text(&entry.label);
            self.line(line.unwrap_or_default(), entry.span.start, label, found);
        }
        if !others.is_empty() {
            let new = found.lines.get_mut(before..).unwrap_or_default();
            new.sort_unstable_by_key(|line| line.span.start);
        }
        if labelled.is_none() && self.test.needs_labels() && !found.has_labels {
            // A label and its entry may match the query together. A line that writes `"label"` with escapes is always a
            // candidate, so it needs no look-up here.
            let mut from = 0;
            while let Some(rest) = lines.get(from..)
                && let Some(found_at) = memmem::find(rest, br#""label""#)
                && !found.has_labels
            {
                let (before, after) = rest.split_at_checked(found_at).unwrap_or((rest, b""));
                let start = memrchr(b'\n', before).map_or(0, |at| at + 1);
                let end = found_at + memchr(b'\n', after).unwrap_or(after.len());
                let line = rest.get(start..end).unwrap_or_default();
                found.has_labels = self.test.may_touch(line);
                from += end;
            }
        }
    }

    /// Searches a line that may match. `label` is the label of its entry.
    fn line(&mut self, bytes: &[u8], offset: u64, label: EntryLabel<'_>, found: &mut FileMatches) {
        let test = &mut self.test;
        let span = offset..offset + bytes.len() as u64 + 1;
        let scanned = match simdutf8::basic::from_utf8(bytes) {
            Ok(_) => scan::scan_line(bytes).ok(),
            Err(_) => None,
        };
        match scanned {
            Some(Line::Entry(envelope)) => match (envelope.kind, &envelope.facts) {
                (Kind::LeafRecord, _) => {}
                (
                    Kind::Label,
                    Facts::Label {
                        label: Some(text), ..
                    },
                ) => {
                    // If the labels of the file are known, each label is searched together with the line of its entry.
                    let is_open = label == EntryLabel::Unknown;
                    found.has_labels |= is_open && test.touches_label(text);
                }
                (Kind::Label, _) => {}
                (kind, facts) => {
                    let role = match facts {
                        Facts::Message { role, .. } => *role,
                        _ => Role::None,
                    };
                    if let Some(best) = test.best_field(bytes, kind, role, label.text()) {
                        let at = envelope.timestamp.as_deref().and_then(timestamp::parse);
                        found.lines.push(MatchingLine {
                            span,
                            score: best.score,
                            at,
                        });
                    }
                }
            },
            Some(Line::Header(_) | Line::Title(_) | Line::Blank) => {}
            None => found.damaged.push(span),
        }
    }
}

/// The labelled entries that begin in a part of the file.
fn labelled_in(all: &[LabelledEntry], span: Range<u64>) -> &[LabelledEntry] {
    let place = |at: u64| all.partition_point(|entry| entry.span.start < at);
    all.get(place(span.start)..place(span.end))
        .unwrap_or_default()
}

/// The bytes of the lines that begin before `limit`.
fn lines_before(limit: u64, bytes: &[u8], lines: &RawLine<'_>) -> u64 {
    // A line begins after a line break.
    let before = index(limit.saturating_sub(lines.offset + 1));
    let last = memchr(b'\n', bytes.get(before..).unwrap_or_default());
    last.map_or(lines.len + u64::from(lines.terminated), |last| {
        (before + last) as u64 + 1
    })
}

/// Where the first line that begins in `span` starts; `None` if no line begins there.
fn first_line(file: &File, span: &Range<u64>, grows: bool) -> io::Result<Option<u64>> {
    if span.start == 0 {
        return Ok(Some(0));
    }
    // A line begins after a line break, so the search begins at the byte before the span.
    let (mut at, mut chunk) = (span.start - 1, [0; 4096]);
    while at < span.end || grows {
        let read = match file.read_at(&mut chunk, at) {
            Ok(0) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if let Some(found) = memchr(b'\n', chunk.get(..read).unwrap_or_default()) {
            let start = at + found as u64 + 1;
            return Ok((start < span.end || grows).then_some(start));
        }
        at += read as u64;
    }
    Ok(None)
}
