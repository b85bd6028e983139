//! The agent's process, and the bytes between it and the editor. Only `--live` changes these bytes.

use crate::journal::SideWriter;
use crate::live::Live;
use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::signal as number;
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// The most bytes that are passed at a time.
const BLOCK: usize = 64 << 10;
/// The signals that are passed to the agent. These are the signals that end a process by default, without the signals
/// for a fault of the process itself, and the signal for a new size of the window.
const SIGNALS: [i32; 13] = [
    number::SIGHUP,
    number::SIGINT,
    number::SIGQUIT,
    number::SIGUSR1,
    number::SIGUSR2,
    number::SIGALRM,
    number::SIGTERM,
    number::SIGVTALRM,
    number::SIGPROF,
    number::SIGIO,
    number::SIGXCPU,
    number::SIGXFSZ,
    number::SIGWINCH,
];

/// The treatment of the bytes. The first writer records the bytes of the editor, the second writer the bytes of the
/// agent.
pub enum Passing {
    /// All bytes pass, and nothing is recorded.
    Unrecorded,
    /// All bytes are recorded, and all pass.
    Recorded(SideWriter, SideWriter),
    /// The bytes are recorded, and commands do not pass.
    Live(SideWriter, SideWriter, Arc<Live>),
}

pub struct Relay {
    child: Child,
    /// Gets one item when the agent's last bytes have passed.
    passed: Receiver<()>,
}

impl Relay {
    /// Starts the agent, and passes bytes and signals. The agent writes to the stderr of this program.
    pub fn start(argv: &[OsString], passing: Passing) -> anyhow::Result<Relay> {
        let (program, arguments) = argv
            .split_first()
            .context("the agent's program is missing")?;
        // The signals are caught before the agent starts, so that no signal ends this program and leaves the agent
        // running.
        let signals = Signals::new(SIGNALS).context("take signals")?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("start {}", program.display()))?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (stdin, stdout) = stdin.zip(stdout).context("the agent has no pipes")?;
        let pid = child.id();
        thread::spawn(move || pass_signals(signals, pid));
        // The editor may keep its pipe open after the end of the agent. So the thread that reads it is never joined.
        let (end, passed) = channel();
        match passing {
            Passing::Unrecorded => {
                thread::spawn(move || pass(io::stdin().lock(), stdin, None));
                thread::spawn(move || pass_to_editor(stdout, None, &end));
            }
            Passing::Recorded(editor, agent) => {
                thread::spawn(move || pass(io::stdin().lock(), stdin, Some(editor)));
                thread::spawn(move || pass_to_editor(stdout, Some(agent), &end));
            }
            Passing::Live(editor, agent, live) => {
                live.set_agent(stdin);
                let other = live.clone();
                thread::spawn(move || other.pass_from_editor(io::stdin().lock(), editor));
                thread::spawn(move || {
                    live.pass_from_agent(stdout, agent);
                    let _main_ended = end.send(());
                });
            }
        }
        Ok(Relay { child, passed })
    }

    /// Waits until the agent has ended, then at most `grace` for its last bytes. The wait is limited because a
    /// process that the agent has started may keep the pipe open.
    pub fn wait(mut self, grace: Duration) -> io::Result<ExitStatus> {
        let status = self.child.wait()?;
        let _late = self.passed.recv_timeout(grace);
        Ok(status)
    }
}

/// The exit code that a shell shows for a process with this status.
pub fn exit_code(status: ExitStatus) -> i32 {
    let signal = status.signal().map(|signal| 128 + signal);
    status.code().or(signal).unwrap_or(1)
}

/// Passes signals to the agent. This program ends when the agent ends.
fn pass_signals(mut signals: Signals, pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    for received in signals.forever() {
        if let Some((pid, signal)) = pid.zip(Signal::from_named_raw(received)) {
            // The agent may have ended already.
            let _gone = kill_process(pid, signal);
        }
    }
}

fn pass_to_editor(stdout: ChildStdout, journal: Option<SideWriter>, end: &Sender<()>) {
    pass(stdout, io::stdout().lock(), journal);
    let _main_ended = end.send(());
}

/// Passes bytes until one side ends.
fn pass(mut from: impl Read, mut to: impl Write, mut journal: Option<SideWriter>) {
    let mut block = vec![0; BLOCK];
    loop {
        let length = match from.read(&mut block) {
            Ok(0) => return,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let bytes = block.get(..length).unwrap_or_default();
        // The journal is written before the bytes are sent. So every answer that the editor has is recorded, even if
        // this program is killed.
        if let Some(journal) = &mut journal {
            journal.write(bytes);
        }
        if to.write_all(bytes).and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}
