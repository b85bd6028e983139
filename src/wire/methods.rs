//! The one table of methods and the one table of notifications (protocol.md §3, §7).
//!
//! `rpc` makes the dispatch of requests from the table. `schema` makes the documents from the table, and
//! the types of the clients are generated from the documents. To add a method, declare its params and its
//! result in this crate, each with an example, write its handler in `rpc::methods` in the form for its
//! scope (`rpc::handler`), and add a row to the table.
//!
//! The tables are macros that pass their rows to another macro. `rpc` and `schema` each need a different part of a row,
//! and this module can import neither `rpc` nor `schema`.

use super::notification;
use serde::Serialize;
use treelined_core::error::Kind;

/// Where, and in which order, the daemon runs the requests of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Runs at once, and waits for no other request.
    Immediate,
    /// Runs in order with the requests to the session that it names. The method changes which sessions are open, or
    /// reads or changes the session directory.
    Registry,
    /// Runs in order with the other requests to its session.
    Session(Access),
}

/// How a method uses its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Changes nothing.
    Read,
    /// Changes the session, and waits for neither a client nor a summarizer.
    Append,
    /// Waits for clients or for a summarizer before it changes the session; other requests run meanwhile.
    Release,
}

impl Scope {
    /// The name in `methods.json`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Immediate => "immediate",
            Self::Registry => "registry",
            Self::Session(Access::Read) => "session.read",
            Self::Session(Access::Append) => "session.append",
            Self::Session(Access::Release) => "session.release",
        }
    }
}

impl Scope {
    /// Explains the scope in `reference.md`.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Immediate => "The request runs at once and waits for no other request.",
            Self::Registry => {
                "The request runs in order with the requests to the session that it names."
            }
            Self::Session(Access::Read) => {
                "The request runs in order with the other requests to its session, and changes nothing."
            }
            Self::Session(Access::Append) => {
                "The request runs in order with the other requests to its session, and may change the session."
            }
            Self::Session(Access::Release) => {
                "The request begins in order with the other requests to its session. While it waits for clients or for a summarizer, later requests run; it takes effect when it commits."
            }
        }
    }
}

/// The right that a connection needs before the daemon runs a method for it (protocol.md §10.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// The method concerns the connection alone.
    Own,
    /// The method reads sessions.
    Read,
    /// The method reads sessions in a form in which a secret may be in pieces.
    Raw,
    /// The method adds to sessions, or creates a session.
    Append,
    /// The method answers a question of the daemon.
    Answer,
    /// The method offers something to other clients, or asks a person.
    Offer,
    /// The method does what a person asks a client for: it runs a command of an extension, makes a file to send, hands a
    /// conversation over, or sorts and counts sessions.
    Person,
    /// The method does anything else. A row without a right has this right.
    All,
}

impl Right {
    pub const ALL: [Self; 8] = [
        Self::Own,
        Self::Read,
        Self::Raw,
        Self::Append,
        Self::Answer,
        Self::Offer,
        Self::Person,
        Self::All,
    ];

    /// The name in `methods.json`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Read => "read",
            Self::Raw => "raw",
            Self::Append => "append",
            Self::Answer => "answer",
            Self::Offer => "offer",
            Self::Person => "person",
            Self::All => "all",
        }
    }

    /// Explains the right in `reference.md`.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Own => "The method concerns the connection alone: every connection may call it.",
            Self::Read => "It reads sessions.",
            Self::Raw => {
                "It reads sessions in a form in which a secret may be in pieces, and is not for connections whose secrets are replaced."
            }
            Self::Append => "It adds to sessions, moves their leaf, or creates one.",
            Self::Answer => "It answers a question of the daemon.",
            Self::Offer => "It offers something to other clients, or asks a person.",
            Self::Person => {
                "It runs a command, makes a file to send, hands a conversation over, or sorts and counts sessions."
            }
            Self::All => {
                "It does anything else: only connections that may do everything may call it."
            }
        }
    }
}

/// The right that a row declares. If a row declares no right, only connections that may do everything may call the
/// method.
#[doc(hidden)]
#[macro_export]
macro_rules! right {
    () => {
        $crate::methods::Right::All
    };
    (own) => {
        $crate::methods::Right::Own
    };
    (read) => {
        $crate::methods::Right::Read
    };
    (raw) => {
        $crate::methods::Right::Raw
    };
    (append) => {
        $crate::methods::Right::Append
    };
    (answer) => {
        $crate::methods::Right::Answer
    };
    (offer) => {
        $crate::methods::Right::Offer
    };
    (person) => {
        $crate::methods::Right::Person
    };
}
pub use right;

/// The scope that a row declares.
#[doc(hidden)]
#[macro_export]
macro_rules! scope {
    (immediate) => {
        $crate::methods::Scope::Immediate
    };
    (registry) => {
        $crate::methods::Scope::Registry
    };
    (session(read)) => {
        $crate::methods::Scope::Session($crate::methods::Access::Read)
    };
    (session(append)) => {
        $crate::methods::Scope::Session($crate::methods::Access::Append)
    };
    (session(release)) => {
        $crate::methods::Scope::Session($crate::methods::Access::Release)
    };
}
pub use scope;

