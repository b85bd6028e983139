//! A request from its arrival to its response.

use super::Daemon;
use super::connection::{AskedNavigation, Connection, Pending};
use super::open_session::{Lease, OpenSession, Place, SessionGuard};
use super::queue::{Access, Scope};
use std::sync::{Arc, Mutex, OnceLock};
use treelined_files::cancel::Cancel;
use treelined_files::lock::lock;
use treelined_wire as wire;

/// Announces that a session is open.
pub(super) fn opened(open: &OpenSession, seq: u64) -> wire::notification::SessionOpened {
    wire::notification::SessionOpened {
        session_id: open.id.to_string(),
        seq,
    }
}

/// A request that has not been answered.
pub(crate) struct Call {
    pub(crate) daemon: Arc<Daemon>,
    pub(crate) connection: Arc<Connection>,
    pub(crate) id: Option<wire::RequestId>,
    pub(crate) cancel: Cancel,
    /// Actions that run once the response is queued.
    after: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
    /// The navigation of this request, if it is one: an abort may name it before it begins.
    navigation: OnceLock<AskedNavigation>,
}

impl Call {
    pub(crate) fn new(
        daemon: &Arc<Daemon>,
        connection: &Arc<Connection>,
        id: Option<wire::RequestId>,
    ) -> Arc<Self> {
        Arc::new(Self {
            daemon: Arc::clone(daemon),
            connection: Arc::clone(connection),
            id,
            cancel: Cancel::new(),
            after: Mutex::default(),
            navigation: OnceLock::new(),
        })
    }

    /// Lets an abort find the navigation while it waits.
    pub(crate) fn names_navigation(&self, asked: AskedNavigation) {
        let _named_before = self.navigation.set(asked);
    }

    /// Takes a place in the queue of a session; without an id, in the queue of the only session that is open for the
    /// connection.
    pub(crate) fn place(&self, session_id: Option<&str>, scope: Scope) -> Place {
        let by = Some(self.connection.id);
        self.daemon
            .queues
            .lease(by, session_id, scope, &self.cancel)
    }

    /// Opens a session once the response is queued: before that, no notification of the session may go out and no other
    /// request may reach it (protocol.md §7).
    pub(crate) fn open_after(&self, open: &Arc<OpenSession>, access: Access, mut lease: Lease) {
        let (daemon, connection) = (Arc::clone(&self.daemon), Arc::clone(&self.connection));
        let open = Arc::clone(open);
        self.after(move || {
            lease.set_open(Some(Arc::clone(&open)));
            lease.admit(connection.id, access);
            daemon.notify(&open, |seq| opened(&open, seq));
            daemon.watch(&open);
            daemon.follow_log(&open, access);
            daemon.open_for_extensions(&open, &lease);
            drop(lease);
        });
    }

    /// Opens an open session once more for the connection, once the response is queued.
    pub(crate) fn open_again_after(
        &self,
        open: &Arc<OpenSession>,
        access: Access,
        mut turn: SessionGuard,
    ) {
        let (daemon, connection) = (Arc::clone(&self.daemon), Arc::clone(&self.connection));
        let open = Arc::clone(open);
        self.after(move || {
            let lease = &turn.with().lease;
            let is_first = !lease.is_open_for_asker();
            lease.admit(connection.id, access);
            let has_writer = lease.has_writer();
            turn.set_read_only(open.session.is_newer || !has_writer);
            daemon.follow_log(&open, access);
            if is_first {
                open.add_listener(&connection);
                daemon.notify_one(&open, &connection, |seq| opened(&open, seq));
            }
            drop(turn);
        });
    }

    /// Runs `act` once the response is queued.
    pub(crate) fn after(&self, act: impl FnOnce() + Send + 'static) {
        lock(&self.after).push(Box::new(act));
    }

    /// Runs the actions that wait for the response, which has just been queued.
    pub(crate) fn answered(&self) {
        let after = std::mem::take(&mut *lock(&self.after));
        for act in after {
            act();
        }
    }
}

impl Pending for Call {
    fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    fn navigation(&self) -> Option<&AskedNavigation> {
        self.navigation.get()
    }
}
