//! Work that begins on the current thread, and moves to the runtime when it has to wait.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};

/// Runs work on this thread until it has to wait, then on the runtime.
pub(crate) fn at_once_or_later(work: impl Future<Output = ()> + Send + 'static) {
    let mut work: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(work);
    let mut context = Context::from_waker(Waker::noop());
    if work.as_mut().poll(&mut context).is_pending() {
        tokio::spawn(work);
    }
}
