//! The facts about an entry that its line does not contain.

/// The facts about an entry that its line does not contain.
#[derive(Debug, Clone, Copy, Default)]
pub struct EntryContext<'a> {
    /// The id of the entry in the tree.
    pub id: &'a str,
    /// Whether the entry is a failed tool result or command, or an answer that ended early.
    pub is_error: bool,
    /// The results of the calls of an assistant message, at most one for each call.
    pub results: &'a [CallResult<'a>],
    /// The entries that a summary replaces.
    pub replaced: Option<ReplacedEntries<'a>>,
    /// The text that a renderer makes of a custom message.
    pub preview: Option<&'a str>,
}

/// The result of a tool call.
#[derive(Debug, Clone, Copy)]
pub struct CallResult<'a> {
    pub call_id: &'a str,
    pub entry_id: &'a str,
    pub is_error: bool,
    /// The entry of the result, if the call must show the blocks of the result.
    pub entry: Option<&'a [u8]>,
}

/// The entries of a path from `first` to `last`, which are ids.
#[derive(Debug, Clone, Copy)]
pub struct ReplacedEntries<'a> {
    pub first: &'a str,
    pub last: &'a str,
}
