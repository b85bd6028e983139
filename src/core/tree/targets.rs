//! The positions to which undo and redo go.

use super::moves::{Moves, Position};
use super::node::Node;
use super::state::Tree;
use super::steps;
use std::collections::HashSet;

impl Moves {
    /// The position to which undo would go from the leaf of `tree`. Positions that the file does not have, and
    /// positions at the step of the leaf, are skipped.
    pub fn undo_target(&self, tree: &Tree) -> Option<Option<Node>> {
        target(&self.undo, tree)
    }

    /// The position to which redo would go from the leaf of `tree`.
    pub fn redo_target(&self, tree: &Tree) -> Option<Option<Node>> {
        target(&self.redo, tree)
    }
}

/// The newest position of `stack` that is at another step than the leaf. The time is linear in the stack and the tree:
/// a walk up ends at the first entry that is known to have the step of the leaf.
fn target(stack: &[Position], tree: &Tree) -> Option<Option<Node>> {
    let leaf = tree.leaf();
    let here = tree.skip_bookkeeping(leaf);
    let mut with_step_of_leaf: HashSet<Node> = leaf.into_iter().collect();
    let mut positions = stack.iter().rev().filter_map(|position| position.known());
    positions.find(|position| {
        let mut passed = Vec::new();
        let mut above = tree.ancestors(*position);
        let found = above.find(|node| {
            steps::count(1);
            passed.push(*node);
            with_step_of_leaf.contains(node) || !tree.kind(*node).is_bookkeeping()
        });
        let stays = found == here || found.is_some_and(|node| with_step_of_leaf.contains(&node));
        if stays {
            with_step_of_leaf.extend(passed);
        }
        !stays
    })
}