/// The failures that any request can have, whatever its method is.
pub const ANY: &[Kind] = &[
    Kind::ParseError,
    Kind::InvalidRequest,
    Kind::MethodNotFound,
    Kind::InternalError,
    Kind::ShuttingDown,
    Kind::BatchUnsupported,
    Kind::RequestTooLarge,
    Kind::ResponseTooLarge,
    Kind::Overloaded,
    Kind::MemoryExhausted,
];

/// The failures of a method that has params.
pub const PARAMS: &[Kind] = &[Kind::InvalidParams];

/// The failures of a method about one open session.
pub const SESSION: &[Kind] = &[Kind::InvalidParams, Kind::SessionNotFound];

/// The failures of a method that reads entries from the file.
pub const FILE: &[Kind] = &[
    Kind::SessionDeleted,
    Kind::SessionReplaced,
    Kind::StorageIo,
    Kind::PathDenied,
    Kind::Cancelled,
];

/// The failures of a method that appends to the file.
pub const APPEND: &[Kind] = &[
    Kind::SessionLocked,
    Kind::SessionExists,
    Kind::VersionUnsupported,
    Kind::ReadOnly,
    Kind::SessionDeleted,
    Kind::SessionReplaced,
    Kind::LeafMoved,
    Kind::StorageFull,
    Kind::StorageIo,
    Kind::PathDenied,
    Kind::DurabilityUnknown,
    Kind::Cancelled,
];

/// The failures of a method to which the client passes content and ids of entries.
pub const ENTRY: &[Kind] = &[Kind::EntryInvalid, Kind::DuplicateEntryId];

/// The failures of a method that stores JSON of the client unchanged.
pub const TOO_DEEP: &[Kind] = &[Kind::EntryInvalid];

/// The failures of a method that may write a summary.
pub const SUMMARY: &[Kind] = &[Kind::SummarizerUnavailable, Kind::SummarizerFailed];

/// The failures of a method to which the client passes the id of an entry.
pub const NOT_FOUND: &[Kind] = &[Kind::EntryNotFound];

/// The failures of a method that cannot run during a turn, a navigation or a compaction.
pub const BUSY: &[Kind] = &[Kind::SessionBusy];

