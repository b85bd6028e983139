//! Writes for opencode the JSON that `opencode export` makes and `opencode import` reads. In a message of the model,
//! each call has its result in the same part.

use super::session::{NewSession, Steps, Written, command, tested};
use crate::place::NewFile;
use serde_json::{Map, Value, json};
use treelined_core::id::Source;
use treelined_core::timestamp::Millis;
use treelined_import::Tool;
use treelined_import::neutral::{
    Call, CallResult, Message, Model, ModelMessage, ModelPart, Part, UserMessage, text_of,
};

/// The digits of the random part of an id.
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// The number of digits in the random part of an id.
const RANDOM: usize = 14;
/// The agent of opencode that continues the session.
const AGENT: &str = "build";

pub(super) fn write(session: &NewSession<'_>) -> Written {
    let mut ids = Ids {
        source: session.source,
        now: session.now,
        count: 0,
    };
    let id = ids.session();
    let mut document = Document {
        session,
        id: &id,
        ids,
        model: last_model(session),
        messages: Vec::new(),
        question: Value::Null,
    };
    let mut messages = session.steps().peekable();
    while let Some((at, message)) = messages.next() {
        match message {
            Message::User(said) => document.user(at, said),
            Message::Model(said) => {
                let results = messages.next_if(|(_, next)| matches!(next, Message::Results(_)));
                let results = match results {
                    Some((_, Message::Results(results))) => results.as_slice(),
                    _ => &[],
                };
                document.answer(at, said, results);
            }
            // The results are in the parts of their calls.
            Message::Results(_) => {}
        }
    }
    let info = json!({
        "id": id,
        "slug": format!("treelined-{}", id.get(4..16).unwrap_or_default()),
        "projectID": "global",
        "directory": session.cwd,
        "title": session.branch_title(),
        "version": tested(Tool::Opencode),
        "time": { "created": session.time(0), "updated": session.now },
    });
    let bytes = json!({ "info": info, "messages": document.messages }).to_string();
    let path = session.store.own.join(format!("{id}.json"));
    let steps: Steps = {
        let (id, file) = (id.clone(), path.display().to_string());
        Box::new(move |prompt| {
            let mut start = command(&["opencode", "-s", &id], None);
            start.extend(
                prompt
                    .into_iter()
                    .flat_map(|prompt| command(&["--prompt"], Some(prompt))),
            );
            vec![command(&["opencode", "import", &file], None), start]
        })
    };
    Written {
        native_id: Some(id),
        files: vec![NewFile {
            path,
            bytes: bytes.into_bytes(),
        }],
        steps,
    }
}

/// The model of the last answer. opencode continues with the model that the last message of the user names.
fn last_model(session: &NewSession<'_>) -> Model {
    let models = session
        .path
        .messages
        .iter()
        .rev()
        .filter_map(|message| match message {
            Message::Model(said) => said.model.clone(),
            _ => None,
        });
    let unknown = || Model {
        provider: "unknown".to_owned(),
        id: "unknown".to_owned(),
    };
    models.into_iter().next().unwrap_or_else(unknown)
}

struct Document<'a> {
    session: &'a NewSession<'a>,
    id: &'a str,
    ids: Ids<'a>,
    model: Model,
    messages: Vec<Value>,
    /// The id of the last message of the user, as JSON.
    question: Value,
}

