//! The marks of nodes that an import holds back.

use crate::member::Node;

/// Properties that a node shares with its copies in other members.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum CopyMark {
    Key(Box<str>),
    Content(u64),
}

impl CopyMark {
    pub(super) fn of(node: &Node, has_shared_keys: bool) -> Option<Self> {
        match has_shared_keys && !node.key.starts_with('#') {
            true => Some(Self::Key(node.key.clone())),
            false => Some(node.fingerprint)
                .filter(|print| *print != 0)
                .map(Self::Content),
        }
    }
}

/// The nodes of a member that were held back, each with its mark. `None`: copies of the node cannot be recognized.
pub(super) type HeldNodes = Vec<Option<CopyMark>>;
