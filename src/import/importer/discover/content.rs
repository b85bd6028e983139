//! Recognizes which tool has written a file, by the first records of the file.

use super::{editors, homes};
use crate::importer::exports::{is_zip, unpacked_head};
use crate::importer::native::{FaultKind, NativeError};
use crate::importer::source::regular;
use crate::importer::sqlite::Database;
use crate::records::{Layout, Piece, Splitter};
use std::io::{self, Read};
use std::path::Path;
use treelined_core::agent::Tool;
use treelined_core::entry::foreign;
use treelined_core::json::{self, Members};

/// The number of bytes that are read of a file, and of its decompressed content.
const HEAD: u64 = 256 << 10;
/// The number of records that are examined.
const RECORDS: usize = 50;
const DATABASE: &[u8] = b"SQLite format 3\0";
const ZSTANDARD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// The writer of a file, by its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Recognition {
    /// This tool has written the file.
    Tool(Tool),
    /// No supported tool writes such files.
    Unknown,
    /// The file has no records so far.
    NoRecords,
    /// The file is a database that cannot be read, so its tool is unknown.
    BadDatabase(FaultKind, String),
}

/// Recognizes the writer of a file. Databases are recognized only for the tools in `tools`.
pub(super) fn recognize(path: &Path, tools: &[Tool]) -> io::Result<Recognition> {
    let (mut file, _) = regular::open(path)?;
    if let Some(tool) = editors::writer(path, tools) {
        return Ok(Recognition::Tool(tool));
    }
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
        // The head mostly ends within a frame, so an error at its end is expected.
        let _read = decoder.take(HEAD).read_to_end(&mut text);
    } else {
        let mut whole = whole;
        whole.read_to_end(&mut text)?;
    }
    if let Some(found) = export_writer(&text) {
        return Ok(found);
    }
    // Only Codex compresses its files, so a damaged compressed file is reported for Codex.
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
            // The database is from another program or another tool.
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

/// The tool whose exports begin like this. `None` if this is not the beginning of a list of conversations.
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

/// The tool whose exports have such conversations.
fn export_tool(conversation: &[u8]) -> Option<Tool> {
    let fields = Fields::of(conversation);
    let has = |name: &str| fields.names.iter().any(|has| has == name);
    if has("mapping") && has("create_time") {
        return Some(Tool::ChatGpt);
    }
    (has("chat_messages") && has("uuid")).then_some(Tool::ClaudeAi)
}

/// The writer of a text file that begins like this.
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
    // A record that is longer than the head is recognized by its first members.
    let found = found.or_else(|| record_writer(head));
    found.unwrap_or(match seen {
        0 => Recognition::NoRecords,
        _ => Recognition::Unknown,
    })
}

/// The writer of such a record; `None` if several tools might write it.
fn record_writer(record: &[u8]) -> Option<Recognition> {
    match foreign::writer(record) {
        Some(foreign::Writer::ClaudeCode) => Some(Recognition::Tool(Tool::ClaudeCode)),
        Some(foreign::Writer::QwenCode) => Some(Recognition::Tool(Tool::QwenCode)),
        None => record_tool(record).map(Recognition::Tool),
    }
}

/// The tool that writes such a record; `None` if several tools might write it.
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
    if kind.is_some_and(|kind| kind.contains('.')) && has(&["data", "id", "timestamp", "parentId"])
    {
        return Some(Tool::CopilotCli);
    }
    let is_state = has(&["version", "requests"]) || has(&["sessionId", "requests"]);
    if kind.is_none()
        && (is_state || fields.names.first().is_some_and(|it| it == "kind") && has(&["v"]))
    {
        return Some(Tool::VscodeChat);
    }
    if has(&["timestamp", "type", "payload"]) {
        return Some(Tool::Codex);
    }
    // Codex until August 2025: the first line is not wrapped in an envelope.
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

/// The names of a record's members, and the value of `type`.
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
