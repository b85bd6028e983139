//! Writes a rollout for Codex, `sessions/Y/M/D/rollout-<time>-<uuid>.jsonl`. The model gets the `response_item`
//! records. The user sees the events `user_message` and `agent_message`; without them Codex does not list the thread.
//! Each turn also has its events, so that the thread can be forked.

use super::json::Lines;
use super::session::{NewSession, Steps, Written, command, tested};
use crate::place::NewFile;
use serde_json::{Value, json};
use treelined_core::error::Result;
use treelined_core::timestamp;
use treelined_import::Tool;
use treelined_import::neutral::{Call, CallResult, Message, ModelPart, Part, UserMessage, text_of};

/// The file that has Codex's settings.
pub(super) const SETTINGS: &str = "config.toml";
/// The provider, if the settings do not name one.
const PROVIDER: &str = "openai";
/// The most characters of a call's arguments that the user sees.
const MAX_SHOWN: usize = 200;

pub(super) fn write(session: &NewSession<'_>) -> Result<Written> {
    let id = session.sorted_uuid().to_string();
    let now = timestamp::format(session.now);
    let (day, clock) = now.split_at(10);
    let clock = clock.get(1..9).unwrap_or_default().replace(':', "-");
    let folder = session
        .agent_store()?
        .join("sessions")
        .join(day.replace('-', "/"));
    let mut records = Records {
        session,
        lines: Lines::default(),
        now: now.clone(),
        turn: None,
        said: None,
    };
    records.push(
        "session_meta",
        json!({
            "id": id,
            "timestamp": now,
            "cwd": session.cwd,
            "originator": "treelined",
            "cli_version": tested(Tool::Codex),
            "source": "cli",
            "model_provider": provider(session.settings),
        }),
    );
    for (at, message) in session.steps() {
        records.now = timestamp::format(session.time(at));
        match message {
            Message::User(said) => {
                records.end_turn();
                records.begin_turn(session.random().to_string());
                records.user(said);
            }
            Message::Model(said) => said.parts.iter().for_each(|part| records.answer(part)),
            Message::Results(results) => results.iter().for_each(|result| records.result(result)),
        }
    }
    records.end_turn();
    let steps: Steps = {
        let id = id.clone();
        Box::new(move |prompt| vec![command(&["codex", "resume", &id], prompt)])
    };
    Ok(Written {
        files: vec![NewFile {
            path: folder.join(format!("rollout-{day}T{clock}-{id}.jsonl")),
            bytes: records.lines.into_bytes(),
        }],
        native_id: Some(id),
        steps,
    })
}

/// The provider that the settings name. Codex does not load a thread whose provider is not in its settings.
fn provider(settings: &str) -> String {
    let settings: toml::Table = settings.parse().unwrap_or_default();
    let named = |table: &toml::Table| Some(table.get("model_provider")?.as_str()?.to_owned());
    let profile = settings.get("profile").and_then(toml::Value::as_str);
    let profile = profile.and_then(|name| settings.get("profiles")?.get(name)?.as_table());
    let found = profile.and_then(named).or_else(|| named(&settings));
    found.unwrap_or_else(|| PROVIDER.to_owned())
}

struct Records<'a> {
    session: &'a NewSession<'a>,
    lines: Lines,
    now: String,
    turn: Option<String>,
    /// The last text of the model in this turn.
    said: Option<String>,
}

impl Records<'_> {
    fn push(&mut self, kind: &str, payload: Value) {
        let line = json!({ "timestamp": self.now, "type": kind, "payload": payload });
        self.lines.push(&line);
    }

    /// Adds a record in the form that Codex writes when it forks the thread: with an id, and with Codex's order of
    /// members. So a copy has the same bytes, and an import recognizes the copy by its bytes.
    fn item(&mut self, kind: &str, prefix: &str, members: Value) {
        let id = format!("{prefix}_{}", self.session.random());
        let mut payload = json!({ "type": kind, "id": id });
        if let (Some(payload), Value::Object(members)) = (payload.as_object_mut(), members) {
            payload.extend(members);
        }
        self.push("response_item", payload);
    }

    fn begin_turn(&mut self, id: String) {
        self.push(
            "event_msg",
            json!({ "type": "task_started", "turn_id": id, "model_context_window": null }),
        );
        self.turn = Some(id);
    }

    fn end_turn(&mut self) {
        if let Some(id) = self.turn.take() {
            let said = self.said.take();
            self.push(
                "event_msg",
                json!({ "type": "task_complete", "turn_id": id, "last_agent_message": said }),
            );
        }
    }

    fn user(&mut self, said: &UserMessage) {
        let content: Vec<Value> = said.parts.iter().map(input).collect();
        self.item(
            "message",
            "msg",
            json!({ "role": "user", "content": content }),
        );
        let images: Vec<String> = said.parts.iter().filter_map(image_url).collect();
        let mut event = json!({ "type": "user_message", "message": text_of(&said.parts) });
        if !images.is_empty()
            && let Some(event) = event.as_object_mut()
        {
            event.insert("images".to_owned(), json!(images));
        }
        self.push("event_msg", event);
    }

    fn answer(&mut self, part: &ModelPart) {
        match part {
            ModelPart::Text(text) => {
                let content = json!([{ "type": "output_text", "text": text }]);
                self.item(
                    "message",
                    "msg",
                    json!({ "role": "assistant", "content": content }),
                );
                self.push(
                    "event_msg",
                    json!({ "type": "agent_message", "message": text }),
                );
                self.said = Some(text.clone());
            }
            ModelPart::Call(call) => {
                let arguments = serde_json::to_string(&call.arguments).unwrap_or_default();
                self.push(
                    "event_msg",
                    json!({ "type": "agent_message", "message": shown(call, &arguments) }),
                );
                self.item(
                    "function_call",
                    "fc",
                    json!({
                        "name": call.name,
                        "arguments": arguments,
                        "call_id": call.id,
                    }),
                );
            }
        }
    }

    fn result(&mut self, result: &CallResult) {
        let has_image = result.parts.iter().any(|part| image_url(part).is_some());
        let output = match has_image {
            true => Value::Array(result.parts.iter().map(input).collect()),
            false => Value::String(text_of(&result.parts)),
        };
        self.item(
            "function_call_output",
            "fco",
            json!({ "call_id": result.call_id, "output": output }),
        );
    }
}

/// A text for a call, because Codex does not show the calls of a thread that it loads.
fn shown(call: &Call, arguments: &str) -> String {
    let shown: String = arguments.chars().take(MAX_SHOWN).collect();
    format!("ran {} {shown}", call.name)
}

fn input(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({ "type": "input_text", "text": text }),
        Part::Image { .. } => json!({ "type": "input_image", "image_url": image_url(part) }),
    }
}

fn image_url(part: &Part) -> Option<String> {
    match part {
        Part::Text(_) => None,
        Part::Image { mime_type, data } => Some(format!("data:{mime_type};base64,{data}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Once the thread had no provider, and Codex 0.169.0 refused it.
    #[test]
    fn the_provider_is_that_of_the_settings() {
        let profile =
            "profile = \"work\"\nmodel_provider = \"a\"\n[profiles.work]\nmodel_provider = \"b\"\n";
        for (settings, expected) in [
            ("", "openai"),
            (
                "model = \"m\"\nmodel_provider = \"stub\"\n[model_providers.stub]\nname = \"x\"\n",
                "stub",
            ),
            (profile, "b"),
            ("profile = \"none\"\nmodel_provider = \"a\"", "a"),
            ("not toml =", "openai"),
        ] {
            assert_eq!(provider(settings), expected, "{settings}");
        }
    }
}
