//! An open session with its connections.

use super::client_turn::ClientTurn;
use super::connection::Connection;
use super::convert;
use super::first_message;
use super::notices::Notices;
use super::queue::{self, Access, Sessions};
use super::tree_view::LastView;
use super::watched::WatchedSession;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;
use treelined_core::durability::Durability;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::flow::append::NewEntry;
use treelined_core::id::ExpectedLeaf;
use treelined_core::stats::PrefixStats;
use treelined_core::timestamp;
use treelined_files::cancel::Cancel;
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

    /// The session as a connection sees it.
    pub(crate) fn shown_to(
        &self,
        connection: &Connection,
        access: Access,
        core: &SessionState,
    ) -> wire::Session {
        let header = core.log.header();
        wire::Session {
            session_id: self.id.to_string(),
            path: core
                .log
                .location()
                .map(|at| at.path().display().to_string()),
            version: core.log.stated_version(),
            created: header
                .and_then(|header| timestamp::parse(header.timestamp.as_deref()?))
                .map(timestamp::format),
            header: convert::raw(core.log.header_line().trim_ascii()),
            cwd: header.map(|header| header.cwd.clone()).unwrap_or_default(),
            name: core.tree.name().map(str::to_owned),
            first_message: first_message::of(core).to_owned(),
            leaf_id: core.leaf_id().map(str::to_owned),
            seq: self.seq(connection),
            entry_count: core.tree.entry_count() as u64,
            read_only: access == Access::Read || self.session.is_newer,
            multi_writer: core.log.is_multi_writer(),
            parent_session: header.and_then(|header| header.parent_session.clone()),
            queued: self.known_queue(core).then_some(true),
        }
    }

    /// How durable a new session is: not at all if nothing of it is written.
    pub(crate) fn durability(&self, core: &SessionState, wrote: bool) -> Durability {
        match wrote {
            true if core.is_queued() => Durability::Queued,
            true => self.session.syncer.durability(),
            false => Durability::None,
        }
    }
}

/// The open sessions of a daemon: the types of its queues.
pub(crate) struct OpenSessions;

impl Sessions for OpenSessions {
    type Open = OpenSession;
    type Append = Append;

    fn write(lease: Lease, appends: VecDeque<Append>) {
        // All of them are for the daemon of the first.
        if let Some(first) = appends.front() {
            Arc::clone(&first.writer).write(lease, appends);
        }
    }

    fn refuse(append: Append, error: Error) {
        append.answer(Err(error));
    }
}

/// The entries that one request appends: one operation.
pub(crate) struct Append {
    pub(super) writer: Arc<dyn WriteAppends>,
    pub(super) entries: Vec<NewEntry>,
    pub(super) expected: ExpectedLeaf,
    pub(super) cancel: Cancel,
    pub(super) asked: Instant,
    pub(super) answer: OnAppended,
}

impl Append {
    pub(crate) fn answer(self, answer: Result<AppendOutcome>) {
        (self.answer)(answer);
    }
}

/// Queues the response of an append.
pub(crate) type OnAppended = Box<dyn FnOnce(Result<AppendOutcome>) + Send>;

/// Writes adjacent appends of a queue: the daemon.
pub(crate) trait WriteAppends: Send + Sync {
    fn write(self: Arc<Self>, lease: Lease, appends: VecDeque<Append>);
}

/// The outcome of an append.
pub(crate) struct AppendOutcome {
    pub(crate) entry_ids: Vec<String>,
    pub(crate) durability: Durability,
}

impl AppendOutcome {
    pub(crate) fn last(&self) -> Result<String> {
        let last = self.entry_ids.last().cloned();
        last.ok_or_else(|| Error::new(Kind::InternalError, "nothing was appended"))
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
