//! Work that may wait (for a disk, a lock, a lot of computing) runs on a thread of its own, not on the
//! thread that reads requests.

use crate::error::{Error, Kind, Result};

/// Runs `work` on a blocking thread of the runtime. A panic in `work` goes on in the caller; fails with
/// `shuttingDown` if the runtime ends before `work` starts.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(Error::new(
            Kind::ShuttingDown,
            "the daemon is shutting down",
        )),
    }
}
