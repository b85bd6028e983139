//! Gemini CLI: `tmp/<project>/chats/session-<time>-<id>.jsonl`. Older versions write one JSON document `.json`.
//!
//! - The reader keeps the list of messages that the tool has at each moment, and every message that was ever in the
//!   list. A message with a new id follows the end of the list. A message with a known id updates that message.
//! - `$rewindTo` cuts the list before a message, or empties it if the id is unknown. The removed messages stay as a
//!   branch.
//! - `$set.messages` is the whole list again, in a reduced form (only texts) and with other times. Unknown ids in it
//!   are new messages. If messages of the list are missing in it and a user message is unknown, the list was
//!   compressed, and that message is the summary. If messages are missing and no user message is unknown, the list
//!   was cut, or it was compressed without a summary.
//! - A `user` message of `functionResponse` parts repeats results that `toolCalls` has.
//! - The last message may grow until a message with another id follows.
//! - The old document is one record, and each message is a range of its bytes. The same is true for `$set.messages`.
//! - The file of a subagent is `chats/<session of its parent>/<its session>.jsonl`.

mod chat;
mod emit;
mod map;
mod message;
mod reader;
#[cfg(test)]
mod tests;

use super::member::{Body, Member, Node};
use super::reader::{Format, Reader};

/// Reads and maps the formats of Gemini CLI up to 0.61.
#[derive(Debug)]
pub(crate) struct Gemini;

impl Format for Gemini {
    /// Keys are not shared, because ids are unique only within a session: the id of the first message is a hash of
    /// its text.
    fn has_shared_keys(&self) -> bool {
        false
    }

    fn reader(&self, path: &str) -> Box<dyn Reader> {
        Box::new(reader::ChatReader::new(path))
    }

    fn body(&self, _member: &Member, node: &Node, records: &[&[u8]]) -> Body {
        map::body(node, records)
    }
}
