//! Questions of a request to other connections: sends a question and waits for its answer.

use crate::ask::{Accepts, Asking, MAX_ANSWER};
use crate::daemon::connection::Connection;
use crate::daemon::convert::message::message;
use crate::daemon::questions::Questions;
use crate::peers::{PeerOutcome, PeerQuestion};
use crate::rpc::caller::Caller;
use crate::stdio::Class;
use std::sync::Arc;
use std::time::Duration;
use treelined_core::error::Result;
use treelined_core::id::{self, EventId};
use treelined_wire::EventReply;
use treelined_wire::methods::Notification;

/// A question that has been sent.
pub(super) struct SentQuestion {
    questions: Arc<Questions>,
    asked: Asked,
    question: PeerQuestion,
}

/// A question with the connections that were asked.
pub(super) struct Asked {
    pub(super) event_id: EventId,
    pub(super) connections: Vec<Arc<Connection>>,
}

/// A question that has not been sent.
pub(super) struct NewQuestion {
    /// The connections to ask.
    pub(super) asked: Vec<Arc<Connection>>,
    /// The session that the question is about; empty for none.
    pub(super) session: Arc<str>,
    /// How long to wait, at most [`MAX_ANSWER`].
    pub(super) timeout: Duration,
    pub(super) accepts: Accepts<EventReply>,
}

impl NewQuestion {
    /// Sends the question. `notification` gets the question's id, and its time in milliseconds.
    pub(super) fn send<N: Notification>(
        self,
        caller: &Caller<'_>,
        notification: impl FnOnce(String, u64) -> N,
    ) -> Result<SentQuestion> {
        let Self {
            asked,
            session,
            timeout,
            accepts,
        } = self;
        let daemon = caller.daemon();
        let event_id = EventId::new(id::random_token(&*daemon.source));
        let timeout = timeout.min(MAX_ANSWER);
        let ids = asked.iter().map(|connection| connection.id);
        let asking = Asking {
            id: event_id.clone(),
            asker: caller.connection().id,
            session: Arc::clone(&session),
            cancel: caller.cancel().clone(),
            bound: Vec::new(),
            if_gone: Vec::new(),
            instead: Vec::new(),
        };
        let peers = &daemon.questions.peers;
        let question = peers.ask(asking, ids, timeout, accepts)?;
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        tell(
            &asked,
            &notification(event_id.as_str().to_owned(), timeout_ms),
        );
        for connection in &asked {
            // The answer arrives through a reader, and the reader may be paused.
            connection.outbox.wake();
            // The connection may have left the session or ended before the question was recorded.
            let is_about_one = !session.is_empty();
            if connection.is_ending()
                || is_about_one && !daemon.registry.queues.is_open_for(connection.id, &session)
            {
                peers.leave(connection.id, None);
            }
        }
        Ok(SentQuestion {
            questions: Arc::clone(&daemon.questions),
            asked: Asked {
                event_id,
                connections: asked,
            },
            question,
        })
    }
}

impl SentQuestion {
    /// Waits for the outcome of the question.
    pub(super) async fn outcome(self) -> (PeerOutcome, Asked) {
        let outcome = self.questions.peers.outcome(self.question).await;
        (outcome, self.asked)
    }
}

/// The other connections that `is_meant` accepts, without the caller's own. If a session is named, only the connections
/// that have the session open.
pub(super) fn others(
    caller: &Caller<'_>,
    session_id: Option<&str>,
    is_meant: impl Fn(&Connection) -> bool,
) -> Vec<Arc<Connection>> {
    let queues = &caller.daemon().registry.queues;
    let others = caller.daemon().connections.all().into_iter();
    let others = others.filter(|other| other.id != caller.connection().id);
    let others =
        others.filter(|other| session_id.is_none_or(|id| queues.is_open_for(other.id, id)));
    others.filter(|other| is_meant(other)).collect()
}

/// Sends a notification without a number to these connections.
pub(super) fn tell<N: Notification>(connections: &[Arc<Connection>], notification: &N) {
    if let Some(message) = message(notification) {
        for connection in connections {
            connection.send(message.clone(), Class::Keep);
        }
    }
}

/// Whether a connection takes notifications of this name now. It does not if it has opted out of these notifications,
/// if it is ending, or if it does not read its messages.
pub(super) fn takes(connection: &Connection, method: &str) -> bool {
    connection.wants(method) && !connection.is_ending() && !connection.outbox.is_over_limit()
}
