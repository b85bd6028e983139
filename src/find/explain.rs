//! Adds to the branches of hits why they were left.

use super::branch::Branch;
use super::left::LeftBranches;
use treelined_core::error::Result;
use treelined_core::tree::Tree;
use treelined_files::log::body::BodyReader;

/// Explains branches of one session. Reads the notes and summaries only if a branch was left.
pub(crate) struct Explainer<'t> {
    tree: &'t Tree,
    left: Option<LeftBranches<'t>>,
}

impl<'t> Explainer<'t> {
    pub(crate) fn of(tree: &'t Tree) -> Self {
        Self { tree, left: None }
    }

    /// Adds to a branch that was left why it was left.
    pub(crate) fn explain(
        &mut self,
        branch: &mut Branch,
        reader: &mut BodyReader<'_>,
    ) -> Result<()> {
        if branch.on_active_path {
            return Ok(());
        }
        let explained = match &mut self.left {
            Some(left) => left,
            None => self.left.insert(LeftBranches::of(self.tree, reader)?),
        };
        let left_at = branch.left_at.as_deref().and_then(|id| self.tree.find(id));
        if let Some(tip) = self.tree.find(&branch.tip_id) {
            branch.left = Some(explained.branch(tip, left_at, reader)?);
        }
        Ok(())
    }
}
