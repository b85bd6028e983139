//! The file of one session: an append-only JSONL log (session-file.md §1–§3).
//!
//! This module reads the file, and writes to it. Its parts in reading order:
//!
//! - [`header`]: the first line;
//! - [`lines`]: a file's lines through one buffer;
//! - `parallel_scan`: the lines of a large file, scanned by several threads;
//! - [`recover`]: the whole entries of a damaged line;
//! - `ingest`: lines → [`Tree`], with diagnostics;
//! - `migrate`: versions 1 and 2 read as version 3;
//! - `file_log`: how far a file was read, and whether it is still the same;
//! - [`body`]: bodies, read on demand;
//! - `stored_line`: the whole line of an entry, and its number;
//! - [`fingerprint`]: whether a cache file belongs to a session file;
//! - [`index`]: the tree, cached for the next opening;
//! - [`preview_cache`]: the facts of bodies that rows show, cached for the next view;
//! - [`append`]: lock, refresh, one write;
//! - `copy`: a new file and its tree, made together;
//! - [`whole`]: all lines under another header;
//! - [`rewrite`]: the replacement of a file of version 1 or 2;
//! - [`late_writes`]: lines that arrive in a file after it was replaced;
//! - [`repair`]: the repair of damage, on request;
//! - [`cold`]: the cold file, which has the lines of shed branches;
//! - [`shed`]: the move of branches into the cold file;
//! - [`unshed`]: their way back;
//! - `moved`: the change of the directory in the header, on request;
//! - [`upstream`]: the team's stream, if the file is a replica of one.
//!
//! The session decides which lines to write, and where the leaf is.

pub mod append;
pub mod body;
pub mod cold;
pub(crate) mod copy;
pub mod diagnostic;
mod file_log;
pub mod fingerprint;
pub mod header;
pub mod index;
pub(crate) mod ingest;
pub mod late_writes;
pub mod lines;
pub(crate) mod migrate;
pub(crate) mod moved;
pub(crate) mod parallel_scan;
pub mod preview_cache;
mod preview_slot;
pub mod readable;
pub mod recover;
pub mod repair;
pub mod rewrite;
pub mod shed;
mod state;
mod stored_line;
pub mod unshed;
pub mod upstream;
pub mod whole;

use crate::cache::Cache;
use crate::cancel::Cancel;
use crate::os::file::{self, File, Identity, Location};
use crate::os::handle::{Handle, HandleAccess};
use body::{Bodies, Memory};
use diagnostic::Diagnostic;
use file_log::{Tail, is_gone};
use header::Header;
use ingest::Ingest;
pub use state::{Claim, Log, OpenedLog, Standing};
use state::{FileLog, LogStorage, OpenFile};
use std::sync::Arc;
use treelined_core::defect::breaks;
use treelined_core::entry::foreign::Writer;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::tree::Tree;

/// The greatest number up to which every reader of JSON represents whole numbers exactly.
const GREATEST_NUMBER: u64 = 1 << 53;

/// The error for a file that another tool wrote.
fn foreign(at: &Location, writer: Writer) -> Error {
    let (path, name) = (at.path(), writer.name());
    let path = path.display();
    Error::new(
        Kind::HeaderMissing,
        format!(
            "{path} is not a session: its lines are those of {name}; `treelined import {path}` makes one of it"
        ),
    )
}

impl Log {
    /// Opens and reads a session file. Never writes (session-file.md §2).
    pub fn open(at: Location) -> Result<OpenedLog> {
        Self::open_unless(at, &Cancel::new())
    }

    /// Like [`Log::open`], until `cancel` ends it.
    pub fn open_unless(at: Location, cancel: &Cancel) -> Result<OpenedLog> {
        let file = at.folder.file(&at.name, HandleAccess::Read)?;
        Self::open_file(at, Handle::new(file, HandleAccess::Read), cancel)
    }

    /// Like [`Log::open_unless`], for an open file that another file has replaced at `at`.
    pub fn open_replaced(at: Location, file: File) -> Result<OpenedLog> {
        Self::open_file(at, Handle::new(file, HandleAccess::Read), &Cancel::new())
    }

    /// Like [`Log::open`], for a file that does not have the name of `at`.
    pub(super) fn open_unnamed(at: Location, file: Arc<File>) -> Result<OpenedLog> {
        Self::open_file(at, Handle::kept(file), &Cancel::new())
    }

