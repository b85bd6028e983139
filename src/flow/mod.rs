//! What the operations on a session mean: plans and lines, computed from the tree.
//!
//! Pure: no files, no clock of its own, no waiting, no JSON-RPC. A flow says what is to be written;
//! [`crate::session`] writes it.

pub mod append;
pub mod compact;
pub mod fork;
pub mod leaf;
pub mod navigate;
pub mod path_rules;
mod paths;
pub mod pick;
pub mod validate;

use crate::id::{self, EntryId, Source};
use crate::json;
use crate::json::quoted_or_null;
use crate::timestamp;
use crate::tree::Tree;
use hashbrown::HashSet;

/// Lines that a flow has planned, ready to be written.
#[derive(Debug, Default)]
pub struct PlannedLines {
    /// Whole entries, without line breaks, in file order.
    pub lines: Vec<Vec<u8>>,
    /// Their ids, leaf records left out.
    pub entry_ids: Vec<EntryId>,
    /// How many lines there are up to the end of each operation, where several are written
    /// together.
    pub ends: Vec<usize>,
}

/// Makes the lines of one operation: fresh ids, one timestamp.
pub struct IdAllocator<'a> {
    tree: &'a Tree,
    source: &'a dyn Source,
    now: String,
    minted: HashSet<EntryId>,
}

impl<'a> IdAllocator<'a> {
    pub fn new(tree: &'a Tree, source: &'a dyn Source) -> Self {
        Self {
            tree,
            source,
            now: timestamp::format(source.now_ms()),
            minted: HashSet::new(),
        }
    }

    /// The time of the operation, as entries have it.
    pub fn now(&self) -> &str {
        &self.now
    }

    /// An id that neither the session nor this operation has used.
    pub fn id(&mut self) -> EntryId {
        loop {
            let id = id::entry_id_candidate(self.source);
            if self.tree.find_any(id.as_str()).is_none() && self.minted.insert(id.clone()) {
                return id;
            }
        }
    }

    /// Makes no such id: somebody else has chosen it.
    pub fn keep_off(&mut self, id: &EntryId) {
        self.minted.insert(id.clone());
    }

    /// `{"type":…,"id":…,"parentId":…,"timestamp":…` + `members` (each `,"name":value`) + `}`.
    pub fn line(
        &self,
        type_name: &str,
        id: &EntryId,
        parent_id: Option<&str>,
        members: &[u8],
    ) -> Vec<u8> {
        line(type_name, id, parent_id, &self.now, members)
    }
}

/// One entry as it goes into the file, without a line break.
pub fn line(
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

/// Appends `,"name":` and a string.
pub fn push_text_member(members: &mut Vec<u8>, name: &str, text: &str) {
    push_member_name(members, name);
    json::push_string(members, text);
}

/// Appends `,"name":` and raw JSON, whose line breaks become spaces.
pub fn push_raw_member(members: &mut Vec<u8>, name: &str, raw: &[u8]) {
    push_member_name(members, name);
    push_one_line(members, raw);
}

fn push_member_name(members: &mut Vec<u8>, name: &str) {
    members.push(b',');
    json::push_string(members, name);
    members.push(b':');
}

/// Raw JSON on one line, otherwise byte for byte: a line break can only stand between tokens.
pub fn push_one_line(out: &mut Vec<u8>, raw: &[u8]) {
    let mut rest = raw;
    while let Some(at) = memchr::memchr2(b'\n', b'\r', rest) {
        out.extend_from_slice(rest.get(..at).unwrap_or_default());
        out.push(b' ');
        rest = rest.get(at + 1..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
}
