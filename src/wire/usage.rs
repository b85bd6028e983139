//! The use of all sessions: `get_usage` (protocol.md §15.6).

use super::params::count;
use super::read::Tokens;
use serde::{Deserialize, Serialize};

/// The params of `get_usage`.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"by": "model", "since": "2026-11-22"}"#)))]
pub struct GetUsageParams {
    /// The rows. Default: `day`.
    pub by: Option<UsageBy>,
    /// Only sessions of this working directory and of those below it. Default: all sessions.
    pub cwd: Option<String>,
    /// Only answers of this time or later: `2026-11-22T08:16:21Z`, `2026-11-22` (UTC), or an age such as `2w`. Default: all
    /// answers.
    pub since: Option<String>,
    /// Only the session with this id, open or not. Default: all sessions.
    pub session_id: Option<String>,
    /// The most rows, at most 10,000. Default: 1,000.
    #[serde(default, deserialize_with = "count")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
    pub limit: Option<u64>,
}

/// The kind of the rows of a count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum UsageBy {
    /// Days in UTC, the oldest first.
    #[default]
    Day,
    /// Models, by `provider/model`.
    Model,
    /// The tools from which answers were imported; `treelined` for others.
    Tool,
    /// Sessions.
    Session,
    /// The branches of each session.
    Branch,
    /// The working directories of sessions.
    Directory,
}

/// The result of `get_usage`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "rows": [
    {
      "key": "example/large", "answers": 3, "answersWithoutTokens": 1,
      "tokens": {"input": 1840, "output": 310, "cacheRead": 0, "cacheWrite": 0},
      "costs": {"recorded": 0.0102, "estimated": null, "unknownAnswers": 1}
    }
  ],
  "total": {
    "answers": 3, "answersWithoutTokens": 1,
    "tokens": {"input": 1840, "output": 310, "cacheRead": 0, "cacheWrite": 0},
    "costs": {"recorded": 0.0102, "estimated": null, "unknownAnswers": 1}
  },
  "prices": "2026-11-28: litellm 1.110.2", "unread": []
}"#)))]
pub struct GetUsageResult {
    /// Groups of answers. Days are in their order; other rows are sorted by what is known of their cost, then by their
    /// tokens, the most first.
    pub rows: Vec<UsageRow>,
    /// The number of rows beyond the limit: the oldest days, or the last rows. Absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more_rows: Option<u64>,
    /// The sums over all answers, also those of rows beyond the limit.
    pub total: UsageSums,
    /// The day and the source of the table of prices.
    pub prices: String,
    /// The sessions that could not be read, at most 100 of them.
    pub unread: Vec<UnreadUsage>,
}

/// The answers of one group.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UsageRow {
    /// The day (`2026-11-22`, or `unknown`), the model, the tool, the id of the session, the id of the last entry of the
    /// branch, or the directory. Empty if the answers do not name it.
    pub key: String,
    /// The name of the session, or its first message; the name of the branch. Only for sessions and branches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The session of the branch. Only for branches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// True if the leaf is in the branch, false if the branch was left. Only for branches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
    /// The reason in the last note about an entry of a branch that was left. Absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The sums.
    #[serde(flatten)]
    pub sums: UsageSums,
}

/// Sums over answers.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UsageSums {
    /// The number of answers, and of summaries that a model has written.
    pub answers: u64,
    /// The number of these answers for which no tokens are recorded.
    pub answers_without_tokens: u64,
    /// The tokens used.
    pub tokens: Tokens,
    /// The cost by what is known of it.
    pub costs: Costs,
}

/// A cost in dollars by what is known of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Costs {
    /// The cost that tools have recorded; null if they have recorded nothing.
    pub recorded: Option<f64>,
    /// The cost of the answers without a recorded cost, by the prices of their models; null if there are no such
    /// answers.
    pub estimated: Option<f64>,
    /// The number of answers with tokens whose cost is unknown. This cost is missing in the other two numbers.
    pub unknown_answers: u64,
}

/// A session that could not be read.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UnreadUsage {
    /// The path of its file.
    pub path: String,
    /// The kind of the error.
    pub kind: String,
    /// The error in English.
    pub message: String,
}
