//! Moving the leaf: `set_leaf`, `branch`, `navigate_tree`, undo and redo, `pop`, `merge_branch`
//! (protocol.md §3, §4; storage.md §4).

use super::append::Durability;
use super::entry::Entry;
use super::event::{CancelReason, TreePreparation};
use super::message::ContentBlock;
use super::params::{Count, Nullable, Raw, count, nullable, object_option, optional_object};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

mutation_params! {
    /// Moves the leaf, without asking anybody.
    #[schemars(example = super::example(r#"{"leafId": "a1"}"#))]
    SetLeafParams {
        /// Null: before the first entry.
        #[serde(deserialize_with = "nullable")]
        #[schemars(with = "Nullable<String>")]
        leaf_id: Option<String>,
    }
}

/// The result of `set_leaf`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = super::example(r#"{
  "oldLeafId": "32cf6b69", "newLeafId": "a1", "durability": "interval"
}"#))]
pub struct SetLeafResult {
    /// The leaf before; null: before the first entry.
    pub old_leaf_id: Option<String>,
    /// The leaf afterwards; null: before the first entry.
    pub new_leaf_id: Option<String>,
    /// `none` if the leaf stood there already.
    pub durability: Durability,
}

mutation_params! {
    /// Moves the leaf to an entry, optionally leaving a summary of what is left behind.
    #[schemars(example = super::example(r#"{"entryId": "a1"}"#))]
    BranchParams {
        /// The new leaf; null, before the first entry, only with a summary.
        #[serde(deserialize_with = "nullable")]
        #[schemars(with = "Nullable<String>")]
        entry_id: Option<String>,
        /// Appended there as a branch_summary, as given.
        #[serde(default, deserialize_with = "optional_object")]
        summary: Option<GivenSummary>,
    }
}

/// A summary that a client made itself.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GivenSummary {
    /// The text of the summary.
    pub summary: String,
    /// Anything; stored byte for byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub details: Option<Raw>,
    /// Tokens the summary took, in the shape of an assistant message's `usage`; stored byte for byte,
    /// and counted by `get_stats`.
    #[serde(
        default,
        deserialize_with = "object_option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<super::message::Usage>")]
    pub usage: Option<Raw>,
}

/// The result of `branch`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = super::example(r#"{"oldLeafId": "a1", "newLeafId": "a1", "durability": "none"}"#))]
pub struct BranchResult {
    /// The leaf before; null: before the first entry.
    pub old_leaf_id: Option<String>,
    /// The leaf afterwards; null: before the first entry.
    pub new_leaf_id: Option<String>,
    /// The branch_summary, if `summary` was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Entry>")]
    pub summary_entry: Option<Raw>,
    /// True, there if `summary` was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_hook: Option<bool>,
    /// `none` if the leaf stood there already.
    pub durability: Durability,
}

mutation_params! {
    /// Goes to another place of the tree: asks the clients, summarizes what is left behind, moves.
    #[schemars(example = super::example(r#"{
      "targetId": "a1", "summarize": true, "label": "not the cache", "navigationId": "n1"
    }"#))]
    NavigateTreeParams {
        /// Where to go. A user message goes to its parent and comes back for editing.
        target_id: String,
        /// Leave a summary of the branch that is left; false if left out.
        summarize: Option<bool>,
        /// What the summary shall dwell on.
        custom_instructions: Option<String>,
        /// `customInstructions` replace the usual structure of a summary.
        replace_instructions: Option<bool>,
        /// Label for the summary entry if there is one, else for the target; also where the leaf stands
        /// there already. Trimmed and on one line; blank is none.
        label: Option<String>,
        /// Names this navigation for `abort_navigation` and in notifications; made by the daemon if
        /// left out.
        navigation_id: Option<String>,
        /// Milliseconds to wait for answers to `session_before_tree`; 30000 if left out, at most
        /// `limits.maxAnswerMs`.
        #[serde(default, deserialize_with = "count")]
        #[schemars(with = "Option<Count>")]
        answer_timeout_ms: Option<u64>,
        /// What silence means; `proceed` if left out.
        on_no_answer: Option<OnNoAnswer>,
        /// Go back before a user message or custom_message even if it is the leaf.
        rewind: Option<bool>,
        /// Only tell what would be summarized.
        dry_run: Option<bool>,
    }
}

/// What it means that nobody answered in time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnNoAnswer {
    #[default]
    Proceed,
    Cancel,
}

