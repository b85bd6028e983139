//! Whether a file opens beside its newest step (session-file.md §4.2).

use super::flags::Flags;
use super::node::Node;
use super::state::Tree;
use crate::entry::{Kind, Role};

/// A file that opens on another branch than the branch of its newest step, although no move has led
/// there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BesideNewest {
    /// The newest step.
    pub newest: Node,
    /// The entry at which the file or the session opens.
    pub opens_at: Node,
    /// The number of user messages above the newest step that are not above `opens_at`.
    pub turns: u64,
}

impl Tree {
    /// The newest step, and the entry at which the file opens instead. `None` if the file opens at or below its newest
    /// step, or if the leaf was moved elsewhere after that step. A leaf record that stays is not a move.
    pub fn beside_newest(&self) -> Option<BesideNewest> {
        self.newest_beside(self.file_leaf()?)
    }

    /// Like [`Self::beside_newest`], for a session that opens at this entry.
    pub fn newest_beside(&self, opens_at: Node) -> Option<BesideNewest> {
        let nodes = (0..self.node_count()).rev();
        let newest = nodes.filter_map(|number| self.node(number)).find(|node| {
            !self.kind(*node).is_bookkeeping() && !self.flags(*node).has(Flags::STAYS)
        })?;
        if newest == opens_at || self.kind(newest) == Kind::LeafRecord {
            return None;
        }
        let (shared, newer) = self.branch(Some(newest), Some(opens_at));
        if shared == Some(newest) {
            return None;
        }
        let users = newer
            .iter()
            .filter(|node| self.kind(**node) == Kind::Message && self.role(**node) == Role::User);
        Some(BesideNewest {
            newest,
            opens_at,
            turns: users.count() as u64,
        })
    }
}
