//! The steps that other writers append below the step of the leaf. Each entry is examined once, when it arrives, so
//! that a request with `expectedLeafId` need not examine all entries again.

use super::flags::Flags;
use super::lineage::Lineage;
use super::node::{NONE, Node, raw};
use super::state::Tree;
use crate::entry::Kind;
use hashbrown::HashMap;

/// The most entries that are kept.
pub const MAX_FOUND: usize = 100;

/// The steps of other writers below the step of the leaf. Only steps count that arrived after the leaf moved to its
/// present step.
#[derive(Default)]
pub struct Below {
    step: Option<Node>,
    /// The number of nodes when the leaf moved to its present step.
    since: usize,
    /// The number of nodes examined so far.
    looked: usize,
    /// The number of the tree's forward links examined so far.
    links: usize,
    lineage: Lineage,
    found: Vec<Node>,
    /// For each root that waits for a parent later in the file: the root and the entries below it. If that parent is
    /// below the step of the leaf, these entries are below the step too.
    elsewhere: HashMap<u32, Vec<Node>>,
}

impl Below {
    /// Starts with the present leaf. Only nodes that are added later will be examined.
    pub fn from_now_on(tree: &Tree) -> Self {
        let count = tree.node_count();
        Self {
            step: tree.skip_bookkeeping(tree.leaf()),
            since: count,
            looked: count,
            links: tree.forward_links.len(),
            ..Self::default()
        }
    }

    /// The step of the leaf.
    pub fn step(&self) -> Option<Node> {
        self.step
    }

    /// The entries found, at most the first [`MAX_FOUND`].
    pub fn found(&self) -> &[Node] {
        &self.found
    }

    /// Examines the entries that have arrived since the last call.
    pub fn look(&mut self, tree: &Tree) {
        // As long as no parent is later in the file than its child, a walk up ends at the first node before the step.
        // The first forward link makes the roots found so far wrong, so everything is examined again.
        if self.links == 0 && !tree.forward_links.is_empty() {
            self.looked = self.since;
            self.found.clear();
            self.elsewhere.clear();
        }
        let new = (self.looked..tree.node_count()).filter_map(|number| tree.node(number));
        for node in new {
            let kind = tree.kind(node);
            let counts = kind != Kind::LeafRecord && !kind.is_bookkeeping();
            let flags = tree.flags(node);
            if counts && flags.has(Flags::FOREIGN) && !flags.has(Flags::STAYS) {
                self.place(tree, node, vec![node]);
            }
        }
        self.looked = tree.node_count();
        for number in self.links..tree.forward_links.len() {
            let linked = tree.forward_links.get(number).map(|report| report.node);
            if let Some(linked) = linked
                && let Some(nodes) = self.elsewhere.remove(&linked.0)
            {
                self.place(tree, linked, nodes);
            }
        }
        self.links = tree.forward_links.len();
    }

    /// Keeps `nodes` (`at` or entries below it) in two cases: they are below the step of the leaf, or they may be
    /// below it once their root has a parent.
    fn place(&mut self, tree: &Tree, at: Node, nodes: Vec<Node>) {
        let root = self.root(tree, at);
        let kept = if self.step.is_none() || root == raw(self.step) {
            &mut self.found
        } else if tree.flags(Node(root)).has(Flags::ORPHAN) {
            self.elsewhere.entry(root).or_default()
        } else {
            return;
        };
        let room = MAX_FOUND.saturating_sub(kept.len());
        kept.extend(nodes.into_iter().take(room));
    }

    /// The root above `node`; the step of the leaf instead, if `node` is below it.
    fn root(&mut self, tree: &Tree, node: Node) -> u32 {
        let Some(step) = self.step else {
            return node.0;
        };
        let all_parents_are_earlier = tree.forward_links.is_empty();
        self.lineage.root(node.0, |at| {
            if at == step.0 || (all_parents_are_earlier && at < step.0) {
                NONE
            } else {
                raw(tree.parent(Node(at)))
            }
        })
    }
}
