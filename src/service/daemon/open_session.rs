//! An open session with its connections.

use super::client_turn::ClientTurn;
use super::notices::Notices;
use super::tree_view::LastView;
use super::watched::WatchedSession;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;
use treelined_core::error::Result;
use treelined_core::stats::PrefixStats;
use treelined_files::blocking::blocking;
use treelined_files::lock::lock;
use treelined_files::os::file::Location;
use treelined_files::session::{Session, SessionState};
use treelined_files::store::exists;

/// An open session.
pub(crate) struct OpenSession {
    pub(crate) session: Arc<Session>,
    /// The notifications for the connections that have the session open. Locked while a notification is queued, so that
    /// the numbers arrive in order.
    pub(crate) notices: Mutex<Notices>,
    /// The session's id, shared with queued messages.
    pub(crate) id: Arc<str>,
    /// Changed by jobs of the session's queue, except at the end of a connection.
    client_turn: Mutex<ClientTurn>,
    pub(crate) watched: OnceLock<Arc<WatchedSession>>,
    pub(crate) last_view: Arc<LastView>,
    pub(crate) last_count: Mutex<PrefixStats>,
    /// Whether entries wait for the team, as the connections were last notified; `None` if they were not notified yet.
    pub(crate) queued: Mutex<Option<bool>>,
}

impl OpenSession {
    /// A session whose connections get `notices`.
    pub(crate) fn new(session: Arc<Session>, notices: Notices) -> Arc<Self> {
        Arc::new(Self {
            id: session.id.shared(),
            notices: Mutex::new(notices),
            client_turn: Mutex::default(),
            watched: OnceLock::new(),
            last_view: Arc::default(),
            last_count: Mutex::default(),
            queued: Mutex::default(),
            session,
        })
    }

    /// Whether a turn of the whole session is running.
    pub(crate) fn is_in_turn(&self) -> bool {
        self.client_turn().running.is_some()
    }

    pub(crate) fn client_turn(&self) -> MutexGuard<'_, ClientTurn> {
        lock(&self.client_turn)
    }

    /// Whether entries wait for the team, as the connections of the session know it.
    pub(crate) fn known_queue(&self, state: &SessionState) -> bool {
        *lock(&self.queued).get_or_insert_with(|| state.waits_for_log())
    }

    /// Fails with `sessionExists` unless the session has this file. The caller must hold the lease.
    pub(crate) async fn check_file(self: &Arc<Self>, location: Location) -> Result<()> {
        let open = Arc::clone(self);
        blocking(move || {
            let identity = |at: &Location| at.status().ok().map(|status| status.identity);
            let guard = open.session.guard(Instant::now(), ())?;
            let opened = guard.log.location().and_then(identity);
            drop(guard);
            match opened.is_some() && opened == identity(&location) {
                true => Ok(()),
                false => Err(exists(&open.id)),
            }
        })
        .await
    }
}
