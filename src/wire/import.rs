//! Importing the conversations of other tools (protocol.md §3).

use super::params::Raw;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use treelined_core::agent::Tool;
use treelined_core::each_tool;

/// The params of `import_sessions`.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"from": "codex", "since": "2026-01-01"}"#)))]
pub struct ImportSessionsParams {
    /// The tool whose conversations are imported. Default: `auto`.
    pub from: Option<ImportFrom>,
    /// Files and folders to import. Default: the places where the tools keep their sessions.
    pub paths: Option<Vec<String>>,
    /// Only conversations of this working directory. Default: all.
    pub cwd: Option<String>,
    /// Only conversations with activity since this time: `2026-11-22T08:16:21Z`, `2026-11-22` (UTC), or an age such as
    /// `2w`. Default: all.
    pub since: Option<String>,
    /// Whether to write nothing and only report. Default: false.
    pub dry_run: Option<bool>,
    /// Whether forks become separate sessions, with the prefix copied, not branches. Default: false.
    pub split: Option<bool>,
    /// Whether to import the end of a conversation that may still grow. Default: false, for files that have
    /// changed in the last 10 minutes.
    #[serde(rename = "final")]
    pub is_final: Option<bool>,
    /// Whether to import also the sources that would become more than the limits allow. Default: false: such a source is
    /// left out, and `files` has it with the error `importTooLarge`.
    pub large: Option<bool>,
    /// Whether this import and all later ones into the session directory replace secrets and keep no bytes of their
    /// sources. Default: as the import before, and false for the first one.
    pub redact: Option<bool>,
    /// The id of a session that the import writes anew. The old file of the session goes to the trash. A deleted session
    /// is imported again. Default: none: deleted sessions stay deleted.
    pub again: Option<String>,
}

macro_rules! import_from {
    ($([$($tool:ident = $name:literal,)+])+) => {
        /// The tool that an import reads.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum ImportFrom {
            /// Every tool, each file by its content.
            #[default]
            #[serde(rename = "auto")]
            Auto,
            $($(#[serde(rename = $name)] $tool,)+)+
        }

        impl ImportFrom {
            /// The tool; `None` for every tool.
            pub fn tool(self) -> Option<Tool> {
                match self {
                    Self::Auto => None,
                    $($(Self::$tool => Some(Tool::$tool),)+)+
                }
            }
        }
    };
}
each_tool!(import_from);

/// The result of `import_sessions`.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "sessions": [
    {
      "tool": "codex", "nativeId": "01a20124-4777-7de2-915b-ef7ddcee9bbf",
      "sessionId": "2d3a9c1e-9be0-8b43-a7c4-52d8a1f6c301",
      "path": "/home/ada/.treelined/sessions/--home-ada-project--/2026-11-22T02-44-44-000Z_2d3a9c1e-9be0-8b43-a7c4-52d8a1f6c301.jsonl",
      "cwd": "/home/ada/project", "name": "The build", "created": true, "entriesAdded": 31, "branches": 2,
      "recovered": 1, "gaps": 0, "duplicates": 0, "revised": 0, "held": 0, "subagents": 0
    }
  ],
  "files": [
    {
      "tool": "codex", "path": "/home/ada/.codex/sessions/2026/11/22/rollout-2026-11-22T02-44-44-01a20124.jsonl",
      "records": 58, "entries": 31, "originOnly": {"event_msg/token_count": 9}, "gaps": 0, "duplicates": 0,
      "unparsable": []
    }
  ],
  "totals": {
    "sessions": 1, "created": 1, "files": 1, "unchanged": 0, "failed": 0, "entriesAdded": 31, "branches": 2,
    "recovered": 1, "gaps": 0, "duplicates": 0, "revised": 0, "held": 0, "bytes": 181204
  }
}"#)))]
pub struct ImportSessionsResult {
    /// The sessions of all conversations that were found.
    pub sessions: Vec<ImportedSession>,
    /// The files that were read, and those that could not be read. Files that have not changed since the last
    /// import are left out.
    pub files: Vec<ImportedFile>,
    /// Sums.
    pub totals: ImportTotals,
    /// The places where the import looked. Present only if the import found nothing and had no `paths`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub places: Option<Vec<ImportPlace>>,
}

/// A place where a tool keeps its conversations.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImportPlace {
    /// The tool.
    pub tool: String,
    /// The absolute path of the folder or database.
    pub path: String,
    /// Whether the folder or database exists.
    pub exists: bool,
    /// The environment variables that say where it is.
    pub variables: Vec<String>,
}

