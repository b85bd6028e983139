//! The place of a job in its queue, then the lease of its session.

use super::state::{Job, QueuedJob, Ready, WaitsFor};
use super::{Queues, Scope, Sessions};
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::lock::lock;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;
use tokio::sync::oneshot;

/// The right to work on a session, until dropped.
#[must_use]
pub(crate) struct Lease<Q: Sessions> {
    pub(super) queues: Arc<Queues<Q>>,
    pub(super) id: Arc<str>,
    /// `None` if the session is not open.
    pub(super) open: Option<Arc<Q::Open>>,
}

/// A place in a queue, which becomes the lease. Dropping it gives up the place.
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
        // The sender is dropped without a lease only if its job is dropped, at the end of the process.
        lease.map(|lease| lease.unwrap_or_else(|_| Err(Error::cancelled())))
    }
}

/// A request for the session of a file whose header has not been read.
#[must_use]
pub(crate) struct Unnamed<Q: Sessions> {
    pub(super) queues: Arc<Queues<Q>>,
    pub(super) number: u64,
    pub(super) cancel: Cancel,
}

/// The place of an import among the requests. It ends when dropped.
#[must_use]
pub(crate) struct ImportPlace<Q: Sessions> {
    pub(super) queues: Arc<Queues<Q>>,
    pub(super) number: u64,
}

impl<Q: Sessions> Lease<Q> {
    pub(crate) fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// The session, if it is open.
    pub(crate) fn open(&self) -> Option<&Arc<Q::Open>> {
        self.open.as_ref()
    }

    /// Opens the session, or closes it with `None`, for later jobs.
    pub(crate) fn set_open(&mut self, open: Option<Arc<Q::Open>>) {
        self.open.clone_from(&open);
        if let Some(queue) = lock(&self.queues.state).queues.get_mut(&self.id) {
            queue.open = open;
        }
    }
}

impl<Q: Sessions> Drop for Lease<Q> {
    fn drop(&mut self) {
        self.queues.release(&self.id);
    }
}

impl<Q: Sessions> Unnamed<Q> {
    /// Lets other sessions be opened, since the header takes long to find.
    pub(crate) fn header_is_late(&self) {
        let mut state = lock(&self.queues.state);
        if !state.headers.remove(&self.number) {
            return;
        }
        state.late_headers.insert(self.number);
        let ready = state.unblocked(&self.queues);
        drop(state);
        self.queues.start(ready);
    }

    /// Returns the lease of the file's session, at the place of this request's arrival.
    pub(crate) fn lease(self, id: &str) -> Place<Q> {
        let asked = Instant::now();
        let (sender, receiver) = oneshot::channel();
        let mut state = lock(&self.queues.state);
        state.headers.remove(&self.number);
        state.late_headers.remove(&self.number);
        let id: Arc<str> = Arc::from(id);
        let run = move |lease| {
            let _gone = sender.send(lease);
        };
        state.insert(
            &id,
            QueuedJob {
                number: self.number,
                scope: Scope::Open,
                waits_for: WaitsFor::Headers,
                job: Job::Run(Box::new(run)),
            },
        );
        let ready = state.unblocked(&self.queues);
        drop(state);
        ready.into_iter().for_each(Ready::begin);
        let (queues, number) = (Arc::downgrade(&self.queues), self.number);
        self.cancel.on_cancel(move || {
            if let Some(queues) = queues.upgrade() {
                queues.withdraw(Some(&id), number);
            }
        });
        Place { receiver, asked }
    }
}

impl<Q: Sessions> Drop for Unnamed<Q> {
    fn drop(&mut self) {
        let mut state = lock(&self.queues.state);
        if !state.headers.remove(&self.number) && !state.late_headers.remove(&self.number) {
            return;
        }
        state.registry.remove(&self.number);
        let ready = state.unblocked(&self.queues);
        drop(state);
        self.queues.notify();
        self.queues.start(ready);
    }
}

impl<Q: Sessions> Drop for ImportPlace<Q> {
    fn drop(&mut self) {
        let mut state = lock(&self.queues.state);
        state.imports.remove(&self.number);
        let ready = state.unblocked(&self.queues);
        drop(state);
        self.queues.notify();
        self.queues.start(ready);
    }
}
