//! Sessions as a whole: create, open, close, list, delete, name (protocol.md §3).

use super::append::Durability;
use super::params::{Raw, count};
use super::sorting::GitPlace;
pub use super::spawned_by::SpawnedBy;
use super::team::{SessionInLog, TeamSessionRow};
use serde::{Deserialize, Serialize};
pub use treelined_core::durability::DurabilityPolicy;

/// The params of `create_session`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"name": "A tour", "cwd": "/home/ada/project"}"#)))]
pub struct CreateSessionParams {
    /// The working directory of the session. Default: that of the daemon.
    pub cwd: Option<String>,
    /// The id of the new session. Default: the daemon chooses one.
    pub session_id: Option<String>,
    /// The name of the session, appended at once as the first entry; a blank one is none. Default: none.
    pub name: Option<String>,
    /// The session that this one comes from, for the header. The daemon does not open it. Default: none.
    pub parent_session: Option<String>,
    /// The call of another session that spawns this one, for the header. The daemon does not open that session. Default:
    /// none.
    pub spawned_by: Option<SpawnedBy>,
    /// The place of the session in git, written at once. Default: none.
    pub git: Option<GitPlace>,
    /// Whether to keep the session and its forks in memory only. Default: false.
    pub ephemeral: Option<bool>,
    /// When to write the file; refused together with `ephemeral`. Default: `first-entry` on a connection that
    /// has sent `initialize`, else `now`.
    pub write: Option<FirstWrite>,
    /// When appends are synced, in this session and its forks. Default: the daemon's `--durability`.
    pub durability: Option<DurabilityPolicy>,
}

/// When the file of a new session is written. A `sessionId` that is taken is refused with `sessionExists` at
/// that time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FirstWrite {
    /// Before the response: the header, and the name if there is one, synced.
    Now,
    /// With the first entry; a name is the first entry.
    FirstEntry,
}

/// The result of `create_session`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "session": {
    "sessionId": "0198c1f0-5e00-7000-8000-000000000002",
    "path": "/home/ada/.treelined/sessions/--home-ada-project--/2026-11-22T05-40-35-824Z_0198c1f0-5e00-7000-8000-000000000002.jsonl",
    "cwd": "/home/ada/project", "name": "A tour", "firstMessage": "", "leafId": "4878310c", "seq": 0, "entryCount": 1,
    "readOnly": false, "multiWriter": true, "version": 3, "created": "2026-11-22T05:40:35.824Z",
    "header": {
      "type": "session", "version": 3, "id": "0198c1f0-5e00-7000-8000-000000000002",
      "timestamp": "2026-11-22T05:40:35.824Z", "cwd": "/home/ada/project"
    }
  },
  "durability": "interval"
}"#)))]
pub struct CreateSessionResult {
    /// The new session, which is open.
    pub session: Session,
    /// How safe the write is at the time of the response; `none` if nothing is written yet.
    pub durability: Durability,
}

/// The params of `open_session`. Exactly one of `sessionId` and `path` is given. A session that is open
/// already is returned as it is.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"sessionId": "0198c1f0-5e00-7000-8000-000000000002"}"#)))]
pub struct OpenSessionParams {
    /// The id of a session in the session directory. Default: none, with `path`.
    pub session_id: Option<String>,
    /// The path of a session file, inside the session directory or not. Default: none, with `sessionId`.
    pub path: Option<String>,
    /// Whether the session may be changed. Default: `write`.
    pub mode: Option<OpenMode>,
    /// When appends are synced from now on. Default: as before if the session is open, else the daemon's
    /// `--durability`.
    pub durability: Option<DurabilityPolicy>,
}

/// Whether an opened session may be changed. In `read` mode every change is refused, and the leaf follows the
/// file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum OpenMode {
    #[default]
    Write,
    Read,
}

