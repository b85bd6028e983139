//! The open questions of before events (protocol.md §5). Each question has one outcome.
//!
//! This module knows for which answerers a question waits, and until when. Several clients and hooks may answer one
//! question. The question ends at its deadline, or earlier: with the first answer that decides alone, or with the last
//! missing answer. The caller defines the types of questions and answers.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};
use treelined_core::error::{Error, Kind, Result};
use treelined_core::id::{ConnectionId, EventId};
use treelined_files::cancel::Cancel;
use treelined_files::lock::lock;
use xxhash_rust::xxh3::Xxh3;

/// The number of remembered answers. An answer that arrives twice is acknowledged twice. Only digests are remembered,
/// since a summary may have megabytes.
const REMEMBERED: usize = 256;

/// The longest time from a question to its answer (protocol.md §2, `limits.maxAnswerMs`).
pub(crate) const MAX_ANSWER: Duration = Duration::from_secs(600);

/// The open questions.
pub(crate) struct Asks<A> {
    state: Mutex<AskState<A>>,
    /// The longest time from question to answer. It includes the extensions of the deadline.
    max_answer: Duration,
    /// Whether this answer decides the question, whatever the other answers are.
    decides: fn(&A) -> bool,
}

/// Fails if the value does not answer the question. The question then stays open.
pub(crate) type Accepts<A> = Box<dyn Fn(&A) -> Result<()> + Send>;
/// Recognizes an answer that is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digest(u128);

impl Digest {
    /// The digest of the answer's `Debug` text.
    pub(crate) fn of(answer: &impl fmt::Debug) -> Self {
        struct Spelled(Xxh3);
        impl fmt::Write for Spelled {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                self.0.update(text.as_bytes());
                Ok(())
            }
        }
        let mut spelled = Spelled(Xxh3::new());
        // Neither formatting nor hashing can fail.
        let _written = fmt::write(&mut spelled, format_args!("{answer:?}"));
        Self(spelled.0.digest128())
    }
}

/// A client, hook or extension that can answer a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Answerer {
    /// The client of a connection.
    Client(ConnectionId),
    /// The hook with this number, counted in the order of the configuration.
    Hook(usize),
    /// The extension with this number, counted in the order of the configuration. It has no connection that can answer.
    Extension(usize),
}

impl Answerer {
    /// The number of the hook.
    pub(crate) fn hook(&self) -> Option<usize> {
        match self {
            Answerer::Hook(number) => Some(*number),
            Answerer::Client(_) | Answerer::Extension(_) => None,
        }
    }

    fn is_client(&self) -> bool {
        matches!(self, Self::Client(_))
    }
}

/// The parts of a question that do not change.
pub(crate) struct Asking<A> {
    pub(crate) id: EventId,
    /// The connection whose request asks the question.
    pub(crate) asker: ConnectionId,
    /// The session that the question is about.
    pub(crate) session: Arc<str>,
    /// Cancels the request that asks.
    pub(crate) cancel: Cancel,
    /// The answerers that cannot extend the time that the asker gives.
    pub(crate) bound: Vec<Answerer>,
    /// The answers that count for answerers that leave or do not answer in time.
    pub(crate) instead: Vec<(Answerer, A)>,
    /// The answers that count for clients whose connection ends.
    pub(crate) if_gone: Vec<(Answerer, A)>,
}

struct AskState<A> {
    open: HashMap<EventId, OpenQuestion<A>>,
    /// Accepted answers, oldest first.
    answered: VecDeque<(EventId, Answerer, Digest)>,
    /// Whether the daemon is ending. Clients then cannot answer any more.
    ended: bool,
}

struct OpenQuestion<A> {
    asked: Instant,
    asker: ConnectionId,
    session: Arc<str>,
    /// Says whether the request was cancelled, even if the request itself has not noticed yet.
    cancel: Cancel,
    bound: Vec<Answerer>,
    /// The deadline that the asker gives.
    given: Instant,
    deadline: watch::Sender<Instant>,
    waiting: Vec<Answerer>,
    instead: Vec<(Answerer, A)>,
    if_gone: Vec<(Answerer, A)>,
    answers: Vec<(Answerer, A)>,
    accepts: Accepts<A>,
    settled: oneshot::Sender<QuestionOutcome<A>>,
}

