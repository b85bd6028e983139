//! The branches of a tree: the tip and the fork of each branch.

use super::node::Node;
use super::state::Tree;
use super::steps;
use crate::entry::{Kind, Role};

/// One branch. Bookkeeping does not begin branches: it is skipped on the way up and down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// Its last step.
    pub tip: Node,
    /// The deepest step above the tip that is also part of another branch; `None` if there is none.
    pub fork: Option<Node>,
    /// The number of messages after the fork, the tip included.
    pub message_count: u64,
    /// The user messages among these messages, the first one first.
    pub prompts: Vec<Node>,
    /// Whether the tip is the step of the leaf.
    pub is_active: bool,
    /// The entry that gives the branch its name ([`Tree::branch_name`]).
    pub named_by: Option<Node>,
}

/// Every branch, in file order of the tips. Takes linear time, since no step between a fork and its tip belongs to two
/// branches.
pub fn list(tree: &Tree) -> Vec<Branch> {
    let above = conversation_parents(tree);
    let (children, is_end) = children_counts(tree, &above);
    let child_count = |node: Node| children.get(node.number()).copied().unwrap_or_default();
    let is_end = |node: Node| is_end.get(node.number()) == Some(&true);
    let active = tree.skip_bookkeeping(tree.leaf());
    let names = Names::of(tree, &above);
    tree.entries()
        .filter(|node| is_conversation(tree, *node) && is_end(*node))
        .map(|tip| {
            let (mut message_count, mut prompts) = (0, Vec::new());
            let mut at = Some(tip);
            while let Some(node) = at.filter(|node| *node == tip || child_count(*node) < 2) {
                steps::count(1);
                if tree.kind(node) == Kind::Message {
                    message_count += 1;
                    prompts.extend((tree.role(node) == Role::User).then_some(node));
                }
                at = get(&above, node);
            }
            prompts.reverse();
            Branch {
                tip,
                fork: at,
                message_count,
                prompts,
                is_active: active == Some(tip),
                named_by: names.find(tip),
            }
        })
        .collect()
}

/// For each node, the number of steps directly below it, and whether a branch ends there. A branch ends at a node if
/// nothing is below the node, or only branches that were begun in the background. In the second case the end is
/// counted as a step, so that the node is the fork of these branches.
fn children_counts(tree: &Tree, above: &[Option<Node>]) -> (Vec<u32>, Vec<bool>) {
    let mut children = vec![0u32; tree.node_count()];
    let mut is_end = vec![true; tree.node_count()];
    for node in tree.entries().filter(|node| is_conversation(tree, *node)) {
        let Some(parent) = get(above, node) else {
            continue;
        };
        if let Some(count) = children.get_mut(parent.number()) {
            *count += 1;
        }
        if let Some(is_end) = is_end.get_mut(parent.number())
            && !tree.begins_background(node, parent)
        {
            *is_end = false;
        }
    }
    for (count, is_end) in children.iter_mut().zip(&is_end) {
        *count += u32::from(*is_end && *count > 0);
    }
    (children, is_end)
}

/// Finds the names of branches. At a fork a name continues with the step that was written first.
struct Names<'t> {
    tree: &'t Tree,
    above: &'t [Option<Node>],
    /// For each step, the step below it that was written first; empty if no branch has a name.
    eldest: Vec<Option<Node>>,
}

impl<'t> Names<'t> {
    fn of(tree: &'t Tree, above: &'t [Option<Node>]) -> Self {
        let mut eldest = Vec::new();
        if tree.has_branch_names() {
            eldest = vec![None; tree.node_count()];
            for node in tree.entries().filter(|node| is_conversation(tree, *node)) {
                let parent = get(above, node);
                let parent = parent.filter(|above| !tree.begins_background(node, *above));
                let slot = parent.and_then(|parent| eldest.get_mut(parent.number()));
                if let Some(slot @ None) = slot {
                    *slot = Some(node);
                }
            }
        }
        Self {
            tree,
            above,
            eldest,
        }
    }

    /// The nearest entry whose name reaches `tip`. Takes linear time for all tips together, since each step leads to
    /// one tip only.
    fn find(&self, tip: Node) -> Option<Node> {
        let mut at = Some(tip).filter(|_| !self.eldest.is_empty());
        while let Some(node) = at {
            steps::count(1);
            if self.tree.branch_name(node).is_some() {
                return Some(node);
            }
            at = get(self.above, node).filter(|above| get(&self.eldest, *above) == Some(node));
        }
        None
    }
}

fn is_conversation(tree: &Tree, node: Node) -> bool {
    !tree.kind(node).is_bookkeeping()
}

fn get(above: &[Option<Node>], node: Node) -> Option<Node> {
    above.get(node.number()).copied().flatten()
}

/// For each node, the nearest step above it. Takes linear time: the walk from a node stops at the first ancestor whose
/// result is known.
fn conversation_parents(tree: &Tree) -> Vec<Option<Node>> {
    let mut above: Vec<Option<Node>> = vec![None; tree.node_count()];
    let mut known = vec![false; tree.node_count()];
    for node in tree.entries() {
        let mut passed = vec![node];
        let mut found = None;
        let mut at = tree.parent(node);
        while let Some(parent) = at {
            if is_conversation(tree, parent) {
                found = Some(parent);
                break;
            }
            if known.get(parent.number()).copied().unwrap_or_default() {
                found = get(&above, parent);
                break;
            }
            passed.push(parent);
            at = tree.parent(parent);
        }
        for node in passed {
            let number = node.number();
            if let (Some(slot), Some(known)) = (above.get_mut(number), known.get_mut(number)) {
                (*slot, *known) = (found, true);
            }
        }
    }
    above
}
