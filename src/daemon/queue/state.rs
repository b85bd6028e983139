//! The jobs that wait in the queues, and the choice of the next ones. All of this runs under the lock of the queues, so
//! it neither runs a job nor drops a lease.

use super::{Lease, Queues, Scope, Sessions, run_here};
use crate::error::{Error, Result};
use hashbrown::HashMap;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

pub(super) struct State<Q: Sessions> {
    /// Number of the next job. Jobs of one session run in the order of their numbers.
    pub(super) next: u64,
    pub(super) queues: HashMap<Arc<str>, Queue<Q>>,
    /// Jobs for the only open session, which is unknown until all earlier registry jobs end.
    pub(super) only: BTreeMap<u64, QueuedJob<Q>>,
    /// Requests for files whose header will be read soon.
    pub(super) headers: BTreeSet<u64>,
    /// Requests for files whose header takes long to find.
    pub(super) late_headers: BTreeSet<u64>,
    /// Jobs of another scope than `Session` that still run or wait.
    pub(super) registry: BTreeSet<u64>,
    /// Imports, which write files of sessions that are not open.
    pub(super) imports: BTreeSet<u64>,
    /// Queues whose appends wait for more appends.
    pub(super) held: Vec<Arc<str>>,
}

/// The queue of one session.
pub(super) struct Queue<Q: Sessions> {
    pub(super) open: Option<Arc<Q::Open>>,
    pub(super) running: Option<RunningJob>,
    /// Ascending by number.
    pub(super) waiting: VecDeque<QueuedJob<Q>>,
    pub(super) is_held: bool,
}

pub(super) struct RunningJob {
    pub(super) number: u64,
    pub(super) scope: Scope,
}

pub(super) struct QueuedJob<Q: Sessions> {
    pub(super) number: u64,
    pub(super) scope: Scope,
    pub(super) waits_for: WaitsFor,
    pub(super) job: Job<Q>,
}

pub(super) enum Job<Q: Sessions> {
    Append(Q::Append),
    Run(Run<Q>),
}

pub(super) type Run<Q> = Box<dyn FnOnce(Result<Lease<Q>>) + Send>;

/// The earlier requests that a job waits for because they may concern its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WaitsFor {
    Nothing,
    /// Requests that name no session.
    Only,
    /// Also requests for files whose header will be read soon.
    Headers,
    /// Also requests for files whose header takes long to find.
    LateHeaders,
}

/// A job that may begin, or that failed before it began.
pub(super) enum Ready<Q: Sessions> {
    Write(Lease<Q>, VecDeque<Q::Append>),
    Run(Result<Lease<Q>>, Run<Q>),
    Refuse(Q::Append, Error),
}

impl<Q: Sessions> State<Q> {
    pub(super) fn take_number(&mut self, scope: Scope) -> u64 {
        let number = self.next;
        self.next += 1;
        if scope != Scope::Session {
            self.registry.insert(number);
        }
        number
    }

    /// The queue that a request belongs to; `None` if earlier jobs must end first.
    pub(super) fn place(&mut self, id: Option<&str>, scope: Scope) -> Result<Option<Arc<str>>> {
        let Some(id) = id else {
            let earlier = self.registry.len() - usize::from(scope != Scope::Session);
            if earlier > 0 || !self.only.is_empty() {
                return Ok(None);
            }
            return self.only_open().map(Some);
        };
        if let Some((id, _)) = self.queues.get_key_value(id) {
            return Ok(Some(Arc::clone(id)));
        }
        if scope == Scope::Session && self.is_everything_placed() {
            return Err(Error::session_not_found(id));
        }
        let id: Arc<str> = Arc::from(id);
        self.queues.insert(Arc::clone(&id), Queue::new());
        Ok(Some(id))
    }

    pub(super) fn is_everything_placed(&self) -> bool {
        self.only.is_empty() && self.headers.is_empty() && self.late_headers.is_empty()
    }

    pub(super) fn only_open(&self) -> Result<Arc<str>> {
        let is_open = |(_, queue): &(&Arc<str>, &Queue<Q>)| queue.open.is_some();
        let mut open = self.queues.iter().filter(is_open).map(|(id, _)| id);
        match (open.next(), open.next()) {
            (Some(only), None) => Ok(Arc::clone(only)),
            (first, second) => {
                let count =
                    open.count() + usize::from(first.is_some()) + usize::from(second.is_some());
                let why = format!("is required while {count} sessions are open");
                Err(Error::invalid_params("sessionId", why))
            }
        }
    }

    pub(super) fn waits_for(&self, id: &str, scope: Scope) -> WaitsFor {
        match scope {
            Scope::CreateFresh => WaitsFor::Nothing,
            Scope::Open | Scope::Create => WaitsFor::Headers,
            // A file that is being opened belongs to another session.
            _ if self.queues.get(id).is_some_and(Queue::stays_open) => WaitsFor::Only,
            _ => WaitsFor::LateHeaders,
        }
    }

    /// Whether a job of this session must wait for earlier jobs outside its queue.
    pub(super) fn is_blocked(
        &self,
        id: &str,
        number: u64,
        scope: Scope,
        waits_for: WaitsFor,
    ) -> bool {
        let is_earlier = |first: Option<&u64>| first.is_some_and(|first| *first < number);
        if is_earlier(self.imports.first()) && matches!(scope, Scope::Open | Scope::Change) {
            let queue = self.queues.get(id);
            if queue.is_none_or(|queue| queue.open.is_none()) {
                return true;
            }
        }
        !self.is_everything_placed()
            && ((waits_for >= WaitsFor::Only && is_earlier(self.only.keys().next()))
                || (waits_for >= WaitsFor::Headers && is_earlier(self.headers.first()))
                || (waits_for >= WaitsFor::LateHeaders && is_earlier(self.late_headers.first())))
    }

