//! Dialogs over the screen.

use super::handoff::Handoff;
use super::input::Input;
use super::picker::Picker;
use super::question::Question;
use crate::message::{Failure, Prepared};
use std::time::Duration;

/// An open dialog.
#[derive(Debug)]
pub enum Dialog {
    /// The choice of how to navigate to an entry.
    Choose(NavigationChoice),
    /// The label of an entry.
    Label { id: String, input: Input },
    /// The name of the branch of an entry.
    NameBranch { entry: String, input: Input },
    /// The tags to add to a session, and after a `-` the tags to remove.
    Tags { session_id: String, input: Input },
    /// The reason for choosing the candidate that ends at this entry.
    Reason { tip: String, input: Input },
    /// A question beside the conversation.
    Aside { input: Input },
    /// The name of a session.
    Rename { session_id: String, input: Input },
    /// The name of a new session.
    Create { input: Input },
    /// The focus of a summary. The text may have several lines.
    Focus { focus_of: FocusOf, input: Input },
    /// A list to choose from.
    Picker(Picker),
    /// The confirmation before a session is moved to the trash.
    Trash { session_id: String, title: String },
    /// The confirmation before entries are copied to the leaf. `title` is the preview of the first entry.
    Copy { entries: Vec<String>, title: String },
    /// The confirmation before the branch of an entry is archived, which moves the leaf. `title` is the preview of the
    /// entry.
    Archive { entry: String, title: String },
    /// The preview of the conversation that another agent gets, and the command that continues it there.
    Handoff(Handoff),
    /// A failure, with advice.
    Failed(FailureDialog),
    /// A question of another client.
    Question(Box<Question>),
    /// The output of a command; `top` is the first visible line.
    Pager {
        title: String,
        text: String,
        top: usize,
    },
    /// The help with all keys; `top` is the first visible line.
    Help { top: usize },
}

/// The operation whose summary has a focus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FocusOf {
    Compaction,
    /// The merge of the branch that ends at this entry.
    Merge(String),
}

/// The choices of a navigation.
#[derive(Debug)]
pub struct NavigationChoice {
    pub target: String,
    /// The preview of the target.
    pub preview: String,
    /// Whether the text of the target is returned for editing.
    pub is_user: bool,
    pub rewind: bool,
    /// The number of entries that the leaf leaves, once it is known.
    pub abandoned: Option<usize>,
    /// Whether a summary can be written: first according to `initialize`, then according to the daemon's answer about
    /// this move.
    pub can_summarize: bool,
    /// The index in [`Self::choices`] of the selected choice.
    pub selected: usize,
    /// The focus of the summary, once the user has chosen to type one.
    pub focus: Option<Input>,
}

impl NavigationChoice {
    /// Offers the choices for a target.
    pub fn new(target: String, preview: String, is_user: bool, rewind: bool) -> Self {
        Self {
            target,
            preview,
            is_user,
            rewind,
            abandoned: None,
            can_summarize: false,
            selected: 0,
            focus: None,
        }
    }

    /// Returns the choices in the order in which they are shown.
    pub const fn choices(&self) -> &'static [&'static str] {
        match self.can_summarize {
            true => &["No summary", "Summarize", "Summarize with a focus…"],
            false => &["Go there"],
        }
    }

    /// Stores the daemon's answer about the move.
    pub fn prepared(&mut self, prepared: &Prepared) {
        // The user message whose text opens in the editor is left too, if the leaf is at it or below it.
        let target = usize::from(self.is_user && prepared.is_on_path);
        self.abandoned = Some(prepared.abandoned + target);
        self.can_summarize = prepared.can_summarize;
        if !self.can_summarize {
            self.selected = 0;
            self.focus = None;
        }
    }
}

/// A failure that is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureDialog {
    /// The operation that failed.
    pub what: String,
    pub failure: Failure,
    /// The first visible line.
    pub top: usize,
}

/// A running navigation.
#[derive(Debug)]
pub struct RunningNavigation {
    pub navigation_id: String,
    pub summarize: bool,
    /// The time of its start, since the program's start.
    pub began: Duration,
    /// The summary so far.
    pub summary: String,
    /// The progress, in words for people.
    pub progress: Option<String>,
    /// Whether the user has asked to abort it.
    pub aborting: bool,
}

impl RunningNavigation {
    /// Returns whether to show the navigation. Without a summary or a slow hook it ends before a person could read it.
    pub fn is_shown(&self, now: Duration) -> bool {
        self.summarize || now.saturating_sub(self.began) > Duration::from_millis(400)
    }
}
