//! Questions of a request to other connections: sends them and waits for the answer.

use crate::ask::{Accepts, Asking};
use crate::daemon::MAX_ANSWER;
use crate::daemon::call::Call;
use crate::daemon::connection::Connection;
use crate::daemon::convert;
use crate::peers::{PeerOutcome, PeerQuestion};
use crate::stdio::Class;
use std::sync::Arc;
use std::time::Duration;
use treelined_core::error::{Error, Result};
use treelined_core::id::{self, EventId};
use treelined_wire::EventReply;
use treelined_wire::methods::Notification;

/// A question that has been sent.
pub(super) struct SentQuestion {
    call: Arc<Call>,
    pub(super) event_id: EventId,
    /// The connections that were asked.
    pub(super) asked: Vec<Arc<Connection>>,
    question: PeerQuestion,
}

/// A question that has not been sent.
pub(super) struct NewQuestion {
    /// The connections to ask.
    pub(super) asked: Vec<Arc<Connection>>,
    /// The session that it is about; empty for none.
    pub(super) session: Arc<str>,
    /// How long to wait, at most [`MAX_ANSWER`].
    pub(super) timeout: Duration,
    pub(super) accepts: Accepts<EventReply>,
}

impl NewQuestion {
    /// Sends the question with the id and the time in milliseconds that it gets.
    pub(super) fn send<N: Notification>(
        self,
        call: &Arc<Call>,
        notification: impl FnOnce(String, u64) -> N,
    ) -> Result<SentQuestion> {
        let Self {
            asked,
            session,
            timeout,
            accepts,
        } = self;
        let daemon = &call.daemon;
        let event_id = EventId::new(id::random_token(&*daemon.source));
        let timeout = timeout.min(MAX_ANSWER);
        let ids = asked.iter().map(|connection| connection.id);
        let asking = Asking {
            id: event_id.clone(),
            asker: call.connection.id,
            session: Arc::clone(&session),
            cancel: call.cancel.clone(),
            bound: Vec::new(),
            if_gone: Vec::new(),
            instead: Vec::new(),
        };
        let peers = &daemon.peers;
        let question = peers.ask(asking, ids, timeout, accepts)?;
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        tell(
            &asked,
            &notification(event_id.as_str().to_owned(), timeout_ms),
        );
        for connection in &asked {
            // The answer arrives through a reader that may be paused.
            connection.outbox.wake();
            // It may have left before the question was recorded.
            let is_about_one = !session.is_empty();
            if connection.is_ending()
                || is_about_one && !daemon.queues.is_open_for(connection.id, &session)
            {
                peers.leave(connection.id, None);
            }
        }
        Ok(SentQuestion {
            call: Arc::clone(call),
            event_id,
            asked,
            question,
        })
    }
}

impl SentQuestion {
    /// Waits for the outcome. Returns it with the id of the question and the connections that were asked.
    pub(super) async fn outcome(self) -> (PeerOutcome, EventId, Vec<Arc<Connection>>) {
        let outcome = self.call.daemon.peers.outcome(self.question).await;
        (outcome, self.event_id, self.asked)
    }
}

/// Sends a notification without a number to these connections.
pub(super) fn tell<N: Notification>(connections: &[Arc<Connection>], notification: &N) {
    if let Some(message) = convert::message(notification) {
        for connection in connections {
            connection.send(message.clone(), Class::Keep);
        }
    }
}

/// Whether a connection takes notifications of this name now: it may have opted out of them, or not read what it was
/// sent.
pub(super) fn takes(connection: &Connection, method: &str) -> bool {
    connection.wants(method) && !connection.is_ending() && !connection.outbox.is_over_limit()
}

/// Fails if the client names a session that it does not have open.
pub(super) fn check_open(call: &Call, session_id: Option<&str>) -> Result<()> {
    match session_id {
        Some(id) if !call.daemon.queues.is_open_for(call.connection.id, id) => {
            Err(Error::session_not_found(id))
        }
        _ => Ok(()),
    }
}
