//! Maps the sessions of the editor to sessions of the agent, and makes the relay's own requests to the agent. Pure. An
//! "editor session" is named by an id that the editor uses, and an "agent session" by an id that the agent uses. Both
//! ids are the same until the conversation moves.

use super::message::{MAX_KEPT, Message};
use super::placed::Placed;
use crate::turn::{Item, Turn};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use uuid::Uuid;

/// The receiver of the messages of an agent session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The messages go to this editor session.
    Editors(String),
    /// The conversation has left the agent session, so its messages are dropped.
    Nobodys,
    /// The agent session is opened for a move of this editor session. Its messages are a history that the tree already
    /// has, so they are dropped.
    Muted(String),
}

/// Finds the agent session in which an editor session continued in an earlier run.
pub(crate) type Recall = Box<dyn Fn(&str) -> Option<String> + Send>;

pub(crate) struct Agents {
    /// The prefix of the ids of the relay's requests. It is random, so that neither side uses it.
    prefix: String,
    requests: u64,
    /// The relay's requests without a response, by their ids as JSON.
    own: HashMap<String, oneshot::Sender<Box<RawValue>>>,
    /// The editor session for which the agent is making a session now. The id of that agent session is not known yet.
    /// `None` if the agent makes no session for a move.
    unnamed: Option<String>,
    /// The receiver of each agent session. An agent session that is missing here belongs to the editor session with the
    /// same id.
    whose: HashMap<String, Whose>,
    /// The agent session of each editor session. If an editor session is missing here, its agent session has the same
    /// id.
    agent_of: HashMap<String, String>,
    /// The agent sessions of this run.
    known: HashSet<String>,
    /// The agent session of each prompt that runs, by the id of the prompt as JSON.
    running: HashMap<String, String>,
    /// The agent session of each request for permission that the editor has not answered, by the id of the request as
    /// JSON.
    questions: HashMap<String, String>,
    /// The requests for permission that the relay has answered.
    answered: HashSet<String>,
    /// For an agent session that gets the conversation as text: the block before its first prompt.
    handoffs: HashMap<String, String>,
    /// The agent sessions that were made for a move and have no prompt yet, with the files that were made for them.
    fresh: HashMap<String, Vec<Placed>>,
    /// The agent sessions that the conversation has left and that are still open, with the time when it left them.
    open: HashMap<String, Instant>,
    /// The agent sessions that were closed.
    closed: HashSet<String>,
    gone: HashSet<String>,
    /// The agent sessions that are being loaded again, with the history that the agent sends for them.
    heard: HashMap<String, Turn>,
    recall: Option<Recall>,
}

impl Default for Agents {
    fn default() -> Agents {
        Agents {
            prefix: format!("treelined-{}-", Uuid::new_v4().simple()),
            requests: 0,
            own: HashMap::new(),
            unnamed: None,
            whose: HashMap::new(),
            agent_of: HashMap::new(),
            known: HashSet::new(),
            running: HashMap::new(),
            questions: HashMap::new(),
            answered: HashSet::new(),
            handoffs: HashMap::new(),
            fresh: HashMap::new(),
            open: HashMap::new(),
            closed: HashSet::new(),
            gone: HashSet::new(),
            heard: HashMap::new(),
            recall: None,
        }
    }
}

impl Agents {
    pub(crate) fn set_recall(&mut self, recall: Recall) {
        self.recall = Some(recall);
    }

    /// Continues an editor session in the agent session in which an earlier run left it.
    pub(crate) fn recall(&mut self, editor: &str) {
        self.know(editor);
        if self.agent_of.contains_key(editor) || self.whose.contains_key(editor) {
            return;
        }
        if let Some(agent) = self.recall.as_ref().and_then(|recall| recall(editor)) {
            self.switch(editor, &agent);
            self.set_closed(editor);
        }
    }

    /// Lets the editor use an agent session under the id of that session. If another editor session already continues
    /// in it, nothing changes, and the id of that editor session is returned.
    pub(crate) fn claim(&mut self, session: &str) -> Option<String> {
        if self.agent_of.contains_key(session) {
            return None;
        }
        match self.whose.get(session) {
            Some(Whose::Editors(other) | Whose::Muted(other)) if other != session => {
                Some(other.clone())
            }
            _ => {
                self.whose.remove(session);
                self.open.remove(session);
                self.closed.remove(session);
                None
            }
        }
    }

    /// Forgets everything about an id, because the agent has made a new session with this id.
    pub(crate) fn forget(&mut self, session: &str) {
        if let Some(agent) = self.agent_of.remove(session) {
            self.leave(&agent);
        }
        self.whose.remove(session);
        self.open.remove(session);
        self.closed.remove(session);
        self.know(session);
    }

    fn know(&mut self, agent: &str) {
        if self.known.len() < MAX_KEPT {
            self.known.insert(agent.to_owned());
        }
    }

    /// Whether some editor session continues in an agent session of another id, or a text waits for the first prompt
    /// of an agent session.
    pub(crate) fn has_moved(&self) -> bool {
        !self.agent_of.is_empty() || !self.handoffs.is_empty()
    }

