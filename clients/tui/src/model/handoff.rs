//! The dialog that continues a conversation in another agent (protocol.md §3.18). It shows what the agent gets, and
//! the command that starts the agent.

use crate::message::{Failure, HandoffPreview, HandoffRequest, Session};
use crate::operation::Agent;

/// A handoff whose preview is shown before it is done.
#[derive(Debug)]
pub struct Handoff {
    pub agent: Agent,
    /// The id of the last entry that is handed over.
    pub entry: String,
    /// The preview of that entry.
    pub about: String,
    /// The path or the id of the session, as an argument of the command.
    session: String,
    /// Whether to begin with a summary of the branch that the leaf leaves.
    pub learned: bool,
    pub size: HandoffSize,
    pub preview: HandoffState,
    /// The first visible line.
    pub top: usize,
}

/// The treatment of a conversation that is larger than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandoffSize {
    /// The handoff is refused.
    Limited,
    /// A summary replaces the earlier turns.
    Compacted,
    /// The whole conversation is handed over.
    Whole,
}

/// The state of the preview.
#[derive(Debug)]
pub enum HandoffState {
    Asked,
    Known(HandoffPreview),
    Failed(Failure),
    /// The preview is not requested, since the summary would be written twice.
    Unknown,
}

impl Handoff {
    pub fn new(agent: Agent, entry: String, about: String, session: &Session) -> Self {
        // The command finds a session by its path in any directory, but by its id only in the session directory.
        let path = session.path.as_ref();
        Self {
            agent,
            entry,
            about,
            session: path.unwrap_or(&session.id).clone(),
            learned: false,
            size: HandoffSize::Limited,
            preview: HandoffState::Asked,
            top: 0,
        }
    }

    /// Returns the request for the preview. It requests a summary only if the agent gets a text. Otherwise the command
    /// writes the summary, so a summary in the preview would be written twice.
    pub fn request(&self) -> HandoffRequest {
        HandoffRequest {
            session: self.session.clone(),
            entry: self.entry.clone(),
            agent: self.agent,
            learned: self.learned && self.is_text(),
            unlimited: self.size == HandoffSize::Whole,
        }
    }

    pub fn is_text(&self) -> bool {
        self.agent.program.is_none()
    }

    /// Returns the conversation as text, if the agent gets a text.
    pub fn text(&self) -> Option<&str> {
        match &self.preview {
            HandoffState::Known(preview) => preview.text.as_deref(),
            _ => None,
        }
    }

    /// Returns whether the conversation is larger than the limit.
    pub fn is_too_large(&self) -> bool {
        matches!(&self.preview, HandoffState::Failed(failure) if failure.kind == "contextTooLarge")
    }

    /// Returns whether the command can run. Either the losses are shown, or they cannot be known before it runs.
    pub fn can_run(&self) -> bool {
        matches!(self.preview, HandoffState::Known(_) | HandoffState::Unknown)
    }

    /// Returns the words of the command: first those of `program`, then its arguments.
    pub fn command(&self, program: &[String]) -> Vec<String> {
        let mut words = program.to_vec();
        words.extend(["continue", "--in", self.agent.tool].map(str::to_owned));
        if self.learned {
            words.push("--learned".to_owned());
        }
        match self.size {
            HandoffSize::Limited => {}
            HandoffSize::Compacted => words.push("--compact".to_owned()),
            HandoffSize::Whole => words.extend(["--limit", "0"].map(str::to_owned)),
        }
        // `--` is needed because an id may begin with `-`.
        words.extend(["--", &self.session, &self.entry].map(str::to_owned));
        words
    }
}
