//! Makes ids from the tool's own ids, so that a second import finds the entries of the first.

use sha2::{Digest, Sha256};
use std::fmt;
use treelined_core::agent::Tool;
use uuid::Uuid;

/// The id of an imported entry: the first 16 hexadecimal digits of a hash of the tool, the native session and the key
/// of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(u64);

impl NodeId {
    pub(crate) fn of(tool: Tool, native_session: &str, key: &str) -> Self {
        let [a, b, c, d, e, f, g, h, ..]: [u8; 32] = hash(tool, native_session, Some(key));
        Self(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:016x}", self.0)
    }
}

/// The id of the session for a native session: a UUID of version 8, made from a hash of the tool and the native
/// session.
pub(crate) fn session_id(tool: Tool, native_session: &str) -> String {
    let digest = hash(tool, native_session, None);
    let mut bytes = [0; 16];
    for (byte, hashed) in bytes.iter_mut().zip(digest) {
        *byte = hashed;
    }
    Uuid::new_v8(bytes).to_string()
}

fn hash(tool: Tool, native_session: &str, key: Option<&str>) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(tool.name());
    hasher.update([0]);
    hasher.update(native_session);
    if let Some(key) = key {
        hasher.update([0]);
        hasher.update(key);
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Session files of users contain these ids. If the computation changed, everything would be imported a second
    /// time.
    #[test]
    fn ids_are_the_hash_of_tool_session_and_key() {
        // printf 'codex\0s\0k' | sha256sum
        let id = NodeId::of(Tool::Codex, "s", "k");
        assert_eq!(id.to_string(), "a0820e13618d84cb");
        // printf 'codex\0s' | sha256sum, with the version and variant of a UUID
        assert_eq!(
            session_id(Tool::Codex, "s"),
            "349ac6e4-50a3-8c32-ad56-0d1e89d7f173"
        );
    }

    #[test]
    fn ids_differ_by_tool_session_and_key() {
        let id = NodeId::of(Tool::Codex, "s", "k");
        assert_ne!(id, NodeId::of(Tool::Pi, "s", "k"));
        assert_ne!(id, NodeId::of(Tool::Codex, "t", "k"));
        assert_ne!(id, NodeId::of(Tool::Codex, "s", "l"));
        assert_ne!(session_id(Tool::Codex, "s"), session_id(Tool::Pi, "s"));
    }
}
