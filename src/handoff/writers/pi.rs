//! Writes a session file for pi. pi and treelined have the same format. goose imports such a file too, if it has only
//! one path.

use super::json::Lines;
use super::session::{NATIVE_ID, NewSession, Steps, Written, command};
use crate::place::NewFile;
use serde_json::{Value, json};
use std::path::PathBuf;
use treelined_core::error::Result;
use treelined_core::timestamp::{self, Millis};
use treelined_import::neutral::{CallResult, Message, ModelMessage, ModelPart, Part};

/// Whether results are marked as errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Errors {
    Keep,
    /// No result is marked. goose adds `-32603:` to the text of an error each time that it reads the error.
    Drop,
}

pub(super) fn write(session: &NewSession<'_>) -> Result<Written> {
    let id = session.sorted_uuid().to_string();
    let now = timestamp::format(session.now).replace([':', '.'], "-");
    let folder = session
        .agent_store()?
        .join("sessions")
        .join(folder(session.cwd));
    let path = folder.join(format!("{now}_{id}.jsonl"));
    let steps: Steps = {
        let file = path.display().to_string();
        Box::new(move |prompt| vec![command(&["pi", "--session", &file], prompt)])
    };
    Ok(Written {
        files: vec![file(session, &id, path, Errors::Keep)],
        native_id: Some(id),
        steps,
    })
}

/// Writes the session file for goose. goose makes the id of the session itself, and reads the working directory from
/// the file.
pub(super) fn write_for_goose(session: &NewSession<'_>) -> Written {
    let id = session.sorted_uuid().to_string();
    let path = session.store.own.join(format!("goose-{id}.jsonl"));
    let steps: Steps = {
        let file = path.display().to_string();
        Box::new(move |prompt| {
            let start = match prompt {
                None => command(
                    &["goose", "session", "--resume", "--session-id", NATIVE_ID],
                    None,
                ),
                Some(prompt) => command(
                    &[
                        "goose",
                        "run",
                        "--resume",
                        "--session-id",
                        NATIVE_ID,
                        "--interactive",
                        "--text",
                    ],
                    Some(prompt),
                ),
            };
            vec![command(&["goose", "session", "import", &file], None), start]
        })
    };
    Written {
        native_id: None,
        files: vec![file(session, &id, path, Errors::Drop)],
        steps,
    }
}

/// The name that pi gives to the folder of a working directory.
fn folder(cwd: &str) -> String {
    let inner = cwd.strip_prefix('/').unwrap_or(cwd);
    format!("--{}--", inner.replace(['/', '\\', ':'], "-"))
}

fn file(session: &NewSession<'_>, id: &str, path: PathBuf, errors: Errors) -> NewFile {
    let mut lines = Lines::default();
    lines.push(&json!({
        "type": "session",
        "version": 3,
        "id": id,
        "timestamp": timestamp::format(session.now),
        "cwd": session.cwd,
        "parentSession": session.session_id,
    }));
    let mut last: Option<String> = None;
    let mut push = |at: usize, message: Value| {
        let id = session.random().simple().to_string();
        let id = id.get(..8).unwrap_or_default().to_owned();
        lines.push(&json!({
            "type": "message",
            "id": id,
            "parentId": last,
            "timestamp": timestamp::format(session.time(at)),
            "message": message,
        }));
        last = Some(id);
    };
    for (at, message) in session.steps() {
        let time = session.time(at);
        match message {
            Message::User(said) => {
                let content: Vec<Value> = said.parts.iter().map(part).collect();
                push(
                    at,
                    json!({ "role": "user", "content": content, "timestamp": time }),
                );
            }
            Message::Model(said) => push(at, answer(said, time)),
            Message::Results(results) => {
                for result in results {
                    push(at, self::result(result, time, errors));
                }
            }
        }
    }
    NewFile {
        path,
        bytes: lines.into_bytes(),
    }
}

fn answer(said: &ModelMessage, time: Millis) -> Value {
    let content: Vec<Value> = said.parts.iter().map(block).collect();
    let has_calls = said
        .parts
        .iter()
        .any(|part| matches!(part, ModelPart::Call(_)));
    let (provider, model) = match &said.model {
        Some(model) => (model.provider.as_str(), model.id.as_str()),
        None => ("unknown", "unknown"),
    };
    json!({
        "role": "assistant",
        "content": content,
        "api": "treelined",
        "provider": provider,
        "model": model,
        "usage": {
            "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0,
            "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0 },
        },
        "stopReason": if has_calls { "toolUse" } else { "stop" },
        "timestamp": time,
    })
}

fn block(part: &ModelPart) -> Value {
    match part {
        ModelPart::Text(text) => json!({ "type": "text", "text": text }),
        ModelPart::Call(call) => json!({
            "type": "toolCall",
            "id": call.id,
            "name": call.name,
            "arguments": call.arguments,
        }),
    }
}

fn result(result: &CallResult, time: Millis, errors: Errors) -> Value {
    let content: Vec<Value> = result.parts.iter().map(part).collect();
    json!({
        "role": "toolResult",
        "toolCallId": result.call_id,
        "toolName": result.name,
        "content": content,
        "isError": result.is_error && errors == Errors::Keep,
        "timestamp": time,
    })
}

fn part(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({ "type": "text", "text": text }),
        Part::Image { mime_type, data } => {
            json!({ "type": "image", "data": data, "mimeType": mime_type })
        }
    }
}
