//! Processes whose end can be waited for, which the standard library does not have for others than children.

use super::unsupported;
use std::io;
use std::time::Duration;

/// No process can be watched.
#[derive(Debug)]
pub(crate) enum Process {}

impl Process {
    /// Fails.
    pub(crate) fn open(_id: u32) -> io::Result<Self> {
        Err(unsupported("watch another process"))
    }

    pub(crate) fn terminate(&self) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn ends_within(&self, _time: Duration) -> io::Result<bool> {
        match *self {}
    }
}

/// No process is watched: a daemon on stdio ends with its stdin.
#[derive(Debug)]
pub(crate) enum ProcessWatch {}

/// `None`: no process is watched.
pub(crate) fn on_death(
    _process_id: u64,
    _then: impl FnOnce() + Send + 'static,
) -> Option<ProcessWatch> {
    None
}
