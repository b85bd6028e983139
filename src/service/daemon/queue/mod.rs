//! One queue per session. Requests about a session take effect in the order of their arrival (protocol.md §1), and no
//! request waits for another session.
//!
//! A job runs while it holds the [`Lease`] of its session. The next job of the session begins when the lease is
//! dropped, also after a panic. A job runs on the thread that submits it if its queue is empty, else on the runtime.
//! Adjacent appends at the head of a queue are one job: one write and one sync. A job that waits for a question drops
//! its lease, and takes a new place in the queue afterwards.
//!
//! Two kinds of requests may concern any session: a request that names no session, and a request that names a file
//! whose header has not been read. Such a request gets a number at its arrival. Later requests of its connection wait
//! for this request if they may concern the same session. When the session of this request is known, the number decides
//! the place of the request in the queue of the session.
//!
//! An import may concern any session that is not open. Later requests of its connection wait for the import if they
//! open, delete or restore such a session, or if they list sessions.
//!
//! A session is open for the connections that have opened it. Other connections do not see that it is open.

mod lease;
mod openers;
mod scope;
mod state;
#[cfg(test)]
mod tests;
mod types;

pub(crate) use lease::{ImportPlace, Place, Unnamed};
pub(crate) use openers::{Access, Departure, Openings};
pub(crate) use scope::{Asker, Scope};
pub(crate) use types::{Lease, Queues, Sessions, Spawn};

use self::state::run_here;
use self::types::{Job, JobKey, QueuedJob, Ready, RunningJob, State, WaitsFor};
use hashbrown::HashMap;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::sync::{Notify, oneshot};
use treelined_core::error::{Error, Result};
use treelined_core::id::ConnectionId;
use treelined_files::cancel::Cancel;
use treelined_files::lock::lock;

