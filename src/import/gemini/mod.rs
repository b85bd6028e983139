//! Gemini CLI: `tmp/<project>/chats/session-<time>-<id>.jsonl`, and one JSON document `.json` before that.
//!
//! - The reader keeps the list of messages that the tool would have, and all that ever was in it: a message with a new
//!   id goes on from the end of the list, one with a known id updates that message.
//! - `$rewindTo` cuts the list before a message, or empties it if the id is unknown. The messages after the cut stay,
//!   as a branch.
//! - `$set.messages` is the whole list again, in a poorer form (texts only) and with other times. Unknown ids in it
//!   are new messages. If messages are missing, the list was compressed: the first unknown message is the summary.
//!   Without one, the list was cut.
//! - A `user` message of `functionResponse` parts repeats results that `toolCalls` has.
//! - The last message may grow until another id follows.
//! - The legacy document is one record, and places are stretches of it. So it is with `$set.messages`.
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

/// The formats of Gemini CLI up to 0.61.
#[derive(Debug)]
pub(crate) struct Gemini;

impl Format for Gemini {
    /// Ids are unique only within a session: the id of the first message is a hash of its text.
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
