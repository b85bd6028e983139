//! The interface between the pure model and the rest of the program: the model gets messages and returns
//! effects. All texts in messages are sanitized by [`crate::text`].

mod comparison;
mod row;
mod search;

pub use comparison::{BranchMessage, Comparison, Gap, SHOWN_FILES, SHOWN_MESSAGES, Side};
pub use row::{BornSession, Kind, Row, RowStyle};
pub use search::{
    CompletionQuery, Hit, HitPage, NearWord, QueryCompletion, SearchMode, SearchQuery,
};

use crate::model::document::Document;
use crate::model::picker::{PickerItem, PickerKind};
use crate::model::question::{Question, UserAnswer};
use crate::operation::{Agent, Operation};
use crossterm::event::{KeyEvent, MouseEvent};
use serde_json::Value;
use std::time::Duration;

/// An input of the model.
#[derive(Debug)]
pub enum Message {
    Key(KeyEvent),
    Mouse(MouseEvent),
    /// Pasted text, not sanitized.
    Paste(String),
    /// The new size of the terminal in columns and rows.
    Resize(u16, u16),
    /// The time since the program's start. It is sent while something on the screen is animated.
    Tick(Duration),
    /// A program that had the terminal has ended. The error says how it ended.
    Ran {
        agent: Agent,
        result: Result<(), String>,
    },
    /// An answer or an event of the daemon.
    Daemon(Daemon),
}

/// An action that happens outside of the model.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    Quit,
    /// Suspend the program until the shell continues it.
    Suspend,
    /// Give the terminal to the command that continues the session in another agent, until the command ends.
    Run {
        agent: Agent,
        argv: Vec<String>,
    },
    /// Copy a text into the clipboard of the terminal.
    Copy(String),
    /// Start a daemon, and reopen the session that was open.
    Connect,
    ListSessions(SessionQuery),
    /// Search all sessions, and stop the running search.
    Search(SearchQuery),
    /// Stop the running search.
    StopSearch,
    /// List the texts that can complete the word at the cursor of a query.
    CompleteQuery(CompletionQuery),
    OpenSession(Target),
    GetTree(TreeQuery),
    GetEntry {
        id: String,
    },
    /// Read the text of an entry, to copy it.
    GetText {
        id: String,
    },
    /// Read how many tokens entries used.
    GetTokens {
        ids: Vec<String>,
    },
    /// Count the entries that a navigation would leave.
    Prepare {
        target: String,
        rewind: bool,
    },
    Navigate(NavigationRequest),
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
    /// Stop the running comparison.
    StopComparing,
    /// List the commands of other clients.
    ListCommands,
    RunCommand {
        id: u64,
        name: String,
        argument: String,
    },
    /// Run an operation as a command.
    Operate {
        id: u64,
        operation: Operation,
    },
    /// Request the preview of a handoff to another agent.
    PreviewHandoff(HandoffRequest),
    /// List the items of a picker.
    ListItems(PickerKind),
    /// Cancel the running command.
    StopCommand,
    /// Answer a question of another client.
    AnswerUser {
        event_id: String,
        answer: UserAnswer,
    },
}

/// The session to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Id(String),
    Path(String),
    /// The session that was used last. Sessions of this directory are preferred.
    Latest,
}

/// A request for a page of the list of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionQuery {
    /// The number of the request. Answers with a lower number are ignored.
    pub generation: u64,
    /// Only sessions of the working directory.
    pub here: bool,
    pub named: bool,
    /// Whether archived sessions are listed too.
    pub archived: bool,
    /// Only sessions of this directory.
    pub project: Option<String>,
    /// Only sessions imported from this tool.
    pub tool: Option<&'static str>,
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

/// A request for a page of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeQuery {
    /// The number of the request. Answers with a lower number are ignored.
    pub generation: u64,
    pub filter: Filter,
    pub query: String,
    pub folds: Folds,
    /// Whether archived branches are shown.
    pub archived: bool,
    /// Whether each row lists the sessions that began at its entry as a fork, a subagent or a continuation.
    pub sessions: bool,
    /// The most columns for the guides, which are the lines (`├─ └─ │`) before a row.
    pub guide_columns: usize,
    pub place: PagePosition,
    pub limit: usize,
    /// Whether the page replaces the rows of the tree and moves the cursor; otherwise its rows are added.
    pub reload: bool,
    /// The leaf of the session file, if this connection has another leaf. The answer names the row of the file's leaf.
    pub others: Option<String>,
}

/// The branches that are shown in full although the leaf has left them. All other branches that the leaf has left are
/// folded into rows (protocol.md §6.8).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Folds {
    /// Whether all branches are open.
    pub open_all: bool,
    /// The entries whose branches are open.
    pub expand: Vec<String>,
    /// The folded rows that are replaced by one row for each of their branches.
    pub each: Vec<String>,
}