    pub(super) fn is_idle(&self, id: &str) -> bool {
        let queue = self.queues.get(id);
        queue.is_some_and(|queue| queue.running.is_none() && queue.waiting.is_empty())
    }

    pub(super) fn insert(&mut self, id: &Arc<str>, waiting: QueuedJob<Q>) {
        let queue = self.queues.entry(Arc::clone(id)).or_insert_with(Queue::new);
        let at = queue
            .waiting
            .partition_point(|before| before.number < waiting.number);
        queue.waiting.insert(at, waiting);
    }

    /// Starts a job. `sessionNotFound` if it needs an open session and there is none.
    pub(super) fn lease(
        &mut self,
        queues: &Arc<Queues<Q>>,
        id: &Arc<str>,
        number: u64,
        scope: Scope,
    ) -> Result<Lease<Q>> {
        let not_found = || Error::session_not_found(id);
        let queue = self.queues.get_mut(id).ok_or_else(not_found)?;
        if scope == Scope::Session && queue.open.is_none() {
            return Err(not_found());
        }
        queue.running = Some(RunningJob { number, scope });
        Ok(Lease {
            queues: Arc::clone(queues),
            id: Arc::clone(id),
            open: queue.open.clone(),
        })
    }

    /// Takes the next job of a queue, if no job runs or blocks it, after those that fail because the session is not
    /// open.
    pub(super) fn next_jobs(&mut self, queues: &Arc<Queues<Q>>, id: &Arc<str>) -> Vec<Ready<Q>> {
        let mut ready = Vec::new();
        while let Some(queue) = self.queues.get(id)
            && queue.running.is_none()
            && !queue.is_held
            && let Some(next) = self.take_first(id)
        {
            let lease = self.lease(queues, id, next.number, next.scope);
            ready.push(match (next.job, lease) {
                (Job::Run(job), lease) => Ready::Run(lease, job),
                (Job::Append(append), Err(error)) => Ready::Refuse(append, error),
                (Job::Append(append), Ok(lease)) => {
                    let mut appends = VecDeque::from([append]);
                    appends.extend(std::iter::from_fn(|| self.take_append(id)));
                    Ready::Write(lease, appends)
                }
            });
        }
        ready
    }

    pub(super) fn take_first(&mut self, id: &str) -> Option<QueuedJob<Q>> {
        let first = self.queues.get(id)?.waiting.front()?;
        if self.is_blocked(id, first.number, first.scope, first.waits_for) {
            return None;
        }
        self.queues.get_mut(id)?.waiting.pop_front()
    }

    pub(super) fn take_append(&mut self, id: &str) -> Option<Q::Append> {
        let first = self.queues.get(id)?.waiting.front()?;
        if !matches!(first.job, Job::Append(_)) {
            return None;
        }
        match self.take_first(id)?.job {
            Job::Append(append) => Some(append),
            Job::Run(_) => None,
        }
    }

    /// Queues jobs whose session has become known, and takes every job that nothing blocks.
    pub(super) fn unblocked(&mut self, queues: &Arc<Queues<Q>>) -> Vec<Ready<Q>> {
        let mut ready = Vec::new();
        while let Some(number) = self.only.keys().next().copied()
            && self.registry.first().is_none_or(|first| *first >= number)
            && let Some(mut waiting) = self.only.remove(&number)
        {
            match self.only_open() {
                Ok(id) => {
                    waiting.waits_for = self.waits_for(&id, waiting.scope);
                    self.insert(&id, waiting);
                }
                Err(error) => {
                    self.registry.remove(&number);
                    ready.push(waiting.fail(error));
                }
            }
        }
        let first = |(id, queue): (&Arc<str>, &Queue<Q>)| {
            let first = queue.waiting.front().filter(|_| queue.running.is_none())?;
            Some((first.number, Arc::clone(id)))
        };
        let mut ids: Vec<_> = self.queues.iter().filter_map(first).collect();
        ids.sort_unstable();
        for (_, id) in ids {
            ready.extend(self.next_jobs(queues, &id));
            self.forget_unused(&id);
        }
        ready
    }

    pub(super) fn forget_unused(&mut self, id: &str) {
        let is_used = |queue: &Queue<Q>| {
            queue.open.is_some() || queue.running.is_some() || !queue.waiting.is_empty()
        };
        if self.queues.get(id).is_some_and(|queue| !is_used(queue)) {
            self.queues.remove(id);
        }
    }
}

impl<Q: Sessions> Queue<Q> {
    pub(super) fn new() -> Self {
        Self {
            open: None,
            running: None,
            waiting: VecDeque::new(),
            is_held: false,
        }
    }

    /// Whether the session is open and no waiting or running job may close it.
    pub(super) fn stays_open(&self) -> bool {
        let is_session = |scope: Scope| scope == Scope::Session;
        self.open.is_some()
            && self
                .running
                .as_ref()
                .is_none_or(|running| is_session(running.scope))
            && self.waiting.iter().all(|waiting| is_session(waiting.scope))
    }
}

impl<Q: Sessions> QueuedJob<Q> {
    pub(super) fn fail(self, error: Error) -> Ready<Q> {
        match self.job {
            Job::Append(append) => Ready::Refuse(append, error),
            Job::Run(job) => Ready::Run(Err(error), job),
        }
    }
}

impl<Q: Sessions> Ready<Q> {
    pub(super) fn begin(self) {
        run_here(|| match self {
            Self::Write(lease, appends) => Q::write(lease, appends),
            Self::Run(lease, job) => job(lease),
            Self::Refuse(append, error) => Q::refuse(append, error),
        });
    }
}