    pub(crate) fn has_handoff(&self, agent: &str) -> bool {
        self.handoffs.contains_key(agent)
    }

    /// The agent session of an editor session, if it has another id.
    pub(crate) fn agent_of(&self, editor: &str) -> Option<String> {
        self.agent_of.get(editor).cloned()
    }

    /// The agent session of an editor session.
    pub(crate) fn agent_or_same(&self, editor: &str) -> String {
        self.agent_of(editor).unwrap_or_else(|| editor.to_owned())
    }

    pub(crate) fn whose(&self, agent: &str) -> Whose {
        match (self.whose.get(agent), &self.unnamed) {
            (Some(whose), _) => whose.clone(),
            (None, Some(editor)) if !self.known.contains(agent) => Whose::Muted(editor.clone()),
            (None, _) => Whose::Editors(agent.to_owned()),
        }
    }

    /// The agent sessions that the conversation has left. The boolean says whether the agent still has the session
    /// open.
    pub(crate) fn left(&self) -> Vec<(String, bool)> {
        let is_left = |(agent, whose): &(&String, &Whose)| {
            **whose == Whose::Nobodys && !self.gone.contains(*agent)
        };
        let left = self.whose.iter().filter(is_left);
        left.map(|(agent, _)| (agent.clone(), !self.closed.contains(agent)))
            .collect()
    }

    /// Whether an editor session of this run uses an agent session that this run has seen.
    pub(crate) fn is_in_use(&self, agent: &str) -> bool {
        self.known.contains(agent) && matches!(self.whose(agent), Whose::Editors(_))
    }

    /// Notes that the conversation has left an agent session.
    fn leave(&mut self, agent: &str) {
        self.whose.insert(agent.to_owned(), Whose::Nobodys);
        self.open.insert(agent.to_owned(), Instant::now());
    }

    /// Notes that the conversation has left a session that the agent has not opened in this run.
    pub(crate) fn set_closed(&mut self, agent: &str) {
        self.open.remove(agent);
        self.closed.insert(agent.to_owned());
    }

    /// Removes and returns the sessions to close. These are the sessions that were left at least `age` ago. If more
    /// than `most` sessions are left and open, the oldest of them are closed too.
    pub(crate) fn due_to_close(&mut self, now: Instant, age: Duration, most: usize) -> Vec<String> {
        let mut left: Vec<_> = self
            .open
            .iter()
            .map(|(agent, since)| (*since, agent.clone()))
            .collect();
        left.sort_unstable();
        let extra = left.len().saturating_sub(most);
        let is_due = |(place, (since, _)): &(usize, (Instant, String))| {
            *place < extra || now.saturating_duration_since(*since) >= age
        };
        let due = left.into_iter().enumerate().filter(is_due);
        let due: Vec<_> = due.map(|(_, (_, agent))| agent).collect();
        for agent in &due {
            self.open.remove(agent);
            self.closed.insert(agent.clone());
        }
        due
    }

    /// Whether the conversation has left an agent session that is still open.
    pub(crate) fn has_left(&self) -> bool {
        !self.open.is_empty()
    }

    /// Notes that an agent session was made for a move, with the files that were made for it.
    pub(crate) fn set_fresh(&mut self, agent: &str, files: Vec<Placed>) {
        self.fresh.insert(agent.to_owned(), files);
    }

    /// Marks an agent session as deleted, and returns its files. `None`, and nothing changes, if it was not made for
    /// a move or has a prompt.
    pub(crate) fn take_fresh(&mut self, agent: &str) -> Option<Vec<Placed>> {
        let files = self.fresh.remove(agent)?;
        self.gone.insert(agent.to_owned());
        self.open.remove(agent);
        self.handoffs.remove(agent);
        Some(files)
    }

    /// Notes that an agent session is in use, so that it is not deleted.
    pub(crate) fn keep(&mut self, agent: &str) {
        self.fresh.remove(agent);
    }

    /// The agent sessions that were made for a move and have no prompt.
    pub(crate) fn all_fresh(&self) -> Vec<String> {
        self.fresh.keys().cloned().collect()
    }

    /// Whether an agent session was made for a move and never got a prompt. It may be deleted already.
    pub(crate) fn is_unprompted(&self, agent: &str) -> bool {
        self.fresh.contains_key(agent) || self.gone.contains(agent)
    }

    /// Begins to collect the history that the agent sends for a session that it loads.
    pub(crate) fn hear(&mut self, agent: &str) {
        self.heard.insert(agent.to_owned(), Turn::default());
    }

    /// Adds an update to the history of an agent session that is being loaded again.
    pub(crate) fn heard(&mut self, agent: &str, update: impl FnOnce() -> Option<Value>) {
        if let Some(turn) = self.heard.get_mut(agent)
            && let Some(update) = update()
        {
            turn.update(&update);
        }
    }

