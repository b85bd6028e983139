//! One queue per session: requests about a session take effect in the order of their arrival (protocol.md §1),
//! and no request waits for another session.
//!
//! A job runs while it holds the [`Lease`] of its session; the next job of the session begins when the lease is
//! dropped, also by a panic. A job whose queue is empty runs on the thread that submits it, any other on the
//! runtime. Adjacent appends at the head of a queue are one job: one write and one sync. A job that waits for
//! a question drops its lease and submits itself again.
//!
//! A request that names no session, or a file whose header has not been read, may concern any session. It keeps
//! its number while later requests that may concern the same session wait, and gets its place in the queue of
//! its session by that number.

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::lock::lock;
use hashbrown::HashMap;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Instant;
use tokio::sync::{Notify, oneshot};

/// What the queues hold.
pub trait Sessions: Sized + Send + Sync + 'static {
    /// An open session.
    type Open: Send + Sync + 'static;
    /// One append that waits to be written.
    type Append: Send + 'static;

    /// Writes appends that followed each other in the queue.
    fn write(lease: Lease<Self>, appends: VecDeque<Self::Append>);

    /// Answers an append that is not carried out.
    fn refuse(append: Self::Append, error: Error);
}

/// What a job does to the set of open sessions and of session files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Nothing: it works on an open session, and fails with `sessionNotFound` if the session is not open.
    Session,
    /// Opens a session.
    Open,
    /// Creates a session with an id that a client may have chosen.
    Create,
    /// Creates a session with an id that no other request can name yet.
    CreateFresh,
    /// Closes, deletes, restores or copies a session.
    Change,
}

/// Starts a job on another thread.
pub type Spawn = Box<dyn Fn(Box<dyn FnOnce() + Send>) + Send + Sync>;

/// The queues of all sessions.
pub struct Queues<Q: Sessions> {
    state: Mutex<State<Q>>,
    spawn: Spawn,
    /// How many wait in [`Self::until`].
    observers: AtomicUsize,
    /// Notified when a job ends, if somebody observes.
    ended: Notify,
}

/// The right to work on a session, until dropped.
#[must_use]
pub struct Lease<Q: Sessions> {
    queues: Arc<Queues<Q>>,
    id: Arc<str>,
    /// `None` if the session is not open.
    open: Option<Arc<Q::Open>>,
}

/// A place in a queue: the lease, once it is this job's turn. Dropping it gives up the place.
#[must_use]
pub struct Place<Q: Sessions> {
    receiver: oneshot::Receiver<Result<Lease<Q>>>,
    /// When the place was taken.
    pub asked: Instant,
}

impl<Q: Sessions> Future for Place<Q> {
    type Output = Result<Lease<Q>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let lease = Pin::new(&mut self.receiver).poll(context);
        // A sender that is gone has been dropped with its job, at the end of the process.
        lease.map(|lease| lease.unwrap_or_else(|_| Err(Error::cancelled())))
    }
}

/// A request for the session of a file whose header has not been read.
#[must_use]
pub struct Unnamed<Q: Sessions> {
    queues: Arc<Queues<Q>>,
    number: u64,
    cancel: Cancel,
}

struct State<Q: Sessions> {
    /// Number of the next job. Jobs of one session run in the order of their numbers.
    next: u64,
    queues: HashMap<Arc<str>, Queue<Q>>,
    /// Jobs for the only open session, which is not known before all earlier registry jobs have ended.
    only: BTreeMap<u64, Waiting<Q>>,
    /// Requests for files whose header will have been read soon.
    headers: BTreeSet<u64>,
    /// Requests for files whose header takes long to find.
    late_headers: BTreeSet<u64>,
    /// Jobs of another scope than `Session` that have not ended.
    registry: BTreeSet<u64>,
    /// Queues whose appends wait for more appends.
    held: Vec<Arc<str>>,
}

/// The queue of one session.
struct Queue<Q: Sessions> {
    open: Option<Arc<Q::Open>>,
    running: Option<Running>,
    /// By number.
    waiting: VecDeque<Waiting<Q>>,
    is_held: bool,
}

struct Running {
    number: u64,
    scope: Scope,
}

struct Waiting<Q: Sessions> {
    number: u64,
    scope: Scope,
    waits_for: WaitsFor,
    job: Job<Q>,
}

enum Job<Q: Sessions> {
    Append(Q::Append),
    Run(Run<Q>),
}

type Run<Q> = Box<dyn FnOnce(Result<Lease<Q>>) + Send>;

/// Which earlier requests a job waits for because they may turn out to concern its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum WaitsFor {
    Nothing,
    /// Those that name no session.
    Only,
    /// And those for files whose header will have been read soon.
    Headers,
    /// And those for files whose header takes long to find.
    LateHeaders,
}

