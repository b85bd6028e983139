//! Names and archive of branches: records that move no leaf (session-file.md §4.7).

use super::leaf;
use super::{IdAllocator, PlannedLines};
use crate::entry::{ARCHIVED, BRANCH, UNARCHIVED};
use crate::id::Source;
use crate::json;
use crate::tree::{Cause, Node, Tree};

/// Names the branch that begins with `head`; `None` removes its name. No line if it has this name.
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

/// Archives the branch that begins with `head`, which does not hold the leaf. If the file opens in it, the file opens
/// at the leaf from then on. No line if it is archived.
pub fn plan_archive(tree: &Tree, source: &dyn Source, head: Node) -> PlannedLines {
    if tree.archived().hides(head) {
        return PlannedLines::default();
    }
    let mut minter = IdAllocator::new(tree, source);
    let mut lines = Vec::new();
    let mut at = tree.file_leaf();
    if at.is_some_and(|at| tree.is_ancestor(head, at)) {
        let to = tree.leaf();
        let cause = Cause::NavigateTree.name();
        lines.push(leaf::record_from(&mut minter, tree, at, to, cause));
        at = to;
    }
    let at = at.map(|at| tree.id(at));
    lines.push(archived_record(&mut minter, tree, head, at));
    staying(lines)
}

/// Brings the branches back that begin with these entries.
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

/// The record that archives a branch; `at` is the id of the place where the file opens.
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

/// The beginning of a record's data.
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
