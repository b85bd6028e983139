//! Moving the leaf: `set_leaf`, `branch`, `navigate_tree`, undo and redo, `pop`, `merge_branch`
//! (protocol.md §3, §4; storage.md §4).

use super::append::Durability;
use super::entry::{ContentBlock, Entry};
use super::event::TreePreparation;
use super::params::{Count, Nullable, Raw, count, nullable, optional_object};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

mutation_params! {
    /// Moves the leaf, without asking anybody.
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
    BranchParams {
        /// The new leaf.
        entry_id: String,
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
}

/// The result of `branch`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BranchResult {
    /// The leaf before; null: before the first entry.
    pub old_leaf_id: Option<String>,
    /// The leaf afterwards; null: before the first entry.
    pub new_leaf_id: Option<String>,
    /// The branch_summary, if `summary` was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Entry>")]
    pub summary_entry: Option<Raw>,
    /// `none` if the leaf stood there already.
    pub durability: Durability,
}

mutation_params! {
    /// Goes to another place of the tree: asks the clients, summarizes what is left behind, moves.
    NavigateTreeParams {
        /// Where to go. A user message goes to its parent and comes back for editing.
        target_id: String,
        /// Leave a summary of the branch that is left; false if left out.
        summarize: Option<bool>,
        /// What the summary shall dwell on.
        custom_instructions: Option<String>,
        /// `customInstructions` replace the usual structure of a summary.
        replace_instructions: Option<bool>,
        /// Label for the summary entry if there is one, else for the target.
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
        /// Treat the leaf like any other target: a user message goes back to its parent.
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
    /// The summary came from a client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_hook: Option<bool>,
    /// `none` if nothing was written.
    pub durability: Durability,
}

/// Why a navigation changed nothing, or made no summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum NavigationReason {
    /// The leaf stands at the target; not cancelled.
    AlreadyThere,
    /// A client answered `cancel`.
    CancelledByClient,
    /// Nobody answered in time, and `onNoAnswer` was `cancel`.
    NoAnswer,
    /// By `abort_navigation`, a cancelled request, or the end of the connection.
    Aborted,
    /// The leaf moved, but the branch left behind holds only labels and settings.
    NothingToSummarize,
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
    AbortNavigationParams {
        /// Only this one; whichever runs if left out.
        navigation_id: Option<String>,
    }
}

/// The result of `abort_navigation`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AbortNavigationResult {
    /// False if none was running, or it is already committed.
    pub aborted: bool,
}

mutation_params! {
    /// Moves the leaf back to where the last move came from.
    UndoNavigationParams {}
}

/// The result of `undo_navigation`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
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
    RedoNavigationParams {}
}

/// The result of `redo_navigation`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
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
    /// Goes back before a user message, which comes back for editing.
    PopParams {
        /// The user message; the previous one if left out.
        entry_id: Option<String>,
        /// Leave a summary of what is left; true if left out.
        summarize: Option<bool>,
    }
}

/// As of `navigate_tree`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct PopResult(pub Navigation);

mutation_params! {
    /// Appends a summary of another branch at the leaf.
    MergeBranchParams {
        /// The last entry of the other branch.
        tip_id: String,
        /// What the summary shall dwell on.
        custom_instructions: Option<String>,
    }
}

/// The result of `merge_branch`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MergeBranchResult {
    /// Nothing was changed, for the `reason` given.
    pub cancelled: bool,
    /// Why nothing changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<NavigationReason>,
    /// Left out if cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Entry>")]
    pub summary_entry: Option<Raw>,
    /// What the write was given.
    pub durability: Durability,
}