impl Document<'_> {
    fn user(&mut self, at: usize, said: &UserMessage) {
        let id = self.ids.next("msg");
        self.question = json!(id);
        let info = json!({
            "id": id,
            "sessionID": self.id,
            "role": "user",
            "time": { "created": self.session.time(at) },
            "agent": AGENT,
            "model": { "providerID": self.model.provider, "modelID": self.model.id },
        });
        let parts = said.parts.iter().map(part).collect();
        self.push(info, &id, parts);
    }

    fn answer(&mut self, at: usize, said: &ModelMessage, results: &[CallResult]) {
        let id = self.ids.next("msg");
        let time = self.session.time(at);
        let model = said.model.as_ref().unwrap_or(&self.model);
        let has_calls = !results.is_empty();
        let info = json!({
            "id": id,
            "sessionID": self.id,
            "role": "assistant",
            "parentID": self.question,
            "mode": AGENT,
            "agent": AGENT,
            "path": { "cwd": self.session.cwd, "root": self.session.cwd },
            "cost": 0,
            "tokens": { "input": 0, "output": 0, "reasoning": 0, "cache": { "read": 0, "write": 0 } },
            "modelID": model.id,
            "providerID": model.provider,
            "time": { "created": time, "completed": time },
            "finish": if has_calls { "tool-calls" } else { "stop" },
        });
        let mut parts = Vec::new();
        for part in &said.parts {
            match part {
                ModelPart::Text(text) => {
                    parts.push(object(json!({ "type": "text", "text": text })))
                }
                ModelPart::Call(call) => {
                    let result = results.iter().find(|result| result.call_id == call.id);
                    parts.push(self.call(call, result, time, &id));
                }
            }
        }
        self.push(info, &id, parts);
    }

    fn call(
        &mut self,
        call: &Call,
        result: Option<&CallResult>,
        time: Millis,
        message: &str,
    ) -> Map<String, Value> {
        let output = result
            .map(|result| text_of(&result.parts))
            .unwrap_or_default();
        let is_error = result.is_some_and(|result| result.is_error);
        let times = json!({ "start": time, "end": time });
        let mut state = match is_error {
            true => json!({
                "status": "error", "input": call.arguments, "error": output, "time": times,
            }),
            false => json!({
                "status": "completed", "input": call.arguments, "output": output, "title": call.name,
                "metadata": {}, "time": times,
            }),
        };
        let parts = result.iter().flat_map(|result| &result.parts);
        let images: Vec<Value> = parts
            .filter(|part| matches!(part, Part::Image { .. }))
            .map(|image| Value::Object(self.owned(part(image), message)))
            .collect();
        if !is_error
            && !images.is_empty()
            && let Some(state) = state.as_object_mut()
        {
            state.insert("attachments".to_owned(), Value::Array(images));
        }
        object(json!({ "type": "tool", "tool": call.name, "callID": call.id, "state": state }))
    }

    fn push(&mut self, info: Value, message: &str, parts: Vec<Map<String, Value>>) {
        let parts = parts.into_iter();
        let parts: Vec<Value> = parts
            .map(|part| Value::Object(self.owned(part, message)))
            .collect();
        self.messages.push(json!({ "info": info, "parts": parts }));
    }

    /// Adds to a part its own id, and the ids of its message and session.
    fn owned(&mut self, mut part: Map<String, Value>, message: &str) -> Map<String, Value> {
        part.insert("id".to_owned(), json!(self.ids.next("prt")));
        part.insert("sessionID".to_owned(), json!(self.id));
        part.insert("messageID".to_owned(), json!(message));
        part
    }
}

fn part(part: &Part) -> Map<String, Value> {
    object(match part {
        Part::Text(text) => json!({ "type": "text", "text": text }),
        Part::Image { mime_type, data } => json!({
            "type": "file", "mime": mime_type, "url": format!("data:{mime_type};base64,{data}"),
        }),
    })
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

/// Makes ids of opencode. An id has 48 bits of time and count, by which ids sort, and random digits.
struct Ids<'a> {
    source: &'a dyn Source,
    now: Millis,
    count: u64,
}

impl Ids<'_> {
    /// The id of a session. Such ids sort from the newest to the oldest.
    fn session(&mut self) -> String {
        let order = !self.order();
        self.id("ses", order)
    }

    fn next(&mut self, kind: &str) -> String {
        let order = self.order();
        self.id(kind, order)
    }

    fn order(&mut self) -> u64 {
        self.count += 1;
        let millis = u64::try_from(self.now).unwrap_or(0);
        millis.wrapping_mul(0x1000).wrapping_add(self.count)
    }

    fn id(&self, kind: &str, order: u64) -> String {
        let mut random = self.source.random().as_u128();
        let mut digits = String::with_capacity(RANDOM);
        for _ in 0..RANDOM {
            let digit = usize::try_from(random % 62).unwrap_or(0);
            digits.push(char::from(DIGITS.get(digit).copied().unwrap_or(b'0')));
            random /= 62;
        }
        format!("{kind}_{:012x}{digits}", order & 0xffff_ffff_ffff)
    }
}
