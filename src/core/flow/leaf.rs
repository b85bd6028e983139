//! Moves of the leaf: `set_leaf`, `branch`, undo and redo (session-file.md §4).

use super::{IdAllocator, pick, push_raw_member, push_text_member};
use crate::entry::{CONTINUE, KEEP, LEAF_RECORD};
use crate::error::{Error, Kind, Result};
use crate::flow::PlannedLines;
use crate::id::Source;
use crate::json::quoted_or_null;
use crate::tree::{Cause, Node, Tree};

/// A summary of the branch that the leaf leaves.
#[derive(Debug, Clone)]
pub struct BranchSummary {
    pub text: String,
    /// Raw JSON.
    pub details: Option<Vec<u8>>,
    /// Raw JSON; `None` if no model was asked.
    pub usage: Option<Vec<u8>>,
    /// Whether a client or a hook wrote the summary.
    pub from_hook: bool,
}

impl BranchSummary {
    /// Whether the summary has no text. An empty summary gets no entry.
    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
    }
}

/// The leaf record that makes a move durable; no line if the leaf does not move.
pub fn plan(tree: &Tree, source: &dyn Source, to: Option<Node>, cause: Cause) -> PlannedLines {
    let mut planned = PlannedLines::default();
    if tree.leaf() != to {
        let mut minter = IdAllocator::new(tree, source);
        planned.lines.push(record(&mut minter, tree, to, cause));
    }
    planned
}

/// The target of undo or redo.
pub fn history_target(tree: &Tree, cause: Cause) -> Result<Option<Node>> {
    let (target, name) = match cause {
        Cause::Redo => (tree.moves().redo_target(tree), "redo"),
        _ => (tree.moves().undo_target(tree), "undo"),
    };
    target.ok_or_else(|| {
        Error::new(
            Kind::NothingToUndo,
            format!("there is no navigation to {name}"),
        )
    })
}

/// `{"type":"custom","customType":"treelined.leaf",…}` (session-file.md §4).
pub(crate) fn record(
    minter: &mut IdAllocator<'_>,
    tree: &Tree,
    to: Option<Node>,
    cause: Cause,
) -> Vec<u8> {
    record_from(minter, tree, tree.leaf(), to, cause.name())
}

/// Ends planned bookkeeping with a record of the position where the file opens, if the leaf is elsewhere
/// (session-file.md §4.3). Ends planned background entries with this record in any case (session-file.md §4.9).
pub(crate) fn keep(planned: &mut PlannedLines, minter: &mut IdAllocator<'_>, tree: &Tree) {
    let opens_at = tree.file_leaf();
    let is_there = planned.has_steps || opens_at == tree.leaf();
    if planned.lines.is_empty() || (is_there && !planned.background) {
        return;
    }
    let record = record_from(minter, tree, opens_at, opens_at, KEEP);
    planned.lines.push(record);
    planned.keeps = true;
    planned.stays = planned.background;
}

/// The record of the position where the file opens. Programs that do not know this record open the file at its last
/// line.
pub fn plan_keep(tree: &Tree, source: &dyn Source) -> Vec<u8> {
    let opens_at = tree.file_leaf();
    let mut minter = IdAllocator::new(tree, source);
    record_from(&mut minter, tree, opens_at, opens_at, KEEP)
}

/// The record of a continuation (a raw JSON object), at the position where the file opens (session-file.md §4.6).
pub fn plan_continuation(tree: &Tree, source: &dyn Source, continuation: &[u8]) -> PlannedLines {
    let mut members = Vec::with_capacity(continuation.len() + 16);
    push_raw_member(&mut members, "continuation", continuation);
    let opens_at = tree.file_leaf();
    let mut minter = IdAllocator::new(tree, source);
    PlannedLines {
        lines: vec![record_with(
            &mut minter,
            tree,
            (opens_at, opens_at),
            CONTINUE,
            &members,
        )],
        stays: true,
        ..PlannedLines::default()
    }
}

/// A leaf record with any cause and from any position.
pub fn record_from(
    minter: &mut IdAllocator<'_>,
    tree: &Tree,
    from: Option<Node>,
    to: Option<Node>,
    cause: &str,
) -> Vec<u8> {
    record_with(minter, tree, (from, to), cause, b"")
}

/// `members` are further members of `data`, each in the form `,"name":value`.
fn record_with(
    minter: &mut IdAllocator<'_>,
    tree: &Tree,
    (from, to): (Option<Node>, Option<Node>),
    cause: &str,
    members: &[u8],
) -> Vec<u8> {
    let mut data = b"{\"from\":".to_vec();
    data.extend_from_slice(&quoted_or_null(from.map(|from| tree.id(from))));
    data.extend_from_slice(b",\"cause\":");
    crate::json::push_string(&mut data, cause);
    data.extend_from_slice(members);
    data.push(b'}');
    record_line(minter, LEAF_RECORD, to.map(|to| tree.id(to)), &data)
}

/// A line that is not an entry, with its data as raw JSON.
pub(super) fn record_line(
    minter: &mut IdAllocator<'_>,
    custom_type: &str,
    parent_id: Option<&str>,
    data: &[u8],
) -> Vec<u8> {
    let id = minter.id();
    let mut line = b"{\"type\":\"custom\",\"customType\":".to_vec();
    crate::json::push_string(&mut line, custom_type);
    line.extend_from_slice(b",\"id\":");
    crate::json::push_string(&mut line, id.as_str());
    line.extend_from_slice(b",\"parentId\":");
    line.extend_from_slice(&quoted_or_null(parent_id));
    line.extend_from_slice(b",\"timestamp\":");
    crate::json::push_string(&mut line, minter.now());
    push_raw_member(&mut line, "data", data);
    line.push(b'}');
    line
}

/// The end of a branch that is merged.
#[derive(Debug, Clone, Copy)]
pub struct Merged<'a> {
    pub tip_id: &'a str,
    /// The session of the branch, if it is another one.
    pub session_id: Option<&'a str>,
}

/// Plans a `branch_summary` at the new leaf. It summarizes the branch that ends at the old leaf (semantics.md §6), or
/// at the tip of the merged branch.
pub fn plan_summary(
    tree: &Tree,
    minter: &mut IdAllocator<'_>,
    to: Option<Node>,
    merges: Option<Merged<'_>>,
    summary: &BranchSummary,
) -> PlannedLines {
    let id = minter.id();
    let old_leaf = tree.leaf().map(|leaf| tree.id(leaf));
    let from_id = merges.map(|merged| merged.tip_id).or(old_leaf);
    let from_id = from_id.unwrap_or("root");
    let mut members = Vec::new();
    push_text_member(&mut members, "fromId", from_id);
    push_text_member(&mut members, "summary", &summary.text);
    if let Some(details) = &summary.details {
        push_raw_member(&mut members, "details", details);
    }
    if let Some(usage) = &summary.usage {
        push_raw_member(&mut members, "usage", usage);
    }
    if summary.from_hook {
        push_raw_member(&mut members, "fromHook", b"true");
    }
    if let Some(Merged { tip_id, session_id }) = merges {
        push_raw_member(&mut members, "merge", b"true");
        if session_id.is_some() {
            let source = pick::copied_from(tip_id, session_id);
            push_raw_member(&mut members, "copiedFrom", &source);
        }
    }
    let parent_id = to.map(|to| tree.id(to));
    PlannedLines {
        lines: vec![minter.line("branch_summary", &id, parent_id, &members)],
        entry_ids: vec![id],
        ..PlannedLines::default()
    }
}
