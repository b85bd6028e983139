//! Paths of the tree as [`PathStep`]s, from which contexts are made. Also the stored size of entries.

use super::SessionState;
use treelined_core::context::{Kept, PathStep};
use treelined_core::error::Result;
use treelined_core::tree::Node;

impl SessionState {
    /// The path from the first entry to a position.
    pub fn steps(&self, position: Option<Node>) -> Vec<PathStep> {
        let path = self.tree.path(position).into_iter();
        path.map(|node| self.step(node)).collect()
    }

    /// The step of a path for this node.
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

    /// The number of bytes that these entries have together, as stored.
    pub fn stored_bytes(&self, nodes: impl IntoIterator<Item = Node>) -> u64 {
        let sizes = nodes.into_iter().map(|node| self.tree.place(node).len);
        sizes.map(u64::from).sum()
    }

    /// The bytes of the longest of these entries, as stored.
    pub fn longest_bytes(&self, nodes: impl IntoIterator<Item = Node>) -> u64 {
        let sizes = nodes.into_iter().map(|node| self.tree.place(node).len);
        u64::from(sizes.max().unwrap_or_default())
    }
}
