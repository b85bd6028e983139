//! A program that runs beside this one: it leads its own process group, and the system kills it if this process
//! dies.
//!
//! Between `fork` and `exec` only code of the standard library runs, so this program executes itself as a launcher
//! ([`launch`]), which asks the system for the signal and becomes the program.

use super::process::parent_id;
use super::socket::Stream;
use super::watch::Process;
use crate::os::failure::Failure;
use crate::os::program::{Executable, this_program};
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::Duration;

/// The hidden command of the launcher.
pub const LAUNCH_COMMAND: &str = "launch";

/// A program that was started and not waited for. Dropping it kills its process group.
#[derive(Debug)]
pub struct RunningProgram {
    child: Child,
    group: Pid,
    process: Process,
    pub stderr: Option<ChildStderr>,
}

impl Executable {
    /// Starts the program with these sockets as stdin and stdout, and with these variables besides its own. The thread that
    /// calls this must outlive the program: the system kills the program when that thread ends. The program's files
    /// are checked each time, since they may have changed.
    pub fn start(
        &self,
        variables: &[(&str, &str)],
        (stdin, stdout): (Stream, Stream),
    ) -> Result<RunningProgram, Failure> {
        self.check()?;
        let mut child = Command::new(this_program().map_err(Failure::NotStarted)?)
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
        let process = Process::open(child.id()).map_err(Failure::NotStarted)?;
        Ok(RunningProgram {
            stderr: child.stderr.take(),
            child,
            group,
            process,
        })
    }
}

impl RunningProgram {
    /// The id of its process.
    pub fn id(&self) -> u64 {
        u64::from(self.child.id())
    }

    /// Asks the group to end.
    pub fn terminate(&self) {
        let _gone = kill_process_group(self.group, Signal::TERM);
    }

    /// Whether the program ends within this time.
    pub fn ends_within(&self, time: Duration) -> bool {
        self.process
            .ends_within(time)
            .is_ok_and(|has_ended| has_ended)
    }

    /// Kills the rest of the group, and returns how the program ended.
    pub fn end(mut self) -> io::Result<ExitStatus> {
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
pub fn launch(parent: u32, argv: &[OsString]) -> io::Error {
    let Some((program, arguments)) = argv.split_first() else {
        return io::ErrorKind::InvalidInput.into();
    };
    if let Err(error) = die_with(parent) {
        return error;
    }
    Command::new(program).args(arguments).exec()
}

/// Asks the system to kill this process once its parent has died. Fails if that has happened already.
pub fn die_with(parent: u32) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // The system has no such signal: a thread of this process waits. A program that this process becomes has no such
    // thread; it ends with its stdin.
    #[cfg(not(target_os = "linux"))]
    if let Some(watch) = super::watch::on_death(u64::from(parent), || {
        let _killed = rustix::process::kill_process(rustix::process::getpid(), Signal::KILL);
    }) {
        std::mem::forget(watch);
    }
    // The parent may have died before the request for the signal.
    match parent_id() == Some(parent) {
        true => Ok(()),
        false => Err(io::Error::other(
            "the process that started this one has ended",
        )),
    }
}