/// One session of an import.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImportedSession {
    /// The tool that wrote it.
    pub tool: String,
    /// The tool's id of the conversation. A session of several conversations has the id of the first one.
    pub native_id: String,
    /// The id of the session.
    pub session_id: String,
    /// The absolute path of its file.
    pub path: String,
    /// Its working directory.
    pub cwd: String,
    /// Its name. Absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether this import made the session.
    pub created: bool,
    /// The number of entries that this import added.
    pub entries_added: u64,
    /// The number of branches beside the first one.
    pub branches: u64,
    /// The number of branches that the tool no longer shows.
    pub recovered: u64,
    /// The number of places where a parent is missing.
    pub gaps: u64,
    /// The number of records that repeat others.
    pub duplicates: u64,
    /// The number of entries that the tool has changed since an earlier import. The session has the old version and, beside
    /// it, the new one.
    pub revised: u64,
    /// The number of entries that are held back because they may still grow. They are imported when the conversation has a
    /// further record, with `final`, or after `heldUntil`.
    pub held: u64,
    /// The time after which an import adds the entries that are held back now, ISO 8601. Absent if no entry is held back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_until: Option<String>,
    /// The number of subagents that the session spawned.
    pub subagents: u64,
    /// `heuristic` if forks were recognized by their content alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Whether the session would be a branch of another session, had an earlier import not written the two apart.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub family_split: bool,
    /// `trashed` if the session was deleted and is not imported again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// The ids of the other sessions of the same conversation, as rows of `list_sessions` have them. Absent without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub same_conversation: Vec<String>,
}

/// One file of an import, or one session of a database.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImportedFile {
    /// The tool that wrote it. Absent if it is not recognized.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The absolute path of the file. For a session of a database or an export: the path, `#`, and the id of the session.
    pub path: String,
    /// The number of records in it.
    pub records: u64,
    /// The number of entries made of them.
    pub entries: u64,
    /// Records that are kept in the origin only: the number for each type.
    pub origin_only: BTreeMap<String, u64>,
    /// The number of places where a parent is missing.
    pub gaps: u64,
    /// The number of records that repeat others.
    pub duplicates: u64,
    /// Bytes that are not a record: offset and length; the first 1,000 stretches.
    pub unparsable: Vec<[u64; 2]>,
    /// The tool's id of the conversation that begins with the same records. Absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix_shared_with: Option<String>,
    /// The number of entries held back because they may still grow. Absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<u64>,
    /// The number of messages and parts for which the history that the tool keeps differs from its present state. The
    /// present state counts. Absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disagreements: Option<u64>,
    /// Why the file, or a part of it, was not imported. Absent if all of it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ImportFailure>,
}

/// Why a file was not imported.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImportFailure {
    /// The kind of failure, such as `unrecognized`, `importTooLarge`, `pathDenied` or `importFailed`.
    pub kind: String,
    /// A sentence for people.
    pub message: String,
}

/// The sums of an import.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImportTotals {
    /// Sessions.
    pub sessions: u64,
    /// Sessions that this import made.
    pub created: u64,
    /// Files that were found.
    pub files: u64,
    /// Files that have not changed since the last import.
    pub unchanged: u64,
    /// Files that could not be imported.
    pub failed: u64,
    /// Entries that were added.
    pub entries_added: u64,
    /// Branches beside the first one of each session.
    pub branches: u64,
    /// Branches that the tools no longer show.
    pub recovered: u64,
    /// Places where a parent is missing.
    pub gaps: u64,
    /// Records that repeat others.
    pub duplicates: u64,
    /// Entries with a new version.
    pub revised: u64,
    /// Entries held back.
    pub held: u64,
    /// The earliest `heldUntil` of a session. Absent if nothing is held back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_until: Option<String>,
    /// Bytes that were read.
    pub bytes: u64,
}

session_params! {
    /// The params of `import_report`.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"sessionId": "2d3a9c1e-9be0-8b43-a7c4-52d8a1f6c301"}"#)))]
    ImportReportParams {}
}

/// The result of `import_report`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "imports": [
    {
      "timestamp": "2026-11-22T05:40:35.854Z", "sourceLeaf": "16e149ed01a20124",
      "report": {"session": {"tool": "codex", "entriesAdded": 31}, "files": []}
    }
  ]
}"#)))]
pub struct ImportReportResult {
    /// The imports that changed the session, oldest first; none for a session that was not imported.
    pub imports: Vec<ImportRecord>,
}

/// One import of a session.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImportRecord {
    /// The time of the import, ISO 8601.
    pub timestamp: String,
    /// The id of the entry at which the tool went on; null at the empty position.
    pub source_leaf: Option<String>,
    /// The rows of the session and of its files, `{session, files}`, as in the result of `import_sessions`.
    #[cfg_attr(
        feature = "schema",
        schemars(with = "serde_json::Map<String, serde_json::Value>")
    )]
    pub report: Raw,
}
