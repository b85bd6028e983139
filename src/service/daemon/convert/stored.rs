//! Stored JSON and ids of entries as members of messages.

use serde_json::value::RawValue;
use treelined_core::tree::{Node, Tree};
use treelined_wire as wire;

/// Stored JSON as a member of a message.
pub(crate) fn raw(json: &[u8]) -> wire::Raw {
    raw_text(String::from_utf8_lossy(json).into_owned())
}

/// Like [`raw`], for an owned value.
pub(crate) fn raw_owned(json: Vec<u8>) -> wire::Raw {
    match String::from_utf8(json) {
        Ok(text) => raw_text(text),
        Err(error) => raw(error.as_bytes()),
    }
}

fn raw_text(text: String) -> wire::Raw {
    RawValue::from_string(text).unwrap_or_else(|error| {
        // `RawValue` checks the body. If the file has changed and the body is not JSON, the client gets null.
        tracing::error!(%error, "an entry could not be handed out");
        RawValue::NULL.to_owned()
    })
}

/// The ids of these nodes.
pub(crate) fn id_list(tree: &Tree, nodes: &[Node]) -> wire::IdList {
    nodes.iter().map(|node| tree.id(*node)).collect()
}
