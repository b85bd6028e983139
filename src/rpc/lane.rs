//! The append lane of a session (storage.md §3): appends that wait together are written together, in one
//! write and with one sync, each checked as if those before it had been written already.
//!
//! Appends come this way; what needs the turn for itself (a move, a summary, a fork) takes it, and the
//! order in which all of them were asked for is kept.

use super::append::Appended;
use super::convert;
use super::server::{Call, OpenSession, Server};
use crate::cancel::Cancel;
use crate::durability::Durability;
use crate::error::{Error, Kind, Result};
use crate::flow::PlannedLines;
use crate::flow::append::{NewEntry, Planner};
use crate::id::{EntryId, ExpectedLeaf, Source};
use crate::lock::lock;
use crate::session::commit::{CommitOutcome, Work, landed_in_part, still_waits};
use crate::session::sync::RepeatedEntries;
use crate::session::{Changes, SessionGuard, SessionState};
use futures_util::FutureExt;
use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::thread::{self, ThreadId};
use std::time::Instant;
use tokio::sync::oneshot;

/// Once this much is to be written, what follows goes into the next write, in bytes.
const MAX_WRITE_BYTES: usize = 1 << 20;

/// More than this is not written on the thread that reads requests, in bytes. As much as is gathered.
const INLINE_BATCH_BYTES: u64 = 256 << 10;

/// The appends of a session that have not begun.
#[derive(Default)]
pub struct Lane(Mutex<VecDeque<Group>>);

/// Appends between which nothing else was asked for. Each group takes one turn, in their order.
struct Group {
    requests: Vec<Request>,
    /// [`crate::session::Session::turns_asked`] when the group was begun.
    turns_asked: u64,
}

/// Appends of one request: one operation.
struct Request {
    entries: Vec<NewEntry>,
    expected: ExpectedLeaf,
    cancel: Cancel,
    asked: Instant,
    answer: oneshot::Sender<Result<Appended>>,
}

/// Sessions with groups that have not asked for their turn, since more may be on its way.
#[derive(Default)]
pub struct Gathering(Mutex<Option<Held>>);

struct Held {
    /// The thread that reads. What asks from another one has waited, and behind it others may follow
    /// that ask for the turn at once.
    reader: ThreadId,
    sessions: Vec<Arc<OpenSession>>,
}

/// Appends entries as one operation, after all that was asked of the session before.
pub(super) async fn append(
    call: &Call,
    session_id: Option<&str>,
    expected: ExpectedLeaf,
    entries: Vec<NewEntry>,
) -> Result<Appended> {
    let server = &call.server;
    let (open, ahead) = server.find_in_order(session_id, &call.cancel).await?;
    open.session.check_writable()?;
    let (answer, answered) = oneshot::channel();
    let request = Request {
        entries,
        expected,
        cancel: call.cancel.clone(),
        asked: Instant::now(),
        answer,
    };
    if open.lane.join(request, open.session.turns_asked()) && !server.gathering.hold(&open) {
        start(server, &open);
    }
    drop(ahead);
    match call.cancel.guard(answered).await? {
        Ok(appended) => appended,
        Err(_) => Err(Error::new(
            Kind::InternalError,
            "the append was not carried out",
        )),
    }
}

impl Lane {
    /// Joins the last group unless something else was asked for since; true if that made a new one.
    fn join(&self, request: Request, turns_asked: u64) -> bool {
        let mut groups = lock(&self.0);
        if let Some(last) = groups.back_mut()
            && last.turns_asked == turns_asked
        {
            last.requests.push(request);
            return false;
        }
        groups.push_back(Group {
            requests: vec![request],
            turns_asked,
        });
        true
    }
}

impl Gathering {
    /// Has appends that begin on this thread wait until [`Server::stop_gathering`].
    pub fn begin(&self) {
        lock(&self.0).get_or_insert_with(|| Held {
            reader: thread::current().id(),
            sessions: Vec::new(),
        });
    }

