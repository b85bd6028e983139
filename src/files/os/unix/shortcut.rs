//! Writes an answer on the thread that made it, if the write cannot block. Waking the writer thread on
//! another core takes longer than most requests.
//!
//! The shortcut writes only to pipes and sockets, and at most the number of bytes that a pipe writes atomically. A
//! writable pipe accepts this number of bytes at once, and a write to a socket does not wait.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
#[cfg(target_os = "linux")]
use rustix::io::{ReadWriteFlags, pwritev2};
use rustix::net::{SendFlags, send};
use std::fs::File;
#[cfg(target_os = "linux")]
use std::io::IoSlice;
use std::io::{self, Write};
use std::sync::Arc;

/// The most bytes per write: `PIPE_BUF`.
pub const MAX_BYTES: usize = 4096;

/// The runtime of the standard library ignores SIGPIPE, and this flag suppresses it here too.
#[cfg(target_os = "linux")]
const SEND_FLAGS: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
#[cfg(not(target_os = "linux"))]
const SEND_FLAGS: SendFlags = SendFlags::DONTWAIT;

/// An output that can be written without blocking.
#[derive(Debug)]
pub struct Shortcut {
    output: Arc<File>,
    kind: OutputKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputKind {
    Pipe,
    Socket,
}

impl Shortcut {
    /// The shortcut to `output`; `None` for files, terminals and devices.
    pub fn new(output: &Arc<File>) -> Option<Self> {
        let mode = fstat(&**output).ok()?.st_mode;
        let kind = match FileType::from_raw_mode(mode) {
            FileType::Fifo => OutputKind::Pipe,
            FileType::Socket => OutputKind::Socket,
            _ => return None,
        };
        Some(Self {
            output: Arc::clone(output),
            kind,
        })
    }

    /// Writes at most [`MAX_BYTES`] bytes if that needs no waiting; returns false if nothing was written.
    pub fn write(&self, bytes: &[u8]) -> io::Result<bool> {
        match self.kind {
            OutputKind::Pipe => {
                if let Some(written) = self.write_unless_full(bytes)? {
                    return Ok(written);
                }
                self.write_if_ready(bytes)
            }
            OutputKind::Socket => {
                let flags = SEND_FLAGS;
                match send(&*self.output, bytes, flags) {
                    Ok(sent) => {
                        // A stream socket accepts such a small write whole or not at all, so the rest is
                        // empty.
                        (&*self.output).write_all(bytes.get(sent..).unwrap_or_default())?;
                        Ok(true)
                    }
                    Err(Errno::AGAIN | Errno::INTR) => Ok(false),
                    Err(error) => Err(error.into()),
                }
            }
        }
    }

    fn write_if_ready(&self, bytes: &[u8]) -> io::Result<bool> {
        let mut ready = [PollFd::new(&*self.output, PollFlags::OUT)];
        poll(&mut ready, Some(&Timespec::default()))?;
        let is_ready = ready.iter().all(|fd| fd.revents() == PollFlags::OUT);
        if is_ready {
            (&*self.output).write_all(bytes)?;
        }
        Ok(is_ready)
    }

    /// Writes with one call. Returns `None` if the kernel does not support writing to pipes without waiting.
    #[cfg(target_os = "linux")]
    fn write_unless_full(&self, bytes: &[u8]) -> io::Result<Option<bool>> {
        // Both ends of a pipe share its nonblocking mode. So this call uses a flag that affects only the call itself.
        let at_the_end = u64::MAX;
        let slices = [IoSlice::new(bytes)];
        match pwritev2(&*self.output, &slices, at_the_end, ReadWriteFlags::NOWAIT) {
            Ok(written) => {
                // A pipe accepts such a small write whole or not at all, so the rest is empty.
                (&*self.output).write_all(bytes.get(written..).unwrap_or_default())?;
                Ok(Some(true))
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(Some(false)),
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn write_unless_full(&self, _: &[u8]) -> io::Result<Option<bool>> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::stream::into_file;
    use std::io::Read;

    /// The two ways to write: one call, or a poll before the write on kernels without that call.
    type Way = fn(&Shortcut, &[u8]) -> io::Result<bool>;
    const WAYS: [Way; 2] = [Shortcut::write, Shortcut::write_if_ready];

    #[test]
    fn a_full_pipe_takes_nothing_and_is_not_waited_for() {
        for write in WAYS {
            let (mut reader, writer) = io::pipe().unwrap();
            let shortcut = Shortcut::new(&Arc::new(into_file(writer))).unwrap();
            let mut sent = Vec::new();
            let message =
                |number: usize| vec![b'a' + (number % 26) as u8; 1 + number * 977 % MAX_BYTES];
            for number in 0.. {
                if !write(&shortcut, &message(number)).unwrap() {
                    break;
                }
                sent.extend(message(number));
            }
            assert!(sent.len() > MAX_BYTES);
            drop(shortcut);
            let mut received = Vec::new();
            reader.read_to_end(&mut received).unwrap();
            assert!(received == sent, "whole or not at all");
        }
    }

    #[test]
    fn a_write_to_an_unread_pipe_fails_or_writes_nothing() {
        for write in WAYS {
            let (reader, writer) = io::pipe().unwrap();
            let shortcut = Shortcut::new(&Arc::new(into_file(writer))).unwrap();
            drop(reader);
            assert!(!write(&shortcut, b"x").is_ok_and(|written| written));
        }
    }
}
