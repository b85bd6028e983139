//! Makes the nodes of a member from messages.

use super::chat::{Message, MessageCall, MessageKind, count};
use super::map::result_note;
use crate::member::{Member, Node, NodeKind, Parent, Place};
use std::collections::HashSet;

/// Adds the nodes of all messages. `leaf` is the index of the last message of the list.
pub(super) fn nodes(member: &mut Member, messages: &[Message], leaf: Option<usize>) {
    let is_idle = idle_events(messages);
    let mut writer = Writer {
        member,
        keys: HashSet::new(),
        ends: vec![None; messages.len()],
        firsts: vec![None; messages.len()],
    };
    for (at, message) in messages.iter().enumerate() {
        let parent = message.parent.and_then(|parent| writer.end(parent));
        if is_idle.get(at) == Some(&true) {
            writer.set_end(at, parent);
            continue;
        }
        let is_last = at + 1 == messages.len();
        writer.message(
            at,
            message,
            parent,
            is_last && message.kind == MessageKind::Model,
        );
    }
    let leaf = leaf.and_then(|leaf| writer.end(leaf));
    writer.member.leaf = leaf;
    count_idle(member, messages, &is_idle);
}

/// Counts the records from which no node is made.
fn count_idle(member: &mut Member, messages: &[Message], is_idle: &[bool]) {
    let all = messages.iter().zip(is_idle);
    let used = all.clone().filter(|(_, is_idle)| !**is_idle);
    let used = used.flat_map(|(message, _)| &message.records);
    let mut used: HashSet<u64> = used.copied().collect();
    for (message, _) in all.filter(|(_, is_idle)| **is_idle) {
        for record in &message.records {
            if used.insert(*record) {
                count(&mut member.origin_only, message.label());
            }
        }
    }
}

/// For each message, whether it is an event without messages below it. An error without siblings is not such an event:
/// it says why the conversation ends there.
fn idle_events(messages: &[Message]) -> Vec<bool> {
    let mut has_child = vec![false; messages.len()];
    let mut is_idle = vec![false; messages.len()];
    let mut children = vec![0_usize; messages.len()];
    for parent in messages.iter().filter_map(|message| message.parent) {
        if let Some(count) = children.get_mut(parent) {
            *count += 1;
        }
    }
    let is_only = |parent: usize| children.get(parent) == Some(&1);
    for (at, message) in messages.iter().enumerate().rev() {
        let has_none = has_child.get(at) != Some(&true);
        let is_kept = message.label() == "error" && message.parent.is_some_and(is_only);
        let is_idle_event = message.kind == MessageKind::Event && !is_kept;
        if is_idle_event && (has_none || message.parent.is_none()) {
            is_idle
                .iter_mut()
                .skip(at)
                .take(1)
                .for_each(|idle| *idle = true);
        } else if let Some(parent) = message.parent.and_then(|parent| has_child.get_mut(parent)) {
            *parent = true;
        }
    }
    is_idle
}

struct Writer<'a> {
    member: &'a mut Member,
    keys: HashSet<Box<str>>,
    /// For each message, its last node.
    ends: Vec<Option<u32>>,
    firsts: Vec<Option<u32>>,
}

impl Writer<'_> {
    fn end(&self, message: usize) -> Option<u32> {
        self.ends.get(message).copied().flatten()
    }

    fn set_end(&mut self, message: usize, end: Option<u32>) {
        if let Some(slot) = self.ends.get_mut(message) {
            *slot = end;
        }
    }

    fn message(&mut self, at: usize, message: &Message, mut parent: Option<u32>, is_open: bool) {
        let key: Box<str> = match &message.id {
            Some(id) => id.clone(),
            None if message.index == 0 => format!("#{}", message.number).into(),
            None => format!("#{}/{}", message.number, message.index).into(),
        };
        if let Some(kind) = self.kind(message) {
            let note = has_no_summary(message).then(|| "".into());
            let node = self.node(message, parent, kind, is_open);
            parent = Some(self.push(Node {
                key: key.clone(),
                places: message.places.clone(),
                note,
                ..node
            }));
            if let Some(first) = self.firsts.get_mut(at) {
                *first = parent;
            }
        }
        let mut number = 0;
        for call in &message.calls {
            parent = self.call(message, &key, call, parent, is_open, &mut number);
        }
        for (index, id) in &message.answers {
            let node = self.node(message, parent, NodeKind::ToolResult, is_open);
            parent = Some(self.push(Node {
                key: format!("{key}/r:{id}").into(),
                places: message.places.clone(),
                note: Some(result_note(false, *index)),
                ..node
            }));
        }
        self.set_end(at, parent);
    }

    /// Adds the result of a call, below the subagents that the call spawned.
    fn call(
        &mut self,
        message: &Message,
        key: &str,
        call: &MessageCall,
        mut parent: Option<u32>,
        is_open: bool,
        number: &mut usize,
    ) -> Option<u32> {
        let Some((index, place)) = call.result else {
            return parent;
        };
        if let Some(agent) = &call.agent {
            *number += 1;
            let kind = NodeKind::Subagent {
                native_id: agent.clone(),
            };
            let node = self.node(message, parent, kind, is_open);
            parent = Some(self.push(Node {
                key: format!("{key}/{number}").into(),
                places: vec![place],
                ..node
            }));
        }
        let node = self.node(message, parent, NodeKind::ToolResult, is_open);
        Some(self.push(Node {
            key: format!("{key}/r:{}", call.id).into(),
            places: vec![place],
            note: Some(result_note(true, index)),
            ..node
        }))
    }

    fn kind(&self, message: &Message) -> Option<NodeKind> {
        Some(match message.kind {
            MessageKind::User => NodeKind::User,
            MessageKind::Scaffolding => NodeKind::Scaffolding,
            MessageKind::Model => NodeKind::Assistant,
            MessageKind::Answers => return None,
            MessageKind::Event => NodeKind::Custom,
            MessageKind::Compaction { .. } => NodeKind::Compaction {
                first_kept: message
                    .first_kept
                    .and_then(|kept| self.firsts.get(kept).copied().flatten()),
            },
        })
    }

    fn node(&self, message: &Message, parent: Option<u32>, kind: NodeKind, is_open: bool) -> Node {
        Node {
            key: Box::default(),
            parent: parent.map_or(Parent::Base, Parent::Node),
            kind,
            time: message.time,
            order: message.number,
            places: Vec::<Place>::new(),
            fingerprint: 0,
            note: None,
            is_open,
        }
    }

    /// Adds a node and returns its index. If its key is not unique, a number is added to the key.
    fn push(&mut self, mut node: Node) -> u32 {
        let index = self.member.nodes.len();
        while !self.keys.insert(node.key.clone()) {
            node.key = format!("{}#{index}", node.key).into();
        }
        self.member.nodes.push(node);
        u32::try_from(index).unwrap_or(u32::MAX)
    }
}

/// Whether a message is a compression without a summary.
fn has_no_summary(message: &Message) -> bool {
    message.kind == (MessageKind::Compaction { has_summary: false })
}
