//! Searching all sessions: `search` and `search_hit` (protocol.md §3.16).

use super::params::{Count, RequestId, count};
use super::tree::SearchMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use treelined_core::search::FieldKind as SearchField;

/// The params of `search`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = super::examples::example(r#"{
  "query": "build cache", "in": ["text", "toolResults"], "cwd": "/home/ada/project",
  "since": "2026-11-01", "branches": "abandoned", "limit": 20
}"#))]
pub struct SearchParams {
    /// The text that the entries must hold; not empty.
    pub query: String,
    /// How `query` is understood. Default: `words`.
    pub mode: Option<SearchMode>,
    /// The fields that are searched. Default: all.
    #[serde(rename = "in")]
    pub fields: Option<Vec<SearchField>>,
    /// Only sessions of this working directory and of those below it. Default: all sessions.
    pub cwd: Option<String>,
    /// Only entries that call this tool, and its results. Default: all entries.
    pub tool: Option<String>,
    /// Only entries imported from this program. Default: all entries.
    pub source: Option<String>,
    /// Only messages of this role. Default: all entries.
    pub role: Option<String>,
    /// Only entries of this time or later, as `2026-11-22T08:16:21Z` or `2026-11-22` (UTC). Default: no limit.
    pub since: Option<String>,
    /// Only entries before this time, as `since`. Default: no limit.
    pub until: Option<String>,
    /// The branches that are searched. Default: `all`.
    pub branches: Option<SearchBranches>,
    /// The most hits of the page, at most 1,000. Default: 50.
    #[serde(default, deserialize_with = "count")]
    #[schemars(with = "Option<Count>")]
    pub limit: Option<u64>,
    /// The `nextCursor` of the previous page. Default: the first page.
    pub cursor: Option<String>,
}

/// The branches that a search takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SearchBranches {
    /// All entries.
    #[default]
    All,
    /// Entries on the path to the leaf.
    Active,
    /// Entries that are not on the path to the leaf.
    Abandoned,
}

/// The result of `search`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = super::examples::example(r#"{
  "hits": [
    {
      "sessionId": "tour", "sessionName": "A tour", "entryId": "u1", "field": "text",
      "at": "2026-11-22T08:16:21.595Z", "snippet": "Why does the build fail?",
      "ranges": [[13, 18]], "score": 4.0, "branch": {"tipId": "u2", "onActivePath": true}
    }
  ],
  "totals": {"sessions": 1, "entries": 3, "scannedBytes": 5120},
  "nextCursor": "4:1795335381595:0:/home/ada/sessions/tour.jsonl"
}"#))]
pub struct SearchResult {
    /// The hits of the page: by score, the newest first among equals.
    pub hits: Vec<SearchHit>,
    /// Sums over all pages.
    pub totals: SearchTotals,
    /// The `cursor` of the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Files that could not be searched. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub partial: Vec<UnsearchedFile>,
}

/// An entry that matches.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchHit {
    /// The id of the session.
    pub session_id: String,
    /// The name of the session, else its first message, at most 200 characters; empty if it has neither.
    pub session_name: String,
    /// The id of the entry.
    pub entry_id: String,
    /// The kind of the field that `snippet` is of.
    pub field: SearchField,
    /// The time of the entry; that of its session if it has none.
    pub at: String,
    /// A part of the field on one line, at most 200 characters.
    pub snippet: String,
    /// The matches in `snippet`: start and end (exclusive) in Unicode code points; at most 16.
    pub ranges: Vec<[u64; 2]>,
    /// The weight of the field: the higher, the earlier the hit comes.
    pub score: f64,
    /// The branch of the entry.
    pub branch: HitBranch,
}

/// The branch of an entry.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HitBranch {
    /// The tip of the branch: on the active path the leaf, else the last tip below the entry.
    pub tip_id: String,
    /// Whether the entry is on the path to the leaf.
    pub on_active_path: bool,
    /// The deepest entry above that is on the path to the leaf. Absent on the path, and if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_at: Option<String>,
}

/// Sums over all pages of a search.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchTotals {
    /// The number of sessions with a hit.
    pub sessions: u64,
    /// The number of hits.
    pub entries: u64,
    /// The number of bytes of session files that were searched.
    pub scanned_bytes: u64,
    /// Whether there may be more sessions and hits, since the search ended once the page was certain. Absent if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
}

/// A file that could not be searched.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnsearchedFile {
    /// The path of the file.
    pub path: String,
    /// The kind of the error.
    pub kind: String,
}

/// The params of `search_hit`. It has neither `sessionId` nor `seq`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = super::examples::example(r#"{
  "token": 12,
  "hit": {
    "sessionId": "tour", "sessionName": "A tour", "entryId": "u1", "field": "text",
    "at": "2026-11-22T08:16:21.595Z", "snippet": "Why does the build fail?",
    "ranges": [[13, 18]], "score": 4.0, "branch": {"tipId": "u2", "onActivePath": true}
  }
}"#))]
pub struct FoundHit {
    /// The id of the request.
    pub token: RequestId,
    /// A hit that is among the best so far.
    pub hit: SearchHit,
}
