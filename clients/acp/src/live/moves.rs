//! Which sessions of the agent the sessions of the editor are, and our own requests to the agent. Pure.

use super::message::{MAX_KEPT, Message};
use super::placed::Placed;
use crate::turn::{Item, Turn};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use uuid::Uuid;

/// To whom the messages of a session of the agent go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Whose {
    /// To this session of the editor.
    Editors(String),
    /// The conversation has left it.
    Nobodys,
    /// It is opened for a move of this session of the editor. The history that it sends is in the tree already.
    Muted(String),
}

/// Finds in which session of the agent one of the editor went on.
pub(crate) type Recall = Box<dyn Fn(&str) -> Option<String> + Send>;

pub(crate) struct Agents {
    /// The prefix of the ids of our requests. Neither side can have it.
    prefix: String,
    requests: u64,
    /// Our requests, by their ids as JSON.
    own: HashMap<String, oneshot::Sender<Box<RawValue>>>,
    /// Our requests whose sessions the agent has yet to name, with the editor's sessions for which they are.
    unnamed: Option<String>,
    /// By the agent's ids; one that is not here is the editor's of the same id.
    whose: HashMap<String, Whose>,
    /// By the editor's ids; one that is not here is the agent's of the same id.
    agent_of: HashMap<String, String>,
    /// Sessions of the agent that were named.
    known: HashSet<String>,
    /// Prompts that run, by their ids as JSON, with the agent's sessions.
    running: HashMap<String, String>,
    /// Questions of the agent that the editor has yet to answer, by their ids as JSON, with the agent's sessions.
    questions: HashMap<String, String>,
    /// Questions that we have answered.
    answered: HashSet<String>,
    /// Blocks that go before the first prompt in a session of the agent.
    handoffs: HashMap<String, String>,
    /// Sessions of the agent that were made for a move and have no prompt yet, with the files that were made for them.
    fresh: HashMap<String, Vec<Placed>>,
    /// Sessions that the conversation has left, and since when, while the agent has them open.
    open: HashMap<String, Instant>,
    /// Sessions that were closed, and those that were taken back.
    closed: HashSet<String>,
    gone: HashSet<String>,
    /// Sessions that are loaded again, with the history that the agent sends.
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

    /// Finds where a session that the editor opens went on.
    pub(crate) fn recall(&mut self, editor: &str) {
        self.know(editor);
        if self.agent_of.contains_key(editor) || self.whose.contains_key(editor) {
            return;
        }
        if let Some(agent) = self.recall.as_ref().and_then(|recall| recall(editor)) {
            self.switch(editor, &agent);
        }
    }

    /// Lets the editor open a session of the agent by its own id. Returns the session of the editor that goes on in it already.
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

    /// Takes in that the agent has made a session with the id of another one.
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

    /// Whether a session of the editor is another one of the agent, or its next prompt goes with more.
    pub(crate) fn has_moved(&self) -> bool {
        !self.agent_of.is_empty() || !self.handoffs.is_empty()
    }

    pub(crate) fn has_handoff(&self, agent: &str) -> bool {
        self.handoffs.contains_key(agent)
    }

    /// The agent's session that one of the editor's is, if it has another id.
    pub(crate) fn agent_of(&self, editor: &str) -> Option<String> {
        self.agent_of.get(editor).cloned()
    }

    /// The agent's session that one of the editor's is.
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

    /// The sessions of the agent that were opened and that the conversation has left. Each with whether it is still open.
    pub(crate) fn left(&self) -> Vec<(String, bool)> {
        let is_left = |(agent, whose): &(&String, &Whose)| {
            **whose == Whose::Nobodys && !self.gone.contains(*agent)
        };
        let left = self.whose.iter().filter(is_left);
        left.map(|(agent, _)| (agent.clone(), !self.closed.contains(agent)))
            .collect()
    }

    /// Takes in that the conversation has left a session of the agent.
    fn leave(&mut self, agent: &str) {
        self.whose.insert(agent.to_owned(), Whose::Nobodys);
        self.open.insert(agent.to_owned(), Instant::now());
    }

    /// The sessions to close: left for `age`, or beside `most` later ones.
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

    /// Whether a session that was left is open.
    pub(crate) fn has_left(&self) -> bool {
        !self.open.is_empty()
    }

    /// Takes in that a session was made for a move, and the files that were made for it.
    pub(crate) fn set_fresh(&mut self, agent: &str, files: Vec<Placed>) {
        self.fresh.insert(agent.to_owned(), files);
    }

