//! Finds the lines of session files that match, without opening the sessions.

use super::request::{EntryTest, SearchRequest};
use crate::cancel::Cancel;
use crate::entry::{Facts, Kind, Line, Role, scan};
use crate::error::{Error, Result};
use crate::log::lines::Lines;
use crate::os::file::Location;
use crate::os::handle::HandleAccess;
use memchr::memchr;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Bytes read at a time: few enough to stay in the processor's cache until they are searched.
const CHUNK: usize = 256 << 10;

/// Lines that begin in a part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileRange {
    /// The number of the file.
    pub file: usize,
    /// Bytes from the start of the file.
    pub span: Range<u64>,
    /// Whether lines that were appended since belong to it.
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

/// The lines of a file that a search needs.
#[derive(Debug, Default)]
pub(super) struct FileMatches {
    /// Spans of lines whose entry matches, with the score, ascending.
    pub lines: Vec<(Range<u64>, u8)>,
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
    test: EntryTest<'r>,
    cancel: &'r Cancel,
    /// Whether the query has several words, which a label and its entry may share.
    is_divisible: bool,
    buffer: Vec<u8>,
}

impl<'r> Scanner<'r> {
    pub(super) fn new(request: &'r SearchRequest, cancel: &'r Cancel) -> Self {
        Self {
            test: EntryTest::new(request),
            cancel,
            is_divisible: request.query.all() > 1,
            buffer: Vec::new(),
        }
    }

    pub(super) fn scan(&mut self, location: &Location, range: &FileRange) -> Result<FileMatches> {
        let file = location.folder.file(&location.name, HandleAccess::Read)?;
        let mut found = FileMatches::default();
        let scanned = self.scan_file(&file, range, &mut found);
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
        found: &mut FileMatches,
    ) -> io::Result<()> {
        let Some(start) = first_line(file, &range.span, range.grows)? else {
            found.scanned_bytes += range.span.end - range.span.start;
            return Ok(());
        };
        let buffer = std::mem::take(&mut self.buffer);
        let lines = Lines::in_chunks(file, start, CHUNK).with_buffer(buffer);
        let mut lines = lines.with_cancel(self.cancel);
        while let Some(line) = lines.next()? {
            if line.offset >= range.span.end && !range.grows {
                break;
            }
            found.scanned_bytes += line.len + 1;
            if let Some(bytes) = line.bytes {
                self.line(bytes, line.offset, found);
            }
        }
        self.buffer = lines.into_buffer();
        Ok(())
    }

    fn line(&mut self, bytes: &[u8], offset: u64, found: &mut FileMatches) {
        let test = &mut self.test;
        test.matcher.begin(0);
        if !test.matcher.may_complete(bytes) {
            // A label and its entry may match the query together.
            found.has_labels |= self.is_divisible
                && !found.has_labels
                && test.matcher.may_add(bytes)
                && memchr::memmem::find(bytes, b"label").is_some();
            return;
        }
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
                        label: Some(label), ..
                    },
                ) => {
                    found.has_labels |= test.touches_label(label);
                }
                (Kind::Label, _) => {}
                (kind, facts) => {
                    let role = match facts {
                        Facts::Message { role, .. } => *role,
                        _ => Role::None,
                    };
                    if test.is_match(bytes, kind, role, None) {
                        let best = test.best_field(bytes, kind, role, None);
                        found.lines.push((span, best.map_or(0, |best| best.score)));
                    }
                }
            },
            Some(Line::Header(_) | Line::Title(_) | Line::Blank) => {}
            None => found.damaged.push(span),
        }
    }
}

/// Where the first line that begins in `span` starts; `None` if no line begins there.
fn first_line(file: &File, span: &Range<u64>, grows: bool) -> io::Result<Option<u64>> {
    if span.start == 0 {
        return Ok(Some(0));
    }
    // A line begins after a line break: the byte before the span counts.
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
