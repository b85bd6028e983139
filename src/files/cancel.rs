//! Cancels work that waits: for `$/cancel_request`, `abort_navigation`, and the end of the connection.
//!
//! If a cancel and a commit are requested at the same time, the first one decides, once (protocol.md §5).

use crate::lock::lock;
use std::future::Future;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;
use treelined_core::error::{Error, Result};

const RUNNING: u8 = 0;
const CANCELLED: u8 = 1;
const COMMITTED: u8 = 2;

/// The state that the worker shares with the threads that may cancel the work.
#[derive(Clone, Default)]
pub struct Cancel(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: AtomicU8,
    notify: Notify,
    on_cancel: Mutex<Option<OnCancel>>,
}

type OnCancel = Box<dyn FnOnce() + Send>;

impl std::fmt::Debug for Cancel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Cancel").field(&self.is_cancelled()).finish()
    }
}

impl Cancel {
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels the work; returns false if it was committed or cancelled before.
    pub fn cancel(&self) -> bool {
        let won = self.settle(CANCELLED);
        if won {
            self.0.notify.notify_waiters();
            self.run_callback();
        }
        won
    }

    /// Whether both values cancel the same work.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Runs `callback` when the work is cancelled, or at once if it is cancelled already. Replaces an earlier
    /// callback.
    pub fn on_cancel(&self, callback: impl FnOnce() + Send + 'static) {
        *lock(&self.0.on_cancel) = Some(Box::new(callback));
        if self.is_cancelled() {
            self.run_callback();
        }
    }

    fn run_callback(&self) {
        let callback = lock(&self.0.on_cancel).take();
        if let Some(callback) = callback {
            callback();
        }
    }

    /// Marks the work as committed: cancelling it has no effect from now on. Returns false if it was
    /// cancelled.
    pub fn commit(&self) -> bool {
        self.settle(COMMITTED) || self.0.state.load(Ordering::Acquire) == COMMITTED
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.state.load(Ordering::Acquire) == CANCELLED
    }

    /// Waits until the work is cancelled, which may be for ever.
    pub async fn cancelled(&self) {
        loop {
            let notified = self.0.notify.notified();
            if self.is_cancelled() {
                return;
            }
            notified.await;
        }
    }

    /// The result of the work, or the error `cancelled` if the work is cancelled first.
    pub async fn guard<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        tokio::select! {
            biased;
            () = self.cancelled() => Err(Error::cancelled()),
            done = work => Ok(done),
        }
    }

    fn settle(&self, state: u8) -> bool {
        let state =
            self.0
                .state
                .compare_exchange(RUNNING, state, Ordering::AcqRel, Ordering::Acquire);
        state.is_ok()
    }
}
