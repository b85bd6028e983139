//! The jobs that wait in the queues, and the choice of the next jobs. The lock of the queues is held here, so this code
//! neither runs a job nor drops a lease.

use super::openers::{Access, Openers};
use super::scope::{Asker, Scope};
use super::types::{
    Job, JobKey, Lease, Queue, QueuedJob, Queues, Ready, RunningJob, Sessions, State, WaitsFor,
};
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use treelined_core::error::{Error, Kind, Result};

impl JobKey {
    /// The keys of the same connection's earlier jobs.
    pub(super) fn earlier(self) -> Range<JobKey> {
        let by = self.by;
        JobKey { by, number: 0 }..self
    }

    /// The keys of all jobs of a connection.
    fn all(by: Asker) -> Range<JobKey> {
        let number = u64::MAX;
        JobKey { by, number }.earlier()
    }
}

impl<Q: Sessions> State<Q> {
    pub(super) fn take_key(&mut self, by: Asker, scope: Scope) -> JobKey {
        let key = JobKey {
            by,
            number: self.next,
        };
        self.next += 1;
        if scope != Scope::Session {
            self.registry.insert(key);
        }
        key
    }

    /// The queue of a request; `None` if earlier jobs of its connection must end before the queue is known.
    pub(super) fn place(
        &mut self,
        id: Option<&str>,
        key: JobKey,
        scope: Scope,
    ) -> Result<Option<Arc<str>>> {
        let Some(id) = id else {
            let mut earlier = self.registry.range(key.earlier());
            if earlier.next().is_some() || self.has_unplaced_only(key.by) {
                return Ok(None);
            }
            return self.only_open(key.by).map(Some);
        };
        if let Some((id, _)) = self.queues.get_key_value(id) {
            return Ok(Some(Arc::clone(id)));
        }
        if scope == Scope::Session && self.is_everything_placed(key.by) {
            return Err(Error::session_not_found(id));
        }
        let id: Arc<str> = Arc::from(id);
        self.queues.insert(Arc::clone(&id), Queue::new());
        Ok(Some(id))
    }

    fn has_unplaced_only(&self, by: Asker) -> bool {
        !self.only.is_empty() && self.only.range(JobKey::all(by)).next().is_some()
    }

    /// Whether the session of each job of the connection is known.
    fn is_everything_placed(&self, by: Asker) -> bool {
        let has = |keys: &BTreeSet<JobKey>| keys.range(JobKey::all(by)).next().is_some();
        self.is_every_job_placed()
            || !(self.has_unplaced_only(by) || has(&self.headers) || has(&self.late_headers))
    }

    fn is_every_job_placed(&self) -> bool {
        self.only.is_empty() && self.headers.is_empty() && self.late_headers.is_empty()
    }

