//! The records of one source that belong to the tree of its conversation.

use super::record::Role;
use crate::member::Base;
use hashbrown::HashMap;
use std::collections::BTreeMap;
use treelined_core::timestamp::Millis;

/// A record that belongs to the tree.
#[derive(Debug)]
pub(super) struct TreeRecord {
    pub(super) number: u64,
    pub(super) at: u64,
    pub(super) len: u64,
    pub(super) time: Option<Millis>,
    /// The index of its conversation.
    pub(super) thread: usize,
    pub(super) uuid: Option<Box<str>>,
    /// If the record is a copy: the id of its original, in the file from which it was copied.
    pub(super) original: Option<Box<str>>,
    pub(super) parent: Parentage,
    pub(super) role: Role,
    /// The hash of its content; 0 if it has none.
    pub(super) content: u64,
    /// The index of its type in the report.
    pub(super) label: usize,
    /// Whether no further part of the same model message comes after it.
    pub(super) ends_message: bool,
}

#[derive(Debug)]
pub(super) enum Parentage {
    Root,
    Of(Box<str>),
    /// The record does not name its parent. Its parent is the last message.
    Previous,
    /// The record has no uuid and no parent. It comes between the last message and the next one.
    Between,
    /// The record repeats an earlier one, below this parent.
    Again {
        uuid: Box<str>,
        parent: Box<str>,
    },
}

/// One conversation of the file.
#[derive(Debug, Default)]
pub(super) struct Thread {
    /// The name of the subagent, if it is a subagent's conversation.
    pub(super) agent: Option<Box<str>>,
    /// The id of the call that has spawned the subagent.
    pub(super) call: Option<Box<str>>,
    /// The hash of the raw content of its first message.
    pub(super) prompt: Option<u64>,
}

/// Counts records by type. At most [`MOST_LABELS`] types are counted separately.
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

/// The facts that were read from a source.
#[derive(Debug, Default)]
pub(super) struct Source {
    pub(super) records: Vec<TreeRecord>,
    pub(super) by_uuid: HashMap<Box<str>, usize>,
    pub(super) threads: Vec<Thread>,
    pub(super) labels: Labels,
    /// The id of the session to which the subagents belong.
    pub(super) session: Box<str>,
    pub(super) title: Option<String>,
    /// The id of the record at which the session continues, and the number of records before the line that names this
    /// id.
    pub(super) leaf: Option<(Box<str>, usize)>,
    pub(super) parent_session: Option<Box<str>>,
    pub(super) cwd: Option<String>,
    /// The git branch in the last record that has one.
    pub(super) git_branch: Option<String>,
    pub(super) started: Option<Millis>,
    pub(super) ended: Option<Millis>,
    pub(super) duplicates: u64,
    /// The type of the subagent and the call that has spawned it, from its meta file.
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
