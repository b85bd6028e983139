//! A large file's lines, scanned by several threads and handed out in file order.
//!
//! Each thread takes the next range of the file and scans the lines that begin in it; the caller takes
//! the ranges in turn, and scans one itself rather than wait. What is handed out for a line is what a
//! tree keeps of what [`scan::scan_line`] says of it, or nothing, so that who takes it in cannot tell how
//! the file was read. Taking in is the part that threads cannot share: all that can be done ahead (the
//! timestamp read, the id hashed, copied to where the taker finds it) is done by who scans.
//!
//! It knows whole lines only. Where something needs a closer look (a last line without its break, a
//! line across many ranges, a file that shrinks, a read that fails) it stops before it, and the rest is
//! read as ever.

use super::ingest::trimmed;
use super::lines;
use crate::entry::{Line, Parent, scan};
use crate::error::Result;
use crate::lock::lock;
use crate::tree::{IdHash, IdHasher, PlainFacts};
use memchr::{memchr, memchr_iter, memrchr};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Less than this is not worth a thread. Bytes.
pub const WORTHWHILE: u64 = 16 << 20;
/// Threads besides the caller's.
const MAX_HELPERS: usize = 7;
/// Bytes of a range: what is read stays in the processor's cache until it has been scanned.
const RANGE: usize = 256 << 10;
/// How far a range's last line may reach beyond it. Bytes.
const OVERHANG: usize = 8 << 20;

/// How a file is divided.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub helpers: usize,
    /// Bytes of a range.
    pub range: usize,
    /// How far a range's last line may reach beyond it, in bytes.
    pub overhang: usize,
}

impl Plan {
    /// For reading so many bytes; `None` if one thread does as well.
    pub fn for_bytes(bytes: u64) -> Option<Self> {
        // Asked last: it reads several files.
        let threads = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = (bytes >= WORTHWHILE).then(threads)?;
        (threads > 1).then(|| Self {
            helpers: (threads - 1).min(MAX_HELPERS),
            range: RANGE,
            overhang: OVERHANG,
        })
    }

    /// Ranges that may be read ahead of the one being taken in: bounds what is held in memory.
    fn ahead(&self) -> u64 {
        2 * (self.helpers as u64 + 1)
    }
}

/// Reads the lines of `file` from `start`, where one begins, to `end`, and hands them to `take` with what
/// is to be kept of the ordinary ones. Where it stops before `end` the caller reads on.
pub fn sweep(
    file: &File,
    start: u64,
    end: u64,
    plan: Plan,
    hasher: &IdHasher,
    mut take: impl FnMut(Range<'_>) -> Result<()>,
) -> Result<()> {
    let work = Work {
        file,
        start,
        end,
        plan,
        hasher,
        state: Mutex::default(),
        changed: Condvar::new(),
    };
    std::thread::scope(|scope| {
        // However this ends, nobody goes on for nothing.
        let _stop = Stop(&work);
        for _ in 0..plan.helpers {
            let helper = std::thread::Builder::new().name("scan".to_owned());
            if helper.spawn_scoped(scope, || work.help()).is_err() {
                break;
            }
        }
        let mut count = 0;
        for number in 0..work.ranges() {
            let scanned = work.get(number);
            count += scanned.lines.len() as u64;
            let read = (number + 1).saturating_mul(plan.range as u64);
            take(Range {
                scanned: &scanned,
                expected: end.saturating_sub(start + read) / (read / count.max(1)).max(1),
            })?;
            if scanned.stops {
                break;
            }
            work.put_back(scanned);
        }
        Ok(())
    })
}

/// The lines that begin in one part of the file.
pub struct Range<'s> {
    scanned: &'s Scanned,
    /// How many lines are still to come, these not counted, if those to come are like those before.
    pub expected: u64,
}

impl<'s> Range<'s> {
    /// The hashes of the ids of all sound lines.
    pub fn hashes(&self) -> impl Iterator<Item = IdHash> {
        let sound = self
            .scanned
            .lines
            .iter()
            .filter_map(|line| line.sound.as_ref());
        sound.map(|sound| sound.hash)
    }

