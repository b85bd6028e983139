//! Appends lines: takes the lock, reads the new lines of others, and makes one write (session-file.md §3). No other
//! module writes entries.
//!
//! An append never truncates the file, never continues a short write, and never repeats a failed sync: the bytes in the
//! file stay there, and each failure is reported.

use super::header::CURRENT_VERSION;
use super::lines;
use super::state::{FileLog, Log, LogStorage, OpenFile, Standing};
use crate::invariant::{always, never};
use crate::os::file;
use crate::os::file::{File, TryLockError};
use crate::os::handle::{Handle, HandleAccess};
use crate::os::temporary::Temporary;
use std::io::{self, Seek, Write};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use treelined_core::bytes::{index, part};
use treelined_core::defect::breaks;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::tree::Tree;

/// How long an append or a replacement of the file waits for a lock that another process holds (session-file.md §3).
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// The result of trying to lock.
pub enum TryLock {
    Locked(Lock),
    /// Another process is appending, or has just replaced the file.
    Contended,
}

/// The append lock, released when dropped. It keeps the locked file open, even after a rename.
#[must_use]
pub struct Lock {
    /// `None` if there is nothing to lock: the session is in memory, or has no file before its first entry.
    file: Option<Arc<File>>,
}

impl Lock {
    /// The locked file.
    pub(crate) fn file(&self) -> Option<&Arc<File>> {
        self.file.as_ref()
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            // Closing the last handle also releases the lock, so a failure has no effect.
            let _released = file.unlock();
        }
    }
}

impl Log {
    /// Tries to take the lock, without waiting. All cooperating writers take it. Once the lock is held, the caller must
    /// check [`Log::standing`] and refresh.
    pub fn try_lock(&mut self) -> Result<TryLock> {
        let LogStorage::File(log) = &mut self.store else {
            return Ok(TryLock::Locked(Lock { file: None }));
        };
        if self
            .ingest
            .header
            .as_ref()
            .is_some_and(|h| h.version > CURRENT_VERSION)
        {
            return Err(Error::new(
                Kind::VersionUnsupported,
                "the session is of a newer version of the format and can only be read",
            ));
        }
        let is_left_out = breaks("A session with a file is written only while its lock is held");
        let Some(open) = log.open.as_ref().filter(|_| !is_left_out) else {
            return Ok(TryLock::Locked(Lock { file: None }));
        };
        let file = match log.file(open, HandleAccess::Append) {
            Ok(file) => file,
            // Another file replaced the file between two checks.
            Err(error) if error.kind == Kind::SessionReplaced => return Ok(TryLock::Contended),
            Err(error) => return Err(error),
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(TryLock::Contended),
            // On a file system without working locks, `multiWriter` is false, and only O_APPEND keeps lines whole.
            Err(TryLockError::Error(error)) if file::is_lock_unsupported(&error) => {}
            Err(TryLockError::Error(error)) => {
                return Err(Error::io("lock the session file", &error));
            }
        }
        Ok(TryLock::Locked(Lock { file: Some(file) }))
    }

    /// Writes whole lines in one call. `new` has the lines without their line breaks. Requires the lock and a refreshed
    /// log. The lines are not in the tree until [`Log::take_in`] is called.
    pub fn write(&mut self, lock: &Lock, new: Vec<Vec<u8>>) -> Result<WriteOutcome> {
        let mut lines = new.iter();
        never!(
            "No appended line has a line break inside, which would make two lines of it",
            lines.any(|line| memchr::memchr(b'\n', line).is_some())
        )?;
        never!("No empty line is appended", new.iter().any(Vec::is_empty))?;
        always!(
            "Lines are appended only to files of version 3",
            self.version() == CURRENT_VERSION
        )?;
        match &mut self.store {
            LogStorage::File(log) if log.open.is_none() => {
                let outcome = log.write_first(new)?;
                self.ingest.lines = 1;
                Ok(outcome)
            }
            LogStorage::File(log) => log.write(lock, new),
            LogStorage::Memory(memory) => {
                let mut memory = memory.write().unwrap_or_else(PoisonError::into_inner);
                let start = memory.len() as u64;
                let text = joined(&new, false);
                memory.extend_from_slice(&text);
                Ok(WriteOutcome {
                    start,
                    bytes: text.len(),
                    lines: new,
                    failure: None,
                    file: None,
                    created: false,
                    ends_in_break: true,
                })
            }
        }
    }

