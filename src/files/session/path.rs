//! Paths of the tree as [`PathStep`]s, from which contexts are made, and the stored bytes of entries.

use super::SessionState;
use treelined_core::context::{Kept, PathStep};
use treelined_core::error::Result;
use treelined_core::tree::Node;

impl SessionState {
    /// The path to a position, from the first entry.
    pub fn steps(&self, position: Option<Node>) -> Vec<PathStep> {
        let path = self.tree.path(position).into_iter();
        path.map(|node| self.step(node)).collect()
    }

    /// One step of a path.
    pub fn step(&self, node: Node) -> PathStep {
        PathStep {
            node,
            kind: self.tree.kind(node),
            role: self.tree.role(node),
        }
    }

    /// The part of a path that the context contains.
    pub fn kept(&self, path: &[PathStep]) -> Result<Kept> {
        Kept::of(path, |node| self.entry(node), |id| self.tree.find(id))
    }

    /// The stored bytes of these entries together.
    pub fn stored_bytes(&self, nodes: impl IntoIterator<Item = Node>) -> u64 {
        let sizes = nodes.into_iter().map(|node| self.tree.place(node).len);
        sizes.map(u64::from).sum()
    }
}
