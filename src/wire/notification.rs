//! The notifications of the daemon (protocol.md §5, §7).
//!
//! `seq` counts the notifications about a session to one connection. Notifications that are not about a session have no
//! `seq`. `summary_delta` and `progress` have no `seq` either.

pub use super::commands::CommandInvoked;
use super::compact::CompactionPreparation;
use super::event::{AskingEvent, EventOutcome, TreePreparation};
use super::failure::ErrorObject;
use super::fork::ForkPosition;
use super::navigate::MoveCause;
use super::params::{Raw, RequestId};
pub use super::people::{UserAsked, UserNotified};
use super::read::Model;
pub use super::search::FoundHit;
use super::session::Diagnostic;
pub use super::watch::SessionsChanged;
use serde::Serialize;

/// The params of `session_before_tree`. Clients answer with `answer_event`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "sessionId": "tour", "seq": 7, "eventId": "e109b2a6-d218-4eec-8434-93d17dcbf9c6",
  "navigationId": "n1", "timeoutMs": 30000,
  "preparation": {
    "targetId": "a1", "oldLeafId": "u2", "commonAncestorId": "a1", "abandonedCount": 1,
    "entriesToSummarize": [
      {
        "type": "message", "id": "u2", "parentId": "a1", "timestamp": "2026-11-22T08:16:21.597Z",
        "message": {"role": "user", "content": "Clear the cache."}
      }
    ],
    "userWantsSummary": true, "replaceInstructions": false, "label": "not the cache"
  }
}"#)))]
pub struct SessionBeforeTree {
    /// The id of the session.
    pub session_id: String,
    /// The number of this notification in the session.
    pub seq: u64,
    /// The id of the question, for `answer_event`.
    pub event_id: String,
    /// The id of the navigation.
    pub navigation_id: String,
    /// How many milliseconds the daemon waits for this client; 0 if it does not wait.
    pub timeout_ms: u64,
    /// The branch that the navigation is about to leave.
    pub preparation: TreePreparation,
}

/// The params of `session_tree`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "sessionId": "tour", "seq": 11, "newLeafId": "a1", "oldLeafId": "u2", "cause": "undo"
}"#)))]
pub struct SessionTree {
    /// The id of the session.
    pub session_id: String,
    /// The number of this notification in the session.
    pub seq: u64,
    /// The leaf after; null at the empty position.
    pub new_leaf_id: Option<String>,
    /// The leaf before; null at the empty position.
    pub old_leaf_id: Option<String>,
    /// The operation that moved the leaf.
    pub cause: MoveCause,
    /// The id of the navigation. Present if a navigation moved the leaf.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub navigation_id: Option<String>,
    /// The branch_summary entry that was appended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::entry::Entry>"))]
    pub summary_entry: Option<Raw>,
    /// The label entry that was appended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::entry::Entry>"))]
    pub label_entry: Option<Raw>,
    /// Whether a client or a hook wrote the summary. Present with `summaryEntry`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_hook: Option<bool>,
}

/// The params of `event_resolved`. Clients can dismiss their prompts for the question.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "sessionId": "tour", "seq": 8, "eventId": "e109b2a6-d218-4eec-8434-93d17dcbf9c6",
  "event": "session_before_tree", "navigationId": "n1", "outcome": "summary", "by": "editor"
}"#)))]
pub struct EventResolved {
    /// The id of the session. Absent if the question is about none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The number of this notification in the session. Absent for questions to a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The id of the question.
    pub event_id: String,
    /// The event that asked.
    pub event: AskingEvent,
    /// The id of the navigation that asked. Present if a navigation asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub navigation_id: Option<String>,
    /// How the question ended.
    pub outcome: EventOutcome,
    /// The name of the client or hook whose answer or failure decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The reason that the client or hook gave, as text for people. Present if the client or hook cancelled and gave a
    /// reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The params of `session_before_fork`. Clients answer with `answer_event`, with no other member than
/// `cancel`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "sessionId": "tour", "seq": 9, "eventId": "0f2c8f0e-8f0b-4a57-9d5b-0f6d3f3d8f11",
  "timeoutMs": 30000, "entryId": "u2", "position": "before"
}"#)))]
pub struct SessionBeforeFork {
    /// The id of the session.
    pub session_id: String,
    /// The number of this notification in the session.
    pub seq: u64,
    /// The id of the question, for `answer_event`.
    pub event_id: String,
    /// How many milliseconds the daemon waits for this client; 0 if it does not wait.
    pub timeout_ms: u64,
    /// The id of the entry at which to fork.
    pub entry_id: String,
    /// Whether the fork ends before the entry or with it.
    pub position: ForkPosition,
}

