//! The interface of a tool's format: its reader and its mapper.

use super::mapping::Former;
use super::member::{Body, Member, Node, Record};
use treelined_core::timestamp::Millis;

/// The reader and mapper of one tool's format.
pub(crate) trait Format: Sync {
    /// Whether nodes with equal keys in two members are the same node; the later one is a copy.
    fn has_shared_keys(&self) -> bool;

    /// A reader for the source with this path.
    fn reader(&self, path: &str) -> Box<dyn Reader>;

    /// The entry of a node. `records` has the bytes of the node's places, in order. This never fails: unknown content
    /// is left out, and the origin still has it.
    fn body(&self, member: &Member, node: &Node, records: &[&[u8]]) -> Body;

    /// The members of the entry that refer to other entries, which the body leaves out. Each has its name, and the
    /// key of the node to which it refers. If there is no such node, the key is written unchanged.
    fn references(&self, _node: &Node, _records: &[&[u8]]) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// The facts about one object of an export; `None` if it is not a conversation of the tool.
    fn head(&self, _object: &[u8]) -> Option<Head> {
        None
    }
}

/// The facts about a conversation in an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    /// The native id of the conversation.
    pub(crate) id: String,
    /// The time of its last change.
    pub(crate) changed: Option<Millis>,
}

/// Reads one source from beginning to end. It is linear in the bytes of the source, and keeps nodes but no bodies.
pub(crate) trait Reader: Send {
    /// Sets which records older versions of the reader have read. These records become the same nodes as before. This
    /// is called before the first record.
    fn formerly(&mut self, _former: Former) {}

    /// Reads the next record, which is one JSON value. If it is not a record of the tool, it is counted as kept only
    /// in the origin.
    fn record(&mut self, record: Record<'_>);

    /// The conversations of the source. The first is the main conversation; the others are its subagents.
    fn finish(self: Box<Self>) -> Vec<Member>;
}