/// The result of `open_session`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "session": {
    "sessionId": "0198c1f0-5e00-7000-8000-000000000002",
    "path": "/home/ada/.treelined/sessions/--home-ada-project--/2026-11-22T05-40-35-824Z_0198c1f0-5e00-7000-8000-000000000002.jsonl",
    "cwd": "/home/ada/project", "name": "The build", "firstMessage": "Why does the build fail?", "leafId": "6471a9b0", "seq": 0,
    "entryCount": 16, "readOnly": false, "multiWriter": true, "version": 3,
    "created": "2026-11-22T05:40:35.824Z",
    "header": {
      "type": "session", "version": 3, "id": "0198c1f0-5e00-7000-8000-000000000002",
      "timestamp": "2026-11-22T05:40:35.824Z", "cwd": "/home/ada/project"
    }
  },
  "diagnostics": []
}"#)))]
pub struct OpenSessionResult {
    /// The session, which is open.
    pub session: Session,
    /// The damage that was found in the file.
    pub diagnostics: Vec<Diagnostic>,
}

session_params! {
    /// The params of `close_session`. A navigation that waits is aborted.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"sessionId": "0198c1f0-5e00-7000-8000-000000000002"}"#)))]
    CloseSessionParams {}
}

/// The result of `close_session`.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{}"#)))]
pub struct CloseSessionResult {}

/// The params of `list_sessions`.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"limit": 1}"#)))]
pub struct ListSessionsParams {
    /// Only sessions of this working directory. Repeated and trailing `/`, and `.`, make no difference; links
    /// and `..` are not resolved. Default: all sessions.
    pub cwd: Option<String>,
    /// True: only sessions with a name; false: only those without. Default: both.
    pub named: Option<bool>,
    /// Only the sessions of subagents that this session spawned, by its id. Default: all sessions.
    pub spawned_by: Option<String>,
    /// Only the sessions imported from this tool, by the name that `import_sessions` has for it. Default: all sessions.
    pub source: Option<String>,
    /// Only sessions that have all of these tags. Default: all sessions.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Only pinned sessions (true), or only others (false). Default: both.
    pub pinned: Option<bool>,
    /// Whether archived sessions are listed too. Default: false.
    pub archived: Option<bool>,
    /// Only the sessions on this git branch. Default: all sessions.
    pub branch: Option<String>,
    /// Words that all occur in the name, the first message, the working directory, the id, the ids of the tool from
    /// which the session was imported, the git branch or the tags, those with `#`. Default: none.
    pub query: Option<String>,
    /// The order of the rows. Default: `recent`.
    pub sort: Option<SessionSort>,
    /// The most rows of the page. Default: no limit.
    #[serde(default, deserialize_with = "count")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
    pub limit: Option<u64>,
    /// The `nextCursor` of the previous page. Default: the first page.
    pub cursor: Option<String>,
    /// The `nextTeamCursor` of the previous page: the answer has no rows of files, and the next rows of `team`.
    /// Default: the first rows.
    pub team_cursor: Option<String>,
    /// True: only the files of this machine, without anything of the team. Default: false.
    #[serde(default)]
    pub local: bool,
}

/// The order of a list of sessions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SessionSort {
    /// By the last activity, newest first.
    #[default]
    Recent,
    /// By creation, newest first.
    Created,
    /// By name; unnamed sessions come last.
    Name,
    /// Pinned sessions first, each part by the last activity.
    Pinned,
    /// Forks follow the session that they come from; families, and forks of one session, are in the order of
    /// their last activity.
    Threaded,
}

