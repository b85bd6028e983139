//! Dialogs over the screen.

use super::input::Input;
use super::question::Question;
use crate::message::Failure;
use std::time::Duration;

/// An open dialog.
#[derive(Debug)]
pub enum Dialog {
    /// How to navigate to an entry.
    Choose(NavigationChoice),
    /// The label of an entry.
    Label { id: String, input: Input },
    /// The name of a session.
    Rename { session_id: String, input: Input },
    /// Confirms moving a session to the trash.
    Trash { session_id: String, title: String },
    /// A failure and advice.
    Failed(FailureDialog),
    /// A question of another client.
    Question(Box<Question>),
    /// The output of a command; `top` is the first visible line.
    Pager {
        title: String,
        text: String,
        top: usize,
    },
    /// All keys; `top` is the first visible line.
    Help { top: usize },
}

/// The choices of a navigation.
#[derive(Debug)]
pub struct NavigationChoice {
    pub target: String,
    /// The preview of the target.
    pub preview: String,
    /// Whether the target's text is returned for editing.
    pub is_user: bool,
    pub rewind: bool,
    /// The number of entries that would be summarized, once it is known.
    pub abandoned: Option<usize>,
    /// The selected choice, 0 to 2.
    pub selected: usize,
    /// The focus of the summary, once that choice was made.
    pub focus: Option<Input>,
}

/// The choices in their order.
pub const CHOICES: [&str; 3] = ["No summary", "Summarize", "Summarize with a focus…"];

/// The text of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureDialog {
    /// The operation that failed.
    pub what: String,
    pub failure: Failure,
}

/// A running navigation.
#[derive(Debug)]
pub struct RunningNavigation {
    pub navigation_id: String,
    pub summarize: bool,
    /// Time since the program's start.
    pub began: Duration,
    /// The summary so far.
    pub summary: String,
    /// Progress, for people.
    pub progress: Option<String>,
    /// Whether the user has aborted it.
    pub aborting: bool,
}

impl RunningNavigation {
    /// Returns whether to show it. Without a summary or a slow hook it ends before it could be read.
    pub fn is_shown(&self, now: Duration) -> bool {
        self.summarize || now.saturating_sub(self.began) > Duration::from_millis(400)
    }
}

impl FailureDialog {
    /// Returns advice by the kind of the error (protocol.md §8.2) and the daemon's summarizer.
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
            "sessionBusy" => {
                "Another operation is running in this session. Try again when it has ended."
            }
            "leafMoved" => "The leaf has moved meanwhile. Look at the tree and try again.",
            "entryNotFound" => "The entry is no longer in the file. The tree has been read again.",
            "sessionLocked" => "Another program holds the session's lock. Try again.",
            "readOnly" | "versionUnsupported" => "The session cannot be changed from here.",
            "nothingToUndo" => "The leaf has not moved.",
            "sessionNotFound" | "sessionDeleted" | "sessionReplaced" => {
                "The file was deleted or replaced. The list of sessions shows what is there."
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
            "durabilityUnknown" => "The data is written, but may not be on the disk yet.",
            "commandNotFound" => "The client that has offered it is gone.",
            "commandFailed" => {
                "The client that offers the command has failed, has ended, or has not answered in time."
            }
            "timeout" => "The daemon has not answered in time. It may still do it.",
            _ => "Nothing was changed.",
        }
    }
}
