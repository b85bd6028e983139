//! The branch of an entry: its tip, and where it leaves the active path.

use super::left::LeftBranch;
use super::turn::LeftInTurn;
use std::sync::Arc;
use treelined_core::search::BranchFilter;
use treelined_core::tree::{Archived, Node, Tree, branches};

/// The branch of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// The last entry of the most recently extended branch; the leaf for the active path.
    pub tip_id: String,
    pub on_active_path: bool,
    /// The nearest ancestor on the active path; `None` for an entry on the path, or without such an ancestor.
    pub left_at: Option<String>,
    /// Why the branch was left. Only hits for a question have this.
    pub left: Option<LeftBranch>,
    /// The branches that were left in the turn of an entry on the path. Only hits for a question have this.
    pub in_turn: Option<Arc<LeftInTurn>>,
}

/// The branches of a session.
pub(super) struct Branches<'t> {
    tree: &'t Tree,
    on_path: Vec<bool>,
    /// For each entry, the tip at or below it that comes last in the file. An archived tip counts only if there is no
    /// other tip. Computed on first use.
    tips: Option<Vec<Option<Node>>>,
    archived: Archived,
}

/// The branch of an entry: the active path, or an abandoned branch, with the step at or above the entry.
#[derive(Clone, Copy)]
enum Place {
    Active,
    Abandoned(Node),
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
            archived: tree.archived(),
        }
    }

    fn is_active(&self, node: Node) -> bool {
        self.on_path.get(node.number()).copied().unwrap_or_default()
    }

    pub(super) fn is_archived(&self, node: Node) -> bool {
        self.archived.hides(node)
    }

    pub(super) fn takes(&mut self, node: Node, filter: BranchFilter) -> bool {
        match filter {
            BranchFilter::All => true,
            BranchFilter::Active => matches!(self.place(node), Place::Active),
            BranchFilter::Abandoned => matches!(self.place(node), Place::Abandoned(_)),
        }
    }

    fn tip(&mut self, node: Node) -> Option<Node> {
        let (tree, archived) = (self.tree, &self.archived);
        let tips = self.tips.get_or_insert_with(|| last_tips(tree, archived));
        tips.get(node.number()).copied().flatten()
    }

    /// Bookkeeping without a step below it does not make a branch: it is on the branch of the entry above it.
    fn place(&mut self, node: Node) -> Place {
        if self.is_active(node) {
            return Place::Active;
        }
        if !self.tree.kind(node).is_bookkeeping() || self.tip(node).is_some() {
            return Place::Abandoned(node);
        }
        match self.tree.skip_bookkeeping(Some(node)) {
            Some(above) if !self.is_active(above) => Place::Abandoned(above),
            _ => Place::Active,
        }
    }

    pub(super) fn branch(&mut self, node: Node) -> Branch {
        let tree = self.tree;
        let id = |node: Node| tree.id(node).to_owned();
        let leaf = tree.leaf();
        let Place::Abandoned(above) = self.place(node) else {
            let tip = tree.skip_bookkeeping(leaf).or(leaf).unwrap_or(node);
            return Branch {
                tip_id: id(tip),
                on_active_path: true,
                left_at: None,
                left: None,
                in_turn: None,
            };
        };
        Branch {
            tip_id: id(self.tip(above).unwrap_or(above)),
            on_active_path: false,
            left_at: tree.common_ancestor(Some(above), leaf).map(id),
            left: None,
            in_turn: None,
        }
    }
}

/// For each entry, the tip at or below it that comes last in the file. An archived tip counts only if there is no other
/// tip. The time is linear, since the walk up from a tip stops at the first entry that already has a tip.
fn last_tips(tree: &Tree, archived: &Archived) -> Vec<Option<Node>> {
    let mut tips = vec![None; tree.node_count()];
    let branches = branches::list(tree);
    let of = |is_archived: bool| {
        let newest = branches.iter().rev();
        newest.filter(move |branch| archived.hides(branch.tip) == is_archived)
    };
    for branch in of(false).chain(of(true)) {
        for node in tree.ancestors(Some(branch.tip)) {
            match tips.get_mut(node.number()) {
                Some(tip @ None) => *tip = Some(branch.tip),
                _ => break,
            }
        }
    }
    tips
}
