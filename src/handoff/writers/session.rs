//! The session to be written, and what a writer makes of it.

use crate::place::NewFile;
use std::path::{Path, PathBuf};
use treelined_core::error::{Error, Kind, Result};
use treelined_core::id::Source;
use treelined_core::timestamp::Millis;
use treelined_import::Tool;
use treelined_import::neutral::{Message, NeutralPath};
use uuid::Uuid;

/// The session to be written.
pub(crate) struct NewSession<'a> {
    pub(crate) path: &'a NeutralPath,
    pub(crate) cwd: &'a str,
    pub(crate) title: &'a str,
    /// The session of the path.
    pub(crate) session_id: &'a str,
    pub(crate) now: Millis,
    pub(crate) source: &'a dyn Source,
    pub(crate) store: Store<'a>,
    /// The text of the agent's own settings, if the writer needs them; empty without.
    pub(crate) settings: &'a str,
}

/// Where files may be made.
pub(crate) struct Store<'a> {
    /// The folder where the agent keeps its sessions; `None` if the environment does not say it.
    pub(crate) agent: Option<PathBuf>,
    /// The folder for files that no agent keeps.
    pub(crate) own: &'a Path,
}

/// The programs to run, for what is to be said first.
pub(crate) type Steps = Box<dyn Fn(Option<&str>) -> Vec<Vec<String>>>;

/// A written session.
pub(crate) struct Written {
    pub(crate) native_id: Option<String>,
    pub(crate) files: Vec<NewFile>,
    pub(crate) steps: Steps,
}

/// The argument that stands for the id that the step before it prints.
pub(crate) const NATIVE_ID: &str = "{nativeId}";

/// The version of an agent with which its writer was tested.
pub(crate) fn tested(tool: Tool) -> &'static str {
    match tool {
        Tool::ClaudeCode => "2.1.330",
        Tool::Codex => "0.169.0",
        Tool::Opencode => "1.18.33",
        Tool::Gemini => "0.61.0",
        Tool::Goose => "1.52.0",
        Tool::Pi => "1.5.2",
        // No conversation goes on there.
        Tool::QwenCode | Tool::ChatGpt | Tool::ClaudeAi => "",
    }
}

impl NewSession<'_> {
    pub(super) fn random(&self) -> Uuid {
        self.source.random()
    }

    /// A UUID of version 7, as agents that sort sessions by their ids make it.
    pub(super) fn sorted_uuid(&self) -> Uuid {
        let millis = u64::try_from(self.now).unwrap_or(0);
        let [_, _, _, _, _, _, random @ ..] = self.random().into_bytes();
        uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
    }

    /// The times of messages: they end now, a millisecond apart. Times of the source would say that a copy was made there.
    pub(super) fn time(&self, at: usize) -> Millis {
        let later = self.path.messages.len().saturating_sub(at);
        self.now - Millis::try_from(later).unwrap_or(0)
    }

    /// The folder of the agent, an absolute path.
    pub(super) fn agent_store(&self) -> Result<&Path> {
        let denied = |why: String| Err(Error::new(Kind::PathDenied, why));
        match self.store.agent.as_deref() {
            Some(folder) if folder.is_absolute() => Ok(folder),
            // The daemon and the agent would look for it below different working directories.
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

    /// The messages with their results: each message of the user or the model, and the results after it.
    pub(super) fn steps(&self) -> impl Iterator<Item = (usize, &Message)> {
        self.path.messages.iter().enumerate()
    }
}

/// The command of an agent, with what is to be said first as its last argument.
pub(super) fn command(words: &[&str], prompt: Option<&str>) -> Vec<String> {
    let words = words.iter().copied().chain(prompt);
    words.map(str::to_owned).collect()
}