    /// Appends lines to an ephemeral session that no client uses yet.
    pub fn fill(&mut self, tree: &mut Tree, lines: Vec<Vec<u8>>) -> Result<()> {
        let outcome = self.write(&Lock { file: None }, lines)?;
        self.take_in(tree, &outcome).map(|_| ())
    }

    /// The number of bytes that other writers appended before this write and that are not in the tree yet.
    pub fn unread_before(&self, outcome: &WriteOutcome) -> u64 {
        match &self.store {
            LogStorage::File(log) => outcome.start.saturating_sub(log.end),
            LogStorage::Memory(_) => 0,
        }
    }

    /// Adds the lines of the file to the tree, up to the end of this write. Returns how many of the written lines are
    /// complete.
    pub fn take_in(&mut self, tree: &mut Tree, outcome: &WriteOutcome) -> Result<usize> {
        let known = tree.node_count() + self.ingest.diagnostics.len();
        if let LogStorage::File(log) = &mut self.store {
            self.ingest.foreign = true;
            tree.moves_mut().pause(true);
            let read = log.read_until(tree, &mut self.ingest, outcome.start);
            tree.moves_mut().pause(false);
            self.ingest.foreign = false;
            read?;
        }
        let bodies = self.bodies();
        let mut offset = outcome.start;
        let mut whole = 0;
        for line in &outcome.lines {
            let end = offset + line.len() as u64;
            let write_end = outcome.start + outcome.bytes as u64;
            if end > write_end {
                break;
            }
            let line = lines::RawLine {
                offset,
                bytes: Some(line),
                len: line.len() as u64,
                terminated: true,
            };
            self.ingest.line(tree, &bodies, &line)?;
            offset = write_end.min(end + 1);
            whole += 1;
        }
        always!(
            "Each whole line of a write is in the tree, or a diagnostic says why not",
            tree.node_count() + self.ingest.diagnostics.len() >= known + whole
        )?;
        if let LogStorage::File(log) = &mut self.store {
            log.end = offset;
            log.ends_in_break = outcome.ends_in_break || whole < outcome.lines.len();
        }
        Ok(whole)
    }
}

/// The result of one write.
#[derive(Debug)]
#[must_use]
pub struct WriteOutcome {
    lines: Vec<Vec<u8>>,
    /// The offset in the file at which the first of `lines` is written.
    pub(super) start: u64,
    /// The number of bytes of the lines that are in the file.
    pub(super) bytes: usize,
    /// The reason why not all lines were written.
    pub failure: Option<Error>,
    /// The file to sync; `None` in memory.
    pub file: Option<Arc<File>>,
    /// Whether this write made the file. If so, its folder must be synced too.
    pub created: bool,
    /// False if the line break of the last line could not be written.
    pub(super) ends_in_break: bool,
}

