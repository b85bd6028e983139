//! The clients, hooks and extensions that a daemon can ask, and the open questions to them. [`super::event_question`]
//! asks about a before event, and [`super::extension`] has the rules for extensions.

use super::connections::Connections;
use super::notify::Notifier;
use super::received_answer::ReceivedAnswer;
use super::registry::Registry;
use crate::ask::{Answerer, Asks, MAX_ANSWER};
use crate::extensions::{Extension, Extensions};
use crate::hooks::Hooks;
use crate::peers::Peers;
use std::sync::Arc;
use treelined_core::id::{ConnectionId, Source};

/// The clients, hooks and extensions that can answer questions, and the open questions to them.
pub(crate) struct Questions {
    /// The open questions about before events.
    pub(crate) asks: Asks<ReceivedAnswer>,
    /// The open questions of one connection to others.
    pub(crate) peers: Peers,
    pub(crate) extensions: Extensions,
    pub(super) hooks: Arc<Hooks>,
    pub(super) connections: Arc<Connections>,
    pub(super) registry: Arc<Registry>,
    pub(super) notifier: Notifier,
    pub(super) source: Arc<dyn Source>,
}

impl Questions {
    pub(super) fn new(
        hooks: &Arc<Hooks>,
        extensions: Vec<Extension>,
        connections: &Arc<Connections>,
        registry: &Arc<Registry>,
        source: &Arc<dyn Source>,
    ) -> Self {
        Self {
            asks: Asks::new(MAX_ANSWER, |given| given.answer.cancel == Some(true)),
            peers: Peers::new(MAX_ANSWER),
            extensions: Extensions::new(extensions),
            hooks: Arc::clone(hooks),
            connections: Arc::clone(connections),
            registry: Arc::clone(registry),
            notifier: Notifier::new(hooks),
            source: Arc::clone(source),
        }
    }

    /// Ends all questions.
    pub(crate) fn end(&self) {
        self.asks.end();
    }

    /// Whether a question waits for an answer of this client.
    pub(crate) fn is_asked(&self, client: ConnectionId) -> bool {
        self.asks.waits_for(Answerer::Client(client)) || self.peers.is_asked(client)
    }

    /// Removes a client from the questions that wait for its answer: from all questions, or from the questions about a
    /// session. A question then continues without this client, unless another answer is set to replace the answer of
    /// the client. Questions that requests of this client ask end as aborted.
    pub(crate) fn leave(&self, client: ConnectionId, session_id: Option<&str>) {
        self.asks.leave(client, session_id);
        self.peers.leave(client, session_id);
    }
}