    fn open_file(at: Location, handle: Handle, cancel: &Cancel) -> Result<OpenedLog> {
        let stat = |error| Error::io(&format!("stat {}", at.path().display()), &error);
        let file = handle.get(HandleAccess::Read, || {
            at.folder.file(&at.name, HandleAccess::Read)
        })?;
        let status = file::status_of(&file).map_err(stat)?;
        drop(file);
        let settled = status.is_settled().then_some(status);
        let open = OpenFile::new(handle, status.identity);
        let mut log = FileLog::new(at, Some(open));
        let mut tree = Tree::new();
        let mut ingest = Ingest::default();
        let read = log.read_on(&mut tree, &mut ingest, Tail::Take, cancel);
        let is_doubtful = match &read {
            Ok(_) => ingest.version() < 2 || tree.node_count() == 0,
            Err(error) => error.kind == Kind::HeaderMissing,
        };
        if is_doubtful && let Some(writer) = log.foreign_writer()? {
            return Err(foreign(&log.at, writer));
        }
        read?;
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

    /// A log without a file. The first append makes the file.
    pub fn create(at: Location, header: Header) -> Self {
        let mut log = FileLog::new(at, None);
        if !breaks("No file is made without a header") {
            log.header_line = header.to_line();
        }
        Self {
            store: LogStorage::File(log),
            ingest: Ingest::of_new(header, 0),
        }
    }

    /// Makes the first append call `claim` before it makes the file.
    pub fn claimed_by(mut self, claim: Claim) -> Self {
        if let LogStorage::File(log) = &mut self.store {
            log.claim = Some(claim);
        }
        self
    }

    /// A log that is never written to disk.
    pub fn ephemeral(header: Header) -> Self {
        let mut line = header.to_line();
        line.push(b'\n');
        Self {
            store: LogStorage::Memory(Memory::new(line.into())),
            ingest: Ingest::of_new(header, 1),
        }
    }

    pub fn header(&self) -> Option<&Header> {
        self.ingest.header.as_ref()
    }

    /// The header line that is in the file, or that the first write will write.
    pub fn header_line(&self) -> Vec<u8> {
        match &self.store {
            LogStorage::File(log) => log.header_line.clone(),
            LogStorage::Memory(_) => self.header().map(Header::to_line).unwrap_or_default(),
        }
    }

    /// The format version of the file.
    pub fn version(&self) -> u64 {
        self.ingest.version()
    }

    /// The format version in the header of the file; `None` if it is not a whole number up to 2^53.
    pub fn stated_version(&self) -> Option<u64> {
        Some(self.version()).filter(|version| *version <= GREATEST_NUMBER)
    }

    /// The format version for messages, such as `version 4`.
    pub fn version_text(&self) -> String {
        match self.stated_version() {
            Some(version) => format!("version {version}"),
            None => "a version that is not a whole number".to_owned(),
        }
    }

    /// Where the file is; `None` for an ephemeral session.
    pub fn location(&self) -> Option<&Location> {
        match &self.store {
            LogStorage::File(log) => Some(&log.at),
            LogStorage::Memory(_) => None,
        }
    }

    /// The identity of the opened file; `None` before the file exists.
    pub fn identity(&self) -> Option<Identity> {
        match &self.store {
            LogStorage::File(log) => log.open.as_ref().map(|open| open.identity),
            LogStorage::Memory(_) => None,
        }
    }

    /// The file to sync; `None` if there is no file.
    pub fn file_to_sync(&self) -> Result<Option<(Arc<File>, Identity)>> {
        let LogStorage::File(log) = &self.store else {
            return Ok(None);
        };
        let Some(open) = &log.open else {
            return Ok(None);
        };
        Ok(Some((log.file(open, HandleAccess::Read)?, open.identity)))
    }

    /// Whether the file exists. The first append makes the file.
    pub fn is_written(&self) -> bool {
        matches!(&self.store, LogStorage::File(FileLog { open: Some(_), .. }))
    }

    /// Whether other processes may append at the same time (session-file.md §3).
    pub fn is_multi_writer(&self) -> bool {
        match &self.store {
            LogStorage::File(log) => log.at.folder.is_multi_writer(),
            LogStorage::Memory(_) => false,
        }
    }

    /// The bodies of the entries read so far.
    pub fn bodies(&self) -> Bodies {
        match &self.store {
            LogStorage::File(log) => log.bodies(&self.ingest),
            LogStorage::Memory(memory) => Bodies::memory(Arc::clone(memory)),
        }
    }

    /// Removes the diagnostics found so far, and returns them.
    pub fn take_diagnostics(&mut self) -> Vec<Diagnostic> {
        let mut found = std::mem::take(&mut self.ingest.diagnostics);
        if let LogStorage::File(FileLog {
            torn_at: Some(torn_at),
            ..
        }) = &self.store
        {
            found.retain(|diagnostic| diagnostic.offset != *torn_at);
        }
        found
    }

    /// Compares the file at the path with the bytes that were read. This takes one `stat`; if the file has changed, its
    /// first line is compared too.
    pub fn standing(&self) -> Result<Standing> {
        let LogStorage::File(log) = &self.store else {
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

    /// Reads the entries of other writers, up to the last line break, since a line in flight may follow it. The leaf of
    /// the tree does not change.
    pub fn refresh(&mut self, tree: &mut Tree) -> Result<()> {
        if breaks("Reading on takes no entry out of the tree") {
            *tree = Tree::new();
        }
        self.read_others(tree, Tail::Leave)
    }

    fn read_others(&mut self, tree: &mut Tree, tail: Tail) -> Result<()> {
        if let LogStorage::File(log) = &mut self.store {
            self.ingest.foreign = true;
            tree.moves_mut().pause(true);
            let read = log.read_on(tree, &mut self.ingest, tail, &Cancel::new());
            tree.moves_mut().pause(false);
            self.ingest.foreign = false;
            read?;
        }
        Ok(())
    }
}

/// Removes the cache files of a session file that will be removed next.
pub(crate) fn remove_cached(at: &Location, cache: &Cache) {
    if let Ok(status) = at.status() {
        cache.remove(&index::KIND, status.identity);
        cache.remove(&preview_cache::KIND, status.identity);
    }
}
