//! The common ancestor of two nodes.

use super::node::{Node, raw, some};
use super::state::Tree;

impl Tree {
    /// The deepest node that is at or above both nodes; `None` if there is none.
    pub fn common_ancestor(&self, a: Option<Node>, b: Option<Node>) -> Option<Node> {
        self.nearby_ancestor(a, b)
            .unwrap_or_else(|| self.common_ancestor_by_depth(a, b))
    }

    /// Like [`Tree::common_ancestor`], with a number of steps that is the distance of the nodes. Of two nodes, the node
    /// that is later in the file cannot be an ancestor of the other node, so the walk moves up from the later node.
    /// `None` if a parent on the way is later in the file than its child.
    pub(super) fn nearby_ancestor(&self, a: Option<Node>, b: Option<Node>) -> Option<Option<Node>> {
        // Nodes are numbered from 1; 0 is the empty position above all roots.
        let number = |node: Option<Node>| raw(node).wrapping_add(1);
        let (mut one, mut other) = (number(a), number(b));
        while one != other {
            (one, other) = (one.max(other), one.min(other));
            while one > other {
                let above = number(self.parent(Node(one - 1)));
                if above >= one {
                    return None;
                }
                one = above;
            }
        }
        Some(some(one.wrapping_sub(1)))
    }

    pub(super) fn common_ancestor_by_depth(
        &self,
        a: Option<Node>,
        b: Option<Node>,
    ) -> Option<Node> {
        let (depth_a, depth_b) = (self.ancestors(a).count(), self.ancestors(b).count());
        let a = self.ancestors(a).skip(depth_a.saturating_sub(depth_b));
        let b = self.ancestors(b).skip(depth_b.saturating_sub(depth_a));
        a.zip(b).find(|(a, b)| a == b).map(|(a, _)| a)
    }

    /// The common ancestor of `tip` and `other`, and the path from below it to `tip`.
    pub fn branch(&self, tip: Option<Node>, other: Option<Node>) -> (Option<Node>, Vec<Node>) {
        let (ancestor, mut branch) = self.nearby_branch(tip, other).unwrap_or_else(|| {
            let ancestor = self.common_ancestor_by_depth(tip, other);
            let path = self.ancestors(tip);
            let branch = path.take_while(|node| Some(*node) != ancestor);
            (ancestor, branch.collect())
        });
        branch.reverse();
        (ancestor, branch)
    }

    /// Like [`Tree::branch`], in one walk. The branch runs from `tip` upwards. `None` as in
    /// [`Tree::nearby_ancestor`].
    pub(super) fn nearby_branch(
        &self,
        tip: Option<Node>,
        other: Option<Node>,
    ) -> Option<(Option<Node>, Vec<Node>)> {
        // Nodes are numbered from 1; 0 is the empty position above all roots.
        let number = |node: Option<Node>| raw(node).wrapping_add(1);
        let above = |of: u32| Some(number(self.parent(Node(of - 1)))).filter(|above| *above < of);
        let (mut own, mut across) = (number(tip), number(other));
        let mut branch = Vec::new();
        while own != across {
            while across > own {
                across = above(across)?;
            }
            while own > across {
                branch.push(Node(own - 1));
                own = above(own)?;
            }
        }
        Some((some(own.wrapping_sub(1)), branch))
    }
}
