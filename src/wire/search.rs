//! Searching all sessions: `search` and `search_hit` (protocol.md §3.16).

use super::params::{RequestId, count};
use serde::{Deserialize, Serialize};
pub use treelined_core::search::{BranchFilter as SearchBranches, FieldKind as SearchField};

/// The params of `search`.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "query": "build cache", "in": ["text", "toolResults"], "cwd": "/home/ada/project",
  "since": "2026-11-01", "branches": "abandoned", "limit": 20
}"#)))]
pub struct SearchParams {
    /// The text that the entries must hold, or the question; not empty, unless `syntax` is `filters`.
    pub query: String,
    /// The form of `query`. Default: `plain`.
    pub syntax: Option<SearchSyntax>,
    /// How `query` is understood. Default: `words`.
    pub mode: Option<SessionSearchMode>,
    /// The fields that are searched. Default: all.
    #[serde(rename = "in")]
    pub fields: Option<Vec<SearchField>>,
    /// Only sessions of this working directory and of those below it. Default: all sessions.
    pub cwd: Option<String>,
    /// Only the session with this id. Default: all sessions.
    pub session_id: Option<String>,
    /// Only entries that call this tool, and its results. Default: all entries.
    pub tool: Option<String>,
    /// Only entries imported from this program. Default: all entries.
    pub source: Option<String>,
    /// Only messages of this role. Default: all entries.
    pub role: Option<String>,
    /// Only entries of this type or custom type. Default: all entries.
    #[serde(rename = "type")]
    pub entry_type: Option<String>,
    /// Words and phrases. Entries whose own fields have one of them are left out. Default: none.
    pub without: Option<String>,
    /// The directory in which a relative `cwd:` of `query` begins. Default: none, and a relative one is refused.
    pub directory: Option<String>,
    /// Only entries of this time or later: `2026-11-22T08:16:21Z`, `2026-11-22` (UTC), or an age such as `2w`. Default: no limit.
    pub since: Option<String>,
    /// Only entries before this time, as `since`. Default: no limit.
    pub until: Option<String>,
    /// The branches that are searched. Default: `all`.
    pub branches: Option<SearchBranches>,
    /// Whether archived branches are searched. Default: false.
    pub archived: Option<bool>,
    /// Whether secrets are replaced before the text is compared, so that no search tells a secret. Not with the mode `ask`.
    /// Default: true on a connection that redacts, else false.
    pub redact: Option<bool>,
    /// The most hits of the page, at most 1,000. Default: 50.
    #[serde(default, deserialize_with = "count")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
    pub limit: Option<u64>,
    /// The `nextCursor` of the previous page. Default: the first page.
    pub cursor: Option<String>,
    /// With the mode `ask`, the milliseconds in which sessions that the index lacks may be read. Default: all are read.
    #[serde(default, deserialize_with = "count")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
    pub read_ms: Option<u64>,
    /// True: the sessions of the whole team, and not of this machine. Only with the mode `ask`. Default: false.
    #[serde(default)]
    pub team: bool,
}

/// How a search of all sessions understands its query.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SessionSearchMode {
    /// All words occur in the entry, whatever their case; `"…"` is one word.
    #[default]
    Words,
    /// The text occurs in one field of the entry exactly.
    Literal,
    /// The regular expression matches in one field; `^` and `$` match at line ends.
    Regex,
    /// The best entries for a question, ranked: not every word must occur.
    Ask,
}

/// The form of the `query` of a search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum SearchSyntax {
    /// The text as `mode` says.
    #[default]
    Plain,
    /// The language of filters: `role:user since:2w "a phrase" -word /pattern/`.
    Filters,
}

/// The result of `search`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "hits": [
    {
      "sessionId": "tour", "sessionName": "A tour", "entryId": "u1", "field": "text",
      "at": "2026-11-22T08:16:21.595Z", "snippet": "Why does the build fail?",
      "ranges": [[13, 18]], "score": 4.0, "branch": {"tipId": "u2", "onActivePath": true}
    }
  ],
  "totals": {"sessions": 1, "entries": 3, "scannedBytes": 5120},
  "nextCursor": "4:1795335381595:0:/home/ada/sessions/tour.jsonl"
}"#)))]
pub struct SearchResult {
    /// The hits of the page: by score, the newest first among equals.
    pub hits: Vec<SearchHit>,
    /// Sessions of these hits that have more entries with words of the question. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<MoreHits>,
    /// Words of the question that no entry has, with near ones; and if there is no hit, filters whose values nothing has.
    /// Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub did_you_mean: Vec<NearWords>,
    /// Sums over all pages.
    pub totals: SearchTotals,
    /// The `cursor` of the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Files that could not be searched. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub partial: Vec<UnsearchedFile>,
}

/// Entries of a session that are not among the hits.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MoreHits {
    /// The id of the session.
    pub session_id: String,
    /// The number of entries.
    pub count: u64,
}

