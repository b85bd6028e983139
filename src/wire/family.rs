//! Families of sessions (protocol.md §3.22).

use super::params::count;
use super::session::SessionRow;
use serde::{Deserialize, Serialize};

/// The params of `get_family`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"sessionId": "0198c1f0-5e00-7000-8000-000000000002"}"#)))]
pub struct GetFamilyParams {
    /// The id of a session of the family, open or not.
    pub session_id: String,
    /// The most rows of the page, at most 1000. Default: 1000.
    #[serde(default, deserialize_with = "count")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
    pub limit: Option<u64>,
    /// The `nextCursor` of the previous page. Default: the first page.
    pub cursor: Option<String>,
}

/// The result of `get_family`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "sessions": [
    {
      "sessionId": "tour", "path": "/home/ada/sessions/--home-ada-project--/2026-11-22T08-16-21-582Z_tour.jsonl",
      "cwd": "/home/ada/project", "created": "2026-11-22T08:16:21.582Z", "modified": "2026-11-22T08:16:21.597Z",
      "messageCount": 5, "firstMessage": "Why does the build fail?", "depth": 0
    }
  ]
}"#)))]
pub struct GetFamilyResult {
    /// The sessions, each before those that come from it, the oldest of them first.
    pub sessions: Vec<FamilyRow>,
    /// The `cursor` of the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A session of a family.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FamilyRow {
    /// The row as in `list_sessions`.
    #[serde(flatten)]
    pub row: SessionRow,
    /// The number of sessions above this session.
    pub depth: u64,
    /// The session from which this session comes. Absent for the first session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comes_from: Option<ComesFrom>,
    /// True: headers name a cycle, and the cycle is cut above this session, its newest one. Absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<bool>,
}

/// The session from which another one comes.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ComesFrom {
    /// The id of the session.
    pub session_id: String,
    /// How the other session comes from this session.
    pub kind: Kinship,
    /// The entry of this session at which the other session hangs. Absent if unknown. Untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_id: Option<String>,
    /// The call that spawned the other session. Absent if unknown, and if the other session is not a subagent's.
    /// Untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

/// How a session comes from another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Kinship {
    /// The session is a copy of a part of the other one.
    Fork,
    /// The session is that of a subagent.
    Subagent,
    /// An agent goes on with the other session in this session.
    Continuation,
}

/// A session that comes from an entry.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionOfEntry {
    /// The id of the session.
    pub session_id: String,
    /// How the session comes from the entry.
    pub kind: Kinship,
}
