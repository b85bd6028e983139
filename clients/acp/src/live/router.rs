//! Decides for each message where it goes. Pure.

use super::commands::{self, Clashes, Command};
use super::message::{Message, replaced, span};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::HashMap;

/// The most sessions and requests that are remembered: a peer that never answers does not fill the memory.
const MAX_KEPT: usize = 10_000;

/// What becomes of a message of the editor.
#[derive(Debug)]
pub(crate) enum FromEditor {
    Passes,
    /// It is ours to answer.
    Command(Command),
}

/// What becomes of a message of the agent.
#[derive(Debug, Default)]
pub(crate) struct FromAgent {
    /// What the editor gets in its place.
    pub(crate) instead: Option<Vec<u8>>,
    /// What the editor gets behind it.
    pub(crate) then: Option<Vec<u8>>,
}

#[derive(Debug, Default)]
struct Session {
    clashes: Clashes,
    /// The editor knows our commands there.
    is_announced: bool,
}

#[derive(Default)]
pub(crate) struct Router {
    /// By the editor's ids.
    sessions: HashMap<String, Session>,
    /// The requests of the editor that open a session, by their ids as JSON, with the session if the editor names it.
    opening: HashMap<String, Option<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Commands<'a> {
    session_id: String,
    #[serde(borrow)]
    update: CommandsUpdate<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CommandsUpdate<'a> {
    session_update: String,
    #[serde(borrow)]
    available_commands: &'a RawValue,
}

impl Router {
    pub(crate) fn editor_says(&mut self, line: &[u8]) -> FromEditor {
        if let Some(message) = Message::read(line)
            && let Some((method, id)) = message.method.as_deref().zip(message.id)
        {
            let session = match method {
                "session/new" | "session/fork" => None,
                "session/load" | "session/resume" => message.session(),
                "session/prompt" => {
                    let command = self.command(&message, id);
                    return command.map_or(FromEditor::Passes, FromEditor::Command);
                }
                _ => return FromEditor::Passes,
            };
            if self.opening.len() < MAX_KEPT {
                self.opening.insert(id.get().to_owned(), session);
            }
        }
        FromEditor::Passes
    }

    fn command(&self, message: &Message<'_>, id: &RawValue) -> Option<Command> {
        let session = message.session()?;
        let clashes = self.sessions.get(&session)?.clashes;
        let params: &RawValue = message.params()?;
        let (verb, words) = commands::read(params.get(), clashes)?;
        Some(Command {
            id: id.to_owned(),
            session,
            verb,
            words,
        })
    }

    pub(crate) fn agent_says(&mut self, line: &[u8]) -> FromAgent {
        let Some(message) = Message::read(line) else {
            return FromAgent::default();
        };
        match (message.method.as_deref(), message.id) {
            (Some("session/update"), _) => FromAgent {
                instead: self.merged(line, &message),
                then: None,
            },
            (None, Some(id)) => FromAgent {
                instead: None,
                then: self.opened(id, &message),
            },
            _ => FromAgent::default(),
        }
    }

    /// The agent's list of commands, with ours.
    fn merged(&mut self, line: &[u8], message: &Message<'_>) -> Option<Vec<u8>> {
        let Commands { session_id, update } = message.params()?;
        if update.session_update != "available_commands_update" {
            return None;
        }
        let agents = update.available_commands;
        let clashes = commands::clashes(agents);
        let merged = commands::merged(agents, clashes)?;
        let session = self.session(session_id)?;
        (session.clashes, session.is_announced) = (clashes, true);
        Some(replaced(line, span(line, agents), &merged))
    }

    /// Announces our commands in a session that the agent has opened, if it has not announced its own.
    fn opened(&mut self, id: &RawValue, message: &Message<'_>) -> Option<Vec<u8>> {
        let session = self.opening.remove(id.get())?;
        if !message.is_success() {
            return None;
        }
        let id = session.or_else(|| message.new_session())?;
        let session = self.session(id.clone())?;
        (!std::mem::replace(&mut session.is_announced, true)).then(|| commands::announcement(&id))
    }

    fn session(&mut self, id: String) -> Option<&mut Session> {
        if self.sessions.len() >= MAX_KEPT && !self.sessions.contains_key(&id) {
            return None;
        }
        Some(self.sessions.entry(id).or_default())
    }
}
