//! The place of a job in a queue, and the lease of a session that the place becomes.

use super::openers::{Access, Departure, Openings};
use super::scope::Scope;
use super::state::read_only;
use super::types::{Job, JobKey, Lease, Queue, QueuedJob, Queues, Ready, Sessions, WaitsFor};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;
use tokio::sync::oneshot;
use treelined_core::error::{Error, Result};
use treelined_core::id::ConnectionId;
use treelined_files::cancel::Cancel;
use treelined_files::lock::lock;

/// A place in a queue. It becomes the lease when its turn comes. Dropping the place gives it up.
#[must_use]
pub(crate) struct Place<Q: Sessions> {
    pub(super) receiver: oneshot::Receiver<Result<Lease<Q>>>,
    /// When the place was taken.
    pub asked: Instant,
}

impl<Q: Sessions> Future for Place<Q> {
    type Output = Result<Lease<Q>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let lease = Pin::new(&mut self.receiver).poll(context);
        // The sender is dropped without a lease only if the job is dropped, and that happens only at the end of the
        // process.
        lease.map(|lease| lease.unwrap_or_else(|_| Err(Error::cancelled())))
    }
}

/// A request for the session of a file whose header has not been read. Its queue is not known yet.
#[must_use]
pub(crate) struct Unnamed<Q: Sessions> {
    pub(super) queues: Arc<Queues<Q>>,
    pub(super) key: JobKey,
    pub(super) cancel: Cancel,
}

/// The place of an import in the order of requests. Dropping it ends the import.
#[must_use]
pub(crate) struct ImportPlace<Q: Sessions> {
    pub(super) queues: Arc<Queues<Q>>,
    pub(super) key: JobKey,
}

impl<Q: Sessions> Lease<Q> {
    pub(crate) fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// The session, if it is open.
    pub(crate) fn open(&self) -> Option<&Arc<Q::Open>> {
        self.open.as_ref()
    }

    /// The access of the connection of this job; `None` if the session is not open for it.
    pub(crate) fn access(&self) -> Option<Access> {
        self.access
    }

    /// Whether the session is open for the connection of this job.
    pub(crate) fn is_open_for_asker(&self) -> bool {
        self.access.is_some()
    }

    /// Fails with `readOnly` if the connection of this job has opened the session for reading.
    pub(crate) fn check_writable(&self) -> Result<()> {
        match self.access {
            Some(Access::Read) => Err(read_only()),
            Some(Access::Write) | None => Ok(()),
        }
    }

    /// Sets the open session for later jobs. `None` closes the session for all connections.
    pub(crate) fn set_open(&mut self, open: Option<Arc<Q::Open>>) {
        self.open.clone_from(&open);
        self.change(|queue| {
            if open.is_none() {
                queue.openers = Default::default();
            }
            queue.open = open;
        });
    }

    /// Counts one more opening of the session by a connection. The first opening decides the access.
    pub(crate) fn admit(&self, connection: ConnectionId, access: Access) {
        self.change(|queue| queue.openers.admit(connection, access));
    }

    /// Opens the session for a connection as long as other connections hold it. False if it is already open for the
    /// connection.
    pub(crate) fn follow(&self, connection: ConnectionId) -> bool {
        let is_new = self.change(|queue| {
            let is_new = queue.openers.access(connection).is_none();
            queue.openers.follow(connection);
            is_new
        });
        is_new == Some(true)
    }

    /// The effect that a close by a connection would have.
    pub(crate) fn departure(&self, connection: ConnectionId, openings: Openings) -> Departure {
        let departure = self.change(|queue| queue.openers.departure(connection, openings));
        departure.unwrap_or(Departure::Last)
    }

    /// Ends openings of a connection. The session stays open for other connections.
    pub(crate) fn leave(&self, connection: ConnectionId, openings: Openings) {
        self.change(|queue| queue.openers.leave(connection, openings));
    }

    /// Whether any connection may change the session.
    pub(crate) fn has_writer(&self) -> bool {
        self.change(|queue| queue.openers.has_writer()) == Some(true)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Queue<Q>) -> T) -> Option<T> {
        let mut state = lock(&self.queues.state);
        state.queues.get_mut(&self.id).map(change)
    }
}

impl<Q: Sessions> Drop for Lease<Q> {
    fn drop(&mut self) {
        self.queues.release(&self.id);
    }
}

impl<Q: Sessions> Unnamed<Q> {
    /// Lets requests that open sessions pass this request, since its header takes long to find.
    pub(crate) fn header_is_late(&self) {
        let mut state = lock(&self.queues.state);
        if !state.headers.remove(&self.key) {
            return;
        }
        state.late_headers.insert(self.key);
        let ready = state.unblocked(&self.queues);
        drop(state);
        self.queues.start(ready);
    }

    /// Takes the place of this request in the queue of the file's session, in the order of the arrival of requests.
    pub(crate) fn lease(self, id: &str) -> Place<Q> {
        let asked = Instant::now();
        let (sender, receiver) = oneshot::channel();
        let mut state = lock(&self.queues.state);
        state.headers.remove(&self.key);
        state.late_headers.remove(&self.key);
        let id: Arc<str> = Arc::from(id);
        let run = move |lease| {
            let _gone = sender.send(lease);
        };
        state.insert(
            &id,
            QueuedJob {
                key: self.key,
                scope: Scope::Open,
                waits_for: WaitsFor::Headers,
                job: Job::Run(Box::new(run)),
            },
        );
        let ready = state.unblocked(&self.queues);
        drop(state);
        ready.into_iter().for_each(Ready::begin);
        let (queues, key) = (Arc::downgrade(&self.queues), self.key);
        self.cancel.on_cancel(move || {
            if let Some(queues) = queues.upgrade() {
                queues.withdraw(Some(&id), key);
            }
        });
        Place { receiver, asked }
    }
}

impl<Q: Sessions> Drop for Unnamed<Q> {
    fn drop(&mut self) {
        let mut state = lock(&self.queues.state);
        if !state.headers.remove(&self.key) && !state.late_headers.remove(&self.key) {
            return;
        }
        state.registry.remove(&self.key);
        let ready = state.unblocked(&self.queues);
        drop(state);
        self.queues.notify();
        self.queues.start(ready);
    }
}

impl<Q: Sessions> Drop for ImportPlace<Q> {
    fn drop(&mut self) {
        let mut state = lock(&self.queues.state);
        state.imports.remove(&self.key);
        let ready = state.unblocked(&self.queues);
        drop(state);
        self.queues.notify();
        self.queues.start(ready);
    }
}
