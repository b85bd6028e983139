//! The state that the reader of a rollout keeps from line to line.

use super::answer::Response;
use super::file_name::FileName;
use crate::codex::record::Line;
use crate::codex::usage::{Meter, Tokens};
use crate::member::{Member, Place};
use std::collections::{HashMap, HashSet};

/// Reads one rollout.
#[derive(Default)]
pub(in crate::codex) struct RolloutReader {
    pub(super) member: Member,
    pub(super) file: FileName,
    pub(super) has_meta: bool,
    /// Records before this ordinal are a copy of the conversation that spawned a subagent.
    pub(super) own_from: u64,
    /// The order of the latest record.
    pub(super) order: Option<u64>,
    /// The hash of the latest record, if it has an ordinal.
    pub(super) previous: Option<u64>,
    /// The node after which the conversation continues.
    pub(super) tip: Option<u32>,
    /// The real messages of the user on the path to the tip.
    pub(super) turns: Vec<u32>,
    /// The latest message of the model, until it is complete.
    pub(super) response: Option<Response>,
    /// The names of called tools, by the hashes of call ids.
    pub(super) calls: HashMap<u64, Box<str>>,
    /// Events without an entry, by the hashes of call ids.
    pub(super) events: HashMap<u64, Vec<super::event::Event>>,
    pub(super) meter: Meter,
    pub(super) model: Option<String>,
    pub(super) provider: Option<String>,
    /// The latest message of the role `user` that does not name its author, and the hash of its text.
    pub(super) doubtful: Option<(u32, u64)>,
    /// The node of that message, while it is the last record.
    pub(super) newest: Option<u32>,
    /// The model's answer to the request for a summary, which the next compaction repeats.
    pub(super) summary: Vec<Place>,
    /// Usage without a message.
    pub(super) loose_usage: Option<Tokens>,
    /// Hashes of the ids of subagents that have a node.
    pub(super) spawned: HashSet<u64>,
}

/// One line with its place in the conversation.
pub(super) struct Item<'a> {
    pub(super) line: &'a Line<'a>,
    pub(super) place: Place,
    pub(super) order: u64,
}

/// Most types of records that are counted by name.
pub(super) const MOST_TYPES: usize = 200;

/// Longest name of a type, in bytes.
pub(super) const LONGEST_TYPE: usize = 64;
