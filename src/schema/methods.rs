//! The table of methods and notifications: names, shapes, and the errors each can answer
//! (protocol.md §3, §7, §8).

use super::Generators;
use crate::error::Kind;
use crate::wire::notification;
use crate::wire::*;
use schemars::Schema;

/// What a client can ask for.
pub struct Method {
    pub name: &'static str,
    pub summary: &'static str,
    /// A reference to the definition of its params.
    pub params: Schema,
    /// A reference to the definition of its result.
    pub result: Schema,
    /// The kinds of failure it can answer, besides those that any request can meet: `parseError`,
    /// `invalidRequest`, `methodNotFound`, `internalError`, `shuttingDown`, `batchUnsupported`,
    /// `requestTooLarge`, `responseTooLarge`, `overloaded`.
    pub errors: Vec<Kind>,
    /// Usually sent without an id.
    pub notification: bool,
}

/// What the daemon says unasked.
pub struct Notification {
    pub name: &'static str,
    pub summary: &'static str,
    /// A reference to the definition of its params.
    pub params: Schema,
}

/// Of everything that takes params.
const PARAMS: &[Kind] = &[Kind::InvalidParams];

/// Of everything on one open session.
const SESSION: &[Kind] = &[Kind::InvalidParams, Kind::SessionNotFound];

/// Of reading bodies of entries from the file.
const FILE: &[Kind] = &[
    Kind::SessionDeleted,
    Kind::SessionReplaced,
    Kind::StorageIo,
    Kind::PathDenied,
    Kind::Cancelled,
];

