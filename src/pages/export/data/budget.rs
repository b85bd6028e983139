//! The limit for exports whose lines repeat the same entries.

use treelined_core::error::Error;

/// The most bytes that may be read for an export in which several lines repeat the beginning of a path.
pub(super) const REPEATED_BYTES: u64 = 1 << 30;

/// The error for an export whose lines repeat too many bytes.
pub(super) fn too_large(lines: &str, bytes: u64, limit: u64) -> Error {
    let reason = format!(
        "{lines} have {bytes} bytes together with the beginnings that they repeat, and {limit} are the most: \
         take a branch or a subtree with fewer of them"
    );
    Error::invalid_params("scope", reason)
}
