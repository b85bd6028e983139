//! Adds to the branches of hits why they were left, and which branches were left in the turn of a hit.

use super::branch::Branch;
use super::left::LeftBranches;
use super::turn::Turns;
use treelined_core::error::Result;
use treelined_core::tree::{Node, Tree};
use treelined_files::log::body::BodyReader;

/// Explains branches of one session. Reads the notes and summaries only if a branch was left.
pub(crate) struct Explainer<'t> {
    tree: &'t Tree,
    /// Whether archived branches are included.
    archived: bool,
    left: Option<LeftBranches<'t>>,
    turns: Option<Turns<'t>>,
}

impl<'t> Explainer<'t> {
    pub(crate) fn of(tree: &'t Tree, archived: bool) -> Self {
        Self {
            tree,
            archived,
            left: None,
            turns: None,
        }
    }

    /// Adds to the branch of an entry why it was left. If the branch was not left, adds which branches were left in the
    /// turn of the entry.
    pub(crate) fn explain(
        &mut self,
        node: Node,
        branch: &mut Branch,
        reader: &mut BodyReader<'_>,
    ) -> Result<()> {
        let (tree, archived) = (self.tree, self.archived);
        if branch.on_active_path {
            let turns = self.turns.get_or_insert_with(|| Turns::of(tree, archived));
            if turns.has_left(node) {
                let left = left_branches(&mut self.left, tree, reader)?;
                branch.in_turn = turns.left(node, left, reader)?;
            }
            return Ok(());
        }
        let left_at = branch.left_at.as_deref().and_then(|id| tree.find(id));
        if let Some(tip) = tree.find(&branch.tip_id) {
            let left = left_branches(&mut self.left, tree, reader)?;
            branch.left = Some(left.branch(tip, left_at, reader)?);
        }
        Ok(())
    }
}

/// The notes and summaries, which are read on first use.
fn left_branches<'l, 't>(
    left: &'l mut Option<LeftBranches<'t>>,
    tree: &'t Tree,
    reader: &mut BodyReader<'_>,
) -> Result<&'l mut LeftBranches<'t>> {
    match left {
        Some(left) => Ok(left),
        None => Ok(left.insert(LeftBranches::of(tree, reader)?)),
    }
}
