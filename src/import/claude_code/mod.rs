//! Claude Code: `projects/<folder of the cwd>/<session>.jsonl`, with one record on each line.
//!
//! - Records with `uuid` and `parentUuid` form a tree, but not all of them are messages. A model message is several
//!   `assistant` records with the same `message.id`. A result belongs to the message that has its call, whatever its
//!   `parentUuid` is. A record that is not a message only links the records below it to the record above it. Several
//!   children of one message are branches. [`tree`] applies these rules.
//! - A compaction is two records: a `compact_boundary`, whose parent is in `logicalParentUuid`, and below it a record
//!   with `isCompactSummary`. Records that stay in the context are named in `compactMetadata`, or are written again
//!   with the same uuid. They stay at their first position, but records that continue from them become children of the
//!   compaction.
//! - A compaction may also write copies that have new uuids, as siblings with the same time and content. Only the first
//!   of these siblings counts.
//! - The records of a subagent can be in four places: in `<session>/subagents/agent-<id>.jsonl` with
//!   `agent-<id>.meta.json` beside it, in `agent-<id>.jsonl` beside the session, in records with `isSidechain` in the
//!   session's own file, or in the messages of `progress` records of type `agent_progress`. These records have the id
//!   of the session, so the native id of a subagent is `<session>/agent-<id>`. The reader gets a meta file as one more
//!   record: an object without `type`, with `agentType` or `toolUseId`.
//! - If a record is a copy, its `forkedFrom` names the original record in the parent's file. The file of a resumed
//!   session may begin with records of another session that have the same uuids. So keys are shared between files.
//! - The id of a session is the name of its file if some record has this id. Otherwise it is the id in the last
//!   record that has one.

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

/// Reads and maps the formats of Claude Code 2.0 to 2.1.
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