/// A job that may begin, or that has failed before it began.
enum Ready<Q: Sessions> {
    Write(Lease<Q>, VecDeque<Q::Append>),
    Run(Result<Lease<Q>>, Run<Q>),
    Refuse(Q::Append, Error),
}

impl<Q: Sessions> Queues<Q> {
    pub fn new(spawn: Spawn) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                next: 0,
                queues: HashMap::new(),
                only: BTreeMap::new(),
                headers: BTreeSet::new(),
                late_headers: BTreeSet::new(),
                registry: BTreeSet::new(),
                held: Vec::new(),
            }),
            spawn,
            observers: AtomicUsize::new(0),
            ended: Notify::new(),
        })
    }

    /// Runs `job` with the session's lease, after everything submitted for the session before; without an
    /// id with that of the only open session. The job gets an error if it is cancelled while it waits or
    /// if there is no such session.
    pub fn run(
        self: &Arc<Self>,
        id: Option<&str>,
        scope: Scope,
        cancel: &Cancel,
        job: impl FnOnce(Result<Lease<Q>>) + Send + 'static,
    ) {
        let mut state = lock(&self.state);
        let number = state.take_number(scope);
        let found = state.place(id, scope);
        let id = match found {
            Ok(Some(id)) => id,
            Ok(None) => {
                return self.wait(state, None, number, scope, cancel, Job::Run(Box::new(job)));
            }
            Err(error) => {
                state.registry.remove(&number);
                drop(state);
                return job(Err(error));
            }
        };
        let waits_for = state.waits_for(&id, scope);
        if !state.is_idle(&id) || state.is_blocked(number, waits_for) {
            return self.wait(
                state,
                Some((id, waits_for)),
                number,
                scope,
                cancel,
                Job::Run(Box::new(job)),
            );
        }
        let lease = state.lease(self, &id, number, scope);
        state.forget_unused(&id);
        drop(state);
        run_here(|| job(lease));
    }

    /// As [`Self::run`]; the lease comes to the place that this call takes in the queue.
    pub fn lease(self: &Arc<Self>, id: Option<&str>, scope: Scope, cancel: &Cancel) -> Place<Q> {
        let asked = Instant::now();
        let (sender, receiver) = oneshot::channel();
        self.run(id, scope, cancel, move |lease| {
            // A receiver that has been dropped drops the lease.
            let _gone = sender.send(lease);
        });
        Place { receiver, asked }
    }

    /// Writes an append in its place among the jobs of its session. If `holds`, it waits for more appends
    /// until [`Self::settle`] or until another job is submitted.
    pub fn append(
        self: &Arc<Self>,
        id: Option<&str>,
        cancel: &Cancel,
        append: Q::Append,
        holds: bool,
    ) {
        let scope = Scope::Session;
        let mut state = lock(&self.state);
        let number = state.take_number(scope);
        let id = match state.place(id, scope) {
            Ok(Some(id)) => id,
            Ok(None) => return self.wait(state, None, number, scope, cancel, Job::Append(append)),
            Err(error) => {
                drop(state);
                return Q::refuse(append, error);
            }
        };
        let waits_for = state.waits_for(&id, scope);
        let is_free = state.is_idle(&id) && !state.is_blocked(number, waits_for);
        if is_free && !holds {
            let lease = state.lease(self, &id, number, scope);
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
                Waiting {
                    number,
                    scope,
                    waits_for,
                    job,
                },
            );
        }
        self.wait(
            state,
            Some((id, waits_for)),
            number,
            scope,
            cancel,
            Job::Append(append),
        );
    }

    /// Writes the appends that wait for more, on this thread.
    pub fn settle(self: &Arc<Self>) {
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

    /// Takes a number for the session of a file, which is known once the file's header has been read.
    pub fn unnamed(self: &Arc<Self>, cancel: &Cancel) -> Unnamed<Q> {
        let mut state = lock(&self.state);
        let number = state.take_number(Scope::Open);
        state.headers.insert(number);
        Unnamed {
            queues: Arc::clone(self),
            number,
            cancel: cancel.clone(),
        }
    }

    /// The open session with this id, whatever waits in its queue.
    pub fn find(&self, id: &str) -> Option<Arc<Q::Open>> {
        lock(&self.state).queues.get(id)?.open.clone()
    }

    /// The open session that a request means, whatever waits in its queue: without an id the only one.
    pub fn find_now(&self, id: Option<&str>) -> Result<Arc<Q::Open>> {
        let state = lock(&self.state);
        let only;
        let id = match id {
            Some(id) => id,
            None => {
                only = state.only_open()?;
                &only
            }
        };
        let open = state.queues.get(id).and_then(|queue| queue.open.clone());
        open.ok_or_else(|| Error::session_not_found(id))
    }

    pub fn all_open(&self) -> Vec<Arc<Q::Open>> {
        let state = lock(&self.state);
        state
            .queues
            .values()
            .filter_map(|queue| queue.open.clone())
            .collect()
    }

    /// Waits until every job submitted before this call has ended.
    pub async fn earlier_ended(&self) {
        let now = lock(&self.state).next;
        let is_earlier = |number: u64| number < now;
        self.until(|state| {
            let unplaced = state
                .only
                .keys()
                .chain(&state.headers)
                .chain(&state.late_headers);
            !unplaced.copied().any(is_earlier)
                && !state.queues.values().any(|queue| {
                    let running = queue.running.as_ref().map(|running| running.number);
                    let first = queue.waiting.front().map(|waiting| waiting.number);
                    running.into_iter().chain(first).any(is_earlier)
                })
        })
        .await;
    }

    /// Waits until the jobs have ended that run now and change a list of all sessions.
    pub async fn changes_ended(&self) {
        let now = lock(&self.state).next;
        let is_change = |running: &Running| {
            running.number < now && !matches!(running.scope, Scope::Session | Scope::Open)
        };
        self.until(|state| {
            let mut running = state
                .queues
                .values()
                .filter_map(|queue| queue.running.as_ref());
            !running.any(is_change)
        })
        .await;
    }

    async fn until(&self, holds: impl Fn(&State<Q>) -> bool) {
        let _observing = Observing::new(&self.observers);
        loop {
            let mut ended = pin!(self.ended.notified());
            ended.as_mut().enable();
            if holds(&lock(&self.state)) {
                return;
            }
            ended.await;
        }
    }

    /// Keeps a job until its turn, or until it is cancelled.
    fn wait(
        self: &Arc<Self>,
        mut state: std::sync::MutexGuard<'_, State<Q>>,
        place: Option<(Arc<str>, WaitsFor)>,
        number: u64,
        scope: Scope,
        cancel: &Cancel,
        job: Job<Q>,
    ) {
        let mut ready = Vec::new();
        let id = match place {
            Some((id, waits_for)) => {
                state.insert(
                    &id,
                    Waiting {
                        number,
                        scope,
                        waits_for,
                        job,
                    },
                );
                // A job releases the appends that are held before it.
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
                    number,
                    Waiting {
                        number,
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
                queues.withdraw(id.as_deref(), number);
            }
        });
    }

    /// Answers a job with `cancelled` if it still waits.
    fn withdraw(self: &Arc<Self>, id: Option<&str>, number: u64) {
        let mut state = lock(&self.state);
        let mut found = state.only.remove(&number);
        // Without an id it may have got its place in a queue since.
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
                .binary_search_by_key(&number, |waiting| waiting.number)
            {
                found = queue.waiting.remove(at);
                state.forget_unused(&id);
            }
        }
        let Some(waiting) = found else {
            return;
        };
        state.registry.remove(&number);
        let ready = state.unblocked(self);
        drop(state);
        self.notify();
        waiting.fail(Error::cancelled()).begin();
        self.start(ready);
    }

    /// Gives the session to its next job.
    fn release(self: &Arc<Self>, id: &Arc<str>) {
        let mut state = lock(&self.state);
        let Some(running) = state
            .queues
            .get_mut(id)
            .and_then(|queue| queue.running.take())
        else {
            return;
        };
        let is_registry = running.scope != Scope::Session && state.registry.remove(&running.number);
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

impl<Q: Sessions> State<Q> {
    fn take_number(&mut self, scope: Scope) -> u64 {
        let number = self.next;
        self.next += 1;
        if scope != Scope::Session {
            self.registry.insert(number);
        }
        number
    }

    /// The queue that a request belongs to; `None` if that is not known before earlier jobs have ended.
    fn place(&mut self, id: Option<&str>, scope: Scope) -> Result<Option<Arc<str>>> {
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

    fn is_everything_placed(&self) -> bool {
        self.only.is_empty() && self.headers.is_empty() && self.late_headers.is_empty()
    }

    fn only_open(&self) -> Result<Arc<str>> {
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

    fn waits_for(&self, id: &str, scope: Scope) -> WaitsFor {
        match scope {
            Scope::CreateFresh => WaitsFor::Nothing,
            Scope::Open | Scope::Create => WaitsFor::Headers,
            // Files that are being opened are those of other sessions.
            _ if self.queues.get(id).is_some_and(Queue::stays_open) => WaitsFor::Only,
            _ => WaitsFor::LateHeaders,
        }
    }

    fn is_blocked(&self, number: u64, waits_for: WaitsFor) -> bool {
        let is_earlier = |first: Option<&u64>| first.is_some_and(|first| *first < number);
        !self.is_everything_placed()
            && ((waits_for >= WaitsFor::Only && is_earlier(self.only.keys().next()))
                || (waits_for >= WaitsFor::Headers && is_earlier(self.headers.first()))
                || (waits_for >= WaitsFor::LateHeaders && is_earlier(self.late_headers.first())))
    }

    fn is_idle(&self, id: &str) -> bool {
        let queue = self.queues.get(id);
        queue.is_some_and(|queue| queue.running.is_none() && queue.waiting.is_empty())
    }

    fn insert(&mut self, id: &Arc<str>, waiting: Waiting<Q>) {
        let queue = self.queues.entry(Arc::clone(id)).or_insert_with(Queue::new);
        let at = queue
            .waiting
            .partition_point(|before| before.number < waiting.number);
        queue.waiting.insert(at, waiting);
    }

    /// Has a job begin. `sessionNotFound` if it needs an open session and there is none.
    fn lease(
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
        queue.running = Some(Running { number, scope });
        Ok(Lease {
            queues: Arc::clone(queues),
            id: Arc::clone(id),
            open: queue.open.clone(),
        })
    }

    /// Takes the next job of a queue, if none runs there and nothing is in its way, and before it those that
    /// fail because the session is not open.
    fn next_jobs(&mut self, queues: &Arc<Queues<Q>>, id: &Arc<str>) -> Vec<Ready<Q>> {
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

    fn take_first(&mut self, id: &str) -> Option<Waiting<Q>> {
        let first = self.queues.get(id)?.waiting.front()?;
        if self.is_blocked(first.number, first.waits_for) {
            return None;
        }
        self.queues.get_mut(id)?.waiting.pop_front()
    }

    fn take_append(&mut self, id: &str) -> Option<Q::Append> {
        let first = self.queues.get(id)?.waiting.front()?;
        if !matches!(first.job, Job::Append(_)) {
            return None;
        }
        match self.take_first(id)?.job {
            Job::Append(append) => Some(append),
            Job::Run(_) => None,
        }
    }

    /// Places jobs whose session is known by now, and takes every job that nothing is in the way of.
    fn unblocked(&mut self, queues: &Arc<Queues<Q>>) -> Vec<Ready<Q>> {
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

    fn forget_unused(&mut self, id: &str) {
        let is_used = |queue: &Queue<Q>| {
            queue.open.is_some() || queue.running.is_some() || !queue.waiting.is_empty()
        };
        if self.queues.get(id).is_some_and(|queue| !is_used(queue)) {
            self.queues.remove(id);
        }
    }
}

impl<Q: Sessions> Queue<Q> {
    fn new() -> Self {
        Self {
            open: None,
            running: None,
            waiting: VecDeque::new(),
            is_held: false,
        }
    }

    /// Whether the session is open and no job waits or runs that may close it.
    fn stays_open(&self) -> bool {
        let is_session = |scope: Scope| scope == Scope::Session;
        self.open.is_some()
            && self
                .running
                .as_ref()
                .is_none_or(|running| is_session(running.scope))
            && self.waiting.iter().all(|waiting| is_session(waiting.scope))
    }
}

impl<Q: Sessions> Waiting<Q> {
    fn fail(self, error: Error) -> Ready<Q> {
        match self.job {
            Job::Append(append) => Ready::Refuse(append, error),
            Job::Run(job) => Ready::Run(Err(error), job),
        }
    }
}

impl<Q: Sessions> Ready<Q> {
    fn begin(self) {
        run_here(|| match self {
            Self::Write(lease, appends) => Q::write(lease, appends),
            Self::Run(lease, job) => job(lease),
            Self::Refuse(append, error) => Q::refuse(append, error),
        });
    }
}

/// Runs a job. One that panics has dropped its lease and its answer by the time this returns.
fn run_here(job: impl FnOnce()) {
    let _logged_by_the_panic_hook = catch_unwind(AssertUnwindSafe(job));
}

impl<Q: Sessions> Lease<Q> {
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// The session, if it is open.
    pub fn open(&self) -> Option<&Arc<Q::Open>> {
        self.open.as_ref()
    }

    /// Opens the session, or closes it with `None`. Later jobs find it so.
    pub fn set_open(&mut self, open: Option<Arc<Q::Open>>) {
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
    /// Lets other sessions be opened meanwhile, since the header takes long to find.
    pub fn header_is_late(&self) {
        let mut state = lock(&self.queues.state);
        if !state.headers.remove(&self.number) {
            return;
        }
        state.late_headers.insert(self.number);
        let ready = state.unblocked(&self.queues);
        drop(state);
        self.queues.start(ready);
    }

    /// The lease of the file's session, in the place that this request has by its arrival.
    pub fn lease(self, id: &str) -> Place<Q> {
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
            Waiting {
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

struct Observing<'a>(&'a AtomicUsize);

impl<'a> Observing<'a> {
    fn new(observers: &'a AtomicUsize) -> Self {
        observers.fetch_add(1, Ordering::AcqRel);
        Self(observers)
    }
}

impl Drop for Observing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
