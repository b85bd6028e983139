//! Entries as blocks that a client shows (protocol.md §15): Markdown as HTML, code, diffs, images, tool calls with
//! their results.
//!
//! Session text is hostile. Markup leaves this room only through [`markdown`], which writes a fixed set of elements and
//! attributes and escapes everything else; every other string is plain text. Pure: an entry's bytes and the facts about
//! other entries come from the caller.

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
