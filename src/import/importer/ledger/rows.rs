//! The rows of the ledger.

use crate::importer::report::ImportedSession;
use crate::importer::source::facts::SourceStatus;
use crate::mapping::Former;
use serde_json::value::RawValue;
use treelined_core::agent::Tool;
use treelined_core::timestamp::Millis;

/// The beginning of the name of a row that has native sessions and no source.
const PLACEMENT: &str = "session ";

/// The name of the row that says which native sessions a session has. It cannot be the name of a source, because names
/// of sources are absolute paths.
pub(crate) fn placement_name(session: &str) -> String {
    format!("{PLACEMENT}{session}")
}

pub(super) fn is_placement(name: &str) -> bool {
    name.starts_with(PLACEMENT)
}

/// A source, as the last import read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceRow {
    pub(crate) tool: Tool,
    /// The name of the source; see `Source::name`.
    pub(crate) source: String,
    /// The native sessions of the source's members, the main one first.
    pub(crate) natives: Vec<String>,
    /// For each native session, the session that it is in.
    pub(crate) targets: Vec<String>,
    /// The native sessions, or parts of native sessions, that the members continue.
    pub(crate) bases: Vec<String>,
    pub(crate) status: SourceStatus,
    /// The number of bytes that were read.
    pub(crate) len: u64,
    /// The SHA-256 of the bytes that were read.
    pub(crate) hash: [u8; 32],
    /// The name of the origin; empty if the kept bytes were deleted.
    pub(crate) origin: String,
    /// The Unix time in milliseconds from which an import takes the held-back nodes if the source does not change.
    /// `None` if nothing was held back.
    pub(crate) held_until: Option<Millis>,
    /// The version of the reader and mapper that read the source.
    pub(crate) version: u32,
    /// The records that older versions of the reader have read.
    pub(crate) former: Former,
}

/// A session, as the last import of one tool left it.
#[derive(Debug, Clone)]
pub(crate) struct SessionRow {
    pub(crate) session: String,
    pub(crate) tool: Tool,
    /// Whether the user has deleted the session, so that imports skip it.
    pub(crate) trashed: bool,
    /// The length of the session file after that import, in bytes; 0 if unknown.
    pub(crate) len: u64,
    /// The session in the report of that import, as JSON. It is decoded on demand, because an import needs few of these
    /// reports.
    pub(super) row: Option<Box<RawValue>>,
    /// Whether entries of the session that another program wrote stand for nodes of the tool.
    pub(crate) is_home: bool,
}

impl SessionRow {
    /// The session in the report of that import.
    pub(crate) fn row(&self) -> Option<ImportedSession> {
        serde_json::from_str(self.row.as_ref()?.get()).ok()
    }

    pub(crate) fn of(tool: Tool, row: &ImportedSession, is_home: bool) -> Self {
        Self {
            session: row.session_id.clone(),
            tool,
            trashed: false,
            len: std::fs::metadata(&row.path).map_or(0, |file| file.len()),
            row: serde_json::value::to_raw_value(row).ok(),
            is_home,
        }
    }
}

/// A database whose sessions were all imported, with its status at that time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DatabaseRow {
    pub(crate) tool: Tool,
    /// The path of the database.
    pub(crate) database: String,
    pub(crate) status: SourceStatus,
}
