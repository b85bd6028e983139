//! The header of a session file: its fields, its line, and its bytes in cache files.

use treelined_core::bytes::{Cursor, Fields};
use treelined_core::entry::SpawnedBy;
use treelined_core::json;
use treelined_core::timestamp;
use treelined_core::tree::FilePlace;

/// The newest version of the format that this program writes.
pub const CURRENT_VERSION: u64 = 3;

/// The header of a session, usually the first line of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub id: String,
    pub version: u64,
    pub timestamp: Option<String>,
    pub cwd: String,
    pub parent_session: Option<String>,
    /// For a fork: the last entry that was copied from the parent session.
    pub parent_entry_id: Option<String>,
    pub spawned_by: Option<SpawnedBy>,
    pub place: FilePlace,
}

impl Header {
    /// The header of a new session.
    pub fn new(id: &str, now: timestamp::Millis, cwd: &str, parent_session: Option<&str>) -> Self {
        Self {
            id: id.to_owned(),
            version: CURRENT_VERSION,
            timestamp: Some(timestamp::format(now)),
            cwd: cwd.to_owned(),
            parent_session: parent_session.map(str::to_owned),
            parent_entry_id: None,
            spawned_by: None,
            place: FilePlace { offset: 0, len: 0 },
        }
    }

    /// The header as a line without a line break: `{"type":"session","version":3,…}`.
    pub fn to_line(&self) -> Vec<u8> {
        let mut line =
            format!("{{\"type\":\"session\",\"version\":{CURRENT_VERSION},\"id\":").into_bytes();
        json::push_string(&mut line, &self.id);
        line.extend_from_slice(b",\"timestamp\":");
        debug_assert!(self.timestamp.is_some(), "a new header has a timestamp");
        json::push_string(&mut line, self.timestamp.as_deref().unwrap_or_default());
        line.extend_from_slice(b",\"cwd\":");
        json::push_string(&mut line, &self.cwd);
        if let Some(parent) = &self.parent_session {
            line.extend_from_slice(b",\"parentSession\":");
            json::push_string(&mut line, parent);
        }
        if let Some(entry) = &self.parent_entry_id {
            line.extend_from_slice(b",\"parentEntryId\":");
            json::push_string(&mut line, entry);
        }
        if let Some(spawner) = &self.spawned_by {
            line.extend_from_slice(b",\"spawnedBy\":{\"sessionId\":");
            json::push_string(&mut line, &spawner.session_id);
            let others = [
                ("entryId", &spawner.entry_id),
                ("toolCallId", &spawner.tool_call_id),
            ];
            for (name, value) in others {
                if let Some(value) = value {
                    line.extend_from_slice(format!(",\"{name}\":").as_bytes());
                    json::push_string(&mut line, value);
                }
            }
            line.push(b'}');
        }
        line.push(b'}');
        line
    }

    pub fn put(&self, out: &mut Fields) {
        out.text(&self.id);
        out.u64(self.version);
        out.optional(self.timestamp.as_deref(), Fields::text);
        out.text(&self.cwd);
        out.optional(self.parent_session.as_deref(), Fields::text);
        out.optional(self.parent_entry_id.as_deref(), Fields::text);
        out.optional(self.spawned_by.as_ref(), |out, spawner| {
            out.text(&spawner.session_id);
            out.optional(spawner.entry_id.as_deref(), Fields::text);
            out.optional(spawner.tool_call_id.as_deref(), Fields::text);
        });
        out.u64(self.place.offset);
        out.u32(self.place.len);
    }

    pub fn get(fields: &mut Cursor<'_>) -> Option<Self> {
        let text = |fields: &mut Cursor<'_>| Some(fields.text()?.to_owned());
        Some(Self {
            id: text(fields)?,
            version: fields.u64()?,
            timestamp: fields.optional(text)?,
            cwd: text(fields)?,
            parent_session: fields.optional(text)?,
            parent_entry_id: fields.optional(text)?,
            spawned_by: fields.optional(|fields| {
                Some(SpawnedBy {
                    session_id: text(fields)?,
                    entry_id: fields.optional(text)?,
                    tool_call_id: fields.optional(text)?,
                })
            })?,
            place: FilePlace {
                offset: fields.u64()?,
                len: fields.u32()?,
            },
        })
    }
}
