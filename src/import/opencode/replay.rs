//! Keeps messages with their parts, from the tables and from the events.

use super::record::{Info, Part};
use hashbrown::HashMap;
use std::collections::BTreeMap;
use treelined_core::timestamp::Millis;

/// The index of a message.
pub(super) type MessageIndex = usize;

/// A message, with its parts in order.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) id: Box<str>,
    /// The message's own record; `None` while only parts of it were read.
    pub(super) info: Option<Info>,
    pub(super) parts: BTreeMap<Box<str>, Part>,
}

/// The messages, which are found by id.
#[derive(Debug, Default)]
pub(super) struct Messages {
    pub(super) all: Vec<Message>,
    indexes: HashMap<Box<str>, MessageIndex>,
}

impl Messages {
    pub(super) fn index(&self, id: &str) -> Option<MessageIndex> {
        self.indexes.get(id).copied()
    }

    pub(super) fn get(&self, id: &str) -> Option<&Message> {
        self.all.get(self.index(id)?)
    }

    /// The message with this id. It is added if it is new.
    pub(super) fn enter(&mut self, id: &str) -> (MessageIndex, Option<&mut Message>) {
        let index = self.index(id).unwrap_or_else(|| {
            let index = self.all.len();
            self.indexes.insert(id.into(), index);
            self.all.push(Message {
                id: id.into(),
                info: None,
                parts: BTreeMap::new(),
            });
            index
        });
        (index, self.all.get_mut(index))
    }

    pub(super) fn set_info(&mut self, id: &str, info: Info) -> MessageIndex {
        let (index, message) = self.enter(id);
        if let Some(message) = message {
            message.info = Some(info);
        }
        index
    }

    pub(super) fn set_part(&mut self, message: &str, order: Box<str>, part: Part) {
        if let (_, Some(message)) = self.enter(message) {
            message.parts.insert(order, part);
        }
    }

    fn remove_part(&mut self, message: &str, part: &str) {
        let index = self.index(message);
        if let Some(message) = index.and_then(|index| self.all.get_mut(index)) {
            message.parts.remove(part);
        }
    }
}

/// A change that an event makes.
#[derive(Debug)]
pub(super) enum Change {
    Message { id: Box<str>, info: Info },
    Part { message: Box<str>, part: Part },
    Removed { message: Box<str> },
    RemovedPart { message: Box<str>, part: Box<str> },
}

/// The order of the list: by creation time, then by id.
pub(super) type ListKey = (Millis, Box<str>);

/// The state after some events: the messages in opencode's list, and the messages that were removed from it.
#[derive(Debug, Default)]
pub(super) struct Replay {
    pub(super) messages: Messages,
    list: BTreeMap<ListKey, MessageIndex>,
    /// For each message, its key when it was last added to the list.
    keys: HashMap<MessageIndex, ListKey>,
    /// For each message, its predecessor when the message was last in the list.
    before: HashMap<MessageIndex, MessageIndex>,
    /// The messages whose predecessor was removed since the last message was added.
    after_removed: Vec<MessageIndex>,
}

impl Replay {
    /// Sorts the changes by their numbers and applies them. `reverted` is the message at which a pending revert
    /// begins.
    pub(super) fn of(mut changes: Vec<(u64, Change)>, reverted: Option<&str>) -> Self {
        changes.sort_by_key(|(seq, _)| *seq);
        let mut replay = Self::default();
        for (_, change) in changes {
            replay.apply(change);
        }
        // If the reverted message is still in the list, opencode will remove the later messages too, so they keep
        // their predecessors.
        if !reverted.is_some_and(|id| replay.is_removed(id)) {
            replay.close_gaps();
        }
        replay
    }

    /// Whether a message was removed from the list.
    pub(super) fn is_removed(&self, id: &str) -> bool {
        let key = self
            .messages
            .index(id)
            .and_then(|index| self.keys.get(&index));
        key.is_some_and(|key| !self.list.contains_key(key))
    }

    /// Whether the message `id` comes after the message `other`.
    pub(super) fn is_after(&self, id: &str, other: &str) -> bool {
        let key = |id: &str| self.keys.get(&self.messages.index(id)?);
        key(id)
            .zip(key(other))
            .is_some_and(|(key, other)| key > other)
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Message { id, info } => {
                let key = (info.created.unwrap_or_default(), id.clone());
                let index = self.messages.set_info(&id, info);
                let is_listed = self
                    .keys
                    .get(&index)
                    .is_some_and(|key| self.list.contains_key(key));
                if !is_listed {
                    self.list(key, index);
                }
            }
            Change::Part { message, part } => {
                self.messages.set_part(&message, part.id.clone(), part);
            }
            Change::Removed { message } => self.remove(&message),
            Change::RemovedPart { message, part } => self.messages.remove_part(&message, &part),
        }
    }

    fn list(&mut self, key: ListKey, index: MessageIndex) {
        self.close_gaps();
        if let Some(next) = self.next(&key) {
            self.before.insert(next, index);
        }
        match self.previous(&key) {
            Some(previous) => drop(self.before.insert(index, previous)),
            None => drop(self.before.remove(&index)),
        }
        self.keys.insert(index, key.clone());
        self.list.insert(key, index);
    }

    /// Removes a message from the list. The removed message keeps its predecessor. Messages that are removed together
    /// keep their predecessors too, so that the reverted part of a conversation stays one chain.
    fn remove(&mut self, id: &str) {
        let Some(key) = self
            .messages
            .index(id)
            .and_then(|index| self.keys.get(&index))
        else {
            return;
        };
        let key = key.clone();
        if self.list.remove(&key).is_some() {
            self.after_removed.extend(self.next(&key));
        }
    }

    /// For each message whose predecessor was removed: the nearest earlier message in the list becomes its
    /// predecessor.
    fn close_gaps(&mut self) {
        for index in std::mem::take(&mut self.after_removed) {
            let Some(key) = self
                .keys
                .get(&index)
                .filter(|key| self.list.contains_key(*key))
            else {
                continue;
            };
            match self.previous(key) {
                Some(previous) => drop(self.before.insert(index, previous)),
                None => drop(self.before.remove(&index)),
            }
        }
    }

    fn previous(&self, key: &ListKey) -> Option<MessageIndex> {
        self.list.range(..key).next_back().map(|(_, index)| *index)
    }

    fn next(&self, key: &ListKey) -> Option<MessageIndex> {
        use std::ops::Bound::{Excluded, Unbounded};
        let mut later = self.list.range((Excluded(key), Unbounded));
        later.next().map(|(_, index)| *index)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.all.is_empty()
    }

    /// The messages in the list, in order.
    pub(super) fn listed(&self) -> impl Iterator<Item = &Message> {
        self.list
            .values()
            .filter_map(|index| self.messages.all.get(*index))
    }

    /// The message that was before `id` when `id` was last in the list.
    pub(super) fn before(&self, id: &str) -> Option<&str> {
        let before = self.before.get(&self.messages.index(id)?)?;
        self.messages.all.get(*before).map(|message| &*message.id)
    }
}