/// The position of a page in the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PagePosition {
    /// After this many rows.
    Offset(usize),
    /// Around this entry, or around its nearest visible ancestor.
    Around(String),
    /// Around the leaf.
    Leaf,
}

/// The entries that are shown.
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

/// A navigation to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NavigationRequest {
    pub navigation_id: String,
    pub target: String,
    pub summarize: bool,
    pub focus: Option<String>,
    /// Whether to go above the user message even if it is the leaf.
    pub rewind: bool,
}

/// A handoff to preview.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandoffRequest {
    /// The path of the session file, or the id of the session if it has no path.
    pub session: String,
    /// The last entry that is handed over.
    pub entry: String,
    pub agent: Agent,
    /// Whether to begin with a summary of the branch that the leaf leaves.
    pub learned: bool,
    /// Whether the number of tokens is unlimited.
    pub unlimited: bool,
}

/// The size and the losses of a handoff.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HandoffPreview {
    pub messages: u64,
    /// The estimated number of tokens.
    pub tokens: u64,
    /// The parts of the conversation that the agent does not get, in words for people.
    pub losses: Vec<String>,
    /// The programs that the daemon did not find.
    pub missing: Vec<String>,
    /// The conversation as text, for an agent that gets a text. It is not sanitized.
    pub text: Option<String>,
}

/// A user message to send.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Draft {
    pub text: String,
    /// The content blocks that are sent together with the text.
    pub images: Vec<Value>,
    /// The leaf when the draft was opened.
    pub expected_leaf: Option<String>,
}

/// A message from the daemon.
#[derive(Debug)]
pub enum Daemon {
    Connected(Server),
    /// The connection has ended.
    Lost(End),
    Sessions {
        generation: u64,
        result: Result<SessionPage, Failure>,
    },
    /// A hit of a search that is still running.
    Hit {
        generation: u64,
        hit: Hit,
    },
    /// The end of a search.
    Found {
        generation: u64,
        result: Result<HitPage, Failure>,
        /// The number of characters of the query before its fault, if it has a fault.
        fault: Option<usize>,
    },
    QueryCompleted {
        generation: u64,
        completion: QueryCompletion,
    },
    Opened(Result<Session, Failure>),
    /// The other machines that have a session open.
    OpenOn {
        session_id: String,
        hosts: Vec<String>,
    },
    Tree {
        query: TreeQuery,
        result: Result<Box<TreePage>, Failure>,
    },
    Entry {
        id: String,
        result: Result<Document, Failure>,
    },
    Text(Result<String, Failure>),
    /// The number of tokens of entries; `None` for entries that could not be read.
    Tokens(Vec<(String, Option<u64>)>),
    /// The branch that a navigation would leave; `None` if the target is the leaf itself.
    Prepared {
        target: String,
        result: Result<Option<Prepared>, Failure>,
    },
    Navigated {
        navigation_id: String,
        result: Result<Navigation, Failure>,
    },
    /// The result of undo or redo.
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
    /// Progress of a comparison.
    Comparing {
        id: u64,
        /// The number of entries read so far.
        read: usize,
        /// An upper bound of `read`.
        most: usize,
    },
    Compared {
        id: u64,
        result: Result<Box<Comparison>, Failure>,
    },
    Commands(Result<Vec<Command>, Failure>),
    CommandEnded {
        id: u64,
        result: Result<CommandOutput, Failure>,
    },
    /// The items of a picker.
    Listed {
        kind: PickerKind,
        result: Result<Vec<PickerItem>, Failure>,
    },
    /// The preview of a handoff, or the reason why there is none.
    Previewed {
        request: HandoffRequest,
        result: Result<HandoffPreview, Failure>,
    },
    /// The result of answering a question.
    Answered(Result<(), Failure>),
    Event(Event),
}

/// A command that can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    pub name: String,
    /// A hint about the argument; empty if there is none.
    pub argument: String,
    pub about: String,
    /// The client that offers the command; `None` for commands of this program.
    pub by: Option<String>,
}

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandOutput {
    /// The text to show. Its lines are sanitized.
    pub output: Option<String>,
    /// A text for the user's next message. It is not sanitized.
    pub prompt: Option<String>,
    /// Whether a change to a branch was written, which another command can reverse.
    pub has_inverse: bool,
}

/// The progress of an operation: in bytes read, or in characters of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkProgress {
    pub done: u64,
    pub total: Option<u64>,
}

/// The importance of a message to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Info,
    Warning,
    Error,
}