/// The end of a navigation or, for `dryRun`, its preparation.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(example = super::example(r#"{
  "cancelled": false, "oldLeafId": "16e149ed", "newLeafId": "32cf6b69",
  "summaryEntry": {
    "type": "branch_summary", "id": "50aeb394", "parentId": "a1",
    "timestamp": "2026-11-22T05:40:35.837Z", "fromId": "16e149ed",
    "summary": "This is a summary of a branch that was explored before the conversation returned here.\n\nThe cache was cleared. The build still fails.",
    "details": {"readFiles": [], "modifiedFiles": []}
  },
  "labelEntry": {
    "type": "label", "id": "32cf6b69", "parentId": "50aeb394",
    "timestamp": "2026-11-22T05:40:35.837Z", "targetId": "50aeb394", "label": "first try"
  },
  "fromHook": false, "durability": "interval"
}"#))]
pub enum NavigateTreeResult {
    Navigation(Box<Navigation>),
    DryRun(Box<DryRun>),
}

/// How a navigation ended.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Navigation {
    /// Nothing was changed, for the `reason` given.
    pub cancelled: bool,
    /// Why nothing changed, or no summary was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<NavigationReason>,
    /// The hook that failed, if that is the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The text of the user message that was gone to, for the editor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub editor_text: Option<String>,
    /// Its images.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<ContentBlock>>")]
    pub editor_images: Option<Vec<Raw>>,
    /// Null: before the first entry.
    pub old_leaf_id: Option<String>,
    /// Null: before the first entry.
    pub new_leaf_id: Option<String>,
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
    /// `none` if nothing was written.
    pub durability: Durability,
}

/// Why a navigation changed nothing, or made no summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum NavigationReason {
    /// The leaf stands at the target; not cancelled. A label is appended all the same.
    AlreadyThere,
    /// A client answered `cancel`.
    CancelledByClient,
    /// Nobody answered in time, and `onNoAnswer` was `cancel`.
    NoAnswer,
    /// A hook failed whose `on_failure` is `cancel`; `by` names it.
    HookFailed,
    /// By `abort_navigation`, a cancelled request, or the end of the connection.
    Aborted,
    /// The leaf moved, but the branch left behind holds only labels and settings.
    NothingToSummarize,
}

impl From<CancelReason> for NavigationReason {
    fn from(reason: CancelReason) -> Self {
        match reason {
            CancelReason::CancelledByClient => Self::CancelledByClient,
            CancelReason::NoAnswer => Self::NoAnswer,
            CancelReason::HookFailed => Self::HookFailed,
        }
    }
}

/// What a navigation would summarize.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DryRun {
    /// As `session_before_tree` would carry it: ids in place of entries that the client's `maxFrameBytes`
    /// has no room for.
    pub preparation: TreePreparation,
}

session_params! {
    /// Ends a running navigation; leaf and file stay as they were.
    #[schemars(example = super::example(r#"{"navigationId": "n1"}"#))]
    AbortNavigationParams {
        /// Only this one; whichever runs if left out.
        navigation_id: Option<String>,
    }
}

/// The result of `abort_navigation`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = super::example(r#"{"aborted": false}"#))]
pub struct AbortNavigationResult {
    /// False if none was running, or it is already committed.
    pub aborted: bool,
}

mutation_params! {
    /// Moves the leaf back to where the last move came from.
    #[schemars(example = super::example(r#"{}"#))]
    UndoNavigationParams {}
}

/// The result of `undo_navigation`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = super::example(r#"{
  "oldLeafId": "32cf6b69", "newLeafId": "16e149ed", "durability": "interval"
}"#))]
pub struct UndoNavigationResult {
    /// The leaf before; null: before the first entry.
    pub old_leaf_id: Option<String>,
    /// The leaf afterwards; null: before the first entry.
    pub new_leaf_id: Option<String>,
    /// What the write was given.
    pub durability: Durability,
}

mutation_params! {
    /// Takes the last undo back.
    #[schemars(example = super::example(r#"{}"#))]
    RedoNavigationParams {}
}

/// The result of `redo_navigation`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = super::example(r#"{
  "oldLeafId": "16e149ed", "newLeafId": "32cf6b69", "durability": "interval"
}"#))]
pub struct RedoNavigationResult {
    /// The leaf before; null: before the first entry.
    pub old_leaf_id: Option<String>,
    /// The leaf afterwards; null: before the first entry.
    pub new_leaf_id: Option<String>,
    /// What the write was given.
    pub durability: Durability,
}