/// A word or a filter that no entry has, and known ones.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NearWords {
    /// The word of the question, or the filter as a query has it, such as `tool:bsh`.
    pub word: String,
    /// Known words that differ from it by at most two letters, the nearest first; at most 3. The first one is a pair of
    /// known words with a blank between them if the word consists of these. For a filter: the filter with similar values,
    /// else with those of most sessions; at most 8.
    pub near: Vec<String>,
    /// The word of `near` whose entries are hits in place of the word of the question. Absent if no word of `near`
    /// begins with the same letter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken: Option<String>,
}

/// An entry that matches.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// Words of the question that the snippet has only as parts of other words. Only in the mode `ask`; absent if there are
    /// none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inside: Vec<String>,
    /// The higher, the earlier the hit comes: the weight of the field, or for a question a number that only compares
    /// with those of the same answer.
    pub score: f64,
    /// The branch of the entry.
    pub branch: HitBranch,
    /// The user of the team's database who wrote the entry. Only with `team`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
}

/// The branch of an entry.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HitBranch {
    /// The tip of the branch: on the active path the leaf, else the last tip below the entry.
    pub tip_id: String,
    /// Whether the entry is on the path to the leaf.
    pub on_active_path: bool,
    /// The deepest entry above that is on the path to the leaf. Absent on the path, and if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_at: Option<String>,
    /// Why the branch was left, if the reason is known. Only in the mode `ask`, and off the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<LeftReason>,
    /// The first message of the path to the leaf after `leftAt`: what was tried instead. Only in the mode `ask`, and
    /// off the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instead: Option<SaidText>,
    /// The branches that were left in the turn of the entry. Only in the mode `ask`, and on the path; absent if there are
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_in_turn: Option<LeftInTurn>,
}

/// The branches that were left in the turn of an entry.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LeftInTurn {
    /// The number of these branches.
    pub count: u64,
    /// The newest ones first, at most 3.
    pub newest: Vec<LeftAttempt>,
}

/// A branch that was left in the turn of an entry.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LeftAttempt {
    /// The tip of the branch.
    pub tip_id: String,
    /// The time of the tip. Absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Why the branch was left, if the reason is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<LeftReason>,
    /// The last text of the user or the assistant on the branch. Absent if its last 8 messages have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<SaidText>,
}

/// The reason why a branch was left.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LeftReason {
    /// Where the reason stands.
    pub kind: LeftReasonKind,
    /// The id of the note, of the label entry, or of the summary.
    pub entry_id: String,
    /// The text of the reason on one line, at most 200 characters.
    pub text: String,
}

/// Where the reason stands why a branch was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum LeftReasonKind {
    /// A note about an entry of the branch.
    Note,
    /// A label of an entry of the branch.
    Label,
    /// The summary of the branch.
    Summary,
}

/// The beginning of what an entry says.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SaidText {
    /// The id of the entry.
    pub entry_id: String,
    /// Its text on one line, at most 200 characters.
    pub text: String,
}

/// Sums over all pages of a search.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// The number of sessions of which something was not read within `readMs`. Absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<u64>,
    /// The number of searched sessions that have shed branches, which are not searched. Absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shed_sessions: Option<u64>,
}

/// A file that could not be searched.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UnsearchedFile {
    /// The path of the file.
    pub path: String,
    /// The kind of the error.
    pub kind: String,
}

/// The params of `search_hit`. It has neither `sessionId` nor `seq`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "token": 12,
  "hit": {
    "sessionId": "tour", "sessionName": "A tour", "entryId": "u1", "field": "text",
    "at": "2026-11-22T08:16:21.595Z", "snippet": "Why does the build fail?",
    "ranges": [[13, 18]], "score": 4.0, "branch": {"tipId": "u2", "onActivePath": true}
  }
}"#)))]
pub struct FoundHit {
    /// The id of the request.
    pub token: RequestId,
    /// A hit that is among the best so far.
    pub hit: SearchHit,
}

/// The params of `complete_query`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"query": "cache ro", "position": 8}"#)))]
pub struct CompleteQueryParams {
    /// A text in the language of filters.
    pub query: String,
    /// The number of Unicode code points before the cursor. Default: the end of the text.
    #[serde(default, deserialize_with = "count")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
    pub position: Option<u64>,
}

/// The result of `complete_query`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "start": 6, "end": 8, "items": [{"text": "role:", "about": "messages of this role"}]
}"#)))]
pub struct CompleteQueryResult {
    /// The beginning of the part that an item replaces, in Unicode code points.
    pub start: u64,
    /// Its end (exclusive): the cursor.
    pub end: u64,
    /// The texts that may stand there; empty if none is known.
    pub items: Vec<QueryCompletion>,
}

/// A text that may stand in a query.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct QueryCompletion {
    /// A filter with its colon, or a value.
    pub text: String,
    /// A few words about a filter. Absent for a value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
}
