//! A large file's lines, scanned by several threads and handed out in file order.
//!
//! Each thread takes the next range of the file and scans the lines that begin in it; the caller takes
//! the ranges in turn, and scans one itself rather than wait. What is handed out for a line is what
//! [`scan::scan_line`] says of it or nothing, so that who takes it in cannot tell how the file was read.
//!
//! It knows whole lines only. Where something needs a closer look (a last line without its break, a
//! line across many ranges, a file that shrinks, a read that fails) it stops before it, and the rest is
//! read as ever.

use super::lines;
use super::scan::{self, Envelope, Facts, Kind, Line, Parent, Role};
use crate::error::Result;
use memchr::{memchr, memchr_iter, memrchr};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Less than this is not worth a thread. Bytes.
pub const WORTHWHILE: u64 = 16 << 20;
/// Threads besides the caller's.
const MAX_HELPERS: usize = 7;
/// Bytes of a range.
const RANGE: usize = 1 << 20;
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
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        (bytes >= WORTHWHILE && threads > 1).then(|| Self {
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

/// Reads the lines of `file` from `start`, where one begins, to `end`, and hands each to `take` with its
/// envelope where it is an ordinary one. Where it stops before `end` the caller reads on.
pub fn sweep(
    file: &File,
    start: u64,
    end: u64,
    plan: Plan,
    mut take: impl FnMut(&lines::Line<'_>, Option<Envelope<'_>>) -> Result<()>,
) -> Result<()> {
    let work = Work {
        file,
        start,
        end,
        plan,
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
        for number in 0..work.ranges() {
            let scanned = work.get(number);
            for line in &scanned.lines {
                let bytes = scanned.text.get(line.start..line.start + line.len);
                let bytes = bytes.unwrap_or_default();
                let envelope = line.brief.as_ref().and_then(|brief| brief.envelope(bytes));
                let whole = lines::Line {
                    offset: scanned.offset + line.start as u64,
                    bytes: Some(bytes),
                    len: line.len as u64,
                    terminated: true,
                };
                take(&whole, envelope)?;
            }
            if scanned.stops {
                break;
            }
            work.put_back(scanned);
        }
        Ok(())
    })
}

struct Work<'f> {
    file: &'f File,
    start: u64,
    end: u64,
    plan: Plan,
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
    /// Whether the sweep ends here, since the next line is not for it.
    stops: bool,
}

/// One line, in `text`.
struct Found {
    start: usize,
    len: usize,
    brief: Option<Brief>,
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
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
        // As far as lines are read here, each has its break.
        let mut start = first;
        for found in memchr_iter(b'\n', text.get(first..).unwrap_or_default()) {
            let end = first + found;
            let line = text.get(start..end).unwrap_or_default();
            let is_first_of_file = scanned.offset + start as u64 == 0;
            scanned.lines.push(Found {
                start,
                len: line.len(),
                // A byte order mark may precede the header.
                brief: Brief::of(line).filter(|_| !is_first_of_file),
            });
            start = end + 1;
        }
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
        let mut step = (16 << 10).min(self.plan.overhang.max(1));
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

/// The envelope of a line, with the places of its strings instead of the strings.
struct Brief {
    kind: Kind,
    id: Text,
    /// `None`: null.
    parent: Option<Text>,
    timestamp: Text,
    facts: BriefFacts,
    odd: bool,
}

enum BriefFacts {
    None,
    Message {
        role: Role,
        only_tool_calls: bool,
        is_error: bool,
        tool_name: Option<Text>,
    },
    CustomMessage {
        display: bool,
    },
}

/// A string that stands in the line as it is.
#[derive(Clone, Copy)]
struct Text {
    at: u32,
    len: u32,
}

impl Brief {
    /// `None` for everything that is not a whole, ordinary entry in UTF-8.
    fn of(line: &[u8]) -> Option<Self> {
        simdutf8::basic::from_utf8(line).ok()?;
        let Ok(Line::Entry(envelope)) = scan::scan_line(line) else {
            return None;
        };
        let place = |text: &Cow<'_, str>| match text {
            // A slice of the line, so its place follows from the addresses.
            Cow::Borrowed(text) => Some(Text {
                at: u32::try_from(text.as_ptr() as usize - line.as_ptr() as usize).ok()?,
                len: u32::try_from(text.len()).ok()?,
            }),
            Cow::Owned(_) => None,
        };
        Some(Self {
            kind: envelope.kind,
            id: place(envelope.id.as_ref()?)?,
            parent: match &envelope.parent {
                Parent::Absent => return None,
                Parent::Null => None,
                Parent::Id(id) => Some(place(id)?),
            },
            timestamp: place(envelope.timestamp.as_ref()?)?,
            facts: match &envelope.facts {
                Facts::None => BriefFacts::None,
                Facts::Message {
                    role,
                    only_tool_calls,
                    is_error,
                    tool_name,
                } => BriefFacts::Message {
                    role: *role,
                    only_tool_calls: *only_tool_calls,
                    is_error: *is_error,
                    tool_name: match tool_name {
                        Some(name) => Some(place(name)?),
                        None => None,
                    },
                },
                Facts::CustomMessage { display } => BriefFacts::CustomMessage { display: *display },
                _ => return None,
            },
            odd: envelope.odd,
        })
    }

    /// Of the line it was made of.
    fn envelope<'l>(&self, line: &'l [u8]) -> Option<Envelope<'l>> {
        let text = |text: Text| {
            let at = text.at as usize;
            let bytes = line.get(at..at + text.len as usize)?;
            str::from_utf8(bytes).ok().map(Cow::Borrowed)
        };
        Some(Envelope {
            kind: self.kind,
            id: Some(text(self.id)?),
            parent: match self.parent {
                Some(id) => Parent::Id(text(id)?),
                None => Parent::Null,
            },
            timestamp: Some(text(self.timestamp)?),
            facts: match &self.facts {
                BriefFacts::None => Facts::None,
                BriefFacts::Message {
                    role,
                    only_tool_calls,
                    is_error,
                    tool_name,
                } => Facts::Message {
                    role: *role,
                    only_tool_calls: *only_tool_calls,
                    is_error: *is_error,
                    tool_name: match tool_name {
                        Some(name) => Some(text(*name)?),
                        None => None,
                    },
                },
                BriefFacts::CustomMessage { display } => Facts::CustomMessage { display: *display },
            },
            odd: self.odd,
        })
    }
}

#[cfg(test)]
mod tests;
