//! Claude Code: `projects/<folder of the cwd>/<session>.jsonl`, one record a line.
//!
//! - Records with `uuid` and `parentUuid` make a graph of which only some are the conversation. A model message is
//!   several `assistant` records with one `message.id`; a result belongs to the message with its call, wherever its
//!   `parentUuid` points; everything that is not a conversation only links what is below it to what is above.
//!   [`tree`] does this. What has several children then is a branch.
//! - A compaction is a `compact_boundary`, whose parent is in `logicalParentUuid`, and a record with
//!   `isCompactSummary` below it. Records that stay in the context are named in `compactMetadata` or written again
//!   with the same uuid: their earlier place counts, and what goes on from them goes on from the compaction.
//! - Compaction may also write copies with new uuids: siblings with the same time and content. The first one counts.
//! - Subagents are `<session>/subagents/agent-<id>.jsonl` with `agent-<id>.meta.json` beside it, or
//!   `agent-<id>.jsonl` beside the session, or records with `isSidechain` in the session's own file, or the messages
//!   in `progress` records of type `agent_progress`. Their records carry the session's id, so the native id of a
//!   subagent is `<session>/agent-<id>`. The reader takes a meta file for one more record: an object without
//!   `type`, with `agentType` or `toolUseId`.
//! - `forkedFrom` names the record in the parent's file of which a record is a copy. A resumed session's file may
//!   begin with records of another session, uuids included. So keys are shared between files.
//! - The id of a session is the name of its file if records have it, else that of the last record with one.

mod deliveries;
mod emit;
mod map;
mod reader;
mod record;
mod source;
#[cfg(test)]
mod tests;
mod tree;
mod turn;

use super::member::{Body, Member, Node};
use super::reader::{Format, Reader};

/// The format of Claude Code, 2.0 to 2.1.
#[derive(Debug)]
pub(crate) struct ClaudeCode;

impl Format for ClaudeCode {
    fn has_shared_keys(&self) -> bool {
        true
    }

    fn reader(&self, path: &str) -> Box<dyn Reader> {
        Box::new(reader::SessionReader::new(path))
    }

    fn body(&self, _member: &Member, node: &Node, records: &[&[u8]]) -> Body {
        map::body(node, records)
    }
}
