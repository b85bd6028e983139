//! Runs work that may wait (for a disk, a lock, or a long computation) on a blocking thread instead of the
//! thread that reads requests.
//!
//! A simulated process has one thread, which does such work at once.

use tokio::sync::oneshot;
use treelined_core::error::{Error, Kind, Result};

/// Runs `work` on a blocking thread of the runtime. If `work` panics, the caller panics too. Fails with
/// `shuttingDown` if the runtime ends before `work` starts.
///
/// All work is boxed into one type, so that the task code of the runtime is compiled once. If this code were compiled
/// for each caller, it would be 4 % of the code of this crate.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let (sender, receiver) = oneshot::channel();
    let work: Box<dyn FnOnce() + Send> = Box::new(move || {
        // The receiver is dropped if the request was cancelled.
        let _cancelled = sender.send(work());
    });
    let shutting_down = || Error::new(Kind::ShuttingDown, "the daemon is shutting down");
    match begin(work).await {
        Ok(()) => receiver.await.unwrap_or_else(|_| Err(shutting_down())),
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(shutting_down()),
    }
}

/// Begins `work` on a blocking thread of the runtime.
#[cfg(not(feature = "simulation"))]
pub(crate) fn begin(work: impl FnOnce() + Send + 'static) -> tokio::task::JoinHandle<()> {
    tokio::task::spawn_blocking(work)
}

#[cfg(feature = "simulation")]
pub(crate) fn begin(
    work: impl FnOnce() + Send + 'static,
) -> std::future::Ready<Result<(), tokio::task::JoinError>> {
    work();
    std::future::ready(Ok(()))
}

/// Begins `work` on a thread with this name, without a runtime.
#[cfg(not(feature = "simulation"))]
pub(crate) fn begin_thread(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> std::io::Result<()> {
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread.spawn(work).map(drop)
}

#[cfg(feature = "simulation")]
pub(crate) fn begin_thread(
    _name: &str,
    work: impl FnOnce() + Send + 'static,
) -> std::io::Result<()> {
    work();
    Ok(())
}
