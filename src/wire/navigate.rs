//! Moving the leaf: `set_leaf`, `branch`, `navigate_tree`, undo and redo, `pop`, `merge_branch`
//! (protocol.md §3, §4; session-file.md §4).

use super::append::Durability;
use super::event::{CancelReason, TreePreparation};
use super::params::{Raw, count, nullable, optional_object};
pub use super::summary::GivenSummary;
use serde::{Deserialize, Serialize};

mutation_params! {
    /// The params of `set_leaf`. If the leaf is there already, nothing is written and nothing is announced.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"leafId": "a1"}"#)))]
    SetLeafParams {
        /// The id of the new leaf; null moves to the empty position.
        #[serde(deserialize_with = "nullable")]
        #[cfg_attr(feature = "schema", schemars(with = "crate::shapes::Nullable<String>"))]
        leaf_id: Option<String>,
    }
}

/// The result of `set_leaf`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "oldLeafId": "32cf6b69", "newLeafId": "a1", "durability": "interval"
}"#)))]
pub struct SetLeafResult {
    /// The leaf before; null at the empty position.
    pub old_leaf_id: Option<String>,
    /// The leaf after; null at the empty position.
    pub new_leaf_id: Option<String>,
    /// How safe the write is at the time of the response; `none` if the leaf was there already.
    pub durability: Durability,
}

mutation_params! {
    /// The params of `branch`. No client is asked.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"entryId": "a1"}"#)))]
    BranchParams {
        /// The id of the new leaf; null, the empty position, is allowed only with a `summary`.
        #[serde(deserialize_with = "nullable")]
        #[cfg_attr(feature = "schema", schemars(with = "crate::shapes::Nullable<String>"))]
        entry_id: Option<String>,
        /// A summary of the branch that is left, appended at the new leaf as a branch_summary entry. Default:
        /// none.
        #[serde(default, deserialize_with = "optional_object")]
        summary: Option<GivenSummary>,
    }
}

/// The result of `branch`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"oldLeafId": "a1", "newLeafId": "a1", "durability": "none"}"#)))]
pub struct BranchResult {
    /// The leaf before; null at the empty position.
    pub old_leaf_id: Option<String>,
    /// The leaf after; null at the empty position.
    pub new_leaf_id: Option<String>,
    /// The branch_summary entry. Present if `summary` was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::entry::Entry>"))]
    pub summary_entry: Option<Raw>,
    /// True. Present if `summary` was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_hook: Option<bool>,
    /// How safe the write is at the time of the response; `none` if the leaf was there already.
    pub durability: Durability,
}

mutation_params! {
    /// The params of `navigate_tree`. The daemon asks with `session_before_tree`, has a summary written if one is
    /// wanted, then moves the leaf in one write. Later requests run while the daemon waits; if they move the leaf, the
    /// navigation fails with `leafMoved`.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
      "targetId": "a1", "summarize": true, "label": "not the cache", "navigationId": "n1"
    }"#)))]
    NavigateTreeParams {
        /// The id of the target. For a user message or custom_message the leaf moves to its parent, and the
        /// result has the text for an editor.
        target_id: String,
        /// Whether to summarize the branch that the leaf leaves. Default: false.
        summarize: Option<bool>,
        /// The focus of the summary. Default: none.
        custom_instructions: Option<String>,
        /// Whether `customInstructions` replace the usual structure of a summary. Default: false.
        replace_instructions: Option<bool>,
        /// A label for the summary entry, or for the target if there is no summary. It is stored trimmed and
        /// on one line; a blank one is none. It is appended even if the leaf is at the target already.
        /// Default: none.
        label: Option<String>,
        /// The id of the navigation in `abort_navigation` and in notifications. Default: the daemon chooses
        /// one.
        navigation_id: Option<String>,
        /// How many milliseconds to wait for answers to `session_before_tree`; at most `limits.maxAnswerMs`.
        /// Default: 30000.
        #[serde(default, deserialize_with = "count")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
        answer_timeout_ms: Option<u64>,
        /// The outcome if a client does not answer in time. Default: `proceed`.
        on_no_answer: Option<OnNoAnswer>,
        /// Whether to go back before a user message or custom_message even if it is the leaf. Default: false.
        rewind: Option<bool>,
        /// Whether to only return the preparation. Default: false.
        dry_run: Option<bool>,
    }
}

