//! Reads versions 1 and 2 of the format as version 3 (session-file.md §2).
//!
//! Version 1 has neither ids nor parents: its entries form a chain, and a compaction names the first kept entry by
//! its position among the parsed lines. In version 2 the message role `custom` has the name `hookMessage`.
//! [`super::rewrite`] writes the migrated file.

use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::Arc;
use treelined_core::entry::Facts;
use treelined_core::json::{self, Members, quoted, quoted_or_null};
use treelined_core::tree::{FilePlace, Node};

/// The first entry that each compaction of version 1 keeps. The key is the offset in bytes of the line with the
/// compaction. The value is `None` if no entry has the position that the compaction names.
pub(crate) type Boundaries = Arc<HashMap<u64, Option<Node>>>;

/// The chain of a version 1 file.
#[derive(Default)]
pub(crate) struct Chain {
    /// The node of each parsed line; `None` for the header and lines that are not entries.
    parsed: Vec<Option<Node>>,
    last: Option<Node>,
    boundaries: Boundaries,
    /// The offsets in bytes of compactions that name a later line, by the number of that line.
    waiting: HashMap<usize, Vec<u64>>,
}

impl Chain {
    pub(crate) fn last(&self) -> Option<Node> {
        self.last
    }

    pub(crate) fn boundaries(&self) -> &Boundaries {
        &self.boundaries
    }

    /// Counts a parsed line that is not an entry.
    pub(crate) fn pass(&mut self) {
        self.parsed.push(None);
    }

    pub(crate) fn push(&mut self, node: Node, facts: &Facts<'_>, place: FilePlace) {
        if let Facts::Compaction {
            first_kept_entry_index: Some(index),
            ..
        } = facts
        {
            let index = usize::try_from(*index).unwrap_or(usize::MAX);
            let boundaries = Arc::make_mut(&mut self.boundaries);
            boundaries.insert(place.offset, self.parsed.get(index).copied().flatten());
            if index >= self.parsed.len() {
                self.waiting.entry(index).or_default().push(place.offset);
            }
        }
        for offset in self.waiting.remove(&self.parsed.len()).unwrap_or_default() {
            Arc::make_mut(&mut self.boundaries).insert(offset, Some(node));
        }
        self.parsed.push(Some(node));
        self.last = Some(node);
    }
}

/// Derives an id for an entry that has none. It is derived from the line number, the number of entries before the
/// entry on its line, and its bytes, so that every opening derives the same id. A counter avoids ids that are in
/// use.
pub(crate) fn derive_id(
    place: (u64, u64),
    bytes: &[u8],
    is_taken: impl Fn(&str) -> bool,
) -> String {
    let (line, before) = place;
    for count in before.. {
        let mut hash = Sha256::new();
        hash.update(line.to_le_bytes());
        hash.update(count.to_le_bytes());
        hash.update(bytes);
        let digest = hash.finalize();
        let id: String = digest
            .iter()
            .take(4)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        if !is_taken(&id) {
            return id;
        }
    }
    String::new()
}

/// The fields that a version 1 entry lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct V1Fields {
    pub id: String,
    pub parent_id: Option<String>,
    /// For a compaction that names its first kept entry by position, the id of that entry. The inner `None` means
    /// that there is no such entry: nothing was kept, and the compaction names itself.
    pub first_kept_entry_id: Option<Option<String>>,
}

/// Converts an entry of version 1 to version 3. `id` and `parentId` are inserted after `type`, and the position of the
/// first kept entry is replaced with its id; all other bytes stay.
pub(crate) fn from_v1(object: &[u8], given: &V1Fields) -> Vec<u8> {
    let mut text = json::without_member(object, "id");
    text = json::without_member(&text, "parentId");
    if let Some(kept) = &given.first_kept_entry_id {
        text = json::without_member(&text, "firstKeptEntryIndex");
        let kept = kept.as_ref().unwrap_or(&given.id);
        text = json::with_member(&text, "firstKeptEntryId", &quoted(kept));
    }
    let mut identity = b",\"id\":".to_vec();
    json::push_string(&mut identity, &given.id);
    identity.extend_from_slice(b",\"parentId\":");
    identity.extend_from_slice(&quoted_or_null(given.parent_id.as_deref()));
    match type_end(&text) {
        Some(at) => json::splice(&text, &[(at..at, &identity)]),
        None => text,
    }
}

/// Renames the message role `hookMessage` to `custom`.
pub(crate) fn rename_role(object: &[u8]) -> Vec<u8> {
    let role = json::get_path(object, &["message", "role"]);
    match role {
        Some(role) if json::string(role).as_deref() == Some("hookMessage") => {
            // `role` is a slice of `object`, so the difference of their addresses is its offset.
            let at = role.as_ptr() as usize - object.as_ptr() as usize;
            json::splice(object, &[(at..at + role.len(), b"\"custom\"")])
        }
        _ => object.to_vec(),
    }
}

fn type_end(object: &[u8]) -> Option<usize> {
    let mut members = Members::open(object, json::skip_space(object, 0)).ok()?;
    while let Some(member) = members.next_member().ok()? {
        if member.is(object, "type") {
            return Some(member.value.end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_1_entry_keeps_its_other_bytes() {
        let stored = br#"{"type":"compaction","timestamp":"t","summary":"s","firstKeptEntryIndex":3,"tokensBefore":1.0}"#;
        let given = V1Fields {
            id: "aa".into(),
            parent_id: None,
            first_kept_entry_id: Some(Some("bb".into())),
        };
        assert_eq!(
            String::from_utf8(from_v1(stored, &given)).unwrap(),
            r#"{"type":"compaction","id":"aa","parentId":null,"timestamp":"t","summary":"s","tokensBefore":1.0,"firstKeptEntryId":"bb"}"#
        );
    }

    #[test]
    fn hook_messages_become_custom() {
        let stored =
            br#"{"type":"message","id":"a","message":{"role" : "hookMessage","content":"x"}}"#;
        assert_eq!(
            String::from_utf8(rename_role(stored)).unwrap(),
            r#"{"type":"message","id":"a","message":{"role" : "custom","content":"x"}}"#
        );
        let other = br#"{"type":"message","message":{"role":"user"}}"#;
        assert_eq!(rename_role(other), other);
    }

    #[test]
    fn derived_ids_are_stable_and_free() {
        let first = derive_id((2, 0), b"{}", |_| false);
        assert_eq!(first, derive_id((2, 0), b"{}", |_| false));
        assert_eq!(first.len(), 8);
        assert_ne!(first, derive_id((3, 0), b"{}", |_| false));
        assert_ne!(first, derive_id((2, 0), b"{}", |id| id == first));
    }
}
