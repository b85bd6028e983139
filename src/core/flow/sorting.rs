//! Records the tags of a session, and its branch, commit and worktree in git. The records do not move the leaf
//! (session-file.md §4.8).

use super::leaf;
use super::{IdAllocator, PlannedLines};
use crate::entry::{GIT, TAGS};
use crate::id::Source;
use crate::tags::{self, GitPlace};
use crate::tree::Tree;
use std::collections::BTreeSet;

/// Adds tags to the session and removes others. Plans no line if nothing changes.
pub fn plan_tags(
    tree: &Tree,
    source: &dyn Source,
    add: &BTreeSet<String>,
    remove: &BTreeSet<String>,
) -> PlannedLines {
    if add.is_empty() && remove.is_empty() {
        return PlannedLines::default();
    }
    record(tree, source, TAGS, &tags::change(add, remove))
}

/// Records the branch, commit and worktree of the session in git.
pub fn plan_git(tree: &Tree, source: &dyn Source, git: &GitPlace) -> PlannedLines {
    record(tree, source, GIT, &git.data())
}

fn record(tree: &Tree, source: &dyn Source, custom_type: &str, data: &[u8]) -> PlannedLines {
    let mut minter = IdAllocator::new(tree, source);
    let at = tree.file_leaf().map(|leaf| tree.id(leaf));
    PlannedLines {
        lines: vec![leaf::record_line(&mut minter, custom_type, at, data)],
        stays: true,
        ..PlannedLines::default()
    }
}
