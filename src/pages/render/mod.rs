//! Entries as blocks that a client shows (protocol.md §15): Markdown as HTML, code, diffs, images, tool calls with
//! their results.
//!
//! The text of a session is hostile. Only [`markdown`] makes markup: it writes a fixed set of elements and attributes
//! and escapes everything else. Every other string is plain text. The module is pure: the caller provides the bytes of
//! an entry and the facts about other entries.

mod call;
mod content;
mod context;
mod diff;
mod entry;
mod image;
pub(crate) mod markdown;
mod message;
mod pieces;
#[cfg(test)]
mod tests;
mod writer;

pub use self::entry::push_entry;
pub(crate) use self::message::call_ids;
pub use context::{CallResult, EntryContext, ReplacedEntries};
