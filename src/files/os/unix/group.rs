//! The process groups of programs. A group is killed as a whole.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Command;

/// Makes the program the leader of its own process group.
pub(crate) fn lead(command: &mut Command) {
    command.process_group(0);
}

/// Kills the group that a child leads. Call this before the child is waited for, since the id of the child may belong
/// to another process after that.
pub(crate) fn kill(leader: u32) {
    if let Some(leader) = i32::try_from(leader).ok().and_then(Pid::from_raw) {
        let _gone = kill_process_group(leader, Signal::KILL);
    }
}
