//! The team's stream that a session file is a replica of (fleet.md). The session asks it around each append;
//! `fleet` has the implementation.

use crate::os::file::{File, Location};
use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;
use treelined_core::durability::Durability;
use treelined_core::error::Result;
use treelined_core::team::{TeamRow, TeamView};

/// Called when lines that waited for the log are in it, without a commit that published them.
pub type PublishedHook = Arc<dyn Fn() + Send + Sync>;

/// The log of many sessions, and of many machines.
pub trait SharedLog: Send + Sync {
    /// The log of the session in this file, which may not exist yet.
    fn upstream(&self, session: &str, at: &Location) -> Arc<dyn Upstream>;

    /// Makes a file and its log equal before the file is read. A file without a session, or of an older version of the
    /// format, stays as it is. Fails with `sessionDeleted` if the session was deleted: its file is in the trash then.
    fn prepare(&self, at: &Location) -> Result<()>;

    /// Copies a session that has no file into the session directory. Returns whether the log has it. Fails with
    /// `sessionDeleted` if it was deleted.
    fn fetch(&self, session: &str) -> Result<bool>;

    /// Says in the log that the session of this file is deleted. The caller moves the file to the trash.
    fn delete(&self, session: &str, at: &Location) -> Result<()>;

    /// Says in the log that a session is not deleted.
    fn restore(&self, session: &str) -> Result<InLog>;

    /// Call this after [`Self::restore`], when the session's file is back at its path.
    fn restored(&self, session: &str, at: &Location, before: InLog) -> Result<()>;

    /// Copies what others append to a session into its file from now on, and publishes what waits in the file. Calls
    /// `published` on a thread of the log.
    fn follow(&self, session: &str, published: PublishedHook);

    /// Says that the session is not open any more. Lines that wait for the log are published nevertheless.
    fn leave(&self, session: &str);

    /// The sessions, open or left, that have lines waiting for the log.
    fn queued(&self) -> HashSet<String>;

    /// Describes an open session to other machines after a commit. The log adds its machine and the last message.
    fn describe(&self, row: TeamRow);

    /// The sessions of all machines.
    fn team(&self) -> Arc<dyn TeamView>;

    /// Removes this daemon from the lists that other daemons show. Waits 2 s at most.
    fn end(&self);
}

/// The state of a session in the log before it was restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InLog {
    /// The log does not have it.
    Missing,
    /// It was not deleted.
    Open,
    Deleted,
}

/// The suffix of the file beside a session file that is a copy of a log.
pub const REPLICA_SUFFIX: &str = ".replica";

/// Whether a file is a copy of a log.
pub fn is_replica(at: &Location) -> bool {
    at.beside(REPLICA_SUFFIX).status().is_ok()
}

/// The log of one session file. Its calls wait for servers. They fail with `logUnavailable` at their deadlines, or at
/// `until` if that is earlier. The caller of each holds the lock of the file, if there is a file.
pub trait Upstream: Send + Sync {
    /// Whether file and log are known to be equal, by one `fstat`. Others may have appended to the log meanwhile: the
    /// next [`Self::publish`] detects that.
    fn is_settled(&self, file: &File) -> bool;

    /// Whether the file has lines that are not known to be in the log, by one `stat`.
    fn waits(&self) -> bool;

    /// Appends to the file the lines that only the log has, and to the log those that only the file has. If both have
    /// such lines, another file replaces this one. It has the lines of the log first.
    fn settle(&self, file: &File, until: Option<Instant>) -> Result<()>;

    /// Appends whole lines to the log, each with its line break, all or none. `durabilityUnknown` if the log may have
    /// them: [`Self::settle`] finds out.
    fn publish(&self, lines: &[u8], until: Option<Instant>) -> Result<PublishOutcome>;

    /// Like [`Self::publish`], without a thread that waits; `None` if there is no connection to a server at this moment.
    /// The future must be polled on a runtime, and needs the lock of the file until it ends.
    fn begin_publish(self: Arc<Self>, lines: &[u8], until: Option<Instant>) -> Option<Publishing>;

    /// Notes that the file has the lines that were published last.
    fn written(&self, file: &File);

    /// Whether lines are written to the file if the log cannot be reached, and published later.
    fn queues(&self) -> bool;

    /// The durability of a publish, by the last one that was answered.
    fn durability(&self) -> Durability {
        Durability::Replicated
    }
}

/// A publish that waits for the servers.
pub type Publishing = Pin<Box<dyn Future<Output = Result<PublishOutcome>> + Send>>;

/// The outcome of a publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishOutcome {
    Published,
    /// Others have appended: settle, and try again.
    Conflict,
}
