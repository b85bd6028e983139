//! A row of the team's list as its bucket keeps it: JSON, under the key of the session's subject.

use super::super::subject;
use serde::{Deserialize, Serialize};
#[cfg(any(feature = "nats", test))]
use std::cmp::Ordering;
use treelined_core::author;
use treelined_core::name;
use treelined_core::team::TeamRow;
use treelined_core::timestamp;

/// The most bytes of a row.
pub(super) const MAX_ROW_BYTES: usize = 4096;
/// The most characters of the name of a session.
const MAX_NAME: usize = 200;
/// The most characters of a directory.
const MAX_CWD: usize = 1024;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RowText {
    session_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    first_message: String,
    cwd: String,
    created: String,
    modified: String,
    entries: u64,
    host: String,
    /// The time at which the stream of the message `sequence` was created.
    stream_created: String,
    sequence: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    trashed: bool,
}

/// A row that belongs to one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredRow {
    pub(crate) row: TeamRow,
    /// The time at which the stream was created, as the servers write it. A stream that is deleted and made again
    /// counts from 1 again.
    pub(crate) stream_created: String,
}

impl StoredRow {
    /// Reads a row. `None` if it is damaged, or if it describes another session than its key.
    pub(crate) fn decode(key: &str, text: &[u8]) -> Option<Self> {
        if text.len() > MAX_ROW_BYTES {
            return None;
        }
        let text: RowText = serde_json::from_slice(text).ok()?;
        let times = [&text.created, &text.modified];
        if subject::key(&text.session_id) != key
            || times.iter().any(|at| timestamp::parse(at).is_none())
        {
            return None;
        }
        let canonical = |at: &str| timestamp::parse(at).map(timestamp::format);
        let row = TeamRow {
            name: text.name.as_deref().and_then(name::given),
            first_message: name::given(&text.first_message).unwrap_or_default(),
            created: canonical(&text.created)?,
            modified: canonical(&text.modified)?,
            session_id: text.session_id,
            cwd: text.cwd,
            entries: text.entries,
            host: author::short(&text.host),
            sequence: text.sequence,
            is_trashed: text.trashed,
        };
        Some(Self {
            row,
            stream_created: text.stream_created,
        })
    }

    /// The row as text of at most [`MAX_ROW_BYTES`] bytes. Long texts in it are cut.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let row = &self.row;
        let mut most = MAX_CWD;
        loop {
            let text = RowText {
                session_id: row.session_id.clone(),
                name: row
                    .name
                    .as_deref()
                    .map(|name| cut(name, MAX_NAME.min(most))),
                first_message: cut(&row.first_message, MAX_NAME.min(most)),
                cwd: cut(&row.cwd, most),
                created: row.created.clone(),
                modified: row.modified.clone(),
                entries: row.entries,
                host: author::short(&row.host),
                stream_created: self.stream_created.clone(),
                sequence: row.sequence,
                trashed: row.is_trashed,
            };
            let made = serde_json::to_vec(&text).unwrap_or_else(|error| {
                debug_assert!(false, "{error}");
                Vec::new()
            });
            if made.len() <= MAX_ROW_BYTES || most == 0 {
                return made;
            }
            most /= 2;
        }
    }

    /// Whether this row replaces a stored row. For any two rows the answer is always the same, so it does not matter in
    /// which order machines write. A damaged row counts as missing.
    #[cfg(any(feature = "nats", test))]
    pub(crate) fn replaces(&self, stored: Option<&Self>) -> bool {
        stored.is_none_or(|stored| self.order(stored) == Ordering::Greater)
    }

    #[cfg(any(feature = "nats", test))]
    fn order(&self, other: &Self) -> Ordering {
        fn place(of: &StoredRow) -> (&str, u64) {
            // Without the `Z`, times with fractions of a second sort correctly as texts.
            let created = of.stream_created.trim_end_matches('Z');
            (created, of.row.sequence)
        }
        place(self).cmp(&place(other))
    }
}

fn cut(text: &str, chars: usize) -> String {
    text.chars().take(chars).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(in crate::team) fn row(id: &str, sequence: u64) -> TeamRow {
        TeamRow {
            session_id: id.to_owned(),
            name: Some(format!("name {sequence}")),
            first_message: format!("message {sequence}"),
            cwd: "/c".to_owned(),
            created: "2026-01-01T00:00:00.000Z".to_owned(),
            modified: format!("2026-01-02T00:00:00.{:03}Z", sequence % 1000),
            entries: sequence,
            host: "laptop".to_owned(),
            sequence,
            is_trashed: false,
        }
    }

    pub(in crate::team) fn stored(id: &str, sequence: u64, created: &str) -> StoredRow {
        StoredRow {
            row: row(id, sequence),
            stream_created: created.to_owned(),
        }
    }

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let before = stored("a.b", 7, "2026-01-01T00:00:00.1Z");
        let key = subject::key("a.b");
        assert_eq!(StoredRow::decode(&key, &before.encode()), Some(before));
    }

    #[test]
    fn rows_of_others_and_damaged_ones_are_none() {
        let good = String::from_utf8(stored("a", 7, "x").encode()).unwrap();
        assert!(StoredRow::decode("a", good.as_bytes()).is_some());
        for (key, text) in [
            ("b", good.clone()),
            ("a", good[..good.len() - 1].to_owned()),
            ("a", good.replace("2026-01-01", "yesterday")),
            ("a", good.replace('7', "-7")),
            ("a", format!("{good}{}", " ".repeat(MAX_ROW_BYTES))),
            ("a", "null".to_owned()),
            ("a", String::new()),
        ] {
            assert_eq!(StoredRow::decode(key, text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn long_texts_are_cut_until_the_row_fits() {
        let mut long = stored("a", 1, "x");
        long.row.cwd = "\u{1}".repeat(5000);
        long.row.name = Some("\\\u{10ffff}".repeat(3000));
        long.row.host = "h".repeat(5000);
        let text = long.encode();
        assert!(text.len() <= MAX_ROW_BYTES);
        let read = StoredRow::decode("a", &text).unwrap();
        assert!(!read.row.cwd.is_empty() && read.row.name.is_some());
    }

    proptest! {
        /// Machines write in any order and any number of times. The newest row of the newest stream must stay.
        #[test]
        fn the_order_of_writes_does_not_matter(
            written in prop::collection::vec((1_u64..20, 0..3_usize), 1..30),
        ) {
            let created = ["2026-01-01T00:00:40Z", "2026-01-01T00:00:40.1Z", "2026-01-01T00:00:40.12Z"];
            let mut kept: Option<StoredRow> = None;
            for (sequence, stream) in &written {
                let new = stored("a", *sequence, created[*stream]);
                if new.replaces(kept.as_ref()) {
                    kept = Some(new);
                }
            }
            let newest = written.iter().max_by_key(|(sequence, stream)| (*stream, *sequence)).unwrap();
            prop_assert_eq!(kept, Some(stored("a", newest.0, created[newest.1])));
        }
    }
}
