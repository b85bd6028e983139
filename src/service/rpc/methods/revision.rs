//! Revisions of a session's tree, as clients get them (protocol.md §6.5).

use serde_json::json;
use treelined_core::error::{Error, Kind};

/// A revision of the tree. `nonce` belongs to this opening of the session.
pub(super) fn of(nonce: u32, revision: u64) -> String {
    format!("{nonce:x}-{revision:x}")
}

/// The error for a client that knows another tree than the tree of this revision.
pub(super) fn changed(message: &'static str, revision: &str) -> Error {
    Error::new(Kind::TreeChanged, message).with_details(json!({ "revision": revision }))
}
