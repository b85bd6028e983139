//! The input and the output of a writer.

use crate::place::NewFile;
use std::path::{Path, PathBuf};
use treelined_core::error::{Error, Kind, Result};
use treelined_core::id::Source;
use treelined_core::timestamp::Millis;
use treelined_import::Tool;
use treelined_import::neutral::{Message, NeutralPath};
use uuid::Uuid;

/// The session to write: the input of a writer.
pub(crate) struct NewSession<'a> {
    pub(crate) path: &'a NeutralPath,
    pub(crate) cwd: &'a str,
    pub(crate) title: &'a str,
    /// The id of the session that is handed over.
    pub(crate) session_id: &'a str,
    pub(crate) now: Millis,
    pub(crate) source: &'a dyn Source,
    pub(crate) store: Store<'a>,
    /// The text of the agent's settings, if the writer needs them; else empty.
    pub(crate) settings: &'a str,
}

/// The folders in which new files may be made.
pub(crate) struct Store<'a> {
    /// The folder where the agent keeps its sessions; `None` if the environment does not name it.
    pub(crate) agent: Option<PathBuf>,
    /// The folder for files that are not kept in an agent's folder.
    pub(crate) own: &'a Path,
}

/// Makes the commands to run. The argument is the first prompt of the new session, if there is one.
pub(crate) type Steps = Box<dyn Fn(Option<&str>) -> Vec<Vec<String>>>;

/// A written session: the output of a writer.
pub(crate) struct Written {
    pub(crate) native_id: Option<String>,
    pub(crate) files: Vec<NewFile>,
    pub(crate) steps: Steps,
}

/// An argument that is replaced by the id which the command before it prints.
pub(crate) const NATIVE_ID: &str = "{nativeId}";

/// The version of an agent with which its writer was tested.
pub(crate) fn tested(tool: Tool) -> &'static str {
    match tool {
        Tool::ClaudeCode => "2.1.330",
        Tool::Codex => "0.169.0",
        Tool::Opencode => "1.18.33",
        Tool::Gemini => "0.61.0",
        Tool::Goose => "1.52.0",
        Tool::Pi => "1.6.0",
        // Conversations cannot be handed over to these tools.
        Tool::QwenCode | Tool::ChatGpt | Tool::ClaudeAi => "",
        Tool::CopilotCli | Tool::VscodeChat | Tool::Cline | Tool::RooCode | Tool::KiloCode => "",
    }
}

impl NewSession<'_> {
    pub(super) fn random(&self) -> Uuid {
        self.source.random()
    }

    /// A UUID of version 7. Agents that sort sessions by id use this version.
    pub(super) fn sorted_uuid(&self) -> Uuid {
        let millis = u64::try_from(self.now).unwrap_or(0);
        let [_, _, _, _, _, _, random @ ..] = self.random().into_bytes();
        uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
    }

    /// The time of the message with the index `at`. Messages are a millisecond apart, and the last one is just before
    /// now. With the original times, the agent's session would look like a copy made in the past.
    pub(super) fn time(&self, at: usize) -> Millis {
        let later = self.path.messages.len().saturating_sub(at);
        self.now - Millis::try_from(later).unwrap_or(0)
    }

    /// The folder of the agent, as an absolute path. Fails with `pathDenied` if the folder is not known or its path is
    /// relative.
    pub(super) fn agent_store(&self) -> Result<&Path> {
        let denied = |why: String| Err(Error::new(Kind::PathDenied, why));
        match self.store.agent.as_deref() {
            Some(folder) if folder.is_absolute() => Ok(folder),
            // The daemon and the agent have different working directories, so they would look for a relative folder
            // in different places.
            Some(folder) => denied(format!(
                "the folder of the agent is a relative path, {}: set the variable that names it to an absolute one",
                folder.display()
            )),
            None => denied("the folder of the agent is not known: HOME is not set".to_owned()),
        }
    }

    /// The title of the new session.
    pub(super) fn branch_title(&self) -> String {
        format!("⑂ {}", self.title)
    }

    /// The messages, each with its index.
    pub(super) fn steps(&self) -> impl Iterator<Item = (usize, &Message)> {
        self.path.messages.iter().enumerate()
    }
}

/// The command of an agent. The first prompt, if there is one, is its last argument.
pub(super) fn command(words: &[&str], prompt: Option<&str>) -> Vec<String> {
    let words = words.iter().copied().chain(prompt);
    words.map(str::to_owned).collect()
}
