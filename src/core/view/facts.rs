//! The facts of an entry's body that rows need.

use crate::tools::LineCounts;
use std::borrow::Cow;

/// The facts of an entry's body that rows need; borrowed from the body where possible.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowFacts<'a> {
    /// One line of at most `PreviewLine::LIMIT` characters without control characters. For a tool result: its
    /// outcome, at most `call::RESULT_CHARS` characters.
    pub preview: Cow<'a, str>,
    /// Whether a tool wrote the text of a message: the preview is one word for it.
    pub is_aside: bool,
    /// For a tool result: the lines of its text.
    pub lines: u32,
    /// For a tool result.
    pub tool_name: Option<Cow<'a, str>>,
    /// For a tool result: the id of the call it answers.
    pub tool_call_id: Option<Cow<'a, str>>,
    /// For an assistant, if requested: its calls.
    pub calls: Vec<ToolCall<'a>>,
    /// For a compaction: `tokensBefore`.
    pub tokens: Option<u64>,
    /// The `type`, if it is unknown to this program.
    pub kind: Option<Cow<'a, str>>,
    /// The role, if it is unknown to this program.
    pub role: Option<Cow<'a, str>>,
    /// The stored text, if it has another form than this program writes.
    pub timestamp: Option<Cow<'a, str>>,
}

/// A call in an assistant message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolCall<'a> {
    /// The id by which its result names it; empty if absent.
    pub id: Cow<'a, str>,
    pub name: Cow<'a, str>,
    /// The argument that describes the call, on one line; empty if its arguments are empty or unknown.
    pub summary: Cow<'a, str>,
    /// The number of files it changes if it succeeds; 0 for a tool that changes no files.
    pub changes: u32,
    /// The lines that it adds and removes, if its arguments tell them.
    pub lines: Option<LineCounts>,
}
