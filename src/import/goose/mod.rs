//! goose: the database `sessions.db`, and in older versions the files `sessions/<id>.jsonl`.
//!
//! A source is one session. In a database, its records are rows `{"table":"messages","rowid":7,"row":{…}}` of the
//! tables `sessions`, `messages` and `usage_ledger`. Columns named `…_json` have JSON as text. In a file, the first
//! line is about the session, and each other line is a message.
//!
//! - Messages are in the order of their rows. The key of a message is its `message_id`, which stays the same in a fork.
//!   For rows that are older than this column, the key is a hash of role, time and content.
//! - A message with `turnContext`, or one that is hidden from the user, is scaffolding: a message of goose to the
//!   model.
//! - A compaction hides all messages so far from the model. A summary and an answer follow. Both are hidden from the
//!   user.
//! - A command to goose and its reply are messages that the model does not get. They are not part of the
//!   conversation.
//! - Results of tools are in the content of user messages.
//! - goose does not mark the end of an answer. The last answer is open until another message follows.

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
