//! The nodes that an import holds back.

use crate::member::Node;

/// The properties by which a copy of a node is found.
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

/// The nodes that were held back of a member, each with its mark; `None` for one without copies.
pub(super) type HeldNodes = Vec<Option<CopyMark>>;
