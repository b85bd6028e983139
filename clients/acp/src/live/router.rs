//! Decides for each message where it goes. Pure.

use super::about::{About, has_forms};
use super::commands::{self, Clashes, Command, Fork, Job, List, Load};
use super::held::Held;
use super::message::{MAX_KEPT, Message, replaced, span};
use super::moves::{Agents, Whose};
use super::params::{
    Commands, ForkParams, ListParams, MAX_PARAMS, Prompt, Setting, Setup, Updated, setup,
};
use super::questions::{Answer, Questions};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::HashMap;

/// The treatment of a message of the editor.
#[derive(Debug)]
pub(crate) enum FromEditor {
    Passes {
        /// The message that is recorded in place of the message of the editor.
        recorded: Option<Vec<u8>>,
        /// The message that the agent gets in place of the recorded one.
        sent: Option<Vec<u8>>,
        /// The editor session, and the agent session in which it continues from now on.
        goes_on: Option<(String, String)>,
    },
    /// The message does not pass: the recorder's thread does this job.
    Job(Job),
    /// The message does not pass: the editor gets these lines.
    Answered(Vec<u8>),
    /// The message does not pass, and there is no answer.
    Ends,
}

impl FromEditor {
    pub(crate) fn passes() -> FromEditor {
        FromEditor::Passes {
            recorded: None,
            sent: None,
            goes_on: None,
        }
    }
}

/// The treatment of a message of the agent.
#[derive(Debug, Default)]
pub(crate) struct FromAgent {
    pub(crate) is_unrecorded: bool,
    pub(crate) passes: Passes,
    /// Lines that the editor gets after the message.
    pub(crate) then: Option<Vec<u8>>,
    /// The id of a session that the agent has made.
    pub(crate) made: Option<String>,
    /// A job that adds to the message before the editor gets it.
    pub(crate) job: Option<Job>,
    /// The answer that the agent gets.
    pub(crate) reply: Option<Vec<u8>>,
    /// A prompt of the editor that has waited for this message.
    pub(crate) released: Option<Vec<u8>>,
}

/// The editor gets the message, a changed message, or nothing.
#[derive(Debug, Default)]
pub(crate) enum Passes {
    #[default]
    Same,
    Changed(Vec<u8>),
    Not,
}

#[derive(Debug, Default)]
struct Session {
    clashes: Clashes,
    /// Whether the editor has the relay's commands for this session.
    is_announced: bool,
    setup: Option<Setup>,
    /// The agent's last list of commands with the relay's commands added, if the agent has sent a list.
    commands: Option<String>,
    /// The last setting of each kind, in the order in which the editor made them: its kind, method and params.
    settings: Vec<(String, String, Box<RawValue>)>,
    /// Whether the conversation is being moved.
    is_moving: bool,
}

#[derive(Debug)]
enum Asked {
    Initialize,
    Sessions,
    /// A request that opens or makes a session: the id of the session, if the request has one, and its params.
    Opening(Option<String>, Option<Setup>),
}

#[derive(Default)]
pub(crate) struct Router {
    /// The editor sessions, by their ids.
    sessions: HashMap<String, Session>,
    /// Requests of the editor without a response, by their ids as JSON.
    asked: HashMap<String, Asked>,
    pub(crate) agents: Agents,
    pub(crate) questions: Questions,
    pub(crate) held: Held,
    about: About,
    /// Whether the editor can show forms.
    has_forms: bool,
}

impl Router {
    pub(crate) fn editor_says(&mut self, line: &[u8]) -> FromEditor {
        let Some(message) = Message::read(line) else {
            return FromEditor::passes();
        };
        let Some(method) = message.method.as_deref() else {
            return self.answered(&message);
        };
        let session = message.session();
        if let Some(session) = session.as_ref().filter(|_| method == "session/cancel") {
            if let Some(ends) = self.questions.cancel(session) {
                return FromEditor::Answered(ends);
            }
            if let Some(id) = self.held.cancel(session) {
                let ended = json!({ "stopReason": "cancelled" });
                return FromEditor::Answered(commands::done(&id, &ended));
            }
        }
        if let (Some(id), Some(session), "session/prompt") = (message.id, &session, method)
            && self.held.holds(session, id, line)
        {
            return FromEditor::Ends;
        }
        if let Some(id) = message.id
            && let Some(ours) = self.ours(&message, method, session.as_deref(), id)
        {
            return ours;
        }
        if let Some(id) = message.id {
            self.note(method, id, session.as_deref(), &message);
        }
        match session {
            Some(session) => self.readdressed(line, &message, method, &session),
            None => FromEditor::passes(),
        }
    }

