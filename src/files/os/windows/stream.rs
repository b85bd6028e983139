//! The standard streams.

use super::socket::Stream;
use super::unsupported;
use std::fs::File;
use std::io;
use std::os::windows::io::{AsHandle, OwnedHandle};

/// The folder whose files are the open descriptors of this process: there is none.
pub(crate) const DESCRIPTORS: &str = "/dev/fd";

/// Stdin without the buffer of the standard handle.
pub(crate) fn stdin() -> io::Result<File> {
    unbuffered(io::stdin())
}

/// Stdout without the buffer of the standard handle.
pub(crate) fn stdout() -> io::Result<File> {
    unbuffered(io::stdout())
}

/// Stderr without its lock.
pub(crate) fn stderr() -> io::Result<File> {
    unbuffered(io::stderr())
}

fn unbuffered(stream: impl AsHandle) -> io::Result<File> {
    Ok(File::from(stream.as_handle().try_clone_to_owned()?))
}

/// A pipe as a file.
pub(crate) fn into_file(stream: impl Into<OwnedHandle>) -> File {
    File::from(stream.into())
}

impl From<Stream> for OwnedHandle {
    fn from(stream: Stream) -> Self {
        match stream {}
    }
}

/// Fails.
pub(crate) fn detach_stdin_and_stdout() -> io::Result<()> {
    Err(unsupported("start a daemon without a terminal"))
}

/// `None`: the standard library does not tell.
pub(crate) fn terminal_columns() -> Option<usize> {
    None
}
