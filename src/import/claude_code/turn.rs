//! The entries of a conversation.

/// One entry of the conversation, with the results of its calls.
#[derive(Debug, Default)]
pub(super) struct Turn {
    pub(super) thread: usize,
    pub(super) parent: Anchor,
    pub(super) kind: TurnKind,
    /// Indexes of its records, in the order of the source.
    pub(super) records: Vec<usize>,
    pub(super) results: Vec<TurnResult>,
    /// The first entry that stays in the context after a compaction.
    pub(super) first_kept: Option<usize>,
    /// A summary without a boundary.
    pub(super) is_summary: bool,
    pub(super) is_open: bool,
    /// It is open, and its tool says that it has ended.
    pub(super) has_end_mark: bool,
    pub(super) is_idle: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnKind {
    Assistant,
    User,
    Scaffolding,
    /// Results whose call is not in the source.
    Results,
    Compaction,
    #[default]
    Event,
}

#[derive(Debug)]
pub(super) struct TurnResult {
    pub(super) record: usize,
    /// Index among the record's results.
    pub(super) result: usize,
    /// The call's record and index there.
    pub(super) call: Option<(usize, usize)>,
}

/// The place in the tree to which a record's children are attached.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Anchor {
    /// Not known yet.
    #[default]
    Unknown,
    Root,
    Turn(usize),
    /// Below a parent that the source does not have: the parent of this record.
    Missing(usize),
}
