//! Questions of one connection to others: a command to its owner, or a question to a person (protocol.md §12, §13). The
//! first answer decides.

use crate::ask::{Accepts, Answerer, Asking, Asks, Digest, Question, QuestionOutcome};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::id::ConnectionId;
use treelined_files::lock::lock;
use treelined_wire::EventReply;

/// The most questions of one connection that are open at a time.
pub(crate) const MAX_OPEN_QUESTIONS: usize = 64;

/// The open questions of connections to others.
pub(crate) struct Peers {
    asks: Asks<EventReply>,
    /// The number of open questions of each connection that asks.
    open: Arc<Mutex<HashMap<ConnectionId, usize>>>,
}

/// A question to other connections. It is open until it is dropped.
pub(crate) struct PeerQuestion {
    question: Question<EventReply>,
    _counted: CountedQuestion,
}

/// The end of a question.
#[derive(Debug)]
pub(crate) enum PeerOutcome {
    Answered(ConnectionId, EventReply),
    TimedOut,
    /// All connections that were asked have ended.
    Gone,
    /// The request that asks was cancelled.
    Cancelled,
}

struct CountedQuestion {
    open: Arc<Mutex<HashMap<ConnectionId, usize>>>,
    asker: ConnectionId,
}

impl Peers {
    /// `max_answer` is the longest time from question to answer. It includes the extensions of the deadline.
    pub(crate) fn new(max_answer: Duration) -> Self {
        Self {
            asks: Asks::new(max_answer, |_| true),
            open: Arc::default(),
        }
    }

    /// Records a question to at least one connection. The caller must send the question after this call, since an
    /// answer may arrive at once. Fails with `overloaded` if the asker has too many open questions.
    pub(crate) fn ask(
        &self,
        asking: Asking<EventReply>,
        asked: impl Iterator<Item = ConnectionId>,
        timeout: Duration,
        accepts: Accepts<EventReply>,
    ) -> Result<PeerQuestion> {
        let counted = self.count(asking.asker)?;
        let waiting = asked.map(Answerer::Client).collect();
        Ok(PeerQuestion {
            question: self.asks.ask(asking, waiting, timeout, accepts),
            _counted: counted,
        })
    }

    fn count(&self, asker: ConnectionId) -> Result<CountedQuestion> {
        let mut open = lock(&self.open);
        let count = open.entry(asker).or_default();
        if *count >= MAX_OPEN_QUESTIONS {
            let message = format!("{MAX_OPEN_QUESTIONS} questions of this connection are open");
            return Err(Error::new(Kind::Overloaded, message));
        }
        *count += 1;
        drop(open);
        Ok(CountedQuestion {
            open: Arc::clone(&self.open),
            asker,
        })
    }

    /// Waits for the outcome of the question.
    pub(crate) async fn outcome(&self, question: PeerQuestion) -> PeerOutcome {
        let (answers, missing) = match self.asks.outcome(question.question).await {
            QuestionOutcome::Settled { answers, missing } => (answers, missing),
            QuestionOutcome::Aborted => return PeerOutcome::Cancelled,
        };
        let answered = answers.into_iter().find_map(|(by, reply)| match by {
            Answerer::Client(by) => Some(PeerOutcome::Answered(by, reply)),
            Answerer::Hook(_) | Answerer::Extension(_) => None,
        });
        match answered {
            Some(answered) => answered,
            None if missing.is_empty() => PeerOutcome::Gone,
            None => PeerOutcome::TimedOut,
        }
    }

    /// See [`Asks::answer`].
    pub(crate) fn answer(&self, id: &str, by: ConnectionId, reply: EventReply) -> Result<()> {
        let digest = Digest::of(&reply);
        self.asks.answer(id, Answerer::Client(by), digest, reply)
    }

    /// See [`Asks::extend`].
    pub(crate) fn extend(&self, id: &str, by: ConnectionId, more: Duration) -> Result<Duration> {
        self.asks.extend(id, Answerer::Client(by), more)
    }

    /// Whether a question is open, or is one of the last questions that were answered.
    pub(crate) fn knows(&self, id: &str) -> bool {
        self.asks.knows(id)
    }

    /// Whether a question waits for this connection.
    pub(crate) fn is_asked(&self, connection: ConnectionId) -> bool {
        self.asks.waits_for(Answerer::Client(connection))
    }

    /// See [`Asks::leave`].
    pub(crate) fn leave(&self, connection: ConnectionId, session: Option<&str>) {
        self.asks.leave(connection, session);
    }
}

impl Drop for CountedQuestion {
    fn drop(&mut self) {
        let mut open = lock(&self.open);
        if let Some(count) = open.get_mut(&self.asker) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.asker);
            }
        }
    }
}