/// A question that waits for answers.
pub(crate) struct Question<A> {
    id: EventId,
    cancel: Cancel,
    deadline: watch::Receiver<Instant>,
    settled: oneshot::Receiver<QuestionOutcome<A>>,
}

/// The end of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum QuestionOutcome<A> {
    Settled {
        /// The answers, in the order of their arrival.
        answers: Vec<(Answerer, A)>,
        /// The answerers that did not answer in time.
        missing: Vec<Answerer>,
    },
    /// The request was cancelled, its connection has ended, or the daemon is ending.
    Aborted,
}

impl<A> Asks<A> {
    pub(crate) fn new(max_answer: Duration, decides: fn(&A) -> bool) -> Self {
        Self {
            state: Mutex::new(AskState {
                open: HashMap::new(),
                answered: VecDeque::new(),
                ended: false,
            }),
            max_answer,
            decides,
        }
    }

    /// Records a question to at least one answerer. The caller must send the question after this call, since an answer
    /// may arrive at once.
    pub(crate) fn ask(
        &self,
        asking: Asking<A>,
        waiting: Vec<Answerer>,
        timeout: Duration,
        accepts: Accepts<A>,
    ) -> Question<A> {
        let Asking {
            id,
            asker,
            session,
            cancel,
            bound,
            instead,
            if_gone,
        } = asking;
        let asked = Instant::now();
        let given = asked + timeout.min(self.max_answer);
        let (deadline_sender, deadline) = watch::channel(given);
        let (sender, settled) = oneshot::channel();
        let mut state = self.state();
        if !(state.ended && waiting.iter().any(Answerer::is_client)) {
            let open = OpenQuestion {
                asker,
                session,
                cancel: cancel.clone(),
                asked,
                bound,
                given,
                deadline: deadline_sender,
                waiting,
                instead,
                if_gone,
                answers: Vec::new(),
                accepts,
                settled: sender,
            };
            state.open.insert(id.clone(), open);
        }
        Question {
            id,
            cancel,
            deadline,
            settled,
        }
    }

    /// Waits for the outcome of the question.
    pub(crate) async fn outcome(&self, mut question: Question<A>) -> QuestionOutcome<A> {
        loop {
            let deadline = *question.deadline.borrow_and_update();
            tokio::select! {
                biased;
                () = question.cancel.cancelled() => {
                    self.state().open.remove(&question.id);
                    return QuestionOutcome::Aborted;
                }
                outcome = &mut question.settled => return outcome.unwrap_or(QuestionOutcome::Aborted),
                changed = question.deadline.changed() => {
                    if changed.is_ok() {
                        continue;
                    }
                    // The sender of the deadline is gone: an answer or the end of the connection has settled the
                    // question.
                    return question.settled.await.unwrap_or(QuestionOutcome::Aborted);
                }
                () = tokio::time::sleep_until(deadline.into()) => {
                    let open = self.state().open.remove(&question.id);
                    if let Some(mut open) = open {
                        for by in open.waiting.clone() {
                            open.answer_instead(by, false);
                        }
                        let OpenQuestion { answers, waiting: missing, .. } = open;
                        return QuestionOutcome::Settled { answers, missing };
                    }
                    return question.settled.await.unwrap_or(QuestionOutcome::Aborted);
                }
            }
        }
    }

    /// Answers a question. If the same answerer sends an answer with the same `digest` again, it is acknowledged again.
    /// Any other late answer fails with `eventNotPending`. If the question does not accept the answer, the question
    /// stays open.
    pub(crate) fn answer(&self, id: &str, by: Answerer, digest: Digest, answer: A) -> Result<()> {
        let id = EventId::new(id);
        let mut state = self.state();
        let open = state
            .open
            .get_mut(&id)
            .filter(|open| open.waiting.contains(&by));
        let Some(open) = open else {
            let again = state
                .answered
                .iter()
                .any(|(of, who, given)| *of == id && *who == by && *given == digest);
            return if again { Ok(()) } else { Err(not_pending(&id)) };
        };
        if open.cancel.is_cancelled() {
            return Err(not_pending(&id));
        }
        (open.accepts)(&answer)?;
        open.waiting.retain(|waiting| *waiting != by);
        let is_decided = (self.decides)(&answer) || open.waiting.is_empty();
        open.answers.push((by, answer));
        if is_decided
            && let Some(open) = state.open.remove(&id)
            && !open.settle()
        {
            return Err(not_pending(&id));
        }
        if state.answered.len() >= REMEMBERED {
            state.answered.pop_front();
        }
        state.answered.push_back((id, by, digest));
        Ok(())
    }

