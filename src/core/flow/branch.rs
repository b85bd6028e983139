//! Names and archives branches, with records that do not move the leaf (session-file.md §4.7).

use super::leaf;
use super::{IdAllocator, PlannedLines};
use crate::entry::{ARCHIVED, BRANCH, UNARCHIVED};
use crate::error::{Error, Kind, Result};
use crate::id::Source;
use crate::json;
use crate::tree::{Cause, Node, Tree};
use serde_json::json;

/// Names the branch that begins with `head`; `None` removes its name. Plans no line if the branch has this name
/// already.
pub fn plan_name(tree: &Tree, source: &dyn Source, head: Node, name: Option<&str>) -> PlannedLines {
    if tree.branch_name(head) == name {
        return PlannedLines::default();
    }
    let mut data = data(tree, head);
    data.extend_from_slice(b",\"name\":");
    data.extend_from_slice(&json::quoted_or_null(name));
    data.push(b'}');
    let mut minter = IdAllocator::new(tree, source);
    let at = tree.file_leaf().map(|leaf| tree.id(leaf));
    staying(vec![leaf::record_line(&mut minter, BRANCH, at, &data)])
}

/// Archives the branch that begins with `head`; the leaf must not be in it. `within` are the first entries of branches
/// inside this branch, and each of them gets its own record. Plans no line for a branch that is archived already. Fails
/// with `leafMoved` if the file opens in the branch: another program works there.
pub fn plan_archive(
    tree: &Tree,
    source: &dyn Source,
    head: Node,
    within: &[Node],
) -> Result<PlannedLines> {
    let archived = tree.archived();
    if archived.hides(head) {
        return Ok(PlannedLines::default());
    }
    let at = tree.file_leaf();
    if let Some(at) = at.filter(|at| tree.is_ancestor(head, *at)) {
        let message = format!(
            "another program has moved into the branch, to {:?}: go there first, or archive another branch",
            tree.id(at)
        );
        let leaf_id = tree.leaf().map(|leaf| tree.id(leaf));
        let details = json!({"expectedLeafId": leaf_id, "leafId": tree.id(at), "entries": []});
        return Err(Error::new(Kind::LeafMoved, message).with_details(details));
    }
    let mut minter = IdAllocator::new(tree, source);
    let at = at.map(|at| tree.id(at));
    let inner = within.iter().filter(|inner| !archived.begins_with(**inner));
    let heads = [&head].into_iter().chain(inner);
    let lines = heads.map(|head| archived_record(&mut minter, tree, *head, at));
    Ok(staying(lines.collect()))
}

/// Plans a redo to a position. A branch that the undo has brought back is archived again. `may_archive` gets the first
/// entry of the outermost such branch, and says whether it may be archived now.
pub fn plan_redo(
    tree: &Tree,
    source: &dyn Source,
    to: Option<Node>,
    may_archive: impl Fn(Node) -> bool,
) -> PlannedLines {
    let mut planned = PlannedLines::default();
    if tree.leaf() == to {
        return planned;
    }
    let mut minter = IdAllocator::new(tree, source);
    let record = leaf::record(&mut minter, tree, to, Cause::Redo);
    planned.lines.push(record);
    let heads = tree.archived_by_redo(to);
    if heads.first().is_some_and(|head| may_archive(*head)) {
        let at = to.map(|to| tree.id(to));
        for head in heads {
            planned
                .lines
                .push(archived_record(&mut minter, tree, head, at));
        }
    }
    planned
}

/// The entries with these ids. Each must be within the branch that begins with `head`.
pub fn within(tree: &Tree, ids: &[String], head: Node) -> Result<Vec<Node>> {
    let found = ids.iter().map(|id| {
        let node = tree.find(id).ok_or_else(|| Error::entry_not_found(id))?;
        if node != head && tree.is_ancestor(head, node) {
            return Ok(node);
        }
        let reason = format!("has {id:?}, which is not within the branch");
        Err(Error::invalid_params("within", reason))
    });
    found.collect()
}

/// Brings back the branches that begin with these entries.
pub fn plan_unarchive(tree: &Tree, source: &dyn Source, heads: &[Node]) -> PlannedLines {
    let mut minter = IdAllocator::new(tree, source);
    let at = tree.file_leaf().map(|leaf| tree.id(leaf));
    let lines = heads.iter().map(|head| {
        let mut data = data(tree, *head);
        data.push(b'}');
        leaf::record_line(&mut minter, UNARCHIVED, at, &data)
    });
    staying(lines.collect())
}

/// The record that archives a branch; `at` is the id of the position where the file opens.
pub(super) fn archived_record(
    minter: &mut IdAllocator<'_>,
    tree: &Tree,
    head: Node,
    at: Option<&str>,
) -> Vec<u8> {
    let mut data = data(tree, head);
    data.push(b'}');
    leaf::record_line(minter, ARCHIVED, at, &data)
}

/// The beginning of the data of a record.
fn data(tree: &Tree, head: Node) -> Vec<u8> {
    let mut data = b"{\"entryId\":".to_vec();
    json::push_string(&mut data, tree.id(head));
    data
}

fn staying(lines: Vec<Vec<u8>>) -> PlannedLines {
    PlannedLines {
        lines,
        stays: true,
        ..PlannedLines::default()
    }
}
