//! opencode: the database `opencode.db`, and the older folder `storage/`.
//!
//! A source is one session. In a database, its records are rows `{"table":"part","rowid":7,"row":{…}}` of the tables
//! `session`, `message`, `part`, `event` and others. Columns named `data` have JSON as text. In a folder, its records
//! are files `{"file":"message/<session>/<message>.json","row":{…}}`, in the order of their paths.
//!
//! - Messages are ordered by creation time and id. The member `parentID` of an answer names the question, which is
//!   not always its parent in the tree: an answer of several steps is several messages, one after the other.
//! - When a prompt follows a revert, opencode deletes the reverted rows, but their events stay in the table `event`. A
//!   replay of the events ([`replay`]) finds the deleted messages, and for each of them the previous message. The
//!   deleted messages become branches. If the result of the replay differs from the tables, the tables count.
//! - A pending revert (`session.revert`) has not deleted its rows yet: the leaf is before them.
//! - A compaction is two messages: a user message with a part `compaction`, and after it an answer with a true
//!   `summary`.
//! - A fork is a separate session that does not name its origin. Its copied messages have other ids, but the same
//!   role, time, texts and tools.
//! - A message is closed when another message follows. It is also closed when it has `time.completed` and its last
//!   part ends its last step.

mod map;
mod nodes;
mod record;
mod replay;
#[cfg(test)]
mod tests;
mod thread;

use super::member::{Body, Member, Node};
use super::reader::{Format, Reader};

pub(crate) struct Opencode;

impl Format for Opencode {
    fn has_shared_keys(&self) -> bool {
        false
    }

    fn reader(&self, _path: &str) -> Box<dyn Reader> {
        Box::new(thread::ThreadReader::default())
    }

    fn body(&self, _member: &Member, node: &Node, records: &[&[u8]]) -> Body {
        map::body(node, records)
    }
}
