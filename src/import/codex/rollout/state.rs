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
    /// In a subagent's rollout, records before this ordinal are a copy of the conversation that spawned it.
    pub(super) own_from: u64,
    /// The order of the latest node.
    pub(super) order: Option<u64>,
    /// The hash of the latest record, if it has an ordinal.
    pub(super) previous: Option<u64>,
    /// The node below which the conversation continues.
    pub(super) tip: Option<u32>,
    /// The messages on the path to the tip that the user has written.
    pub(super) turns: Vec<u32>,
    /// The latest message of the model. It is open until it is complete.
    pub(super) response: Option<Response>,
    /// The names of the tools that were called, by the hashes of call ids.
    pub(super) calls: HashMap<u64, Box<str>>,
    /// The events that wait for a result, by the hashes of call ids.
    pub(super) events: HashMap<u64, Vec<super::event::Event>>,
    pub(super) meter: Meter,
    pub(super) model: Option<String>,
    pub(super) provider: Option<String>,
    /// The latest message of the role `user` whose author is unknown, with the hash of its text.
    pub(super) doubtful: Option<(u32, u64)>,
    /// The node of the message `doubtful`, if this message is the last record so far.
    pub(super) newest: Option<u32>,
    /// The answer in which the model summarizes the conversation. The next compaction repeats it.
    pub(super) summary: Vec<Place>,
    /// The usage of a response whose message was not read yet.
    pub(super) loose_usage: Option<Tokens>,
    /// The hashes of the ids of subagents that already have a node.
    pub(super) spawned: HashSet<u64>,
}

/// A line of the rollout, with its place in the file.
pub(super) struct Item<'a> {
    pub(super) line: &'a Line<'a>,
    pub(super) place: Place,
    pub(super) order: u64,
}

/// The most types of records that are counted by name.
pub(super) const MOST_TYPES: usize = 200;

/// The longest name of a type, in bytes.
pub(super) const LONGEST_TYPE: usize = 64;
