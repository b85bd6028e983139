//! The queues, the jobs in them and the lease of a session. Their functions are in [`super::state`] and
//! [`super::lease`].

use super::openers::{Access, Openers};
use super::scope::{Asker, Scope};
use hashbrown::HashMap;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;
use treelined_core::error::{Error, Result};

/// The types that the queues work with.
pub(crate) trait Sessions: Sized + Send + Sync + 'static {
    /// An open session.
    type Open: Send + Sync + 'static;
    /// One append that waits to be written.
    type Append: Send + 'static;

    /// Writes adjacent appends of the queue.
    fn write(lease: Lease<Self>, appends: VecDeque<Self::Append>);

    /// Answers an append with an error, without writing it.
    fn refuse(append: Self::Append, error: Error);
}

/// Starts a job on another thread.
pub(crate) type Spawn = Box<dyn Fn(Box<dyn FnOnce() + Send>) + Send + Sync>;

/// The queues of all sessions.
pub(crate) struct Queues<Q: Sessions> {
    pub(super) state: Mutex<State<Q>>,
    pub(super) spawn: Spawn,
    /// The number of calls that wait in [`Self::until`].
    pub(super) observers: AtomicUsize,
    /// Notified when a job ends, if there are waiters.
    pub(super) ended: Notify,
}

pub(super) struct State<Q: Sessions> {
    /// The number of the next job. Jobs of one session run in the order of their numbers.
    pub(super) next: u64,
    pub(super) queues: HashMap<Arc<str>, Queue<Q>>,
    /// Jobs that name no session. Their session is unknown until all earlier registry jobs of their connection end.
    pub(super) only: BTreeMap<JobKey, QueuedJob<Q>>,
    /// Requests for files whose header will be read soon.
    pub(super) headers: BTreeSet<JobKey>,
    /// Requests for files whose header takes long to find.
    pub(super) late_headers: BTreeSet<JobKey>,
    /// Jobs with another scope than `Session` that still run or wait: registry jobs.
    pub(super) registry: BTreeSet<JobKey>,
    /// Imports. They write the files of sessions that are not open.
    pub(super) imports: BTreeSet<JobKey>,
    /// Queues whose appends wait for more appends.
    pub(super) held: Vec<Arc<str>>,
}

/// Identifies a job. The jobs of one connection are in order even if they concern several sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct JobKey {
    pub(super) by: Asker,
    pub(super) number: u64,
}

/// The queue of one session.
pub(super) struct Queue<Q: Sessions> {
    pub(super) open: Option<Arc<Q::Open>>,
    pub(super) openers: Openers,
    pub(super) running: Option<RunningJob>,
    /// Ascending by number.
    pub(super) waiting: VecDeque<QueuedJob<Q>>,
    pub(super) is_held: bool,
}

pub(super) struct RunningJob {
    pub(super) key: JobKey,
    pub(super) scope: Scope,
}

pub(super) struct QueuedJob<Q: Sessions> {
    pub(super) key: JobKey,
    pub(super) scope: Scope,
    pub(super) waits_for: WaitsFor,
    pub(super) job: Job<Q>,
}

pub(super) enum Job<Q: Sessions> {
    Append(Q::Append),
    Run(Run<Q>),
}

pub(super) type Run<Q> = Box<dyn FnOnce(Result<Lease<Q>>) + Send>;

/// The earlier requests that a job waits for, since they may concern its session. Each value includes the values above
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WaitsFor {
    Nothing,
    /// Requests that name no session.
    Only,
    /// Requests for files whose header will be read soon.
    Headers,
    /// Requests for files whose header takes long to find.
    LateHeaders,
}

/// A job that may begin, or a job that has failed before it began.
pub(super) enum Ready<Q: Sessions> {
    Write(Lease<Q>, VecDeque<Q::Append>),
    Run(Result<Lease<Q>>, Run<Q>),
    Refuse(Q::Append, Error),
}

/// The right to work on a session. Dropping the lease ends the right.
#[must_use]
pub(crate) struct Lease<Q: Sessions> {
    pub(super) queues: Arc<Queues<Q>>,
    pub(super) id: Arc<str>,
    /// `None` if the session is not open.
    pub(super) open: Option<Arc<Q::Open>>,
    /// The access of the job's connection at the beginning of the job; `None` if the session is not open for the
    /// connection.
    pub(super) access: Option<Access>,
}
