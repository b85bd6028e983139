//! The labelled entries of a session: a label is a field of another entry, which may be anywhere in the file.

use std::collections::HashMap;
use std::ops::Range;
use treelined_core::entry::Kind;
use treelined_core::error::Result;
use treelined_core::json;
use treelined_core::timestamp::{self, Millis};
use treelined_core::tree::Node;
use treelined_files::log::OpenedLog;

/// An entry with a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LabelledEntry {
    /// The line of the entry with its line break, in bytes from the start of the file.
    pub span: Range<u64>,
    /// The time of the entry.
    pub at: Millis,
    /// Its current label as stored.
    pub label: String,
}

/// The labelled entries of a session that may be hits, in file order.
pub(super) fn labelled_entries(opened: &OpenedLog) -> Result<Vec<LabelledEntry>> {
    let (tree, started) = (&opened.tree, started(opened));
    let labels = labels(opened)?.into_iter();
    let mut entries: Vec<LabelledEntry> = labels
        .filter(|(node, _)| tree.kind(*node) != Kind::Label)
        .map(|(node, label)| {
            let place = tree.place(node);
            LabelledEntry {
                span: place.offset..place.offset + u64::from(place.len) + 1,
                at: tree.timestamp(node).unwrap_or(started),
                label,
            }
        })
        .collect();
    entries.sort_unstable_by_key(|entry| entry.span.start);
    Ok(entries)
}

/// The current labels as stored. The scan finds lines by the stored text, and the normalized label may differ from it.
pub(super) fn labels(opened: &OpenedLog) -> Result<HashMap<Node, String>> {
    let (tree, bodies) = (&opened.tree, opened.log.bodies());
    let (mut reader, mut labels) = (bodies.reader(), HashMap::new());
    for (node, label) in tree.labels() {
        let line = reader.stored(tree.place(label.entry), usize::MAX)?;
        let text = json::get(line, "label").and_then(json::string);
        labels.extend(text.map(|text| (node, text.into_owned())));
    }
    Ok(labels)
}

/// The time when the session was created. It counts as the time of entries without a time. It is 0 if the header has no
/// readable time.
pub(super) fn started(opened: &OpenedLog) -> Millis {
    let header = opened.log.header();
    let started = header.and_then(|header| header.timestamp.as_deref());
    started.and_then(timestamp::parse).unwrap_or_default()
}
