//! Turns the messages of both sides into changes of sessions. Pure: the same messages give the same changes, so that
//! a journal can be read again.

use crate::turn::{Item, Turn, user_message};
use serde_json::Value;
use std::collections::HashMap;

/// The sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    Editor,
    Agent,
}

/// A change of the session that records a session of the agent, which `agent_session` names.
#[derive(Debug, PartialEq)]
pub struct Change {
    pub agent_session: String,
    pub kind: ChangeKind,
}

#[derive(Debug, PartialEq)]
pub enum ChangeKind {
    /// The agent has made the session.
    Begin { cwd: String },
    /// Appends below what was recorded last. `ends_turn`: nothing of the turn is open.
    Append { items: Vec<Item>, ends_turn: bool },
    /// The agent has loaded the session and told what is in it.
    Align { cwd: String, items: Vec<Item> },
    /// The agent has made the session as a copy of another.
    Fork { source: String },
}

/// A request whose response matters.
#[derive(Debug)]
enum Request {
    New { cwd: String },
    Load { session: String, cwd: String },
    Resume { session: String, cwd: String },
    Fork { source: String },
    Prompt { session: String },
    Permission { session: String, params: Value },
}

/// A session of the agent between its messages.
#[derive(Debug, Default)]
struct Open {
    /// Of the present turn, or of the history that a load replays.
    turn: Turn,
    is_loading: bool,
}

#[derive(Debug, Default)]
pub struct Conversation {
    /// By the side that asked, and the id as JSON.
    requests: HashMap<(Side, String), Request>,
    sessions: HashMap<String, Open>,
}

/// The most requests that wait: a peer that never answers does not fill the memory.
const MAX_REQUESTS: usize = 10_000;

impl Conversation {
    /// Takes in a message, and returns the changes that it makes.
    pub fn see(&mut self, from: Side, message: &Value) -> Vec<Change> {
        let params = message.get("params").unwrap_or(&Value::Null);
        let id = message.get("id").map(Value::to_string);
        match (message.get("method").and_then(Value::as_str), id) {
            (Some("session/update"), _) if from == Side::Agent => {
                self.update(params);
                Vec::new()
            }
            (Some(method), Some(id)) => self.request(from, id, method, params),
            (None, Some(id)) => {
                let asked_by = match from {
                    Side::Editor => Side::Agent,
                    Side::Agent => Side::Editor,
                };
                match self.requests.remove(&(asked_by, id)) {
                    Some(request) => self.response(request, message),
                    None => Vec::new(),
                }
            }
            _ => Vec::new(),
        }
    }

    /// The changes that close the turns that did not end.
    pub fn abort(&mut self) -> Vec<Change> {
        let open = self.sessions.drain().filter(|(_, open)| !open.is_loading);
        let open = open.filter(|(_, open)| !open.turn.is_empty());
        let aborted = open.map(|(agent_session, open)| Change {
            agent_session,
            kind: ChangeKind::Append {
                items: open.turn.finish(None, None),
                ends_turn: true,
            },
        });
        aborted.collect()
    }

    /// Whether nothing is open: neither a turn nor a request.
    pub fn is_idle(&self) -> bool {
        self.requests.is_empty() && self.sessions.values().all(|open| open.turn.is_empty())
    }

    /// Takes in that a part of what was said is lost.
    pub fn gap(&mut self) {
        for open in self.sessions.values_mut() {
            open.turn.gap();
        }
    }

    fn update(&mut self, params: &Value) {
        let session = self.sessions.entry(text(params, "sessionId")).or_default();
        session
            .turn
            .update(params.get("update").unwrap_or(&Value::Null));
    }

    fn request(&mut self, from: Side, id: String, method: &str, params: &Value) -> Vec<Change> {
        let (session, cwd) = (text(params, "sessionId"), text(params, "cwd"));
        let mut changes = Vec::new();
        let request = match (from, method) {
            (Side::Editor, "session/new") => Request::New { cwd },
            (Side::Editor, "session/load") => {
                let open = Open {
                    turn: Turn::default(),
                    is_loading: true,
                };
                self.sessions.insert(session.clone(), open);
                Request::Load { session, cwd }
            }
            (Side::Editor, "session/resume") => Request::Resume { session, cwd },
            (Side::Editor, "session/fork") => Request::Fork { source: session },
            (Side::Editor, "session/prompt") => {
                changes.extend(self.late(&session));
                let prompt = params.get("prompt").and_then(Value::as_array);
                let message = user_message(prompt.map_or(&[], Vec::as_slice));
                changes.push(Change {
                    agent_session: session.clone(),
                    kind: ChangeKind::Append {
                        items: vec![Item::Message(message)],
                        ends_turn: false,
                    },
                });
                Request::Prompt { session }
            }
            (Side::Agent, "session/request_permission") => Request::Permission {
                session,
                params: params.clone(),
            },
            _ => return changes,
        };
        if self.requests.len() < MAX_REQUESTS {
            self.requests.insert((from, id), request);
        }
        changes
    }

    /// Closes the updates that arrived after the end of a turn.
    fn late(&mut self, session: &str) -> Option<Change> {
        let open = self.sessions.get_mut(session)?;
        if open.turn.is_empty() {
            return None;
        }
        let items = std::mem::take(&mut open.turn).finish(Some("end_turn"), None);
        Some(Change {
            agent_session: session.to_owned(),
            kind: ChangeKind::Append {
                items,
                ends_turn: true,
            },
        })
    }

    fn response(&mut self, request: Request, message: &Value) -> Vec<Change> {
        let result = message.get("result");
        let (agent_session, kind) = match (request, result) {
            (Request::New { cwd }, Some(result)) => {
                (text(result, "sessionId"), ChangeKind::Begin { cwd })
            }
            (Request::Fork { source }, Some(result)) => {
                (text(result, "sessionId"), ChangeKind::Fork { source })
            }
            (Request::Load { session, cwd }, Some(_)) => {
                let open = self.sessions.remove(&session).unwrap_or_default();
                let items = open.turn.finish(Some("end_turn"), None);
                (session, ChangeKind::Align { cwd, items })
            }
            (Request::Resume { session, cwd }, Some(_)) => {
                let items = Vec::new();
                (session, ChangeKind::Align { cwd, items })
            }
            (Request::Load { session, .. }, None) => {
                self.sessions.remove(&session);
                return Vec::new();
            }
            (Request::Prompt { session }, result) => {
                let open = self.sessions.remove(&session).unwrap_or_default();
                let stop = match result {
                    Some(result) => text(result, "stopReason"),
                    None => "refusal".to_owned(),
                };
                let usage = result.and_then(|result| result.get("usage"));
                let items = open.turn.finish(Some(&stop), usage);
                let ends_turn = true;
                (session, ChangeKind::Append { items, ends_turn })
            }
            (Request::Permission { session, params }, result) => {
                let outcome = result.and_then(|result| result.get("outcome"));
                let outcome = outcome.unwrap_or(&Value::Null);
                let open = self.sessions.entry(session).or_default();
                open.turn.permission(&params, outcome);
                return Vec::new();
            }
            (_, None) => return Vec::new(),
        };
        vec![Change {
            agent_session,
            kind,
        }]
    }
}

fn text(value: &Value, name: &str) -> String {
    let text = value.get(name).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}