    /// Whether the session's group is started later.
    fn hold(&self, open: &Arc<OpenSession>) -> bool {
        match &mut *lock(&self.0) {
            Some(held) if held.reader == thread::current().id() => {
                held.sessions.push(Arc::clone(open));
                true
            }
            _ => false,
        }
    }
}

impl Server {
    /// Begins what was gathered.
    pub fn stop_gathering(self: &Arc<Self>) {
        let held = lock(&self.gathering.0).take();
        for open in held.into_iter().flat_map(|held| held.sessions) {
            start(self, &open);
        }
    }
}

/// Asks for the turn of the session's next group, and carries it out on this thread if nothing has to
/// be waited for.
fn start(server: &Arc<Server>, open: &Arc<OpenSession>) {
    let run = run(Arc::clone(server), Arc::clone(open));
    // Those whose append is lost in a panic are told by their channel.
    at_once_or_later(AssertUnwindSafe(run).catch_unwind().map(drop));
}

/// Polls once here, and leaves the rest to the runtime.
fn at_once_or_later(work: impl Future<Output = ()> + Send + 'static) {
    let mut work: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(work);
    let mut context = Context::from_waker(Waker::noop());
    if work.as_mut().poll(&mut context).is_pending() {
        tokio::spawn(work);
    }
}

async fn run(server: Arc<Server>, open: Arc<OpenSession>) {
    let turn = open.session.next_turn().await;
    let Some(group) = lock(&open.lane.0).pop_front() else {
        return;
    };
    let mut turn = match turn {
        Ok(turn) => turn,
        Err(error) => {
            for request in group.requests {
                request.answer(Err(error.clone()));
            }
            return;
        }
    };
    let mut batch = Batch {
        source: Arc::clone(&server.source),
        waiting: group.requests.into(),
        planned: Vec::new(),
    };
    loop {
        // An earlier append is not durable: told to the next one, once.
        while let Err(error) = open.session.syncer.check() {
            if let Some(request) = batch.waiting.pop_front() {
                request.answer(Err(error));
            }
        }
        if batch.waiting.is_empty() {
            return;
        }
        let name_before = turn.tree.name().map(str::to_owned);
        let Ok((ours, rest, changes, committed)) = turn.carry_out(batch).await else {
            return;
        };
        (turn, batch) = (ours, rest);
        if let Err(error) = &committed {
            open.session.note_failed_making(&turn, error);
        }
        let written = batch.written(committed);
        let finish = tell(
            &server,
            &open,
            &mut turn,
            changes,
            written,
            name_before.as_deref(),
        );
        if batch.waiting.is_empty() {
            drop(turn);
            return finish.await;
        }
        at_once_or_later(finish);
    }
}

/// Tells of what was written. What comes back syncs it by the session's policy, then answers.
fn tell(
    server: &Arc<Server>,
    open: &Arc<OpenSession>,
    turn: &mut SessionGuard,
    changes: Changes,
    written: Written,
    name_before: Option<&str>,
) -> impl Future<Output = ()> + Send + use<> {
    let wrote = !changes.own.is_empty();
    // What is told from here on is told once it is on disk: persist, then notify.
    let durability = open.session.syncer.durability();
    let held = (wrote && durability == Durability::Always).then(|| open.hold(server));
    server.announce_each(open, turn, changes, &written.ends, name_before);
    server.watch_predecessors(open, turn);
    let (server, open) = (Arc::clone(server), Arc::clone(open));
    async move {
        let late = {
            let (server, open) = (Arc::clone(&server), Arc::clone(&open));
            move || server.durability_lost(&open)
        };
        let synced = match written.unsynced {
            Some(file) => {
                open.session
                    .syncer
                    .after_write(durability, file, late)
                    .await
            }
            None => Ok(()),
        };
        drop(held);
        if synced.is_err() && !written.outcomes.iter().any(|(_, done, _)| done.wrote()) {
            // What was carried over from a file that had been replaced.
            server.durability_lost(&open);
        }
        let (repeated, first): (Vec<_>, Vec<_>) = written
            .outcomes
            .into_iter()
            .partition(|(_, _, repeated)| repeated.is_some());
        for (request, done, _) in first {
            let synced = if done.wrote() { synced.clone() } else { Ok(()) };
            request.answer(appended(done, durability, synced));
        }
        // What has been sent again waits for its sync as it did the first time.
        for (request, done, repeated) in repeated {
            let late = {
                let (server, open) = (Arc::clone(&server), Arc::clone(&open));
                move || server.durability_lost(&open)
            };
            let synced = match (repeated, &synced) {
                (_, Err(error)) if done.wrote() => Err(error.clone()),
                (Some(entries), _) => {
                    let syncer = &open.session.syncer;
                    syncer.after_repetition(durability, entries, late).await
                }
                (None, _) => Ok(()),
            };
            request.answer(appended(done, durability, synced));
        }
    }
}

