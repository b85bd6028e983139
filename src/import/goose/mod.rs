//! goose: the database `sessions.db`, and the older files `sessions/<id>.jsonl`.
//!
//! A source is one session. Of a database its records are rows, `{"table":"messages","rowid":7,"row":{…}}`, of the tables
//! `sessions`, `messages` and `usage_ledger`; columns named `…_json` hold JSON as text. Of a file, the first line is about
//! the session, and each other line is a message.
//!
//! - Messages are in the order of their rows. A message is named by its `message_id`, which a fork keeps; rows from before that
//!   column are named by a hash of role, time and content.
//! - `turnContext`, or a message that is hidden from the user, is scaffolding.
//! - A compaction hides all messages so far from the model. A summary follows that is hidden from the user, then an
//!   answer that is hidden too.
//! - A command to goose and the reply to it are messages that the model does not see, and are not part of the conversation.
//! - Results of tools are content of user messages.
//! - There is no mark of a finished answer: the last one is open until another message follows.

mod map;
mod record;
#[cfg(test)]
mod tests;
mod thread;

use super::member::{Body, Member, Node};
use super::reader::{Format, Reader};

pub(crate) struct Goose;

impl Format for Goose {
    fn has_shared_keys(&self) -> bool {
        true
    }

    fn reader(&self, path: &str) -> Box<dyn Reader> {
        Box::new(thread::ThreadReader::new(path))
    }

    fn body(&self, _member: &Member, node: &Node, records: &[&[u8]]) -> Body {
        map::body(node, records)
    }
}
