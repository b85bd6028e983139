//! Waits until something can be read.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

/// A file, pipe, socket or process for which a thread can wait.
pub(crate) use std::os::fd::AsFd as Waitable;

/// Waits until there is something to read, or the other side has ended. Returns false if neither happens
/// within `patience`.
pub fn is_readable(input: impl Waitable, patience: Duration) -> io::Result<bool> {
    let until = Instant::now() + patience;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(|_| io::ErrorKind::InvalidInput)?;
        match poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(&left)) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits until there is something to read, or the other side has ended, or a signal arrives.
pub fn wait_to_read(input: impl Waitable) -> io::Result<()> {
    poll(&mut [PollFd::new(&input, PollFlags::IN)], None)?;
    Ok(())
}

/// Waits until `first` or `second` is readable; returns whether `first` is.
pub(super) fn first_of_two(first: impl Waitable, second: impl Waitable) -> bool {
    let mut handles = [
        PollFd::new(&first, PollFlags::IN),
        PollFd::new(&second, PollFlags::IN),
    ];
    while let Err(rustix::io::Errno::INTR) = poll(&mut handles, None) {}
    let [first, _] = handles;
    !first.revents().is_empty()
}

/// Whether the other side of a socket has closed it in both directions.
pub fn is_hung_up(socket: &File) -> bool {
    let mut polled = [PollFd::new(socket, PollFlags::empty())];
    let at_once = Timespec::default();
    poll(&mut polled, Some(&at_once)).is_ok()
        && polled
            .iter()
            .any(|fd| fd.revents().contains(PollFlags::HUP))
}
