//! The result of a comparison of two branches.

use super::row::Kind;

/// The most messages that are shown from the beginning of a branch, and from its end.
pub const SHOWN_MESSAGES: usize = 500;

/// The most files that were read, and the most modified files, that are shown for a branch.
pub const SHOWN_FILES: usize = 10_000;

/// The result of a comparison. Its texts are sanitized.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Comparison {
    /// The common ancestor on one line; `None` if there is none.
    pub ancestor: Option<String>,
    pub left: Side,
    pub right: Side,
}

/// One of the two branches, below the common ancestor.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Side {
    /// The marked entry on one line.
    pub tip: String,
    /// The messages in the order of the conversation.
    pub messages: Vec<BranchMessage>,
    /// The messages left out of a very long branch.
    pub gap: Option<Gap>,
    /// The files that were read, sorted.
    pub read: Vec<String>,
    /// The files that were written or edited, sorted.
    pub modified: Vec<String>,
    /// The cost of the answers; `None` if none of them used tokens.
    pub cost: Option<String>,
}

/// Messages that are left out of a long branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The number of messages before the gap.
    pub after: usize,
    /// The number of messages left out.
    pub messages: usize,
}

/// A message of a branch, shown on one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchMessage {
    pub kind: Kind,
    /// The text on one line.
    pub text: String,
}
