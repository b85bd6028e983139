//! Reads the input of a hook: JSON from the hooks of Claude Code and Gemini CLI, from `notify` of Codex, or from the
//! events of opencode.

use serde_json::Value;
use std::path::PathBuf;
use treelined_core::error::{Error, Kind, Result};

/// The most bytes of the input.
pub const MAX_INPUT: usize = 4 << 20;

/// The events that mean that a turn has ended.
const ENDS: [&str; 6] = [
    "Stop",
    "SubagentStop",
    "SessionEnd",
    "AfterAgent",
    "agent-turn-complete",
    "session.idle",
];

/// The members of the input that are used.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HookEvent {
    /// The path of the conversation's file, as the tool writes it.
    pub(super) transcript: Option<String>,
    /// The native id of the conversation.
    pub(super) session: Option<String>,
    /// The folder in which the tool works.
    pub(super) folder: Option<PathBuf>,
    /// Whether the turn has ended. Marks at the end of messages then count sooner.
    pub(super) has_ended: bool,
}

impl HookEvent {
    pub(super) fn read(input: &[u8]) -> Result<Self> {
        if input.len() > MAX_INPUT {
            return Err(wrong(format!("it is longer than {MAX_INPUT} bytes")));
        }
        let value: Value = serde_json::from_slice(input)
            .map_err(|error| wrong(format!("it is not JSON: {error}")))?;
        let Value::Object(_) = value else {
            return Err(wrong("it is not a JSON object".to_owned()));
        };
        let text = |pointers: &[&str]| {
            let found = pointers.iter().filter_map(|at| value.pointer(at));
            match found.into_iter().find(|value| !value.is_null()) {
                None => Ok(None),
                Some(Value::String(text)) => Ok(Some(text.clone())),
                Some(_) => Err(wrong(format!("{} is not a string", pointers.join(" or ")))),
            }
        };
        let name = text(&["/hook_event_name", "/type"])?;
        let event = Self {
            transcript: text(&["/transcript_path"])?,
            session: text(&[
                "/session_id",
                "/thread-id",
                "/properties/sessionID",
                "/sessionID",
            ])?,
            folder: value.get("cwd").and_then(Value::as_str).map(PathBuf::from),
            has_ended: name.is_some_and(|name| ENDS.contains(&name.as_str())),
        };
        match (&event.transcript, &event.session) {
            (None, None) => Err(wrong(
                "it has neither transcript_path nor session_id".to_owned(),
            )),
            _ => Ok(event),
        }
    }
}

/// The error for an unusable input. `reason` says what is wrong.
fn wrong(reason: String) -> Error {
    let message = format!("the input of the hook cannot be used: {reason}");
    Error::new(Kind::InvalidParams, message)
}
