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
pub struct PrepareCompactionResult {
    /// As `session_before_compact` would carry it.
    pub preparation: CompactionPreparation,
}

mutation_params! {
    /// Replaces the older part of the context by a summary, by appending a compaction entry.
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