impl<Q: Sessions> Queues<Q> {
    pub(crate) fn new(spawn: Spawn) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                next: 0,
                queues: HashMap::new(),
                only: BTreeMap::new(),
                headers: BTreeSet::new(),
                late_headers: BTreeSet::new(),
                registry: BTreeSet::new(),
                imports: BTreeSet::new(),
                held: Vec::new(),
            }),
            spawn,
            observers: AtomicUsize::new(0),
            ended: Notify::new(),
        })
    }

    /// Runs `job` with the lease of a session, after all earlier jobs of the session. Without an id, the session is the
    /// only one that is open for the connection. The job gets an error if it is cancelled while it waits, or if there
    /// is no such session.
    pub(crate) fn run(
        self: &Arc<Self>,
        by: Asker,
        id: Option<&str>,
        scope: Scope,
        cancel: &Cancel,
        job: impl FnOnce(Result<Lease<Q>>) + Send + 'static,
    ) {
        let mut state = lock(&self.state);
        let key = state.take_key(by, scope);
        let found = state.place(id, key, scope);
        let id = match found {
            Ok(Some(id)) => id,
            Ok(None) => {
                return self.wait(state, None, key, scope, cancel, Job::Run(Box::new(job)));
            }
            Err(error) => {
                state.registry.remove(&key);
                drop(state);
                return job(Err(error));
            }
        };
        let waits_for = state.waits_for(&id, by, scope);
        if !state.is_idle(&id) || state.is_blocked(&id, key, scope, waits_for) {
            return self.wait(
                state,
                Some((id, waits_for)),
                key,
                scope,
                cancel,
                Job::Run(Box::new(job)),
            );
        }
        let lease = state.lease(self, &id, key, scope, Access::Read);
        state.forget_unused(&id);
        drop(state);
        run_here(|| job(lease));
    }

    /// Like [`Self::run`], but returns a place in the queue, which becomes the lease. The request enters the queue
    /// before this function returns.
    pub(crate) fn lease(
        self: &Arc<Self>,
        by: Asker,
        id: Option<&str>,
        scope: Scope,
        cancel: &Cancel,
    ) -> Place<Q> {
        let asked = Instant::now();
        let (sender, receiver) = oneshot::channel();
        self.run(by, id, scope, cancel, move |lease| {
            // If the receiver is gone, this drops the lease.
            let _gone = sender.send(lease);
        });
        Place { receiver, asked }
    }

    /// Queues an append among the jobs of its session. If `holds`, the append waits for more appends until
    /// [`Self::settle`] or until another job of the session is submitted.
    pub(crate) fn append(
        self: &Arc<Self>,
        by: Asker,
        id: Option<&str>,
        cancel: &Cancel,
        append: Q::Append,
        holds: bool,
    ) {
        let scope = Scope::Session;
        let mut state = lock(&self.state);
        let key = state.take_key(by, scope);
        let id = match state.place(id, key, scope) {
            Ok(Some(id)) => id,
            Ok(None) => return self.wait(state, None, key, scope, cancel, Job::Append(append)),
            Err(error) => {
                drop(state);
                return Q::refuse(append, error);
            }
        };
        let waits_for = state.waits_for(&id, by, scope);
        let is_free = state.is_idle(&id) && !state.is_blocked(&id, key, scope, waits_for);
        if is_free && !holds {
            let lease = state.lease(self, &id, key, scope, Access::Write);
            drop(state);
            return match lease {
                Ok(lease) => run_here(|| Q::write(lease, VecDeque::from([append]))),
                Err(error) => Q::refuse(append, error),
            };
        }
        let is_held = state.queues.get_mut(&id).is_some_and(|queue| {
            queue.is_held |= is_free;
            queue.is_held
        });
        if is_free {
            state.held.push(Arc::clone(&id));
        }
        if is_held {
            let job = Job::Append(append);
            return state.insert(
                &id,
                QueuedJob {
                    key,
                    scope,
                    waits_for,
                    job,
                },
            );
        }
        self.wait(
            state,
            Some((id, waits_for)),
            key,
            scope,
            cancel,
            Job::Append(append),
        );
    }

    /// Writes, on this thread, the appends that wait for more appends.
    pub(crate) fn settle(self: &Arc<Self>) {
        let mut state = lock(&self.state);
        if state.held.is_empty() {
            return;
        }
        for id in std::mem::take(&mut state.held) {
            if let Some(queue) = state.queues.get_mut(&id) {
                queue.is_held = false;
            }
            let ready = state.next_jobs(self, &id);
            drop(state);
            ready.into_iter().for_each(Ready::begin);
            state = lock(&self.state);
        }
    }

    /// Takes a number for a request that names a file whose header has not been read.
    pub(crate) fn unnamed(self: &Arc<Self>, by: Asker, cancel: &Cancel) -> Unnamed<Q> {
        let mut state = lock(&self.state);
        let key = state.take_key(by, Scope::Open);
        state.headers.insert(key);
        Unnamed {
            queues: Arc::clone(self),
            key,
            cancel: cancel.clone(),
        }
    }

    /// Takes a number for an import. Later requests of its connection wait for the import if they open, delete or
    /// restore a session that is not open.
    pub(crate) fn import(self: &Arc<Self>, by: Asker) -> ImportPlace<Q> {
        let mut state = lock(&self.state);
        let key = state.take_key(by, Scope::Session);
        state.imports.insert(key);
        ImportPlace {
            queues: Arc::clone(self),
            key,
        }
    }

    /// Waits until all imports that the connection has submitted before this call have ended.
    pub(crate) fn imports_ended(
        self: &Arc<Self>,
        by: Asker,
    ) -> impl Future<Output = ()> + Send + use<Q> {
        let number = lock(&self.state).next;
        let now = JobKey { by, number };
        self.until(move |state| state.imports.range(now.earlier()).next().is_none())
    }

    /// The open session with this id, at once: the call does not wait in the queue.
    pub(crate) fn find(&self, id: &str) -> Option<Arc<Q::Open>> {
        lock(&self.state).queues.get(id)?.open.clone()
    }

    /// Whether the session is open for the connection.
    pub(crate) fn is_open_for(&self, connection: ConnectionId, id: &str) -> bool {
        let state = lock(&self.state);
        let queue = state.queues.get(id);
        queue.is_some_and(|queue| queue.access(Some(connection)).is_some())
    }

    /// The open session that a request of a connection names, at once: the call does not wait in the queue. Without an
    /// id, it is the only session that is open for the connection.
    pub(crate) fn find_now(&self, by: Asker, id: Option<&str>) -> Result<Arc<Q::Open>> {
        let state = lock(&self.state);
        let only;
        let id = match id {
            Some(id) => id,
            None => {
                only = state.only_open(by)?;
                &only
            }
        };
        let queue = state.queues.get(id);
        let open = queue.filter(|queue| queue.access(by).is_some());
        let open = open.and_then(|queue| queue.open.clone());
        open.ok_or_else(|| Error::session_not_found(id))
    }

    /// The sessions that are open for a connection; for `None`, all open sessions.
    pub(crate) fn all_open(&self, by: Asker) -> Vec<Arc<Q::Open>> {
        let state = lock(&self.state);
        let queues = state.queues.values();
        let queues = queues.filter(|queue| queue.access(by).is_some());
        queues.filter_map(|queue| queue.open.clone()).collect()
    }

    /// Waits until every job submitted before this call has ended.
    pub(crate) fn earlier_ended(self: &Arc<Self>) -> impl Future<Output = ()> + Send + use<Q> {
        let now = lock(&self.state).next;
        self.until(move |state| {
            let is_earlier = |number: u64| number < now;
            let unplaced = state
                .only
                .keys()
                .chain(&state.headers)
                .chain(&state.late_headers);
            !unplaced.map(|key| key.number).any(is_earlier)
                && !state.queues.values().any(|queue| {
                    let running = queue.running.as_ref().map(|running| running.key.number);
                    let first = queue.waiting.front().map(|waiting| waiting.key.number);
                    running.into_iter().chain(first).any(is_earlier)
                })
        })
    }

    /// Waits while an earlier job is running that creates, closes, deletes, restores or copies a session. Queued jobs
    /// do not count.
    pub(crate) fn changes_ended(self: &Arc<Self>) -> impl Future<Output = ()> + Send + use<Q> {
        let now = lock(&self.state).next;
        let is_change = move |running: &RunningJob| {
            running.key.number < now && !matches!(running.scope, Scope::Session | Scope::Open)
        };
        self.until(move |state| {
            let mut running = state
                .queues
                .values()
                .filter_map(|queue| queue.running.as_ref());
            !running.any(is_change)
        })
    }

    fn until<H: Fn(&State<Q>) -> bool + Send>(
        self: &Arc<Self>,
        holds: H,
    ) -> impl Future<Output = ()> + Send + use<Q, H> {
        let queues = Arc::clone(self);
        async move {
            let _observing = Observer::new(&queues.observers);
            loop {
                let mut ended = pin!(queues.ended.notified());
                ended.as_mut().enable();
                if holds(&lock(&queues.state)) {
                    return;
                }
                ended.await;
            }
        }
    }

    /// Keeps a job until its turn, or until it is cancelled.
    fn wait(
        self: &Arc<Self>,
        mut state: std::sync::MutexGuard<'_, State<Q>>,
        place: Option<(Arc<str>, WaitsFor)>,
        key: JobKey,
        scope: Scope,
        cancel: &Cancel,
        job: Job<Q>,
    ) {
        let mut ready = Vec::new();
        let id = match place {
            Some((id, waits_for)) => {
                state.insert(
                    &id,
                    QueuedJob {
                        key,
                        scope,
                        waits_for,
                        job,
                    },
                );
                // Appends that wait for more appends are released when another job is submitted after them.
                if let Some(queue) = state.queues.get_mut(&id)
                    && std::mem::take(&mut queue.is_held)
                {
                    ready = state.next_jobs(self, &id);
                }
                Some(id)
            }
            None => {
                let waits_for = WaitsFor::LateHeaders;
                state.only.insert(
                    key,
                    QueuedJob {
                        key,
                        scope,
                        waits_for,
                        job,
                    },
                );
                None
            }
        };
        drop(state);
        self.start(ready);
        let queues = Arc::downgrade(self);
        cancel.on_cancel(move || {
            if let Some(queues) = queues.upgrade() {
                queues.withdraw(id.as_deref(), key);
            }
        });
    }

    /// Answers a job with `cancelled` if it still waits.
    fn withdraw(self: &Arc<Self>, id: Option<&str>, key: JobKey) {
        let mut state = lock(&self.state);
        let mut found = state.only.remove(&key);
        // A job without an id may be in the queue of its session by now.
        let ids: Vec<Arc<str>> = match (&found, id) {
            (Some(_), _) => Vec::new(),
            (None, Some(id)) => vec![Arc::from(id)],
            (None, None) => state.queues.keys().cloned().collect(),
        };
        for id in ids {
            let Some(queue) = state.queues.get_mut(&id) else {
                continue;
            };
            if let Ok(at) = queue
                .waiting
                .binary_search_by_key(&key.number, |waiting| waiting.key.number)
            {
                found = queue.waiting.remove(at);
                state.forget_unused(&id);
            }
        }
        let Some(waiting) = found else {
            return;
        };
        state.registry.remove(&key);
        let ready = state.unblocked(self);
        drop(state);
        self.notify();
        waiting.fail(Error::cancelled()).begin();
        self.start(ready);
    }

    /// Starts the next job of the session.
    fn release(self: &Arc<Self>, id: &Arc<str>) {
        let mut state = lock(&self.state);
        let Some(running) = state
            .queues
            .get_mut(id)
            .and_then(|queue| queue.running.take())
        else {
            return;
        };
        let is_registry = running.scope != Scope::Session && state.registry.remove(&running.key);
        let ready = match is_registry {
            true => state.unblocked(self),
            false => state.next_jobs(self, id),
        };
        state.forget_unused(id);
        drop(state);
        self.notify();
        self.start(ready);
    }

    fn start(&self, ready: impl IntoIterator<Item = Ready<Q>>) {
        for ready in ready {
            (self.spawn)(Box::new(|| ready.begin()));
        }
    }

    fn notify(&self) {
        if self.observers.load(Ordering::Acquire) > 0 {
            self.ended.notify_waiters();
        }
    }
}

struct Observer<'a>(&'a AtomicUsize);

impl<'a> Observer<'a> {
    fn new(observers: &'a AtomicUsize) -> Self {
        observers.fetch_add(1, Ordering::AcqRel);
        Self(observers)
    }
}

impl Drop for Observer<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
