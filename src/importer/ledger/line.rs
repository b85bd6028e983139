//! The lines of the ledger.

use super::{DatabaseRow, SessionRow, SourceRow};
use crate::import::Tool;
use crate::importer::source::SourceStatus;
use crate::os::file::Identity;
use crate::wire::ImportedSession;
use serde::{Deserialize, Serialize};

/// One line of the ledger.
#[derive(Debug, Clone)]
pub(super) enum Line {
    Source(SourceRow),
    Database(DatabaseRow),
    Session(SessionRow),
    /// Tool, native session and session.
    Placed(Tool, String, String),
}

/// The stored form of a line.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum StoredLine {
    Source {
        tool: String,
        source: String,
        natives: Vec<String>,
        targets: Vec<String>,
        #[serde(flatten)]
        status: StoredStatus,
        length: u64,
        sha256: String,
        origin: String,
        held: bool,
        mapping: u32,
    },
    Database {
        tool: String,
        source: String,
        #[serde(flatten)]
        status: StoredStatus,
    },
    Session {
        session: String,
        tool: String,
        trashed: bool,
        row: Option<ImportedSession>,
    },
    Placed {
        tool: String,
        native: String,
        session: String,
    },
}

#[derive(Serialize, Deserialize)]
struct StoredStatus {
    size: u64,
    /// Seconds and nanoseconds of Unix time.
    modified: (i64, i64),
    device: u64,
    inode: u64,
    version: u64,
}

impl Line {
    /// `None` if it is damaged or written by a newer program.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        Some(match serde_json::from_slice(bytes).ok()? {
            StoredLine::Source {
                tool,
                source,
                natives,
                targets,
                status,
                length,
                sha256,
                origin,
                held,
                mapping,
            } => Self::Source(SourceRow {
                tool: tool_of(&tool)?,
                source,
                natives,
                targets,
                status: status.into(),
                len: length,
                hash: bytes_of(&sha256)?,
                origin,
                held,
                version: mapping,
            }),
            StoredLine::Database {
                tool,
                source,
                status,
            } => Self::Database(DatabaseRow {
                tool: tool_of(&tool)?,
                database: source,
                status: status.into(),
            }),
            StoredLine::Session {
                session,
                tool,
                trashed,
                row,
            } => Self::Session(SessionRow {
                session,
                tool: tool_of(&tool)?,
                trashed,
                row,
            }),
            StoredLine::Placed {
                tool,
                native,
                session,
            } => Self::Placed(tool_of(&tool)?, native, session),
        })
    }

    /// Appends the line with its line break.
    pub(super) fn write(&self, text: &mut Vec<u8>) {
        let line = match self.clone() {
            Self::Source(row) => StoredLine::Source {
                tool: row.tool.name().to_owned(),
                source: row.source,
                natives: row.natives,
                targets: row.targets,
                status: row.status.into(),
                length: row.len,
                sha256: row.hash.iter().map(|byte| format!("{byte:02x}")).collect(),
                origin: row.origin,
                held: row.held,
                mapping: row.version,
            },
            Self::Database(row) => StoredLine::Database {
                tool: row.tool.name().to_owned(),
                source: row.database,
                status: row.status.into(),
            },
            Self::Session(row) => StoredLine::Session {
                session: row.session,
                tool: row.tool.name().to_owned(),
                trashed: row.trashed,
                row: row.row,
            },
            Self::Placed(tool, native, session) => StoredLine::Placed {
                tool: tool.name().to_owned(),
                native,
                session,
            },
        };
        let written = serde_json::to_writer(&mut *text, &line);
        debug_assert!(written.is_ok(), "plain data");
        text.push(b'\n');
    }
}

impl From<SourceStatus> for StoredStatus {
    fn from(status: SourceStatus) -> Self {
        Self {
            size: status.size,
            modified: status.modified,
            device: status.identity.device,
            inode: status.identity.inode,
            version: status.version,
        }
    }
}

impl From<StoredStatus> for SourceStatus {
    fn from(status: StoredStatus) -> Self {
        Self {
            size: status.size,
            modified: status.modified,
            identity: Identity {
                device: status.device,
                inode: status.inode,
            },
            version: status.version,
        }
    }
}

fn tool_of(name: &str) -> Option<Tool> {
    Tool::ALL.into_iter().find(|tool| tool.name() == name)
}

/// The bytes of 64 hexadecimal digits.
fn bytes_of(digits: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}
