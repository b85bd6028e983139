//! The agent's process, and the bytes between it and the editor, which pass untouched.

use crate::copies::CopySender;
use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use tokio::signal::unix::{SignalKind, signal};

/// Bytes that are passed on at a time at most.
const BLOCK: usize = 64 << 10;

pub struct Relay {
    child: Child,
}

impl Relay {
    /// Starts the agent and passes bytes both ways. Its stderr is this program's.
    pub fn start(
        argv: &[OsString],
        editor: CopySender,
        agent: CopySender,
    ) -> anyhow::Result<Relay> {
        let (program, arguments) = argv
            .split_first()
            .context("the agent's program is missing")?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("start {}", program.display()))?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (stdin, stdout) = stdin.zip(stdout).context("the agent has no pipes")?;
        // The editor may keep its pipe open after the agent has ended: this thread ends with the process.
        thread::spawn(move || pass(io::stdin().lock(), stdin, editor));
        thread::spawn(move || pass(stdout, io::stdout().lock(), agent));
        Ok(Relay { child })
    }

    /// Passes signals on to the agent, and does not end by them.
    pub async fn pass_signals(pid: u32) -> io::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut hang_up = signal(SignalKind::hangup())?;
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        loop {
            let received = tokio::select! {
                _ = terminate.recv() => Signal::TERM,
                _ = interrupt.recv() => Signal::INT,
                _ = hang_up.recv() => Signal::HUP,
            };
            if let Some(pid) = pid {
                // The agent may have ended.
                let _gone = kill_process(pid, received);
            }
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the agent has ended.
    pub fn wait(mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }
}

/// The exit code that a shell shows for this status.
pub fn exit_code(status: ExitStatus) -> i32 {
    let signal = status.signal().map(|signal| 128 + signal);
    status.code().or(signal).unwrap_or(1)
}

/// Passes bytes on until either side ends.
fn pass(mut from: impl Read, mut to: impl Write, mut copies: CopySender) {
    let mut block = vec![0; BLOCK];
    loop {
        let length = match from.read(&mut block) {
            Ok(0) => return,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let bytes = block.get(..length).unwrap_or_default();
        // Before the bytes: the answer to a message must not be heard before the message.
        copies.copy(bytes);
        if to.write_all(bytes).and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}
