//! The state of an open session.

use super::running::Activity;
use super::sync::Syncer;
use crate::invariant::{always, never};
use crate::log::Log;
use crate::log::append::Lock;
use crate::log::diagnostic::Diagnostic;
use crate::log::late_writes::ReplacedFile;
use crate::log::upstream::Upstream;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;
use tokio::sync::{Notify, OwnedMutexGuard};
use treelined_core::author::Signature;
use treelined_core::entry::Kind as EntryKind;
use treelined_core::error::Result;
use treelined_core::flow::PlannedLines;
use treelined_core::id::SessionId;
use treelined_core::tree::below::Below;
use treelined_core::tree::{Node, Tree};

/// One open session.
pub struct Session {
    pub id: SessionId,
    /// The working directory, as the header says.
    pub cwd: String,
    /// The session from which this one was forked, as the header says.
    pub parent: Option<String>,
    /// Whether the file has a version of the format that this program cannot write.
    pub is_newer: bool,
    pub ephemeral: bool,
    /// The path of the session file; `None` for an ephemeral session.
    pub path: Option<PathBuf>,
    /// Distinguishes the revisions of this opening from the revisions of other openings.
    pub nonce: u32,
    /// The state. The lock is free whenever it is requested while the session is open, since the
    /// session's queue admits one holder at a time.
    pub(super) state: Arc<tokio::sync::Mutex<SessionState>>,
    pub(super) activity: Mutex<Option<Activity>>,
    /// Notified when an activity ends.
    pub(super) ended: Notify,
    pub(super) closed: AtomicBool,
    pub syncer: Syncer,
}

/// A session's log and tree.
pub struct SessionState {
    pub log: Log,
    pub tree: Tree,
    /// The steps that others have appended below the step of the leaf since the leaf moved there.
    pub(super) below: Below,
    /// The entry at which the session was opened, if this machine left the leaf there and others have continued at
    /// another position.
    pub(super) left_at: Option<String>,
    /// Whether the session is open for reading only in this daemon. If so, the leaf follows the leaf of
    /// the file.
    pub(super) read_only: bool,
    /// The files of this session that were replaced recently.
    pub(super) predecessors: Vec<ReplacedFile>,
    /// The time of the first failed attempt to take the file's lock after the last successful one.
    pub(super) contended_since: Option<Instant>,
    /// The team's stream of which the file is a replica.
    pub(super) upstream: Option<Arc<dyn Upstream>>,
    /// Names the writer of this daemon's entries; `None` if entries of this session name no writer.
    pub(super) signature: Option<Signature>,
    /// The time at which the running commit stops waiting for servers.
    pub(super) until: Option<Instant>,
    /// Whether commits wait for servers even if their lines can wait in the file.
    pub(super) is_patient: bool,
    /// The first lines of a session without a file, if it is unknown whether the stream has them.
    pub(super) unknown_first: Option<PlannedLines>,
    /// The first message of the user, once it was read.
    pub first_message: OnceLock<String>,
}

/// The right to read or change a session until this value is dropped. `T` is dropped after the right has
/// ended.
pub struct SessionGuard<T = ()> {
    pub(super) state: OwnedMutexGuard<SessionState>,
    /// The time at which the guard was requested.
    pub(super) asked: Instant,
    pub(super) with: T,
}

/// Changes that an operation made or found.
#[derive(Debug, Default)]
pub struct Changes {
    /// Entries that this operation appended.
    pub own: Vec<Node>,
    /// Entries that others appended and this operation found.
    pub others: Vec<Node>,
    /// Whether others have appended anything, including only a leaf record.
    pub others_moved: bool,
    /// The change of order, if the known entries have another order.
    pub reordered: Option<OrderChange>,
    /// Whether this operation did not move the leaf.
    pub stays: bool,
    pub diagnostics: Vec<Diagnostic>,
}

/// The entries of the session have another order in the file, or some of them are gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderChange {
    /// The id of the last entry up to which no entry has changed; `None` if the first entry has changed.
    pub since: Option<String>,
}

impl SessionState {
    /// Adds the writer to planned lines.
    pub(super) fn sign(&self, lines: &mut [Vec<u8>]) {
        if let Some(signature) = &self.signature {
            lines.iter_mut().for_each(|line| signature.sign(line));
        }
    }

    /// Checks lines before they are written.
    pub(super) fn check_plan(&self, lock: &Lock, planned: &PlannedLines) -> Result<()> {
        never!(
            "Nothing is planned for a session that is open for reading only",
            self.read_only
        )?;
        always!(
            "Each operation of a group ends at one of its lines, in the order of the lines",
            planned.ends.is_sorted()
                && planned
                    .ends
                    .last()
                    .is_none_or(|last| *last <= planned.lines.len())
        )?;
        always!(
            "An operation in the background keeps the position where the file opens",
            !planned.background || planned.keeps && planned.stays
        )?;
        always!(
            "A session with a file is written only while its lock is held",
            !self.log.is_written() || lock.file().is_some()
        )?;
        never!(
            "Nothing is appended to a file before its migration",
            self.log.needs_rewrite()
        )
    }

    /// Checks the outcome of a write. The operation has `lines` lines, and `whole` of them are complete in the file.
    pub(super) fn check_written(&self, has_failed: bool, whole: usize, lines: usize) -> Result<()> {
        always!(
            "An operation that does not fail has all of its lines in the file",
            has_failed || whole >= lines
        )?;
        let mut leaf = self.tree.leaf().into_iter();
        never!(
            "The leaf is never at a leaf record",
            leaf.any(|leaf| self.tree.kind(leaf) == EntryKind::LeafRecord)
        )
    }
}