    pub fn lines(&self) -> impl Iterator<Item = Swept<'s>> {
        let scanned = self.scanned;
        let mut ids = scanned.ids.as_str();
        let mut next_id = move |len: u32| {
            let (id, rest) = ids.split_at_checked(len as usize)?;
            ids = rest;
            Some(id)
        };
        scanned.lines.iter().map(move |line| Swept {
            offset: scanned.offset + line.start as u64,
            text: &scanned.text,
            start: line.start,
            len: line.len,
            sound: line.sound.as_ref().and_then(|found| {
                Some(Sound {
                    id: next_id(found.id_len)?,
                    hash: found.hash,
                    parent: match found.parent_len {
                        Some(len) => Some(next_id(len)?),
                        None => None,
                    },
                    facts: &found.facts,
                    start: found.start,
                    len: found.len,
                })
            }),
        })
    }
}

/// A line of the file.
pub struct Swept<'s> {
    /// Of its start in the file.
    pub offset: u64,
    pub sound: Option<Sound<'s>>,
    text: &'s [u8],
    start: usize,
    len: usize,
}

impl<'s> Swept<'s> {
    pub fn line(&self) -> lines::Line<'s> {
        lines::Line {
            offset: self.offset,
            bytes: self.text.get(self.start..self.start + self.len),
            len: self.len as u64,
            terminated: true,
        }
    }

    /// Where the next line starts in the file.
    pub fn end(&self) -> u64 {
        self.offset + self.len as u64 + 1
    }
}

/// What is to be kept of a line that is an entry in UTF-8 and nothing else, of a kind that names no other
/// entry but its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sound<'s> {
    pub id: &'s str,
    pub hash: IdHash,
    /// `None`: null.
    pub parent: Option<&'s str>,
    pub facts: &'s PlainFacts,
    /// Of the entry in its line.
    pub start: u32,
    /// Of the entry, in bytes.
    pub len: u32,
}

struct Work<'f> {
    file: &'f File,
    start: u64,
    end: u64,
    plan: Plan,
    hasher: &'f IdHasher,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The next range nobody has begun.
    next: u64,
    /// Ranges that have been handed out.
    taken: u64,
    done: BTreeMap<u64, Scanned>,
    /// Used before, for their memory.
    spare: Vec<Scanned>,
    stopped: bool,
    /// A helper has failed.
    broken: bool,
}

/// The lines that begin in one range.
#[derive(Default)]
struct Scanned {
    text: Vec<u8>,
    /// Of `text` in the file.
    offset: u64,
    lines: Vec<Found>,
    /// The ids of the sound lines, each followed by its parent's.
    ids: String,
    /// Whether the sweep ends here, since the next line is not for it.
    stops: bool,
}

/// One line, in `text`.
struct Found {
    start: usize,
    len: usize,
    sound: Option<FoundSound>,
}

/// A [`Sound`], its ids elsewhere.
struct FoundSound {
    hash: IdHash,
    facts: PlainFacts,
    id_len: u32,
    parent_len: Option<u32>,
    start: u32,
    len: u32,
}

struct Stop<'w, 'f>(&'w Work<'f>);

impl Drop for Stop<'_, '_> {
    fn drop(&mut self) {
        self.0.state().stopped = true;
        self.0.changed.notify_all();
    }
}

struct Broken<'w, 'f>(&'w Work<'f>);

impl Drop for Broken<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.state().broken = true;
            self.0.changed.notify_all();
        }
    }
}

