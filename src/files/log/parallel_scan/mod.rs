//! Scans the lines of a large file on several threads and passes them on in file order.
//!
//! Each thread takes the next range of the file and scans the lines that begin in it. For an ordinary entry it passes
//! on the data that the tree keeps; for any other line it passes on only the bytes. So the result does not depend on
//! how the file was divided. Adding lines to the tree cannot be shared between threads. Everything that can be prepared
//! is done by the threads: parsing the timestamp, hashing the id, copying the id next to the others.
//!
//! The threads handle only complete lines. The scan stops at a last line without its break, at a line across many
//! ranges, at a file that shrinks, or at a failed read. The caller then continues line by line.

use super::lines;
use super::lines::trimmed;
use crate::lock::lock;
use crate::os::FileAt;
use crate::os::file::File;
use crate::parallel;
use memchr::{memchr, memchr_iter, memrchr};
use std::ops::ControlFlow;
use std::sync::Mutex;
use treelined_core::bytes::part;
use treelined_core::entry::{Line, Parent, scan};
use treelined_core::error::Result;
pub(crate) use treelined_core::tree::{IdHash, IdHasher, PlainFacts};

/// For files with fewer bytes than this, one thread is as fast as several.
pub(crate) const WORTHWHILE: u64 = 16 << 20;
/// The most threads that scan, including the thread of the caller.
const MAX_THREADS: usize = 8;
/// The size of a range in bytes: so small that its bytes stay in the cache of the processor until they are scanned.
const RANGE: u64 = 256 << 10;
/// The most bytes that the last line of a range may have beyond the range.
const OVERHANG: u64 = 8 << 20;

/// How a file is divided between threads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Division {
    /// The number of threads besides the thread of the caller.
    pub helpers: usize,
    /// The size of a range in bytes.
    pub range: u64,
    /// The most bytes that the last line of a range may have beyond the range.
    pub overhang: u64,
}

impl Division {
    /// The division of `bytes` bytes; `None` if one thread is as fast.
    pub(crate) fn for_bytes(bytes: u64) -> Option<Self> {
        if bytes < WORTHWHILE {
            return None;
        }
        let helpers = parallel::ThreadPlan::up_to(MAX_THREADS).helpers;
        (helpers > 0).then_some(Self {
            helpers,
            range: RANGE,
            overhang: OVERHANG,
        })
    }

    /// At most two ranges for each thread are in memory at a time.
    fn plan(&self) -> parallel::ThreadPlan {
        parallel::ThreadPlan {
            helpers: self.helpers,
            ahead: 2 * (self.helpers + 1),
        }
    }
}

/// Scans the lines of `file` from `start`, where a line begins, to `end`. Passes them to `take`, range by range. The
/// scan may stop before `end`; the caller continues there.
pub(crate) fn scan_ranges(
    file: &File,
    start: u64,
    end: u64,
    division: Division,
    hasher: &IdHasher,
    mut take: impl FnMut(RangeLines<'_>) -> Result<()>,
) -> Result<()> {
    let scanner = RangeScanner {
        file,
        start,
        end,
        division,
        hasher,
        spare: Mutex::default(),
    };
    let (mut lines, mut ranges) = (0_u64, 0_u64);
    let scan = |(): &mut (), number: usize| scanner.scan_next(number);
    let count = usize::try_from((end - start).div_ceil(division.range)).unwrap_or(usize::MAX);
    let taken = parallel::map_in_order(
        count,
        division.plan(),
        || (),
        scan,
        |buffer| {
            lines += buffer.lines.len() as u64;
            ranges += 1;
            let read = ranges.saturating_mul(division.range);
            let taken = take(RangeLines {
                buffer: &buffer,
                expected: end.saturating_sub(start + read) / (read / lines.max(1)).max(1),
            });
            match taken {
                Ok(()) if !buffer.stops => {
                    scanner.put_back(buffer);
                    ControlFlow::Continue(())
                }
                taken => ControlFlow::Break(taken),
            }
        },
    );
    taken.break_value().unwrap_or(Ok(()))
}

/// The lines that begin in one range of the file.
pub(crate) struct RangeLines<'s> {
    buffer: &'s RangeBuffer,
    /// An estimate of the number of lines after this range.
    pub expected: u64,
}

