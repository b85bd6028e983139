//! The threads of the connections of one engine.

use std::ops::Deref;
use tokio::runtime::{Builder, Runtime};
use treelined_core::error::{Error, Result};

/// A runtime that can be dropped on a thread of another runtime.
pub(super) struct OwnRuntime(Option<Runtime>);

impl OwnRuntime {
    /// A runtime with one thread of this name.
    pub(super) fn new(name: &str) -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name(name)
            .enable_all()
            .build()
            .map_err(|error| Error::io("start the runtime", &error))?;
        Ok(Self(Some(runtime)))
    }
}

impl Deref for OwnRuntime {
    type Target = Runtime;
    #[allow(clippy::expect_used, reason = "taken only by the drop")]
    fn deref(&self) -> &Runtime {
        self.0
            .as_ref()
            .expect("the runtime is there until the drop")
    }
}

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
