//! Nodes whose parent has not turned up, by the id they wait for.
//!
//! A leaf record that waits hands on whatever waits for the record. A file may hold a long chain of
//! records, each naming the next, so nodes that wait for the same id are one group: joining two groups
//! moves the smaller one only.

use super::steps;
use super::{Node, Waiting};
use hashbrown::HashMap;

/// All nodes that wait.
#[derive(Default)]
pub struct Waiters {
    by_id: HashMap<Box<str>, u32>,
    /// `None` once adopted, or joined to another one.
    groups: Vec<Option<Group>>,
    /// The group that each one was joined to; itself if it was not.
    joined: Vec<u32>,
    /// Leaf records that wait, with a group that has been joined to theirs.
    records: HashMap<Node, u32>,
}

/// The nodes that wait for one id.
struct Group {
    awaited: Box<str>,
    /// They name the id themselves.
    direct: Vec<Waiting>,
    /// They name a leaf record that waits for the id.
    through: Vec<Waiting>,
}

impl Waiters {
    /// Nodes that wait for the ids they name.
    pub fn of(lists: Vec<(Box<str>, Vec<Waiting>)>) -> Self {
        let mut waiters = Self::default();
        for (id, list) in lists {
            for waiting in list {
                waiters.wait(&id, waiting);
            }
        }
        waiters
    }

    /// Whether a leaf record waits.
    pub fn any_record(&self) -> bool {
        !self.records.is_empty()
    }

    /// Whether this leaf record waits.
    pub fn is_waiting(&self, record: Node) -> bool {
        self.records.contains_key(&record)
    }

    /// The nodes that wait, by the id that each group of them waits for.
    pub fn groups(&self) -> impl Iterator<Item = (&str, impl Iterator<Item = &Waiting>)> {
        let groups = self.groups.iter().flatten();
        groups.map(|group| (&*group.awaited, group.direct.iter().chain(&group.through)))
    }

    /// Keeps a node until an entry with this id turns up.
    pub fn wait(&mut self, id: &str, waiting: Waiting) {
        let number = self.group_of(id);
        if let Some(group) = self.group_mut(number) {
            group.direct.push(waiting);
        }
    }

    /// Keeps a node as long as `record` waits.
    pub fn wait_with(&mut self, record: Node, waiting: Waiting) {
        if let Some(number) = self.group_of_record(record)
            && let Some(group) = self.group_mut(number)
        {
            group.through.push(waiting);
        }
    }

    /// Notes that a leaf record waits for this id, as its group does.
    pub fn record_waits(&mut self, record: Node, id: &str) {
        let number = self.group_of(id);
        self.records.insert(record, number);
    }

    /// Notes that a leaf record waits as long as another one.
    pub fn record_waits_with(&mut self, record: Node, other: Node) {
        if let Some(number) = self.group_of_record(other) {
            self.records.insert(record, number);
        }
    }

    /// The leaf record `record` has turned up, its id is `id`, and it waits itself: whatever waited for
    /// it now waits with it. Returns the nodes that name the record.
    pub fn hand_on(&mut self, id: &str, record: Node) -> Vec<Waiting> {
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

    /// Takes out the nodes that wait for this id.
    pub fn adopt(&mut self, id: &str) -> Option<impl Iterator<Item = Waiting> + use<>> {
        if self.by_id.is_empty() {
            return None;
        }
        let number = self.by_id.remove(id)?;
        let group = self.take_out(number)?;
        Some(group.direct.into_iter().chain(group.through))
    }

    /// A leaf record has been adopted.
    pub fn has_been_adopted(&mut self, record: Node) {
        self.records.remove(&record);
    }

    /// The group that waits for this id.
    fn group_of(&mut self, id: &str) -> u32 {
        if let Some(&number) = self.by_id.get(id) {
            return number;
        }
        // There are fewer groups than nodes, whose numbers are of the same type.
        let number = self.groups.len() as u32;
        self.groups.push(Some(Group {
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
        // Every second link is shortened on the way: the next time it is half as far.
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

    fn group_mut(&mut self, number: u32) -> Option<&mut Group> {
        self.groups.get_mut(number as usize)?.as_mut()
    }

    fn take_out(&mut self, number: u32) -> Option<Group> {
        self.groups.get_mut(number as usize)?.take()
    }
}
