//! The facts from the tree that rows need, copied under the lock.

use super::layout::Outline;
use crate::entry::{Kind, Role};
use crate::timestamp::Millis;
use crate::tree::{FilePlace, Flags, Node, Tree, number32};
use hashbrown::HashMap;
use std::ops::Range;

/// The facts of one entry that a row needs and that the body of the entry does not have.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    pub node: Node,
    pub id: &'a str,
    pub kind: Kind,
    pub role: Role,
    pub flags: Flags,
    /// The timestamp in Unix milliseconds; `None` if the stored text is not a time.
    pub timestamp: Option<Millis>,
    pub place: FilePlace,
    pub label: Option<&'a str>,
    /// The time of the label, in Unix milliseconds.
    pub label_timestamp: Option<Millis>,
}

/// The facts of some items of an [`Outline`].
#[derive(Debug)]
pub struct Snapshot {
    slots: Slots,
    taken: Vec<EntryCopy>,
    /// The labels, by index into `taken`; few entries have one.
    labels: HashMap<u32, (Range<usize>, Option<Millis>)>,
    /// Ids and labels, concatenated.
    text: String,
}

#[derive(Debug)]
struct EntryCopy {
    node: Node,
    kind: Kind,
    role: Role,
    flags: Flags,
    timestamp: Option<Millis>,
    place: FilePlace,
    id: Range<usize>,
}

const NONE: u32 = u32::MAX;

/// The index into `taken` of each item. The items of a page are close together; their parents and the roots may be
/// anywhere. The memory for a page must not grow with the tree.
#[derive(Debug, Default)]
struct Slots {
    /// The first item of `near`.
    first: usize,
    near: Vec<u32>,
    far: HashMap<usize, u32>,
}

impl Slots {
    fn get(&self, item: usize) -> Option<u32> {
        match item
            .checked_sub(self.first)
            .and_then(|at| self.near.get(at))
        {
            Some(number) => Some(*number).filter(|number| *number != NONE),
            None => self.far.get(&item).copied(),
        }
    }

    fn set(&mut self, item: usize, number: u32) {
        // The slot belongs to the next item or to an item a few items later, since the items of a page are in order.
        let end = self.first + self.near.len();
        if self.near.is_empty() {
            self.first = item;
        } else if !(self.first..end + NEAR).contains(&item) {
            self.far.insert(item, number);
            return;
        }
        let at = item - self.first;
        if at >= self.near.len() {
            self.near.resize(at + 1, NONE);
        }
        if let Some(slot) = self.near.get_mut(at) {
            *slot = number;
        }
    }
}

/// The most hidden items between two rows of one page.
const NEAR: usize = 256;

impl Snapshot {
    /// Copies the facts of these items. An item that occurs twice is copied once. `tree` must not have changed
    /// since the outline was made.
    pub fn take(tree: &Tree, outline: &Outline, items: impl Iterator<Item = usize>) -> Self {
        let mut snapshot = Self {
            slots: Slots::default(),
            taken: Vec::with_capacity(items.size_hint().0),
            labels: HashMap::new(),
            text: String::new(),
        };
        for at in items {
            let Some(item) = outline.items().get(at) else {
                continue;
            };
            if snapshot.slots.get(at).is_some() {
                continue;
            }
            let number = number32(snapshot.taken.len());
            snapshot.slots.set(at, number);
            let node = item.node;
            let id = push(&mut snapshot.text, tree.id(node));
            if let Some(label) = tree.label(node) {
                let text = push(&mut snapshot.text, &label.text);
                let at = tree.timestamp(label.entry);
                snapshot.labels.insert(number, (text, at));
            }
            snapshot.taken.push(EntryCopy {
                node,
                kind: tree.kind(node),
                role: tree.role(node),
                flags: tree.flags(node),
                timestamp: tree.timestamp(node),
                place: tree.place(node),
                id,
            });
        }
        snapshot
    }

    /// The entry of an item; `None` if it was not taken.
    pub fn entry(&self, item: usize) -> Option<Entry<'_>> {
        let number = self.slots.get(item)?;
        let taken = self.taken.get(number as usize)?;
        let label = self.labels.get(&number);
        Some(Entry {
            node: taken.node,
            id: self.text.get(taken.id.clone())?,
            kind: taken.kind,
            role: taken.role,
            flags: taken.flags,
            timestamp: taken.timestamp,
            place: taken.place,
            label: label.and_then(|(text, _)| self.text.get(text.clone())),
            label_timestamp: label.and_then(|(_, at)| *at),
        })
    }

    /// The id of an item; `None` if it was not taken.
    pub(crate) fn id(&self, item: usize) -> Option<&str> {
        let number = self.slots.get(item)?;
        self.text.get(self.taken.get(number as usize)?.id.clone())
    }
}

fn push(text: &mut String, new: &str) -> Range<usize> {
    let start = text.len();
    text.push_str(new);
    start..text.len()
}
