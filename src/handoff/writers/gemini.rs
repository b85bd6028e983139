//! Writes for Gemini CLI a chat as JSON lines, for `gemini --session-file`. Gemini CLI copies the chat into the folder
//! of the project, and keeps the ids of its messages. So the file in which Gemini CLI lists the folders of projects is
//! not changed here.

use super::json::Lines;
use super::session::{NewSession, Steps, Written, command};
use crate::place::NewFile;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use treelined_core::timestamp;
use treelined_import::neutral::{
    Call, CallResult, Message, ModelMessage, ModelPart, Part, text_of,
};

pub(super) fn write(session: &NewSession<'_>) -> Written {
    let id = session.random().to_string();
    let now = timestamp::format(session.now);
    let mut lines = Lines::default();
    lines.push(&json!({
        "sessionId": id,
        "projectHash": hash(session.cwd),
        "startTime": timestamp::format(session.time(0)),
        "lastUpdated": now,
        "kind": "main",
    }));
    let mut messages = session.steps().peekable();
    while let Some((at, message)) = messages.next() {
        let time = timestamp::format(session.time(at));
        let record = session.random().to_string();
        match message {
            Message::User(said) => {
                let content: Vec<Value> = said.parts.iter().map(part).collect();
                lines.push(&json!({
                    "id": record, "timestamp": time, "type": "user", "content": content,
                }));
            }
            Message::Model(said) => {
                let results = messages.next_if(|(_, next)| matches!(next, Message::Results(_)));
                let results = match results {
                    Some((_, Message::Results(results))) => results.as_slice(),
                    _ => &[],
                };
                lines.push(&answer(said, results, &record, &time));
            }
            // The results are in their calls.
            Message::Results(_) => {}
        }
    }
    let path = session.store.own.join(format!("session-{id}.jsonl"));
    let steps: Steps = {
        let file = path.display().to_string();
        Box::new(move |prompt| {
            let mut start = command(&["gemini", "--session-file", &file], None);
            start.extend(
                prompt
                    .into_iter()
                    .flat_map(|prompt| command(&["-i"], Some(prompt))),
            );
            vec![start]
        })
    };
    Written {
        // Gemini CLI gives its copy another id.
        native_id: None,
        files: vec![NewFile {
            path,
            bytes: lines.into_bytes(),
        }],
        steps,
    }
}

fn answer(said: &ModelMessage, results: &[CallResult], id: &str, time: &str) -> Value {
    let mut texts = Vec::new();
    let mut calls = Vec::new();
    for part in &said.parts {
        match part {
            ModelPart::Text(text) => texts.push(text.as_str()),
            ModelPart::Call(call) => {
                let result = results.iter().find(|result| result.call_id == call.id);
                calls.push(self::call(call, result, time));
            }
        }
    }
    let mut record = json!({
        "id": id,
        "timestamp": time,
        "type": "gemini",
        "content": texts.join("\n"),
        "thoughts": [],
        "tokens": { "input": 0, "output": 0, "cached": 0, "thoughts": 0, "tool": 0, "total": 0 },
    });
    if let Some(record) = record.as_object_mut() {
        if let Some(model) = said
            .model
            .as_ref()
            .filter(|model| model.id.starts_with("gemini-"))
        {
            record.insert("model".to_owned(), json!(model.id));
        }
        if !calls.is_empty() {
            record.insert("toolCalls".to_owned(), Value::Array(calls));
        }
    }
    record
}

fn call(call: &Call, result: Option<&CallResult>, time: &str) -> Value {
    let output = result
        .map(|result| text_of(&result.parts))
        .unwrap_or_default();
    let is_error = result.is_some_and(|result| result.is_error);
    let response = match is_error {
        true => json!({ "error": output }),
        false => json!({ "output": output }),
    };
    let mut parts = vec![json!({
        "functionResponse": { "id": call.id, "name": call.name, "response": response },
    })];
    let images = result.iter().flat_map(|result| &result.parts);
    parts.extend(
        images
            .filter(|part| matches!(part, Part::Image { .. }))
            .map(part),
    );
    json!({
        "id": call.id,
        "name": call.name,
        "args": call.arguments,
        "result": parts,
        "status": if is_error { "error" } else { "success" },
        "timestamp": time,
        "resultDisplay": output,
    })
}

fn part(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({ "text": text }),
        Part::Image { mime_type, data } => {
            json!({ "inlineData": { "mimeType": mime_type, "data": data } })
        }
    }
}

/// The SHA-256 of a text, in hexadecimal digits.
fn hash(text: &str) -> String {
    let mut digits = String::with_capacity(64);
    for byte in Sha256::digest(text) {
        let _infallible = write!(digits, "{byte:02x}");
    }
    digits
}