session_params! {
    /// The moves of the leaf, newest first.
    #[schemars(example = super::example(r#"{"limit": 2}"#))]
    GetNavigationLogParams {
        /// Most moves.
        #[serde(default, deserialize_with = "count")]
        #[schemars(with = "Option<Count>")]
        limit: Option<u64>,
    }
}

/// The result of `get_navigation_log`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = super::example(r#"{
  "moves": [
    {"at": "2026-11-22T05:40:35.838Z", "from": "16e149ed", "to": "32cf6b69", "cause": "redo"},
    {"at": "2026-11-22T05:40:35.838Z", "from": "32cf6b69", "to": "16e149ed", "cause": "undo"}
  ]
}"#))]
pub struct GetNavigationLogResult {
    /// Newest first.
    pub moves: Vec<Move>,
}

/// One move of the leaf.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Move {
    /// When, ISO 8601.
    pub at: String,
    /// Null: before the first entry.
    pub from: Option<String>,
    /// Null: before the first entry.
    pub to: Option<String>,
    /// What moved it.
    pub cause: MoveCause,
}

/// What moved the leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MoveCause {
    SetLeaf,
    Branch,
    NavigateTree,
    Undo,
    Redo,
}

mutation_params! {
    /// Goes back to an entry as `navigate_tree` does, with a summary unless told otherwise.
    #[schemars(example = super::example(r#"{"entryId": "u2", "summarize": false}"#))]
    PopParams {
        /// Where to go: before a user message or custom_message, which comes back for editing, to
        /// anything else. The user message nearest to the leaf if left out.
        entry_id: Option<String>,
        /// Leave a summary of what is left; true if left out.
        summarize: Option<bool>,
        /// What the summary shall dwell on.
        custom_instructions: Option<String>,
        /// `customInstructions` replace the usual structure of a summary.
        replace_instructions: Option<bool>,
        /// Label for the summary entry if there is one, else for the target; also where the leaf stands
        /// there already. Trimmed and on one line; blank is none.
        label: Option<String>,
        /// Names this navigation for `abort_navigation` and in notifications; made by the daemon if
        /// left out.
        navigation_id: Option<String>,
        /// Milliseconds to wait for answers to `session_before_tree`; 30000 if left out, at most
        /// `limits.maxAnswerMs`.
        #[serde(default, deserialize_with = "count")]
        #[schemars(with = "Option<Count>")]
        answer_timeout_ms: Option<u64>,
        /// What silence means; `proceed` if left out.
        on_no_answer: Option<OnNoAnswer>,
        /// Only tell what would be summarized.
        dry_run: Option<bool>,
    }
}

/// As of `navigate_tree`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(example = super::example(r#"{
  "cancelled": false, "editorText": "Clear the cache.", "oldLeafId": "a2", "newLeafId": "d6e75cc4",
  "labelEntry": {
    "type": "label", "id": "d6e75cc4", "parentId": "a1", "timestamp": "2026-11-22T05:40:35.851Z",
    "targetId": "u2", "label": "first try"
  },
  "durability": "interval"
}"#))]
pub struct PopResult(pub NavigateTreeResult);

mutation_params! {
    /// Appends a summary of another branch at the leaf.
    #[schemars(example = super::example(r#"{"tipId": "a2"}"#))]
    MergeBranchParams {
        /// The last entry of the other branch.
        tip_id: String,
        /// What the summary shall dwell on.
        custom_instructions: Option<String>,
    }
}

/// As of `navigate_tree`; the leaf has not left, it stands at what was appended.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(example = super::example(r#"{
  "cancelled": false, "oldLeafId": "6122b546", "newLeafId": "612214ba",
  "summaryEntry": {
    "type": "branch_summary", "id": "c912a43c", "parentId": "6122b546",
    "timestamp": "2026-11-22T05:40:35.849Z", "fromId": "a2",
    "summary": "This is a summary of another branch of this conversation, merged here.\n\nThe cache was cleared. The build still fails.",
    "details": {"readFiles": [], "modifiedFiles": []}, "merge": true
  },
  "labelEntry": {
    "type": "label", "id": "612214ba", "parentId": "c912a43c",
    "timestamp": "2026-11-22T05:40:35.849Z", "targetId": "c912a43c", "label": "first try"
  },
  "fromHook": false, "durability": "interval"
}"#))]
pub struct MergeBranchResult(pub Navigation);
