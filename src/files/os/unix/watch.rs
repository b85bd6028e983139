//! Processes, and waiting for their end.

use super::ready::{self, is_readable};
use rustix::process::{Pid, Signal};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// The stack size in bytes of a thread that watches a process.
const WATCH_STACK: usize = 64 << 10;

/// A process, which may have ended.
#[derive(Debug)]
pub struct Process {
    /// A descriptor that becomes readable when the process ends.
    ended: OwnedFd,
    #[cfg(not(target_os = "linux"))]
    id: Pid,
}

impl Process {
    /// Opens the process with this id. Fails if there is no such process.
    pub fn open(id: u32) -> io::Result<Self> {
        let id = i32::try_from(id).ok().and_then(Pid::from_raw);
        let id = id.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Self {
            ended: end_of(id)?,
            #[cfg(not(target_os = "linux"))]
            id,
        })
    }

    /// Asks the process to end.
    #[cfg(target_os = "linux")]
    pub fn terminate(&self) -> io::Result<()> {
        Ok(rustix::process::pidfd_send_signal(
            &self.ended,
            Signal::TERM,
        )?)
    }

    /// Asks the process to end. Call this only while the process is known to be alive, since its id may belong to
    /// another process after that.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn terminate(&self) -> io::Result<()> {
        Ok(rustix::process::kill_process(self.id, Signal::TERM)?)
    }

    /// Waits until the process ends; returns false if it does not end within `time`.
    pub fn ends_within(&self, time: Duration) -> io::Result<bool> {
        is_readable(self, time)
    }
}

impl AsFd for Process {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }
}

/// A descriptor that becomes readable when the process ends.
#[cfg(target_os = "linux")]
fn end_of(process: Pid) -> io::Result<OwnedFd> {
    let flags = rustix::process::PidfdFlags::empty();
    Ok(rustix::process::pidfd_open(process, flags)?)
}

/// A queue of events that becomes readable when the process ends.
#[cfg(not(target_os = "linux"))]
fn end_of(process: Pid) -> io::Result<OwnedFd> {
    use nix::sys::event::{EvFlags, EventFilter, FilterFlag, KEvent, Kqueue};
    let queue = Kqueue::new()?;
    let number = process.as_raw_nonzero().get();
    let end = KEvent::new(
        usize::try_from(number).map_err(|_| io::ErrorKind::InvalidInput)?,
        EventFilter::EVFILT_PROC,
        EvFlags::EV_ADD,
        FilterFlag::NOTE_EXIT,
        0,
        0,
    );
    queue.kevent(&[end], &mut [], None)?;
    Ok(queue.into())
}

/// Watches a process until this value is dropped.
#[derive(Debug)]
pub struct ProcessWatch {
    /// The thread ends when this end of its pipe is closed.
    _until: io::PipeWriter,
}

/// Calls `then` when the process dies, unless the watch is dropped first. Returns `None` if the process is not alive.
pub fn on_death(process_id: u64, then: impl FnOnce() + Send + 'static) -> Option<ProcessWatch> {
    let process = Process::open(u32::try_from(process_id).ok()?).ok()?;
    let (dropped, until) = io::pipe().ok()?;
    let watch = move || {
        if ready::first_of_two(&process, &dropped) {
            then();
        }
    };
    let spawned = std::thread::Builder::new()
        .name("process-watch".into())
        .stack_size(WATCH_STACK)
        .spawn(watch);
    match spawned {
        Ok(_) => Some(ProcessWatch { _until: until }),
        Err(error) => {
            tracing::warn!(%error, "the client's process is not watched");
            None
        }
    }
}
