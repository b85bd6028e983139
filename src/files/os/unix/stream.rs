//! The standard streams.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// The folder whose files are the open descriptors of this process.
pub const DESCRIPTORS: &str = "/dev/fd";

/// Stdin without the buffer of the standard handle.
pub fn stdin() -> io::Result<File> {
    unbuffered(io::stdin())
}

/// Stdout without the buffer of the standard handle.
pub fn stdout() -> io::Result<File> {
    unbuffered(io::stdout())
}

/// Stderr without its lock.
pub fn stderr() -> io::Result<File> {
    unbuffered(io::stderr())
}

fn unbuffered(stream: impl AsFd) -> io::Result<File> {
    Ok(File::from(stream.as_fd().try_clone_to_owned()?))
}

/// A pipe or socket as a file.
pub fn into_file(stream: impl Into<OwnedFd>) -> File {
    File::from(stream.into())
}

/// Replaces stdin and stdout with empty streams.
pub fn detach_stdin_and_stdout() -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok(())
}

/// The width of the terminal in columns; `None` if there is no terminal, or if its width is
/// unknown.
pub fn terminal_columns() -> Option<usize> {
    let terminal = File::open("/dev/tty").ok()?;
    let columns = usize::from(rustix::termios::tcgetwinsize(&terminal).ok()?.ws_col);
    (columns > 0).then_some(columns)
}
