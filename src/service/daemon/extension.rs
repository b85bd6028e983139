//! Extensions as answerers of before events (protocol.md §11): which extensions cannot answer, and which answers then
//! count instead.

use super::event_question::EventQuestion;
use super::questions::Questions;
use super::received_answer::ReceivedAnswer;
use crate::ask::{Answerer, Digest};
use crate::extensions::{Extension, ExtensionSessions};
use treelined_core::id::{ConnectionId, EventId};
use treelined_wire::BeforeEvent;

/// The failure of an extension that was asked and gave no answer.
const NO_ANSWER: &str = "it ended, or did not answer in time";
/// The failure of an extension that could not be asked.
const UNABLE: &str = "it does not run, or does not answer this event";

impl Questions {
    /// Whether the connection belongs to an extension.
    pub(super) fn is_extension(&self, connection: ConnectionId) -> bool {
        let connection = self.connections.find(connection);
        connection.is_some_and(|connection| connection.extension().is_some())
    }

    /// The numbers of the extensions that must answer this event but cannot. `able` has the answerers that can answer.
    pub(super) fn unable_extensions(
        &self,
        session_id: &str,
        event: BeforeEvent,
        able: &[Answerer],
    ) -> Vec<usize> {
        let is_unable =
            |number: usize, extension: &Extension| match self.extensions.connection(number) {
                None => true,
                Some(id) if able.contains(&Answerer::Client(id)) => false,
                // An extension that chooses its sessions is not asked about the other sessions.
                Some(id) => {
                    let chooses = extension.sessions == ExtensionSessions::Own;
                    !chooses || self.registry.queues.is_open_for(id, session_id)
                }
            };
        let all = self.extensions.all();
        let asked = all.filter(|(_, extension)| extension.answers.contains(&event));
        let unable = asked.filter(|(number, extension)| is_unable(*number, extension));
        unable.map(|(number, _)| number).collect()
    }

    /// The extension of this connection, if the extension must answer this event.
    fn answering_extension(&self, by: Answerer, event: BeforeEvent) -> Option<&Extension> {
        let Answerer::Client(id) = by else {
            return None;
        };
        let connection = self.connections.find(id)?;
        let extension = self.extensions.get(connection.extension()?.number)?;
        Some(extension).filter(|extension| extension.answers.contains(&event))
    }
}

impl EventQuestion<'_> {
    /// The extensions among the answerers, if the caller gave a time. Extensions do not get more than this time.
    pub(super) fn bound(&self, answerers: &[Answerer]) -> Vec<Answerer> {
        let is_bound = |by: &&Answerer| match by {
            Answerer::Client(id) => self.questions.is_extension(*id),
            Answerer::Hook(_) | Answerer::Extension(_) => false,
        };
        let bound = answerers.iter().filter(is_bound).copied();
        bound.filter(|_| self.timeout.is_some()).collect()
    }

    /// For each extension, the answer that counts if the extension ends or does not answer in time.
    pub(super) fn instead(&self, answerers: &[Answerer]) -> Vec<(Answerer, ReceivedAnswer)> {
        let instead = |by: &Answerer| {
            let extension = self.questions.answering_extension(*by, self.event)?;
            Some((
                *by,
                ReceivedAnswer::of_failure(extension.on_failure, NO_ANSWER),
            ))
        };
        answerers.iter().filter_map(instead).collect()
    }

    /// Gives the answers of the extensions that cannot answer.
    pub(super) fn answer_for_extensions(&self, event_id: &EventId, answerers: &[Answerer]) {
        for by in answerers {
            let Answerer::Extension(number) = by else {
                continue;
            };
            let Some(extension) = self.questions.extensions.get(*number) else {
                continue;
            };
            let given = ReceivedAnswer::of_failure(extension.on_failure, UNABLE);
            let digest = Digest::of(&given.answer);
            let asks = &self.questions.asks;
            // The call fails if another extension has already decided the question.
            let _decided = asks.answer(event_id.as_str(), *by, digest, given);
        }
    }

    pub(super) fn log_failed_extensions(
        &self,
        answers: &[(Answerer, ReceivedAnswer)],
        names: &[(Answerer, String)],
    ) {
        let event = self.event.name();
        let failed = answers.iter().filter(|(_, answer)| answer.is_failure);
        for (failed, _) in failed {
            let name = names.iter().find(|(by, _)| by == failed);
            let name = name.map(|(_, name)| name.as_str()).unwrap_or_default();
            // A failed hook has its own log line, and a client may end at any time, so only extensions are logged here.
            let mut extensions = self.questions.extensions.all();
            if extensions.any(|(_, extension)| extension.name == name) {
                tracing::warn!(extension = name, event, "an extension did not answer");
            }
        }
    }
}
