//! JSON on one line (protocol.md §1).

use serde::Serialize;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::json;

/// A value as JSON on one line.
pub(crate) fn line(value: &impl Serialize) -> Result<Vec<u8>> {
    let bytes = serde_json::to_vec(value);
    let bytes = bytes.map_err(|error| Error::new(Kind::InternalError, error.to_string()))?;
    Ok(on_one_line(bytes))
}

/// Puts a message on one line. Line breaks between tokens of stored JSON become spaces, and U+2028 and U+2029 become
/// escapes (protocol.md §1).
pub(crate) fn on_one_line(message: Vec<u8>) -> Vec<u8> {
    // In UTF-8, U+2028 and U+2029 begin with 0xe2.
    if memchr::memchr3(b'\n', b'\r', 0xe2, &message).is_none() {
        return message;
    }
    let mut escaped = Vec::with_capacity(message.len() + 64);
    json::push_raw(&mut escaped, &message);
    escaped
}
