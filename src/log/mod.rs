//! The file of one session: an append-only JSONL log (storage.md §1–§3).
//!
//! Owns the file: finding out what it is, reading it, writing to it. In reading order:
//!
//! - [`scan`]: bytes of a line → envelope, every byte checked;
//! - [`lines`]: a file's lines through one buffer;
//! - [`parallel_scan`]: a large file's lines, by several threads;
//! - [`recover`]: what a damaged line still holds;
//! - [`ingest`]: lines → [`Tree`], with diagnostics;
//! - [`migrate`]: versions 1 and 2 read as version 3;
//! - [`body`]: bodies on demand;
//! - [`index`]: what was found, kept for the next opening;
//! - [`preview_cache`]: what rows show of bodies, kept for the next view;
//! - [`fingerprint`]: whether what is kept is of this file, as it is;
//! - [`append`]: lock, refresh, one write;
//! - [`copy`]: a new file and its tree, made together;
//! - [`whole`]: all lines under another header;
//! - [`rewrite`]: the one time a file is replaced;
//! - [`late_writes`]: what still arrives in a file that has been replaced;
//! - [`repair`]: what can be done about damage, when somebody asks;
//! - [`file`]: opening files safely;
//! - [`temporary`]: files that are not finished, and what killed processes leave of them;
//! - [`handle`]: how many are open at a time.
//!
//! It does not decide what is written, nor where the leaf stands: that is the session's.

pub mod append;
pub mod body;
pub mod copy;
pub mod diagnostic;
pub mod fingerprint;
pub mod index;
pub mod ingest;
pub mod late_writes;
pub mod lines;
pub mod migrate;
pub mod parallel_scan;
pub mod preview_cache;
pub mod recover;
pub mod repair;
pub mod rewrite;
pub mod whole;

use crate::cancel::Cancel;
use crate::error::{Error, Kind, Result};
use crate::json;
use crate::os::file::{self, Identity, Location, Status};
use crate::os::handle::{Access, Handle};
use crate::timestamp;
use crate::tree::Tree;
use body::{Bodies, Memory};
use diagnostic::{Damage, Diagnostic};
use ingest::{CURRENT_VERSION, Header, Ingest};
use lines::Lines;
use std::cell::Cell;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The log of an open session.
pub struct Log {
    store: Store,
    ingest: Ingest,
}

/// Fails if the id of a new session is taken. While the lock is held nobody else takes one.
pub type Claim = Box<dyn Fn() -> Result<file::FolderLock> + Send>;

enum Store {
    File(FileLog),
    Memory(Memory),
}

/// Where the file stands, as far as it has been read.
struct FileLog {
    at: Location,
    /// `None` until the first entry is written.
    open: Option<Box<OpenFile>>,
    /// Asked before the file is made.
    claim: Option<Claim>,
    /// The first line as it stands in the file, or as it will be written.
    header_line: Vec<u8>,
    /// Where the first line stands; damaged lines may precede it. Bytes.
    header_at: u64,
    /// Everything before this is in the tree. Bytes.
    end: u64,
    /// Whether the byte before `end` is a line break (or the file is empty).
    ends_in_break: bool,
    /// Where a torn last line begins that has been reported already. Bytes.
    torn_at: Option<u64>,
    /// Where the file ended when there was no line break behind `end`: what has been looked through for
    /// one is not looked through again. Bytes.
    tail_to: u64,
}

struct OpenFile {
    /// The path's status when it was last found to be as expected.
    seen: Cell<Option<Status>>,
    /// OpenedLog read-only at first, since opening never writes; for appends too by the first one.
    handle: Handle,
    identity: Identity,
    /// Set by whoever finds another body than expected.
    stale: Arc<AtomicBool>,
    extracts: Arc<preview_cache::Slot>,
    /// The file's status when every line of it was checked; `None` if a later edit might not show in it.
    checked: Option<Arc<Status>>,
}

