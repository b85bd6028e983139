//! Writes for Claude Code a chain of complete records, `projects/<cwd>/<uuid>.jsonl`. `claude --resume` finds the
//! session only in the same working directory.

use super::json::Lines;
use super::session::{NewSession, Steps, Written, command, tested};
use crate::place::NewFile;
use serde_json::{Value, json};
use treelined_core::error::Result;
use treelined_core::timestamp;
use treelined_import::Tool;
use treelined_import::neutral::{CallResult, Message, ModelMessage, ModelPart, Part};

pub(super) fn write(session: &NewSession<'_>) -> Result<Written> {
    let id = session.random().to_string();
    let folder = session
        .agent_store()?
        .join("projects")
        .join(slug(session.cwd));
    let mut records = Records {
        session,
        id: &id,
        lines: Lines::default(),
        last: None,
    };
    for (at, message) in session.steps() {
        records.push(at, message);
    }
    records.finish();
    let bytes = records.lines.into_bytes();
    let steps: Steps = {
        let id = id.clone();
        Box::new(move |prompt| vec![command(&["claude", "--resume", &id], prompt)])
    };
    Ok(Written {
        files: vec![NewFile {
            path: folder.join(format!("{id}.jsonl")),
            bytes,
        }],
        native_id: Some(id),
        steps,
    })
}

/// The name of the folder of a working directory. Each UTF-16 unit that is not an ASCII letter or digit becomes `-`.
pub(super) fn slug(cwd: &str) -> String {
    let units = cwd.encode_utf16().map(|unit| match u8::try_from(unit) {
        Ok(byte) if byte.is_ascii_alphanumeric() => char::from(byte),
        _ => '-',
    });
    units.collect()
}

struct Records<'a> {
    session: &'a NewSession<'a>,
    id: &'a str,
    lines: Lines,
    /// The id of the last record in the chain.
    last: Option<String>,
}

impl Records<'_> {
    fn push(&mut self, at: usize, message: &Message) {
        let (kind, message, is_summary) = match message {
            Message::User(said) => {
                let message = json!({ "role": "user", "content": content(&said.parts) });
                ("user", message, said.is_summary)
            }
            Message::Model(said) => ("assistant", self.answer(said), false),
            Message::Results(results) => {
                let results: Vec<Value> = results.iter().map(result).collect();
                ("user", json!({ "role": "user", "content": results }), false)
            }
        };
        let uuid = self.session.random().to_string();
        let mut record = json!({
            "parentUuid": self.last,
            "isSidechain": false,
            "userType": "external",
            "cwd": self.session.cwd,
            "sessionId": self.id,
            "version": tested(Tool::ClaudeCode),
            "gitBranch": "",
            "type": kind,
            "message": message,
            "uuid": uuid,
            "timestamp": timestamp::format(self.session.time(at)),
        });
        if is_summary && let Some(record) = record.as_object_mut() {
            record.insert("isCompactSummary".to_owned(), json!(true));
            record.insert("isVisibleInTranscriptOnly".to_owned(), json!(true));
        }
        self.lines.push(&record);
        self.last = Some(uuid);
    }

    fn answer(&self, said: &ModelMessage) -> Value {
        let blocks: Vec<Value> = said.parts.iter().map(block).collect();
        let calls = |part: &ModelPart| matches!(part, ModelPart::Call(_));
        let reason = match said.parts.iter().any(calls) {
            true => "tool_use",
            false => "end_turn",
        };
        let mut message = json!({
            "id": format!("msg_{}", self.session.random().simple()),
            "type": "message",
            "role": "assistant",
            "content": blocks,
            "stop_reason": reason,
            "stop_sequence": null,
            "usage": { "input_tokens": 0, "output_tokens": 0 },
        });
        // The session continues with the model of its last message. If this message has no model, the session continues
        // with the default model.
        let model = said
            .model
            .as_ref()
            .filter(|model| model.id.starts_with("claude-"));
        if let (Some(model), Some(message)) = (model, message.as_object_mut()) {
            message.insert("model".to_owned(), json!(model.id));
        }
        message
    }

    fn finish(&mut self) {
        let title = self.session.branch_title();
        self.lines
            .push(&json!({ "type": "custom-title", "customTitle": title, "sessionId": self.id }));
        self.lines
            .push(&json!({ "type": "last-prompt", "leafUuid": self.last, "sessionId": self.id }));
    }
}

/// The content of a message. A single text is written as a string.
fn content(parts: &[Part]) -> Value {
    match parts {
        [Part::Text(text)] => json!(text),
        parts => Value::Array(parts.iter().map(part).collect()),
    }
}

fn part(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({ "type": "text", "text": text }),
        Part::Image { mime_type, data } => json!({
            "type": "image",
            "source": { "type": "base64", "media_type": mime_type, "data": data },
        }),
    }
}

fn block(part: &ModelPart) -> Value {
    match part {
        ModelPart::Text(text) => json!({ "type": "text", "text": text }),
        ModelPart::Call(call) => json!({
            "type": "tool_use",
            "id": call.id,
            "name": call.name,
            "input": call.arguments,
        }),
    }
}

fn result(result: &CallResult) -> Value {
    json!({
        "type": "tool_result",
        "tool_use_id": result.call_id,
        "content": content(&result.parts),
        "is_error": result.is_error,
    })
}
