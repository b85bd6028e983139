//! Compaction: its preview, and the compaction itself (semantics.md §4).

use super::append::Durability;
use super::event::CancelReason;
use super::navigate::OnNoAnswer;
use super::params::{Raw, count};
use super::read::Model;
use serde::Serialize;

session_params! {
    /// The params of `prepare_compaction`. The method changes nothing and asks no client.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"keepRecentTokens": 1}"#)))]
    PrepareCompactionParams {
        /// The focus of the summary. Default: none.
        custom_instructions: Option<String>,
        /// The estimated number of tokens that stay in the context. Default: 20000.
        #[serde(default, deserialize_with = "count")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
        keep_recent_tokens: Option<u64>,
    }
}

/// The result of `prepare_compaction`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "preparation": {
    "firstKeptEntryId": "c912a43c",
    "entriesToSummarize": [
      {
        "type": "session_info", "id": "4878310c", "parentId": null,
        "timestamp": "2026-11-22T05:40:35.827Z", "name": "A tour"
      },
      {
        "type": "message", "id": "u1", "parentId": "4878310c",
        "timestamp": "2026-11-22T05:40:35.831Z",
        "message": {"role": "user", "content": "Why does the build fail?"}
      },
      {
        "type": "message", "id": "a1", "parentId": "u1", "timestamp": "2026-11-22T05:40:35.833Z",
        "message": {
          "role": "assistant",
          "content": [{"type": "text", "text": "A stale cache, or a missing import."}],
          "provider": "example", "model": "large", "stopReason": "stop"
        }
      },
      {
        "type": "custom_message", "id": "de0a292b", "parentId": "a1",
        "timestamp": "2026-11-22T05:40:35.847Z", "customType": "build",
        "content": "The build is green.", "display": true
      },
      {
        "type": "message", "id": "0c16eded", "parentId": "de0a292b",
        "timestamp": "2026-11-22T05:40:35.847Z",
        "message": {"role": "user", "content": "Clear the cache."}, "copiedFrom": "u2"
      },
      {
        "type": "message", "id": "6122b546", "parentId": "0c16eded",
        "timestamp": "2026-11-22T05:40:35.847Z",
        "message": {
          "role": "assistant", "content": [{"type": "text", "text": "Cleared. It still fails."}]
        },
        "copiedFrom": "a2"
      }
    ],
    "isSplitTurn": false, "previousCompactions": [], "tokensBefore": 120,
    "fileOps": {"readFiles": [], "modifiedFiles": []}
  }
}"#)))]
pub struct PrepareCompactionResult {
    /// The preparation that `session_before_compact` would carry.
    pub preparation: CompactionPreparation,
}

mutation_params! {
    /// The params of `compact`. The daemon asks with `session_before_compact`, has the summary written, and appends a
    /// compaction entry. Later requests run while the daemon waits; if they move the leaf, the compaction fails with
    /// `leafMoved`.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"keepRecentTokens": 1}"#)))]
    CompactParams {
        /// The focus of the summary. Default: none.
        custom_instructions: Option<String>,
        /// Whether `customInstructions` replace the usual structure of a summary. Default: false.
        replace_instructions: Option<bool>,
        /// The estimated number of tokens that stay in the context. Default: 20000.
        #[serde(default, deserialize_with = "count")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
        keep_recent_tokens: Option<u64>,
        /// How many milliseconds to wait for answers to `session_before_compact`; at most
        /// `limits.maxAnswerMs`. Default: 30000.
        #[serde(default, deserialize_with = "count")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
        answer_timeout_ms: Option<u64>,
        /// The outcome if a client does not answer in time. Default: `proceed`.
        on_no_answer: Option<OnNoAnswer>,
    }
}

/// The result of `compact`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "cancelled": false,
  "compactionEntry": {
    "type": "compaction", "id": "4489c8ed", "parentId": "a2",
    "timestamp": "2026-11-22T05:40:35.853Z",
    "summary": "The user asked why the build fails. The cause is a stale cache or a missing import.",
    "firstKeptEntryId": "a2", "tokensBefore": 25, "details": {"readFiles": [], "modifiedFiles": []}
  },
  "durability": "interval"
}"#)))]
pub struct CompactResult {
    /// True if nothing changed; `reason` says why.
    pub cancelled: bool,
    /// Why nothing changed. Present if `cancelled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<CancelReason>,
    /// The name of the client, hook or extension that cancelled or failed. Present if `reason` is `cancelledByClient` or
    /// `hookFailed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The reason that the client, hook or extension gave, as text for people. Present if there is a reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The new entry. Absent if `cancelled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::entry::Entry>"))]
    pub compaction_entry: Option<Raw>,
    /// How safe the write is at the time of the response; `none` if `cancelled`.
    pub durability: Durability,
}

/// The parts of the context that a compaction summarizes and keeps.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CompactionPreparation {
    /// The id of the first entry that stays in the context.
    pub first_kept_entry_id: String,
    /// The entries to summarize, in file order, with context edits applied. The prefix of a split turn is not
    /// among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<Vec<crate::entry::Entry>>")
    )]
    pub entries_to_summarize: Option<Vec<Raw>>,
    /// The ids of the entries to summarize. Present instead of `entriesToSummarize` if those are too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_ids: Option<Vec<String>>,
    /// The first part of a turn that the cut splits; it is summarized separately.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<Vec<crate::entry::Entry>>")
    )]
    pub turn_prefix: Option<Vec<Raw>>,
    /// The ids of the first part of the split turn. Present instead of `turnPrefix` if the entries are too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_prefix_ids: Option<Vec<String>>,
    /// True if ids replace entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
    /// True if the cut is inside a turn.
    pub is_split_turn: bool,
    /// The summary of the previous compaction on the path, which the new summary updates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_summary: Option<String>,
    /// The ids of the compactions on the path, newest first.
    pub previous_compactions: Vec<String>,
    /// The model at the leaf. Absent if nothing on the path names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Model>,
    /// The focus of the summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_instructions: Option<String>,
    /// Whether `customInstructions` replace the usual structure of a summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replace_instructions: Option<bool>,
    /// The estimated number of tokens of the context before the compaction.
    pub tokens_before: u64,
    /// The files that the summarized part touched.
    pub file_ops: FileOps,
}

/// The files that the summarized part touched, sorted.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FileOps {
    /// The paths of files that were read and not modified.
    pub read_files: Vec<String>,
    /// The paths of files that were written or edited.
    pub modified_files: Vec<String>,
}
