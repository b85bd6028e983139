//! The short way out: an answer written by the thread that made it, where that cannot block. Waking
//! the writer on another core costs more than most requests.
//!
//! Only pipes and sockets, and only what fits a pipe's atomic write: a pipe that is ready for writing
//! takes that much at once, and a socket is asked not to wait.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use std::fs::File;
use std::io::{self, Write};

/// Most bytes that go this way: `PIPE_BUF`.
pub const MAX_BYTES: usize = 4096;

/// An output that can be asked whether it would block.
#[derive(Debug)]
pub struct Shortcut {
    output: File,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Pipe,
    Socket,
}

impl Shortcut {
    /// `None` where there is no short way: files, terminals, devices.
    pub fn new(output: &File) -> Option<Self> {
        let mode = fstat(output).ok()?.st_mode;
        let kind = match FileType::from_raw_mode(mode) {
            FileType::Fifo => Kind::Pipe,
            FileType::Socket => Kind::Socket,
            _ => return None,
        };
        Some(Self {
            output: output.try_clone().ok()?,
            kind,
        })
    }

    /// Writes at most [`MAX_BYTES`] bytes if that needs no waiting; false if nothing was written.
    pub fn write(&self, bytes: &[u8]) -> io::Result<bool> {
        match self.kind {
            Kind::Pipe => {
                let mut ready = [PollFd::new(&self.output, PollFlags::OUT)];
                poll(&mut ready, Some(&Timespec::default()))?;
                let is_ready = ready.iter().all(|fd| fd.revents() == PollFlags::OUT);
                if is_ready {
                    (&self.output).write_all(bytes)?;
                }
                Ok(is_ready)
            }
            Kind::Socket => {
                let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                match send(&self.output, bytes, flags) {
                    Ok(sent) => {
                        // A stream socket takes this little whole or not at all.
                        (&self.output).write_all(bytes.get(sent..).unwrap_or_default())?;
                        Ok(true)
                    }
                    Err(Errno::AGAIN | Errno::INTR) => Ok(false),
                    Err(error) => Err(error.into()),
                }
            }
        }
    }
}
