//! Starts a daemon without a terminal. The starter waits until the daemon listens.
//!
//! The starter runs this program with the command `detach`, which leaves the session of the terminal, starts the daemon
//! and ends. So the daemon is not a child of a client, and it does not end with the client's process tree. The stdin of
//! the daemon is the lock, its stdout is a pipe to the starter, and its stderr is the log. The daemon writes one line
//! feed to the pipe when it listens. Otherwise it writes the reason why it does not listen.

use super::log_file;
use super::place::Place;
use super::start_lock::{START_TIMEOUT, StartLock};
use anyhow::{Context, bail};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::process::Command;
use treelined_files::os::program::DETACH_COMMAND;
use treelined_files::os::ready::is_readable;
use treelined_files::os::stream::{self, into_file};

/// The most bytes that are read of a reason.
const MAX_REASON: u64 = 16 << 10;

/// Starts this program as a detached daemon, with these arguments and this environment variable. Waits until the daemon
/// listens.
pub fn start(
    place: &Place,
    lock: StartLock,
    arguments: &[OsString],
    variable: Option<(&str, String)>,
) -> anyhow::Result<()> {
    let log = log_file::open(place)?;
    let (pipe, ready) = io::pipe().context("make a pipe")?;
    let program = std::env::current_exe().context("find this program")?;
    let mut command = Command::new(&program);
    command
        .args([DETACH_COMMAND, "--"])
        .args(arguments)
        .envs(variable)
        .stdin(lock.into_stream())
        .stdout(ready)
        .stderr(log);
    let status = command
        .status()
        .with_context(|| format!("start {}", program.display()))?;
    // The command still has the writing end of the pipe, and the lock.
    drop(command);
    if !status.success() {
        bail!(ended(place));
    }
    wait(place, into_file(pipe))
}

/// Waits for the line feed of the daemon, or for the reason why the daemon does not listen.
fn wait(place: &Place, mut pipe: File) -> anyhow::Result<()> {
    if !is_readable(&pipe, START_TIMEOUT).context("wait")? {
        bail!(
            "the daemon was started, but does not listen after {} s{}",
            START_TIMEOUT.as_secs(),
            log_file::tail(place)
        );
    }
    let mut first = [0; 1];
    match pipe.read(&mut first).context("wait for the daemon")? {
        1 if first == *b"\n" => Ok(()),
        1 => {
            let mut reason = first.to_vec();
            pipe.take(MAX_REASON)
                .read_to_end(&mut reason)
                .context("wait for the daemon")?;
            bail!("{}", String::from_utf8_lossy(&reason))
        }
        _ => bail!(ended(place)),
    }
}

fn ended(place: &Place) -> String {
    format!("the daemon has ended at once{}", log_file::tail(place))
}

/// The side of the daemon: the pipe to its starter, and the lock.
pub struct Detached {
    starter: File,
    lock: Option<StartLock>,
}

impl Detached {
    /// Takes the lock from stdin and the pipe from stdout. Both streams are empty after that. Also leaves the working
    /// directory of the starter, so that the disk of that directory can be unmounted.
    pub fn begin(place: &Place) -> anyhow::Result<Self> {
        let stdin = stream::stdin().context("open stdin")?;
        let lock = StartLock::passed_on(place, stdin).context("take the lock")?;
        let starter = stream::stdout().context("take the starter's pipe")?;
        stream::detach_stdin_and_stdout().context("close stdin and stdout")?;
        std::env::set_current_dir("/").context("leave the working directory")?;
        Ok(Self { starter, lock })
    }

    pub fn take_lock(&mut self) -> Option<StartLock> {
        self.lock.take()
    }

    /// Reports that the daemon listens. The starter may be gone.
    pub fn ready(mut self) {
        let _gone = self.starter.write_all(b"\n");
    }

    /// Reports the reason why the daemon does not listen. The log alone is not enough, since its disk may be full.
    pub fn failed(mut self, reason: &str) {
        let _gone = self.starter.write_all(reason.trim_start().as_bytes());
    }
}
