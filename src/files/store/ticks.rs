//! Calls a function once a second. In place of a watch where the platform reports no changes: the watches of a user
//! are limited (on Linux by `fs.inotify.max_user_instances`), and some file systems have none.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

const PAUSE: Duration = Duration::from_secs(1);

/// Ends when dropped; a call that has begun goes on.
pub struct Ticks {
    _end: mpsc::Sender<()>,
}

impl Ticks {
    /// Calls `tick` on its own thread.
    pub(crate) fn start(mut tick: impl FnMut() + Send + 'static) -> io::Result<Self> {
        let (end, ended) = mpsc::channel::<()>();
        let ticking = move || {
            while ended.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                tick();
            }
        };
        thread::Builder::new().name("ticks".into()).spawn(ticking)?;
        Ok(Self { _end: end })
    }
}
