//! The effect that a job may have on the set of open sessions, and the connection for which the job runs.

use treelined_core::id::ConnectionId;

/// The effect of a job on the set of open sessions and of session files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// No effect. The job needs an open session, and fails with `sessionNotFound` without one.
    Session,
    /// Opens a session.
    Open,
    /// Creates a session with an id that a client may have chosen.
    Create,
    /// Creates a session with an id that no other request can name yet.
    CreateFresh,
    /// Closes, deletes, restores or copies a session.
    Change,
}

/// The connection for which a job runs; `None` for the daemon's own jobs.
pub(crate) type Asker = Option<ConnectionId>;
