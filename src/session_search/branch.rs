//! The branch of an entry: its tip, and where it leaves the active path.

use crate::tree::{Node, Tree, branches};

/// The branches that a search covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum BranchFilter {
    #[default]
    All,
    /// Entries on the path to the leaf.
    Active,
    /// Entries off that path.
    Abandoned,
}

/// The branch of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Branch {
    /// The last entry of the most recently extended branch; the leaf for the active path.
    pub tip_id: String,
    pub on_active_path: bool,
    /// The nearest ancestor on the active path; `None` for an entry on the path, or without such an ancestor.
    pub left_at: Option<String>,
}

/// The branches of a session.
pub(super) struct Branches<'t> {
    tree: &'t Tree,
    on_path: Vec<bool>,
    /// For each entry the tip at or below it that comes last in the file; made on first use.
    tips: Option<Vec<Option<Node>>>,
}

impl<'t> Branches<'t> {
    pub(super) fn of(tree: &'t Tree) -> Self {
        let mut on_path = vec![false; tree.node_count()];
        for node in tree.ancestors(tree.leaf()) {
            if let Some(on_path) = on_path.get_mut(node.number()) {
                *on_path = true;
            }
        }
        Self {
            tree,
            on_path,
            tips: None,
        }
    }

    pub(super) fn is_active(&self, node: Node) -> bool {
        self.on_path.get(node.number()).copied().unwrap_or_default()
    }

    pub(super) fn takes(&self, node: Node, filter: BranchFilter) -> bool {
        match filter {
            BranchFilter::All => true,
            BranchFilter::Active => self.is_active(node),
            BranchFilter::Abandoned => !self.is_active(node),
        }
    }

    pub(super) fn branch(&mut self, node: Node) -> Branch {
        let tree = self.tree;
        let id = |node: Node| tree.id(node).to_owned();
        let leaf = tree.leaf();
        if self.is_active(node) {
            let tip = tree.skip_bookkeeping(leaf).or(leaf).unwrap_or(node);
            return Branch {
                tip_id: id(tip),
                on_active_path: true,
                left_at: None,
            };
        }
        let tips = self.tips.get_or_insert_with(|| last_tips(tree));
        let tip = tips.get(node.number()).copied().flatten();
        Branch {
            tip_id: id(tip.unwrap_or(node)),
            on_active_path: false,
            left_at: tree.common_ancestor(Some(node), leaf).map(id),
        }
    }
}

/// For each entry the tip at or below it that comes last in the file. Linear: the walk up from a tip stops at the
/// first entry that has one.
fn last_tips(tree: &Tree) -> Vec<Option<Node>> {
    let mut tips = vec![None; tree.node_count()];
    for branch in branches::list(tree).iter().rev() {
        for node in tree.ancestors(Some(branch.tip)) {
            match tips.get_mut(node.number()) {
                Some(tip @ None) => *tip = Some(branch.tip),
                _ => break,
            }
        }
    }
    tips
}