impl<'s> RangeLines<'s> {
    /// The hashes of the ids of all ordinary entries.
    pub(crate) fn hashes(&self) -> impl Iterator<Item = IdHash> {
        let lines = self.buffer.lines.iter();
        lines.filter_map(|line| line.entry.as_ref().map(|entry| entry.hash))
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = ScannedLine<'s>> {
        let buffer = self.buffer;
        let mut ids = buffer.ids.as_str();
        let mut next_id = move |len: u32| {
            let (id, rest) = ids.split_at_checked(len as usize)?;
            ids = rest;
            Some(id)
        };
        buffer.lines.iter().map(move |line| ScannedLine {
            offset: buffer.offset + line.start as u64,
            text: &buffer.text,
            start: line.start,
            len: line.len,
            entry: line.entry.as_ref().and_then(|entry| {
                Some(OrdinaryEntry {
                    id: next_id(entry.id_len)?,
                    hash: entry.hash,
                    parent: match entry.parent_len {
                        Some(len) => Some(next_id(len)?),
                        None => None,
                    },
                    facts: &entry.facts,
                    start: entry.start,
                    len: entry.len,
                })
            }),
        })
    }
}

/// A line of the file, with its line break.
pub(crate) struct ScannedLine<'s> {
    /// The offset of the line in bytes from the start of the file.
    pub offset: u64,
    /// `None` if the line is not an ordinary entry.
    pub entry: Option<OrdinaryEntry<'s>>,
    text: &'s [u8],
    start: usize,
    len: usize,
}

impl<'s> ScannedLine<'s> {
    pub(crate) fn line(&self) -> lines::RawLine<'s> {
        lines::RawLine {
            offset: self.offset,
            bytes: self.text.get(self.start..self.start + self.len),
            len: self.len as u64,
            terminated: true,
        }
    }

    /// The offset of the next line in bytes from the start of the file.
    pub(crate) fn end(&self) -> u64 {
        self.offset + self.len as u64 + 1
    }
}

/// The data that the tree keeps of an ordinary line. An ordinary line is exactly one entry in UTF-8 that refers to no
/// entry other than its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OrdinaryEntry<'s> {
    pub id: &'s str,
    pub hash: IdHash,
    /// `None` if `parentId` is null.
    pub parent: Option<&'s str>,
    pub facts: &'s PlainFacts,
    /// The offset of the entry in bytes from the start of the line.
    pub start: u32,
    /// The length of the entry in bytes.
    pub len: u32,
}

/// Reads and scans the ranges of a file.
struct RangeScanner<'f> {
    file: &'f File,
    start: u64,
    end: u64,
    division: Division,
    hasher: &'f IdHasher,
    /// Buffers that were used before and can be used again.
    spare: Mutex<Vec<RangeBuffer>>,
}

/// The lines that begin in one range.
#[derive(Default)]
struct RangeBuffer {
    text: Vec<u8>,
    /// The offset of `text` in bytes from the start of the file.
    offset: u64,
    lines: Vec<LineSpan>,
    /// The ids of the ordinary entries, each followed by the id of the parent.
    ids: String,
    /// Whether the scan must stop before the next line, because it cannot handle that line.
    stops: bool,
}

/// The range of one line in `text`.
struct LineSpan {
    start: usize,
    len: usize,
    entry: Option<EntrySpan>,
}

/// An [`OrdinaryEntry`], with the lengths of its ids in `ids` instead of the ids.
struct EntrySpan {
    hash: IdHash,
    facts: PlainFacts,
    id_len: u32,
    parent_len: Option<u32>,
    start: u32,
    len: u32,
}

