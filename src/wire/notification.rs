//! What the daemon says unasked (protocol.md §5, §7).
//!
//! `seq` counts the notifications of a session to one connection; `summary_delta` and `progress`
//! have none.

use super::compact::CompactionPreparation;
use super::entry::Entry;
use super::event::{BeforeEvent, EventOutcome, TreePreparation};
use super::failure::ErrorObject;
use super::fork::ForkPosition;
use super::navigate::MoveCause;
use super::params::{Raw, RequestId};
use super::read::Model;
use super::session::Diagnostic;
use schemars::JsonSchema;
use serde::Serialize;

/// A navigation is about to happen. Answered by `answer_event`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionBeforeTree {
    /// The session.
    pub session_id: String,
    /// The number of this notification.
    pub seq: u64,
    /// Names the question in `answer_event`.
    pub event_id: String,
    /// The navigation.
    pub navigation_id: String,
    /// Milliseconds to answer in; 0: nothing waits for this client.
    pub timeout_ms: u64,
    /// What is about to be left and summarized.
    pub preparation: TreePreparation,
}

/// The leaf has moved otherwise than by appending.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionTree {
    /// The session.
    pub session_id: String,
    /// The number of this notification.
    pub seq: u64,
    /// Null: before the first entry.
    pub new_leaf_id: Option<String>,
    /// Null: before the first entry.
    pub old_leaf_id: Option<String>,
    /// What moved it.
    pub cause: MoveCause,
    /// The navigation, if it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub navigation_id: Option<String>,
    /// The branch_summary, if one was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Entry>")]
    pub summary_entry: Option<Raw>,
    /// The label, if one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Entry>")]
    pub label_entry: Option<Raw>,
    /// Whether a client wrote the summary; there if one was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_hook: Option<bool>,
}

/// A question is over: prompts for it can be dismissed.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventResolved {
    /// The session.
    pub session_id: String,
    /// The number of this notification.
    pub seq: u64,
    /// Names the question in `answer_event`.
    pub event_id: String,
    /// What was asked.
    pub event: BeforeEvent,
    /// The navigation that asked, if it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub navigation_id: Option<String>,
    /// How it ended.
    pub outcome: EventOutcome,
    /// The client or the hook whose answer, or failure, decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// A fork is about to be made. Answered by `answer_event`, with `cancel` only.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionBeforeFork {
    /// The session.
    pub session_id: String,
    /// The number of this notification.
    pub seq: u64,
    /// Names the question in `answer_event`.
    pub event_id: String,
    /// Milliseconds to answer in; 0: nothing waits for this client.
    pub timeout_ms: u64,
    /// Where to fork.
    pub entry_id: String,
    /// Without or with the entry.
    pub position: ForkPosition,
}

/// A fork was made of this session.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionFork {
    /// The session.
    pub session_id: String,
    /// The number of this notification.
    pub seq: u64,
    /// The fork.
    pub new_session_id: String,
    /// Where it was forked.
    pub entry_id: String,
}

/// A compaction is about to happen. Answered by `answer_event`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionBeforeCompact {
    /// The session.
    pub session_id: String,
    /// The number of this notification.
    pub seq: u64,
    /// Names the question in `answer_event`.
    pub event_id: String,
    /// Milliseconds to answer in; 0: nothing waits for this client.
    pub timeout_ms: u64,
    /// What is about to be summarized and kept.
    pub preparation: CompactionPreparation,
    /// The model at the leaf, as in `preparation`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Model>,
    /// Why.
    pub reason: CompactionReason,
}

/// Why a session is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CompactionReason {
    /// By `compact`.
    Manual,
}

/// A compaction has happened.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionCompact {
    /// The session.
    pub session_id: String,
    /// The number of this notification.
    pub seq: u64,
    /// The new entry.
    #[schemars(with = "Entry")]
    pub compaction_entry: Raw,
    /// Whether a client wrote the summary.
    pub from_hook: bool,
}

/// A compaction came to nothing, otherwise than by an answer to `session_before_compact`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionCompactFailed {
    /// The session.
    pub session_id: String,
    /// The number of this notification.
    pub seq: u64,
    /// Why it was tried.
    pub reason: CompactionReason,
    /// As the request was answered.
    pub error: ErrorObject,
}

/// A session is open.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionOpened {
    /// The session.
    pub session_id: String,
    /// The number of this notification.
    pub seq: u64,
}

/// A session is no longer open.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionClosed {
    /// The session.
    pub session_id: String,
    /// The number of this notification.
    pub seq: u64,
}

/// A session has another name.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionInfoChanged {
    /// The session.
    pub session_id: String,
    /// The number of this notification.
    pub seq: u64,
    /// Null: none.
    pub name: Option<String>,
}

/// Entries have been appended, or another process has moved the position in the file.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntriesAppended {
    /// The session.
    pub session_id: String,
    /// The number of this notification.
    pub seq: u64,
    /// Who appended.
    pub origin: Origin,
    /// In file order.
    pub entry_ids: Vec<String>,
    /// This daemon's leaf; null: before the first entry.
    pub leaf_id: Option<String>,
    /// Where opening the file now would stand.
    pub file_leaf_id: Option<String>,
    /// Of `other`, while they fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Entry>>")]
    pub entries: Option<Vec<Raw>>,
}

/// Who appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// This daemon.
    #[serde(rename = "self")]
    This,
    /// Another process.
    Other,
}

/// A message asks for a turn.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnRequested {
    /// The session.
    pub session_id: String,
    /// The number of this notification.
    pub seq: u64,
    /// The message.
    pub entry_id: String,
}

/// A piece of a summary that is being written.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SummaryDelta {
    /// The session.
    pub session_id: String,
    /// The navigation.
    pub navigation_id: String,
    /// From 0, one more with every piece.
    pub index: u64,
    /// Text to put behind the pieces before.
    pub delta: String,
}

/// Long work goes on.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// The id of the navigation or of the request.
    pub token: RequestId,
    /// Grows.
    pub progress: f64,
    /// What `progress` will end at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Something wrong was found in a session file that is open.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Diagnostics {
    /// The session.
    pub session_id: String,
    /// The number of this notification.
    pub seq: u64,
    /// What was found.
    pub diagnostics: Vec<Diagnostic>,
}

/// Notifications were dropped because the client did not read; both numbers belong to them.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventsLost {
    /// The session.
    pub session_id: String,
    /// The first one lost.
    pub from_seq: u64,
    /// The last one lost.
    pub to_seq: u64,
}