impl OpenFile {
    fn new(handle: Handle, identity: Identity) -> Box<Self> {
        Box::new(Self {
            seen: Cell::new(None),
            handle,
            identity,
            stale: Arc::default(),
            extracts: Arc::default(),
            checked: None,
        })
    }
}

/// What opening a file gives.
pub struct OpenedLog {
    pub log: Log,
    pub tree: Tree,
    pub diagnostics: Vec<Diagnostic>,
}

/// What the path of a log says, compared with what was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing to read.
    Unchanged,
    /// This many bytes have come.
    Grown(u64),
    /// Another file, a shorter one, or one with another first line.
    Replaced,
    Deleted,
}

impl Log {
    /// Opens and reads a session file. Never writes (storage.md §2).
    pub fn open(at: Location) -> Result<OpenedLog> {
        Self::open_unless(at, &Cancel::new())
    }

    /// As [`Log::open`], until it is cancelled.
    pub fn open_unless(at: Location, cancel: &Cancel) -> Result<OpenedLog> {
        let file = at.folder.file(&at.name, Access::Read)?;
        let status = file::status_of(&file)
            .map_err(|error| Error::io(&format!("stat {}", at.path().display()), &error))?;
        let settled = status.is_settled().then_some(status);
        let mut log = FileLog {
            at,
            open: Some(OpenFile::new(
                Handle::new(file, Access::Read),
                status.identity,
            )),
            claim: None,
            header_line: Vec::new(),
            header_at: 0,
            end: 0,
            ends_in_break: true,
            torn_at: None,
            tail_to: 0,
        };
        let mut tree = Tree::new();
        let mut ingest = Ingest::default();
        log.read_on(&mut tree, &mut ingest, Tail::Take, cancel)?;
        let Some(header) = &ingest.header else {
            return Err(Error::new(
                Kind::HeaderMissing,
                format!("{} has no session header", log.at.path().display()),
            ));
        };
        log.header_line = log.read_header(header)?;
        log.header_at = header.place.offset;
        log.note_checked(settled);
        Ok(log.opened(ingest, tree))
    }

    /// A log whose file is made with its first entry.
    pub fn create(at: Location, header: Header) -> Self {
        let header_line = header_line(&header);
        Self {
            store: Store::File(FileLog {
                at,
                open: None,
                claim: None,
                header_line,
                header_at: 0,
                end: 0,
                ends_in_break: true,
                torn_at: None,
                tail_to: 0,
            }),
            ingest: Ingest::of_new(header, 0),
        }
    }

    /// Asks `claim` before the file is made.
    pub fn claimed_by(mut self, claim: Claim) -> Self {
        if let Store::File(log) = &mut self.store {
            log.claim = Some(claim);
        }
        self
    }

    /// A log that is never written to disk.
    pub fn ephemeral(header: Header) -> Self {
        let mut line = header_line(&header);
        line.push(b'\n');
        Self {
            store: Store::Memory(Memory::new(line.into())),
            ingest: Ingest::of_new(header, 1),
        }
    }

    pub fn header(&self) -> Option<&Header> {
        self.ingest.header.as_ref()
    }

    /// The first line, as it stands or will stand in the file.
    pub fn header_line(&self) -> Vec<u8> {
        match &self.store {
            Store::File(log) => log.header_line.clone(),
            Store::Memory(_) => self.header().map(header_line).unwrap_or_default(),
        }
    }

    /// Of the format, as it stands in the file.
    pub fn version(&self) -> u64 {
        self.ingest.version()
    }

    /// `None` for an ephemeral session.
    pub fn location(&self) -> Option<&Location> {
        match &self.store {
            Store::File(log) => Some(&log.at),
            Store::Memory(_) => None,
        }
    }

    /// Of the file that was opened; `None` where there is none yet.
    pub fn identity(&self) -> Option<Identity> {
        match &self.store {
            Store::File(log) => log.open.as_ref().map(|open| open.identity),
            Store::Memory(_) => None,
        }
    }

