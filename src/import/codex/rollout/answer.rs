//! The message of the model that is being read.

use crate::codex::usage::Tokens;
use crate::member::Node;
use std::collections::{HashMap, HashSet};

/// The latest message of the model, which may still grow.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) node: u32,
    /// Whether the message is complete.
    pub(super) is_ended: bool,
    pub(super) has_calls: bool,
    /// The hashes of the ids of calls that have no result yet.
    pub(super) unanswered: HashSet<u64>,
    /// The indices of the results' nodes, by the hashes of call ids.
    pub(super) results: HashMap<u64, u32>,
    /// The hashes of the ids of calls that the provider has answered itself.
    pub(super) searches: Vec<u64>,
    /// The nodes of results that are in the call's own record, such as images.
    pub(super) images: Vec<Node>,
    pub(super) usage: Option<Tokens>,
}

impl Response {
    pub(super) fn node(&self) -> u32 {
        self.node
    }

    pub(super) fn is_answered(&self) -> bool {
        self.unanswered.is_empty()
    }

    pub(super) fn is_unanswered(&self, call: u64) -> bool {
        self.unanswered.contains(&call)
    }

    pub(super) fn result(&self, call: u64) -> Option<u32> {
        self.results.get(&call).copied()
    }
}
