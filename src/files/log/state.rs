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

/// Checks that the id of a new session is free; fails if another session has it. No other process can
/// take an id while the returned lock is held.
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

/// The state of the file at a log's path, compared with the bytes that were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It has no new bytes.
    Unchanged,
    /// This many bytes were appended.
    Grown(u64),
    /// It is another file, a shorter one, or one with another first line.
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
    /// The first line: read from the file, or to be written with the first entry.
    pub(super) header_line: Vec<u8>,
    /// Offset of the first line in bytes; damaged lines may precede it.
    pub(super) header_at: u64,
    /// Offset in bytes up to which the lines are in the tree.
    pub(super) end: u64,
    /// Whether the byte before `end` is a line break, or the file is empty.
    pub(super) ends_in_break: bool,
    /// Offset in bytes of a torn last line that was already reported.
    pub(super) torn_at: Option<u64>,
    /// Offset in bytes up to which the file was searched for a line break after `end`, without success.
    pub(super) tail_to: u64,
}

pub(super) struct OpenFile {
    /// The path's status when the path was last checked.
    pub(super) seen: Cell<Option<Status>>,
    /// Open read-only until the first append, since opening never writes.
    pub(super) handle: Handle,
    pub(super) identity: Identity,
    /// Set if the bytes of an entry are not those that the tree expects: then the file is opened again.
    pub(super) stale: Arc<AtomicBool>,
    pub(super) previews: Arc<PreviewSlot>,
    /// The file's status when all its lines were checked; `None` if a later edit might leave the status
    /// unchanged.
    pub(super) checked: Option<Arc<Status>>,
}