    /// The file, to be synced; `None` where there is none.
    pub fn file_to_sync(&self) -> Result<Option<(Arc<File>, Identity)>> {
        let Store::File(log) = &self.store else {
            return Ok(None);
        };
        let Some(open) = &log.open else {
            return Ok(None);
        };
        Ok(Some((log.file(open, Access::Read)?, open.identity)))
    }

    /// Whether the file is there: not before the first entry.
    pub fn is_written(&self) -> bool {
        matches!(&self.store, Store::File(FileLog { open: Some(_), .. }))
    }

    /// Whether other processes may append at the same time (storage.md §3).
    pub fn is_multi_writer(&self) -> bool {
        match &self.store {
            Store::File(log) => log.at.folder.is_multi_writer(),
            Store::Memory(_) => false,
        }
    }

    /// The bodies of what has been read.
    pub fn bodies(&self) -> Bodies {
        match &self.store {
            Store::File(log) => log.bodies(&self.ingest),
            Store::Memory(memory) => Bodies::memory(Arc::clone(memory)),
        }
    }

    /// Diagnostics found since they were last asked for.
    pub fn take_diagnostics(&mut self) -> Vec<Diagnostic> {
        let mut found = std::mem::take(&mut self.ingest.diagnostics);
        if let Store::File(FileLog {
            torn_at: Some(torn_at),
            ..
        }) = &self.store
        {
            found.retain(|diagnostic| diagnostic.offset != *torn_at);
        }
        found
    }

    /// Compares the path with what was read: one `stat`, and a look at the first line where the
    /// file has changed since.
    pub fn standing(&self) -> Result<Standing> {
        let Store::File(log) = &self.store else {
            return Ok(Standing::Unchanged);
        };
        let Some(open) = &log.open else {
            return Ok(Standing::Unchanged);
        };
        let status = match log.at.status() {
            Ok(status) => status,
            Err(error) if is_gone(&error) => return Ok(Standing::Deleted),
            Err(error) => return Err(log.failed("stat", &error)),
        };
        log.standing_of(open, status)
    }

    /// Takes in what others have appended, up to the last line break: what follows may be a line in
    /// flight. The tree's leaf stays.
    pub fn refresh(&mut self, tree: &mut Tree) -> Result<()> {
        if let Store::File(log) = &mut self.store {
            self.ingest.foreign = true;
            tree.moves_mut().pause(true);
            let read = log.read_on(tree, &mut self.ingest, Tail::Leave, &Cancel::new());
            tree.moves_mut().pause(false);
            self.ingest.foreign = false;
            read?;
        }
        Ok(())
    }
}

/// What to do with a last line that no line break ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tail {
    /// It is an entry if it is whole.
    Take,
    /// It may be in flight.
    Leave,
}

impl FileLog {
    /// The log and its tree, once the whole file has been read.
    fn opened(mut self, mut ingest: Ingest, mut tree: Tree) -> OpenedLog {
        let torn = ingest
            .diagnostics
            .iter()
            .any(|diagnostic| diagnostic.damage == Damage::TornTail);
        self.torn_at = torn.then_some(self.end);
        tree.set_leaf(tree.file_leaf());
        ingest.report_links(&tree);
        let diagnostics = std::mem::take(&mut ingest.diagnostics);
        OpenedLog {
            log: Log {
                store: Store::File(self),
                ingest,
            },
            tree,
            diagnostics,
        }
    }

    fn bodies(&self, ingest: &Ingest) -> Bodies {
        match &self.open {
            Some(open) => Bodies::file(
                self.file(open, Access::Read),
                Arc::clone(&open.stale),
                Arc::clone(&open.extracts),
                open.checked.clone(),
                ingest.version(),
                Arc::clone(ingest.boundaries()),
            ),
            None => Bodies::nothing(),
        }
    }

