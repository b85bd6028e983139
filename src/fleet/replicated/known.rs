//! The lines that a log has. They show which lines of a file are only in the file.

use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use treelined_core::entry::LEAF_RECORD;

/// Lines of a log, by their hashes and by the ids of their entries.
#[derive(Default)]
pub(super) struct KnownLines {
    digests: HashSet<[u8; 32]>,
    ids: HashSet<String>,
}

/// A line of a file, compared with a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileLine {
    /// The log has the line.
    Known,
    /// An entry that the log does not have, or a blank line, which every reader skips.
    Own,
    /// A line that is not an entry, or an entry of the log with other bytes. If the changed entry was published, it
    /// would replace the entry on every machine.
    Foreign,
}

/// The members of an entry that this module needs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EntryLine {
    #[serde(rename = "type")]
    _type: String,
    #[serde(default)]
    id: serde_json::Value,
    #[serde(default)]
    custom_type: serde_json::Value,
}

impl KnownLines {
    pub(super) fn add(&mut self, lines: &[u8]) {
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            self.digests.insert(digest(line));
            let entry = entry(line);
            let id = entry.as_ref().and_then(|entry| entry.id.as_str());
            self.ids.extend(id.map(str::to_owned));
        }
    }

    pub(super) fn classify(&self, line: &[u8]) -> FileLine {
        if self.digests.contains(&digest(line)) {
            return FileLine::Known;
        }
        if is_blank(line) {
            return FileLine::Own;
        }
        match entry(line) {
            Some(entry) if entry.id.as_str().is_none_or(|id| !self.ids.contains(id)) => {
                FileLine::Own
            }
            _ => FileLine::Foreign,
        }
    }
}

/// Whether a line is a JSON object with a type, or blank.
pub(super) fn is_entry(line: &[u8]) -> bool {
    is_blank(line) || entry(line).is_some()
}

/// The id of an entry that clients can see. Moves of the leaf have no such id.
pub(super) fn counted_id(line: &[u8]) -> Option<String> {
    let entry = entry(line)?;
    let is_move = entry.custom_type.as_str() == Some(LEAF_RECORD);
    let id = entry.id.as_str().filter(|_| !is_move);
    id.map(str::to_owned)
}

fn is_blank(line: &[u8]) -> bool {
    line.trim_ascii().is_empty()
}

fn entry(line: &[u8]) -> Option<EntryLine> {
    serde_json::from_slice(line).ok()
}

fn digest(line: &[u8]) -> [u8; 32] {
    Sha256::digest(line).into()
}
