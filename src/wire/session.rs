//! Sessions as a whole: create, open, close, list, delete, name (protocol.md §3).

use super::append::Durability;
use super::params::{AnyObject, Count, Raw, count};
use crate::error::Error;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Makes a new session and opens it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = super::example(r#"{"name": "A tour", "cwd": "/home/ada/project"}"#))]
pub struct CreateSessionParams {
    /// The working directory the session belongs to; the daemon's own if left out.
    pub cwd: Option<String>,
    /// The id of the new session; made by the daemon if left out.
    pub session_id: Option<String>,
    /// Its name, written at once as the first entry; blank is none.
    pub name: Option<String>,
    /// The session it comes from, as its header shall say. Never opened.
    pub parent_session: Option<String>,
    /// Never written to disk; nor are its forks.
    pub ephemeral: Option<bool>,
    /// When the session's file is written. If left out: `first-entry` on a connection that has sent
    /// `initialize`, `now` on any other. Not allowed beside `ephemeral`.
    pub write: Option<FirstWrite>,
    /// What its appends are given, and those of its forks; the daemon's `--durability` if left out.
    pub durability: Option<DurabilityPolicy>,
}

/// When the file of a new session is written. A `sessionId` that is taken is refused with
/// `sessionExists` then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FirstWrite {
    /// Before the answer: the header, and the name if there is one, synced.
    Now,
    /// With the first entry, which the name is if there is one.
    FirstEntry,
}

/// When what is appended to a session is synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DurabilityPolicy {
    /// Left to the system.
    Os,
    /// At most 50 ms after the answer.
    Interval,
    /// Before the answer.
    Always,
}

/// The result of `create_session`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = super::example(r#"{
  "session": {
    "sessionId": "0198c1f0-5e00-7000-8000-000000000002",
    "path": "/home/ada/.treelined/sessions/--home-ada-project--/2026-11-22T05-40-35-824Z_0198c1f0-5e00-7000-8000-000000000002.jsonl",
    "cwd": "/home/ada/project", "name": "A tour", "leafId": "4878310c", "seq": 0, "entryCount": 1,
    "readOnly": false, "multiWriter": true, "version": 3, "created": "2026-11-22T05:40:35.824Z",
    "header": {
      "type": "session", "version": 3, "id": "0198c1f0-5e00-7000-8000-000000000002",
      "timestamp": "2026-11-22T05:40:35.824Z", "cwd": "/home/ada/project"
    }
  },
  "durability": "interval"
}"#))]
pub struct CreateSessionResult {
    /// The new session, open.
    pub session: Session,
    /// `none` if nothing was written yet.
    pub durability: Durability,
}

/// Opens a session by its id or by the path of its file: one of the two.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = super::example(r#"{"sessionId": "0198c1f0-5e00-7000-8000-000000000002"}"#))]
pub struct OpenSessionParams {
    /// A session of the session directory.
    pub session_id: Option<String>,
    /// A session file, wherever it is.
    pub path: Option<String>,
    /// `write` if left out. With `read` all mutations are refused and the leaf follows the file.
    pub mode: Option<OpenMode>,
    /// What its appends are given from now on; if left out, the daemon's `--durability`, or what a
    /// session that is open already has.
    pub durability: Option<DurabilityPolicy>,
}

/// Which session `open_session` means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenTarget<'a> {
    Id(&'a str),
    Path(&'a str),
}

impl OpenSessionParams {
    /// Exactly one of the two members; fails with `invalidParams`.
    pub fn target(&self) -> Result<OpenTarget<'_>, Error> {
        match (self.session_id.as_deref(), self.path.as_deref()) {
            (Some(id), None) => Ok(OpenTarget::Id(id)),
            (None, Some(path)) => Ok(OpenTarget::Path(path)),
            (None, None) => Err(Error::invalid_params(
                "sessionId",
                "sessionId or path is required",
            )),
            (Some(_), Some(_)) => Err(Error::invalid_params(
                "path",
                "stands instead of sessionId, not beside it",
            )),
        }
    }
}

/// What an opened session is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OpenMode {
    #[default]
    Write,
    Read,
}