/// The outcome if a client does not answer in time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum OnNoAnswer {
    #[default]
    Proceed,
    Cancel,
}

/// The result of `navigate_tree`: the end of the navigation, or its preparation if `dryRun` is true.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
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
}"#)))]
pub enum NavigateTreeResult {
    Navigation(Box<Navigation>),
    DryRun(Box<DryRun>),
}

/// How a navigation ended.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Navigation {
    /// True if nothing changed; `reason` says why.
    pub cancelled: bool,
    /// Why nothing changed, or why no summary was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<NavigationReason>,
    /// The name of the client, hook or extension that cancelled or failed. Present if `reason` is `cancelledByClient` or
    /// `hookFailed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The reason that the client, hook or extension gave, as text for people. Present if there is a reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The text of the target, a user message or custom_message, for an editor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub editor_text: Option<String>,
    /// The images of that message.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<Vec<crate::message::ContentBlock>>")
    )]
    pub editor_images: Option<Vec<Raw>>,
    /// The leaf before; null at the empty position.
    pub old_leaf_id: Option<String>,
    /// The leaf after; null at the empty position.
    pub new_leaf_id: Option<String>,
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
    /// How safe the write is at the time of the response; `none` if nothing was written.
    pub durability: Durability,
}

/// Why a navigation changed nothing, or wrote no summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum NavigationReason {
    /// The leaf is at the target already; `cancelled` is false. A label is appended all the same.
    AlreadyThere,
    /// A client or a hook answered `cancel`.
    CancelledByClient,
    /// A client did not answer in time, and `onNoAnswer` is `cancel`.
    NoAnswer,
    /// A client, a hook or an extension failed, and has not declared that operations proceed then. `by` names it.
    HookFailed,
    /// `abort_navigation`, a cancelled request, or the end of the connection aborted it.
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

/// The preparation of a navigation that does not happen.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DryRun {
    /// The preparation that `session_before_tree` would carry, with ids in place of entries that exceed the
    /// client's `maxFrameBytes`.
    pub preparation: TreePreparation,
    /// Whether a summary can be had: a summarizer is configured, or a client or hook answers `session_before_tree`.
    pub can_summarize: bool,
}

session_params! {
    /// The params of `abort_navigation`. Leaf and file stay as they were before the navigation.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"navigationId": "n1"}"#)))]
    AbortNavigationParams {
        /// The id of the navigation to abort. Default: whichever runs.
        navigation_id: Option<String>,
    }
}

/// The result of `abort_navigation`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"aborted": false}"#)))]
pub struct AbortNavigationResult {
    /// False if no such navigation was running, or if it is already committed.
    pub aborted: bool,
}

mutation_params! {
    /// The params of `undo_navigation`.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{}"#)))]
    UndoNavigationParams {}
}

/// The result of `undo_navigation`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "oldLeafId": "32cf6b69", "newLeafId": "16e149ed", "durability": "interval"
}"#)))]
pub struct UndoNavigationResult {
    /// The leaf before; null at the empty position.
    pub old_leaf_id: Option<String>,
    /// The leaf after; null at the empty position.
    pub new_leaf_id: Option<String>,
    /// How safe the write is at the time of the response.
    pub durability: Durability,
}

mutation_params! {
    /// The params of `redo_navigation`.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{}"#)))]
    RedoNavigationParams {}
}

/// The result of `redo_navigation`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "oldLeafId": "16e149ed", "newLeafId": "32cf6b69", "durability": "interval"
}"#)))]
pub struct RedoNavigationResult {
    /// The leaf before; null at the empty position.
    pub old_leaf_id: Option<String>,
    /// The leaf after; null at the empty position.
    pub new_leaf_id: Option<String>,
    /// How safe the write is at the time of the response.
    pub durability: Durability,
}