impl FileLog {
    /// Makes the file, with its header and first entries, and syncs it. Its name is not synced.
    fn write_first(&mut self, new: Vec<Vec<u8>>) -> Result<WriteOutcome> {
        never!(
            "No file is made without a header",
            self.header_line.is_empty()
        )?;
        let _claimed = self.claim.as_ref().map(|claim| claim()).transpose()?;
        let make = || Temporary::for_name(&self.at.folder, &self.at.name);
        let made = match make() {
            // The folder has been removed since the session was created.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.at.folder.make_again().and_then(|()| make())
            }
            other => other,
        };
        let temporary = made.map_err(|error| self.failed("create", &error))?;
        let file = Arc::clone(temporary.file());
        let mut text = self.header_line.clone();
        text.push(b'\n');
        let start = text.len();
        text.extend_from_slice(&joined(&new, false));
        let written = write_once(&file, &text);
        if written
            .as_ref()
            .ok()
            .is_none_or(|written| *written < text.len())
        {
            return Err(match written {
                Ok(_) => full("the session file could not be written whole"),
                Err(error) => self.failed("write", &error),
            });
        }
        // Once the file has its name, other processes may append. The success of their syncs does not prove that these
        // bytes are on disk. So the file is synced before it gets its name.
        file.sync_all()
            .map_err(|error| self.failed("sync", &error))?;
        let status = file::status_of(&file).map_err(|error| self.failed("stat", &error))?;
        temporary.name_new(&self.at).map_err(|error| {
            if error.kind() == io::ErrorKind::AlreadyExists {
                Error::new(
                    Kind::SessionExists,
                    "another process has made this session's file",
                )
            } else {
                self.failed("create", &error)
            }
        })?;
        let handle = Handle::of(file, HandleAccess::Append);
        let open = OpenFile::new(handle, status.identity);
        let file = self.file(&open, HandleAccess::Append)?;
        self.open = Some(open);
        self.end = start as u64;
        Ok(WriteOutcome {
            start: start as u64,
            bytes: text.len() - start,
            lines: new,
            failure: None,
            file: Some(file),
            created: true,
            ends_in_break: true,
        })
    }

    fn write(&mut self, lock: &Lock, new: Vec<Vec<u8>>) -> Result<WriteOutcome> {
        let Some(file) = &lock.file else {
            return Err(Error::new(
                Kind::StorageIo,
                "the session file is not open for writing",
            ));
        };
        let needs_break = self.has_tail(file)?;
        let text = joined(&new, needs_break);
        let lead = usize::from(needs_break);
        always!(
            "Each line of a write ends with a line break",
            text.ends_with(b"\n")
        )?;
        let written = match write_once(file, &text) {
            Ok(0) => return Err(full("nothing of the entry could be written")),
            Ok(written) => {
                always!(
                    "The system writes no more bytes than it was given",
                    written <= text.len()
                )?;
                written
            }
            Err(error) => return Err(self.failed("write", &error)),
        };
        let end = self.end_of_write(file, written)?;
        let outcome = |failure, ends_in_break| WriteOutcome {
            start: end - written as u64 + lead as u64,
            bytes: written.saturating_sub(lead),
            lines: new,
            failure,
            file: Some(Arc::clone(file)),
            created: false,
            ends_in_break,
        };
        if written == text.len() {
            return Ok(outcome(None, true));
        }
        let rest = part(&text, written..);
        let fragment = !text
            .get(..written)
            .is_some_and(|outcome| outcome.ends_with(b"\n"));
        let closed = !fragment || write_once(file, b"\n").is_ok_and(|count| count == 1);
        if rest == b"\n" {
            // Only the last line break is missing. Every line is complete, and the next append begins with a line
            // break.
            return Ok(outcome(None, closed));
        }
        if !closed {
            tracing::warn!("a fragment of an entry could not be closed with a line break");
        }
        let is_hidden = breaks("An operation that does not fail has all of its lines in the file");
        let failure = (!is_hidden).then(|| full("the entry could not be written whole"));
        Ok(outcome(failure, true))
    }

    /// The offset in the file at which this write ends.
    fn end_of_write(&self, file: &File, written: usize) -> Result<u64> {
        let end = self.end + written as u64;
        if let (Some(open), Ok(status)) = (&self.open, file::status_of(file))
            && status.size == end
        {
            always!(
                "Lines are written to the file that was read, and whose lock is held",
                status.identity == open.identity
            )?;
            // No other process has written since the lock was taken.
            open.seen.set(Some(status));
            return Ok(end);
        }
        // A writer that takes no lock also appended, so only the kernel knows the position of this write.
        let position = (&*file).stream_position();
        position.map_err(|error| Error::io("locate the write", &error))
    }

    /// Whether the last line of the file has no line break, because it is torn or in flight. If the line is in flight,
    /// the line break of its writer may come before this append. The line break of this append then makes a blank line,
    /// which every reader skips.
    fn has_tail(&self, file: &File) -> Result<bool> {
        use crate::os::FileAt;
        // The file was checked under this lock, but a writer that takes no lock may append at any time.
        let seen = self.open.as_ref().and_then(|open| open.seen.get());
        if seen.is_some_and(|seen| seen.size == self.end) {
            return Ok(!self.ends_in_break);
        }
        let status = file::status_of(file).map_err(|error| self.failed("stat", &error))?;
        if status.size == self.end {
            return Ok(!self.ends_in_break);
        }
        let mut last = [0];
        let read = file.read_exact_at(&mut last, status.size.saturating_sub(1));
        read.map_err(|error| self.failed("read", &error))?;
        Ok(last != *b"\n")
    }

    /// Adds to the tree the lines between `end` and `until`, which other processes wrote.
    fn read_until(
        &mut self,
        tree: &mut Tree,
        ingest: &mut super::ingest::Ingest,
        until: u64,
    ) -> Result<()> {
        if self.end >= until {
            return Ok(());
        }
        let bodies = self.bodies(ingest);
        let Some(open) = &self.open else {
            return Ok(());
        };
        let file = self.file(open, HandleAccess::Read)?;
        self.pass_break(&file);
        let mut lines = lines::Lines::new(&file, self.end);
        while let Some(mut line) = lines
            .next()
            .map_err(|error| Error::io("read the session file", &error))?
        {
            if line.offset >= until {
                break;
            }
            // The first line of this write is on the same line as a fragment that another process wrote before it.
            let len = line.len.min(until - line.offset);
            line.bytes = line.bytes.and_then(|bytes| bytes.get(..index(len)));
            line.len = len;
            ingest.line(tree, &bodies, &line)?;
        }
        self.end = until;
        Ok(())
    }
}

