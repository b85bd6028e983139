//! Turns the messages of both sides into changes of sessions. Pure: the same messages always give the same changes,
//! so a run can read the journal of a killed run again.

use crate::turn::{Item, Turn, user_message};
use serde_json::Value;
use std::collections::HashMap;

/// The sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    Editor,
    Agent,
}

impl Side {
    fn other(self) -> Side {
        match self {
            Side::Editor => Side::Agent,
            Side::Agent => Side::Editor,
        }
    }
}

/// A change of the session of treelined in which the agent's session `agent_session` is recorded.
#[derive(Debug, PartialEq)]
pub struct Change {
    pub agent_session: String,
    pub kind: ChangeKind,
}

#[derive(Debug, PartialEq)]
pub enum ChangeKind {
    /// The agent has made the session.
    Begin { cwd: String },
    /// Appends items below the entry that was recorded last. If `ends_turn` is true, the turn has nothing more to
    /// record.
    Append { items: Vec<Item>, ends_turn: bool },
    /// The agent has loaded the session and replayed its history.
    Align { cwd: String, items: Vec<Item> },
    /// The agent has made the session as a copy of another, and may have replayed its history.
    Fork {
        source: String,
        cwd: String,
        items: Vec<Item>,
    },
}

/// A request of one side whose response changes a session.
#[derive(Debug)]
enum Request {
    New { cwd: String },
    Load { session: String, cwd: String },
    Resume { session: String, cwd: String },
    Fork { source: String, cwd: String },
    Prompt { session: String },
    Permission { session: String, params: Value },
    Output { session: String, terminal: String },
}

/// The state of one session of the agent: the turn that runs, or the history that a load replays.
#[derive(Debug, Default)]
struct Open {
    /// The present turn, or the history that a load replays.
    turn: Turn,
    is_loading: bool,
}

impl Open {
    /// The change that appends the turn, or `None` if the turn is empty. If a load was not answered, its history is
    /// in the tree already, so only its gaps are appended.
    fn close(self, agent_session: String, stop: Option<&str>) -> Option<Change> {
        let mut items = self.turn.finish(stop, None);
        if self.is_loading {
            items.retain(Item::is_gap);
        }
        (!items.is_empty()).then(|| Change {
            agent_session,
            kind: ChangeKind::Append {
                items,
                ends_turn: true,
            },
        })
    }
}

#[derive(Debug, Default)]
pub struct Conversation {
    /// The requests without a response, by the side that sent them and by their ids as JSON.
    requests: HashMap<(Side, String), Request>,
    sessions: HashMap<String, Open>,
    /// Whether a message of an unknown session is lost. The next session with a message gets the gap.
    has_gap: bool,
    /// The session of the latest message; empty before the first.
    latest: String,
    /// Whether the messages of the agent have ids.
    has_ids: bool,
}

/// The most requests without a response that are remembered, so that a peer that never answers cannot fill the
/// memory.
const MAX_REQUESTS: usize = 10_000;

