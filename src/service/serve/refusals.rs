//! The log of refused connections. A refused client can try again at once, and must not fill the log.

use std::sync::Mutex;
use std::time::{Duration, Instant};
use treelined_files::lock::lock;

/// The shortest time between two log lines.
const QUIET: Duration = Duration::from_secs(1);

/// The log of refused connections. It has at most one line in [`QUIET`].
#[derive(Default)]
pub(super) struct Refusals {
    last_line: Mutex<Option<Instant>>,
}

impl Refusals {
    pub(super) fn log(&self, why: &str) {
        let mut last_line = lock(&self.last_line);
        if last_line.is_none_or(|last| last.elapsed() >= QUIET) {
            *last_line = Some(Instant::now());
            tracing::warn!("{why}");
        }
    }
}
