//! Branches that grow in the background, their groups, and copies from other sessions (session-file.md §4.9).

use super::archived::Archived;
use super::flags::Flags;
use super::node::Node;
use super::state::Tree;
use crate::entry::Kind;

impl Tree {
    /// Whether an entry was appended in the background.
    pub fn is_background(&self, node: Node) -> bool {
        self.flags(node).has(Flags::STAYS) && self.kind(node) != Kind::LeafRecord
    }

    /// Whether a background branch begins with `step`, which is directly below the step `above`. It does if `above` was
    /// not appended in the background, or if `step` names a group.
    pub fn begins_background(&self, step: Node, above: Node) -> bool {
        self.is_background(step)
            && (!self.is_background(above) || self.born.groups.contains_key(&step))
    }

    /// Sets the position where the file opens to the last line. A background entry does not change this position. A
    /// record that stays does not change it either, if the record is right after a background entry. Before these two
    /// lines, another program may have written without the lock.
    pub(super) fn open_at(&mut self, node: Node) {
        if self.opens_file(node) {
            self.last = Some(node);
        }
    }

    /// Whether a file that ends with the line of `node` opens there.
    fn opens_file(&self, node: Node) -> bool {
        let before = node.number().checked_sub(1);
        let before = before.and_then(|number| self.node(number));
        let stays = match self.kind(node) {
            Kind::LeafRecord => {
                self.flags(node).has(Flags::STAYS)
                    && before.is_some_and(|before| self.is_background(before))
            }
            _ => self.is_background(node),
        };
        !stays
    }

    /// The position where the file would open if it ended at the offset `end`, in bytes. `None` if this position is
    /// empty, or if the file opens at this position or below it.
    pub fn left_at(&self, end: u64) -> Option<Node> {
        let nodes = (0..self.node_count()).rev();
        let mut before = nodes
            .filter_map(|number| self.node(number))
            .skip_while(|node| self.place(*node).offset >= end);
        let last = before.find(|node| self.opens_file(*node))?;
        let left = self.resolve_node(last)?;
        let mut above = self.ancestors(self.file_leaf());
        above.all(|node| node != left).then_some(left)
    }

    /// The last line of the file, if it is a background entry. Then the record that should follow the entry is missing,
    /// and other programs open the file at this entry.
    pub fn cut_background(&self) -> Option<Node> {
        let last = self.node(self.node_count().checked_sub(1)?)?;
        self.is_background(last).then_some(last)
    }

    /// The position at which a program opens the file if it treats the last line as the leaf.
    pub fn last_line(&self) -> Option<Node> {
        let last = self.node(self.node_count().checked_sub(1)?)?;
        self.resolve_node(last)
    }

    /// The messages of the background branch that contains `node`, in the order of the path: from the first entry of
    /// the branch down to its newest step. Background branches that begin further down are not included. Empty if
    /// `node` is not in a background branch.
    pub fn background_messages(&self, node: Node) -> Vec<Node> {
        let Some(mut head) = self
            .skip_bookkeeping(Some(node))
            .filter(|node| self.is_background(*node))
        else {
            return Vec::new();
        };
        while let Some(above) = self.skip_bookkeeping(self.parent(head)) {
            if self.begins_background(head, above) {
                break;
            }
            head = above;
        }
        let tip = self.newest_step_below(node, &self.archived());
        let above = self.parent(head);
        let path = self
            .ancestors(Some(tip))
            .take_while(|node| Some(*node) != above);
        let is_said = |node: &Node| matches!(self.kind(*node), Kind::Message | Kind::CustomMessage);
        let mut messages: Vec<Node> = path.filter(is_said).collect();
        messages.reverse();
        messages
    }

    /// Whether an entry names the group of the branch that begins with it.
    pub fn names_group(&self, node: Node) -> bool {
        self.born.groups.contains_key(&node)
    }

    /// The nearest entry at or above a position that names a group, and the group.
    pub fn group(&self, position: Node) -> Option<(Node, &str)> {
        if self.born.groups.is_empty() {
            return None;
        }
        let mut above = self.ancestors(Some(position));
        above.find_map(|node| Some((node, &**self.born.groups.get(&node)?)))
    }

    /// The first entries of the candidates of a group below one step, in file order.
    pub fn candidates(&self, fork: Option<Node>, group: &str) -> Vec<Node> {
        let groups = self.born.groups.iter();
        let of_group = groups.filter(|(_, named)| &***named == group);
        let is_there = |node: &Node| self.skip_bookkeeping(self.parent(*node)) == fork;
        let mut found: Vec<Node> = of_group.map(|(node, _)| *node).filter(is_there).collect();
        found.sort_unstable();
        found
    }

    /// Whether `node` is a copy of this entry of another session.
    pub fn is_copy_of(&self, node: Node, session_id: &str, entry_id: &str) -> bool {
        let source = self.born.sources.get(&node);
        source.is_some_and(|(session, entry)| **session == *session_id && **entry == *entry_id)
    }

    /// The copies of an entry of another session, in file order.
    pub fn copies_of(&self, session_id: &str, entry_id: &str) -> Vec<Node> {
        let sources = self.born.sources.iter();
        let of_entry = sources
            .filter(|(_, (session, entry))| **session == *session_id && **entry == *entry_id);
        let mut found: Vec<Node> = of_entry.map(|(node, _)| *node).collect();
        found.sort_unstable();
        found
    }

    /// The step that was written last, of the steps at or below an entry; the entry itself if there is no step.
    /// Background branches that begin further down, and archived branches, are skipped. Linear in the number of entries
    /// below.
    pub fn newest_step_below(&self, node: Node, archived: &Archived) -> Node {
        let (mut newest, mut children) = (None, Vec::new());
        let mut open = vec![(node, self.skip_bookkeeping(Some(node)))];
        while let Some((at, step)) = open.pop() {
            if step == Some(at) {
                newest = newest.max(step);
            }
            self.children_into(Some(at), &mut children);
            for child in children.drain(..) {
                let begins = step.is_some_and(|above| self.begins_background(child, above));
                if begins || archived.begins_with(child) {
                    continue;
                }
                let below = match self.kind(child).is_bookkeeping() {
                    true => step,
                    false => Some(child),
                };
                open.push((child, below));
            }
        }
        newest.unwrap_or(node)
    }

    /// One of the steps directly below a position, in no order; bookkeeping is skipped.
    pub fn step_below(&self, position: Option<Node>) -> Option<Node> {
        let (mut open, mut children) = (vec![position], Vec::new());
        while let Some(at) = open.pop() {
            self.children_into(at, &mut children);
            for child in &children {
                match self.kind(*child).is_bookkeeping() {
                    true => open.push(Some(*child)),
                    false => return Some(*child),
                }
            }
        }
        None
    }
}
