//! The report of an import. It is the result of `import_sessions` (protocol.md §3.17); parts of it are also in the
//! ledger and in the leaf records of imports.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::Arc;
use treelined_core::agent::Tool;
use treelined_core::error::{Error, Kind, Result};
use treelined_files::store::catalogue::CatalogueRow;
use treelined_files::store::conversations::Conversations;

/// The report of one import.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportReport {
    /// The sessions of all conversations that were found.
    pub sessions: Vec<ImportedSession>,
    /// The files that were read, and the files that could not be read. Files that have not changed since the last
    /// import are left out.
    pub files: Vec<ImportedFile>,
    /// Sums.
    pub totals: ImportTotals,
    /// The locations that were searched, if nothing was found and the request had no `paths`. Absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub places: Option<Vec<ImportPlace>>,
}

/// A location in which a tool keeps its conversations.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportPlace {
    /// The tool.
    pub tool: String,
    /// The absolute path of the folder or database.
    pub path: String,
    /// Whether the location exists.
    pub exists: bool,
    /// The environment variables that name the location.
    pub variables: Vec<String>,
}

/// One session in the report.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportedSession {
    /// The tool whose conversation it is.
    pub tool: String,
    /// The tool's id of the conversation. For a family, the id of its first conversation.
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
    /// The number of entries of earlier imports that the tool has changed since; each has a new version beside
    /// it.
    pub revised: u64,
    /// The number of entries held back because they may still grow. They are imported with the next record of the
    /// conversation, by an import with `final`, or by any import from `heldUntil` on.
    pub held: u64,
    /// The time in ISO 8601 from which an import takes the held-back entries. It applies even if nothing was written
    /// since. Absent if no entries are held back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_until: Option<String>,
    /// The number of subagents that the session spawned.
    pub subagents: u64,
    /// `heuristic` if forks were recognized by their content alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Whether the session belongs to the family of another session, but an earlier import has written both
    /// separately.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub family_split: bool,
    /// `trashed` if the user has deleted the session, so that it is not imported again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// The ids of the other sessions of the same conversation, as rows of `list_sessions` have them. Absent without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub same_conversation: Vec<String>,
}

/// One file in the report, or one session of a database.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportedFile {
    /// The tool that wrote the file. Absent if it is not recognized.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Its absolute path; a session of a database follows after `#`.
    pub path: String,
    /// The number of records in the file.
    pub records: u64,
    /// The number of entries that were made of these records.
    pub entries: u64,
    /// The records that become no entry and are only in the origin: their number for each type.
    pub origin_only: BTreeMap<String, u64>,
    /// The number of places where a parent is missing.
    pub gaps: u64,
    /// The number of records that repeat others.
    pub duplicates: u64,
    /// The places that are not a record, each as offset and length in bytes. At most the first 1,000 are listed.
    pub unparsable: Vec<[u64; 2]>,
    /// The native session whose beginning is also the beginning of this one. Absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix_shared_with: Option<String>,
    /// The number of entries held back because they may still grow. Absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<u64>,
    /// The number of messages and parts whose present state differs from the history that the tool keeps. The present
    /// state is imported. Absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disagreements: Option<u64>,
    /// The reason why the file, or a part of it, was not imported. Absent if all of it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ImportFailure>,
}

/// The reason why a file was not imported.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportFailure {
    /// The kind of failure, such as `unrecognized`, `importTooLarge`, `pathDenied` or `importFailed`.
    pub kind: String,
    /// A sentence for people.
    pub message: String,
}

/// The sums of an import.
#[derive(Debug, Clone, Default, Serialize)]
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

impl ImportReport {
    /// Whether a recorder may have a conversation of the report.
    pub(super) fn may_be_recorded(&self) -> bool {
        let tools = Tool::ALL.into_iter().filter(|tool| tool.is_export());
        let exports: Vec<&str> = tools.map(Tool::name).collect();
        let mut sessions = self.sessions.iter();
        sessions.any(|session| !exports.contains(&session.tool.as_str()))
    }

    /// Sets `sameConversation` of the sessions. `rows` has the rows of all sessions.
    pub(super) fn name_conversations(&mut self, rows: &[Arc<CatalogueRow>]) {
        let conversations = Conversations::of(rows);
        let others = rows.iter().filter_map(|row| {
            let others = conversations.others(&row.listing);
            let header = row.listing.header.as_ref()?;
            (!others.is_empty()).then_some((header.id.as_str(), others))
        });
        let others: HashMap<&str, Vec<String>> = others.collect();
        for session in &mut self.sessions {
            if let Some(others) = others.get(session.session_id.as_str()) {
                session.same_conversation.clone_from(others);
            }
        }
    }

    pub(super) fn json(&self) -> Result<Vec<u8>> {
        let bytes = serde_json::to_vec(self);
        bytes.map_err(|error| Error::new(Kind::InternalError, error.to_string()))
    }
}

impl From<Error> for ImportFailure {
    fn from(error: Error) -> Self {
        Self {
            kind: error.kind.name().to_owned(),
            message: error.message.into_owned(),
        }
    }
}
