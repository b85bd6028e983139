//! Recognizes the tool that has written a file by its first records.

use super::homes;
use crate::importer::exports::{is_zip, unpacked_head};
use crate::importer::native::{FaultKind, NativeError};
use crate::importer::source::regular;
use crate::importer::sqlite::Database;
use crate::records::{Layout, Piece, Splitter};
use crate::tool::Tool;
use std::io::{self, Read};
use std::path::Path;
use treelined_core::entry::foreign;
use treelined_core::json::{self, Members};

/// Bytes that are read of a file, and of its decompressed content.
const HEAD: u64 = 256 << 10;
/// Records that are examined.
const RECORDS: usize = 50;
const DATABASE: &[u8] = b"SQLite format 3\0";
const ZSTANDARD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// The origin of a file, by its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Recognition {
    /// A tool has written it.
    Tool(Tool),
    /// None of the tools writes such files.
    Unknown,
    /// It has no records, or none yet.
    NoRecords,
    /// A database in which nothing can be read, so that its tool is unknown.
    BadDatabase(FaultKind, String),
}

/// The tool that has written the file. Databases are those of `tools` only.
pub(super) fn recognize(path: &Path, tools: &[Tool]) -> io::Result<Recognition> {
    let (mut file, _) = regular::open(path)?;
    let mut head = vec![0; 4096];
    let read = file.read(&mut head)?;
    head.truncate(read);
    if head.starts_with(DATABASE) {
        return Ok(database(path, tools));
    }
    if is_zip(&head) {
        let head = unpacked_head(path)?;
        return Ok(export_writer(&head).unwrap_or(Recognition::NoRecords));
    }
    let is_compressed = head.starts_with(ZSTANDARD);
    let is_json = head
        .iter()
        .find(|byte| !matches!(byte, 0 | b' ' | b'\t' | b'\r' | b'\n'));
    if !is_compressed && !matches!(is_json, Some(b'{' | b'[' | 0xef)) {
        return Ok(Recognition::NoRecords);
    }
    let whole = io::Cursor::new(head).chain(file).take(HEAD);
    let mut text = Vec::new();
    if is_compressed {
        let decoder = zstd::stream::read::Decoder::new(whole)?;
        // The end is usually missing.
        let _read = decoder.take(HEAD).read_to_end(&mut text);
    } else {
        let mut whole = whole;
        whole.read_to_end(&mut text)?;
    }
    if let Some(found) = export_writer(&text) {
        return Ok(found);
    }
    // Only Codex compresses its files. A damaged one is reported for Codex.
    let is_codex = is_compressed && homes::has_source(Tool::Codex, path);
    Ok(match text_writer(&text) {
        Recognition::Unknown | Recognition::NoRecords if is_codex => Recognition::Tool(Tool::Codex),
        found => found,
    })
}

fn database(path: &Path, tools: &[Tool]) -> Recognition {
    let scratch = std::env::temp_dir();
    let mut bad = Recognition::NoRecords;
    for tool in tools
        .iter()
        .filter(|tool| super::homes::is_database(**tool))
    {
        match Database::open(path, *tool, &scratch) {
            Ok(_) => return Recognition::Tool(*tool),
            // A database of another program, or of another tool.
            Err(NativeError::Source {
                kind: FaultKind::UnknownSchema,
                ..
            }) => {}
            Err(NativeError::Source { kind, message }) => {
                bad = Recognition::BadDatabase(kind, message);
            }
            Err(NativeError::Output(_)) => {}
        }
    }
    bad
}

/// The tool that makes exports with this beginning. `None` if it is not a list of conversations.
fn export_writer(head: &[u8]) -> Option<Recognition> {
    let head = head.strip_prefix("\u{feff}".as_bytes()).unwrap_or(head);
    let start = json::skip_space(head, 0);
    if head.get(start) != Some(&b'[') {
        return None;
    }
    let first = json::skip_space(head, start + 1);
    Some(match export_tool(head.get(first..).unwrap_or_default()) {
        Some(tool) => Recognition::Tool(tool),
        None => Recognition::NoRecords,
    })
}