    /// Moves the deadline to `time` from now, up to the limit of the answerer. The answerer must not have answered.
    /// Returns the remaining time.
    pub(crate) fn extend(&self, id: &str, by: Answerer, time: Duration) -> Result<Duration> {
        let id = EventId::new(id);
        let state = self.state();
        let open = state
            .open
            .get(&id)
            .filter(|open| !open.cancel.is_cancelled() && open.waiting.contains(&by));
        let open = open.ok_or_else(|| not_pending(&id))?;
        let now = Instant::now();
        let latest = match open.bound.contains(&by) {
            true => open.given,
            false => open.asked + self.max_answer,
        };
        let wanted = now.checked_add(time).unwrap_or(latest).min(latest);
        let deadline = wanted.max(*open.deadline.borrow());
        open.deadline.send_replace(deadline);
        Ok(deadline.saturating_duration_since(now))
    }

    /// Whether a question waits for this answerer.
    pub(crate) fn waits_for(&self, by: Answerer) -> bool {
        let state = self.state();
        state.open.values().any(|open| open.waiting.contains(&by))
    }

    /// Removes a client from the questions that wait for it: from the questions about a session that it closes, or from
    /// all questions if its connection ends. The client then counts as having no opinion, unless an answer is set that
    /// replaces its answer. A question that a request of this client asks ends as aborted.
    pub(crate) fn leave(&self, connection: ConnectionId, session: Option<&str>) {
        let by = Answerer::Client(connection);
        let mut state = self.state();
        let concerns = |open: &OpenQuestion<A>| {
            open.waiting.contains(&by) && session.is_none_or(|session| *open.session == *session)
        };
        let ids = state.open.iter().filter(|(_, open)| concerns(open));
        let ids: Vec<EventId> = ids.map(|(id, _)| id.clone()).collect();
        for id in ids {
            let Some(open) = state.open.get_mut(&id) else {
                continue;
            };
            let is_decided = open
                .answer_instead(by, session.is_none())
                .is_some_and(self.decides);
            open.waiting.retain(|waiting| *waiting != by);
            let is_own = open.asker == connection;
            if (is_own || is_decided || open.waiting.is_empty())
                && let Some(open) = state.open.remove(&id)
                && !is_own
            {
                // If the request was cancelled, the outcome has no receiver.
                let _gone = open.settle();
            }
        }
    }

    /// Whether a question is open, or is one of the last questions that were answered.
    pub(crate) fn knows(&self, id: &str) -> bool {
        let id = EventId::new(id);
        let state = self.state();
        state.open.contains_key(&id) || state.answered.iter().any(|(of, ..)| *of == id)
    }

    /// Aborts all questions that wait for a client, and all later questions to clients. Hooks may still answer the
    /// other questions.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        state
            .open
            .retain(|_, open| !open.waiting.iter().any(Answerer::is_client));
    }

    fn state(&self) -> MutexGuard<'_, AskState<A>> {
        lock(&self.state)
    }
}

impl<A> OpenQuestion<A> {
    /// Adds the answer that replaces the answer of this answerer, if there is one.
    fn answer_instead(&mut self, by: Answerer, is_gone: bool) -> Option<&A> {
        let lists = [
            Some(&mut self.instead),
            is_gone.then_some(&mut self.if_gone),
        ];
        let answer = lists.into_iter().flatten().find_map(|list| {
            let place = list.iter().position(|(of, _)| *of == by)?;
            Some(list.swap_remove(place))
        })?;
        self.waiting.retain(|waiting| *waiting != by);
        self.answers.push(answer);
        self.answers.last().map(|(_, answer)| answer)
    }

    /// Sends the outcome. False if the outcome has no receiver.
    fn settle(self) -> bool {
        let outcome = QuestionOutcome::Settled {
            answers: self.answers,
            missing: Vec::new(),
        };
        self.settled.send(outcome).is_ok()
    }
}

pub(crate) fn not_pending(id: &EventId) -> Error {
    Error::new(
        Kind::EventNotPending,
        format!("no question {:?} is waiting for an answer", id.as_str()),
    )
}

#[cfg(test)]
mod tests;