impl Work<'_> {
    fn ranges(&self) -> u64 {
        (self.end - self.start).div_ceil(self.plan.range as u64)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        let woken = self.changed.wait(state);
        woken.unwrap_or_else(PoisonError::into_inner)
    }

    /// Scans ranges until there are no more.
    fn help(&self) {
        // Whoever waits for a range must not wait for ever, should this thread fail.
        let _broken = Broken(self);
        let mut state = self.state();
        while !state.stopped && state.next < self.ranges() {
            if state.next > state.taken + self.plan.ahead() {
                state = self.wait(state);
                continue;
            }
            state = self.scan_next(state);
        }
    }

    /// The lines of this range, which is the next to be handed out.
    fn get(&self, number: u64) -> Scanned {
        let mut state = self.state();
        loop {
            if let Some(scanned) = state.done.remove(&number) {
                state.taken = number + 1;
                drop(state);
                self.changed.notify_all();
                return scanned;
            }
            if state.broken {
                return Scanned {
                    stops: true,
                    ..Scanned::default()
                };
            }
            let may_go_ahead = state.next <= number + self.plan.ahead();
            state = if state.next < self.ranges() && may_go_ahead {
                self.scan_next(state)
            } else {
                self.wait(state)
            };
        }
    }

    fn put_back(&self, scanned: Scanned) {
        self.state().spare.push(scanned);
    }

    fn scan_next<'s>(&'s self, mut state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        let number = state.next;
        state.next += 1;
        let mut scanned = state.spare.pop().unwrap_or_default();
        drop(state);
        self.scan(number, &mut scanned);
        let mut state = self.state();
        state.done.insert(number, scanned);
        self.changed.notify_all();
        state
    }

    fn scan(&self, number: u64, scanned: &mut Scanned) {
        let range = self.plan.range as u64;
        let from = self.start + number * range;
        let to = (from + range).min(self.end);
        scanned.lines.clear();
        scanned.ids.clear();
        scanned.stops = !self.read(from, to, scanned);
        let text = scanned.text.as_slice();
        // A line that began before belongs to the range in which it did.
        let first = match number {
            0 => Some(0),
            _ => memchr(b'\n', text).map(|at| at + 1),
        };
        let Some(first) = first else {
            return;
        };
        let whole_lines = text.get(first..).unwrap_or_default();
        let all_utf8 = simdutf8::basic::from_utf8(whole_lines).is_ok();
        // As far as lines are read here, each has its break.
        let mut start = first;
        for found in memchr_iter(b'\n', whole_lines) {
            let end = first + found;
            let line = text.get(start..end).unwrap_or_default();
            let is_first_of_file = scanned.offset + start as u64 == 0;
            scanned.lines.push(Found {
                start,
                len: line.len(),
                // A byte order mark may precede the header.
                sound: match all_utf8 || simdutf8::basic::from_utf8(line).is_ok() {
                    true if !is_first_of_file => self.sound(line, &mut scanned.ids),
                    _ => None,
                },
            });
            start = end + 1;
        }
    }

    /// What is to be kept of this line, which is in UTF-8, its ids appended to `ids`; `None` for
    /// everything that is not a whole, ordinary entry.
    fn sound(&self, line: &[u8], ids: &mut String) -> Option<FoundSound> {
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
        let sound = FoundSound {
            hash: self.hasher.hash(id),
            facts,
            // As long as a tree takes.
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
        Some(sound)
    }

    /// Reads the range `from..to` (from the byte before it, but for the first), and on to the end of its
    /// last line; nothing behind that is left in the text. False if there is no such end.
    fn read(&self, from: u64, to: u64, scanned: &mut Scanned) -> bool {
        scanned.offset = if from == self.start { from } else { from - 1 };
        let mut text = std::mem::take(&mut scanned.text);
        let wanted = (to - scanned.offset) as usize;
        let whole = fill(self.file, &mut text, 0, wanted, scanned.offset);
        let mut reaches = whole && text.last() == Some(&b'\n');
        // Only if a line begins in this range does its end matter.
        let begins = from == self.start || memchr(b'\n', &text).is_some();
        if whole && !reaches && begins {
            reaches = self.read_on(&mut text, scanned.offset, wanted);
        }
        let goes_on = whole && (reaches || !begins);
        if !reaches {
            let kept = memrchr(b'\n', &text).map_or(0, |at| at + 1);
            text.truncate(kept);
        }
        scanned.text = text;
        goes_on
    }

    /// Reads on to the next line break.
    fn read_on(&self, text: &mut Vec<u8>, offset: u64, wanted: usize) -> bool {
        let mut step = (8 << 10).min(self.plan.overhang.max(1));
        loop {
            let at = text.len();
            let left = self.end - (offset + at as u64);
            let step_now = (step as u64).min(left) as usize;
            if step_now == 0 || at + step_now > wanted + self.plan.overhang {
                return false;
            }
            let whole = fill(self.file, text, at, step_now, offset);
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

/// Reads `len` bytes of the file to `text[at..]`; false if there are fewer, or they cannot be read.
fn fill(file: &File, text: &mut Vec<u8>, at: usize, len: usize, offset: u64) -> bool {
    text.resize(at + len, 0);
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
    filled == at + len
}

#[cfg(test)]
mod tests;
