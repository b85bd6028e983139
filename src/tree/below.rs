//! Which of the entries that others append stand below the leaf. Each entry is looked at once, when it
//! arrives: with many of them, a request that names its leaf must not look at all of them again.

use super::lineage::Lineage;
use super::{Flags, Kind, NONE, Node, Tree, raw};
use hashbrown::HashMap;

/// Entries that are remembered.
pub const MAX_FOUND: usize = 100;

/// Others' entries below the leaf, of those that have arrived since it came to stand there.
#[derive(Default)]
pub struct Below {
    leaf: Option<Node>,
    /// Nodes before this number were there already.
    since: usize,
    /// Nodes before this number have been looked at.
    looked: usize,
    /// So many of the tree's forward links have been looked at.
    links: usize,
    lineage: Lineage,
    found: Vec<Node>,
    /// Entries that come below the leaf if their root does, by that root: it waits for its parent.
    elsewhere: HashMap<u32, Vec<Node>>,
}

impl Below {
    /// The leaf has just come to stand where it is.
    pub fn from_now_on(tree: &Tree) -> Self {
        let count = tree.node_count();
        Self {
            leaf: tree.leaf(),
            since: count,
            looked: count,
            links: tree.forward_links.len(),
            ..Self::default()
        }
    }

    /// The first of them, at most [`MAX_FOUND`].
    pub fn found(&self) -> &[Node] {
        &self.found
    }

    /// Looks at what has arrived since the last look.
    pub fn look(&mut self, tree: &Tree) {
        // Without links to later parents a walk ends at the first number below the leaf's. With the
        // first such link all roots are of interest.
        if self.links == 0 && !tree.forward_links.is_empty() {
            self.looked = self.since;
            self.found.clear();
            self.elsewhere.clear();
        }
        let new = (self.looked..tree.node_count()).filter_map(|number| tree.node(number));
        for node in new {
            let counts = !matches!(
                tree.kind(node),
                Kind::Label | Kind::SessionInfo | Kind::LeafRecord
            );
            if counts && tree.flags(node).has(Flags::FOREIGN) {
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

    /// Keeps `nodes`, which stand at `at` or below it, where they belong.
    fn place(&mut self, tree: &Tree, at: Node, nodes: Vec<Node>) {
        let root = self.root(tree, at);
        let kept = if self.leaf.is_none() || root == raw(self.leaf) {
            &mut self.found
        } else if tree.flags(Node(root)).has(Flags::ORPHAN) {
            self.elsewhere.entry(root).or_default()
        } else {
            return;
        };
        let room = MAX_FOUND.saturating_sub(kept.len());
        kept.extend(nodes.into_iter().take(room));
    }

    /// The leaf if `node` stands below it, else where the walk up ends.
    fn root(&mut self, tree: &Tree, node: Node) -> u32 {
        let Some(leaf) = self.leaf else {
            return node.0;
        };
        let all_parents_are_earlier = tree.forward_links.is_empty();
        self.lineage.root(node.0, |at| {
            if at == leaf.0 || (all_parents_are_earlier && at < leaf.0) {
                NONE
            } else {
                raw(tree.parent(Node(at)))
            }
        })
    }
}