/// The tool of whose exports this is a conversation.
fn export_tool(conversation: &[u8]) -> Option<Tool> {
    let fields = Fields::of(conversation);
    let has = |name: &str| fields.names.iter().any(|has| has == name);
    if has("mapping") && has("create_time") {
        return Some(Tool::ChatGpt);
    }
    (has("chat_messages") && has("uuid")).then_some(Tool::ClaudeAi)
}

/// The tool that writes texts with this beginning.
fn text_writer(head: &[u8]) -> Recognition {
    let (mut found, mut seen) = (None, 0);
    let mut splitter = Splitter::new(Layout::Lines);
    let mut take = |piece: Piece<'_>| {
        if let (Piece::Record(record), None) = (piece, found.as_ref())
            && seen < RECORDS
        {
            seen += 1;
            found = record_writer(record.bytes);
        }
    };
    splitter.push(head, &mut take);
    // Only the first members of a record longer than the head are known.
    let found = found.or_else(|| record_writer(head));
    found.unwrap_or(match seen {
        0 => Recognition::NoRecords,
        _ => Recognition::Unknown,
    })
}

/// The tool that writes such records; `None` if several might.
fn record_writer(record: &[u8]) -> Option<Recognition> {
    match foreign::writer(record) {
        Some(foreign::Writer::ClaudeCode) => Some(Recognition::Tool(Tool::ClaudeCode)),
        Some(foreign::Writer::QwenCode) => Some(Recognition::Tool(Tool::QwenCode)),
        None => record_tool(record).map(Recognition::Tool),
    }
}

/// The tool that writes such records; `None` if several might.
fn record_tool(record: &[u8]) -> Option<Tool> {
    let fields = Fields::of(record);
    let kind = fields.kind.as_deref();
    let has = |names: &[&str]| {
        names
            .iter()
            .all(|name| fields.names.iter().any(|has| has == name))
    };
    if has(&["sessionId", "projectHash"]) {
        return Some(Tool::Gemini);
    }
    if has(&["timestamp", "type", "payload"]) {
        return Some(Tool::Codex);
    }
    // Codex until August 2025: the first line has no envelope.
    if kind.is_none() && has(&["id", "timestamp", "instructions"]) {
        return Some(Tool::Codex);
    }
    if kind == Some("session") && has(&["id", "timestamp"]) {
        return Some(Tool::Pi);
    }
    if kind.is_none()
        && let Some(tool) = export_tool(record)
    {
        return Some(tool);
    }
    let is_claude = match kind {
        Some("user" | "assistant" | "system" | "progress" | "attachment") => {
            has(&["uuid", "sessionId"]) || has(&["parentUuid"]) || has(&["timestamp", "message"])
        }
        Some("summary") => has(&["summary", "leafUuid"]),
        Some("file-history-snapshot") => has(&["messageId", "snapshot"]),
        Some("queue-operation") => has(&["operation", "sessionId"]),
        Some(_) => has(&["sessionId"]) && !has(&["payload"]),
        None => false,
    };
    is_claude.then_some(Tool::ClaudeCode)
}

/// The names of a record's members, and its type.
#[derive(Default)]
struct Fields {
    names: Vec<String>,
    kind: Option<String>,
}

impl Fields {
    /// Reads a record, or the beginning of one.
    fn of(record: &[u8]) -> Self {
        let mut fields = Self::default();
        let Ok(mut members) = Members::open(record, json::skip_space(record, 0)) else {
            return fields;
        };
        while let Ok(Some(key)) = members.next_key() {
            let name = String::from_utf8_lossy(&key.name(record)).into_owned();
            let value = members.value();
            if let (Ok(value), "type") = (&value, &*name) {
                let value = record.get(value.clone()).and_then(json::string);
                fields.kind = value.map(|kind| kind.into_owned());
            }
            fields.names.push(name);
            if value.is_err() {
                break;
            }
        }
        fields
    }
}
