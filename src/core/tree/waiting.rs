//! Nodes whose parent has not been read, by the id of the parent.
//!
//! Nodes that wait for a leaf record wait for the same id as the record. A file may hold a long chain of records,
//! each of which names the next. So the nodes that wait for one id form one group, and joining two groups moves
//! only the smaller one.

use super::flags::Flags;
use super::node::Node;
use super::steps;
use hashbrown::HashMap;

/// A node whose parent is not in the tree yet.
#[derive(Clone, Copy)]
pub(super) struct WaitingNode {
    pub node: Node,
    /// Its line in the file, counted from 1.
    pub line: u64,
}

/// All waiting nodes.
#[derive(Default)]
pub(super) struct Waiters {
    by_id: HashMap<Box<str>, u32>,
    /// The groups; `None` for a group that was adopted, or joined to another one.
    groups: Vec<Option<WaitGroup>>,
    /// For each group, the group to which it was joined; its own number if it was not joined.
    joined: Vec<u32>,
    /// Waiting leaf records, each with its group, or with a group that was joined to its group.
    records: HashMap<Node, u32>,
}

/// The nodes that wait for one id.
struct WaitGroup {
    awaited: Box<str>,
    /// Nodes whose parent has the id.
    direct: Vec<WaitingNode>,
    /// Nodes whose parent is a leaf record that waits for the id.
    through: Vec<WaitingNode>,
}

impl Waiters {
    /// The waiters from a cache file: lists of waiting nodes, each with the id that its nodes wait for.
    pub(super) fn of(lists: Vec<(Box<str>, Vec<WaitingNode>)>) -> Self {
        let mut waiters = Self::default();
        for (id, list) in lists {
            for waiting in list {
                waiters.wait(&id, waiting);
            }
        }
        waiters
    }

    /// Whether any leaf record waits.
    pub(super) fn any_record(&self) -> bool {
        !self.records.is_empty()
    }

    /// Whether this leaf record waits.
    pub(super) fn is_waiting(&self, record: Node) -> bool {
        self.records.contains_key(&record)
    }

    /// The waiting nodes in groups, each group with the id that its nodes wait for.
    pub(super) fn groups(
        &self,
    ) -> impl Iterator<Item = (&str, impl Iterator<Item = &WaitingNode>)> {
        let groups = self.groups.iter().flatten();
        groups.map(|group| (&*group.awaited, group.direct.iter().chain(&group.through)))
    }

    /// Keeps a node until an entry with this id is read.
    pub(super) fn wait(&mut self, id: &str, waiting: WaitingNode) {
        let number = self.group_of(id);
        if let Some(group) = self.group_mut(number) {
            group.direct.push(waiting);
        }
    }

    /// Keeps a node for as long as `record` waits.
    pub(super) fn wait_with(&mut self, record: Node, waiting: WaitingNode) {
        if let Some(number) = self.group_of_record(record)
            && let Some(group) = self.group_mut(number)
        {
            group.through.push(waiting);
        }
    }

    /// Records that a leaf record waits for this id.
    pub(super) fn record_waits(&mut self, record: Node, id: &str) {
        let number = self.group_of(id);
        self.records.insert(record, number);
    }

    /// Records that a leaf record waits for as long as another one waits.
    pub(super) fn record_waits_with(&mut self, record: Node, other: Node) {
        if let Some(number) = self.group_of_record(other) {
            self.records.insert(record, number);
        }
    }

    /// Handles a new leaf record with this id, which itself waits: the nodes that waited for `id` now wait with the
    /// record. Returns the nodes whose parent is the record.
    pub(super) fn hand_on(&mut self, id: &str, record: Node) -> Vec<WaitingNode> {
        let Some(from) = self.by_id.get(id).copied() else {
            return Vec::new();
        };
        let Some(to) = self.group_of_record(record) else {
            return Vec::new();
        };
        let Some(group) = self.group_mut(from) else {
            return Vec::new();
        };
        let named = std::mem::take(&mut group.direct);
        steps::count(named.len());
        if from == to {
            group.through.extend_from_slice(&named);
            return named;
        }
        let through = std::mem::take(&mut group.through);
        self.by_id.remove(id);
        self.take_out(from);
        self.set_joined(from, to);
        if let Some(group) = self.group_mut(to) {
            let (mut larger, smaller) = match group.through.len() < through.len() {
                true => (through, std::mem::take(&mut group.through)),
                false => (std::mem::take(&mut group.through), through),
            };
            steps::count(smaller.len());
            larger.extend(smaller);
            larger.extend_from_slice(&named);
            group.through = larger;
        }
        named
    }

    /// Removes and returns the nodes that wait for this id.
    pub(super) fn adopt(&mut self, id: &str) -> Option<impl Iterator<Item = WaitingNode> + use<>> {
        if self.by_id.is_empty() {
            return None;
        }
        let number = self.by_id.remove(id)?;
        let group = self.take_out(number)?;
        Some(group.direct.into_iter().chain(group.through))
    }

    /// Forgets a leaf record that has found its position.
    pub(super) fn forget_record(&mut self, record: Node) {
        self.records.remove(&record);
    }

    /// The group that waits for this id.
    fn group_of(&mut self, id: &str) -> u32 {
        if let Some(&number) = self.by_id.get(id) {
            return number;
        }
        // There are fewer groups than nodes, and the numbers of nodes fit into 32 bits.
        let number = u32::try_from(self.groups.len()).unwrap_or(u32::MAX);
        self.groups.push(Some(WaitGroup {
            awaited: id.into(),
            direct: Vec::new(),
            through: Vec::new(),
        }));
        self.joined.push(number);
        self.by_id.insert(id.into(), number);
        number
    }

    fn group_of_record(&mut self, record: Node) -> Option<u32> {
        let mut number = *self.records.get(&record)?;
        // Follows the links to the last group. Every second link is changed so that it skips one group, so the next
        // walk has half the length.
        loop {
            steps::count(1);
            let next = self.joined_to(number);
            let after = self.joined_to(next);
            if next == after {
                return Some(next);
            }
            self.set_joined(number, after);
            number = after;
        }
    }

    fn joined_to(&self, number: u32) -> u32 {
        let to = self.joined.get(number as usize);
        to.copied().unwrap_or(number)
    }

    fn set_joined(&mut self, number: u32, to: u32) {
        if let Some(joined) = self.joined.get_mut(number as usize) {
            *joined = to;
        }
    }

    fn group_mut(&mut self, number: u32) -> Option<&mut WaitGroup> {
        self.groups.get_mut(number as usize)?.as_mut()
    }

    fn take_out(&mut self, number: u32) -> Option<WaitGroup> {
        self.groups.get_mut(number as usize)?.take()
    }
}

/// A parent link to report as a diagnostic after the whole file was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkReport {
    pub node: Node,
    /// The number of the line, counted from 1.
    pub line: u64,
    /// `ORPHAN`, `FORWARD_PARENT` or `CYCLE`.
    pub flag: Flags,
}
