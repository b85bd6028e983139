//! The text of folded rows of `get_tree`: the names of the branches that the leaf has left (protocol.md §6.8).

use crate::daemon::rows::RowReader;
use treelined_core::entry::Role;
use treelined_core::error::Result;
use treelined_core::tree::Flags;
use treelined_core::view::{BranchName, FoldedRow, Outline, Render, Snapshot, Visible};
use treelined_pages::renderers::Renderers;

/// The sources of the names of branches.
pub(super) struct BranchNames<'a> {
    pub visible: &'a Visible,
    pub outline: &'a Outline,
    pub snapshot: &'a Snapshot,
    pub renderers: &'a Renderers,
    pub render: Option<Render>,
    pub cwd: &'a str,
}

impl BranchNames<'_> {
    /// The text of a row that replaces branches.
    pub(super) fn preview(&self, reader: &mut RowReader<'_>, folded: &FoldedRow) -> Result<String> {
        let mut names = Vec::new();
        for name in self.visible.left().names(folded) {
            names.push(self.name(reader, name)?);
            if folded.is_full(&names) {
                break;
            }
        }
        Ok(folded.preview(&names, self.render))
    }

    /// The name that a client has given to a branch. The first visible entry of the branch is the item `head`.
    fn given(&self, head: usize) -> Option<&str> {
        let is_shown = |item: usize| {
            let row = self.visible.row_of(item);
            let row = row.and_then(|row| self.visible.rows().get(row));
            row.is_some_and(|row| row.item() == item)
        };
        let above = |item: &usize| self.outline.items().get(*item)?.parent();
        let hidden = |item: &usize| above(item).filter(|above| !is_shown(*above));
        let mut items = std::iter::successors(Some(head), hidden);
        items.find_map(|item| self.outline.branch_name(item))
    }

    /// The given name of a branch, else the first words of a person in the branch, else the preview of its first entry.
    fn name(&self, reader: &mut RowReader<'_>, name: &BranchName) -> Result<String> {
        if let Some(given) = self.given(name.head()) {
            return Ok(given.to_owned());
        }
        for item in name.prompts() {
            let Some(entry) = self.snapshot.entry(item) else {
                continue;
            };
            let facts = reader.facts(entry.node, entry.place, entry.subject())?;
            if let Some(prompt) = facts.prompt() {
                return Ok(prompt.to_owned());
            }
        }
        let head = name.head();
        let Some(entry) = self.snapshot.entry(head) else {
            return Ok(String::new());
        };
        let subject = entry.subject();
        if entry.role == Role::ToolResult {
            let callers = self.outline.callers(head);
            let (facts, call) = reader.result(entry.node, entry.place, subject, callers)?;
            let call = call.cloned().or_else(|| facts.own_call());
            let failed = entry.flags.has(Flags::ERROR);
            return Ok(facts.preview_of_result(call.as_ref(), failed, self.render, self.cwd));
        }
        if let Some(preview) = reader.look(entry.place, subject, self.renderers)?.preview {
            return Ok(preview);
        }
        let facts = reader.facts(entry.node, entry.place, subject)?;
        Ok(facts.preview.into_owned())
    }
}
