//! Programs that run beside this one. The system does not kill them if this process dies, so none is started.

use super::socket::Stream;
use super::unsupported;
use crate::os::program::{Executable, Failure};
use std::ffi::OsString;
use std::io;
use std::process::{ChildStderr, ExitStatus};
use std::time::Duration;

/// The hidden command of the launcher.
pub(crate) const LAUNCH_COMMAND: &str = "launch";

/// No program is started.
#[derive(Debug)]
pub(crate) struct RunningProgram {
    never: Never,
    pub stderr: Option<ChildStderr>,
}

#[derive(Debug)]
enum Never {}

impl Executable {
    /// Fails.
    pub(crate) fn start(
        &self,
        _variables: &[(&str, &str)],
        _sockets: (Stream, Stream),
    ) -> Result<RunningProgram, Failure> {
        Err(Failure::NotStarted(unsupported("start extensions")))
    }
}

impl RunningProgram {
    pub(crate) fn id(&self) -> u64 {
        match self.never {}
    }

    pub(crate) fn terminate(&self) {
        match self.never {}
    }

    pub(crate) fn ends_within(&self, _time: Duration) -> bool {
        match self.never {}
    }

    pub(crate) fn end(self) -> io::Result<ExitStatus> {
        match self.never {}
    }
}

/// Fails.
pub(crate) fn launch(_parent: u32, _argv: &[OsString]) -> io::Error {
    unsupported("start extensions")
}

/// Fails.
pub(crate) fn die_with(_parent: u32) -> io::Result<()> {
    Err(unsupported(
        "end with the process that has started this one",
    ))
}