fn appended(done: Outcome, durability: Durability, synced: Result<()>) -> Result<Appended> {
    match done {
        Outcome::Failed(error) => Err(error),
        Outcome::Written(ids) | Outcome::Known(ids) => synced.map(|()| Appended {
            entry_ids: ids.iter().map(|id| id.as_str().to_owned()).collect(),
            durability: convert::durability(durability),
        }),
    }
}

impl Request {
    fn answer(self, answer: Result<Appended>) {
        // Who was cancelled meanwhile is gone.
        let _gone = self.answer.send(answer);
    }

    /// Plans this operation after those that `planner` has planned; `None` if it has to wait until
    /// they are written.
    fn plan(
        &self,
        core: &SessionState,
        planner: &mut Planner<'_>,
        is_last: bool,
    ) -> Result<Option<PlannedLines>> {
        let stored = |node| core.entry(node);
        let planned = planner.plan(&self.entries, &stored);
        match &planned {
            Ok(None) => return Ok(None),
            // A retry has moved the leaf itself.
            Ok(Some(planned)) if planned.lines.is_empty() => {}
            _ => match (&self.expected, planner.last()) {
                (ExpectedLeaf::Any, _) => {}
                (ExpectedLeaf::At(expected), Some(last)) if expected == last => {}
                (_, Some(_)) => return Ok(None),
                (expected, None) => core.check_expected_leaf(expected)?,
            },
        }
        // From here on it cannot be cancelled any more.
        if !self.cancel.commit() {
            return Err(Error::cancelled());
        }
        match &planned {
            Ok(Some(planned)) if !is_last => planner.accept(&self.entries, planned),
            _ => {}
        }
        planned
    }
}

/// Appends on their way into the file together.
struct Batch {
    source: Arc<dyn Source>,
    waiting: VecDeque<Request>,
    /// Of the first that wait.
    planned: Vec<Result<Part>>,
}

/// What one operation has in a batch.
struct Part {
    entry_ids: Vec<EntryId>,
    /// Those that are in the file already.
    known_ids: Vec<EntryId>,
    /// Where these are.
    repeated: Option<RepeatedEntries>,
    lines: usize,
    /// Lines of the batch up to its end.
    end: usize,
}

impl Work for Batch {
    fn is_large(&self) -> bool {
        let entries = self.waiting.iter().flat_map(|request| &request.entries);
        let bytes = entries.map(|entry| entry.members.len() as u64);
        bytes.sum::<u64>() > INLINE_BATCH_BYTES
    }