/// A notification about the open session.
#[derive(Debug)]
pub enum Event {
    /// Entries were appended.
    Appended {
        by_others: bool,
        count: usize,
        /// The leaf of the session file, if this connection has another leaf.
        others_at: Option<String>,
        /// The first user message of the session, if these entries have it.
        first_message: Option<String>,
    },
    /// The leaf has moved, branches were named, archived or brought back, or entries have another order.
    Moved,
    /// The session was renamed.
    Named(Option<String>),
    /// Entries wait for the team's stream, or wait no more. `lost` is the number of entries that are only in the trash,
    /// because another machine has deleted the session.
    Queued { queued: bool, lost: usize },
    /// A part of the summary.
    Delta { navigation_id: String, text: String },
    /// Progress of the summary, for people.
    Progress {
        navigation_id: String,
        message: String,
    },
    /// The progress of the running operation.
    Worked(WorkProgress),
    /// The session was closed.
    Closed,
    /// The list of sessions has changed.
    SessionsChanged,
    /// Another client asks the user.
    Asked(Box<Question>),
    /// A question needs no answer any more. `how` gives the reason.
    Resolved { event_id: String, how: String },
    /// Another client has a message for the user.
    Notified { level: Level, text: String },
    /// Notifications were lost, so anything may have changed.
    Missed,
}

/// The branch that a navigation would leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prepared {
    /// The number of entries.
    pub abandoned: usize,
    /// Whether the target is on the path to the leaf.
    pub is_on_path: bool,
    /// Whether a summarizer or a client can summarize these entries.
    pub can_summarize: bool,
}

/// The connected daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub version: String,
    /// The name of the daemon's summarizer.
    pub summarizer: Option<String>,
}

/// The reason why the connection ended, or why no daemon was started.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct End {
    pub reason: String,
    /// The last lines of the daemon's log. They may have nothing to do with the reason.
    pub last_words: Vec<String>,
}

/// An error of the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// A kind of protocol.md §8.2, or `timeout` or `disconnected`.
    pub kind: String,
    pub message: String,
}

impl Failure {
    /// Returns whether the connection has ended. The end has its own dialog.
    pub fn is_of_connection(&self) -> bool {
        self.kind == "disconnected"
    }
}

/// The branch with the newest entries, if the file opens on another branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewerBranch {
    pub tip: String,
    /// The user messages that only this branch has.
    pub turns: u64,
}

/// The open session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub id: String,
    pub path: Option<String>,
    pub cwd: String,
    pub name: Option<String>,
    /// The first user message, on one line; empty if there is none.
    pub first_message: String,
    pub read_only: bool,
    /// The number of damaged lines in the file.
    pub damaged: usize,
    /// Whether the team's stream has lost lines of the file.
    pub rewound: bool,
    /// The branch with the newest entries, if the file opens on another branch.
    pub newer: Option<NewerBranch>,
    /// The other machines that have the session open.
    pub open_on: Vec<String>,
    /// Whether entries wait for the team's stream.
    pub queued: bool,
}

/// A page of the list of sessions.
#[derive(Debug)]
pub struct SessionPage {
    pub rows: Vec<SessionRow>,
    /// The sessions of other machines, on the first page.
    pub team: Vec<SessionRow>,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}

/// A row of the list of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    pub id: String,
    pub path: String,
    pub cwd: String,
    pub name: Option<String>,
    /// The time of the last activity, in seconds since 1970.
    pub modified: i64,
    pub messages: u64,
    pub first_message: String,
    /// The tool from which the session was imported, by the daemon's name for the tool.
    pub source: Option<String>,
    pub parent: Option<String>,
    /// The tags, marks and git branch of the session, in words.
    pub marks: Vec<String>,
    /// The reason why the session cannot be opened.
    pub damage: Option<String>,
    /// The machine that wrote to the session last, if the session has no file here; empty if this machine
    /// is unknown.
    pub host: Option<String>,
    /// The other machines that have the session open.
    pub open_on: Vec<String>,
    /// Whether entries wait for the team's stream.
    pub queued: bool,
}

/// A page of the tree.
#[derive(Debug)]
pub struct TreePage {
    /// The number of rows before this page.
    pub offset: usize,
    pub rows: Vec<Row>,
    /// The number of rows of all pages.
    pub total: usize,
    /// The number of entries that the filter or the search hides.
    pub hidden: usize,
    /// The number of archived branches, shown or not.
    pub archived_branches: usize,
    /// The number of branches in the cold file, which no tree shows.
    pub shed_branches: usize,
    /// A value that changes with every change of the tree.
    pub revision: String,
    pub leaf: Option<String>,
    /// The index of the requested row, if one was requested.
    pub at: Option<usize>,
    /// The row for the file's leaf: the row of its entry, or of the nearest visible ancestor.
    pub others: Option<String>,
}

/// The result of a navigation.
#[derive(Debug, Default)]
pub struct Navigation {
    pub cancelled: bool,
    /// The reason, as the protocol names it.
    pub reason: Option<String>,
    /// The client, hook or extension that cancelled the navigation, and its text for people.
    pub by: Option<String>,
    pub message: Option<String>,
    /// The user message whose text is returned for editing.
    pub draft: Option<Draft>,
    pub new_leaf: Option<String>,
    pub summarized: bool,
}
