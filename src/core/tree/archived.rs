//! The names of the branches of a tree, and which of them are archived now (session-file.md §4.7).

use super::flags::Flags;
use super::moves::{Cause, Move};
use super::node::Node;
use super::state::Tree;
use crate::entry::Kind;
use hashbrown::{HashMap, HashSet};

/// The archived branches of a tree. None of them contains the leaf.
#[derive(Default)]
pub struct Archived {
    /// The first entry of each archived branch.
    heads: HashSet<Node>,
    /// For each node, whether it is in an archived branch; empty if no branch is archived.
    hidden: Vec<bool>,
    /// The number of archived branches that are not inside another one.
    count: usize,
}

impl Archived {
    /// Whether the entry is in an archived branch.
    pub fn hides(&self, node: Node) -> bool {
        self.hidden.get(node.number()).copied().unwrap_or(false)
    }

    /// Whether an archived branch begins with the entry.
    pub fn begins_with(&self, node: Node) -> bool {
        self.heads.contains(&node)
    }

    /// The number of archived branches that are not inside another one.
    pub fn count(&self) -> usize {
        self.count
    }
}

impl Tree {
    /// The name of the branch that begins with this entry.
    pub fn branch_name(&self, head: Node) -> Option<&str> {
        if self.marks.by_id.is_empty() {
            return None;
        }
        let mark = self.marks.by_id.get(self.id(head))?;
        mark.name.as_deref()
    }

    /// Whether an entry gives a name to its branch.
    pub(crate) fn has_branch_names(&self) -> bool {
        let mut marks = self.marks.by_id.values();
        marks.any(|mark| mark.name.is_some())
    }

    /// The branches whose lines are in the cold file: the id of the first entry of each, and its record. In file order
    /// of the records.
    pub fn shed(&self) -> Vec<(&str, Node)> {
        let marks = self.marks.by_id.iter();
        let mut shed: Vec<(&str, Node)> = marks
            .filter_map(|(id, mark)| Some((&**id, mark.shed?)))
            .collect();
        shed.sort_unstable_by_key(|(_, record)| *record);
        shed
    }

    /// Whether the lines of a branch are in the cold file.
    pub fn has_shed(&self) -> bool {
        self.marks.by_id.values().any(|mark| mark.shed.is_some())
    }

    /// The first entry of each archived branch that is not inside another archived branch, in file order.
    pub fn outermost_archived(&self) -> Vec<Node> {
        let archived = self.archived();
        let mut heads: Vec<Node> = archived.heads.iter().copied().collect();
        heads.retain(|head| {
            self.parent(*head)
                .is_none_or(|above| !archived.hides(above))
        });
        heads.sort_unstable();
        heads
    }

    /// The first entry of a branch and everything below it.
    pub fn subtree(&self, head: Node) -> Vec<Node> {
        let (mut found, mut at) = (vec![head], 0);
        let mut children = Vec::new();
        while let Some(node) = found.get(at) {
            self.children_into(Some(*node), &mut children);
            found.append(&mut children);
            at += 1;
        }
        found
    }

    /// The first entry of the branch of a position. This is the highest step below a fork, or a root, or the first
    /// entry that was appended in the background. A background branch without a group also begins where it leaves the
    /// path of the leaf. `None` if there is no step at or above the position.
    pub fn branch_head(&self, position: Option<Node>) -> Option<Node> {
        let mut head = self.skip_bookkeeping(position)?;
        let leaves = [self.leaf(), self.file_leaf()].map(|leaf| {
            let shared = self.common_ancestor(Some(head), leaf);
            self.skip_bookkeeping(shared)
        });
        while let Some(above) = self.skip_bookkeeping(self.parent(head)) {
            let leaves_path = self.is_background(head) && leaves.contains(&Some(above));
            if leaves_path || self.begins_background(head, above) || self.has_two_steps_below(above)
            {
                break;
            }
            head = above;
        }
        Some(head)
    }

    /// The entry that names the branch that begins with the step `head`: the nearest entry with a name, at or above the
    /// step, whose name reaches the step. At each fork a name continues with the child step that was written first.
    pub fn named_by(&self, head: Node) -> Option<Node> {
        if !self.has_branch_names() {
            return None;
        }
        let mut at = head;
        loop {
            if self.branch_name(at).is_some() {
                return Some(at);
            }
            let above = self.skip_bookkeeping(self.parent(at))?;
            let mut below = self.steps_below(above);
            below.retain(|step| !self.begins_background(*step, above));
            if below.into_iter().min() != Some(at) {
                return None;
            }
            at = above;
        }
    }

    /// The steps directly below a step; bookkeeping between them is skipped.
    fn steps_below(&self, step: Node) -> Vec<Node> {
        let mut open = vec![step];
        let (mut children, mut found) = (Vec::new(), Vec::new());
        while let Some(node) = open.pop() {
            self.children_into(Some(node), &mut children);
            for child in &children {
                match self.kind(*child).is_bookkeeping() {
                    true => open.push(*child),
                    false => found.push(*child),
                }
            }
        }
        found
    }

