//! The thread on which reads of a session run: large ones do not hold up the reader thread.

use treelined_core::error::Result;
use treelined_files::blocking::blocking;

/// Bodies larger than this together, in bytes, are read on a blocking thread.
pub(crate) const INLINE_BYTES: u64 = 256 << 10;
/// More entries than this are walked on a blocking thread.
pub(crate) const INLINE_ENTRIES: usize = 4096;

/// Large reads run on a blocking thread, not on the reader thread.
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
