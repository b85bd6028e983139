//! The rows of the ledger.

use crate::importer::report::ImportedSession;
use crate::importer::source::facts::SourceStatus;
use crate::mapping::Former;
use crate::tool::Tool;
use serde_json::value::RawValue;
use treelined_core::timestamp::Millis;

/// The beginning of the name of a row that only places native sessions.
const PLACEMENT: &str = "session ";

/// The name of the row that places the native sessions of a session. Sources have absolute paths as names.
pub(crate) fn placement_name(session: &str) -> String {
    format!("{PLACEMENT}{session}")
}

pub(super) fn is_placement(name: &str) -> bool {
    name.starts_with(PLACEMENT)
}

/// A source as an import has read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceRow {
    pub(crate) tool: Tool,
    /// See `Source::name`.
    pub(crate) source: String,
    /// The native sessions of its members, the main one first.
    pub(crate) natives: Vec<String>,
    /// The session of each of them.
    pub(crate) targets: Vec<String>,
    /// The native sessions, or parts of them, that its members continue.
    pub(crate) bases: Vec<String>,
    pub(crate) status: SourceStatus,
    /// Bytes that were read.
    pub(crate) len: u64,
    /// SHA-256 of these bytes.
    pub(crate) hash: [u8; 32],
    /// The name of its origin; empty if that is forgotten.
    pub(crate) origin: String,
    /// When an import brings what was held back if the source does not change, in Unix milliseconds. `None` if nothing
    /// was.
    pub(crate) held_until: Option<Millis>,
    /// The version of the reader and mapper.
    pub(crate) version: u32,
    /// The records that older versions have read.
    pub(crate) former: Former,
}

/// A session after an import from one tool.
#[derive(Debug, Clone)]
pub(crate) struct SessionRow {
    pub(crate) session: String,
    pub(crate) tool: Tool,
    /// Whether the user has deleted it, and imports skip it.
    pub(crate) trashed: bool,
    /// Bytes of its file after that import; 0 if unknown.
    pub(crate) len: u64,
    /// Its row in the result of that import, as JSON: an import needs those of few sessions.
    pub(super) row: Option<Box<RawValue>>,
    /// Whether it has nodes of the tool that are entries of another origin.
    pub(crate) is_home: bool,
}

impl SessionRow {
    /// Its row in the result of that import.
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

/// A database of which all sessions were imported, with its status at that time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DatabaseRow {
    pub(crate) tool: Tool,
    /// Its path.
    pub(crate) database: String,
    pub(crate) status: SourceStatus,
}