impl Conversation {
    /// Reads a message and returns the changes that it makes.
    pub fn see(&mut self, from: Side, message: &Value) -> Vec<Change> {
        let params = message.get("params").unwrap_or(&Value::Null);
        let id = message.get("id").map(Value::to_string);
        match (message.get("method").and_then(Value::as_str), id) {
            (Some("session/update"), _) if from == Side::Agent => {
                self.update(params);
                Vec::new()
            }
            (Some(method), Some(id)) => self.request(from, id, method, params),
            (None, Some(id)) => match self.requests.remove(&(from.other(), id)) {
                Some(request) => self.response(request, message),
                None => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    /// Reads a message of which only the envelope is known, and returns the changes that it makes.
    pub fn see_envelope(&mut self, from: Side, envelope: &Value) -> Vec<Change> {
        let session = text(envelope.get("params").unwrap_or(&Value::Null), "sessionId");
        let lost_of = match envelope.get("method").and_then(Value::as_str) {
            Some("session/update" | "session/request_permission") if from == Side::Agent => {
                self.open(session).turn.gap();
                return Vec::new();
            }
            Some(_) => None,
            None => match self.request_of(from, envelope) {
                Some(Request::Prompt { session } | Request::Permission { session, .. }) => {
                    Some(session.clone())
                }
                _ => None,
            },
        };
        if let Some(session) = lost_of {
            self.open(session).turn.gap();
        }
        self.see(from, envelope)
    }

    /// The request to which this response of the side `from` belongs.
    fn request_of(&self, from: Side, response: &Value) -> Option<&Request> {
        let id = response.get("id")?.to_string();
        self.requests.get(&(from.other(), id))
    }

    /// Ends the turns that are still open, and returns the changes that record them.
    pub fn abort(&mut self) -> Vec<Change> {
        if self.has_gap && !self.latest.is_empty() {
            self.open(self.latest.clone());
        }
        let open = std::mem::take(&mut self.sessions).into_iter();
        let aborted = open.filter_map(|(session, open)| open.close(session, None));
        aborted.collect()
    }

    /// True if no turn, no request and no gap is open.
    pub fn is_idle(&self) -> bool {
        let has_turn = self.sessions.values().any(|open| !open.turn.is_empty());
        self.requests.is_empty() && !has_turn && !self.has_gap
    }

    /// Notes that messages are lost, in every session that is open.
    pub fn gap(&mut self) {
        let asked = self.requests.values().filter_map(|request| match request {
            Request::Prompt { session } | Request::Permission { session, .. } => Some(session),
            _ => None,
        });
        for session in asked.cloned().collect::<Vec<_>>() {
            self.sessions.entry(session).or_default();
        }
        for open in self.sessions.values_mut() {
            open.turn.gap();
        }
        self.has_gap = self.sessions.is_empty();
    }

    /// The state of a session that has a new message. If a message of an unknown session was lost before, this
    /// session gets the gap.
    fn open(&mut self, session: String) -> &mut Open {
        self.latest.clone_from(&session);
        let open = self.sessions.entry(session).or_default();
        if std::mem::take(&mut self.has_gap) {
            open.turn.gap();
        }
        open
    }

    fn update(&mut self, params: &Value) {
        let has_ids = self.has_ids;
        let open = self.open(text(params, "sessionId"));
        let update = params.get("update").unwrap_or(&Value::Null);
        if has_ids {
            open.turn.set_has_ids();
        }
        open.turn.update(update);
        self.has_ids = open.turn.has_ids();
    }

    fn request(&mut self, from: Side, id: String, method: &str, params: &Value) -> Vec<Change> {
        let (session, cwd) = (text(params, "sessionId"), text(params, "cwd"));
        let mut changes = Vec::new();
        let request = match (from, method) {
            (Side::Editor, "session/new") => Request::New { cwd },
            (Side::Editor, "session/load") => {
                changes.extend(self.late(&session));
                let open = Open {
                    turn: Turn::default(),
                    is_loading: true,
                };
                self.sessions.insert(session.clone(), open);
                Request::Load { session, cwd }
            }
            (Side::Editor, "session/resume") => Request::Resume { session, cwd },
            (Side::Editor, "session/fork") => Request::Fork {
                source: session,
                cwd,
            },
            (Side::Editor, "session/prompt") => {
                self.open(session.clone());
                changes.extend(self.late(&session));
                let item = match params.get("prompt").and_then(Value::as_array) {
                    Some(prompt) => {
                        let id = params.get("messageId").and_then(Value::as_str);
                        Item::Message(user_message(prompt, id))
                    }
                    None => Item::gap(),
                };
                changes.push(Change {
                    agent_session: session.clone(),
                    kind: ChangeKind::Append {
                        items: vec![item],
                        ends_turn: false,
                    },
                });
                Request::Prompt { session }
            }
            (Side::Agent, "session/request_permission") => Request::Permission {
                session,
                params: params.clone(),
            },
            (Side::Agent, "terminal/output") => Request::Output {
                session,
                terminal: text(params, "terminalId"),
            },
            _ => return changes,
        };
        if self.requests.len() < MAX_REQUESTS {
            self.requests.insert((from, id), request);
        }
        changes
    }

    /// The change that records the late updates of a turn, which arrived after its end; `None` if there are none.
    fn late(&mut self, session: &str) -> Option<Change> {
        let open = self.sessions.remove(session)?;
        open.close(session.to_owned(), Some("end_turn"))
    }

    /// Removes and returns the history that the agent replayed before it answered a load or a fork.
    fn replayed(&mut self, session: &str) -> Vec<Item> {
        let open = self.sessions.remove(session).unwrap_or_default();
        open.turn.finish(Some("end_turn"), None)
    }

    fn response(&mut self, request: Request, message: &Value) -> Vec<Change> {
        let result = message.get("result");
        let (agent_session, kind) = match (request, result) {
            (Request::New { cwd }, Some(result)) => {
                (text(result, "sessionId"), ChangeKind::Begin { cwd })
            }
            (Request::Fork { source, cwd }, Some(result)) => {
                let session = text(result, "sessionId");
                let items = self.replayed(&session);
                (session, ChangeKind::Fork { source, cwd, items })
            }
            (Request::Load { session, cwd }, Some(_)) => {
                let items = self.replayed(&session);
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
                let items = open.turn.finish(Some(&stop), result);
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
            (Request::Output { session, terminal }, Some(result)) => {
                if let Some(open) = self.sessions.get_mut(&session) {
                    open.turn.shows(&terminal, &text(result, "output"));
                }
                return Vec::new();
            }
            (_, None) => return Vec::new(),
        };
        self.latest.clone_from(&agent_session);
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn see(conversation: &mut Conversation, from: Side, id: u64, method: &str, params: Value) {
        conversation.see(from, &json!({"id": id, "method": method, "params": params}));
    }

    fn update(conversation: &mut Conversation, update: &Value) {
        let params = json!({"sessionId": "s", "update": update});
        conversation.see(
            Side::Agent,
            &json!({"method": "session/update", "params": params}),
        );
    }

    /// Ends the turn of this prompt, and returns its items.
    fn end(conversation: &mut Conversation, prompt: u64) -> Vec<Item> {
        let ended = json!({"id": prompt, "result": {"stopReason": "end_turn"}});
        let changes = conversation.see(Side::Agent, &ended);
        let items = changes.into_iter().map(|change| match change.kind {
            ChangeKind::Append { items, .. } => items,
            other => panic!("{other:?}"),
        });
        items.flatten().collect()
    }

    /// The result of a call in a terminal of the editor was once the id of the terminal.
    #[test]
    fn a_call_in_a_terminal_of_the_editor_has_what_the_agent_reads_there() {
        let mut conversation = Conversation::default();
        see(
            &mut conversation,
            Side::Editor,
            1,
            "session/prompt",
            json!({"sessionId": "s", "prompt": []}),
        );
        let content = json!([{"type": "terminal", "terminalId": "t"}]);
        update(
            &mut conversation,
            &json!({"sessionUpdate": "tool_call", "toolCallId": "c", "content": content}),
        );
        for (id, output) in [(7, "on"), (8, "one\n")] {
            let of = json!({"sessionId": "s", "terminalId": "t"});
            see(&mut conversation, Side::Agent, id, "terminal/output", of);
            let result = json!({"output": output, "truncated": false});
            conversation.see(Side::Editor, &json!({"id": id, "result": result}));
        }
        update(
            &mut conversation,
            &json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed"}),
        );
        let items = end(&mut conversation, 1);
        let Some(Item::Message(result)) = items.last() else {
            panic!("{items:?}");
        };
        assert_eq!(result["content"][0]["text"], "one\n");
    }

    /// The second turn has only a warning, which has no id. The ids of the first turn show that answers of this agent
    /// have ids, so the warning is not an answer.
    #[test]
    fn ids_of_an_earlier_turn_count() {
        let mut conversation = Conversation::default();
        let mut all = Vec::new();
        for (prompt, id) in [(1, Some("m")), (2, None)] {
            let params = json!({"sessionId": "s", "prompt": []});
            see(
                &mut conversation,
                Side::Editor,
                prompt,
                "session/prompt",
                params,
            );
            let content = json!({"type": "text", "text": "Busy."});
            update(
                &mut conversation,
                &json!({"sessionUpdate": "agent_message_chunk", "messageId": id, "content": content}),
            );
            all.push(end(&mut conversation, prompt));
        }
        assert!(matches!(&all[0][..], [Item::Message(_)]), "{all:?}");
        assert!(
            matches!(&all[1][..], [Item::Custom("acp.notice", _)]),
            "{all:?}"
        );
    }
}
