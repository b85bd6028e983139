//! The relay's questions to the user, and the effect of an answer on the command that asks. Pure.

use super::commands::{self, Asked, Command, Verb};
use super::message::{MAX_KEPT, Message};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::HashMap;
use uuid::Uuid;

/// The words of `/undo` that choose the conversation alone, or the files too.
pub(crate) const CONVERSATION: &str = "conversation";
pub(crate) const FILES: &str = "files";
/// The words of `/tree` and `/branches` that show text and ask nothing.
pub(crate) const TEXT: &str = "text";

pub(crate) struct Questions {
    /// The prefix of the ids of questions. It is random, so that neither side uses it.
    prefix: String,
    count: u64,
    /// The commands that wait for an answer, by the ids of their questions as JSON.
    open: HashMap<String, Command>,
}

impl Default for Questions {
    fn default() -> Questions {
        Questions {
            prefix: format!("treelined-ask-{}-", Uuid::new_v4().simple()),
            count: 0,
            open: HashMap::new(),
        }
    }
}

/// The effect of an answer.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The command continues with the chosen words.
    Command(Command),
    /// The editor gets these lines.
    Lines(Vec<u8>),
    /// The answer is ignored, because its question is not open.
    Nothing,
}

/// The result of `session/request_permission`, or of `elicitation/create`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Chosen {
    outcome: Outcome,
    action: String,
    content: Content,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Outcome {
    option_id: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Content {
    place: Option<String>,
}

impl Questions {
    fn ask(&mut self, command: Command, method: &str, params: &Value) -> Option<Vec<u8>> {
        if self.open.len() >= MAX_KEPT {
            return None;
        }
        let id = json!(format!("{}{}", self.prefix, self.count)).to_string();
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n"
        );
        self.open.insert(id, command);
        Some(line.into_bytes())
    }

    /// Asks whether the files are restored too. The conversation goes back before the prompt `about`, and `preview`
    /// shows the changes of files.
    pub(crate) fn ask_for_files(
        &mut self,
        command: &Command,
        about: &str,
        preview: &str,
    ) -> Option<Vec<u8>> {
        self.count += 1;
        let call = format!("{}{}", self.prefix, self.count);
        let option = |id: &str, name: &str, kind: &str| json!({ "optionId": id, "name": name, "kind": kind });
        let text =
            json!({ "type": "text", "text": format!("```text\n{}\n```\n", preview.trim_end()) });
        let params = json!({
            "sessionId": command.session,
            "toolCall": {
                "toolCallId": call, "title": "Bring the files back too?", "kind": "edit", "status": "pending",
                "content": [{ "type": "content", "content": text }],
            },
            // An editor that allows everything without asking the user takes the first option.
            "options": [
                option(CONVERSATION, "The conversation alone", "allow_once"),
                option(FILES, "The files too", "allow_once"),
                option("nothing", "Nothing", "reject_once"),
            ],
        });
        let asked = Asked {
            call,
            about: about.to_owned(),
            preview: preview.to_owned(),
        };
        let command = command.with(command.verb, "", Some(asked));
        self.ask(command, "session/request_permission", &params)
    }

    /// Asks to which branch the conversation goes. `branches` has the tip and the text of each branch.
    pub(crate) fn ask_for_branch(
        &mut self,
        command: &Command,
        branches: &[(String, String)],
    ) -> Option<Vec<u8>> {
        self.count += 1;
        let choices = branches
            .iter()
            .map(|(tip, title)| json!({ "const": tip, "title": title }));
        let place =
            json!({ "type": "string", "title": "Branch", "oneOf": Value::from_iter(choices) });
        let params = json!({
            "mode": "form",
            "sessionId": command.session,
            "message": "To which branch does the conversation go?",
            "requestedSchema": { "type": "object", "properties": { "place": place }, "required": ["place"] },
        });
        let command = command.with(command.verb, "", None);
        self.ask(command, "elicitation/create", &params)
    }

    /// Reads the editor's answer to a question. `None` if the relay has not asked it.
    pub(crate) fn answered(&mut self, id: &RawValue, message: &Message<'_>) -> Option<Answer> {
        if !id.get().contains(&self.prefix) {
            return None;
        }
        let Some(command) = self.open.remove(id.get()) else {
            return Some(Answer::Nothing);
        };
        if !message.is_success() {
            // The editor cannot show the question, so the command runs in the form that needs no answer.
            let words = if command.verb == Verb::Undo {
                CONVERSATION
            } else {
                TEXT
            };
            return Some(Answer::Command(command.with(command.verb, words, None)));
        }
        let chosen: Chosen = message.result().unwrap_or_default();
        Some(match command.asked.clone() {
            Some(asked) => match chosen.outcome.option_id.as_deref() {
                Some(words @ (CONVERSATION | FILES)) => {
                    Answer::Command(command.with(Verb::Undo, words, Some(asked)))
                }
                _ => Answer::Lines(commands::given_up(&command)),
            },
            None => match chosen.content.place.filter(|_| chosen.action == "accept") {
                Some(place) => Answer::Command(command.with(Verb::Go, &place, None)),
                None => Answer::Lines(commands::answer(&command, "Nothing was chosen.")),
            },
        })
    }

    /// Cancels the questions of a session. Returns the lines that end their commands, or `None` if there are no
    /// questions.
    pub(crate) fn cancel(&mut self, session: &str) -> Option<Vec<u8>> {
        let asking = self
            .open
            .extract_if(|_, command| command.session == session);
        let ends: Vec<_> = asking
            .map(|(_, command)| commands::given_up(&command))
            .collect();
        (!ends.is_empty()).then(|| ends.concat())
    }
}