/// Passes every method to the macro `$callback`, group by group.
///
/// `section` is the section of protocol.md that describes the method; `right` is left out if only connections that may do
/// everything may call it; `errors` are lists of the failures that the method can answer in addition to [`ANY`]; `run` is
/// the handler, as a path below `rpc::methods`.
#[doc(hidden)]
#[macro_export]
macro_rules! with_methods {
    ($callback:ident) => {
        $callback! {
            connection "The connection itself: the handshake, its end, and cancelling requests." {
                "initialize" {
                    summary: "Introduces the client, declares what it can do, and returns what the daemon can do.",
                    section: "2.1", scope: immediate, right: own,
                    params: InitializeParams, result: InitializeResult,
                    errors: [PARAMS, &[Kind::InvalidRequest]],
                    run: handshake::initialize,
                }
                "rpc.discover" {
                    summary: "Returns the OpenRPC document of this daemon.",
                    section: "3.14", scope: immediate, right: own,
                    params: DiscoverParams, result: DiscoverResult,
                    errors: [PARAMS],
                    run: handshake::discover,
                }
                "open_web" {
                    summary: "Serves the page and the WebSocket if the daemon does not, and returns their addresses.",
                    section: "17.4", scope: immediate,
                    params: OpenWebParams, result: OpenWebResult,
                    errors: [PARAMS, &[Kind::StorageIo]],
                    run: web::open_web,
                }
                "shutdown" {
                    summary: "Ends the connection after every request that it has sent is answered, and a daemon that serves nothing else.",
                    section: "3.14", scope: immediate, right: own,
                    params: ShutdownParams, result: ShutdownResult,
                    errors: [PARAMS],
                    run: handshake::shutdown,
                }
                "$/cancel_request" {
                    summary: "Cancels a request that has not been answered.",
                    section: "5.7", scope: immediate, right: own,
                    params: CancelRequestParams, result: CancelRequestResult,
                    errors: [PARAMS],
                    run: handshake::cancel_request,
                }
                "$/cancelRequest" {
                    summary: "Cancels a request that has not been answered, in the spelling of the Language Server Protocol.",
                    section: "5.7", scope: immediate, right: own,
                    params: LspCancelRequestParams, result: CancelRequestResult,
                    errors: [PARAMS],
                    run: handshake::lsp_cancel_request,
                }
            }
            sessions "Sessions as a whole: create, open, list, name, fork and delete them." {
                "create_session" {
                    summary: "Creates a session and opens it.",
                    section: "3.3", scope: registry, right: append,
                    params: CreateSessionParams, result: CreateSessionResult,
                    errors: [PARAMS, &[Kind::SessionExists, Kind::SessionLocked, Kind::StorageFull, Kind::StorageIo, Kind::PathDenied, Kind::DurabilityUnknown, Kind::Cancelled]],
                    run: sessions::create_session,
                }
                "open_session" {
                    summary: "Opens a session by its id or by the path of its file.",
                    section: "3.3", scope: registry, right: read,
                    params: OpenSessionParams, result: OpenSessionResult,
                    errors: [SESSION, &[Kind::HeaderMissing, Kind::SessionExists, Kind::SessionDeleted, Kind::SessionReplaced, Kind::StorageIo, Kind::PathDenied, Kind::Cancelled]],
                    run: sessions::open_session,
                }
                "close_session" {
                    summary: "Closes a session; its file stays.",
                    section: "3.3", scope: registry, right: read,
                    params: CloseSessionParams, result: CloseSessionResult,
                    errors: [SESSION, BUSY, &[Kind::DurabilityUnknown, Kind::Cancelled]],
                    run: sessions::close_session,
                }
                "list_sessions" {
                    summary: "Lists the sessions of the session directory, page by page.",
                    section: "3.4", scope: registry, right: read,
                    params: ListSessionsParams, result: ListSessionsResult,
                    errors: [PARAMS, &[Kind::StorageIo, Kind::PathDenied, Kind::Cancelled]],
                    run: list::list_sessions,
                }
                "watch_sessions" {
                    summary: "Has the daemon tell this connection about changes of the list of sessions.",
                    section: "10.4", scope: registry, right: read,
                    params: WatchSessionsParams, result: WatchSessionsResult,
                    errors: [PARAMS, &[Kind::StorageIo, Kind::PathDenied, Kind::Cancelled]],
                    run: watch::watch_sessions,
                }
                "unwatch_sessions" {
                    summary: "Ends what `watch_sessions` began.",
                    section: "10.4", scope: immediate, right: own,
                    params: UnwatchSessionsParams, result: UnwatchSessionsResult,
                    errors: [PARAMS],
                    run: watch::unwatch_sessions,
                }
                "search" {
                    summary: "Finds the entries of all sessions that hold words, a text or a pattern, or ranks them by a question.",
                    section: "3.16", scope: registry, right: read,
                    params: SearchParams, result: SearchResult,
                    errors: [PARAMS, &[Kind::SessionNotFound, Kind::CursorExpired, Kind::StorageIo, Kind::PathDenied, Kind::Cancelled]],
                    run: search::search,
                }
                "complete_query" {
                    summary: "Completes a text in the language of filters.",
                    section: "3.19", scope: immediate, right: read,
                    params: CompleteQueryParams, result: CompleteQueryResult,
                    errors: [PARAMS, &[Kind::StorageIo, Kind::Cancelled]],
                    run: search::complete_query,
                }
                "delete_session" {
                    summary: "Moves the file of a session to the trash folder of the session directory.",
                    section: "3.4", scope: registry,
                    params: DeleteSessionParams, result: DeleteSessionResult,
                    errors: [SESSION, &[Kind::SessionLocked, Kind::ReadOnly, Kind::VersionUnsupported, Kind::SessionBusy, Kind::StorageFull, Kind::StorageIo, Kind::PathDenied, Kind::DurabilityUnknown, Kind::Cancelled]],
                    run: sessions::delete_session,
                }
                "erase_session" {
                    summary: "Removes a session for good from the team's database, and from this machine.",
                    section: "3.4", scope: registry,
                    params: EraseSessionParams, result: EraseSessionResult,
                    errors: [SESSION, &[Kind::ErasureUnsupported, Kind::SessionBusy, Kind::LogUnavailable, Kind::LogDenied, Kind::LogMisconfigured, Kind::StorageIo, Kind::PathDenied, Kind::Cancelled]],
                    run: sessions::erase_session,
                }
                "mark_session" {
                    summary: "Pins or archives a session on this machine, or takes that back.",
                    section: "3.21", scope: registry, right: person,
                    params: MarkSessionParams, result: MarkSessionResult,
                    errors: [SESSION, &[Kind::SessionLocked, Kind::StorageFull, Kind::StorageIo, Kind::PathDenied, Kind::Cancelled]],
                    run: sorting::mark_session,
                }
                "get_family" {
                    summary: "Returns the sessions that come from each other: forks, subagents, and conversations that go on in an agent.",
                    section: "3.22", scope: registry, right: read,
                    params: GetFamilyParams, result: GetFamilyResult,
                    errors: [SESSION, &[Kind::StorageIo, Kind::PathDenied, Kind::Cancelled]],
                    run: sorting::get_family,
                }
                "get_usage" {
                    summary: "Returns tokens and cost of all sessions by day, model, tool, session, branch or directory, each answer once.",
                    section: "15.6", scope: registry, right: person,
                    params: GetUsageParams, result: GetUsageResult,
                    errors: [PARAMS, &[Kind::SessionNotFound, Kind::StorageIo, Kind::PathDenied, Kind::Cancelled]],
                    run: usage::get_usage,
                }
                "list_trash" {
                    summary: "Lists the sessions in the trash folder.",
                    section: "3.4", scope: registry,
                    params: ListTrashParams, result: ListTrashResult,
                    errors: [PARAMS, &[Kind::StorageIo, Kind::PathDenied, Kind::Cancelled]],
                    run: list::list_trash,
                }
                "restore_session" {
                    summary: "Moves a deleted session from the trash folder back to the session directory.",
                    section: "3.4", scope: registry,
                    params: RestoreSessionParams, result: RestoreSessionResult,
                    errors: [SESSION, &[Kind::SessionExists, Kind::SessionLocked, Kind::StorageFull, Kind::StorageIo, Kind::PathDenied, Kind::Cancelled]],
                    run: sessions::restore_session,
                }
                "import_sessions" {
                    summary: "Imports the conversations of other tools, or what they have written since the last import.",
                    section: "3.17", scope: registry,
                    params: ImportSessionsParams, result: ImportSessionsResult,
                    errors: [PARAMS, &[Kind::ImportBusy, Kind::ImportFailed, Kind::SessionLocked, Kind::StorageFull, Kind::StorageIo, Kind::PathDenied, Kind::Cancelled]],
                    run: import::import_sessions,
                }
                "import_report" {
                    summary: "Returns the reports of the imports that changed a session.",
                    section: "3.17", scope: session(read), right: read,
                    params: ImportReportParams, result: ImportReportResult,
                    errors: [SESSION, FILE],
                    run: import::import_report,
                }
                "continue_session" {
                    summary: "Hands the conversation up to an entry over to another agent, which goes on from there.",
                    section: "3.18", scope: session(release), right: person,
                    params: ContinueSessionParams, result: ContinueSessionResult,
                    errors: [SESSION, FILE, NOT_FOUND, &[Kind::SessionLocked, Kind::ReadOnly, Kind::VersionUnsupported, Kind::ContextTooLarge, Kind::NothingToCompact, Kind::SummarizerUnavailable, Kind::SummarizerFailed, Kind::FileExists, Kind::StorageFull, Kind::DurabilityUnknown]],
                    run: continuation::continue_session,
                }
                "continuation_started" {
                    summary: "Notes the id that the agent gave a session that was handed over.",
                    section: "3.18", scope: session(append), right: append,
                    params: ContinuationStartedParams, result: ContinuationStartedResult,
                    errors: [SESSION, APPEND],
                    run: continuation::continuation_started,
                }
                "set_session_name" {
                    summary: "Gives a session a name, or clears its name.",
                    section: "3.4", scope: session(append), right: append,
                    params: SetSessionNameParams, result: SetSessionNameResult,
                    errors: [SESSION, APPEND],
                    run: append::set_session_name,
                }
                "tag_session" {
                    summary: "Adds tags to a session, and removes others.",
                    section: "3.21", scope: session(append), right: append,
                    params: TagSessionParams, result: TagSessionResult,
                    errors: [SESSION, APPEND],
                    run: sorting::tag_session,
                }
                "fork_session" {
                    summary: "Copies the path to an entry into a new session and opens that session.",
                    section: "3.10", scope: session(release), right: append,
                    params: ForkSessionParams, result: ForkSessionResult,
                    errors: [SESSION, FILE, NOT_FOUND, BUSY, &[Kind::SessionExists, Kind::SessionLocked, Kind::VersionUnsupported, Kind::NotAUserMessage, Kind::UnansweredToolCalls, Kind::StorageFull, Kind::DurabilityUnknown]],
                    run: fork::fork_session,
                }
                "get_fork_messages" {
                    summary: "Lists the user messages of all branches, from which a client can offer forks.",
                    section: "3.10", scope: session(read), right: read,
                    params: GetForkMessagesParams, result: GetForkMessagesResult,
                    errors: [SESSION, FILE],
                    run: fork::get_fork_messages,
                }
                "export_session" {
                    summary: "Writes a session, a branch or a subtree as a page, as text, as a session file or as data.",
                    section: "16", scope: session(read), right: person,
                    params: ExportSessionParams, result: ExportSessionResult,
                    errors: [SESSION, FILE, NOT_FOUND, &[Kind::FileExists, Kind::NothingToExport, Kind::StorageFull, Kind::VersionUnsupported]],
                    run: export::export_session,
                }
            }
            append "Adding entries to a session." {
                "append_message" {
                    summary: "Appends one message at the leaf or below another entry.",
                    section: "3.5", scope: session(append), right: append,
                    params: AppendMessageParams, result: AppendMessageResult,
                    errors: [SESSION, APPEND, ENTRY, NOT_FOUND],
                    run: append::append_message,
                }
                "append_entries" {
                    summary: "Appends several entries in one write: all of them or none.",
                    section: "3.5", scope: session(append), right: append,
                    params: AppendEntriesParams, result: AppendEntriesResult,
                    errors: [SESSION, APPEND, ENTRY, NOT_FOUND],
                    run: append::append_entries,
                }
                "append_label" {
                    summary: "Labels an entry, or clears its label.",
                    section: "3.5", scope: session(append), right: append,
                    params: AppendLabelParams, result: AppendLabelResult,
                    errors: [SESSION, APPEND, ENTRY, NOT_FOUND],
                    run: append::append_label,
                }
                "cherry_pick" {
                    summary: "Appends copies of messages from other branches at the leaf.",
                    section: "3.12", scope: session(append), right: append,
                    params: CherryPickParams, result: CherryPickResult,
                    errors: [SESSION, APPEND, NOT_FOUND, &[Kind::UnansweredToolCalls]],
                    run: pick::cherry_pick,
                }
                "merge_branch" {
                    summary: "Appends a summary of another branch at the leaf.",
                    section: "3.12", scope: session(release), right: append,
                    params: MergeBranchParams, result: MergeBranchResult,
                    errors: [SESSION, APPEND, NOT_FOUND, BUSY, SUMMARY],
                    run: navigate::merge_branch,
                }
                "send_message" {
                    summary: "Appends a message of a plugin at the leaf; while a turn runs, queues it until the turn ends.",
                    section: "3.13", scope: session(append), right: append,
                    params: SendMessageParams, result: SendMessageResult,
                    errors: [SESSION, APPEND, ENTRY, NOT_FOUND],
                    run: turns::send_message,
                }
            }
            navigation "Moving the leaf to another place of the tree." {
                "set_leaf" {
                    summary: "Moves the leaf to an entry or to the empty position, without asking any client.",
                    section: "3.6", scope: session(append), right: append,
                    params: SetLeafParams, result: SetLeafResult,
                    errors: [SESSION, APPEND, NOT_FOUND, BUSY],
                    run: moves::set_leaf,
                }
                "branch" {
                    summary: "Moves the leaf to an entry, and records a summary of the branch left behind if the client gives one.",
                    section: "3.6", scope: session(append), right: append,
                    params: BranchParams, result: BranchResult,
                    errors: [SESSION, APPEND, NOT_FOUND, BUSY, TOO_DEEP],
                    run: moves::branch,
                }
                "navigate_tree" {
                    summary: "Moves the leaf to another place of the tree, asks clients first, and summarizes the branch left behind if wanted.",
                    section: "4", scope: session(release), right: append,
                    params: NavigateTreeParams, result: NavigateTreeResult,
                    errors: [SESSION, APPEND, NOT_FOUND, BUSY, SUMMARY],
                    run: navigate::navigate_tree,
                }
                "abort_navigation" {
                    summary: "Aborts a running navigation or compaction.",
                    section: "4.11", scope: immediate, right: append,
                    params: AbortNavigationParams, result: AbortNavigationResult,
                    errors: [SESSION],
                    run: navigate::abort_navigation,
                }
                "undo_navigation" {
                    summary: "Moves the leaf back to where it was before the last move.",
                    section: "3.7", scope: session(append), right: append,
                    params: UndoNavigationParams, result: UndoNavigationResult,
                    errors: [SESSION, APPEND, BUSY, &[Kind::NothingToUndo]],
                    run: moves::undo_navigation,
                }
                "redo_navigation" {
                    summary: "Reverses the last undo.",
                    section: "3.7", scope: session(append), right: append,
                    params: RedoNavigationParams, result: RedoNavigationResult,
                    errors: [SESSION, APPEND, BUSY, &[Kind::NothingToUndo]],
                    run: moves::redo_navigation,
                }
                "get_navigation_log" {
                    summary: "Lists the moves of the leaf, newest first.",
                    section: "3.7", scope: session(read), right: read,
                    params: GetNavigationLogParams, result: GetNavigationLogResult,
                    errors: [SESSION, FILE],
                    run: moves::get_navigation_log,
                }
                "name_branch" {
                    summary: "Gives a branch a name, or removes its name.",
                    section: "3.20", scope: session(append), right: append,
                    params: NameBranchParams, result: NameBranchResult,
                    errors: [SESSION, APPEND, NOT_FOUND],
                    run: branches::name_branch,
                }
                "archive_branch" {
                    summary: "Puts a branch away: it is gone from trees, lists, counts and search until it is asked for.",
                    section: "3.20", scope: session(release), right: append,
                    params: ArchiveBranchParams, result: ArchiveBranchResult,
                    errors: [SESSION, APPEND, BUSY, NOT_FOUND],
                    run: branches::archive_branch,
                }
                "unarchive_branch" {
                    summary: "Brings an archived branch back.",
                    section: "3.20", scope: session(append), right: append,
                    params: UnarchiveBranchParams, result: UnarchiveBranchResult,
                    errors: [SESSION, APPEND, NOT_FOUND],
                    run: branches::unarchive_branch,
                }
                "shed_branches" {
                    summary: "Moves archived branches, whole lines only, out of the session file into the cold file beside it.",
                    section: "3.24", scope: session(append), right: append,
                    params: ShedBranchesParams, result: ShedBranchesResult,
                    errors: [SESSION, APPEND, BUSY, NOT_FOUND],
                    run: shed::shed_branches,
                }
                "unshed_branches" {
                    summary: "Moves branches from the cold file back into the session file.",
                    section: "3.24", scope: session(append), right: append,
                    params: UnshedBranchesParams, result: UnshedBranchesResult,
                    errors: [SESSION, APPEND, BUSY, NOT_FOUND, &[Kind::DuplicateEntryId]],
                    run: shed::unshed_branches,
                }
                "choose" {
                    summary: "Goes to one of several candidates, and keeps the judgement about the others as notes.",
                    section: "3.23", scope: session(release), right: append,
                    params: ChooseParams, result: ChooseResult,
                    errors: [SESSION, APPEND, BUSY, NOT_FOUND],
                    run: branches::choose,
                }
                "keep_branch" {
                    summary: "Appends copies of the messages of a background branch, such as a side question, at the leaf, each once.",
                    section: "3.23", scope: session(append), right: append,
                    params: KeepBranchParams, result: KeepBranchResult,
                    errors: [SESSION, APPEND, NOT_FOUND, &[Kind::UnansweredToolCalls]],
                    run: pick::keep_branch,
                }
                "pop" {
                    summary: "Moves the leaf back to before a user message, by default the last one, and summarizes what follows it.",
                    section: "3.12", scope: session(release), right: append,
                    params: PopParams, result: PopResult,
                    errors: [SESSION, APPEND, NOT_FOUND, BUSY, SUMMARY, &[Kind::NotAUserMessage]],
                    run: navigate::pop,
                }
            }
            read "Reading the tree and its entries." {
                "get_leaf" {
                    summary: "Returns the leaf and its entry.",
                    section: "3.6", scope: session(read), right: read,
                    params: GetLeafParams, result: GetLeafResult,
                    errors: [SESSION, FILE],
                    run: read::get_leaf,
                }
                "get_tree" {
                    summary: "Returns the tree as rows for a list, or nested, filtered and page by page.",
                    section: "6", scope: session(read), right: read,
                    params: GetTreeParams, result: GetTreeResult<'static>,
                    errors: [SESSION, FILE, NOT_FOUND, &[Kind::TreeChanged, Kind::NestingTooDeep]],
                    run: tree::get_tree,
                }
                "list_branches" {
                    summary: "Lists the branches of the tree, one row for each tip.",
                    section: "3.8", scope: session(read), right: read,
                    params: ListBranchesParams, result: ListBranchesResult,
                    errors: [SESSION, FILE],
                    run: read::list_branches,
                }
                "get_entries" {
                    summary: "Returns the entries of all branches in file order, page by page.",
                    section: "3.8", scope: session(read), right: read,
                    params: GetEntriesParams, result: GetEntriesResult,
                    errors: [SESSION, FILE, NOT_FOUND, &[Kind::TreeChanged]],
                    run: read::get_entries,
                }
                "get_entry" {
                    summary: "Returns one entry; with `verify` also what the servers of the team say about it.",
                    section: "3.8", scope: session(read), right: read,
                    params: GetEntryParams, result: GetEntryResult,
                    errors: [SESSION, FILE, NOT_FOUND, &[Kind::LogUnavailable, Kind::LogRewound, Kind::LogForeign, Kind::LogDenied, Kind::LogMisconfigured, Kind::SessionErased]],
                    run: entries::get_entry,
                }
                "get_children" {
                    summary: "Returns the children of an entry, or the roots.",
                    section: "3.8", scope: session(read), right: read,
                    params: GetChildrenParams, result: GetChildrenResult,
                    errors: [SESSION, FILE, NOT_FOUND],
                    run: read::get_children,
                }
                "get_path" {
                    summary: "Returns the entries from the root to an entry.",
                    section: "3.8", scope: session(read), right: read,
                    params: GetPathParams, result: GetPathResult,
                    errors: [SESSION, FILE, NOT_FOUND],
                    run: read::get_path,
                }
                "get_label" {
                    summary: "Returns the label of an entry.",
                    section: "3.8", scope: session(read), right: read,
                    params: GetLabelParams, result: GetLabelResult,
                    errors: [SESSION, FILE, NOT_FOUND],
                    run: read::get_label,
                }
                "get_context" {
                    summary: "Returns the messages that a model sees at the leaf or at another position.",
                    section: "3.9", scope: session(read), right: read,
                    params: GetContextParams, result: GetContextResult,
                    errors: [SESSION, FILE, NOT_FOUND],
                    run: read::get_context,
                }
                "get_stats" {
                    summary: "Returns counts, tokens, cost and time of the session, or of one path.",
                    section: "15.5", scope: session(read), right: read,
                    params: GetStatsParams, result: GetStatsResult,
                    errors: [SESSION, FILE, NOT_FOUND],
                    run: compare::get_stats,
                }
                "compare_branches" {
                    summary: "Compares two branches: the entries, files and sums of each below their common ancestor.",
                    section: "15.4", scope: session(read), right: read,
                    params: CompareBranchesParams, result: CompareBranchesResult,
                    errors: [SESSION, FILE, NOT_FOUND],
                    run: compare::compare_branches,
                }
                "render_entries" {
                    summary: "Returns entries as blocks to show: HTML of Markdown, code, diffs, images, tool calls.",
                    section: "15.1", scope: session(read), right: raw,
                    params: RenderEntriesParams, result: RenderEntriesResult,
                    errors: [SESSION, FILE, NOT_FOUND],
                    run: render::render_entries,
                }
            }
            compaction "Replacing the older part of the context by a summary." {
                "prepare_compaction" {
                    summary: "Returns what a compaction would summarize and keep, and changes nothing.",
                    section: "3.11", scope: session(read), right: read,
                    params: PrepareCompactionParams, result: PrepareCompactionResult,
                    errors: [SESSION, FILE, &[Kind::NothingToCompact]],
                    run: compact::prepare_compaction,
                }
                "compact" {
                    summary: "Replaces the older part of the context by a summary.",
                    section: "3.11", scope: session(release), right: append,
                    params: CompactParams, result: CompactResult,
                    errors: [SESSION, APPEND, NOT_FOUND, BUSY, SUMMARY, &[Kind::NothingToCompact]],
                    run: compact::compact,
                }
            }
            turns "Turns of the client's agent, and answers to questions of the daemon." {
                "begin_turn" {
                    summary: "Declares that the client's agent starts a turn; until it ends, the leaf moves only by appending.",
                    section: "3.13", scope: session(append), right: append,
                    params: BeginTurnParams, result: BeginTurnResult,
                    errors: [SESSION, FILE, BUSY, NOT_FOUND],
                    run: turns::begin_turn,
                }
                "end_turn" {
                    summary: "Declares that the client's agent has ended its turn, and appends the messages queued meanwhile.",
                    section: "3.13", scope: session(append), right: append,
                    params: EndTurnParams, result: EndTurnResult,
                    errors: [SESSION, BUSY, APPEND, NOT_FOUND],
                    run: turns::end_turn,
                }
                "answer_event" {
                    summary: "Answers a question of the daemon, or asks for more time to answer it.",
                    section: "5.2", scope: immediate, right: answer,
                    params: AnswerEventParams, result: AnswerEventResult,
                    errors: [PARAMS, &[Kind::EventNotPending], TOO_DEEP],
                    run: events::answer_event,
                }
            }
            plugins "Plugins: how their messages look, their commands, and their questions to a person." {
                "register_renderer" {
                    summary: "Says how the rows of custom messages of one type look.",
                    section: "14", scope: immediate, right: offer,
                    params: RegisterRendererParams, result: RegisterRendererResult,
                    errors: [PARAMS],
                    run: renderers::register_renderer,
                }
                "register_command" {
                    summary: "Offers a command that other clients can run.",
                    section: "12.1", scope: immediate, right: offer,
                    params: RegisterCommandParams, result: RegisterCommandResult,
                    errors: [PARAMS, &[Kind::CommandExists]],
                    run: commands::register_command,
                }
                "unregister_command" {
                    summary: "Withdraws a command of this connection.",
                    section: "12.1", scope: immediate, right: offer,
                    params: UnregisterCommandParams, result: UnregisterCommandResult,
                    errors: [PARAMS, &[Kind::CommandNotFound]],
                    run: commands::unregister_command,
                }
                "list_commands" {
                    summary: "Lists the commands that clients offer.",
                    section: "12.1", scope: immediate, right: person,
                    params: ListCommandsParams, result: ListCommandsResult,
                    errors: [PARAMS],
                    run: commands::list_commands,
                }
                "run_command" {
                    summary: "Runs a command of another client, and waits for its result.",
                    section: "12.2", scope: immediate, right: person,
                    params: RunCommandParams, result: RunCommandResult,
                    errors: [SESSION, &[Kind::CommandNotFound, Kind::CommandFailed, Kind::Cancelled]],
                    run: commands::run_command,
                }
                "ask_user" {
                    summary: "Asks a person a question, and waits for the answer.",
                    section: "13.1", scope: immediate, right: offer,
                    params: AskUserParams, result: AskUserResult,
                    errors: [SESSION, &[Kind::NoUser, Kind::Cancelled]],
                    run: people::ask_user,
                }
                "notify_user" {
                    summary: "Shows a message to a person.",
                    section: "13.3", scope: immediate, right: offer,
                    params: NotifyUserParams, result: NotifyUserResult,
                    errors: [SESSION],
                    run: people::notify_user,
                }
            }
        }
    };
}
pub use with_methods;

