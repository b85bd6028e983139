//! What stands before the tree and wants an answer first.

use super::input::Input;
use crate::message::Failure;
use std::time::Duration;

/// An open dialog.
#[derive(Debug)]
pub enum Dialog {
    /// How to go to an entry.
    Choose(Choose),
    /// A label for an entry.
    Label { id: String, input: Input },
    /// A name for a session.
    Rename { session_id: String, input: Input },
    /// Whether to move a session to the trash.
    Trash { session_id: String, title: String },
    /// Something failed, and what can be done.
    Failed(Failed),
    /// All keys; the first line on the screen.
    Help { top: usize },
}

/// The three ways to go.
#[derive(Debug)]
pub struct Choose {
    pub target: String,
    /// What it says.
    pub preview: String,
    /// Its text comes back for editing.
    pub is_user: bool,
    pub rewind: bool,
    /// Entries that would be summarized, once that is known.
    pub abandoned: Option<usize>,
    /// 0 to 2.
    pub selected: usize,
    /// What the summary shall dwell on, once that is chosen.
    pub focus: Option<Input>,
}

/// The choices, in their order.
pub const CHOICES: [&str; 3] = ["No summary", "Summarize", "Summarize with a focus…"];

/// A failure, as it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// What did not happen.
    pub what: String,
    pub failure: Failure,
}

/// A navigation under way.
#[derive(Debug)]
pub struct Navigating {
    pub navigation_id: String,
    pub summarize: bool,
    /// Since the program's start.
    pub began: Duration,
    /// The summary so far.
    pub summary: String,
    /// How far it is, for people.
    pub progress: Option<String>,
    /// The user does not want it any more.
    pub aborting: bool,
}

impl Navigating {
    /// A move without a summary is over before one could read about it, unless a hook thinks.
    pub fn is_shown(&self, now: Duration) -> bool {
        self.summarize || now.saturating_sub(self.began) > Duration::from_millis(400)
    }
}

impl Failed {
    /// What the user can do about it, by the kind of the error (protocol.md §8) and the daemon's summarizer.
    pub fn advice(&self, summarizer: Option<&str>) -> &'static str {
        match self.failure.kind.as_str() {
            "summarizerUnavailable" => {
                "No summarizer is configured. Start with --summarizer outline (offline), or set one up under [summarizer] in treelined's config.toml. Or go without a summary."
            }
            "summarizerFailed" if summarizer == Some("command") => {
                "Nothing has moved. The program is `argv` under [summarizer.command] in treelined's config.toml. Run it by hand to see what it writes to stderr, which is not kept here; or go without a summary."
            }
            "summarizerFailed" if summarizer == Some("outline") => {
                "Nothing has moved. Try again, or go without a summary."
            }
            "summarizerFailed" => {
                "Nothing has moved. Try again, go without a summary, or look at [summarizer] in treelined's config.toml: key, model and address."
            }
            "sessionBusy" => "Something else runs in this session. Try again when it has ended.",
            "leafMoved" => {
                "The conversation has moved on meanwhile. Look at the tree and try again."
            }
            "entryNotFound" => "The entry is no longer in the file. The tree has been read again.",
            "sessionLocked" => "Another program holds the session's lock. Try again.",
            "readOnly" | "versionUnsupported" => "The session cannot be changed from here.",
            "nothingToUndo" => "The conversation has not been moved.",
            "sessionNotFound" | "sessionDeleted" | "sessionReplaced" => {
                "The file is gone or is another one. The list of sessions shows what is there."
            }
            "headerMissing" => {
                "The file is no session. `treelined doctor FILE` says what is in it."
            }
            "storageFull" => {
                "There is no space on the disk. Nothing was lost; try again when there is."
            }
            "storageIo" | "pathDenied" => {
                "Look at the file and its folder: owner, permissions, disk."
            }
            "durabilityUnknown" => "It was written, but perhaps not to the disk yet.",
            "timeout" => "The daemon has not answered in time. It may still do it.",
            _ => "Nothing was changed.",
        }
    }
}
