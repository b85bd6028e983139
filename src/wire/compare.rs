//! Two branches side by side, and the numbers of a branch: `compare_branches` and `get_stats` (protocol.md §15).

use super::params::{GivenPosition, nullable_into};
use super::read::Tokens;
use super::usage::Costs;
use serde::Serialize;
use std::collections::BTreeMap;

session_params! {
    /// The params of `compare_branches`.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"a": "a2", "b": "a3"}"#)))]
    CompareBranchesParams {
        /// The id of the last entry of one branch.
        a: String,
        /// The id of the last entry of the other branch.
        b: String,
        /// The ids of the last entries of more branches, at most 30. Default: none.
        more: Option<Vec<String>>,
    }
}

/// The result of `compare_branches`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "ancestorId": "a1",
  "a": {
    "entryIds": ["u2", "a2"], "files": {"readFiles": [], "modifiedFiles": ["src/main.rs"]},
    "stats": {
      "messages": {"assistant": 1, "user": 1}, "toolCalls": 1,
      "tokens": {"input": 1840, "output": 310, "cacheRead": 0, "cacheWrite": 0}, "cost": 0.0102,
      "costs": {"recorded": 0.0102, "estimated": null, "unknownAnswers": 0},
      "models": [
        {
          "provider": "example", "modelId": "large", "messages": 1,
          "tokens": {"input": 1840, "output": 310, "cacheRead": 0, "cacheWrite": 0}, "cost": 0.0102,
          "costs": {"recorded": 0.0102, "estimated": null, "unknownAnswers": 0}
        }
      ],
      "startedAt": "2026-11-22T05:40:35.833Z", "endedAt": "2026-11-22T05:41:35.833Z", "activeMs": 60000
    },
    "outcome": "Cleared. It still fails. · 1 file: main.rs"
  },
  "b": {
    "entryIds": [], "files": {"readFiles": [], "modifiedFiles": []},
    "stats": {
      "messages": {}, "toolCalls": 0,
      "tokens": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}, "cost": 0.0,
      "costs": {"recorded": null, "estimated": null, "unknownAnswers": 0}, "models": [],
      "activeMs": 0
    },
    "outcome": ""
  }
}"#)))]
pub struct CompareBranchesResult {
    /// The id of the deepest entry on all paths; null if the paths have different roots.
    pub ancestor_id: Option<String>,
    /// The branch that ends with `a`.
    pub a: ComparedBranch,
    /// The branch that ends with `b`.
    pub b: ComparedBranch,
    /// The branches that end with `more`, in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<ComparedBranch>,
}

/// The entries of a path below the common ancestor.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ComparedBranch {
    /// The ids of the entries below the common ancestor, in the order of the path. Empty if the branch ends with the
    /// common ancestor.
    pub entry_ids: Vec<String>,
    /// The files that the tool calls of these entries read and modified.
    pub files: TouchedFiles,
    /// The sums over these entries.
    pub stats: BranchStats,
    /// How the branch came out, in one line for lists: its label, what was noted about it, its last message, and the files
    /// that it modified. At most 300 characters.
    pub outcome: String,
}

/// Files, as tool calls name them, sorted, each in one list only.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TouchedFiles {
    /// Files read and not modified.
    pub read_files: Vec<String>,
    /// Files written or edited.
    pub modified_files: Vec<String>,
}

/// Sums over entries.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BranchStats {
    /// The number of messages by role.
    pub messages: BTreeMap<String, u64>,
    /// The number of tool calls in assistant messages.
    pub tool_calls: u64,
    /// The tokens used.
    pub tokens: Tokens,
    /// The recorded cost in dollars, 0 if none is recorded: `costs` says what is known.
    pub cost: f64,
    /// The cost by what is known of it.
    pub costs: Costs,
    /// The models used, by provider and name.
    pub models: Vec<ModelStats>,
    /// When the earliest of the entries was written, in ISO 8601. Absent without entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// When the latest of the entries was written, in ISO 8601. Absent without entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// The time between successive entries, in the order in which they were written, in milliseconds. Pauses of more than
    /// 10 minutes do not count.
    pub active_ms: u64,
}

/// The use of one model.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ModelStats {
    /// The provider that served the model; empty if the entries do not name it.
    pub provider: String,
    /// The provider's name for the model; empty if the entries do not name it.
    pub model_id: String,
    /// The number of the model's messages.
    pub messages: u64,
    /// The tokens used.
    pub tokens: Tokens,
    /// The recorded cost in dollars, 0 if none is recorded: `costs` says what is known.
    pub cost: f64,
    /// The cost by what is known of it.
    pub costs: Costs,
}

session_params! {
    /// The params of `get_stats`.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"leafId": "a1"}"#)))]
    GetStatsParams {
        /// The id of the last entry of a path: only the entries of that path count; null means the empty position.
        /// Default: all entries of the session, or with `since` the path to the leaf.
        #[serde(default, deserialize_with = "nullable_into")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
        leaf_id: GivenPosition,
        /// The id of an entry on the path: only the entries below it count. Default: all entries of the path.
        since: Option<String>,
    }
}

/// The result of `get_stats`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "messages": {"assistant": 2, "user": 2}, "toolCalls": 0,
  "tokens": {"input": 1840, "output": 310, "cacheRead": 0, "cacheWrite": 0}, "cost": 0.0102,
  "costs": {"recorded": 0.0102, "estimated": null, "unknownAnswers": 0},
  "contextTokens": 2150,
  "models": [
    {
      "provider": "example", "modelId": "large", "messages": 2,
      "tokens": {"input": 1840, "output": 310, "cacheRead": 0, "cacheWrite": 0}, "cost": 0.0102,
      "costs": {"recorded": 0.0102, "estimated": null, "unknownAnswers": 0}
    }
  ],
  "startedAt": "2026-11-22T05:40:35.833Z", "endedAt": "2026-11-22T05:41:35.833Z", "activeMs": 60000
}"#)))]
pub struct GetStatsResult {
    /// The sums.
    #[serde(flatten)]
    pub stats: BranchStats,
    /// The number of tokens of the context at the end of the path, estimated where no usage record has it.
    pub context_tokens: u64,
    /// The number of branches in the cold file, which the sums over all branches leave out (protocol.md §3.24). Absent
    /// if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shed_branches: Option<u64>,
}