/// The params of `session_fork`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "sessionId": "tour", "seq": 10, "newSessionId": "0198c1f0-5e00-7000-8000-000000000004",
  "entryId": "u2"
}"#)))]
pub struct SessionFork {
    /// The id of the session.
    pub session_id: String,
    /// The number of this notification in the session.
    pub seq: u64,
    /// The id of the new session.
    pub new_session_id: String,
    /// The id of the entry at which it was forked; empty for a session without entries.
    pub entry_id: String,
}

/// The params of `session_before_compact`. Clients answer with `answer_event`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "sessionId": "tour", "seq": 14, "eventId": "5c1d6d9e-30c5-4f0c-8c5f-0f4f0a1f7a55",
  "timeoutMs": 30000,
  "preparation": {
    "firstKeptEntryId": "u2",
    "entriesToSummarize": [
      {
        "type": "message", "id": "u1", "parentId": null, "timestamp": "2026-11-22T08:16:21.595Z",
        "message": {"role": "user", "content": "Why does the build fail?"}
      }
    ],
    "isSplitTurn": false, "previousCompactions": [], "replaceInstructions": false,
    "tokensBefore": 18250, "fileOps": {"readFiles": [], "modifiedFiles": ["Makefile"]}
  },
  "reason": "manual"
}"#)))]
pub struct SessionBeforeCompact {
    /// The id of the session.
    pub session_id: String,
    /// The number of this notification in the session.
    pub seq: u64,
    /// The id of the question, for `answer_event`.
    pub event_id: String,
    /// How many milliseconds the daemon waits for this client; 0 if it does not wait.
    pub timeout_ms: u64,
    /// The parts of the context that the compaction summarizes and keeps.
    pub preparation: CompactionPreparation,
    /// The model at the leaf, as in `preparation`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Model>,
    /// Why the session is compacted.
    pub reason: CompactionReason,
}

/// Why a session is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CompactionReason {
    /// A client sent `compact`.
    Manual,
}

/// The params of `session_compact`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "sessionId": "tour", "seq": 16,
  "compactionEntry": {
    "type": "compaction", "id": "4489c8ed", "parentId": "a2",
    "timestamp": "2026-11-22T08:21:40.853Z", "summary": "The user asked why the build fails.",
    "firstKeptEntryId": "u2", "tokensBefore": 18250
  },
  "fromHook": false
}"#)))]
pub struct SessionCompact {
    /// The id of the session.
    pub session_id: String,
    /// The number of this notification in the session.
    pub seq: u64,
    /// The compaction entry.
    #[cfg_attr(feature = "schema", schemars(with = "crate::entry::Entry"))]
    pub compaction_entry: Raw,
    /// Whether a client or a hook wrote the summary.
    pub from_hook: bool,
}

/// The params of `session_compact_failed`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "sessionId": "tour", "seq": 17, "reason": "manual",
  "error": {
    "code": 1302, "message": "the context has no entries older than those to keep",
    "data": {"kind": "nothingToCompact", "retryable": false}
  }
}"#)))]
pub struct SessionCompactFailed {
    /// The id of the session.
    pub session_id: String,
    /// The number of this notification in the session.
    pub seq: u64,
    /// Why the session was to be compacted.
    pub reason: CompactionReason,
    /// The error of the response to the request.
    pub error: ErrorObject,
}

/// The params of `session_opened`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"sessionId": "tour", "seq": 1}"#)))]
pub struct SessionOpened {
    /// The id of the session.
    pub session_id: String,
    /// The number of this notification in the session.
    pub seq: u64,
}

/// The params of `session_closed`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"sessionId": "tour", "seq": 18}"#)))]
pub struct SessionClosed {
    /// The id of the session.
    pub session_id: String,
    /// The number of this notification in the session.
    pub seq: u64,
}

/// The params of `session_info_changed`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"sessionId": "tour", "seq": 2, "name": "The build"}"#)))]
pub struct SessionInfoChanged {
    /// The id of the session.
    pub session_id: String,
    /// The number of this notification in the session.
    pub seq: u64,
    /// The new name; null if the session has none.
    pub name: Option<String>,
}

