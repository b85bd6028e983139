//! Lines of other tools that look like lines of a session: they have `uuid` and `parentUuid` in place of `id` and
//! `parentId`.

use crate::json;

/// The tool that writes lines of this kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    ClaudeCode,
    /// The lines of Qwen Code have the same members as lines of Claude Code, and their messages are like messages of
    /// Gemini CLI.
    QwenCode,
}

impl Writer {
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::QwenCode => "Qwen Code",
        }
    }
}

/// The tool that writes objects like this one; `None` for entries of sessions and for any other value.
pub fn writer(object: &[u8]) -> Option<Writer> {
    let names = [
        "uuid",
        "parentUuid",
        "id",
        "message",
        "systemPayload",
        "toolCallResult",
    ];
    let [uuid, parent, id, message, payload, result] = json::get_each(object, names);
    if uuid.is_none() || parent.is_none() || id.is_some() {
        return None;
    }
    let has_parts = || message.is_some_and(|message| json::get(message, "parts").is_some());
    Some(match payload.is_some() || result.is_some() || has_parts() {
        true => Writer::QwenCode,
        false => Writer::ClaudeCode,
    })
}
