//! Decides on which thread a read of a session runs. A large read must not hold up the reader thread.

use treelined_core::error::Result;
use treelined_files::blocking::blocking;

/// If bodies have more bytes than this together, they are read on a blocking thread.
pub(crate) const INLINE_BYTES: u64 = 256 << 10;
/// If a walk has more entries than this, it runs on a blocking thread.
pub(crate) const INLINE_ENTRIES: usize = 4096;

/// Runs a read of `size` bytes: a large one on a blocking thread, a small one on the reader thread.
pub(crate) async fn inline_or_blocking<T: Send + 'static>(
    size: u64,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    if size > INLINE_BYTES {
        blocking(work).await
    } else {
        work()
    }
}