    /// The file that was read, opened again if it had to be closed; `sessionDeleted` or
    /// `sessionReplaced` if it is no longer there.
    fn file(&self, open: &OpenFile, access: Access) -> Result<Arc<File>> {
        open.handle.get(access, || {
            let file = match self.at.folder.file(&self.at.name, access) {
                Ok(file) => file,
                Err(error) => {
                    return match self.at.status() {
                        Err(gone) if is_gone(&gone) => Err(append::deleted()),
                        _ => Err(error),
                    };
                }
            };
            let status = file::status_of(&file).map_err(|error| self.failed("stat", &error))?;
            if status.identity == open.identity {
                Ok(file)
            } else {
                Err(append::replaced())
            }
        })
    }

    /// Reads from `end` on.
    fn read_on(
        &mut self,
        tree: &mut Tree,
        ingest: &mut Ingest,
        tail: Tail,
        cancel: &Cancel,
    ) -> Result<()> {
        let bodies = self.bodies(ingest);
        let Some(open) = &self.open else {
            return Ok(());
        };
        let at = self.at.clone();
        let failed = |error: io::Error| match cancel.is_cancelled() {
            true => Error::cancelled(),
            false => Error::io(&format!("read {}", at.path().display()), &error),
        };
        let file = self.file(open, Access::Read)?;
        self.pass_break(&file);
        let size = file::status_of(&file).map_err(failed)?.size;
        if tail == Tail::Leave && self.is_tail_still(&file, size).map_err(failed)? {
            return Ok(());
        }
        loop {
            let size = file::status_of(&file).map_err(failed)?.size;
            let plan = parallel_scan::Division::for_bytes(size.saturating_sub(self.end));
            let plan = plan.filter(|_| self.ends_in_break);
            if let Some(plan) = plan {
                let start = self.end;
                let hasher = tree.id_hasher().clone();
                parallel_scan::scan_ranges(&file, start, size, plan, &hasher, |range| {
                    if cancel.is_cancelled() {
                        return Err(Error::cancelled());
                    }
                    tree.reserve(range.expected);
                    tree.prefetch(range.hashes());
                    for line in range.lines() {
                        ingest.scanned_line(tree, &bodies, &line)?;
                        self.end = line.end();
                    }
                    Ok(())
                })?;
            }
            // All that is left, or the one line for which the sweep was not made.
            let left = usize::try_from(size.saturating_sub(self.end)).unwrap_or(usize::MAX);
            let mut lines =
                Lines::in_chunks(&file, self.end, left.saturating_add(1).min(lines::CHUNK))
                    .with_cancel(cancel);
            let again = loop {
                let Some(line) = lines.next().map_err(failed)? else {
                    break false;
                };
                if !line.terminated && tail == Tail::Leave {
                    self.tail_to = line.offset + line.len;
                    break false;
                }
                let (end, terminated) = (
                    line.offset + line.len + u64::from(line.terminated),
                    line.terminated,
                );
                if !ingest.line(tree, &bodies, &line)? {
                    break false;
                }
                self.end = end;
                self.ends_in_break = terminated;
                if plan.is_some() && size.saturating_sub(end) >= parallel_scan::WORTHWHILE {
                    break true;
                }
            };
            if !again {
                return Ok(());
            }
        }
    }

    /// Whether there is no line break behind `end` yet, of which the part that was there before is known.
    fn is_tail_still(&mut self, file: &File, size: u64) -> io::Result<bool> {
        use std::os::unix::fs::FileExt;
        if self.tail_to <= self.end || size < self.tail_to {
            return Ok(false);
        }
        let mut buffer = vec![0; lines::CHUNK.min((size - self.tail_to) as usize)];
        while self.tail_to < size {
            let read = file.read_at(&mut buffer, self.tail_to)?;
            let fresh = buffer.get(..read).unwrap_or_default();
            if read == 0 || memchr::memchr(b'\n', fresh).is_some() {
                return Ok(false);
            }
            self.tail_to += read as u64;
        }
        Ok(true)
    }