    /// The only session that is open for the connection.
    pub(super) fn only_open(&self, by: Asker) -> Result<Arc<str>> {
        let is_open = |(_, queue): &(&Arc<str>, &Queue<Q>)| queue.access(by).is_some();
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

    pub(super) fn waits_for(&self, id: &str, by: Asker, scope: Scope) -> WaitsFor {
        match scope {
            Scope::CreateFresh => WaitsFor::Nothing,
            Scope::Open | Scope::Create => WaitsFor::Headers,
            // The session stays open, so a file that is being opened cannot change what this job finds.
            _ if self
                .queues
                .get(id)
                .is_some_and(|queue| queue.stays_open(by)) =>
            {
                WaitsFor::Only
            }
            _ => WaitsFor::LateHeaders,
        }
    }

    /// Whether a job of this session must wait for earlier jobs of its connection that are not in its queue.
    pub(super) fn is_blocked(
        &self,
        id: &str,
        key: JobKey,
        scope: Scope,
        waits_for: WaitsFor,
    ) -> bool {
        let has = |keys: &BTreeSet<JobKey>| keys.range(key.earlier()).next().is_some();
        if matches!(scope, Scope::Open | Scope::Change) && has(&self.imports) {
            let queue = self.queues.get(id);
            if queue.is_none_or(|queue| queue.open.is_none()) {
                return true;
            }
        }
        !self.is_every_job_placed()
            && ((waits_for >= WaitsFor::Only && self.only.range(key.earlier()).next().is_some())
                || (waits_for >= WaitsFor::Headers && has(&self.headers))
                || (waits_for >= WaitsFor::LateHeaders && has(&self.late_headers)))
    }

    pub(super) fn is_idle(&self, id: &str) -> bool {
        let queue = self.queues.get(id);
        queue.is_some_and(|queue| queue.running.is_none() && queue.waiting.is_empty())
    }

    pub(super) fn insert(&mut self, id: &Arc<str>, waiting: QueuedJob<Q>) {
        let queue = self.queues.entry(Arc::clone(id)).or_insert_with(Queue::new);
        let at = queue
            .waiting
            .partition_point(|before| before.key.number < waiting.key.number);
        queue.waiting.insert(at, waiting);
    }

    /// Starts a job. Fails with `sessionNotFound` if the job needs a session that is open for its connection and there
    /// is none. Fails with `readOnly` if the job needs more access than its connection has.
    pub(super) fn lease(
        &mut self,
        queues: &Arc<Queues<Q>>,
        id: &Arc<str>,
        key: JobKey,
        scope: Scope,
        needs: Access,
    ) -> Result<Lease<Q>> {
        let not_found = || Error::session_not_found(id);
        let queue = self.queues.get_mut(id).ok_or_else(not_found)?;
        let access = queue.access(key.by);
        match access {
            None if scope == Scope::Session => return Err(not_found()),
            Some(access) if access < needs => return Err(read_only()),
            _ => {}
        }
        queue.running = Some(RunningJob { key, scope });
        Ok(Lease {
            queues: Arc::clone(queues),
            id: Arc::clone(id),
            open: queue.open.clone(),
            access,
        })
    }

    /// Takes the next job of a queue, unless another job runs or blocks it. Before that job, takes the jobs that fail
    /// because the session is not open.
    pub(super) fn next_jobs(&mut self, queues: &Arc<Queues<Q>>, id: &Arc<str>) -> Vec<Ready<Q>> {
        let mut ready = Vec::new();
        while let Some(queue) = self.queues.get(id)
            && queue.running.is_none()
            && !queue.is_held
            && let Some(next) = self.take_first(id)
        {
            let lease = self.lease(queues, id, next.key, next.scope, next.job.needs());
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
        if self.is_blocked(id, first.key, first.scope, first.waits_for) {
            return None;
        }
        self.queues.get_mut(id)?.waiting.pop_front()
    }

    pub(super) fn take_append(&mut self, id: &str) -> Option<Q::Append> {
        let queue = self.queues.get(id)?;
        let first = queue.waiting.front()?;
        let may_write = queue.access(first.key.by) == Some(Access::Write);
        if !matches!(first.job, Job::Append(_)) || !may_write {
            return None;
        }
        match self.take_first(id)?.job {
            Job::Append(append) => Some(append),
            Job::Run(_) => None,
        }
    }

    /// Moves jobs to their queue if their session is known now, and takes every job that nothing blocks.
    pub(super) fn unblocked(&mut self, queues: &Arc<Queues<Q>>) -> Vec<Ready<Q>> {
        let mut ready = Vec::new();
        while let Some(key) = self.next_only()
            && let Some(mut waiting) = self.only.remove(&key)
        {
            match self.only_open(key.by) {
                Ok(id) => {
                    waiting.waits_for = self.waits_for(&id, key.by, waiting.scope);
                    self.insert(&id, waiting);
                }
                Err(error) => {
                    self.registry.remove(&key);
                    ready.push(waiting.fail(error));
                }
            }
        }
        let first = |(id, queue): (&Arc<str>, &Queue<Q>)| {
            let first = queue.waiting.front().filter(|_| queue.running.is_none())?;
            Some((first.key.number, Arc::clone(id)))
        };
        let mut ids: Vec<_> = self.queues.iter().filter_map(first).collect();
        ids.sort_unstable();
        for (_, id) in ids {
            ready.extend(self.next_jobs(queues, &id));
            self.forget_unused(&id);
        }
        ready
    }

    /// The first job of a connection that waits for its only open session. The session is known if no earlier registry
    /// job of the connection runs or waits.
    fn next_only(&self) -> Option<JobKey> {
        let mut last = None;
        let mut first_jobs = self.only.keys().filter(|key| {
            let is_first = last != Some(key.by);
            last = Some(key.by);
            is_first
        });
        let found = first_jobs.find(|key| self.registry.range(key.earlier()).next().is_none());
        found.copied()
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
            openers: Openers::default(),
            running: None,
            waiting: VecDeque::new(),
            is_held: false,
        }
    }

    /// The access of a connection; `None` if the session is not open for it. The daemon's own jobs have full access to
    /// an open session.
    pub(super) fn access(&self, by: Asker) -> Option<Access> {
        match by {
            Some(connection) => self.openers.access(connection),
            None => self.open.is_some().then_some(Access::Write),
        }
    }

    /// Whether the session is open for the connection, and no waiting or running job can close it.
    pub(super) fn stays_open(&self, by: Asker) -> bool {
        let is_session = |scope: Scope| scope == Scope::Session;
        self.access(by).is_some()
            && self
                .running
                .as_ref()
                .is_none_or(|running| is_session(running.scope))
            && self.waiting.iter().all(|waiting| is_session(waiting.scope))
    }
}

impl<Q: Sessions> Job<Q> {
    pub(super) fn needs(&self) -> Access {
        match self {
            Self::Append(_) => Access::Write,
            Self::Run(_) => Access::Read,
        }
    }
}

/// The error of a change by a connection that has opened the session for reading.
pub(super) fn read_only() -> Error {
    Error::new(Kind::ReadOnly, "the session is open for reading only")
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

/// Runs a job. If the job panics, its lease and its answer are dropped before this function returns.
pub(super) fn run_here(job: impl FnOnce()) {
    let _logged_by_the_panic_hook = catch_unwind(AssertUnwindSafe(job));
}
