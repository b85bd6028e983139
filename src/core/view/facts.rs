//! The facts of an entry's body that rows need.

use crate::tools::LineCounts;
use std::borrow::Cow;

/// The facts of an entry's body that rows need. They are borrowed from the body where possible.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowFacts<'a> {
    /// One line of at most `PreviewLine::LIMIT` characters, without control characters. For a tool result,
    /// its outcome in at most `call::RESULT_CHARS` characters.
    pub preview: Cow<'a, str>,
    /// Whether a tool wrote the text of the message. Then the preview is one word for this text.
    pub is_aside: bool,
    /// For a tool result: the number of lines of its text.
    pub lines: u32,
    /// For a tool result: the name of the tool.
    pub tool_name: Option<Cow<'a, str>>,
    /// For a tool result: the id of the call that it answers.
    pub tool_call_id: Option<Cow<'a, str>>,
    /// For an assistant message, if requested: its calls.
    pub calls: Vec<ToolCall<'a>>,
    /// For a compaction: `tokensBefore`.
    pub tokens: Option<u64>,
    /// The `type`, if this program does not know it.
    pub kind: Option<Cow<'a, str>>,
    /// The role, if this program does not know it.
    pub role: Option<Cow<'a, str>>,
    /// The stored timestamp, if it does not have the form that this program writes.
    pub timestamp: Option<Cow<'a, str>>,
}

/// A call in an assistant message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolCall<'a> {
    /// The id by which a result names the call; empty if absent.
    pub id: Cow<'a, str>,
    pub name: Cow<'a, str>,
    /// The argument that describes the call, on one line; empty if the arguments are empty or unknown.
    pub summary: Cow<'a, str>,
    /// The number of files that the call changes if it succeeds; 0 for a tool that changes no files.
    pub changes: u32,
    /// The lines that the call adds and removes, if its arguments show them.
    pub lines: Option<LineCounts>,
}
