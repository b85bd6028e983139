//! The conversations of other tools: the records of their files as trees of nodes, each node as an entry, and the
//! import that makes sessions of them.
//!
//! Files of other tools are only read. Each byte that was imported is kept, so that a session can be made again when a
//! tool has removed its files; what an import has written stays. A [`Format`] has two halves for each tool: a reader,
//! which turns the records of one source into [`Member`]s without their bodies, and a mapper, which makes the entry of
//! one node from the bytes of its records. Both are pure; a new tool is one folder here. [`importer`] finds the sources,
//! keeps their bytes, and writes the sessions. This crate promises no interface to other programs.

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "numbers of tests are small"
    )
)]

mod claude_code;
pub(crate) mod codex;
pub(crate) mod family;
mod gemini;
pub(crate) mod goose;
pub(crate) mod ids;
pub mod importer;
pub(crate) mod mapping;
pub mod member;
mod message;
pub(crate) mod opencode;
pub(crate) mod pi;
pub mod records;
#[cfg(test)]
pub(crate) mod tests;
mod value;
pub mod whole;

use mapping::Former;
use member::{Body, Member, Node, Record};

/// The tools whose conversations can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tool {
    ClaudeCode,
    Codex,
    Opencode,
    Gemini,
    Goose,
    Pi,
}

impl Tool {
    pub const ALL: [Self; 6] = [
        Self::ClaudeCode,
        Self::Codex,
        Self::Opencode,
        Self::Gemini,
        Self::Goose,
        Self::Pi,
    ];

    /// The name in params, reports and `origin` members.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Opencode => "opencode",
            Self::Gemini => "gemini",
            Self::Goose => "goose",
            Self::Pi => "pi",
        }
    }
}

/// The format of a tool.
pub(crate) fn format(tool: Tool) -> &'static dyn Format {
    match tool {
        Tool::ClaudeCode => &claude_code::ClaudeCode,
        Tool::Codex => &codex::CodexFormat,
        Tool::Opencode => &opencode::Opencode,
        Tool::Gemini => &gemini::Gemini,
        Tool::Goose => &goose::Goose,
        Tool::Pi => &pi::PiFormat,
    }
}

/// The reader and mapper of one tool's format.
pub(crate) trait Format: Sync {
    /// Whether nodes with equal keys in two members are the same node; the later one is a copy.
    fn has_shared_keys(&self) -> bool;

    /// A reader for the source with this path, as the tool names it.
    fn reader(&self, path: &str) -> Box<dyn Reader>;

    /// The entry of a node. `records` are the bytes of its places, in order. Never fails: it leaves out unknown
    /// content, since the origin keeps it.
    fn body(&self, member: &Member, node: &Node, records: &[&[u8]]) -> Body;

    /// The members that name other entries, which the body leaves out: the member's name and the node's key. An unknown
    /// key is written unchanged.
    fn references(&self, _node: &Node, _records: &[&[u8]]) -> Vec<(&'static str, String)> {
        Vec::new()
    }
}

/// Reads one source from beginning to end. Linear in its bytes; keeps nodes, not bodies.
pub(crate) trait Reader: Send {
    /// Says before the first record which ones older versions have read: they become what those made of them.
    fn formerly(&mut self, _former: Former) {}

    /// Takes the next record: one JSON value. A value that is no record of the tool counts as kept only in the origin.
    fn record(&mut self, record: Record<'_>);

    /// The conversations of the source. The first is its main one, the others are its subagents.
    fn finish(self: Box<Self>) -> Vec<Member>;
}