    /// Where the last line read had no line break, somebody may have written one since.
    fn pass_break(&mut self, file: &File) {
        use std::os::unix::fs::FileExt;
        let mut next = [0];
        if !self.ends_in_break && file.read_at(&mut next, self.end).is_ok() && next == *b"\n" {
            self.end += 1;
            self.ends_in_break = true;
        }
    }

    /// Every line has been checked, all of them after the file had this status, which was settled then.
    fn note_checked(&mut self, settled: Option<Status>) {
        let (end, is_local) = (self.end, self.at.folder.is_multi_writer());
        if let Some(open) = &mut self.open {
            let whole = settled.filter(|status| is_local && status.size == end);
            open.checked = whole.map(Arc::new);
        }
    }

    fn read_header(&self, header: &Header) -> Result<Vec<u8>> {
        self.bodies(&Ingest::default()).read(header.place)
    }

    fn standing_of(&self, open: &OpenFile, status: Status) -> Result<Standing> {
        if status.identity != open.identity
            || status.size < self.end
            || open.stale.load(Ordering::Acquire)
        {
            return Ok(Standing::Replaced);
        }
        if open.seen.get() != Some(status) {
            if !self.is_as_it_was(&*self.file(open, Access::Read)?) {
                return Ok(Standing::Replaced);
            }
            open.seen.set(Some(status));
        }
        Ok(match status.size - self.end {
            0 => Standing::Unchanged,
            // Nothing but a fragment, which has been looked at.
            _ if status.size == self.tail_to => Standing::Unchanged,
            grown => Standing::Grown(grown),
        })
    }

    /// A program that migrates in place leaves the inode and changes the first line; one that edits
    /// in place hardly leaves a line break where the last line read ended.
    fn is_as_it_was(&self, file: &File) -> bool {
        use std::os::unix::fs::FileExt;
        const LOOK: usize = 512;
        let mut buffer = [0; LOOK];
        let expected = self.header_line.get(..LOOK).unwrap_or(&self.header_line);
        let Some(buffer) = buffer.get_mut(..expected.len()) else {
            return false;
        };
        let read = file.read_exact_at(buffer, self.header_at);
        if read.is_err() || *buffer != *expected {
            return false;
        }
        let mut last = [0];
        !self.ends_in_break
            || self.end == 0
            || (file.read_exact_at(&mut last, self.end - 1).is_ok() && last == *b"\n")
    }

    fn failed(&self, action: &str, error: &io::Error) -> Error {
        Error::io(&format!("{action} {}", self.at.path().display()), error)
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// `{"type":"session","version":3,…}` without a line break.
fn header_line(header: &Header) -> Vec<u8> {
    let mut line =
        format!("{{\"type\":\"session\",\"version\":{CURRENT_VERSION},\"id\":").into_bytes();
    json::push_string(&mut line, &header.id);
    line.extend_from_slice(b",\"timestamp\":");
    json::push_string(&mut line, header.timestamp.as_deref().unwrap_or_default());
    line.extend_from_slice(b",\"cwd\":");
    json::push_string(&mut line, &header.cwd);
    if let Some(parent) = &header.parent_session {
        line.extend_from_slice(b",\"parentSession\":");
        json::push_string(&mut line, parent);
    }
    line.push(b'}');
    line
}

/// The header of a new session.
pub fn new_header(
    id: &str,
    now: timestamp::Millis,
    cwd: &str,
    parent_session: Option<&str>,
) -> Header {
    Header {
        id: id.to_owned(),
        version: CURRENT_VERSION,
        timestamp: Some(timestamp::format(now)),
        cwd: cwd.to_owned(),
        parent_session: parent_session.map(str::to_owned),
        place: crate::tree::PagePosition { offset: 0, len: 0 },
    }
}