/// The result of `open_session`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = super::example(r#"{
  "session": {
    "sessionId": "0198c1f0-5e00-7000-8000-000000000002",
    "path": "/home/ada/.treelined/sessions/--home-ada-project--/2026-11-22T05-40-35-824Z_0198c1f0-5e00-7000-8000-000000000002.jsonl",
    "cwd": "/home/ada/project", "name": "The build", "leafId": "6471a9b0", "seq": 0,
    "entryCount": 16, "readOnly": false, "multiWriter": true, "version": 3,
    "created": "2026-11-22T05:40:35.824Z",
    "header": {
      "type": "session", "version": 3, "id": "0198c1f0-5e00-7000-8000-000000000002",
      "timestamp": "2026-11-22T05:40:35.824Z", "cwd": "/home/ada/project"
    }
  },
  "diagnostics": []
}"#))]
pub struct OpenSessionResult {
    /// The session, open.
    pub session: Session,
    /// What was found wrong in the file.
    pub diagnostics: Vec<Diagnostic>,
}

session_params! {
    /// Closes a session; a waiting navigation is aborted.
    #[schemars(example = super::example(r#"{"sessionId": "0198c1f0-5e00-7000-8000-000000000002"}"#))]
    CloseSessionParams {}
}

/// The result of `close_session`.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(example = super::example(r#"{}"#))]
pub struct CloseSessionResult {}

/// Lists the sessions of the session directory.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = super::example(r#"{"limit": 1}"#))]
pub struct ListSessionsParams {
    /// Only sessions of this working directory; all if left out. Repeated and trailing `/`, and `.`, make
    /// no difference; links and `..` are not resolved.
    pub cwd: Option<String>,
    /// True: only sessions with a name; false: only those without.
    pub named: Option<bool>,
    /// All of these words occur in name, first message, working directory or id.
    pub query: Option<String>,
    /// `recent` if left out.
    pub sort: Option<SessionSort>,
    /// Most rows of a page.
    #[serde(default, deserialize_with = "count")]
    #[schemars(with = "Option<Count>")]
    pub limit: Option<u64>,
    /// `nextCursor` of the page before.
    pub cursor: Option<String>,
}

/// The order of a session list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SessionSort {
    /// Last activity first.
    #[default]
    Recent,
    /// Newest first.
    Created,
    /// By name, unnamed ones last.
    Name,
    /// Forks behind the session they come from; families, and forks of one session, by the last activity
    /// in each.
    Threaded,
}

/// The result of `list_sessions`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = super::example(r#"{
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
}"#))]
pub struct ListSessionsResult {
    /// The rows of this page.
    pub sessions: Vec<SessionRow>,
    /// There are more rows: `cursor` of the next page. A page ends at `limit` rows, or before the row that
    /// would not fit the client's `maxFrameBytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Moves the file of a session to the trash folder of the session directory, with the originals that
/// migrations have kept and the quarantine of repairs. If that fails an open session stays open.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = super::example(r#"{"sessionId": "0198c1f0-5e00-7000-8000-000000000002"}"#))]
pub struct DeleteSessionParams {
    /// The session, open or not. Always to be named.
    pub session_id: String,
}

/// The result of `delete_session`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = super::example(r#"{
  "trashedPath": "/home/ada/.treelined/sessions/.trash/2026-11-22T05-40-35-824Z_0198c1f0-5e00-7000-8000-000000000002.jsonl"
}"#))]
pub struct DeleteSessionResult {
    /// Where the file is now; null if the session had none.
    pub trashed_path: Option<String>,
}

/// Lists the deleted sessions, the last one first.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = super::example(r#"{"limit": 1}"#))]
pub struct ListTrashParams {
    /// Only sessions of this working directory; all if left out.
    pub cwd: Option<String>,
    /// Most rows of a page.
    #[serde(default, deserialize_with = "count")]
    #[schemars(with = "Option<Count>")]
    pub limit: Option<u64>,
    /// `nextCursor` of the page before.
    pub cursor: Option<String>,
}

/// The result of `list_trash`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = super::example(r#"{
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
}"#))]
pub struct ListTrashResult {
    /// The rows of this page.
    pub sessions: Vec<TrashedRow>,
    /// There are more rows: `cursor` of the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A deleted session.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrashedRow {
    /// As in `list_sessions`; `path` is where the file goes when it is restored.
    #[serde(flatten)]
    pub row: SessionRow,
    /// Where the file is now.
    pub trashed_path: String,
    /// ISO 8601.
    pub deleted_at: String,
}

