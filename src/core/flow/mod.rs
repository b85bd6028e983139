//! Plans the operations on a session: computes the lines to write from the tree.
//!
//! This module is pure: no files, no clock, no waiting, no JSON-RPC. The session writes the lines.

pub mod append;
pub mod branch;
pub mod compact;
pub mod fork;
pub mod leaf;
pub mod navigate;
mod new_entry;
pub(crate) mod path_rules;
mod paths;
pub mod pick;
pub mod shed;
pub mod sorting;
pub mod subtree;
pub mod validate;

use crate::id::{self, EntryId, Source};
use crate::json;
use crate::json::quoted_or_null;
use crate::timestamp;
use crate::tree::Tree;
use hashbrown::HashSet;

/// The lines that a flow has planned, ready to be written.
#[derive(Debug, Default)]
pub struct PlannedLines {
    /// Complete entries, without line breaks, in file order.
    pub lines: Vec<Vec<u8>>,
    /// The ids of the entries, without leaf records.
    pub entry_ids: Vec<EntryId>,
    /// For several operations that are written together: for each operation, the number of lines up to its end.
    pub ends: Vec<usize>,
    /// Whether the lines of an append include a step, and not only bookkeeping.
    pub has_steps: bool,
    /// Whether a record was added as the last line, so that the file opens at the same position as before
    /// (session-file.md §4.3).
    pub keeps: bool,
    /// Whether the lines change neither the position where the file opens nor the daemon's leaf.
    pub stays: bool,
    /// Whether the lines were appended in the background. Then both `keeps` and `stays` are true.
    pub background: bool,
}

/// The leaf of the daemon after a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeafAfter {
    /// The position where the file opens.
    OfFile,
    /// The last entry of the operation. The file opens at the same position as before.
    Own,
    /// The leaf before the write.
    Stays,
    /// The leaf before the write. The lines were appended in the background.
    Background,
}

impl LeafAfter {
    /// Whether the daemon's leaf stays.
    pub fn stays(self) -> bool {
        matches!(self, Self::Stays | Self::Background)
    }
}

impl PlannedLines {
    /// The leaf after the write of these lines.
    pub fn leaf_after(&self) -> LeafAfter {
        match (self.stays, self.keeps) {
            (true, _) if self.background => LeafAfter::Background,
            (true, _) => LeafAfter::Stays,
            (false, true) => LeafAfter::Own,
            (false, false) => LeafAfter::OfFile,
        }
    }

    /// The number of lines of the operation, without the record that keeps the position where the
    /// file opens.
    pub fn own_lines(&self) -> usize {
        self.lines.len() - usize::from(self.keeps)
    }
}

/// Allocates ids and makes lines for one operation: fresh ids, one timestamp.
pub struct IdAllocator<'a> {
    tree: &'a Tree,
    source: &'a dyn Source,
    now: String,
    minted: HashSet<EntryId>,
    /// Whether entries of the session are in the cold file.
    has_shed: bool,
}

impl<'a> IdAllocator<'a> {
    pub fn new(tree: &'a Tree, source: &'a dyn Source) -> Self {
        Self {
            tree,
            source,
            now: timestamp::format(source.now_ms()),
            minted: HashSet::new(),
            has_shed: tree.has_shed(),
        }
    }

    /// The timestamp of the operation, in the format of entries.
    pub(crate) fn now(&self) -> &str {
        &self.now
    }

    /// A new id that neither the session nor this operation uses.
    pub(crate) fn id(&mut self) -> EntryId {
        loop {
            // The tree does not have the ids of the cold file. A long id differs from all of them.
            let id = match self.has_shed {
                true => id::long_entry_id_candidate(self.source),
                false => id::entry_id_candidate(self.source),
            };
            if self.tree.find_any(id.as_str()).is_none() && self.minted.insert(id.clone()) {
                return id;
            }
        }
    }

    /// Reserves an id that the client has chosen.
    pub(crate) fn keep_off(&mut self, id: &EntryId) {
        self.minted.insert(id.clone());
    }

    /// `{"type":…,"id":…,"parentId":…,"timestamp":…` + `members` (each `,"name":value`) + `}`.
    pub(crate) fn line(
        &self,
        type_name: &str,
        id: &EntryId,
        parent_id: Option<&str>,
        members: &[u8],
    ) -> Vec<u8> {
        line(type_name, id, parent_id, &self.now, members)
    }
}

/// One entry as a line of the file, without a line break.
pub(crate) fn line(
    type_name: &str,
    id: &EntryId,
    parent_id: Option<&str>,
    timestamp: &str,
    members: &[u8],
) -> Vec<u8> {
    let mut line = Vec::with_capacity(128 + members.len());
    line.extend_from_slice(b"{\"type\":");
    json::push_string(&mut line, type_name);
    line.extend_from_slice(b",\"id\":");
    json::push_string(&mut line, id.as_str());
    line.extend_from_slice(b",\"parentId\":");
    line.extend_from_slice(&quoted_or_null(parent_id));
    line.extend_from_slice(b",\"timestamp\":");
    json::push_string(&mut line, timestamp);
    line.extend_from_slice(members);
    line.push(b'}');
    line
}

/// Appends `,"name":` and a string literal.
pub(crate) fn push_text_member(members: &mut Vec<u8>, name: &str, text: &str) {
    push_member_name(members, name);
    json::push_string(members, text);
}

/// Appends `,"name":` and raw JSON, whose line breaks become spaces.
pub(crate) fn push_raw_member(members: &mut Vec<u8>, name: &str, raw: &[u8]) {
    push_member_name(members, name);
    json::push_one_line(members, raw);
}

fn push_member_name(members: &mut Vec<u8>, name: &str) {
    members.push(b',');
    json::push_string(members, name);
    members.push(b':');
}