/// The result of `list_sessions`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "sessions": [
    {
      "sessionId": "0198c1f0-5e00-7000-8000-000000000002",
      "path": "/home/ada/.treelined/sessions/--home-ada-project--/2026-11-22T05-40-35-824Z_0198c1f0-5e00-7000-8000-000000000002.jsonl",
      "cwd": "/home/ada/project", "name": "The build", "created": "2026-11-22T05:40:35.824Z",
      "modified": "2026-11-22T05:40:35.854Z", "messageCount": 6,
      "firstMessage": "Why does the build fail?"
    }
  ],
  "nextCursor": "/home/ada/.treelined/sessions/--home-ada-project--/2026-11-22T05-40-35-824Z_0198c1f0-5e00-7000-8000-000000000002.jsonl"
}"#)))]
pub struct ListSessionsResult {
    /// The rows of the page.
    pub sessions: Vec<SessionRow>,
    /// The `cursor` of the next page. Absent on the last page. A page ends at `limit` rows, or before the row
    /// that would exceed the client's `maxFrameBytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The archived sessions that fit the params and are left out. Only on the first page; absent without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived_count: Option<u64>,
    /// The sessions of the team that have no file here, the last active first. Only on the first page, from a daemon
    /// with a team.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team: Option<Vec<TeamSessionRow>>,
    /// The sessions of the team that have no file here and fit the params, shown or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team_count: Option<u64>,
    /// True: there are more than `teamCount`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team_at_least: Option<bool>,
    /// The `teamCursor` of the next page. Absent if no more rows of `team` follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_team_cursor: Option<String>,
    /// Why `team` or the members `openOn` may lack something: the servers, or params that rows of `team` cannot answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team_diagnostic: Option<RowDiagnostic>,
}

/// The params of `delete_session`. The originals that migrations have kept and the quarantine of repairs move
/// too. If the move fails, an open session stays open.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"sessionId": "0198c1f0-5e00-7000-8000-000000000002"}"#)))]
pub struct DeleteSessionParams {
    /// The id of the session, open or not. It is always required.
    pub session_id: String,
}

/// The result of `delete_session`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "trashedPath": "/home/ada/.treelined/sessions/.trash/2026-11-22T05-40-35-824Z_0198c1f0-5e00-7000-8000-000000000002.jsonl"
}"#)))]
pub struct DeleteSessionResult {
    /// The path of the file in the trash; null if the session had no file.
    pub trashed_path: Option<String>,
}

/// The params of `list_trash`. The session that was deleted last comes first.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"limit": 1}"#)))]
pub struct ListTrashParams {
    /// Only sessions of this working directory. Default: all sessions.
    pub cwd: Option<String>,
    /// The most rows of the page. Default: no limit.
    #[serde(default, deserialize_with = "count")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
    pub limit: Option<u64>,
    /// The `nextCursor` of the previous page. Default: the first page.
    pub cursor: Option<String>,
}

/// The result of `list_trash`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "sessions": [
    {
      "sessionId": "0198c1f0-5e00-7000-8000-000000000002",
      "path": "/home/ada/.treelined/sessions/--home-ada-project--/2026-11-22T05-40-35-824Z_0198c1f0-5e00-7000-8000-000000000002.jsonl",
      "cwd": "/home/ada/project", "created": "2026-11-22T05:40:35.824Z",
      "modified": "2026-11-22T05:52:11.030Z", "messageCount": 2,
      "firstMessage": "Why does the build fail?",
      "trashedPath": "/home/ada/.treelined/sessions/.trash/2026-11-22T05-40-35-824Z_0198c1f0-5e00-7000-8000-000000000002.jsonl",
      "deletedAt": "2026-11-22T06:01:44.517Z"
    }
  ]
}"#)))]
pub struct ListTrashResult {
    /// The rows of the page.
    pub sessions: Vec<TrashedRow>,
    /// The `cursor` of the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A deleted session.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TrashedRow {
    /// The row as in `list_sessions`; `path` is where the file goes when it is restored.
    #[serde(flatten)]
    pub row: SessionRow,
    /// The path of the file in the trash.
    pub trashed_path: String,
    /// When the session was deleted, in ISO 8601.
    pub deleted_at: String,
    /// How many entries only this file has: they waited for the team's stream when another machine had deleted the
    /// session. Absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
    pub lost: Option<u64>,
}

