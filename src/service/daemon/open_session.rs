//! An open session with its connections.

use super::agent_turn::ClientTurn;
use super::append::Append;
use super::convert;
use super::notify::Notices;
use super::queue::{self, Sessions};
use super::tree_view::LastView;
use super::{connection::Connection, follow::WatchedSession};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;
use treelined_core::durability::Durability;
use treelined_core::error::{Error, Result};
use treelined_core::stats::PrefixStats;
pub(crate) use treelined_files::session::{self, Busy, Session, SessionState};
use treelined_wire as wire;

/// An open session.
pub(crate) struct OpenSession {
    pub(crate) session: Arc<Session>,
    /// The notifications for the connections that have it open. Locked while a notification is queued, so that numbers
    /// leave in order.
    pub(crate) notices: Mutex<Notices>,
    /// The session's id, shared with queued messages.
    pub(crate) id: Arc<str>,
    /// Changed by jobs of the session's queue, except at the end of the connection.
    pub(crate) turn: Mutex<ClientTurn>,
    pub(crate) watched: OnceLock<Arc<WatchedSession>>,
    pub(crate) last_view: LastView,
    pub(crate) last_count: Mutex<PrefixStats>,
    /// Whether entries wait for the log, as its connections know it; `None` before they know anything.
    pub(crate) queued: Mutex<Option<bool>>,
}

impl OpenSession {
    /// A session that is open for one connection.
    pub(crate) fn new(session: Arc<Session>, connection: &Arc<Connection>) -> Arc<Self> {
        Arc::new(Self {
            id: session.id.shared(),
            notices: Mutex::new(Notices::to(connection)),
            turn: Mutex::default(),
            watched: OnceLock::new(),
            last_view: LastView::default(),
            last_count: Mutex::default(),
            queued: Mutex::default(),
            session,
        })
    }

    /// How durable a new session is: not at all if nothing of it is written.
    pub(crate) fn durability(&self, core: &SessionState, wrote: bool) -> wire::Durability {
        convert::durability(match wrote {
            true if core.is_queued() => Durability::Queued,
            true => self.session.syncer.durability(),
            false => Durability::None,
        })
    }
}

/// The open sessions of a daemon: the types of its queues.
pub(crate) struct OpenSessions;

impl Sessions for OpenSessions {
    type Open = OpenSession;
    type Append = Append;

    fn write(lease: Lease, appends: VecDeque<Append>) {
        super::append::write(lease, appends);
    }

    fn refuse(append: Append, error: Error) {
        append.answer(Err(error));
    }
}

pub(crate) type Lease = queue::Lease<OpenSessions>;
pub(crate) type Place = queue::Place<OpenSessions>;

/// The right to read or change an open session, and its place at the head of the session's queue.
pub(crate) type SessionGuard = session::SessionGuard<Tenure>;

/// Fails if the session cannot be changed by the connection whose job has this guard.
pub(crate) fn check_writable(open: &OpenSession, turn: &mut SessionGuard) -> Result<()> {
    open.session.check_version()?;
    turn.with().lease.check_writable()
}

/// The parts of a lease that end with a [`SessionGuard`]: the activity ends first, so that the next job does not find
/// the session busy.
pub(crate) struct Tenure {
    pub(crate) busy: Option<Busy>,
    pub(crate) lease: Lease,
}

/// The session of a lease. `sessionNotFound` if it is not open for the connection of the job.
pub(crate) fn guard(lease: Lease, asked: Instant) -> Result<(Arc<OpenSession>, SessionGuard)> {
    match lease.is_open_for_asker() {
        true => guard_for_all(lease, asked),
        false => Err(Error::session_not_found(lease.id())),
    }
}

/// As [`guard`], if the session is open for any connection.
pub(crate) fn guard_for_all(
    lease: Lease,
    asked: Instant,
) -> Result<(Arc<OpenSession>, SessionGuard)> {
    let Some(open) = lease.open().map(Arc::clone) else {
        return Err(Error::session_not_found(lease.id()));
    };
    let tenure = Tenure { busy: None, lease };
    let guard = open.session.guard(asked, tenure)?;
    Ok((open, guard))
}
