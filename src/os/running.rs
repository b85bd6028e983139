//! A program that runs beside this one: it leads a process group of its own, and the system kills it if this process
//! dies.
//!
//! Between `fork` and `exec` only code of the standard library runs, so this program executes itself as a launcher
//! ([`launch`]), which asks the system for the signal and becomes the program.

use super::program::{Executable, Failure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::set_parent_process_death_signal;
use rustix::process::{Pid, PidfdFlags, Signal, getppid, kill_process_group, pidfd_open};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The file of this program, though it may have been replaced.
const THIS_PROGRAM: &str = "/proc/self/exe";
/// The hidden command of the launcher.
pub(crate) const LAUNCH_COMMAND: &str = "launch";

/// A program that was started and not waited for. Dropping it kills its process group.
#[derive(Debug)]
pub(crate) struct RunningProgram {
    child: Child,
    group: Pid,
    /// Readable once the program has ended.
    ended: OwnedFd,
    pub(crate) stderr: Option<ChildStderr>,
}

impl Executable {
    /// Starts the program with these sockets as stdin and stdout, and with these variables besides its own. The thread that
    /// calls this must outlive the program: the system kills the program when that thread ends. The program's files
    /// are checked each time, since they may have changed.
    pub(crate) fn start(
        &self,
        variables: &[(&str, &str)],
        (stdin, stdout): (UnixStream, UnixStream),
    ) -> Result<RunningProgram, Failure> {
        self.check()?;
        let mut child = Command::new(THIS_PROGRAM)
            .arg(LAUNCH_COMMAND)
            .arg(std::process::id().to_string())
            .arg("--")
            .args(&self.argv)
            .env_clear()
            .envs(self.environment.variables())
            .envs(variables.iter().copied())
            .stdin(OwnedFd::from(stdin))
            .stdout(OwnedFd::from(stdout))
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(Failure::NotStarted)?;
        let group = Pid::from_child(&child);
        let ended = pidfd_open(group, PidfdFlags::empty());
        let ended = ended.map_err(|error| Failure::NotStarted(error.into()))?;
        Ok(RunningProgram {
            stderr: child.stderr.take(),
            child,
            group,
            ended,
        })
    }
}

impl RunningProgram {
    /// The id of its process.
    pub(crate) fn id(&self) -> u64 {
        u64::from(self.child.id())
    }

    /// Asks the group to end.
    pub(crate) fn terminate(&self) {
        let _gone = kill_process_group(self.group, Signal::TERM);
    }

    /// Whether the program ends within this time.
    pub(crate) fn ends_within(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).unwrap_or_default();
            let mut handles = [PollFd::new(&self.ended, PollFlags::IN)];
            match poll(&mut handles, Some(&left)) {
                Ok(ready) => return ready > 0,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// Kills the rest of the group, and returns how the program ended.
    pub(crate) fn end(mut self) -> io::Result<ExitStatus> {
        self.kill_group();
        self.child.wait()
    }

    /// Call it before the child is waited for: its number then belongs to no other process.
    fn kill_group(&self) {
        let _gone = kill_process_group(self.group, Signal::KILL);
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        // A status means that the child was waited for.
        if let Ok(None) = self.child.try_wait() {
            self.kill_group();
            let _status = self.child.wait();
        }
    }
}

/// Becomes the program of `argv`, which the system kills once the process `parent` has died. Returns only the reason
/// why that failed.
pub(crate) fn launch(parent: u32, argv: &[OsString]) -> io::Error {
    let Some((program, arguments)) = argv.split_first() else {
        return io::ErrorKind::InvalidInput.into();
    };
    if let Err(error) = die_with(parent) {
        return error;
    }
    Command::new(program).args(arguments).exec()
}

/// Asks the system to kill this process once its parent has died. Fails if that has happened already.
pub(crate) fn die_with(parent: u32) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The parent may have died before the request for the signal.
    let actual = getppid().map(|pid| pid.as_raw_nonzero().get());
    match actual.and_then(|id| u32::try_from(id).ok()) == Some(parent) {
        true => Ok(()),
        false => Err(io::Error::other(
            "the process that started this one has ended",
        )),
    }
}
