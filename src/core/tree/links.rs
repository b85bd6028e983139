//! Links nodes to their parents. A parent may be later in the file, be missing, or be a leaf record.

use super::flags::Flags;
use super::node::{NONE, Node, raw};
use super::state::Tree;
use super::steps;
use super::waiting::{LinkReport, WaitingNode};
use crate::defect::breaks;
use crate::entry::{Kind, Parent};

/// The missing parent that a node waits for.
enum MissingParent<'a> {
    /// The entry with this id.
    Id(&'a str),
    /// The node for which this leaf record waits.
    AsRecord(Node),
}

impl Tree {
    /// The parent links to report after the whole file was read: the forward links that were made, and
    /// the nodes that still wait for their parent. In file order.
    pub fn link_reports(&self) -> Vec<LinkReport> {
        let orphans = self.waiting.groups().flat_map(|(_, waiting)| waiting);
        // A record of a move into a shed branch stays in the file, and its position is in the cold file.
        let has_shed = self.has_shed();
        let orphans =
            orphans.filter(|waiting| !has_shed || self.kind(waiting.node) != Kind::LeafRecord);
        let orphans = orphans.map(|waiting| LinkReport {
            node: waiting.node,
            line: waiting.line,
            flag: Flags::ORPHAN,
        });
        let mut reports: Vec<LinkReport> =
            orphans.chain(self.forward_links.iter().copied()).collect();
        reports.sort_by_key(|report| (report.line, report.node));
        reports
    }

    /// Links a new entry to its parent. Also links the entries that waited for the new entry. Returns `SELF_PARENT` or
    /// `CYCLE` if the link to the parent is refused.
    pub(super) fn link_entry(
        &mut self,
        node: Node,
        id: &str,
        parent: &Parent<'_>,
        line: u64,
    ) -> Flags {
        // Entries that waited for this one are linked first. After that only the link of this entry can
        // close a cycle, so every cycle is cut at its last line in file order.
        let adopted = self.adopt(id, Some(node));
        let parent_id = match parent {
            Parent::Absent | Parent::Null => {
                self.roots.push(node.0);
                return Flags::NONE;
            }
            Parent::Id(parent_id) if **parent_id == *id => {
                match self
                    .last
                    .filter(|_| breaks("An entry with a refused link is a root"))
                {
                    Some(last) => self.link(node, last),
                    None => self.roots.push(node.0),
                }
                return Flags::SELF_PARENT;
            }
            Parent::Id(parent_id) => parent_id,
        };
        // The parent of most entries is on the line before.
        let before = self
            .last
            .filter(|last| self.id_bytes(*last) == parent_id.as_bytes());
        let Some(named) = before.or_else(|| self.find_any(parent_id)) else {
            self.wait(node, MissingParent::Id(parent_id), line);
            return Flags::NONE;
        };
        if self.kind(named) == Kind::LeafRecord {
            self.row_mut(node).flags.set(Flags::REPARENTED);
            if self.waiting.is_waiting(named) {
                self.wait(node, MissingParent::AsRecord(named), line);
                return Flags::NONE;
            }
        }
        let resolved =
            match breaks("The parent of an entry is another entry, and not a leaf record") {
                true => Some(named),
                false => self.resolve_node(named),
            };
        let Some(parent) = resolved else {
            self.roots.push(node.0);
            return Flags::NONE;
        };
        if adopted && self.lineage_root(parent) == node {
            self.roots.push(node.0);
            return Flags::CYCLE;
        }
        self.link(node, parent);
        Flags::NONE
    }

    /// Resolves the position of a new leaf record. A record has a position in place of a parent, and is never a child.
    /// Returns `SELF_PARENT` if the record names itself.
    pub(super) fn link_record(
        &mut self,
        record: Node,
        id: &str,
        parent: &Parent<'_>,
        line: u64,
    ) -> Flags {
        let mut target = None;
        let mut missing = None;
        if let Parent::Id(parent_id) = parent
            && **parent_id != *id
        {
            match self.find_any(parent_id) {
                Some(named) if self.waiting.is_waiting(named) => {
                    missing = Some(MissingParent::AsRecord(named));
                }
                Some(named) => target = self.resolve_node(named),
                None => missing = Some(MissingParent::Id(parent_id)),
            }
        }
        match missing {
            Some(missing) => {
                self.wait(record, missing, line);
                // Nodes that waited for this record now wait for the node that the record waits for.
                for waiting in self.waiting.hand_on(id, record) {
                    self.row_mut(waiting.node).flags.set(Flags::REPARENTED);
                }
            }
            None => {
                self.row_mut(record).parent = raw(target);
                self.adopt(id, target);
            }
        }
        match parent {
            Parent::Id(parent_id) if **parent_id == *id => Flags::SELF_PARENT,
            _ => Flags::NONE,
        }
    }

    /// Keeps `node` until the missing node is read.
    fn wait(&mut self, node: Node, missing: MissingParent<'_>, line: u64) {
        let waiting = WaitingNode { node, line };
        let is_record = self.kind(node) == Kind::LeafRecord;
        match missing {
            MissingParent::Id(id) => {
                self.waiting.wait(id, waiting);
                if is_record {
                    self.waiting.record_waits(node, id);
                }
            }
            MissingParent::AsRecord(record) => {
                self.waiting.wait_with(record, waiting);
                if is_record {
                    self.waiting.record_waits_with(node, record);
                }
            }
        }
        if !is_record {
            self.roots.push(node.0);
        }
        self.row_mut(node).flags.set(Flags::ORPHAN);
    }

    /// Links the nodes that waited for `id` to `parent`; returns false if there are none.
    fn adopt(&mut self, id: &str, parent: Option<Node>) -> bool {
        let Some(list) = self.waiting.adopt(id) else {
            return false;
        };
        let through_record = parent.is_none_or(|parent| self.id(parent) != id);
        for WaitingNode { node, line } in list {
            steps::count(1);
            let row = self.row_mut(node);
            row.flags.clear(Flags::ORPHAN);
            if through_record {
                row.flags.set(Flags::REPARENTED);
            }
            if row.kind == Kind::LeafRecord {
                row.parent = raw(parent);
                self.waiting.forget_record(node);
                continue;
            }
            row.flags.set(Flags::FORWARD_PARENT);
            self.forward_links.push(LinkReport {
                node,
                line,
                flag: Flags::FORWARD_PARENT,
            });
            match parent {
                Some(parent) if self.lineage_root(parent) == node => {
                    self.row_mut(node).flags.set(Flags::CYCLE);
                    self.forward_links.push(LinkReport {
                        node,
                        line,
                        flag: Flags::CYCLE,
                    });
                }
                Some(parent) => self.link(node, parent),
                None => {}
            }
        }
        true
    }

    pub(super) fn link(&mut self, node: Node, parent: Node) {
        self.row_mut(node).parent = parent.0;
        self.children.link(node.0, parent.0);
    }

    /// The root above `node`.
    fn lineage_root(&mut self, node: Node) -> Node {
        let rows = &self.rows;
        let parent = |at: u32| rows.get(at as usize).map_or(NONE, |row| row.parent);
        Node(self.lineage.root(node.0, parent))
    }
}