    /// Whether a step has two or more steps directly below it.
    fn has_two_steps_below(&self, step: Node) -> bool {
        let mut open = vec![step];
        let (mut children, mut found) = (Vec::new(), 0);
        while let Some(node) = open.pop() {
            self.children_into(Some(node), &mut children);
            for child in &children {
                match self.kind(*child).is_bookkeeping() {
                    true => open.push(*child),
                    false => found += 1,
                }
            }
            if found > 1 {
                return true;
            }
        }
        false
    }

    /// The branches that are archived now. Takes linear time, or constant time if no record archives a branch.
    pub fn archived(&self) -> Archived {
        let mut marked: HashMap<Node, usize> = HashMap::new();
        for (id, mark) in &self.marks.by_id {
            if let Some(record) = mark.archived
                && let Some(node) = self.find(id)
            {
                marked.insert(node, record.number());
            }
        }
        if marked.is_empty() {
            return Archived::default();
        }
        let order = self.top_down();
        let leaves = [self.leaf(), self.file_leaf()];
        let newest = self.newest_below(&order, &HashSet::new(), &leaves);
        let get = |node: Node| newest.get(node.number()).copied().flatten();
        marked.retain(|node, record| get(*node).is_none_or(|newest| newest < *record));
        let mut archived = Archived {
            heads: marked.into_keys().collect(),
            hidden: vec![false; self.node_count()],
            count: 0,
        };
        for node in order {
            let is_below = self.parent(node).is_some_and(|above| archived.hides(above));
            let begins = archived.begins_with(node);
            archived.count += usize::from(begins && !is_below);
            if let Some(hidden) = archived.hidden.get_mut(node.number()) {
                *hidden = begins || is_below;
            }
        }
        archived
    }

    /// The first entries of the branches that a redo to `to` archives again. The undo moved the leaf into these
    /// branches, and the redo moves the leaf out of them. A branch counts only if no step was added to it after it was
    /// archived, and if only undo and redo have moved the leaf into it.
    pub fn archived_by_redo(&self, to: Option<Node>) -> Vec<Node> {
        let leaf = self.leaf().filter(|_| !self.marks.by_id.is_empty());
        let left: HashSet<Node> = self.ancestors(leaf).collect();
        let kept: HashSet<Node> = self.ancestors(to).collect();
        let mut marked = Vec::new();
        for (id, mark) in &self.marks.by_id {
            if let Some(record) = mark.archived
                && let Some(head) = self.find(id)
                && left.contains(&head)
                && !kept.contains(&head)
            {
                marked.push((head, record.number()));
            }
        }
        if marked.is_empty() {
            return Vec::new();
        }
        let back_and_forth = |made: &&Move| matches!(made.cause, Cause::Undo | Cause::Redo);
        let moves = self.moves.log().iter().filter(back_and_forth);
        let moves = moves.map(|made| made.at).collect();
        let newest = self.newest_below(&self.top_down(), &moves, &[]);
        let get = |node: Node| newest.get(node.number()).copied().flatten();
        marked.retain(|(head, record)| get(*head).is_none_or(|newest| newest < *record));
        marked.sort_unstable();
        marked.into_iter().map(|(head, _)| head).collect()
    }

    /// All entries. Each is after its parent.
    fn top_down(&self) -> Vec<Node> {
        let mut order = Vec::with_capacity(self.entry_count());
        let mut children = self.children(None);
        let mut open = Vec::new();
        loop {
            open.append(&mut children);
            let Some(node) = open.pop() else {
                return order;
            };
            order.push(node);
            self.children_into(Some(node), &mut children);
        }
    }

    /// For each entry, the number of the newest line of the branch that begins with it. Such a line is a step of the
    /// branch, or a move into the branch that is not in `without`. An entry at or above one of `leaves` counts as newer
    /// than every line.
    fn newest_below(
        &self,
        order: &[Node],
        without: &HashSet<Node>,
        leaves: &[Option<Node>],
    ) -> Vec<Option<usize>> {
        let mut newest: Vec<Option<usize>> = vec![None; self.node_count()];
        let mut note = |node: Node, number: usize| {
            if let Some(newest) = newest.get_mut(node.number()) {
                *newest = (*newest).max(Some(number));
            }
        };
        for node in (0..self.node_count()).filter_map(|number| self.node(number)) {
            if self.kind(node) != Kind::LeafRecord {
                if !self.kind(node).is_bookkeeping() {
                    note(node, node.number());
                }
            } else if let Some(to) = self.parent(node)
                && !self.flags(node).has(Flags::STAYS)
                && !without.contains(&node)
            {
                note(to, node.number());
            }
        }
        for leaf in leaves.iter().copied().flatten() {
            note(leaf, usize::MAX);
        }
        for node in order.iter().rev() {
            let below = newest.get(node.number()).copied().flatten();
            let above = self.parent(*node).map(Node::number);
            if let Some(above) = above.and_then(|above| newest.get_mut(above)) {
                *above = (*above).max(below);
            }
        }
        newest
    }
}