/// The params of `restore_session`. The session is not opened.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"sessionId": "0198c1f0-5e00-7000-8000-000000000002"}"#)))]
pub struct RestoreSessionParams {
    /// The id of a session in the trash.
    pub session_id: String,
    /// The path of the file in the trash, if several have this id. Default: the one that was deleted last.
    pub trashed_path: Option<String>,
}

/// The result of `restore_session`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "sessionId": "0198c1f0-5e00-7000-8000-000000000002",
  "path": "/home/ada/.treelined/sessions/--home-ada-project--/2026-11-22T05-40-35-824Z_0198c1f0-5e00-7000-8000-000000000002.jsonl"
}"#)))]
pub struct RestoreSessionResult {
    /// The id of the session.
    pub session_id: String,
    /// The path of its file.
    pub path: String,
}

mutation_params! {
    /// The params of `set_session_name`. The name is a new session_info entry at the leaf.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"name": "The build"}"#)))]
    SetSessionNameParams {
        /// The name. It is stored trimmed, with line breaks and control characters as spaces; a blank one
        /// clears the name.
        name: String,
    }
}

/// The result of `set_session_name`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "entryId": "6471a9b0", "leafId": "6471a9b0", "durability": "interval"
}"#)))]
pub struct SetSessionNameResult {
    /// The id of the session_info entry.
    pub entry_id: String,
    /// The leaf after the append: the session_info entry.
    pub leaf_id: String,
    /// How safe the write is at the time of the response.
    pub durability: Durability,
}

/// An open session.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// The id of the session.
    pub session_id: String,
    /// The path of the session file. Absent for an ephemeral session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The version of the file format in the header: 1 if the header has none, null if it is not a whole number
    /// up to 2^53. Below 3, the first write migrates the file.
    pub version: Option<u64>,
    /// The time in the header, in ISO 8601. Absent if the header has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// The header as it is or will be stored, with all its members. Untrusted.
    #[cfg_attr(feature = "schema", schemars(with = "crate::params::AnyObject"))]
    pub header: Raw,
    /// The working directory in the header. Untrusted text.
    pub cwd: String,
    /// The name. Absent if the session has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The first message of the user, as its row in the tree shows it; empty without one.
    pub first_message: String,
    /// The leaf; null at the empty position.
    pub leaf_id: Option<String>,
    /// The number of the last notification about this session to this connection.
    pub seq: u64,
    /// The number of entries, without the header and leaf records.
    pub entry_count: u64,
    /// True if changes are refused.
    pub read_only: bool,
    /// True if several processes can append safely. False on a file system that does not keep locks.
    pub multi_writer: bool,
    /// The session that this one comes from, as the header says. Untrusted text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<String>,
    /// True: entries of the file wait for the team's stream. Absent if none do, and from a daemon without a team.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued: Option<bool>,
}

/// A session of an agent that goes on from a place of a session.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AgentSession {
    /// The agent's own id of its session.
    pub native_id: String,
    /// The last entry that was handed over, or the entry `acp.session` at which the record begins.
    pub entry_id: String,
    /// The agent to which a path was handed over, by the name that `import_sessions` has for it. Absent for a record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

