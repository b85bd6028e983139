//! The two halves of a tool's format.

use super::mapping::Former;
use super::member::{Body, Member, Node, Record};
use treelined_core::timestamp::Millis;

/// The reader and mapper of one tool's format.
pub(crate) trait Format: Sync {
    /// Whether nodes with equal keys in two members are the same node; the later one is a copy.
    fn has_shared_keys(&self) -> bool;

    /// A reader for the source with this path, as the tool names it.
    fn reader(&self, path: &str) -> Box<dyn Reader>;

    /// The entry of a node. `records` are the bytes of its places, in order. Never fails: it leaves out unknown
    /// content, since the origin keeps it.
    fn body(&self, member: &Member, node: &Node, records: &[&[u8]]) -> Body;

    /// The members that name other entries, which the body leaves out: the member's name and the node's key. An unknown
    /// key is written unchanged.
    fn references(&self, _node: &Node, _records: &[&[u8]]) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// The facts of an object of an export; `None` if it is not a conversation of the tool.
    fn head(&self, _object: &[u8]) -> Option<Head> {
        None
    }
}

/// The facts of a conversation in an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    /// The tool's id of it.
    pub(crate) id: String,
    /// Its last change.
    pub(crate) changed: Option<Millis>,
}

/// Reads one source from beginning to end. Linear in its bytes; keeps nodes, not bodies.
pub(crate) trait Reader: Send {
    /// Says before the first record which ones older versions have read: they become what those made of them.
    fn formerly(&mut self, _former: Former) {}

    /// Takes the next record: one JSON value. A value that is not a record of the tool counts as kept only in the origin.
    fn record(&mut self, record: Record<'_>);

    /// The conversations of the source. The first is its main one, the others are its subagents.
    fn finish(self: Box<Self>) -> Vec<Member>;
}