/// Joins the lines to one text, each with its line break.
fn joined(lines: &[Vec<u8>], leading_break: bool) -> Vec<u8> {
    let len = lines.iter().map(|line| line.len() + 1).sum::<usize>();
    let mut text = Vec::with_capacity(len + 1);
    if leading_break {
        text.push(b'\n');
    }
    for line in lines {
        text.extend_from_slice(line);
        text.push(b'\n');
    }
    text
}

/// One `write` call. It is repeated only if a signal interrupted it before it began.
fn write_once(mut file: &File, text: &[u8]) -> io::Result<usize> {
    let more = usize::from(breaks("The system writes no more bytes than it was given"));
    loop {
        match file.write(text) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other.map(|written| written + more),
        }
    }
}

fn full(message: &'static str) -> Error {
    Error::new(Kind::StorageFull, message)
}

pub fn deleted() -> Error {
    Error::new(Kind::SessionDeleted, "the session's file has been deleted")
}

/// The error after [`LOCK_TIMEOUT`].
pub(crate) fn locked_elsewhere() -> Error {
    Error::new(
        Kind::SessionLocked,
        "another process holds the lock of the session file",
    )
}

pub(crate) fn replaced() -> Error {
    Error::new(
        Kind::SessionReplaced,
        "the session's file has been replaced by another session",
    )
}

/// The error for a file to which no entry can be appended; `None` if appending is possible.
pub(crate) fn refuse(standing: Standing) -> Option<Error> {
    match standing {
        Standing::Deleted => Some(deleted()),
        Standing::Replaced => Some(replaced()),
        Standing::Unchanged | Standing::Grown(_) => None,
    }
}
