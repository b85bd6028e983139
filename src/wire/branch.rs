//! Names and archive of branches: `name_branch`, `archive_branch` and `unarchive_branch` (protocol.md §3.20).

use super::append::Durability;
use super::navigate::{Navigation, NavigationReason, OnNoAnswer};
use super::params::count;
use serde::{Deserialize, Serialize};

mutation_params! {
    /// The params of `name_branch`.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"entryId": "a2", "name": "the cache"}"#)))]
    NameBranchParams {
        /// The id of an entry of the branch, as its tip.
        entry_id: String,
        /// The name, at most 1,024 bytes. It is stored trimmed and on one line; a blank one, like none, removes the name. Default: none.
        name: Option<String>,
    }
}

/// The result of `name_branch`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "entryId": "u2", "name": "the cache", "inverse": {"method": "name_branch", "params": {"entryId": "u2"}},
  "durability": "interval"
}"#)))]
pub struct NameBranchResult {
    /// The id of the first entry of the branch, to which the name belongs.
    pub entry_id: String,
    /// The name as stored. Absent if it has none now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The call that takes the change back. Absent if the branch had this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inverse: Option<BranchInverse>,
    /// How safe the write is at the time of the response; `none` if nothing was written.
    pub durability: Durability,
}

mutation_params! {
    /// The params of `archive_branch`. If the leaf is in the branch, the leaf moves out of the branch first: the daemon
    /// asks with `session_before_tree`, as for `navigate_tree`.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"entryId": "a2"}"#)))]
    ArchiveBranchParams {
        /// The id of an entry of the branch, as its tip.
        entry_id: String,
        /// The first entries of inner branches that stay archived when the branch comes back. Default: none.
        within: Option<Vec<String>>,
        /// The id of the move in `abort_navigation` and in notifications. Default: the daemon chooses one.
        navigation_id: Option<String>,
        /// How many milliseconds to wait for answers to `session_before_tree`; at most `limits.maxAnswerMs`.
        /// Default: 30000.
        #[serde(default, deserialize_with = "count")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
        answer_timeout_ms: Option<u64>,
        /// The outcome if a client does not answer in time. Default: `proceed`.
        on_no_answer: Option<OnNoAnswer>,
    }
}

/// The result of `archive_branch`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "cancelled": false, "entryId": "u2", "oldLeafId": "a2", "newLeafId": "a1",
  "inverse": {"method": "unarchive_branch", "params": {"entryId": "u2"}}, "durability": "interval"
}"#)))]
pub struct ArchiveBranchResult {
    /// True if nothing changed; `reason` says why.
    pub cancelled: bool,
    /// Why nothing changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<NavigationReason>,
    /// The name of the client, hook or extension that cancelled or failed. Present if `reason` is `cancelledByClient` or
    /// `hookFailed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The reason that the client, hook or extension gave, as text for people. Present if there is a reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The id of the first entry of the branch.
    pub entry_id: String,
    /// The leaf before; null at the empty position.
    pub old_leaf_id: Option<String>,
    /// The leaf after; null at the empty position.
    pub new_leaf_id: Option<String>,
    /// The call that takes the change back. Absent if nothing was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inverse: Option<BranchInverse>,
    /// How safe the write is at the time of the response; `none` if nothing was written.
    pub durability: Durability,
}

mutation_params! {
    /// The params of `unarchive_branch`.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"entryId": "a2"}"#)))]
    UnarchiveBranchParams {
        /// The id of an entry of the archived branch.
        entry_id: String,
    }
}

/// The result of `unarchive_branch`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"entryIds": [], "durability": "none"}"#)))]
pub struct UnarchiveBranchResult {
    /// The first entry of each branch that was brought back, from the entry upwards: none if the entry is in no
    /// archived branch, several if an archived branch was in another one.
    pub entry_ids: Vec<String>,
    /// The call that takes the change back. Absent if nothing was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inverse: Option<BranchInverse>,
    /// How safe the write is at the time of the response; `none` if nothing was written.
    pub durability: Durability,
}

mutation_params! {
    /// The params of `choose`. The daemon asks with `session_before_tree`, as for `navigate_tree`.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"tipId": "b2", "reason": "the shortest one that passes"}"#)))]
    ChooseParams {
        /// The id of an entry of the candidate that is chosen, as its tip.
        tip_id: String,
        /// Why, kept as a note on each other candidate. Default: none.
        reason: Option<String>,
        /// The id of the move in `abort_navigation` and in notifications. Default: the daemon chooses one.
        navigation_id: Option<String>,
        /// How many milliseconds to wait for answers to `session_before_tree`; at most `limits.maxAnswerMs`.
        /// Default: 30000.
        #[serde(default, deserialize_with = "count")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
        answer_timeout_ms: Option<u64>,
        /// The outcome if a client does not answer in time. Default: `proceed`.
        on_no_answer: Option<OnNoAnswer>,
    }
}

/// The result of `choose`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "cancelled": false, "oldLeafId": "a1", "newLeafId": "7c0d11e2", "durability": "interval",
  "group": "why", "tipId": "b2", "others": ["c2"]
}"#)))]
pub struct ChooseResult {
    /// How the move ended.
    #[serde(flatten)]
    pub navigation: Navigation,
    /// The question of the candidates.
    pub group: String,
    /// The end of the candidate that was chosen.
    pub tip_id: String,
    /// The ends of the other candidates, in file order.
    pub others: Vec<String>,
}

/// The call that takes a change of a branch back.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BranchInverse {
    /// The method.
    pub method: BranchVerb,
    /// Its params.
    pub params: InverseArguments,
}

/// A method that changes a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BranchVerb {
    NameBranch,
    ArchiveBranch,
    UnarchiveBranch,
}

/// The params of an inverse call.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InverseArguments {
    /// The id of the first entry of the branch.
    pub entry_id: String,
    /// The former name. Present with `name_branch` if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The inner branches that were archived by themselves. Present with `archive_branch` if there were some.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub within: Vec<String>,
}

mutation_params! {
    /// The params of `keep_branch`.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"entryId": "q7"}"#)))]
    KeepBranchParams {
        /// The id of an entry of the branch, such as the question.
        entry_id: String,
    }
}

/// The result of `keep_branch`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "entryIds": ["0c16eded", "6122b546"], "leafId": "6122b546", "durability": "interval"
}"#)))]
pub struct KeepBranchResult {
    /// The ids of the copies, in the order of the branch. A copy that the path to the leaf had already is not written again.
    pub entry_ids: Vec<String>,
    /// The leaf after the append.
    pub leaf_id: String,
    /// How safe the write is at the time of the response; `none` if nothing was written.
    pub durability: Durability,
}
