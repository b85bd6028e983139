//! The nodes of a tree, and the row of each.

use super::flags::Flags;
use crate::entry::{Kind, Role};
use crate::timestamp::Millis;

/// An entry (or leaf record) of one tree: its number in file order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node(pub(super) u32);

impl Node {
    /// The node with a number from a cache file; `None` unless the number is below `count`, the
    /// number of nodes.
    pub(super) fn checked(number: u32, count: u32) -> Option<Self> {
        (number < count).then_some(Self(number))
    }

    /// The node's number in file order; leaf records are counted too.
    pub const fn number(self) -> usize {
        self.0 as usize
    }
}

pub(super) const NONE: u32 = u32::MAX;

/// Stands for the timestamp of an entry whose stored text is not a time.
pub(super) const NO_TIME: Millis = Millis::MIN;

/// The offset and the length of a line in the file, without its line break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FilePlace {
    /// The offset in bytes from the start of the file.
    pub offset: u64,
    /// The length in bytes.
    pub len: u32,
}

/// The data of a node in the tree: 32 bytes. The bytes of the id and the links to the children are stored elsewhere,
/// and need more memory.
pub(super) struct NodeRow {
    pub(super) offset: u64,
    pub(super) timestamp: Millis,
    pub(super) len: u32,
    /// The parent, with leaf records resolved; [`NONE`] at a root.
    pub(super) parent: u32,
    /// Where the id starts in `Tree::ids`. The id ends where the id of the next row starts.
    pub(super) id_at: u32,
    pub(super) flags: Flags,
    pub(super) kind: Kind,
    pub(super) role: Role,
}

/// A label in force.
#[derive(Debug, Clone)]
pub struct Label {
    /// The normalized text.
    pub text: Box<str>,
    /// The `label` entry that sets the label. Its timestamp is the time of the label.
    pub entry: Node,
}

/// A number or count of nodes in 32 bits. It always fits, since a tree refuses more nodes.
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
