//! The limit of bytes that the lines of an export may repeat.

use treelined_core::error::Error;

/// The most bytes of an export whose lines repeat the beginnings of their paths, in bytes that are read.
pub(super) const REPEATED_BYTES: u64 = 1 << 30;

/// The error for lines that repeat too much.
pub(super) fn too_large(lines: &str, bytes: u64, limit: u64) -> Error {
    let reason = format!(
        "{lines} have {bytes} bytes together with the beginnings that they repeat, and {limit} are the most: \
         take a branch or a subtree with fewer of them"
    );
    Error::invalid_params("scope", reason)
}