session_params! {
    /// The params of `get_navigation_log`.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"limit": 2}"#)))]
    GetNavigationLogParams {
        /// The most moves to return. Default: all.
        #[serde(default, deserialize_with = "count")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
        limit: Option<u64>,
    }
}

/// The result of `get_navigation_log`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "moves": [
    {"at": "2026-11-22T05:40:35.838Z", "from": "16e149ed", "to": "32cf6b69", "cause": "redo"},
    {"at": "2026-11-22T05:40:35.838Z", "from": "32cf6b69", "to": "16e149ed", "cause": "undo"}
  ]
}"#)))]
pub struct GetNavigationLogResult {
    /// The moves, newest first.
    pub moves: Vec<Move>,
}

/// One move of the leaf.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Move {
    /// When the leaf moved, in ISO 8601.
    pub at: String,
    /// The leaf before; null at the empty position.
    pub from: Option<String>,
    /// The leaf after; null at the empty position.
    pub to: Option<String>,
    /// The operation that moved the leaf.
    pub cause: MoveCause,
}

/// The operation that moved the leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MoveCause {
    SetLeaf,
    Branch,
    NavigateTree,
    Undo,
    Redo,
}

mutation_params! {
    /// The params of `pop`. It works as `navigate_tree` with `rewind`.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"entryId": "u2", "summarize": false}"#)))]
    PopParams {
        /// The id of the target: the leaf moves to before a user message or custom_message, and to any other
        /// entry itself. Default: the user message nearest to the leaf.
        entry_id: Option<String>,
        /// Whether to summarize the branch that the leaf leaves. Default: true.
        summarize: Option<bool>,
        /// The focus of the summary. Default: none.
        custom_instructions: Option<String>,
        /// Whether `customInstructions` replace the usual structure of a summary. Default: false.
        replace_instructions: Option<bool>,
        /// A label for the summary entry, or for the target if there is no summary. It is stored trimmed and
        /// on one line; a blank one is none. It is appended even if the leaf is at the target already.
        /// Default: none.
        label: Option<String>,
        /// The id of the navigation in `abort_navigation` and in notifications. Default: the daemon chooses
        /// one.
        navigation_id: Option<String>,
        /// How many milliseconds to wait for answers to `session_before_tree`; at most `limits.maxAnswerMs`.
        /// Default: 30000.
        #[serde(default, deserialize_with = "count")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
        answer_timeout_ms: Option<u64>,
        /// The outcome if a client does not answer in time. Default: `proceed`.
        on_no_answer: Option<OnNoAnswer>,
        /// Whether to only return the preparation. Default: false.
        dry_run: Option<bool>,
    }
}

/// The result of `pop`, as that of `navigate_tree`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "cancelled": false, "editorText": "Clear the cache.", "oldLeafId": "a2", "newLeafId": "d6e75cc4",
  "labelEntry": {
    "type": "label", "id": "d6e75cc4", "parentId": "a1", "timestamp": "2026-11-22T05:40:35.851Z",
    "targetId": "u2", "label": "first try"
  },
  "durability": "interval"
}"#)))]
pub struct PopResult(pub NavigateTreeResult);

mutation_params! {
    /// The params of `merge_branch`. The summary covers the entries of the other branch after the common
    /// ancestor.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"tipId": "a2"}"#)))]
    MergeBranchParams {
        /// The id of the last entry of the other branch. Required without `fromSessionId`. Default: the place where the
        /// session of `fromSessionId` opens.
        tip_id: Option<String>,
        /// The session that has the branch, open or not: a fork of this one, the session of a subagent, or any other. A
        /// summary of the branch that the path to the leaf has already is returned, not written again. Default: this session.
        from_session_id: Option<String>,
        /// The focus of the summary. Default: none.
        custom_instructions: Option<String>,
    }
}

/// The result of `merge_branch`, as that of `navigate_tree`. The leaf stays on its branch: it is the last
/// entry that was appended.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
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
}"#)))]
pub struct MergeBranchResult(pub Navigation);
