//! The team's stream of which a session file is a replica (fleet.md). The session uses the stream before and after each
//! append. The crate `fleet` has the implementation.

use crate::os::file::{File, Identity, Location};
use crate::os::handle::HandleAccess;
use std::collections::HashSet;
use std::io::Read;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;
use treelined_core::durability::Durability;
use treelined_core::error::Result;
use treelined_core::team::{TeamRow, TeamView};

/// Called with news of a session that do not come from a commit of this daemon.
pub type LogHook = Arc<dyn Fn(LogNews) + Send + Sync>;

/// The outcome for lines of a session that waited for the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogNews {
    /// The lines are in the stream.
    Published,
    /// The stream has lost lines. The file still has them.
    Rewound,
    /// Another machine had deleted the session before, so the entries with these ids are only in the trash.
    Lost(Vec<String>),
}

/// The stream of many sessions and many machines.
pub trait SharedLog: Send + Sync {
    /// The stream of the session in this file, which may not exist yet.
    fn upstream(&self, session: &str, at: &Location) -> Arc<dyn Upstream>;

    /// Makes a file and its stream equal before the file is read. A file without a session, or of an older version of
    /// the format, stays as it is. Fails with `sessionDeleted` if the session was deleted; its file is in the trash
    /// then.
    fn prepare(&self, at: &Location) -> Result<()>;

    /// Copies a session that has no file into the session directory. Returns whether the stream has the session. Fails
    /// with `sessionDeleted` if it was deleted.
    fn fetch(&self, session: &str) -> Result<bool>;

    /// Records in the stream that the session of this file is deleted. The caller moves the file to the trash.
    fn delete(&self, session: &str, at: &Location) -> Result<()>;

    /// Records in the stream that a session is no longer deleted.
    fn restore(&self, session: &str) -> Result<InLog>;

    /// Completes [`Self::restore`]. Call it when the file of the session is back at its path.
    fn restored(&self, session: &str, at: &Location, before: InLog) -> Result<()>;

    /// Removes all lines of a session from the stream for good, if its servers can do so. The caller removes the files.
    fn erase(&self, session: &str) -> Result<()>;

    /// From now on, copies the lines that others append to a session into its file, and publishes the lines that wait
    /// in the file. While the session is deleted, its file is in the trash. Calls `news` on a thread of the stream.
    fn follow(&self, session: &str, news: LogHook);

    /// Records that the session is no longer open. Lines that wait for the stream are published nevertheless.
    fn leave(&self, session: &str);

    /// The sessions, open or closed, that have lines waiting for the stream.
    fn queued(&self) -> HashSet<String>;

    /// Describes an open session to other machines after a commit. The stream adds the name of this machine and the
    /// number of the last message of the session in the stream.
    fn describe(&self, row: TeamRow);

    /// The sessions of all machines.
    fn team(&self) -> Arc<dyn TeamView>;

    /// Removes this daemon from the lists that other daemons show. Waits at most 2 s.
    fn end(&self);
}

/// The state of a session in the stream before it was restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InLog {
    /// The stream does not have the session.
    Missing,
    /// The session was not deleted.
    Open,
    Deleted,
}

/// The suffix of the file beside a session file that is a replica.
pub const REPLICA_SUFFIX: &str = ".replica";

/// Whether a session file is a replica.
pub fn is_replica(at: &Location) -> bool {
    at.beside(REPLICA_SUFFIX).status().is_ok()
}

/// The number of entries of a file in the trash that the stream of the session does not have.
pub fn lost(at: &Location) -> u64 {
    /// The record has fewer bytes than this.
    const MOST: u64 = 64 << 10;
    let beside = at.beside(REPLICA_SUFFIX);
    let mut text = Vec::new();
    let file = beside.folder.file(&beside.name, HandleAccess::Read);
    let is_read = file.is_ok_and(|file| file.take(MOST).read_to_end(&mut text).is_ok());
    let record: Option<serde_json::Value> = is_read
        .then(|| serde_json::from_slice(&text).ok())
        .flatten();
    let lost = record.and_then(|record| record.get("lost")?.as_u64());
    lost.unwrap_or_default()
}

/// The stream of one session file. The calls wait for servers, and fail with `logUnavailable` at their deadlines, or at
/// `until` if that is earlier. The caller holds the lock of the file, if there is a file.
pub trait Upstream: Send + Sync {
    /// Whether file and stream are known to be equal. This takes one `fstat`. Others may append to the stream
    /// meanwhile; the next [`Self::publish`] detects that.
    fn is_settled(&self, file: &File) -> bool;

    /// Whether the file has lines that are not known to be in the stream. This takes one `stat`.
    fn waits(&self) -> bool;

    /// Whether the stream is known to have lost lines that are still in the file.
    fn has_lost(&self) -> bool {
        false
    }

    /// The offset in bytes of the end of the last line that this machine has written. `None` if this is not known, or
    /// if no other machine has written after this line.
    fn own_end(&self) -> Option<u64> {
        None
    }

    /// Appends to the file the lines that only the stream has, and to the stream the lines that only the file has. If
    /// both have such lines, a new file replaces this one, and has the lines of the stream first.
    fn settle(&self, file: &File, until: Option<Instant>) -> Result<()>;

    /// Appends whole lines to the stream, each with its line break, all or none. Fails with `durabilityUnknown` if the
    /// stream may have the lines; [`Self::settle`] finds out whether it has them.
    fn publish(&self, lines: &[u8], until: Option<Instant>) -> Result<PublishOutcome>;

    /// Like [`Self::publish`], without a thread that waits. `None` if no server is connected at this moment. The future
    /// must be polled on a runtime, and the lock of the file must be held until it ends.
    fn begin_publish(self: Arc<Self>, lines: &[u8], until: Option<Instant>) -> Option<Publishing>;

    /// Records that the lines that were published last are in the file.
    fn written(&self, file: &File);

    /// Whether lines are written to the file if the stream cannot be reached, to be published later.
    fn queues(&self) -> bool;

    /// Compares a line of the file with the line of the same number in the stream, and returns the answer of the
    /// servers about this line. Does not need the lock. Fails with `sessionReplaced` if another file has replaced the
    /// session file, and with `logRewound` if the stream has lost the line.
    fn look_up(&self, line: &FileLine) -> Result<LineInStream>;

    /// The durability of the last publish that the servers answered, as they reported it.
    fn durability(&self) -> Durability {
        Durability::Replicated
    }
}

/// A line of a session file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLine {
    /// The number of the line in the file, from 1.
    pub number: u64,
    /// The bytes of the line with its line break.
    pub bytes: Vec<u8>,
    /// The offset in bytes of the end of the line in the file.
    pub end: u64,
    /// The file from which the line was read.
    pub file: Identity,
}

/// A line of a session file, as the servers of its stream have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineInStream {
    pub stream: String,
    pub state: LineState,
    /// The account that added the line to the stream, as the servers report it. `None` if they name no accounts, or if
    /// they do not have the line.
    pub account: Option<String>,
}

/// Whether file and stream have the same line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineState {
    Equal,
    /// The line with this number has other bytes in the stream.
    Differs,
    /// The line is not known to be in the stream.
    Queued,
}

/// A publish that waits for the servers.
pub type Publishing = Pin<Box<dyn Future<Output = Result<PublishOutcome>> + Send>>;

/// The outcome of a publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishOutcome {
    Published,
    /// Others have appended to the stream. The caller must settle, and publish again.
    Conflict,
}
