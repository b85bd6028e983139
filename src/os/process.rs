//! Other processes: notices when the parent process dies (protocol.md §1), and finds those that have a file
//! open.

use crate::os::file::Identity;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal};
use rustix::process::{getrlimit, pidfd_open, setrlimit};
use std::io;
use std::os::fd::OwnedFd;
use tokio::signal::unix::{SignalKind, signal};

/// Bytes of the stack of a thread that watches a process.
const WATCH_STACK: usize = 64 << 10;

/// Watches a process until dropped.
#[derive(Debug)]
pub(crate) struct ProcessWatch {
    /// The thread ends once this end of its pipe is closed.
    _until: OwnedFd,
}

/// Calls `then` once the process has died, unless the watch is dropped first. `None` if the process is not alive.
pub(crate) fn on_death(
    process_id: u64,
    then: impl FnOnce() + Send + 'static,
) -> Option<ProcessWatch> {
    let id = i32::try_from(process_id).ok().and_then(Pid::from_raw)?;
    let process = pidfd_open(id, PidfdFlags::empty()).ok()?;
    let (dropped, until) = pipe_with(PipeFlags::CLOEXEC).ok()?;
    let watch = move || {
        let watched = [&process, &dropped];
        let mut handles = watched.map(|handle| PollFd::new(handle, PollFlags::IN));
        while let Err(rustix::io::Errno::INTR) = poll(&mut handles, None) {}
        let [process, _] = handles;
        if !process.revents().is_empty() {
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

/// Makes a write beyond the limit of a file's size fail instead of killing the process: a watched signal has
/// no other effect. Call it in a runtime.
pub(crate) fn outlive_the_size_limit() -> io::Result<()> {
    let size_limit = SignalKind::from_raw(Signal::XFSZ.as_raw());
    let _watched = signal(size_limit)?;
    Ok(())
}

/// Raises the limit of open descriptors of this process as far as the system allows it.
pub(crate) fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "the limit of open files was not raised");
    }
}

/// The processes of other programs that have a file open for writing. Processes of this program watch a
/// replaced file, so they are left out. Processes of other users and machines are not visible. `None` if the
/// system cannot tell.
#[cfg(target_os = "linux")]
pub(crate) fn writers_of(identity: Identity) -> Option<Vec<u32>> {
    let number = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.ok()?.file_name().to_str()?.parse::<u32>().ok()
    };
    let processes = std::fs::read_dir("/proc").ok()?.filter_map(number);
    let program = |process: &str| {
        let path = std::fs::read_link(format!("/proc/{process}/exe")).ok()?;
        let name = path.file_name()?.to_string_lossy().into_owned();
        // After an update the name of the executable has this ending.
        Some(name.trim_end_matches(" (deleted)").to_owned())
    };
    let ours = program("self");
    let others = processes.filter(|process| {
        let its = program(&process.to_string());
        its.is_none() || its != ours
    });
    let writes = |process: &u32| {
        let descriptors = std::fs::read_dir(format!("/proc/{process}/fd"));
        let mut descriptors = descriptors.into_iter().flatten().filter_map(number);
        descriptors.any(|descriptor| may_write(*process, descriptor, identity))
    };
    Some(others.filter(writes).collect())
}

#[cfg(not(target_os = "linux"))]
pub fn writers_of(_identity: Identity) -> Option<Vec<u32>> {
    None
}

/// Whether a process has this file open under this descriptor, and not only for reading.
#[cfg(target_os = "linux")]
fn may_write(process: u32, descriptor: u32, identity: Identity) -> bool {
    use std::os::unix::fs::MetadataExt;
    let Ok(status) = std::fs::metadata(format!("/proc/{process}/fd/{descriptor}")) else {
        return false;
    };
    let found = Identity {
        device: status.dev(),
        inode: status.ino(),
    };
    if found != identity {
        return false;
    }
    let info = std::fs::read_to_string(format!("/proc/{process}/fdinfo/{descriptor}"));
    let info = info.unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    // O_RDONLY is zero; an unreadable mode counts as writing.
    flags.is_none_or(|flags| flags & 0o3 != 0)
}
