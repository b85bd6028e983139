//! The runtime of the commands that are not a daemon.

use anyhow::Context;
use tokio::runtime::Runtime;

/// A single-threaded runtime, for commands that seldom wait.
pub(super) fn small_runtime() -> anyhow::Result<Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .enable_io()
        .build();
    runtime.context("start the runtime")
}
