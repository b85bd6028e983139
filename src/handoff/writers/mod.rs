//! The writers make the bytes of a new session from a path, one writer for each agent. They are pure, except that new
//! ids come from the caller's source of randomness.

mod claude_code;
mod codex;
mod gemini;
mod json;
mod opencode;
mod pi;
mod session;

pub(crate) use session::{NewSession, Store, tested};

use session::Written;
use treelined_core::error::{Error, Result};
use treelined_import::Tool;

/// Writes a path for an agent. Fails with `pathDenied` if the agent's folder is not known or is a relative path.
pub(crate) fn write(tool: Tool, session: &NewSession<'_>) -> Result<Written> {
    match tool {
        Tool::ClaudeCode => claude_code::write(session),
        Tool::Codex => codex::write(session),
        Tool::Opencode => Ok(opencode::write(session)),
        Tool::Gemini => Ok(gemini::write(session)),
        Tool::Goose => Ok(pi::write_for_goose(session)),
        Tool::Pi => pi::write(session),
        Tool::QwenCode
        | Tool::Cline
        | Tool::RooCode
        | Tool::KiloCode
        | Tool::CopilotCli
        | Tool::VscodeChat
        | Tool::ChatGpt
        | Tool::ClaudeAi => Err(Error::invalid_params(
            "tool",
            "names a tool that cannot continue a conversation",
        )),
    }
}

/// The name of the file with the settings that a writer needs, in the folder of the agent.
pub(crate) fn settings(tool: Tool) -> Option<&'static str> {
    match tool {
        Tool::Codex => Some(codex::SETTINGS),
        _ => None,
    }
}
