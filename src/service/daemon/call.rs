//! A request from its arrival to its response.

use super::Daemon;
use super::connection::Connection;
use super::guard::Place;
use super::pending::{AskedNavigation, Pending};
use super::queue::Scope;
use std::sync::{Arc, Mutex, OnceLock};
use treelined_files::cancel::Cancel;
use treelined_files::lock::lock;
use treelined_wire as wire;

/// A request without a response.
pub(crate) struct Call {
    pub(crate) daemon: Arc<Daemon>,
    pub(crate) connection: Arc<Connection>,
    pub(crate) id: Option<wire::RequestId>,
    pub(crate) cancel: Cancel,
    /// Actions that run when the response is queued.
    after: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
    /// The navigation of this request, if it is one. An abort may name the navigation before it begins.
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

    /// Lets an abort find the navigation while the request waits.
    pub(crate) fn names_navigation(&self, asked: AskedNavigation) {
        let _named_before = self.navigation.set(asked);
    }

    /// Takes a place in the queue of an open session. Without an id, this is the only session that is open for the
    /// connection.
    pub(crate) fn place(&self, session_id: Option<&str>) -> Place {
        self.place_in(Scope::Session, session_id)
    }

    /// Like [`Self::place`], for a request that closes, deletes, restores or copies the session.
    pub(crate) fn place_to_change(&self, session_id: Option<&str>) -> Place {
        self.place_in(Scope::Change, session_id)
    }

    /// Takes a place in the queue of a session that the request opens.
    pub(crate) fn place_to_open(&self, session_id: &str) -> Place {
        self.place_in(Scope::Open, Some(session_id))
    }

    /// Takes a place in the queue of a new session. If the id is `fresh`, no other request can name it yet; otherwise a
    /// client may have chosen it.
    pub(crate) fn place_to_create(&self, session_id: &str, fresh: bool) -> Place {
        let scope = match fresh {
            true => Scope::CreateFresh,
            false => Scope::Create,
        };
        self.place_in(scope, Some(session_id))
    }

    fn place_in(&self, scope: Scope, session_id: Option<&str>) -> Place {
        let by = Some(self.connection.id);
        let queues = &self.daemon.registry.queues;
        queues.lease(by, session_id, scope, &self.cancel)
    }

    /// Runs `act` when the response is queued.
    pub(crate) fn after(&self, act: impl FnOnce() + Send + 'static) {
        lock(&self.after).push(Box::new(act));
    }

    /// Runs the actions that wait for the response. The caller has just queued the response.
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

/// A place in the queue of a session, for requests that do more than read. It is taken when the request arrives.
pub(crate) trait TakesPlace {
    /// `session_id` is the session that the request names; `None` for the only session that is open for its connection.
    fn take(call: &Arc<Call>, session_id: Option<&str>) -> Self;
}
