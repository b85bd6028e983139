//! The nodes of a tree, and the row of each.

use super::flags::Flags;
use crate::entry::{Kind, Role};
use crate::timestamp::Millis;

/// An entry (or leaf record) of one tree: its number in file order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node(pub(super) u32);

impl Node {
    /// The node of a number from a cache file; `count` is the number of nodes.
    pub(super) fn checked(number: u32, count: u32) -> Option<Self> {
        (number < count).then_some(Self(number))
    }

    /// Its number in file order, leaf records counted.
    pub const fn number(self) -> usize {
        self.0 as usize
    }
}

pub(super) const NONE: u32 = u32::MAX;

/// The timestamp of an entry whose stored text names no instant.
pub(super) const NO_TIME: Millis = Millis::MIN;

/// The offset and the length of a line in the file, without its line break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FilePlace {
    /// Bytes from the start of the file.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
}

/// The tree's data of a node: 32 bytes, besides the bytes of the id and the links to its children.
pub(super) struct NodeRow {
    pub(super) offset: u64,
    pub(super) timestamp: Millis,
    pub(super) len: u32,
    /// The parent, with leaf records resolved; [`NONE`] at a root.
    pub(super) parent: u32,
    /// Where its id starts in `Tree::ids`; it ends where the id of the next row starts.
    pub(super) id_at: u32,
    pub(super) flags: Flags,
    pub(super) kind: Kind,
    pub(super) role: Role,
}

/// A label in force.
#[derive(Debug, Clone)]
pub struct Label {
    /// Normalized.
    pub text: Box<str>,
    /// The `label` entry that sets it; its timestamp is the label's.
    pub entry: Node,
}

/// A number or count of nodes in 32 bits: a tree refuses more nodes.
pub(crate) fn number32(count: usize) -> u32 {
    debug_assert!(u32::try_from(count).is_ok(), "{count} nodes");
    u32::try_from(count).unwrap_or(NONE)
}

pub(super) fn some(at: u32) -> Option<Node> {
    (at != NONE).then_some(Node(at))
}

pub(super) fn raw(node: Option<Node>) -> u32 {
    node.map_or(NONE, |node| node.0)
}
