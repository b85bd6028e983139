//! The records that close the log of a deleted session, and open the log again (session-file.md §4.5, fleet.md
//! "Deletion").
//!
//! A log is closed while its last line is the record of a deletion of its session. Nothing is removed from the log.

use super::attempts::ROUNDS;
use super::backend::{AppendOutcome, LogBackend, LogIdentity};
use memchr::memmem;
use serde::Deserialize;
use serde_json::json;
use treelined_core::author::{Author, Signature};
use treelined_core::entry::{RESTORED, TRASHED};
use treelined_core::error::{Error, Kind, Result};
use treelined_core::id::{self, Source};
use treelined_core::timestamp;
use treelined_files::log::upstream::InLog;

/// The members of a record that this module needs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeletionRecord {
    r#type: String,
    custom_type: String,
    #[serde(default)]
    parent_id: Option<String>,
    data: DeletionOf,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeletionOf {
    session_id: String,
}

/// The record that closes a log with these last lines; `None` if the log is open.
fn closing_record(session: &str, lines: &[u8]) -> Option<DeletionRecord> {
    let last = lines
        .rsplit(|byte| *byte == b'\n')
        .find(|line| !line.trim_ascii().is_empty())?;
    // Most lines are not such records and may be long, so they are not parsed.
    memmem::find(last, TRASHED.as_bytes())?;
    let record: DeletionRecord = serde_json::from_slice(last).ok()?;
    let is_closing = record.r#type == "custom" && record.custom_type == TRASHED;
    // A copy of the file under another id also has the record, but with the id of the first session.
    (is_closing && record.data.session_id == session).then_some(record)
}

/// Whether these last lines close a log.
pub(super) fn is_closed(session: &str, lines: &[u8]) -> bool {
    closing_record(session, lines).is_some()
}

/// Whether the log of a session is closed. Reads the last part of the log.
pub(super) fn is_log_closed(log: &dyn LogBackend, session: &str) -> Result<bool> {
    let last = log.last(session)?;
    Ok(last.is_some_and(|last| is_closed(session, &last.lines)))
}

/// Fails with `sessionDeleted` if the log of a session is closed.
pub(super) fn check_open(log: &dyn LogBackend, session: &str) -> Result<()> {
    match is_log_closed(log, session)? {
        true => Err(deleted(session)),
        false => Ok(()),
    }
}

/// The error for a session whose log is closed.
pub(super) fn deleted(session: &str) -> Error {
    let why = format!(
        "session {session:?} was deleted on one of the machines of its log: `restore_session`, or `treelined restore {session}`, brings it back"
    );
    Error::new(Kind::SessionDeleted, why)
}

/// The record of a deletion at this leaf, with its line break.
pub(super) fn trashed(
    session: &str,
    leaf: Option<&str>,
    source: &dyn Source,
    by: Option<&Author>,
) -> Vec<u8> {
    record(TRASHED, session, leaf, source, by)
}

/// The record that opens the log again after the record of a deletion in `lines`. Both records are at the same leaf.
/// `None` if the lines do not close the log.
pub(super) fn restored(
    session: &str,
    lines: &[u8],
    source: &dyn Source,
    by: Option<&Author>,
) -> Option<Vec<u8>> {
    let before = closing_record(session, lines)?;
    let leaf = before.parent_id.as_deref();
    Some(record(RESTORED, session, leaf, source, by))
}

fn record(
    custom_type: &str,
    session: &str,
    leaf: Option<&str>,
    source: &dyn Source,
    by: Option<&Author>,
) -> Vec<u8> {
    // The members are in the order that readers expect at the beginning of an entry.
    let head = format!(
        "{{\"type\":\"custom\",\"customType\":{},\"id\":{},\"parentId\":{},\"timestamp\":{},\"data\":{}}}",
        json!(custom_type),
        json!(id::entry_id_candidate(source).as_str()),
        json!(leaf),
        json!(timestamp::format(source.now_ms())),
        json!({ "sessionId": session }),
    );
    let mut line = head.into_bytes();
    if let Some(by) = by {
        Signature::of(by).sign(&mut line);
    }
    line.push(b'\n');
    line
}

/// Opens the log of a deleted session again. Returns the state that the log had before.
pub(crate) fn reopen(
    log: &dyn LogBackend,
    session: &str,
    source: &dyn Source,
    by: Option<&Author>,
) -> Result<InLog> {
    for _ in 0..ROUNDS {
        let Some(last) = log.last(session)? else {
            return Ok(InLog::Missing);
        };
        let Some(line) = restored(session, &last.lines, source, by) else {
            return Ok(InLog::Open);
        };
        if let AppendOutcome::Appended(_) = log.append(session, last.end, &line)? {
            return Ok(InLog::Deleted);
        }
    }
    Err(super::attempts::conflict(session))
}

impl LogIdentity {
    /// Whether these last lines close the log.
    pub(super) fn is_closed_by(&self, lines: &[u8]) -> bool {
        is_closed(&self.session, lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use treelined_files::clock::SharedSource;

    fn ada() -> Author {
        Author::new("ada", "laptop", "d1".to_owned())
    }

    #[test]
    fn a_log_is_closed_by_its_last_line_only() {
        let trashed = trashed("s", Some("e1"), &SharedSource, Some(&ada()));
        let restored = restored("s", &trashed, &SharedSource, None).unwrap();
        let entry = b"{\"type\":\"custom\",\"customType\":\"t\",\"data\":\"treelined.trashed\"}\n";
        let with = |lines: &[&[u8]]| lines.concat();
        for (lines, expected) in [
            (with(&[&trashed]), true),
            (with(&[entry, &trashed]), true),
            (with(&[&trashed, b"\n"]), true),
            (with(&[&trashed, entry]), false),
            (with(&[&trashed, &restored]), false),
            (with(&[&trashed, &restored, &trashed]), true),
            (with(&[entry]), false),
            (with(&[b"treelined.trashed\n"]), false),
            (with(&[]), false),
        ] {
            let shown = String::from_utf8_lossy(&lines);
            assert_eq!(is_closed("s", &lines), expected, "{shown}");
            assert!(!is_closed("copy", &lines), "{shown}");
        }
    }

    /// A program that does not know these records must continue at the leaf, so both are children of the leaf.
    #[test]
    fn both_records_are_below_the_leaf() {
        for leaf in [Some("e1"), None] {
            let trashed = trashed("s", leaf, &SharedSource, None);
            let restored = restored("s", &trashed, &SharedSource, None).unwrap();
            for line in [trashed, restored] {
                let line: serde_json::Value = serde_json::from_slice(&line).unwrap();
                assert_eq!(line["parentId"], json!(leaf));
                assert_eq!(line["id"].as_str().unwrap().len(), 16);
                assert_eq!(line["data"], json!({ "sessionId": "s" }));
            }
        }
    }
}
