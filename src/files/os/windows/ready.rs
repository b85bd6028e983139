//! Waiting until something can be read, which a pipe cannot be waited for.

use super::socket::Stream;
use super::unsupported;
use std::fs::File;
use std::io;
use std::time::Duration;

/// A file, pipe or socket.
pub(crate) trait Waitable {}

impl Waitable for &File {}
impl Waitable for &Stream {}

/// Fails.
pub(crate) fn is_readable(_input: impl Waitable, _patience: Duration) -> io::Result<bool> {
    Err(unsupported("wait for a pipe"))
}

/// Fails.
pub(crate) fn wait_to_read(_input: impl Waitable) -> io::Result<()> {
    Err(unsupported("wait for a pipe"))
}

/// False: no file is a socket.
pub(crate) fn is_hung_up(_socket: &File) -> bool {
    false
}
