//! The rows of a transcript.

use super::piece::Piece;
use crate::export::content::ContentSource;
use crate::export::head::SessionHead;
use treelined_core::timestamp;
use treelined_core::timestamp::Millis;
use treelined_core::view::{Outline, Subject};
use treelined_files::log::body::Fetch;

/// The speaker of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Assistant,
    Command,
    System,
    Plugin,
    BranchSummary,
    Compaction,
    Other,
}

/// An entry of the document.
pub(super) struct TranscriptRow {
    pub(super) fetch: Fetch,
    pub(super) item: usize,
    pub(super) subject: Subject,
    pub(super) speaker: Speaker,
    /// The number of the turn that begins with the entry, counted from 1. `None` if the entry
    /// continues a turn.
    pub(super) begins: Option<usize>,
    /// The number of the turn that the entry continues, if this is not the previous turn in the document.
    pub(super) back_to: Option<usize>,
    /// The number of steps to the right in the outline.
    pub(super) indent: usize,
    pub(super) timestamp: Option<Millis>,
    pub(super) label: Option<String>,
    pub(super) is_on_active_path: bool,
}

/// The parts of a session that a transcript needs, at one point in time.
pub struct TranscriptSource {
    pub(super) head: SessionHead,
    pub(super) content: ContentSource,
    pub(super) outline: Outline,
    pub(super) rows: Vec<TranscriptRow>,
    pub(super) scope: &'static str,
    pub(super) is_markdown: bool,
    pub(super) is_redacted: bool,
}

/// An entry in the form in which it is written.
pub(super) struct WrittenEntry<'r> {
    pub(super) row: &'r TranscriptRow,
    pub(super) pieces: Vec<Piece>,
}

impl Speaker {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::User => "User",
            Self::Assistant => "Assistant",
            Self::Command => "Command",
            Self::System => "System",
            Self::Plugin => "Plugin",
            Self::BranchSummary => "Summary of a branch",
            Self::Compaction => "Summary of the conversation so far",
            Self::Other => "Message",
        }
    }
}

/// The heading of a turn without its number: speaker, time and label.
pub(super) fn heading(row: &TranscriptRow) -> String {
    let mut heading = row.speaker.name().to_owned();
    if let Some(at) = row.timestamp {
        let at = timestamp::format(at);
        heading.push_str(&format!(
            " · {}",
            at.get(..16).unwrap_or(&at).replace('T', " ")
        ));
    }
    if let Some(label) = &row.label {
        heading.push_str(&format!(" · {}", treelined_core::terminal::line(label)));
    }
    heading
}
