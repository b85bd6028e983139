//! What happens to the model, and what it wants done: the whole traffic between the pure part and the
//! world. Texts in here have passed through [`crate::text`].

use crate::model::compare::Comparison;
use crate::model::document::Document;
use crate::model::rows::Row;
use crossterm::event::{KeyEvent, MouseEvent};
use serde_json::Value;
use std::time::Duration;

/// Something happened.
#[derive(Debug)]
pub enum Message {
    Key(KeyEvent),
    Mouse(MouseEvent),
    /// Pasted text, as it came.
    Paste(String),
    /// Columns and rows.
    Resize(u16, u16),
    /// Time since the program's start; comes while something on the screen moves by itself.
    Tick(Duration),
    /// The daemon answered or said something.
    Daemon(Daemon),
}

/// Something to do, outside.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    Quit,
    /// To the shell, until it says `fg`.
    Suspend,
    /// Into the terminal's clipboard.
    Copy(String),
    /// Start a daemon, and open what was open.
    Connect,
    ListSessions(SessionQuery),
    OpenSession(Target),
    GetTree(TreeQuery),
    GetEntry {
        id: String,
    },
    /// The text of an entry, to be copied.
    GetText {
        id: String,
    },
    /// What a navigation would leave behind.
    Prepare {
        target: String,
        rewind: bool,
    },
    Navigate(Navigate),
    AbortNavigation {
        navigation_id: String,
    },
    Undo,
    Redo,
    Label {
        id: String,
        label: String,
    },
    Rename {
        session_id: String,
        name: String,
    },
    Trash {
        session_id: String,
    },
    Send(Draft),
    Compare {
        id: u64,
        left: String,
        right: String,
    },
    /// The comparison under way is not wanted any more.
    StopComparing,
}

/// Which session to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Id(String),
    Path(String),
    /// The one that was used last, in this directory if there is one.
    Latest,
}

/// A page of the list of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionQuery {
    /// Answers to an older question are not wanted any more.
    pub generation: u64,
    /// Only of the working directory.
    pub here: bool,
    pub named: bool,
    pub query: String,
    pub sort: Sort,
    pub cursor: Option<String>,
    pub limit: usize,
}

/// The order of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    Threaded,
    Recent,
    Created,
    Name,
}

/// A page of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeQuery {
    /// Answers to an older question are not wanted any more.
    pub generation: u64,
    pub filter: Filter,
    pub query: String,
    pub folded: Vec<String>,
    pub place: Place,
    pub limit: usize,
    /// The cursor goes there; else it is only more of the same tree.
    pub reload: bool,
    /// Where others are: the row that stands for it is wanted too.
    pub others: Option<String>,
}

/// Where a page lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Rows before it.
    Offset(usize),
    /// About this entry, or the nearest visible one above it.
    Around(String),
    /// About where the conversation stands.
    Leaf,
}

/// Which entries are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Filter {
    Default,
    NoTools,
    UserOnly,
    #[serde(rename = "labeled-only")]
    Labeled,
    All,
}

/// Going to another place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Navigate {
    pub navigation_id: String,
    pub target: String,
    pub summarize: bool,
    pub focus: Option<String>,
    /// Go before a user message even if the conversation stands on it.
    pub rewind: bool,
}

/// A user message to be sent.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Draft {
    pub text: String,
    /// Content blocks that go with it.
    pub images: Vec<Value>,
    /// Where the conversation stood when it was written.
    pub expected_leaf: Option<String>,
}

/// What comes from the daemon.
#[derive(Debug)]
pub enum Daemon {
    Connected(Server),
    /// It is gone.
    Lost(End),
    Sessions {
        generation: u64,
        result: Result<SessionPage, Failure>,
    },
    Opened(Result<Session, Failure>),
    Tree {
        query: TreeQuery,
        result: Result<Box<TreePage>, Failure>,
    },
    Entry {
        id: String,
        result: Result<Document, Failure>,
    },
    Text(Result<String, Failure>),
    /// How many entries a navigation would summarize; none: it leads to where the conversation stands.
    Prepared {
        target: String,
        result: Result<Option<usize>, Failure>,
    },
    Navigated {
        navigation_id: String,
        result: Result<Navigation, Failure>,
    },
    /// Undo or redo.
    Moved {
        undo: bool,
        result: Result<(), Failure>,
    },
    Labelled(Result<(), Failure>),
    Renamed(Result<(), Failure>),
    Trashed {
        session_id: String,
        result: Result<(), Failure>,
    },
    Sent(Result<(), Failure>),
    /// How far a comparison is.
    Comparing {
        id: u64,
        /// Entries.
        read: usize,
        /// It will not be more of them.
        most: usize,
    },
    Compared {
        id: u64,
        result: Result<Box<Comparison>, Failure>,
    },
    Event(Event),
}

/// What it said unasked, about the open session.
#[derive(Debug)]
pub enum Event {
    /// Entries were appended.
    Appended {
        by_others: bool,
        count: usize,
        /// Where others are, if it is elsewhere.
        others_at: Option<String>,
    },
    /// The conversation stands elsewhere.
    Moved,
    /// The session has another name.
    Named(Option<String>),
    /// A piece of the summary.
    Delta { navigation_id: String, text: String },
    /// How far the summary is, for people.
    Progress {
        navigation_id: String,
        message: String,
    },
    /// The session is no longer open.
    Closed,
    /// Some events were lost: everything may have changed.
    Missed,
}

/// The daemon at the other end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub version: String,
    /// Its summarizer; none if there is none.
    pub summarizer: Option<String>,
}

/// How a daemon ended, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct End {
    pub reason: String,
    /// The last lines of its log, which need not have to do with it.
    pub last_words: Vec<String>,
}

/// An error of the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Of protocol.md §8, or `timeout`, `disconnected`.
    pub kind: String,
    pub message: String,
}

impl Failure {
    /// The daemon is gone, which is told by itself.
    pub fn is_of_connection(&self) -> bool {
        self.kind == "disconnected"
    }
}

/// The open session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub id: String,
    pub path: Option<String>,
    pub cwd: String,
    pub name: Option<String>,
    pub read_only: bool,
    /// Lines of the file that are damaged.
    pub damaged: usize,
}

/// Sessions of the list.
#[derive(Debug)]
pub struct SessionPage {
    pub rows: Vec<SessionRow>,
    /// Where the next page begins, if there is one.
    pub next: Option<String>,
}

/// One session of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    pub id: String,
    pub path: String,
    pub cwd: String,
    pub name: Option<String>,
    /// Seconds since 1970.
    pub modified: i64,
    pub messages: u64,
    pub first_message: String,
    pub parent: Option<String>,
    /// Why it cannot be opened.
    pub damage: Option<String>,
}

/// Rows of the tree.
#[derive(Debug)]
pub struct TreePage {
    /// Rows before it.
    pub offset: usize,
    pub rows: Vec<Row>,
    /// Rows over all pages.
    pub total: usize,
    /// Entries that the filter or the search removed.
    pub hidden: usize,
    /// Changes with every change.
    pub revision: String,
    pub leaf: Option<String>,
    /// The row that was asked for, if one was.
    pub at: Option<usize>,
    /// The entry whose row stands for where others are: theirs, or the nearest visible one above it.
    pub others: Option<String>,
}

/// How a navigation ended.
#[derive(Debug, Default)]
pub struct Navigation {
    pub cancelled: bool,
    /// As the daemon calls it.
    pub reason: Option<String>,
    /// The user message that was gone to.
    pub draft: Option<Draft>,
    pub new_leaf: Option<String>,
    pub summarized: bool,
}