    /// The treatment of a request that the relay answers itself; `None` if the request passes.
    fn ours(
        &mut self,
        message: &Message<'_>,
        method: &str,
        session: Option<&str>,
        id: &RawValue,
    ) -> Option<FromEditor> {
        let refused = |text: &str| Some(FromEditor::Answered(commands::refusal(id, text)));
        if method == "session/list" && self.about.is_known && !self.about.lists {
            let place: ListParams = message.params().unwrap_or_default();
            return Some(FromEditor::Job(Job::List(List {
                id: id.to_owned(),
                cwd: place.cwd,
                cursor: place.cursor,
            })));
        }
        match (method, session?) {
            ("session/prompt", session) if self.is_moving(session) => refused(
                "The conversation is being moved: send the prompt again when the command is answered.",
            ),
            ("session/prompt", session) => {
                let command = self.command(message, session, id)?;
                Some(FromEditor::Job(Job::Command(command)))
            }
            ("session/load" | "session/resume", session) => {
                self.agents.recall(session);
                if let Some(load) = self.load(message, method, session, id) {
                    self.held.opens(session);
                    return Some(FromEditor::Job(Job::Load(load)));
                }
                let other = self.agents.claim(session)?;
                refused(&format!(
                    "The session {other} is open, and goes on in this one."
                ))
            }
            ("session/fork", session) => {
                let fork = self.fork(message, session, id)?;
                Some(FromEditor::Job(Job::Fork(fork)))
            }
            ("session/delete", session) if commands::branch_of(session).is_some() => {
                refused("This is a branch of a tree, and stays. `treelined rm` deletes the tree.")
            }
            _ => None,
        }
    }

    /// The treatment of a response of the editor. It is for a question of the relay, or for a request of the agent.
    fn answered(&mut self, message: &Message<'_>) -> FromEditor {
        let Some(id) = message.id else {
            return FromEditor::passes();
        };
        match self.questions.answered(id, message) {
            Some(Answer::Command(command)) => FromEditor::Job(Job::Command(command)),
            Some(Answer::Lines(lines)) => FromEditor::Answered(lines),
            Some(Answer::Nothing) => FromEditor::Ends,
            None if self.agents.is_answered(id) => FromEditor::Ends,
            None => FromEditor::passes(),
        }
    }

    /// Remembers the parts of a request that later messages need.
    fn note(&mut self, method: &str, id: &RawValue, session: Option<&str>, message: &Message<'_>) {
        let asked = match (method, session) {
            ("initialize", _) => {
                self.has_forms = has_forms(message);
                Asked::Initialize
            }
            ("session/list", _) => Asked::Sessions,
            ("session/new" | "session/fork", _) => Asked::Opening(None, setup(message)),
            ("session/load" | "session/resume", Some(session)) => {
                Asked::Opening(Some(session.to_owned()), setup(message))
            }
            ("session/prompt", Some(session)) => {
                self.agents.begins(session, id);
                return;
            }
            (
                "session/set_mode" | "session/set_model" | "session/set_config_option",
                Some(session),
            ) => {
                self.keep_setting(session, method, message);
                return;
            }
            _ => return,
        };
        if self.asked.len() < MAX_KEPT {
            if let Asked::Opening(Some(session), _) = &asked {
                self.held.opens(session);
            }
            self.asked.insert(id.get().to_owned(), asked);
        }
    }

