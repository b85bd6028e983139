//! The changes of other writers in a session: their entries, and the order of the entries that were known.

use super::state::{Changes, OrderChange, SessionState};
use crate::log::Standing;
use treelined_core::entry::Kind as EntryKind;
use treelined_core::error::Result;
use treelined_core::tree::{Node, Tree};

impl OrderChange {
    /// The change of order from the tree `former` to `tree`; `None` if `tree` begins with the entries of `former`.
    fn between(former: &Tree, tree: &Tree) -> Option<Self> {
        let mut now = tree.entries_from(0);
        let mut since = None;
        for node in former.entries_from(0) {
            let same = now.next().map(|there| tree.id(there));
            if same != Some(former.id(node)) {
                let since = since.map(str::to_owned);
                return Some(Self { since });
            }
            since = same;
        }
        None
    }

    /// Returns the change that begins nearer to the first entry of the tree.
    fn first_of(self, other: Self, tree: &Tree) -> Self {
        let place = |change: &Self| change.since.as_deref().and_then(|id| tree.find_any(id));
        match place(&self) <= place(&other) {
            true => self,
            false => other,
        }
    }
}

impl SessionState {
    pub(super) fn note_others(
        &mut self,
        before: usize,
        file_leaf: Option<Node>,
        changes: &mut Changes,
    ) {
        let new = (before..self.tree.node_count()).filter_map(|n| self.tree.node(n));
        let entries = new.filter(|node| self.tree.kind(*node) != EntryKind::LeafRecord);
        changes.others.extend(entries);
        changes.others_moved |=
            before < self.tree.node_count() || file_leaf != self.tree.file_leaf();
        self.below.look(&self.tree);
        if self.read_only && self.tree.leaf() != self.tree.file_leaf() {
            self.move_leaf(self.tree.file_leaf());
        }
    }

    /// Records the new entries of a file that has replaced another file. The new entries are found by their ids, since
    /// the new file may have another order.
    pub(super) fn note_new(&self, former: &Tree, changes: &mut Changes) {
        let nodes = (0..self.tree.node_count()).filter_map(|n| self.tree.node(n));
        for node in nodes.filter(|node| former.find_any(self.tree.id(*node)).is_none()) {
            changes.others_moved = true;
            if self.tree.kind(node) != EntryKind::LeafRecord {
                changes.others.push(node);
            }
        }
        changes.reordered = OrderChange::between(former, &self.tree);
    }

    /// Refreshes, or reopens the file if another file of the same session has replaced it.
    pub(super) fn catch_up(&mut self, standing: Standing) -> Result<Changes> {
        match standing {
            Standing::Replaced => self.reopen(),
            _ => self.refresh(),
        }
    }

    /// Like [`Self::catch_up`], within an operation: adds the changes to the changes that the operation has found so
    /// far.
    pub(super) fn catch_up_into(
        &mut self,
        standing: Standing,
        changes: &mut Changes,
    ) -> Result<()> {
        let earlier: Vec<String> = match standing {
            Standing::Replaced => {
                let ids = changes.others.iter().map(|node| self.tree.id(*node));
                ids.map(str::to_owned).collect()
            }
            _ => Vec::new(),
        };
        let found = self.catch_up(standing)?;
        // The replaced tree had other numbers for its nodes.
        if standing == Standing::Replaced {
            let earlier = earlier.iter().filter_map(|id| self.tree.find(id));
            changes.others = earlier.collect();
        }
        changes.others.extend(found.others);
        changes.others_moved |= found.others_moved;
        changes.reordered = match (changes.reordered.take(), found.reordered) {
            (Some(earlier), Some(later)) => Some(earlier.first_of(later, &self.tree)),
            (earlier, later) => earlier.or(later),
        };
        changes.diagnostics.extend(found.diagnostics);
        Ok(())
    }
}
