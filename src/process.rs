//! Other processes: noticing that the one that started us has died (protocol.md §1).

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Calls `then` once the process has died. Nothing happens if it is not alive now.
pub fn on_death(process_id: u64, then: impl FnOnce() + Send + 'static) {
    let id = i32::try_from(process_id).ok().and_then(Pid::from_raw);
    let Some(handle) = id.and_then(|id| pidfd_open(id, PidfdFlags::empty()).ok()) else {
        return;
    };
    let watch = move || {
        let mut handles = [PollFd::new(&handle, PollFlags::IN)];
        while let Err(rustix::io::Errno::INTR) = poll(&mut handles, None) {}
        then();
    };
    let spawned = std::thread::Builder::new()
        .name("parent-watch".into())
        .spawn(watch);
    if let Err(error) = spawned {
        tracing::warn!(%error, "the client's process is not watched");
    }
}
