//! Codex: rollout files, `sessions/YYYY/MM/DD/rollout-<time>-<thread>[_<rollout>].jsonl[.zst]`.
//!
//! A line is `{"timestamp", "ordinal"?, "type", "payload", "metadata"?}`; the first files, until August 2025, have
//! payloads without the envelope. The types that matter:
//!
//! - `session_meta`: thread, directory, model provider, and the position from which the file continues. The copy of the
//!   parent's that a legacy fork has on its second line means nothing.
//! - `response_item`: the conversation, as the model's interface has it. Items between two boundaries are one message
//!   of the model: a result, a message of the user, a new turn, and the usage of a response are boundaries.
//! - `event_msg`: the same once more, for the terminal. Only what items do not have is taken from it: exit codes,
//!   outputs, patches, plans, aborts.
//! - `turn_context`: the model of the turn.
//! - `token_usage_record`: the usage of one response. Older files have only `token_count`, a running total.
//! - `compacted`: a summary in place of all that is before it.
//!
//! A thread is a tree in three ways. A *paginated* file with `history_base` goes on from an ordinal of another rollout:
//! a fork has its own thread, a revert another rollout of the same thread. A *legacy* fork (`forked_from_id`) repeats
//! its parent's payloads. `thread_rolled_back` has a number of messages of the user by which it goes back in the same
//! file.

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

/// The names of threads by their ids, from the bytes of `session_index.jsonl`. The last line of a thread counts.
pub(crate) fn thread_names(index: &[u8]) -> HashMap<String, String> {
    let lines = index.split(|byte| *byte == b'\n');
    let named = lines.filter_map(|line| {
        let [id, name] = json::get_each(line, ["id", "thread_name"]);
        let (id, name) = (json::string(id?)?, json::string(name?)?);
        Some((id.into_owned(), name.into_owned()))
    });
    named.collect()
}