/// A session in a list.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionRow {
    /// The id of the session; empty if the file has none.
    pub session_id: String,
    /// The path of the session file.
    pub path: String,
    /// The working directory; empty if the file has none.
    pub cwd: String,
    /// The name. Absent if the session has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// When the session was created, in ISO 8601.
    pub created: String,
    /// When the last message of the user or the assistant was sent, or when the session was created if there
    /// is none; in ISO 8601.
    pub modified: String,
    /// The number of messages on all branches.
    pub message_count: u64,
    /// The first message of the user, as its row in the tree shows it; empty without one.
    pub first_message: String,
    /// The tool from which the session was imported, by the name that `import_sessions` has for it. Absent for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The ids that the tool gave the conversations in it, at most 64. Absent for a session that was not imported.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub native_ids: Vec<String>,
    /// The ids of the other sessions of the same conversation, at most 64: for an import the session that recorded the
    /// conversation, and the reverse. Absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub same_conversation: Vec<String>,
    /// The sessions of agents that go on from places of this session: those to which a path was handed over, then those
    /// that a recorder writes down in this session. Of all of them the last 64. Absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agent_sessions: Vec<AgentSession>,
    /// The session that this one comes from, as the header says. Untrusted text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<String>,
    /// The call that spawned this session, if it is a subagent's, as the header says. Untrusted text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spawned_by: Option<SpawnedBy>,
    /// The tags of the session, in alphabetical order. Absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// True: pinned on this machine. Absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
    /// True: archived on this machine. Absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
    /// The place of the session in git, as its newest record says. Absent if unknown. Untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<GitPlace>,
    /// The sessions that come from this one: forks and subagents. Absent without any, and from `sessions_changed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children: Option<u64>,
    /// Why the file cannot be opened. Absent if it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnostic: Option<RowDiagnostic>,
    /// The session's place in the team's stream. Absent if it is not there, and from a daemon without a team.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<SessionInLog>,
    /// True: entries of the file wait for the team's stream, in a session that the daemon has or had open. Absent if none do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued: Option<bool>,
}

/// Why a session of a list cannot be opened.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RowDiagnostic {
    /// The kind of the error that opening would answer, such as `headerMissing`.
    pub kind: String,
    /// A sentence for people.
    pub message: String,
}

/// A finding about a session file, and its place. The place is 0 for findings about the whole file.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Diagnostic {
    /// The kind of the finding.
    pub kind: DiagnosticKind,
    /// The number of the line, from 1.
    pub line: u64,
    /// The offset in bytes from the start of the file.
    pub offset: u64,
    /// The length in bytes.
    pub length: u64,
    /// Of `leafBesideNewest`: the tip of the branch with the newest entries. Of `backgroundCut`: the last entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest_tip_id: Option<String>,
    /// Of `leafBesideNewest`: the timestamp of the entry at which the file opens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Of `leafBesideNewest`: the custom type of that entry, which names the plugin that wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Of `leafBesideNewest`: the number of user messages that only the branch with the newest entries has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newer_turns: Option<u64>,
}

impl Diagnostic {
    /// A finding about the whole file.
    pub fn of_file(kind: DiagnosticKind) -> Self {
        Self {
            kind,
            line: 0,
            offset: 0,
            length: 0,
            newest_tip_id: None,
            at: None,
            by: None,
            newer_turns: None,
        }
    }
}

/// The kind of a finding about a session file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum DiagnosticKind {
    /// The file ends inside a line.
    TornTail,
    InvalidJson,
    /// The line is JSON, but not an entry.
    NotAnObject,
    /// The line has invalid UTF-8; the entry is kept and read with U+FFFD.
    InvalidUtf8,
    NulBytes,
    /// The line has several objects; all of them are recovered.
    GluedLines,
    /// Several lines have the same id. Equal lines are ignored; otherwise the body of the last line and the
    /// place of the first count.
    DuplicateId,
    /// The parent is unknown; the entry is a root until the parent appears.
    OrphanParent,
    /// The parent comes later in the file.
    ForwardParent,
    SelfParent,
    /// The link to the parent would close a cycle; the entry is a root.
    Cycle,
    SecondHeader,
    MissingTrailingNewline,
    OversizedLine,
    /// A sync failed after the response to its appends.
    DurabilityUnknown,
    /// The file opens on another branch than that of its newest entries, and nobody went there.
    LeafBesideNewest,
    /// The last write, in the background, was cut off: other programs open the file at its last entry.
    BackgroundCut,
    /// The team's stream has lost lines that the file has: appends fail until it has them again (fleet.md).
    LogRewound,
}
