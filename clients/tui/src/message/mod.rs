//! The interface between the pure model and the world: messages in, effects out. All texts in messages are
//! sanitized by [`crate::text`].

mod comparison;
mod row;
mod search;

pub use comparison::{BranchMessage, Comparison, Gap, SHOWN_FILES, SHOWN_MESSAGES, Side};
pub use row::{BornSession, Kind, Row, RowStyle};
pub use search::{CompletionQuery, Hit, HitPage, QueryCompletion, SearchMode, SearchQuery};

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
    /// Columns and rows.
    Resize(u16, u16),
    /// Time since the program's start; sent while something on the screen is animated.
    Tick(Duration),
    /// Another program has ended that had the terminal; the error says how.
    Ran {
        agent: Agent,
        result: Result<(), String>,
    },
    /// An answer or an event of the daemon.
    Daemon(Daemon),
}

/// An action outside of the model.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    Quit,
    /// Suspend the program until the shell continues it.
    Suspend,
    /// Give the terminal to a program until it ends: the one that goes on in an agent.
    Run {
        agent: Agent,
        argv: Vec<String>,
    },
    /// Copy into the terminal's clipboard.
    Copy(String),
    /// Start a daemon and reopen the session that was open.
    Connect,
    ListSessions(SessionQuery),
    /// Search all sessions; stops the running search.
    Search(SearchQuery),
    /// Stop the running search.
    StopSearch,
    /// List what may stand at the cursor of a query.
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
    /// Read the tokens that entries took.
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
    /// Ask what another agent gets.
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
    /// The session used last, one of this directory if there is any.
    Latest,
}

/// A request for a page of the list of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionQuery {
    /// Answers with an older generation are ignored.
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
    /// Answers with an older generation are ignored.
    pub generation: u64,
    pub filter: Filter,
    pub query: String,
    pub folds: Folds,
    /// Whether archived branches are shown.
    pub archived: bool,
    /// Whether rows name the sessions that come from their entries.
    pub sessions: bool,
    /// The most columns of guides.
    pub guide_columns: usize,
    pub place: PagePosition,
    pub limit: usize,
    /// Whether the page replaces the tree and moves the cursor, or adds rows to the same tree.
    pub reload: bool,
    /// The file's leaf, if it differs from ours; the answer names the row to show it at.
    pub others: Option<String>,
}

/// The branches that were left: which of them are not one row (protocol.md §6.8).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Folds {
    /// Whether all branches are open.
    pub open_all: bool,
    /// The branches that hold these entries are open.
    pub expand: Vec<String>,
    /// The forks of these rows have a row for each branch.
    pub each: Vec<String>,
}

/// The position of a page in the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PagePosition {
    /// Behind this many rows.
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
    /// Go before the user message even if it is the leaf.
    pub rewind: bool,
}

/// A handoff to ask about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandoffRequest {
    /// The session, as the command names it.
    pub session: String,
    /// The last entry that is handed over.
    pub entry: String,
    pub agent: Agent,
    /// Whether a summary of the branch that is left is wanted.
    pub learned: bool,
    /// Whether any number of tokens may be handed over.
    pub unlimited: bool,
}

/// The size and the losses of a handoff.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HandoffPreview {
    pub messages: u64,
    /// Estimated.
    pub tokens: u64,
    /// The parts that the agent does not get, for people.
    pub losses: Vec<String>,
    /// Programs that the daemon does not find.
    pub missing: Vec<String>,
    /// The conversation, for an agent that gets a text; not sanitized.
    pub text: Option<String>,
}

/// A user message to send.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Draft {
    pub text: String,
    /// Content blocks that are sent with the text.
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
    /// A hit of a search that goes on.
    Hit {
        generation: u64,
        hit: Hit,
    },
    /// The end of a search.
    Found {
        generation: u64,
        result: Result<HitPage, Failure>,
        /// Characters of the query before the fault in it, if it has one.
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
    /// The tokens of entries; entries that could not be read have none.
    Tokens(Vec<(String, Option<u64>)>),
    /// The branch that a navigation would leave; `None` if it leads to the leaf itself.
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
        /// Entries read so far.
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
    /// The preview of a handoff.
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
    /// A hint for the argument; empty if there is none.
    pub argument: String,
    pub about: String,
    /// The client that offers it; `None` for commands of this program.
    pub by: Option<String>,
}

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandOutput {
    /// Text to show; its lines are sanitized.
    pub output: Option<String>,
    /// Text for the user's next message, not sanitized.
    pub prompt: Option<String>,
    /// Whether a change of a branch was written, which its inverse takes back.
    pub has_inverse: bool,
}

/// How far an operation has come: in bytes read, or in characters of a summary.
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
        /// The file's leaf, if it differs from ours.
        others_at: Option<String>,
        /// The first user message of the session, if these entries have it.
        first_message: Option<String>,
    },
    /// The leaf has moved, or branches were named, archived or brought back.
    Moved,
    /// The session was renamed.
    Named(Option<String>),
    /// Entries wait for the team's stream, or wait no more.
    Queued(bool),
    /// A part of the summary.
    Delta { navigation_id: String, text: String },
    /// Progress of the summary, for people.
    Progress {
        navigation_id: String,
        message: String,
    },
    /// The operation that runs has come so far.
    Worked(WorkProgress),
    /// The session was closed.
    Closed,
    /// The list of sessions has changed.
    SessionsChanged,
    /// Another client asks the user.
    Asked(Box<Question>),
    /// A question needs no answer any more; `how` says why.
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
    /// Whether somebody can summarize them.
    pub can_summarize: bool,
}

/// The connected daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub version: String,
    /// The name of its summarizer.
    pub summarizer: Option<String>,
}

/// The reason why the connection ended, or why no daemon was started.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct End {
    pub reason: String,
    /// The last lines of the daemon's log; they may be unrelated to its end.
    pub last_words: Vec<String>,
}

/// An error of the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// A kind of protocol.md §8.2, or `timeout`, or `disconnected`.
    pub kind: String,
    pub message: String,
}

impl Failure {
    /// Returns whether the connection has ended, which has its own dialog.
    pub fn is_of_connection(&self) -> bool {
        self.kind == "disconnected"
    }
}

/// The branch with the newest entries of a file that opens on another one.
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
    /// The newest entries, if the file opens beside them.
    pub newer: Option<NewerBranch>,
    /// The other machines that have it open.
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
    /// Seconds since 1970.
    pub modified: i64,
    pub messages: u64,
    pub first_message: String,
    /// The tool from which it was imported, by the daemon's name for it.
    pub source: Option<String>,
    pub parent: Option<String>,
    /// Its tags, its marks and its git branch, in words.
    pub marks: Vec<String>,
    /// The reason why the session cannot be opened.
    pub damage: Option<String>,
    /// The machine that wrote last, if the session has no file here; empty if it is unknown.
    pub host: Option<String>,
    /// The other machines that have it open.
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
    /// Differs after every change of the tree.
    pub revision: String,
    pub leaf: Option<String>,
    /// The index of the requested row, if one was requested.
    pub at: Option<usize>,
    /// The row for the file's leaf: its entry, or the nearest visible ancestor.
    pub others: Option<String>,
}

/// The result of a navigation.
#[derive(Debug, Default)]
pub struct Navigation {
    pub cancelled: bool,
    /// The reason in the protocol's terms.
    pub reason: Option<String>,
    /// The client, hook or extension that cancelled, and its text for people.
    pub by: Option<String>,
    pub message: Option<String>,
    /// The user message whose text was returned for editing.
    pub draft: Option<Draft>,
    pub new_leaf: Option<String>,
    pub summarized: bool,
}
