//! Subtrees: the entries of a new session that begins with an entry in the middle of another session, and the new links
//! between their lines (protocol.md §16).

use crate::entry::Kind;
use crate::error::Result;
use crate::json::{self, quoted, quoted_or_null};
use crate::tree::{Node, Tree};

/// An entry of a subtree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubtreeEntry {
    pub node: Node,
    /// The nearest ancestor that is in the subtree.
    pub parent: Option<Node>,
    /// For a compaction whose stored first kept entry is not in the subtree: the new first kept entry.
    pub boundary: Option<Node>,
}

/// The entries of a subtree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubtreePlan {
    /// In file order, without label entries.
    pub kept: Vec<SubtreeEntry>,
    /// The `label` entries that set the current labels of kept entries, in file order.
    pub labels: Vec<Node>,
    /// The leaf of the new session.
    pub leaf: Option<Node>,
}

/// The subtree of `top`. `boundary` reads the first kept entry of a compaction. Linear in the entries of the subtree.
pub fn plan(
    tree: &Tree,
    top: Node,
    mut boundary: impl FnMut(Node) -> Result<Option<Node>>,
) -> Result<SubtreePlan> {
    let mut walk = SubtreeWalk::new(tree);
    let mut kept = Vec::new();
    let mut waiting = vec![(top, 0)];
    let mut children = Vec::new();
    while let Some((node, depth)) = waiting.pop() {
        walk.enter(node, depth);
        tree.children_into(Some(node), &mut children);
        waiting.extend(children.drain(..).map(|child| (child, depth + 1)));
        if tree.kind(node) == Kind::Label {
            continue;
        }
        let parent = walk.nearest();
        walk.keep(node, depth);
        let boundary = match tree.kind(node) {
            Kind::Compaction => boundary(node)?.and_then(|at| walk.moved_boundary(at)),
            _ => None,
        };
        kept.push(SubtreeEntry {
            node,
            parent,
            boundary,
        });
    }
    kept.sort_unstable_by_key(|entry| entry.node);
    let is_kept = |node: &Node| kept.binary_search_by_key(node, |entry| entry.node).is_ok();
    let labels = tree.labels().filter(|(target, _)| is_kept(target));
    let mut labels: Vec<Node> = labels.map(|(_, label)| label.entry).collect();
    labels.sort_unstable();
    let leaf = tree.leaf().filter(|leaf| walk.was_entered(*leaf));
    let leaf = leaf.and_then(|leaf| tree.ancestors(Some(leaf)).find(is_kept));
    let leaf = leaf.or_else(|| kept.last().map(|entry| entry.node));
    Ok(SubtreePlan { kept, labels, leaf })
}

/// A depth-first walk, with the path from the top of the subtree to the current entry.
struct SubtreeWalk<'t> {
    tree: &'t Tree,
    /// The current entry and its ancestors, by depth.
    path: Vec<Node>,
    /// The kept entries of the path with their depths, ascending.
    kept: Vec<(usize, Node)>,
    /// The depth of each node of the tree; `None` if the walk has not entered the node.
    depths: Vec<Option<usize>>,
}

impl<'t> SubtreeWalk<'t> {
    fn new(tree: &'t Tree) -> Self {
        Self {
            tree,
            path: Vec::new(),
            kept: Vec::new(),
            depths: vec![None; tree.node_count()],
        }
    }

    fn enter(&mut self, node: Node, depth: usize) {
        self.path.truncate(depth);
        self.path.push(node);
        while self.kept.last().is_some_and(|(at, _)| *at >= depth) {
            self.kept.pop();
        }
        if let Some(slot) = self.depths.get_mut(node.number()) {
            *slot = Some(depth);
        }
    }

    fn keep(&mut self, node: Node, depth: usize) {
        self.kept.push((depth, node));
    }

    /// The nearest kept entry above the current one.
    fn nearest(&self) -> Option<Node> {
        self.kept.last().map(|(_, node)| *node)
    }

    fn was_entered(&self, node: Node) -> bool {
        self.depth(node).is_some()
    }

    fn depth(&self, node: Node) -> Option<usize> {
        self.depths.get(node.number()).copied().flatten()
    }

    /// The first kept entry of the path after the boundary `at`, if the subtree leaves `at` out; `None` if the boundary
    /// stays.
    fn moved_boundary(&self, at: Node) -> Option<Node> {
        let first = match self.depth(at) {
            Some(depth) if self.path.get(depth) == Some(&at) => {
                if self.tree.kind(at) != Kind::Label {
                    return None;
                }
                self.kept.partition_point(|(kept, _)| *kept < depth)
            }
            // An entry of another branch is not a boundary of this path.
            Some(_) => return None,
            None => 0,
        };
        self.kept.get(first).map(|(_, node)| *node)
    }
}

/// `entry` with this parent, and with this boundary if one is given. The background mark is removed, since the leaf of
/// the new session may be at this entry.
pub fn relinked(entry: Vec<u8>, parent: Option<&str>, boundary: Option<&str>) -> Vec<u8> {
    let entry = match json::get(&entry, "background") {
        Some(b"true") => {
            let entry = json::without_member(&entry, "background");
            json::without_member(&entry, "group")
        }
        _ => entry,
    };
    let stored = json::get(&entry, "parentId").unwrap_or_default();
    let is_linked = match parent {
        None => stored == b"null",
        Some(id) => json::string(stored).as_deref() == Some(id),
    };
    let entry = match is_linked {
        true => entry,
        false => json::with_member(&entry, "parentId", &quoted_or_null(parent)),
    };
    match boundary {
        Some(id) => json::with_member(&entry, "firstKeptEntryId", &quoted(id)),
        None => entry,
    }
}
