//! The entries of a conversation.

/// An entry of the conversation, with the results of its calls.
#[derive(Debug, Default)]
pub(super) struct Turn {
    pub(super) thread: usize,
    pub(super) parent: Anchor,
    pub(super) kind: TurnKind,
    /// The indices of its records, in the order of the source.
    pub(super) records: Vec<usize>,
    pub(super) results: Vec<TurnResult>,
    /// The first entry that a compaction keeps in the context.
    pub(super) first_kept: Option<usize>,
    /// Whether the turn is a summary without a boundary.
    pub(super) is_summary: bool,
    pub(super) is_open: bool,
    /// Whether the tool says that the message has ended. Even then the message is open, because more of its records may
    /// follow.
    pub(super) has_end_mark: bool,
    pub(super) is_idle: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnKind {
    Assistant,
    User,
    Scaffolding,
    /// Results whose call the source does not have.
    Results,
    Compaction,
    #[default]
    Event,
}

#[derive(Debug)]
pub(super) struct TurnResult {
    pub(super) record: usize,
    /// The index among the results of the record.
    pub(super) result: usize,
    /// The index of the call's record, and the index of the call in that record.
    pub(super) call: Option<(usize, usize)>,
}

/// The position in the tree to which a record's children are attached.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Anchor {
    /// The position is not known yet.
    #[default]
    Unknown,
    Root,
    Turn(usize),
    /// This record names a parent that the source does not have. The position is below that parent.
    Missing(usize),
}