macro_rules! find_right {
    ($($group:ident $about:literal {
        $($name:literal {
            summary: $summary:literal,
            section: $section:literal,
            scope: $scope:ident $(($access:ident))?,
            $(right: $right:ident,)?
            params: $params:ident,
            result: $result:ty,
            errors: $errors:tt,
            run: $run:path,
        })+
    })+) => {
        /// The right that the method of this name needs; [`Right::All`] for an unknown method.
        pub fn right_of(name: &str) -> Right {
            match name {
                $($($name => right!($($right)?),)+)+
                _ => Right::All,
            }
        }
    };
}
with_methods!(find_right);

/// Passes every notification to the macro `$callback`.
#[doc(hidden)]
#[macro_export]
macro_rules! with_notifications {
    ($callback:ident) => {
        $callback! {
            "session_before_tree" {
                summary: "Asks before a navigation: clients can cancel it, give the summary, or change its options.",
                section: "5.1", params: SessionBeforeTree,
            }
            "session_tree" {
                summary: "Says that the leaf moved, by anything but an append.",
                section: "4.9", params: SessionTree,
            }
            "event_resolved" {
                summary: "Says that a question is decided and needs no more answers.",
                section: "5.4", params: EventResolved,
            }
            "session_before_fork" {
                summary: "Asks before a fork: clients can cancel it.",
                section: "5.6", params: SessionBeforeFork,
            }
            "session_fork" {
                summary: "Says that a fork of this session was created.",
                section: "7.2", params: SessionFork,
            }
            "session_before_compact" {
                summary: "Asks before a compaction: clients can cancel it, or give the compaction.",
                section: "5.6", params: SessionBeforeCompact,
            }
            "session_compact" {
                summary: "Says that a compaction was appended.",
                section: "7.2", params: SessionCompact,
            }
            "session_compact_failed" {
                summary: "Says that a compaction failed for another reason than the answer of a client.",
                section: "7.2", params: SessionCompactFailed,
            }
            "session_opened" {
                summary: "Says that a session is open.",
                section: "7.2", params: SessionOpened,
            }
            "session_closed" {
                summary: "Says that a session is closed.",
                section: "7.2", params: SessionClosed,
            }
            "session_info_changed" {
                summary: "Says that the name of the session changed.",
                section: "7.2", params: SessionInfoChanged,
            }
            "branches_changed" {
                summary: "Says that a branch got another name, was archived or brought back.",
                section: "7.2", params: BranchesChanged,
            }
            "session_log_changed" {
                summary: "Says that entries of the session wait for the team's stream, or that all of them are in it.",
                section: "7.2", params: SessionLogChanged,
            }
            "session_reordered" {
                summary: "Says that entries of the session have another order in the file.",
                section: "7.2", params: SessionReordered,
            }
            "entries_appended" {
                summary: "Says that this daemon or another process appended entries.",
                section: "7.3", params: EntriesAppended,
            }
            "turn_requested" {
                summary: "Says that a message asks the client to start a turn of its agent.",
                section: "3.13", params: TurnRequested,
            }
            "summary_delta" {
                summary: "Carries a piece of a summary while it is being written.",
                section: "7.2", params: SummaryDelta,
            }
            "progress" {
                summary: "Reports how far a long operation has come.",
                section: "7.2", params: Progress,
            }
            "search_hit" {
                summary: "Carries a hit of a search while the search goes on.",
                section: "7.2", params: FoundHit,
            }
            "command_invoked" {
                summary: "Asks the client that offers a command to run it.",
                section: "12.2", params: CommandInvoked,
            }
            "user_asked" {
                summary: "Asks the person in front of the client a question.",
                section: "13.1", params: UserAsked,
            }
            "user_notified" {
                summary: "Carries a message for the person in front of the client.",
                section: "13.3", params: UserNotified,
            }
            "diagnostics" {
                summary: "Reports damage that was found in the file of an open session.",
                section: "7.2", params: Diagnostics,
            }
            "events_lost" {
                summary: "Says that notifications were dropped because the client did not read them.",
                section: "7.4", params: EventsLost,
            }
            "sessions_changed" {
                summary: "Says which rows of the list of sessions are new, changed or gone.",
                section: "10.4", params: SessionsChanged,
            }
        }
    };
}
pub use with_notifications;

/// The params of a notification.
pub trait Notification: Serialize {
    /// The method that the notification names.
    const NAME: &'static str;
}

macro_rules! name_notifications {
    ($($name:literal {
        summary: $summary:literal,
        section: $section:literal,
        params: $params:ident,
    })+) => {
        /// The names of all notifications, in the order of the table.
        pub const NOTIFICATIONS: &[&str] = &[$($name),+];

        $(impl Notification for notification::$params {
            const NAME: &'static str = $name;
        })+
    };
}
with_notifications!(name_notifications);
