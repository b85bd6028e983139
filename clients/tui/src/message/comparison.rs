//! The result of a comparison of two branches.

use super::row::Kind;

/// Messages shown from the beginning of a branch, and as many from its end.
pub const SHOWN_MESSAGES: usize = 500;

/// Files shown per branch: at most this many read ones, and as many modified ones.
pub const SHOWN_FILES: usize = 10_000;

/// The result of a comparison; texts are sanitized.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Comparison {
    /// The common ancestor in one line; `None` if there is none.
    pub ancestor: Option<String>,
    pub left: Side,
    pub right: Side,
}

/// One of the branches, from the common ancestor on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Side {
    /// The marked entry in one line.
    pub tip: String,
    /// Messages in the order of the conversation.
    pub messages: Vec<BranchMessage>,
    /// The messages left out of a very long branch.
    pub gap: Option<Gap>,
    /// Files read, sorted.
    pub read: Vec<String>,
    /// Files written or edited, sorted.
    pub modified: Vec<String>,
    /// The cost of its answers; `None` if none has used tokens.
    pub cost: Option<String>,
}

/// Messages left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The number of messages before the gap.
    pub after: usize,
    /// The number of messages left out.
    pub messages: usize,
}

/// A message, for its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchMessage {
    pub kind: Kind,
    /// Text in one line.
    pub text: String,
}