    fn keep_setting(&mut self, session: &str, method: &str, message: &Message<'_>) {
        let option = message.params::<Setting>().map(|setting| setting.config_id);
        let kind = format!("{method} {}", option.unwrap_or_default());
        let params: Option<&RawValue> = message.params();
        if let Some(session) = self.sessions.get_mut(session)
            && let Some(params) = params.filter(|params| params.get().len() <= MAX_PARAMS)
        {
            session.settings.retain(|(other, ..)| *other != kind);
            if session.settings.len() < MAX_KEPT {
                session
                    .settings
                    .push((kind, method.to_owned(), params.to_owned()));
            }
        }
    }

    /// The treatment of a message for which the ids of the editor session and the agent session differ.
    fn readdressed(
        &mut self,
        line: &[u8],
        message: &Message<'_>,
        method: &str,
        session: &str,
    ) -> FromEditor {
        let Some((agent, raw)) = self.agents.agent_of(session).zip(message.session_text()) else {
            // The editor uses the id of the agent here, so the id in the message stays.
            let is_first = method == "session/prompt" && self.agents.has_handoff(session);
            let sent = is_first.then(|| self.with_handoff(session, line)).flatten();
            return FromEditor::Passes {
                recorded: None,
                sent,
                goes_on: None,
            };
        };
        let id = json!(agent).to_string();
        let recorded = replaced(line, span(line, raw), id.as_bytes());
        let (mut sent, mut goes_on) = (None, None);
        if method == "session/prompt" {
            sent = self.with_handoff(&agent, &recorded);
            goes_on = Some((session.to_owned(), agent));
        }
        FromEditor::Passes {
            recorded: Some(recorded),
            sent,
            goes_on,
        }
    }

    /// The first prompt of an agent session, with the text of the conversation put before it. `None` if no such text
    /// waits.
    fn with_handoff(&mut self, agent: &str, line: &[u8]) -> Option<Vec<u8>> {
        let message = Message::read(line)?;
        let Prompt { prompt } = message.params()?;
        let rest = prompt.get().strip_prefix('[')?;
        let handoff = self.agents.take_handoff(agent)?;
        let comma = if rest.trim_start().starts_with(']') {
            ""
        } else {
            ","
        };
        let prompt_with = ["[", &handoff, comma, rest].concat();
        Some(replaced(line, span(line, prompt), prompt_with.as_bytes()))
    }

    fn command(&self, message: &Message<'_>, session: &str, id: &RawValue) -> Option<Command> {
        let clashes = self.sessions.get(session)?.clashes;
        let params: &RawValue = message.params()?;
        let (verb, words) = commands::read(params.get(), clashes)?;
        Some(Command {
            id: id.to_owned(),
            session: session.to_owned(),
            verb,
            words,
            asked: None,
        })
    }

    /// The job that opens a session for the editor: one that stands for a branch, or one that the agent cannot load.
    /// `None` if the agent loads the session.
    fn load(
        &self,
        message: &Message<'_>,
        method: &str,
        session: &str,
        id: &RawValue,
    ) -> Option<Load> {
        let branch = commands::branch_of(session);
        let has_no_load = self.about.is_known && !self.about.loads;
        let is_ours = branch.is_some() && self.agents.agent_of(session).is_none();
        (is_ours || (has_no_load && method == "session/load")).then_some(())?;
        Some(Load {
            id: id.to_owned(),
            session: session.to_owned(),
            branch: branch.map(|(tree, entry)| (tree.to_owned(), entry.to_owned())),
            replays: method == "session/load",
            setup: setup(message)?,
        })
    }

    /// The job that forks a session. `None` if the agent can make this fork itself.
    fn fork(&self, message: &Message<'_>, session: &str, id: &RawValue) -> Option<Fork> {
        let params: ForkParams = message.params().unwrap_or_default();
        let ours = params.meta.and_then(|meta| meta.treelined);
        let at = ours.and_then(|ours| ours.message_id);
        let has_no_fork = self.about.is_known && !self.about.forks;
        (at.is_some() || has_no_fork).then_some(())?;
        Some(Fork {
            id: id.to_owned(),
            session: session.to_owned(),
            message: at,
            setup: setup(message)?,
        })
    }

