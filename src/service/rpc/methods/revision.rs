//! Revisions of a session's tree, as clients get them (protocol.md §6.5).

use crate::rpc::session_read::Read;
use serde_json::json;
use treelined_core::error::{Error, Kind};

/// A revision of one opening of the session.
pub(super) fn of(read: &Read<'_>, revision: u64) -> String {
    format!("{:x}-{:x}", read.open.session.nonce, revision)
}

/// The error for a client that knows another tree than the one of this revision.
pub(super) fn changed(message: &'static str, revision: &str) -> Error {
    Error::new(Kind::TreeChanged, message).with_details(json!({ "revision": revision }))
}
