//! The watch of an open session's file.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;

/// The delay before a look at the file, so that one look covers several changes.
const GATHERING: Duration = Duration::from_millis(20);

/// A look at the file.
type Look = Box<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// An open session, as the file watcher sees it.
pub(crate) struct WatchedSession {
    /// Reads the new entries.
    pub(super) look: Look,
    pub(super) runtime: Handle,
    /// Whether a look is scheduled.
    pub(super) is_due: AtomicBool,
}

impl WatchedSession {
    pub(super) fn changed(self: Arc<Self>) {
        if self.is_due.swap(true, Ordering::AcqRel) {
            return;
        }
        let watched = Arc::clone(&self);
        self.runtime.spawn(async move {
            tokio::time::sleep(GATHERING).await;
            watched.is_due.store(false, Ordering::Release);
            (watched.look)().await;
        });
    }
}
