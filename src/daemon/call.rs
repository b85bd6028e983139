//! One request on its way to its response.

use super::Daemon;
use super::connection::{AskedNavigation, Connection};
use super::open_session::{Lease, OpenSession, Place};
use super::queue::Scope;
use crate::cancel::Cancel;
use crate::lock::lock;
use crate::wire;
use std::sync::{Arc, Mutex, OnceLock};

/// One request on its way.
pub(crate) struct Call {
    pub(crate) daemon: Arc<Daemon>,
    pub(crate) connection: Arc<Connection>,
    pub(crate) id: Option<wire::RequestId>,
    pub(crate) cancel: Cancel,
    /// What happens once the response is queued.
    after: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
    /// The navigation that it asks for, if it is one: an abort may name it before it has begun.
    navigation: OnceLock<AskedNavigation>,
}

impl Call {
    pub(crate) fn new(connection: &Arc<Connection>, id: Option<wire::RequestId>) -> Arc<Self> {
        Arc::new(Self {
            daemon: Arc::clone(&connection.daemon),
            connection: Arc::clone(connection),
            id,
            cancel: Cancel::new(),
            after: Mutex::default(),
            navigation: OnceLock::new(),
        })
    }

    /// Makes an abort find it while it waits.
    pub(crate) fn names_navigation(&self, asked: AskedNavigation) {
        let _named_before = self.navigation.set(asked);
    }

    pub(crate) fn navigation(&self) -> Option<&AskedNavigation> {
        self.navigation.get()
    }

    /// Takes a place in the queue of a session; without an id in that of the only open one.
    pub(crate) fn place(&self, session_id: Option<&str>, scope: Scope) -> Place {
        self.daemon.queues.lease(session_id, scope, &self.cancel)
    }

    /// Opens a session once the response is queued: nothing of it may go out, and no other request may reach
    /// it, before (protocol.md §7).
    pub(crate) fn open_after(&self, open: &Arc<OpenSession>, mut lease: Lease) {
        let (daemon, open) = (Arc::clone(&self.daemon), Arc::clone(open));
        self.after(move || {
            lease.set_open(Some(Arc::clone(&open)));
            daemon.notify(&open, |seq| wire::notification::SessionOpened {
                session_id: open.id.to_string(),
                seq,
            });
            daemon.watch(&open);
            drop(lease);
        });
    }

    /// Does something once the response is queued.
    pub(crate) fn after(&self, act: impl FnOnce() + Send + 'static) {
        lock(&self.after).push(Box::new(act));
    }

    /// Does what waits for the response, which has just been queued.
    pub(crate) fn answered(&self) {
        let after = std::mem::take(&mut *lock(&self.after));
        for act in after {
            act();
        }
    }
}