    /// The files of a session that was made for a move, if it has no prompt yet. It is not used again.
    pub(crate) fn take_fresh(&mut self, agent: &str) -> Option<Vec<Placed>> {
        let files = self.fresh.remove(agent)?;
        self.gone.insert(agent.to_owned());
        self.open.remove(agent);
        self.handoffs.remove(agent);
        Some(files)
    }

    /// Takes in that a session was made for the editor.
    pub(crate) fn keep(&mut self, agent: &str) {
        self.fresh.remove(agent);
    }

    /// All sessions without a prompt, at the end.
    pub(crate) fn all_fresh(&self) -> Vec<String> {
        self.fresh.keys().cloned().collect()
    }

    /// Whether a session of the agent has only messages from before a move.
    pub(crate) fn is_unprompted(&self, agent: &str) -> bool {
        self.fresh.contains_key(agent) || self.gone.contains(agent)
    }

    /// Collects the history that the agent sends of a session that it loads.
    pub(crate) fn hear(&mut self, agent: &str) {
        self.heard.insert(agent.to_owned(), Turn::default());
    }

    /// Takes in an update of a session that is muted.
    pub(crate) fn heard(&mut self, agent: &str, update: impl FnOnce() -> Option<Value>) {
        if let Some(turn) = self.heard.get_mut(agent)
            && let Some(update) = update()
        {
            turn.update(&update);
        }
    }

    /// The agent's messages about a session.
    pub(crate) fn take_heard(&mut self, agent: &str) -> Vec<Item> {
        let turn = self.heard.remove(agent).unwrap_or_default();
        turn.finish(None, None)
    }

    /// Lets the editor's session go on in a session of the agent.
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

    /// Mutes a session of the agent that is opened for a move.
    pub(crate) fn mute(&mut self, agent: &str, editor: &str) {
        self.whose
            .insert(agent.to_owned(), Whose::Muted(editor.to_owned()));
    }

    /// Takes back that a session was muted: nobody hears of it.
    pub(crate) fn give_up(&mut self, agent: &str) {
        self.leave(agent);
        self.heard.remove(agent);
    }

    /// Takes in that the agent is about to name a new session for a move of the editor's, or has named it.
    pub(crate) fn set_unnamed(&mut self, editor: Option<&str>) {
        self.unnamed = editor.map(str::to_owned);
    }

    /// Whether the agent has had a session of this id in this run.
    pub(crate) fn is_known(&self, agent: &str) -> bool {
        self.known.contains(agent) || self.whose.contains_key(agent)
    }

    pub(crate) fn set_handoff(&mut self, agent: &str, block: String) {
        self.handoffs.insert(agent.to_owned(), block);
    }

    pub(crate) fn take_handoff(&mut self, agent: &str) -> Option<String> {
        self.handoffs.remove(agent)
    }

    /// Takes in that a prompt of an editor's session runs.
    pub(crate) fn begins(&mut self, editor: &str, id: &RawValue) {
        if self.running.len() < MAX_KEPT {
            let agent = self.agent_or_same(editor);
            self.know(&agent);
            self.fresh.remove(&agent);
            self.running.insert(id.get().to_owned(), agent);
        }
    }

    /// Takes in that the agent has answered a request of the editor.
    pub(crate) fn ends(&mut self, id: &RawValue) {
        self.running.remove(id.get());
    }

    pub(crate) fn is_running(&self, agent: &str) -> bool {
        self.running.values().any(|running| running == agent)
    }

    /// Takes in that the agent asks for a permission.
    pub(crate) fn asks(&mut self, agent: &str, id: &RawValue) {
        if self.questions.len() < MAX_KEPT {
            self.questions.insert(id.get().to_owned(), agent.to_owned());
        }
    }

    /// Takes in that the editor answers a question. True if we have answered it.
    pub(crate) fn is_answered(&mut self, id: &RawValue) -> bool {
        self.questions.remove(id.get());
        self.answered.remove(id.get())
    }

    /// The messages that end the turn of a session of the agent.
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

    /// A request of ours: its line, and its response to come.
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

    /// Takes a response to a request of ours in. False if it is another one.
    pub(crate) fn take_own(&mut self, id: &RawValue, line: &[u8]) -> bool {
        if !id.get().contains(&self.prefix) {
            return false;
        }
        if let Some(sender) = self.own.remove(id.get())
            && let Ok(response) = serde_json::from_slice(line)
        {
            // The request may have been given up.
            let _late = sender.send(response);
        }
        true
    }

    /// Takes in that the agent has ended: nothing is answered any more.
    pub(crate) fn end(&mut self) {
        self.own.clear();
    }
}

/// The result of a response, or the message of its error.
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
