//! The records of one source that have a part in a tree.

use super::record::Role;
use crate::member::Base;
use hashbrown::HashMap;
use std::collections::BTreeMap;
use treelined_core::timestamp::Millis;

/// A record with a part in a tree.
#[derive(Debug)]
pub(super) struct TreeRecord {
    pub(super) number: u64,
    pub(super) at: u64,
    pub(super) len: u64,
    pub(super) time: Option<Millis>,
    /// Index of its conversation.
    pub(super) thread: usize,
    pub(super) uuid: Option<Box<str>>,
    /// The id that its node has in the file of which it is a copy.
    pub(super) original: Option<Box<str>>,
    pub(super) parent: Parentage,
    pub(super) role: Role,
    /// Hash of its content; 0 if it has none.
    pub(super) content: u64,
    /// Index of its type in the report.
    pub(super) label: usize,
    /// No part of a model message comes after it.
    pub(super) ends_message: bool,
}

#[derive(Debug)]
pub(super) enum Parentage {
    Root,
    Of(Box<str>),
    /// The record does not name its parent: it follows the last message.
    Previous,
    /// It has neither uuid nor parent; its place is between the last message and the next one.
    Between,
    /// An earlier record, written again below this parent.
    Again {
        uuid: Box<str>,
        parent: Box<str>,
    },
}

/// One conversation of the file.
#[derive(Debug, Default)]
pub(super) struct Thread {
    /// Name of a subagent.
    pub(super) agent: Option<Box<str>>,
    /// The id of the call that spawned it.
    pub(super) call: Option<Box<str>>,
    /// Hash of its first message, raw.
    pub(super) prompt: Option<u64>,
}

/// Counts of records by type, of which there are at most [`MOST_LABELS`].
#[derive(Debug, Default)]
pub(super) struct Labels {
    pub(super) names: Vec<String>,
    pub(super) by_name: HashMap<String, usize>,
    pub(super) counts: Vec<u64>,
}

pub(super) const MOST_LABELS: usize = 256;

impl Labels {
    pub(super) fn index(&mut self, name: &str) -> usize {
        if let Some(index) = self.by_name.get(name) {
            return *index;
        }
        let name = match self.names.len() < MOST_LABELS {
            true => name,
            false => "other",
        };
        let name = name.to_owned();
        let next = self.names.len();
        let index = *self.by_name.entry(name.clone()).or_insert(next);
        if index == next {
            self.names.push(name);
            self.counts.push(0);
        }
        index
    }

    pub(super) fn count(&mut self, index: usize) {
        if let Some(count) = self.counts.get_mut(index) {
            *count += 1;
        }
    }

    pub(super) fn counted(self) -> BTreeMap<String, u64> {
        let counts = self.names.into_iter().zip(self.counts);
        counts.filter(|(_, count)| *count > 0).collect()
    }
}

/// All that was read.
#[derive(Debug, Default)]
pub(super) struct Source {
    pub(super) records: Vec<TreeRecord>,
    pub(super) by_uuid: HashMap<Box<str>, usize>,
    pub(super) threads: Vec<Thread>,
    pub(super) labels: Labels,
    /// The id of the session to which subagents belong.
    pub(super) session: Box<str>,
    pub(super) title: Option<String>,
    /// The id of the record at which the session continues, and the index of the record before that statement.
    pub(super) leaf: Option<(Box<str>, usize)>,
    pub(super) parent_session: Option<Box<str>>,
    pub(super) cwd: Option<String>,
    /// The git branch of the last record that has one.
    pub(super) git_branch: Option<String>,
    pub(super) started: Option<Millis>,
    pub(super) ended: Option<Millis>,
    pub(super) duplicates: u64,
    /// Type and call of a subagent, from its meta file.
    pub(super) agent_title: Option<String>,
    pub(super) agent_call: Option<Box<str>>,
}

/// The base of the main conversation.
pub(super) fn base(source: &Source) -> Base {
    match &source.parent_session {
        Some(parent) if *parent != source.session => Base::CopyOf {
            native_id: parent.to_string(),
        },
        _ => Base::None,
    }
}
