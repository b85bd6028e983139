//! Codex: rollout files `sessions/YYYY/MM/DD/rollout-<time>-<thread>[_<rollout>].jsonl[.zst]`.
//!
//! A line is `{"timestamp", "ordinal"?, "type", "payload", "metadata"?}`. The first files, until August 2025, have
//! payloads without this envelope. These types are read:
//!
//! - `session_meta`: the thread, the directory, the model provider, and the position from which the file continues.
//!   The second line of a legacy fork is a copy of its parent's `session_meta`; it is ignored.
//! - `response_item`: the conversation, in the form of the model's interface. All items between two boundaries are
//!   one message of the model. Boundaries are: a result, a message of the user, a new turn, and the usage of a
//!   response.
//! - `event_msg`: the conversation again, in the form for the terminal. Only facts that items do not have are read
//!   from it: exit codes, outputs, patches, plans, aborts.
//! - `turn_context`: the model of the turn.
//! - `token_usage_record`: the usage of one response. Older files have only `token_count`, a running total.
//! - `compacted`: a summary that replaces everything before it.
//!
//! A thread has branches in three ways. A *paginated* file with `history_base` continues from an ordinal of another
//! rollout. In a fork, the other rollout belongs to another thread. In a revert, it belongs to the same thread. A
//! *legacy* fork (`forked_from_id`) repeats its parent's payloads. `thread_rolled_back` goes back in the same file, by
//! a number of messages of the user.

mod map;
mod record;
mod rollout;
#[cfg(test)]
mod tests;
mod usage;

use super::member::{Body, Member, Node};
use super::reader::{Format, Reader};
use std::collections::HashMap;
use treelined_core::json;

pub(crate) struct CodexFormat;

impl Format for CodexFormat {
    fn has_shared_keys(&self) -> bool {
        false
    }

    fn reader(&self, path: &str) -> Box<dyn Reader> {
        Box::new(rollout::state::RolloutReader::new(path))
    }

    fn body(&self, member: &Member, node: &Node, records: &[&[u8]]) -> Body {
        map::body(member, node, records)
    }
}

/// The names of threads, by their ids. `index` has the bytes of `session_index.jsonl`. The last line of a thread
/// counts.
pub(crate) fn thread_names(index: &[u8]) -> HashMap<String, String> {
    let lines = index.split(|byte| *byte == b'\n');
    let named = lines.filter_map(|line| {
        let [id, name] = json::get_each(line, ["id", "thread_name"]);
        let (id, name) = (json::string(id?)?, json::string(name?)?);
        Some((id.into_owned(), name.into_owned()))
    });
    named.collect()
}
