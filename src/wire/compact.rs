//! Compaction: what it would replace, and doing it (semantics.md §4).

use super::append::Durability;
use super::entry::Entry;
use super::event::CancelReason;
use super::navigate::OnNoAnswer;
use super::params::{Count, Raw, count};
use super::read::Model;
use schemars::JsonSchema;
use serde::Serialize;

session_params! {
    /// What a compaction would summarize and keep.
    #[schemars(example = super::example(r#"{"keepRecentTokens": 1}"#))]
    PrepareCompactionParams {
        /// What the summary shall dwell on.
        custom_instructions: Option<String>,
        /// Tokens to keep, estimated; 20000 if left out.
        #[serde(default, deserialize_with = "count")]
        #[schemars(with = "Option<Count>")]
        keep_recent_tokens: Option<u64>,
    }
}

/// The result of `prepare_compaction`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = super::example(r#"{
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
}"#))]
pub struct PrepareCompactionResult {
    /// As `session_before_compact` would carry it.
    pub preparation: CompactionPreparation,
}

mutation_params! {
    /// Replaces the older part of the context by a summary, by appending a compaction entry.
    #[schemars(example = super::example(r#"{"keepRecentTokens": 1}"#))]
    CompactParams {
        /// What the summary shall dwell on.
        custom_instructions: Option<String>,
        /// `customInstructions` replace the usual structure of a summary.
        replace_instructions: Option<bool>,
        /// Tokens to keep, estimated; 20000 if left out.
        #[serde(default, deserialize_with = "count")]
        #[schemars(with = "Option<Count>")]
        keep_recent_tokens: Option<u64>,
        /// Milliseconds to wait for answers to `session_before_compact`; 30000 if left out, at most
        /// `limits.maxAnswerMs`.
        #[serde(default, deserialize_with = "count")]
        #[schemars(with = "Option<Count>")]
        answer_timeout_ms: Option<u64>,
        /// What silence means; `proceed` if left out.
        on_no_answer: Option<OnNoAnswer>,
    }
}

/// The result of `compact`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = super::example(r#"{
  "cancelled": false,
  "compactionEntry": {
    "type": "compaction", "id": "4489c8ed", "parentId": "a2",
    "timestamp": "2026-11-22T05:40:35.853Z",
    "summary": "The user asked why the build fails. The cause is a stale cache or a missing import.",
    "firstKeptEntryId": "a2", "tokensBefore": 25, "details": {"readFiles": [], "modifiedFiles": []}
  },
  "durability": "interval"
}"#))]
pub struct CompactResult {
    /// Nothing was changed, for the `reason` given.
    pub cancelled: bool,
    /// Why nothing changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<CancelReason>,
    /// The hook that failed, if that is the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The new entry; left out if cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Entry>")]
    pub compaction_entry: Option<Raw>,
    /// What the write was given; `none` if cancelled.
    pub durability: Durability,
}

/// What a compaction summarizes and keeps.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompactionPreparation {
    /// The first entry that stays in the context.
    pub first_kept_entry_id: String,
    /// In file order, context edits applied; without the prefix of a split turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Entry>>")]
    pub entries_to_summarize: Option<Vec<Raw>>,
    /// Instead of `entriesToSummarize`, where those are too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_ids: Option<Vec<String>>,
    /// The part of a split turn that is summarized separately.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Entry>>")]
    pub turn_prefix: Option<Vec<Raw>>,
    /// Instead of `turnPrefix`, where the entries are too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_prefix_ids: Option<Vec<String>>,
    /// True if ids stand for entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
    /// The cut is inside a turn.
    pub is_split_turn: bool,
    /// The summary of the compaction before, which is updated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_summary: Option<String>,
    /// The compactions on the path, newest first.
    pub previous_compactions: Vec<String>,
    /// The model at the leaf.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Model>,
    /// What the summary shall dwell on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_instructions: Option<String>,
    /// `customInstructions` replace the usual structure of a summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replace_instructions: Option<bool>,
    /// Tokens of the context so far, estimated.
    pub tokens_before: u64,
    /// The files it is about.
    pub file_ops: FileOps,
}

/// The files that the summarized part touched, sorted.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileOps {
    /// Read, but not modified.
    pub read_files: Vec<String>,
    /// Written or edited.
    pub modified_files: Vec<String>,
}