    /// Removes and returns the history that the agent has sent for a session.
    pub(crate) fn take_heard(&mut self, agent: &str) -> Vec<Item> {
        let turn = self.heard.remove(agent).unwrap_or_default();
        turn.finish(None, None)
    }

    /// Lets an editor session continue in an agent session.
    pub(crate) fn switch(&mut self, editor: &str, agent: &str) {
        let old = self.agent_or_same(editor);
        self.leave(&old);
        self.open.remove(agent);
        self.closed.remove(agent);
        if editor == agent {
            self.agent_of.remove(editor);
            self.whose.remove(agent);
        } else {
            self.agent_of.insert(editor.to_owned(), agent.to_owned());
            self.whose
                .insert(agent.to_owned(), Whose::Editors(editor.to_owned()));
        }
        self.know(agent);
    }

    /// Mutes an agent session that is opened for a move.
    pub(crate) fn mute(&mut self, agent: &str, editor: &str) {
        self.whose
            .insert(agent.to_owned(), Whose::Muted(editor.to_owned()));
    }

    /// Ends the attempt to open an agent session: it counts as left.
    pub(crate) fn give_up(&mut self, agent: &str) {
        self.leave(agent);
        self.heard.remove(agent);
    }

    /// Notes for which editor session the agent is making a session now. `None`: that session is made.
    pub(crate) fn set_unnamed(&mut self, editor: Option<&str>) {
        self.unnamed = editor.map(str::to_owned);
    }

    /// Whether this run has seen an agent session with this id.
    pub(crate) fn is_known(&self, agent: &str) -> bool {
        self.known.contains(agent) || self.whose.contains_key(agent)
    }

    pub(crate) fn set_handoff(&mut self, agent: &str, block: String) {
        self.handoffs.insert(agent.to_owned(), block);
    }

    pub(crate) fn take_handoff(&mut self, agent: &str) -> Option<String> {
        self.handoffs.remove(agent)
    }

    /// Notes that a prompt of an editor session runs.
    pub(crate) fn begins(&mut self, editor: &str, id: &RawValue) {
        if self.running.len() < MAX_KEPT {
            let agent = self.agent_or_same(editor);
            self.know(&agent);
            self.fresh.remove(&agent);
            self.running.insert(id.get().to_owned(), agent);
        }
    }

    /// Notes that the agent has answered a request of the editor.
    pub(crate) fn ends(&mut self, id: &RawValue) {
        self.running.remove(id.get());
    }

    pub(crate) fn is_running(&self, agent: &str) -> bool {
        self.running.values().any(|running| running == agent)
    }

    /// Notes a request of the agent for permission.
    pub(crate) fn asks(&mut self, agent: &str, id: &RawValue) {
        if self.questions.len() < MAX_KEPT {
            self.questions.insert(id.get().to_owned(), agent.to_owned());
        }
    }

    /// Notes that the editor answers a request for permission. True if the relay has already answered it.
    pub(crate) fn is_answered(&mut self, id: &RawValue) -> bool {
        self.questions.remove(id.get());
        self.answered.remove(id.get())
    }

    /// The lines that cancel the turn of an agent session and its open requests for permission.
    pub(crate) fn cancel(&mut self, agent: &str) -> Vec<u8> {
        let cancel = json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": agent } });
        let mut lines = format!("{cancel}\n");
        let asked = self.questions.extract_if(|_, of| of == agent);
        for (id, _) in asked.collect::<Vec<_>>() {
            lines.push_str(&super::commands::cancelled(&id));
            self.answered.insert(id);
        }
        lines.into_bytes()
    }

    /// Makes a request of the relay. Returns its line, and the receiver of its response.
    pub(crate) fn request(
        &mut self,
        method: &str,
        params: &str,
    ) -> (Vec<u8>, oneshot::Receiver<Box<RawValue>>) {
        self.requests += 1;
        let id = json!(format!("{}{}", self.prefix, self.requests)).to_string();
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":{},\"params\":{params}}}\n",
            json!(method)
        );
        let (sender, response) = oneshot::channel();
        self.own.insert(id, sender);
        (line.into_bytes(), response)
    }

    /// Passes a response to the request of the relay with this id. False if the request is not the relay's.
    pub(crate) fn take_own(&mut self, id: &RawValue, line: &[u8]) -> bool {
        if !id.get().contains(&self.prefix) {
            return false;
        }
        if let Some(sender) = self.own.remove(id.get())
            && let Ok(response) = serde_json::from_slice(line)
        {
            // The sender of the request may not wait any more.
            let _late = sender.send(response);
        }
        true
    }

    /// Notes that the agent has ended: all requests of the relay fail.
    pub(crate) fn end(&mut self) {
        self.own.clear();
    }
}

/// The result of a response, or the text of its error.
pub(crate) fn outcome(response: &RawValue) -> Result<Value, String> {
    let message = Message::read(response.get().as_bytes());
    let Some(message) = message else {
        return Err("the agent has answered something else".to_owned());
    };
    match message.is_success() {
        true => Ok(message.result().unwrap_or_default()),
        false => Err(message.error_text()),
    }
}
