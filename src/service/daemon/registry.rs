//! The open sessions of a daemon, and the state that all of them share.

use super::append::OpenSessions;
use super::guard::{Place, SessionGuard, guard_of};
use super::open_session::OpenSession;
use super::queue::{Asker, Queues, Scope, Spawn};
use super::watched::WatchedSession;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use treelined_core::error::Result;
use treelined_files::cancel::Cancel;
use treelined_files::lock::lock;
use treelined_files::store::watch::Watcher;

/// The open sessions.
pub(crate) struct Registry {
    /// The open sessions, and the order of the requests to them.
    pub(crate) queues: Arc<Queues<OpenSessions>>,
    pub(crate) watcher: Watcher<WatchedSession>,
    /// The sessions whose replaced file is still followed. Some of these sessions may be closed.
    following: Mutex<Vec<Arc<OpenSession>>>,
}

impl Registry {
    /// A job that cannot run on the thread that submits it is given to `spawn`.
    pub(crate) fn new(spawn: Spawn) -> Self {
        Self {
            queues: Queues::new(spawn),
            watcher: Watcher::new(),
            following: Mutex::default(),
        }
    }

    /// Takes a place in the queue of a session for a job of the daemon itself.
    pub(crate) fn own_place(&self, id: &str) -> Place {
        let nobody = Cancel::new();
        self.queues.lease(None, Some(id), Scope::Session, &nobody)
    }

    /// Takes a place in the queue of a session to close it, for a connection or for the daemon itself.
    pub(crate) fn place_to_close(&self, by: Asker, id: &str) -> Place {
        let nobody = Cancel::new();
        self.queues.lease(by, Some(id), Scope::Change, &nobody)
    }

    /// Returns the guard of the session that a request names, after all earlier requests to the session. The request
    /// enters the queue of the session before this function returns.
    pub(crate) fn guard(
        &self,
        by: Asker,
        id: Option<&str>,
        cancel: &Cancel,
    ) -> impl Future<Output = Result<(Arc<OpenSession>, SessionGuard)>> + Send + use<> {
        let asked = Instant::now();
        let lease = self.queues.lease(by, id, Scope::Session, cancel);
        async move { guard_of(lease.await?, asked) }
    }

    /// Like [`Self::guard`], for a job of the daemon itself.
    pub(crate) fn own_guard(
        &self,
        id: &str,
    ) -> impl Future<Output = Result<(Arc<OpenSession>, SessionGuard)>> + Send + use<> {
        self.guard(None, Some(id), &Cancel::new())
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<OpenSession>> {
        self.queues.find(id)
    }

    pub(crate) fn all(&self) -> Vec<Arc<OpenSession>> {
        self.queues.all_open(None)
    }

    /// Notes that the old file of a session is followed. Returns false if it is followed already.
    pub(crate) fn begin_following(&self, open: &Arc<OpenSession>) -> bool {
        let mut following = lock(&self.following);
        let is_new = !following.iter().any(|known| Arc::ptr_eq(known, open));
        if is_new {
            following.push(Arc::clone(open));
        }
        is_new
    }

    /// Notes that the old file of a session is no longer followed.
    pub(crate) fn end_following(&self, open: &Arc<OpenSession>) {
        lock(&self.following).retain(|known| !Arc::ptr_eq(known, open));
    }

    /// Removes all sessions whose replaced file is followed, and returns them.
    pub(crate) fn take_following(&self) -> Vec<Arc<OpenSession>> {
        std::mem::take(&mut *lock(&self.following))
    }

    /// Syncs the writes that the policy `interval` has left for later.
    pub(crate) async fn flush(&self) {
        for open in self.all() {
            if let Err(error) = open.session.syncer.flush().await {
                tracing::error!(%error, "the last entries may not be on disk");
            }
        }
    }
}
