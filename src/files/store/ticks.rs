//! Calls a function once a second. This replaces a watch where the platform reports no changes: the number of watches
//! of a user is limited (on Linux by `fs.inotify.max_user_instances`), and some file systems have no watches.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

const PAUSE: Duration = Duration::from_secs(1);

/// The calls end when this is dropped. A call that is running then is not interrupted.
pub struct Ticks {
    _end: mpsc::Sender<()>,
}

impl Ticks {
    /// Calls `tick` once a second on a new thread.
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