/// Moves a deleted session back to the session directory. It is not opened.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = super::example(r#"{"sessionId": "0198c1f0-5e00-7000-8000-000000000002"}"#))]
pub struct RestoreSessionParams {
    /// A session in the trash.
    pub session_id: String,
    /// Which file, where several in the trash have this id; the last one deleted if left out.
    pub trashed_path: Option<String>,
}

/// The result of `restore_session`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = super::example(r#"{
  "sessionId": "0198c1f0-5e00-7000-8000-000000000002",
  "path": "/home/ada/.treelined/sessions/--home-ada-project--/2026-11-22T05-40-35-824Z_0198c1f0-5e00-7000-8000-000000000002.jsonl"
}"#))]
pub struct RestoreSessionResult {
    /// The session.
    pub session_id: String,
    /// Where its file is now.
    pub path: String,
}

mutation_params! {
    /// Names a session by appending a session_info entry.
    #[schemars(example = super::example(r#"{"name": "The build"}"#))]
    SetSessionNameParams {
        /// Stored trimmed, line breaks and control characters as spaces; blank clears the name.
        name: String,
    }
}

/// The result of `set_session_name`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = super::example(r#"{
  "entryId": "6471a9b0", "leafId": "6471a9b0", "durability": "interval"
}"#))]
pub struct SetSessionNameResult {
    /// The session_info entry.
    pub entry_id: String,
    /// The leaf afterwards: the entry.
    pub leaf_id: String,
    /// What the write was given.
    pub durability: Durability,
}

/// An open session.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// The id of the session.
    pub session_id: String,
    /// The session file; left out for ephemeral sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Of the format, as the header says: 1 where it says nothing. Below 3 the first write migrates the file.
    pub version: u64,
    /// The time in the header, ISO 8601; left out if the header has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// The header as it is stored, or will be, with all its members. Untrusted.
    #[schemars(with = "AnyObject")]
    pub header: Raw,
    /// The working directory in the header. Untrusted text.
    pub cwd: String,
    /// Left out if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Null: before the first entry.
    pub leaf_id: Option<String>,
    /// The number of the last notification of this session to this connection.
    pub seq: u64,
    /// Entries, the header and leaf records not counted.
    pub entry_count: u64,
    /// Mutations are refused.
    pub read_only: bool,
    /// Several processes can safely append. False where the file system does not keep locks.
    pub multi_writer: bool,
    /// The session it comes from, as its header says. Untrusted text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<String>,
}

/// A session in a list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionRow {
    /// Empty if the file does not tell.
    pub session_id: String,
    /// The session file.
    pub path: String,
    /// Empty if the file does not tell.
    pub cwd: String,
    /// Left out if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// ISO 8601.
    pub created: String,
    /// When the last message of the user or the assistant was sent, else when the session was created;
    /// ISO 8601.
    pub modified: String,
    /// Messages on all branches.
    pub message_count: u64,
    /// The text of the first user message, shortened; empty if there is none.
    pub first_message: String,
    /// The session it comes from, as its header says. Untrusted text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<String>,
    /// Why the file cannot be opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnostic: Option<RowDiagnostic>,
}

/// Why a session of a list cannot be opened.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RowDiagnostic {
    /// The kind of the error that opening it would answer, such as `headerMissing`.
    pub kind: String,
    /// For people.
    pub message: String,
}

/// Something wrong in a session file, and where.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Diagnostic {
    /// What is wrong.
    pub kind: DiagnosticKind,
    /// From 1.
    pub line: u64,
    /// Bytes from the start of the file.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
}

/// The kind of damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DiagnosticKind {
    /// The file ends inside a line.
    TornTail,
    InvalidJson,
    /// JSON, but no entry.
    NotAnObject,
    /// The entry is kept and read with U+FFFD.
    InvalidUtf8,
    NulBytes,
    /// Several objects on one line; all are recovered.
    GluedLines,
    /// Identical bytes are ignored; else the last line's body and the first one's place hold.
    DuplicateId,
    /// The parent is unknown; the entry is a root until it turns up.
    OrphanParent,
    /// The parent stands later in the file.
    ForwardParent,
    SelfParent,
    /// The parent link would close a cycle; the entry is a root.
    Cycle,
    SecondHeader,
    MissingTrailingNewline,
    OversizedLine,
    /// A sync failed after its appends had been answered.
    DurabilityUnknown,
}
