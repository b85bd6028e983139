//! The state of an open log.

use super::body::Memory;
use super::diagnostic::Diagnostic;
use super::preview_slot::PreviewSlot;
use crate::os::file;
use crate::os::file::{Identity, Location, Status};
use crate::os::handle::Handle;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::ingest::Ingest;
use treelined_core::error::Result;
use treelined_core::tree::Tree;

/// The log of an open session.
pub struct Log {
    pub(super) store: LogStorage,
    pub(super) ingest: Ingest,
}

/// Checks that the id of a new session is free; fails if another session has it. While the returned
/// lock is held, no other process can use the id.
pub type Claim = Box<dyn Fn() -> Result<file::FolderLock> + Send>;

pub(super) enum LogStorage {
    File(FileLog),
    Memory(Memory),
}

/// An opened session file.
pub struct OpenedLog {
    pub log: Log,
    pub tree: Tree,
    pub diagnostics: Vec<Diagnostic>,
}

/// The state of the file at the path of a log, compared with the bytes that were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The file has no new bytes.
    Unchanged,
    /// This many bytes were appended.
    Grown(u64),
    /// The path leads to another file, or the file is shorter, or its first line has changed.
    Replaced,
    Deleted,
}

/// A session file, and how far it has been read.
pub(super) struct FileLog {
    pub(super) at: Location,
    /// `None` until the first entry is written.
    pub(super) open: Option<Box<OpenFile>>,
    /// Called before the file is made.
    pub(super) claim: Option<Claim>,
    /// The header line: read from the file, or to be written with the first entry.
    pub(super) header_line: Vec<u8>,
    /// The offset of the header line in bytes; damaged lines may precede it.
    pub(super) header_at: u64,
    /// The offset in bytes up to which the lines are in the tree.
    pub(super) end: u64,
    /// Whether the byte before `end` is a line break, or the file is empty.
    pub(super) ends_in_break: bool,
    /// The offset in bytes of a torn last line that was reported already.
    pub(super) torn_at: Option<u64>,
    /// The offset in bytes of the end of the unfinished line that this process kept when it replaced the file; 0 if
    /// there was none.
    pub(super) tail_kept_to: u64,
    /// The offset in bytes up to which a search after `end` found no line break.
    pub(super) tail_to: u64,
}

pub(super) struct OpenFile {
    /// The status of the file at the path, at the last check.
    pub(super) seen: Cell<Option<Status>>,
    /// The open file. It is open only for reading until the first append, since opening a session never
    /// writes.
    pub(super) handle: Handle,
    pub(super) identity: Identity,
    /// Set if an entry does not have the bytes that the tree expects. Then the file is opened again.
    pub(super) stale: Arc<AtomicBool>,
    pub(super) previews: Arc<PreviewSlot>,
    /// The status of the file when all its lines were checked; `None` if a later edit might leave the
    /// status unchanged.
    pub(super) checked: Option<Arc<Status>>,
}
