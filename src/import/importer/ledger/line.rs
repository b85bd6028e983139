//! Reads and writes the lines of the ledger.

use super::rows::{DatabaseRow, SessionRow, SourceRow};
use crate::importer::source::facts::SourceStatus;
use crate::mapping::Former;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use treelined_core::agent::Tool;
use treelined_core::json;
use treelined_core::timestamp::Millis;
use treelined_files::os::file::Identity;

/// The member of a source whose last entries are not imported yet, because they may be incomplete.
pub(super) const HELD: &[u8] = b"\"held\":true";

/// A line of the ledger.
#[derive(Debug, Clone)]
pub(super) enum Line {
    Source(SourceRow),
    Database(DatabaseRow),
    Session(SessionRow),
    /// The tool, the id of a native session, and the id of the session in treelined that has the native session.
    Placement(Tool, String, String),
}

/// A line in the form of JSON.
#[derive(Serialize)]
#[serde(
    tag = "type",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
enum StoredLine {
    Source {
        tool: String,
        source: String,
        natives: Vec<String>,
        targets: Vec<String>,
        bases: Vec<String>,
        #[serde(flatten)]
        status: StoredStatus,
        length: u64,
        sha256: String,
        origin: String,
        /// Older programs read this member. Newer programs read `heldUntil`.
        held: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        held_until: Option<Millis>,
        mapping: u32,
        #[serde(skip_serializing_if = "Former::is_empty")]
        former: Former,
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
        length: u64,
        row: Option<Box<RawValue>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        home: bool,
    },
    #[serde(rename = "placed")]
    Placement {
        tool: String,
        native: String,
        session: String,
    },
}

#[derive(Serialize)]
struct StoredStatus {
    size: u64,
    /// The time in seconds and nanoseconds of Unix time.
    modified: (i64, i64),
    device: u64,
    inode: u64,
    version: u64,
}

impl Line {
    /// Reads a line. `None` if it is damaged or was written by a newer program. A derived decoder would take eight
    /// times as long, because it buffers all members until it finds the type.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let line = Members(bytes);
        let [kind, tool] = json::get_each(bytes, ["type", "tool"]);
        let tool = tool_of(&json::string(tool?)?)?;
        Some(match kind? {
            b"\"source\"" => Self::Source(line.source(tool)?),
            b"\"database\"" => Self::Database(DatabaseRow {
                tool,
                database: line.text("source")?,
                status: line.status()?,
            }),
            b"\"session\"" => {
                let names = ["session", "trashed", "length", "row", "home"];
                let [session, trashed, length, row, home] = json::get_each(bytes, names);
                Self::Session(SessionRow {
                    session: json::string(session?)?.into_owned(),
                    tool,
                    trashed: decoded(trashed?)?,
                    // Older programs did not write the length.
                    len: length.and_then(decoded).unwrap_or(0),
                    row: decoded(row?)?,
                    is_home: home == Some(b"true"),
                })
            }
            b"\"placed\"" => Self::Placement(tool, line.text("native")?, line.text("session")?),
            _ => return None,
        })
    }

    /// Appends the line, with its line break.
    pub(super) fn write(&self, text: &mut Vec<u8>) {
        let line = match self.clone() {
            Self::Source(row) => StoredLine::Source {
                tool: row.tool.name().to_owned(),
                source: row.source,
                natives: row.natives,
                targets: row.targets,
                bases: row.bases,
                status: row.status.into(),
                length: row.len,
                sha256: row.hash.iter().map(|byte| format!("{byte:02x}")).collect(),
                origin: row.origin,
                held: row.held_until.is_some(),
                held_until: row.held_until,
                mapping: row.version,
                former: row.former,
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
                length: row.len,
                row: row.row,
                home: row.is_home,
            },
            Self::Placement(tool, native, session) => StoredLine::Placement {
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

/// The members of a line, read one after the other.
struct Members<'a>(&'a [u8]);

impl Members<'_> {
    fn source(&self, tool: Tool) -> Option<SourceRow> {
        let names = [
            "source",
            "natives",
            "targets",
            "bases",
            "length",
            "sha256",
            "origin",
            "held",
            "heldUntil",
            "mapping",
            "former",
        ];
        let [
            source,
            natives,
            targets,
            bases,
            length,
            hash,
            origin,
            held,
            until,
            version,
            former,
        ] = json::get_each(self.0, names);
        Some(SourceRow {
            tool,
            source: json::string(source?)?.into_owned(),
            natives: decoded(natives?)?,
            targets: decoded(targets?)?,
            bases: decoded(bases?)?,
            status: self.status()?,
            len: decoded(length?)?,
            hash: bytes_of(&json::string(hash?)?)?,
            origin: json::string(origin?)?.into_owned(),
            // Older programs wrote `held` without `heldUntil`.
            held_until: match decoded(held?)? {
                true => until.and_then(decoded).or(Some(0)),
                false => None,
            },
            version: decoded(version?)?,
            former: former.map_or_else(|| Some(Former::default()), decoded)?,
        })
    }

    fn status(&self) -> Option<SourceStatus> {
        let names = ["size", "modified", "device", "inode", "version"];
        let [size, modified, device, inode, version] = json::get_each(self.0, names);
        Some(SourceStatus {
            size: decoded(size?)?,
            modified: decoded(modified?)?,
            identity: Identity {
                device: decoded(device?)?,
                inode: decoded(inode?)?,
            },
            version: decoded(version?)?,
        })
    }

    fn text(&self, name: &str) -> Option<String> {
        Some(json::string(json::get(self.0, name)?)?.into_owned())
    }
}

fn decoded<T: DeserializeOwned>(raw: &[u8]) -> Option<T> {
    serde_json::from_slice(raw).ok()
}

pub(super) fn tool_of(name: &str) -> Option<Tool> {
    Tool::ALL.into_iter().find(|tool| tool.name() == name)
}

/// The bytes that 64 hexadecimal digits stand for.
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