    fn plan(&mut self, core: &SessionState) -> Result<PlannedLines> {
        let mut planner = Planner::new(&core.tree, &*self.source);
        let mut all = PlannedLines::default();
        let mut bytes = 0;
        for (index, request) in self.waiting.iter().enumerate() {
            let is_last = index + 1 == self.waiting.len();
            if bytes >= MAX_WRITE_BYTES {
                break;
            }
            let planned = match request.plan(core, &mut planner, is_last) {
                Ok(Some(planned)) => planned,
                Ok(None) => break,
                Err(error) => {
                    self.planned.push(Err(error));
                    continue;
                }
            };
            bytes += planned.lines.iter().map(Vec::len).sum::<usize>();
            let lines = planned.lines.len();
            let known_ids = match planned.entry_ids.len() == lines {
                true => Vec::new(),
                false => {
                    let known = |id: &&EntryId| core.tree.find_any(id.as_str()).is_some();
                    planned.entry_ids.iter().filter(known).cloned().collect()
                }
            };
            let repeated = match core.repeated(known_ids.iter()) {
                Ok(repeated) => repeated,
                Err(error) => {
                    self.planned.push(Err(error));
                    continue;
                }
            };
            all.lines.extend(planned.lines);
            all.ends.push(all.lines.len());
            self.planned.push(Ok(Part {
                entry_ids: planned.entry_ids,
                known_ids,
                repeated,
                lines,
                end: all.lines.len(),
            }));
        }
        Ok(all)
    }

    /// Each waits its own time.
    fn wait(&mut self, contended_since: Option<Instant>) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        let mut gone = None;
        for request in waiting {
            match still_waits(&request.cancel, request.asked, contended_since) {
                Ok(()) => self.waiting.push_back(request),
                Err(error) => {
                    request.answer(Err(error.clone()));
                    gone = Some(error);
                }
            }
        }
        match gone {
            Some(error) if self.waiting.is_empty() => Err(error),
            _ => Ok(()),
        }
    }
}

/// What became of the appends of one write.
struct Written {
    outcomes: Vec<(Request, Outcome, Option<RepeatedEntries>)>,
    /// After how many of the written lines those that are whole end.
    ends: Vec<usize>,
    unsynced: Option<Arc<std::fs::File>>,
}

enum Outcome {
    Written(Vec<EntryId>),
    /// It was in the file before.
    Known(Vec<EntryId>),
    Failed(Error),
}

impl Outcome {
    fn wrote(&self) -> bool {
        matches!(self, Self::Written(_))
    }
}

impl Batch {
    /// Takes out those that `committed` has settled.
    fn written(&mut self, committed: Result<CommitOutcome>) -> Written {
        let planned = std::mem::take(&mut self.planned);
        let (whole, failure, unsynced) = match committed {
            Ok(committed) => (committed.whole, committed.failure, committed.unsynced),
            Err(error) => (0, Some(error), None),
        };
        // Without a plan all of them have failed for the same reason.
        let count = match &failure {
            Some(_) if planned.is_empty() => self.waiting.len(),
            _ => planned.len(),
        };
        let mut parts = planned.into_iter();
        let mut written = Written {
            outcomes: Vec::with_capacity(count),
            ends: Vec::new(),
            unsynced,
        };
        for request in self.waiting.drain(..count) {
            let mut part = parts.next();
            let repeated = part
                .as_mut()
                .and_then(|part| part.as_mut().ok()?.repeated.take());
            let outcome = match (part, &failure) {
                (Some(Err(error)), _) => Outcome::Failed(error),
                (None, Some(error)) => Outcome::Failed(error.clone()),
                (Some(Ok(part)), _) if part.lines == 0 => Outcome::Known(part.entry_ids),
                (Some(Ok(part)), failure) if failure.is_none() || part.end <= whole => {
                    written.ends.push(part.end);
                    Outcome::Written(part.entry_ids)
                }
                (Some(Ok(part)), Some(failure)) => {
                    let start = part.end - part.lines;
                    let new = part.entry_ids.iter();
                    let new = new.filter(|id| !part.known_ids.contains(id));
                    let there = new.take(whole.saturating_sub(start));
                    Outcome::Failed(landed_in_part(failure.clone(), there))
                }
                _ => Outcome::Failed(Error::new(Kind::InternalError, "nothing was planned")),
            };
            written.outcomes.push((request, outcome, repeated));
        }
        written
    }
}