impl RangeScanner<'_> {
    fn put_back(&self, buffer: RangeBuffer) {
        lock(&self.spare).push(buffer);
    }

    fn scan_next(&self, number: usize) -> RangeBuffer {
        let spare = lock(&self.spare).pop();
        let mut buffer = spare.unwrap_or_default();
        self.scan(number as u64, &mut buffer);
        buffer
    }

    fn scan(&self, number: u64, buffer: &mut RangeBuffer) {
        let range = self.division.range;
        let from = self.start + number * range;
        let to = (from + range).min(self.end);
        buffer.lines.clear();
        buffer.ids.clear();
        buffer.stops = !self.read(from, to, buffer);
        let text = buffer.text.as_slice();
        // A line belongs to the range in which it begins.
        let first = match number {
            0 => Some(0),
            _ => memchr(b'\n', text).map(|at| at + 1),
        };
        let Some(first) = first else {
            return;
        };
        let whole_lines = part(text, first..);
        let all_utf8 = simdutf8::basic::from_utf8(whole_lines).is_ok();
        // `read` returns whole lines only, so the last one has its break.
        let mut start = first;
        for found in memchr_iter(b'\n', whole_lines) {
            let end = first + found;
            let line = part(text, start..end);
            let is_first_of_file = buffer.offset + start as u64 == 0;
            buffer.lines.push(LineSpan {
                start,
                len: line.len(),
                // A byte order mark may precede the header.
                entry: match all_utf8 || simdutf8::basic::from_utf8(line).is_ok() {
                    true if !is_first_of_file => self.entry(line, &mut buffer.ids),
                    _ => None,
                },
            });
            start = end + 1;
        }
    }

    /// Appends the ids of this line, which is UTF-8, to `ids`. Returns `None` if the line is not an ordinary entry.
    fn entry(&self, line: &[u8], ids: &mut String) -> Option<EntrySpan> {
        let Ok(Line::Entry(envelope)) = scan::scan_line(line) else {
            return None;
        };
        let facts = PlainFacts::of(&envelope)?;
        let id = envelope.id.as_deref()?;
        let parent = match &envelope.parent {
            Parent::Absent => return None,
            Parent::Null => None,
            Parent::Id(id) => Some(&**id),
        };
        let span = trimmed(line);
        let entry = EntrySpan {
            hash: self.hasher.hash(id),
            facts,
            // A tree refuses longer ids.
            id_len: u16::try_from(id.len()).ok()?.into(),
            parent_len: match parent {
                Some(parent) => Some(u32::try_from(parent.len()).ok()?),
                None => None,
            },
            start: u32::try_from(span.start).ok()?,
            len: u32::try_from(span.len()).ok()?,
        };
        ids.push_str(id);
        ids.push_str(parent.unwrap_or_default());
        Some(entry)
    }

    /// Reads the range `from..to`, and continues to the end of the last line that begins in it, so that the text ends
    /// with a line break or is empty. Except for the first range, the text starts with the byte before the range.
    /// Returns false if the end of the last line is too far away.
    fn read(&self, from: u64, to: u64, buffer: &mut RangeBuffer) -> bool {
        buffer.offset = if from == self.start { from } else { from - 1 };
        let mut text = std::mem::take(&mut buffer.text);
        let wanted = to - buffer.offset;
        let whole = fill(self.file, &mut text, 0, wanted, buffer.offset);
        let mut reaches = whole && text.last() == Some(&b'\n');
        // The end of the last line is needed only if a line begins in this range.
        let begins = from == self.start || memchr(b'\n', &text).is_some();
        if whole && !reaches && begins {
            reaches = self.read_on(&mut text, buffer.offset, wanted);
        }
        let goes_on = whole && (reaches || !begins);
        if !reaches {
            let kept = memrchr(b'\n', &text).map_or(0, |at| at + 1);
            text.truncate(kept);
        }
        buffer.text = text;
        goes_on
    }

    /// Continues to read, up to the next line break. Returns false if that line break is too far away.
    fn read_on(&self, text: &mut Vec<u8>, offset: u64, wanted: u64) -> bool {
        let mut step = (8 << 10).min(self.division.overhang.max(1));
        loop {
            let at = text.len();
            let held = at as u64;
            let now = step.min(self.end - (offset + held));
            if now == 0 || held + now > wanted + self.division.overhang {
                return false;
            }
            let whole = fill(self.file, text, at, now, offset);
            if let Some(found) = memchr(b'\n', text.get(at..).unwrap_or_default()) {
                text.truncate(at + found + 1);
                return true;
            }
            if !whole {
                return false;
            }
            step *= 2;
        }
    }
}

/// Reads `len` bytes of the file into `text[at..]`; false if there are fewer or they cannot be read.
fn fill(file: &File, text: &mut Vec<u8>, at: usize, len: u64, offset: u64) -> bool {
    let Some(end) = usize::try_from(len)
        .ok()
        .and_then(|len| at.checked_add(len))
    else {
        return false;
    };
    text.resize(end, 0);
    let mut filled = at;
    while let Some(room) = text.get_mut(filled..).filter(|room| !room.is_empty()) {
        match file.read_at(room, offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    text.truncate(filled);
    filled == end
}

#[cfg(test)]
mod tests;