    /// Notes that an editor session is open, with the commands of the session `like`. Returns the message that
    /// announces these commands.
    pub(crate) fn loaded(
        &mut self,
        id: &str,
        setup: &Setup,
        like: Option<&str>,
    ) -> Option<Vec<u8>> {
        let like = like.and_then(|like| self.sessions.get(like));
        let (clashes, commands) = like.map_or_else(Default::default, |like| {
            (like.clashes, like.commands.clone())
        });
        let session = self.session(id.to_owned())?;
        session.setup = Some(setup.clone());
        if std::mem::replace(&mut session.is_announced, true) {
            return None;
        }
        (session.clashes, session.commands) = (clashes, commands);
        Some(commands::announcement(id, session.commands.as_deref()))
    }

    pub(crate) fn agent_says(&mut self, line: &[u8]) -> FromAgent {
        let Some(message) = Message::read(line) else {
            return FromAgent::default();
        };
        match (message.method.as_deref(), message.id) {
            (None, Some(id)) if self.agents.take_own(id, line) => FromAgent {
                is_unrecorded: true,
                passes: Passes::Not,
                ..FromAgent::default()
            },
            (None, Some(id)) => {
                self.agents.ends(id);
                self.opened(id, line, &message).unwrap_or_default()
            }
            (Some(method), id) => match message.session() {
                Some(session) => self.of_session(line, &message, method, id, &session),
                None => FromAgent::default(),
            },
            (None, None) => FromAgent::default(),
        }
    }

    /// The treatment of a notification or a request of the agent that belongs to a session.
    fn of_session(
        &mut self,
        line: &[u8],
        message: &Message<'_>,
        method: &str,
        id: Option<&RawValue>,
        agent: &str,
    ) -> FromAgent {
        let (is_unrecorded, editor) = match self.agents.whose(agent) {
            Whose::Muted(_) if id.is_none() => (true, None),
            Whose::Muted(editor) => (true, Some(editor)),
            Whose::Nobodys => (false, None),
            Whose::Editors(editor) => (false, Some(editor)),
        };
        let Some(editor) = editor else {
            if is_unrecorded && method == "session/update" {
                let update = || message.params().map(|params: Updated| params.update);
                self.agents.heard(agent, update);
            }
            return FromAgent {
                is_unrecorded,
                passes: Passes::Not,
                reply: id.map(|id| commands::unanswered(id, method)),
                ..FromAgent::default()
            };
        };
        if method == "session/request_permission"
            && let Some(id) = id
        {
            self.agents.asks(agent, id);
        }
        let merged = match method {
            "session/update" => self.merged(line, message, &editor),
            _ => None,
        };
        let merged_line = merged.as_deref().unwrap_or(line);
        let readdressed = (editor != agent)
            .then(|| with_session(merged_line, &editor))
            .flatten();
        FromAgent {
            is_unrecorded,
            passes: readdressed.or(merged).map_or(Passes::Same, Passes::Changed),
            ..FromAgent::default()
        }
    }

    /// The agent's message with a list of commands, to which the relay's commands are added.
    fn merged(&mut self, line: &[u8], message: &Message<'_>, editor: &str) -> Option<Vec<u8>> {
        let Commands { update } = message.params()?;
        if update.session_update != "available_commands_update" {
            return None;
        }
        let agents = update.available_commands;
        let clashes = commands::clashes(agents);
        let merged = commands::merged(agents, clashes)?;
        let session = self.session(editor.to_owned())?;
        (session.clashes, session.is_announced) = (clashes, true);
        let text = String::from_utf8(merged.clone()).ok();
        session.commands = text.filter(|text| text.len() <= MAX_PARAMS);
        Some(replaced(line, span(line, agents), &merged))
    }