/// Of appending to the file.
const APPEND: &[Kind] = &[
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

/// Of entries whose content and ids the client chose.
const ENTRY: &[Kind] = &[Kind::EntryInvalid, Kind::DuplicateEntryId];

/// Of summarizing.
const SUMMARY: &[Kind] = &[Kind::SummarizerUnavailable, Kind::SummarizerFailed];

/// Of what is stored as a client gives it.
const TOO_DEEP: &[Kind] = &[Kind::EntryInvalid];
const NOT_FOUND: &[Kind] = &[Kind::EntryNotFound];
const BUSY: &[Kind] = &[Kind::SessionBusy];

macro_rules! methods {
    ($($name:literal $params:ty => $result:ty, $summary:literal, $($kinds:expr),*;)+) => {
        const ALL_METHODS: &[&str] = &[$($name),+];

        /// The methods of this daemon, in the order of protocol.md §3.
        pub fn methods(generators: &mut Generators) -> Vec<Method> {
            vec![$(Method {
                name: $name,
                summary: $summary,
                params: generators.params::<$params>(),
                result: generators.result::<$result>(),
                errors: kinds(&[$($kinds),*]),
                notification: $name.starts_with("$/"),
            }),+]
        }
    };
}

macro_rules! notifications {
    ($($name:literal $params:ident, $summary:literal;)+) => {
        const ALL_NOTIFICATIONS: &[&str] = &[$($name),+];

        /// The notifications of this daemon, in the order of protocol.md §7.
        pub fn notifications(generators: &mut Generators) -> Vec<Notification> {
            vec![$(Notification {
                name: $name,
                summary: $summary,
                params: generators.result::<notification::$params>(),
            }),+]
        }
    };
}

methods! {
    "initialize" InitializeParams => InitializeResult, "Introduces the client.",
        &[Kind::InvalidRequest, Kind::InvalidParams];
    "create_session" CreateSessionParams => CreateSessionResult, "Makes a new session and opens it.",
        PARAMS, &[Kind::SessionExists, Kind::SessionLocked, Kind::StorageFull, Kind::StorageIo, Kind::PathDenied, Kind::DurabilityUnknown];
    "open_session" OpenSessionParams => OpenSessionResult, "Opens a session.",
        SESSION, &[Kind::HeaderMissing, Kind::SessionExists, Kind::StorageIo, Kind::PathDenied, Kind::Cancelled];
    "close_session" CloseSessionParams => CloseSessionResult, "Closes a session.", SESSION, BUSY;
    "list_sessions" ListSessionsParams => ListSessionsResult, "Lists the sessions of the session directory.",
        PARAMS, &[Kind::StorageIo, Kind::PathDenied, Kind::Cancelled];
    "delete_session" DeleteSessionParams => DeleteSessionResult, "Moves a session to the trash folder.",
        SESSION, &[Kind::SessionLocked, Kind::ReadOnly, Kind::VersionUnsupported, Kind::SessionBusy, Kind::StorageFull, Kind::StorageIo, Kind::PathDenied, Kind::DurabilityUnknown, Kind::Cancelled];
    "list_trash" ListTrashParams => ListTrashResult, "Lists deleted sessions.",
        PARAMS, &[Kind::StorageIo, Kind::PathDenied, Kind::Cancelled];
    "restore_session" RestoreSessionParams => RestoreSessionResult, "Moves a deleted session back.",
        SESSION, &[Kind::SessionExists, Kind::SessionLocked, Kind::StorageFull, Kind::StorageIo, Kind::PathDenied, Kind::Cancelled];
    "set_session_name" SetSessionNameParams => SetSessionNameResult, "Names a session.", SESSION, APPEND;
    "append_message" AppendMessageParams => AppendMessageResult, "Appends a message.", SESSION, APPEND, ENTRY, NOT_FOUND;
    "append_entries" AppendEntriesParams => AppendEntriesResult, "Appends several entries, all or none.",
        SESSION, APPEND, ENTRY, NOT_FOUND;
    "append_label" AppendLabelParams => AppendLabelResult, "Labels an entry.", SESSION, APPEND, ENTRY, NOT_FOUND;
    "get_leaf" GetLeafParams => GetLeafResult, "Where the session stands.", SESSION, FILE;
    "set_leaf" SetLeafParams => SetLeafResult, "Moves the leaf.", SESSION, APPEND, NOT_FOUND, BUSY;
    "branch" BranchParams => BranchResult, "Moves the leaf to an entry.", SESSION, APPEND, NOT_FOUND, BUSY, TOO_DEEP;
    "navigate_tree" NavigateTreeParams => NavigateTreeResult,
        "Goes to another place of the tree; summarizes what is left behind.",
        SESSION, APPEND, NOT_FOUND, BUSY, SUMMARY;
    "abort_navigation" AbortNavigationParams => AbortNavigationResult, "Ends a running navigation.", SESSION;
    "undo_navigation" UndoNavigationParams => UndoNavigationResult, "Moves the leaf back.",
        SESSION, APPEND, BUSY, &[Kind::NothingToUndo];
    "redo_navigation" RedoNavigationParams => RedoNavigationResult, "Takes the last undo back.",
        SESSION, APPEND, BUSY, &[Kind::NothingToUndo];
    "get_navigation_log" GetNavigationLogParams => GetNavigationLogResult, "The moves of the leaf.", SESSION;
    "answer_event" AnswerEventParams => AnswerEventResult, "Answers a question of the daemon.",
        PARAMS, &[Kind::EventNotPending], TOO_DEEP;
    "get_tree" GetTreeParams => GetTreeResult<'static>, "The tree.",
        SESSION, FILE, NOT_FOUND, &[Kind::TreeChanged, Kind::NestingTooDeep];
    "list_branches" ListBranchesParams => ListBranchesResult, "The branches of the tree.", SESSION, FILE;
    "get_entries" GetEntriesParams => GetEntriesResult, "All entries in file order.", SESSION, FILE, NOT_FOUND;
    "get_entry" GetEntryParams => GetEntryResult, "One entry.", SESSION, FILE, NOT_FOUND;
    "get_children" GetChildrenParams => GetChildrenResult, "The children of an entry.", SESSION, FILE, NOT_FOUND;
    "get_path" GetPathParams => GetPathResult, "The entries from the root to an entry.", SESSION, FILE, NOT_FOUND;
    "get_label" GetLabelParams => GetLabelResult, "The label of an entry.", SESSION, NOT_FOUND;
    "get_context" GetContextParams => GetContextResult, "What a model sees.", SESSION, FILE, NOT_FOUND;
    "get_stats" GetStatsParams => GetStatsResult, "Numbers about the whole session.", SESSION, FILE;
    "fork_session" ForkSessionParams => ForkSessionResult, "Copies a path into a new session.",
        SESSION, FILE, NOT_FOUND, BUSY,
        &[Kind::NotAUserMessage, Kind::UnansweredToolCalls, Kind::StorageFull, Kind::DurabilityUnknown];
    "get_fork_messages" GetForkMessagesParams => GetForkMessagesResult, "The user messages of all branches.", SESSION, FILE;
    "prepare_compaction" PrepareCompactionParams => PrepareCompactionResult, "What a compaction would do.",
        SESSION, FILE, &[Kind::NothingToCompact];
    "compact" CompactParams => CompactResult, "Replaces the older part of the context by a summary.",
        SESSION, APPEND, NOT_FOUND, BUSY, SUMMARY, &[Kind::NothingToCompact];
    "pop" PopParams => PopResult, "Goes back, before the last user message unless told where.",
        SESSION, APPEND, NOT_FOUND, BUSY, SUMMARY, &[Kind::NotAUserMessage];
    "cherry_pick" CherryPickParams => CherryPickResult, "Appends copies of messages of other branches.",
        SESSION, APPEND, NOT_FOUND, &[Kind::UnansweredToolCalls];
    "merge_branch" MergeBranchParams => MergeBranchResult, "Appends a summary of another branch.",
        SESSION, APPEND, NOT_FOUND, BUSY, SUMMARY;
    "begin_turn" BeginTurnParams => BeginTurnResult, "The client's agent begins to run.", SESSION, BUSY;
    "end_turn" EndTurnParams => EndTurnResult, "The client's agent has stopped.", SESSION, APPEND;
    "send_message" SendMessageParams => SendMessageResult, "Appends a message of a plugin.", SESSION, APPEND, ENTRY;
    "rpc.discover" DiscoverParams => DiscoverResult, "The OpenRPC document of this daemon.", PARAMS;
    "shutdown" ShutdownParams => ShutdownResult, "Ends the daemon.", PARAMS;
    "$/cancel_request" CancelRequestParams => CancelRequestResult, "Cancels a request that waits.", PARAMS;
    "$/cancelRequest" LspCancelRequestParams => CancelRequestResult, "Cancels a request that waits.", PARAMS;
}

notifications! {
    "session_before_tree" SessionBeforeTree, "A navigation is about to happen.";
    "session_tree" SessionTree, "The leaf has moved otherwise than by appending.";
    "event_resolved" EventResolved, "A question is over.";
    "session_before_fork" SessionBeforeFork, "A fork is about to be made.";
    "session_fork" SessionFork, "A fork was made.";
    "session_before_compact" SessionBeforeCompact, "A compaction is about to happen.";
    "session_compact" SessionCompact, "A compaction has happened.";
    "session_compact_failed" SessionCompactFailed, "A compaction came to nothing.";
    "session_opened" SessionOpened, "A session is open.";
    "session_closed" SessionClosed, "A session is no longer open.";
    "session_info_changed" SessionInfoChanged, "A session has another name.";
    "entries_appended" EntriesAppended, "Entries have been appended, by this daemon or others.";
    "turn_requested" TurnRequested, "A message asks for a turn.";
    "summary_delta" SummaryDelta, "A piece of a summary that is being written.";
    "progress" Progress, "Long work goes on.";
    "diagnostics" Diagnostics, "Something is wrong in a session file.";
    "events_lost" EventsLost, "Notifications were dropped.";
}

/// The names of [`methods`].
pub fn method_names() -> impl Iterator<Item = &'static str> {
    ALL_METHODS.iter().copied()
}

/// The names of [`notifications`].
pub fn notification_names() -> impl Iterator<Item = &'static str> {
    ALL_NOTIFICATIONS.iter().copied()
}

/// Each kind once, in the order of protocol.md §8.
fn kinds(groups: &[&[Kind]]) -> Vec<Kind> {
    let named = |kind: &Kind| groups.iter().any(|group| group.contains(kind));
    Kind::ALL.iter().copied().filter(named).collect()
}
