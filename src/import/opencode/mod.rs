//! opencode: the database `opencode.db`, and the older folder `storage/`.
//!
//! A source is one session. Of a database its records are rows, `{"table":"part","rowid":7,"row":{…}}`, of the tables
//! `session`, `message`, `part`, `event` and others; columns named `data` hold JSON as text. Of a folder they are
//! files, `{"file":"message/<session>/<message>.json","row":{…}}`, in the order of their paths.
//!
//! - Messages are in the order of (time created, id). The member `parentID` of an answer names the question, and is not
//!   the tree's parent: an answer of several steps is several messages in a row.
//! - When a prompt follows a revert, opencode deletes the reverted rows. The table `event` still has them: its replay
//!   ([`replay`]) gives the deleted messages and the message before each. They become branches. Where the
//!   replay ends with something else than the tables, the tables count.
//! - A pending revert (`session.revert`) keeps its rows: the leaf is before them.
//! - A compaction is a user message with a part `compaction` and the answer with `summary: true` after it.
//! - A fork is its own session without a link. Its copied messages have other ids, and the same role, time,
//!   texts and tools.
//! - A message is closed once another one follows, or it has `time.completed` and its last part ends its last step.

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