/// The params of `branches_changed`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"sessionId": "tour", "seq": 2, "archivedBranches": 1}"#)))]
pub struct BranchesChanged {
    /// The id of the session.
    pub session_id: String,
    /// The number of this notification in the session.
    pub seq: u64,
    /// The number of archived branches of which none is in another.
    pub archived_branches: u64,
}

/// The params of `session_log_changed`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"sessionId": "tour", "seq": 3, "queued": false}"#)))]
pub struct SessionLogChanged {
    /// The id of the session.
    pub session_id: String,
    /// The number of this notification in the session.
    pub seq: u64,
    /// Whether entries of the file wait for the team's stream.
    pub queued: bool,
    /// The ids of entries that waited when another machine had deleted the session: only the file in the trash has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
}

/// The params of `session_reordered`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"sessionId": "tour", "seq": 3, "since": "u1"}"#)))]
pub struct SessionReordered {
    /// The id of the session.
    pub session_id: String,
    /// The number of this notification in the session.
    pub seq: u64,
    /// The id of the last entry up to which the order is unchanged; null if the order has changed from the beginning.
    pub since: Option<String>,
}

/// The params of `entries_appended`. It is also sent, without entries, when another process moves the leaf in
/// the file.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "sessionId": "tour", "seq": 12, "origin": "other", "entryIds": ["s1"], "leafId": "u1",
  "fileLeafId": "s1",
  "entries": [
    {
      "type": "message", "id": "s1", "parentId": "u1", "timestamp": "2026-11-22T08:17:02.100Z",
      "message": {"role": "user", "content": "From another window."}
    }
  ]
}"#)))]
pub struct EntriesAppended {
    /// The id of the session.
    pub session_id: String,
    /// The number of this notification in the session.
    pub seq: u64,
    /// The writer that appended the entries.
    pub origin: Origin,
    /// The ids of the entries, in file order.
    pub entry_ids: Vec<String>,
    /// The leaf of this daemon; null at the empty position.
    pub leaf_id: Option<String>,
    /// The leaf that opening the file now would have; null at the empty position.
    pub file_leaf_id: Option<String>,
    /// The entries that another process appended. Absent if they exceed 1 MiB or half of the client's
    /// `maxFrameBytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<Vec<crate::entry::Entry>>")
    )]
    pub entries: Option<Vec<Raw>>,
    /// The first message of the user in the session, as its row in the tree shows it. Present if these entries say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_message: Option<String>,
}

/// The writer of appended entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// This daemon.
    #[serde(rename = "self")]
    This,
    /// Another process.
    Other,
}

/// The params of `turn_requested`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"sessionId": "tour", "seq": 15, "entryId": "de0a292b"}"#)))]
pub struct TurnRequested {
    /// The id of the session.
    pub session_id: String,
    /// The number of this notification in the session.
    pub seq: u64,
    /// The id of the message's entry.
    pub entry_id: String,
}

/// The params of `summary_delta`. It has no `seq`. All pieces in order are the text of the summary.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "sessionId": "tour", "navigationId": "n1", "index": 0, "delta": "This is a summary of a branch"
}"#)))]
pub struct SummaryDelta {
    /// The id of the session.
    pub session_id: String,
    /// The id of the navigation.
    pub navigation_id: String,
    /// The number of the piece, from 0.
    pub index: u64,
    /// The text that follows the pieces before.
    pub delta: String,
}

/// The params of `progress`. It has neither `sessionId` nor `seq`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"token": 31, "progress": 1450.0}"#)))]
pub struct Progress {
    /// The id of the navigation, or of the request for a compaction or an import.
    pub token: RequestId,
    /// The number of characters written so far; of an import, the number of bytes read.
    pub progress: f64,
    /// The number that `progress` will reach. Absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// A sentence for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The params of `diagnostics`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "sessionId": "tour", "seq": 13,
  "diagnostics": [{"kind": "tornTail", "line": 12, "offset": 4096, "length": 57}]
}"#)))]
pub struct Diagnostics {
    /// The id of the session.
    pub session_id: String,
    /// The number of this notification in the session.
    pub seq: u64,
    /// The kinds and places of the damage.
    pub diagnostics: Vec<Diagnostic>,
}

/// The params of `events_lost`. It has no `seq`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"sessionId": "tour", "fromSeq": 20, "toSeq": 31}"#)))]
pub struct EventsLost {
    /// The id of the session.
    pub session_id: String,
    /// The number of the first notification that was dropped.
    pub from_seq: u64,
    /// The number of the last notification that was dropped.
    pub to_seq: u64,
}