    /// The treatment of the agent's answer to a request. If the answer opens a session and the agent has announced no
    /// commands there, the relay's commands are announced after the answer.
    fn opened(&mut self, id: &RawValue, line: &[u8], message: &Message<'_>) -> Option<FromAgent> {
        let asked = self.asked.remove(id.get())?;
        let released = match &asked {
            Asked::Opening(Some(session), _) => self.held.opened(session),
            _ => None,
        };
        if !message.is_success() {
            return Some(FromAgent {
                released,
                ..FromAgent::default()
            });
        }
        let (named, setup) = match asked {
            Asked::Initialize => {
                self.about = About::read(message);
                let promised = self.about.promise(line, message)?;
                return Some(FromAgent {
                    passes: Passes::Changed(promised),
                    ..FromAgent::default()
                });
            }
            Asked::Sessions => {
                return Some(FromAgent {
                    passes: Passes::Not,
                    job: Some(Job::Sessions(line.to_vec())),
                    ..FromAgent::default()
                });
            }
            Asked::Opening(named, setup) => (named, setup),
        };
        let is_new = named.is_none();
        let id = named.or_else(|| message.new_session())?;
        if is_new {
            // Some agents use an id again for a new session.
            self.agents.forget(&id);
        }
        let session = self.session(id.clone())?;
        session.setup = setup.or(session.setup.take());
        let is_announced = std::mem::replace(&mut session.is_announced, true);
        Some(FromAgent {
            then: (!is_announced).then(|| commands::announcement(&id, None)),
            made: is_new.then_some(id),
            released,
            ..FromAgent::default()
        })
    }

    fn session(&mut self, id: String) -> Option<&mut Session> {
        if self.sessions.len() >= MAX_KEPT && !self.sessions.contains_key(&id) {
            return None;
        }
        Some(self.sessions.entry(id).or_default())
    }

    fn is_moving(&self, session: &str) -> bool {
        self.sessions
            .get(session)
            .is_some_and(|session| session.is_moving)
    }

    /// Sets whether the conversation is being moved. Prompts are refused meanwhile.
    pub(crate) fn set_moving(&mut self, session: &str, is_moving: bool) {
        if let Some(session) = self.sessions.get_mut(session) {
            session.is_moving = is_moving;
        }
    }

    pub(crate) fn has_forms(&self) -> bool {
        self.has_forms
    }

    pub(crate) fn about(&self) -> About {
        self.about.clone()
    }

    /// The params with which the editor opened a session.
    pub(crate) fn setup(&self, session: &str) -> Option<Setup> {
        self.sessions.get(session)?.setup.clone()
    }

    /// The methods and params of the settings that the editor has made in a session.
    pub(crate) fn settings(&self, session: &str) -> Vec<(String, Box<RawValue>)> {
        let settings = self.sessions.get(session).map(|session| &session.settings);
        let settings = settings.into_iter().flatten();
        settings
            .map(|(_, method, params)| (method.clone(), params.clone()))
            .collect()
    }
}

/// The treatment of a message that is too long, so that only its envelope is known.
pub(crate) fn too_long(envelope: &Value) -> FromEditor {
    let id = envelope
        .get("id")
        .filter(|_| envelope.get("method").is_some());
    let Some(id) = id.and_then(|id| serde_json::value::to_raw_value(id).ok()) else {
        return FromEditor::Ends;
    };
    FromEditor::Answered(commands::refusal(
        &id,
        "A message over 48 MiB cannot go on in a conversation that was moved.",
    ))
}

/// The line with another session id in its params; `None` if it has no session id.
pub(crate) fn with_session(line: &[u8], session: &str) -> Option<Vec<u8>> {
    let message = Message::read(line)?;
    let id = json!(session).to_string();
    Some(replaced(
        line,
        span(line, message.session_text()?),
        id.as_bytes(),
    ))
}

/// The params with another session id.
pub(crate) fn with_session_in(params: &str, session: &str) -> String {
    let message = format!("{{\"params\":{params}}}");
    let changed = with_session(message.as_bytes(), session);
    let changed = changed.and_then(|bytes| String::from_utf8(bytes).ok());
    let changed = changed.unwrap_or(message);
    let params = changed.strip_prefix("{\"params\":");
    let params = params.and_then(|params| params.strip_suffix('}'));
    params.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
