//! A program that runs beside this process. It leads its own process group, and the system kills it if this process
//! dies.
//!
//! Between `fork` and `exec` only code of the standard library runs. So this process executes its own program as a
//! launcher ([`launch`]). The launcher asks the system for a signal at the death of its parent, and then becomes the
//! program.

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

/// A program that was started and is still running. Dropping this value kills the process group of the program.
#[derive(Debug)]
pub struct RunningProgram {
    child: Child,
    group: Pid,
    process: Process,
    pub stderr: Option<ChildStderr>,
}

impl Executable {
    /// Starts the program with these sockets as stdin and stdout, and with these additional environment variables. The
    /// thread that calls this must outlive the program, since the system kills the program when that thread ends. The
    /// files of the program are checked at each start, since they may have changed.
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
    /// The id of the program's process.
    pub fn id(&self) -> u64 {
        u64::from(self.child.id())
    }

    /// Asks the process group to end.
    pub fn terminate(&self) {
        let _gone = kill_process_group(self.group, Signal::TERM);
    }

    /// Waits until the program ends; returns false if it does not end within `time`.
    pub fn ends_within(&self, time: Duration) -> bool {
        self.process
            .ends_within(time)
            .is_ok_and(|has_ended| has_ended)
    }

    /// Kills the rest of the process group, and returns how the program ended.
    pub fn end(mut self) -> io::Result<ExitStatus> {
        self.kill_group();
        self.child.wait()
    }

    /// Kills the group. Call this before the child is waited for, since the id of the child may belong to another
    /// process after that.
    fn kill_group(&self) {
        let _gone = kill_process_group(self.group, Signal::KILL);
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        // If there is a status, the child was waited for already.
        if let Ok(None) = self.child.try_wait() {
            self.kill_group();
            let _status = self.child.wait();
        }
    }
}

/// Replaces this process with the program of `argv`. The system kills the program when the process `parent` dies.
/// Returns only on failure, with the reason.
pub fn launch(parent: u32, argv: &[OsString]) -> io::Error {
    let Some((program, arguments)) = argv.split_first() else {
        return io::ErrorKind::InvalidInput.into();
    };
    if let Err(error) = die_with(parent) {
        return error;
    }
    Command::new(program).args(arguments).exec()
}

/// Asks the system to kill this process when its parent dies. Fails if the parent has died already.
pub fn die_with(parent: u32) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // This system has no such signal, so a thread of this process waits for the parent. If this process becomes another
    // program, that program has no such thread; it ends when its stdin ends.
    #[cfg(not(target_os = "linux"))]
    if let Some(watch) = super::watch::on_death(u64::from(parent), || {
        let _killed = rustix::process::kill_process(rustix::process::getpid(), Signal::KILL);
    }) {
        std::mem::forget(watch);
    }
    // The parent may have died before the signal was requested.
    match parent_id() == Some(parent) {
        true => Ok(()),
        false => Err(io::Error::other(
            "the process that started this one has ended",
        )),
    }
}
