//! The state of an open session.

use super::running::Activity;
use super::sync::Syncer;
use crate::log::Log;
use crate::log::diagnostic::Diagnostic;
use crate::log::late_writes::ReplacedFile;
use crate::log::upstream::Upstream;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;
use tokio::sync::{Notify, OwnedMutexGuard};
use treelined_core::flow::PlannedLines;
use treelined_core::id::SessionId;
use treelined_core::tree::below::Below;
use treelined_core::tree::{Node, Tree};

/// One open session.
pub struct Session {
    pub id: SessionId,
    /// The session of which it is a fork, as the header says.
    pub parent: Option<String>,
    /// The file has a version of the format that this program cannot write.
    pub is_newer: bool,
    pub ephemeral: bool,
    /// The path of its file; `None` for an ephemeral session.
    pub path: Option<PathBuf>,
    /// Distinguishes revisions of this opening from revisions of other openings.
    pub nonce: u32,
    /// Never contended while the session is open, since the session's queue admits one holder at a time.
    pub(super) core: Arc<tokio::sync::Mutex<SessionState>>,
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
    /// Steps that others have appended below the step of the leaf since it moved there.
    pub(super) below: Below,
    /// Whether no client of this daemon changes the session. Then the leaf follows the leaf of the file.
    pub(super) read_only: bool,
    /// Files that were replaced recently.
    pub(super) predecessors: Vec<ReplacedFile>,
    /// The first of the unsuccessful attempts to take the file's lock since the last success.
    pub(super) contended_since: Option<Instant>,
    /// The log that the file is a replica of.
    pub(super) upstream: Option<Arc<dyn Upstream>>,
    /// When the running commit does not wait for servers any more.
    pub(super) until: Option<Instant>,
    /// The first lines of a session without a file, of which it is not known whether the log has them.
    pub(super) unknown_first: Option<PlannedLines>,
    /// The first message of the user, once it is known.
    pub first_message: OnceLock<String>,
}

/// The right to read or change a session, until dropped. `T` is dropped after the right has ended.
pub struct SessionGuard<T = ()> {
    pub(super) core: OwnedMutexGuard<SessionState>,
    /// When the guard was asked for.
    pub(super) asked: Instant,
    pub(super) with: T,
}

/// Changes that an operation made or found.
#[derive(Debug, Default)]
pub struct Changes {
    /// Entries appended by this operation.
    pub own: Vec<Node>,
    /// Entries of others that this operation found.
    pub others: Vec<Node>,
    /// Whether others have appended anything, even if only a leaf record.
    pub others_moved: bool,
    /// Whether this operation left the leaf where it was.
    pub stays: bool,
    pub diagnostics: Vec<Diagnostic>,
}
