//! Starts extensions, restarts extensions that end, and ends all of them at the end of the daemon.
//!
//! Each extension has a thread, since the system kills a program when the thread that has started it ends.

use super::configured::{Extension, ExtensionMay, NAME_VARIABLE};
use super::restart::{MAX_RESTARTS, Restarts};
use super::stderr::log_lines;
use std::fmt;
use std::io;
use std::net::Shutdown;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use treelined_files::os::program::Failure;
use treelined_files::os::running::RunningProgram;
pub(crate) use treelined_files::os::socket::{self, Stream};
use treelined_files::os::watch;

/// How long an extension may take from its start to its introduction.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long an extension may take to end after the end of its stdin.
const END_OF_INPUT_GRACE: Duration = Duration::from_millis(500);
/// How long the extension may then take to end after SIGTERM.
const TERM_GRACE: Duration = Duration::from_secs(2);
/// The longest wait for the end of a connection whose program has ended.
const CONNECTION_ENDS: Duration = Duration::from_secs(10);
/// The longest wait for the last stderr of a program that has ended.
const STDERR_ENDS: Duration = Duration::from_millis(500);
/// The bytes of the stack of each thread.
const STACK: usize = 256 << 10;

/// One run of an extension, as the connection of the run sees it.
pub(crate) struct ExtensionRun {
    /// The number of the extension, counted in the order of the configuration.
    pub(crate) number: usize,
    pub(crate) name: String,
    /// The methods that the extension may call.
    pub(crate) may: ExtensionMay,
    signals: RunSignals,
}

/// Reports changes of one run to the supervisor.
#[derive(Clone)]
struct RunSignals {
    run: u64,
    sender: Sender<Signal>,
}

/// A message to the thread of an extension.
enum Signal {
    /// A change of the run with this number.
    Run(u64, RunChange),
    DaemonEnds,
}

enum RunChange {
    /// The extension has introduced itself.
    Ready,
    /// The program of the extension has ended.
    Died,
    /// The connection of the extension has ended.
    Disconnected,
}

/// The result of a wait.
enum Awaited {
    Change(RunChange),
    TimeIsOver,
    DaemonEnds,
}

/// The reason why a run has ended.
enum RunEnd {
    NotStarted(Failure),
    NotServed(anyhow::Error),
    NoHandshake,
    Disconnected,
    Died,
    DaemonEnds,
}

/// Serves the sockets of an extension as a connection.
pub(crate) type ServeExtension =
    dyn Fn(ExtensionRun, ExtensionSockets) -> anyhow::Result<()> + Send + Sync;

/// The daemon's ends of the two sockets of an extension. There are two sockets, since some programs treat data that
/// arrives on their stdout as the end of stdout.
pub(crate) struct ExtensionSockets {
    /// The socket from the stdout of the extension.
    pub(crate) input: Stream,
    /// The socket to the stdin of the extension.
    pub(crate) output: Stream,
}

impl ExtensionSockets {
    fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            input: self.input.try_clone()?,
            output: self.output.try_clone()?,
        })
    }

    /// Ends the connection in both directions.
    fn shut_down(&self) {
        for socket in [&self.input, &self.output] {
            // The call fails if the other side has ended.
            let _closed = socket.shutdown(Shutdown::Both);
        }
    }
}

/// The threads of all extensions.
#[derive(Default)]
pub(crate) struct Supervisors {
    threads: Vec<(Sender<Signal>, JoinHandle<()>)>,
}

struct Supervisor {
    number: usize,
    extension: Arc<Extension>,
    serve: Arc<ServeExtension>,
    sender: Sender<Signal>,
    signals: Receiver<Signal>,
    /// The number of the last run.
    run: u64,
    /// Whether the daemon ends. A supervisor may notice the end of its connection before it gets
    /// [`Signal::DaemonEnds`].
    daemon_ends: Arc<AtomicBool>,
}

impl Supervisors {
    /// Starts the extensions, which are given with their numbers. The caller sets `daemon_ends` before it asks the
    /// connections to end.
    pub(crate) fn start<'a>(
        extensions: impl Iterator<Item = (usize, &'a Arc<Extension>)>,
        serve: &Arc<ServeExtension>,
        daemon_ends: &Arc<AtomicBool>,
    ) -> io::Result<Self> {
        let mut threads = Vec::new();
        for (number, extension) in extensions {
            let (sender, signals) = mpsc::channel();
            let supervisor = Supervisor {
                number,
                extension: Arc::clone(extension),
                serve: Arc::clone(serve),
                sender: sender.clone(),
                signals,
                run: 0,
                daemon_ends: Arc::clone(daemon_ends),
            };
            let thread = thread::Builder::new().name("extension".into());
            let thread = thread.stack_size(STACK).spawn(|| supervisor.supervise())?;
            threads.push((sender, thread));
        }
        Ok(Self { threads })
    }

    /// Ends all extensions, and waits for them. The caller has asked their connections to end.
    pub(crate) fn end(self) {
        for (sender, _) in &self.threads {
            // The call fails if the supervisor has given the extension up.
            let _given_up = sender.send(Signal::DaemonEnds);
        }
        for (_, thread) in self.threads {
            let _panicked = thread.join();
        }
    }
}

impl ExtensionRun {
    /// Reports that the extension has introduced itself.
    pub(crate) fn ready(&self) {
        self.signals.send(RunChange::Ready);
    }

    /// Reports that the connection has ended.
    pub(crate) fn disconnected(&self) {
        self.signals.send(RunChange::Disconnected);
    }
}

impl RunSignals {
    fn send(&self, change: RunChange) {
        // The call fails if the supervisor has ended. It then needs no reports.
        let _over = self.sender.send(Signal::Run(self.run, change));
    }
}

impl Supervisor {
    fn supervise(mut self) {
        let begin = Instant::now();
        let mut restarts = Restarts::default();
        loop {
            self.run += 1;
            let (end, status) = self.run_once();
            if self.daemon_ends.load(Ordering::Acquire) {
                return;
            }
            let Some(pause) = restarts.pause_after_end(begin.elapsed()) else {
                let (extension, named_in) =
                    (&self.extension.name, self.extension.named_in.display());
                tracing::error!(
                    extension,
                    %named_in,
                    "an extension is given up after {MAX_RESTARTS} restarts in a minute: {end}{status}"
                );
                return;
            };
            let extension = &self.extension.name;
            tracing::warn!(
                extension,
                "an extension is restarted in {pause:?}: {end}{status}"
            );
            if self.daemon_ends_within(pause) {
                return;
            }
        }
    }

    /// Runs the extension once, until the run fails or the daemon ends.
    fn run_once(&mut self) -> (RunEnd, EndStatus) {
        let (program, sockets, stderr_ends) = match self.start() {
            Ok(started) => started,
            Err(failure) => return (RunEnd::NotStarted(failure), EndStatus(None)),
        };
        let signals = RunSignals {
            run: self.run,
            sender: self.sender.clone(),
        };
        let died = signals.clone();
        let watch = watch::on_death(program.id(), move || died.send(RunChange::Died));
        let connection = ExtensionRun {
            number: self.number,
            name: self.extension.name.clone(),
            may: self.extension.may,
            signals,
        };
        let own_ends = sockets.try_clone().map_err(anyhow::Error::from);
        let served = own_ends.and_then(|sockets| (self.serve)(connection, sockets));
        let end = match served {
            Ok(()) => self.wait_for_end(),
            Err(error) => RunEnd::NotServed(error),
        };
        drop(watch);
        let status = self.stop(&end, program, &sockets);
        // A process that the extension has started may still have stderr open, so the wait is limited.
        let _late = stderr_ends.recv_timeout(STDERR_ENDS);
        (end, EndStatus(status))
    }

    /// Starts the program. Returns the program, the daemon's ends of its sockets, and a channel. The channel is closed
    /// when all stderr of the program is in the log.
    fn start(&self) -> Result<(RunningProgram, ExtensionSockets, Receiver<()>), Failure> {
        let (output, stdin) = socket::pair().map_err(Failure::NotStarted)?;
        let (input, stdout) = socket::pair().map_err(Failure::NotStarted)?;
        let name = &self.extension.name;
        let executable = &self.extension.executable;
        let mut program = executable.start(&[(NAME_VARIABLE, name)], (stdin, stdout))?;
        let (stderr_open, stderr_ends) = mpsc::channel();
        if let Some(stderr) = program.stderr.take() {
            let name = name.clone();
            let thread = thread::Builder::new().name("extension-stderr".into());
            let log = thread.stack_size(STACK).spawn(move || {
                let _open = stderr_open;
                log_lines(&name, stderr);
            });
            log.map_err(Failure::NotStarted)?;
        }
        Ok((program, ExtensionSockets { input, output }, stderr_ends))
    }

    /// Waits until the run has ended, or until the time for the introduction is over.
    fn wait_for_end(&mut self) -> RunEnd {
        let mut until = Some(Instant::now() + HANDSHAKE);
        loop {
            match self.next(until) {
                Awaited::Change(RunChange::Ready) => until = None,
                Awaited::Change(RunChange::Died) => return RunEnd::Died,
                Awaited::Change(RunChange::Disconnected) => return RunEnd::Disconnected,
                Awaited::TimeIsOver => return RunEnd::NoHandshake,
                Awaited::DaemonEnds => return RunEnd::DaemonEnds,
            }
        }
    }

    /// Waits for a change of this run.
    fn next(&mut self, until: Option<Instant>) -> Awaited {
        loop {
            let signal = match until {
                None => self
                    .signals
                    .recv()
                    .map_err(|_| RecvTimeoutError::Disconnected),
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    self.signals.recv_timeout(left)
                }
            };
            match signal {
                Ok(Signal::Run(run, change)) if run == self.run => return Awaited::Change(change),
                Ok(Signal::Run(..)) => {}
                Err(RecvTimeoutError::Timeout) => return Awaited::TimeIsOver,
                Ok(Signal::DaemonEnds) | Err(RecvTimeoutError::Disconnected) => {
                    self.daemon_ends.store(true, Ordering::Release);
                    return Awaited::DaemonEnds;
                }
            }
        }
    }

    /// Ends the connection, then the program and its process group. The program gets the end of its input first, then
    /// SIGTERM, and at last SIGKILL.
    fn stop(
        &mut self,
        end: &RunEnd,
        program: RunningProgram,
        sockets: &ExtensionSockets,
    ) -> Option<ExitStatus> {
        match end {
            RunEnd::Disconnected | RunEnd::NotServed(_) => {}
            RunEnd::DaemonEnds => {
                let _closed = sockets.input.shutdown(Shutdown::Read);
                self.wait_for_disconnection();
            }
            _ => {
                // A process that the extension has started may still have the socket open.
                sockets.shut_down();
                self.wait_for_disconnection();
            }
        }
        sockets.shut_down();
        if !program.ends_within(END_OF_INPUT_GRACE) {
            program.terminate();
            program.ends_within(TERM_GRACE);
        }
        program.end().ok()
    }

    fn wait_for_disconnection(&mut self) {
        let until = Some(Instant::now() + CONNECTION_ENDS);
        loop {
            match self.next(until) {
                Awaited::Change(RunChange::Disconnected) | Awaited::TimeIsOver => return,
                Awaited::Change(_) | Awaited::DaemonEnds => {}
            }
        }
    }

    fn daemon_ends_within(&mut self, time: Duration) -> bool {
        let until = Some(Instant::now() + time);
        while !self.daemon_ends.load(Ordering::Acquire) {
            if let Awaited::TimeIsOver = self.next(until) {
                return false;
            }
        }
        true
    }
}

/// The exit status of the program, as text for the log.
struct EndStatus(Option<ExitStatus>);

impl fmt::Display for EndStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(status) => write!(f, " ({status})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for RunEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted(failure) => failure.fmt(f),
            Self::NotServed(error) => write!(f, "it could not be served: {error:#}"),
            Self::NoHandshake => write!(f, "it did not initialize within {HANDSHAKE:?}"),
            Self::Disconnected => f.write_str("its connection has ended"),
            Self::Died => f.write_str("it has ended"),
            Self::DaemonEnds => f.write_str("the daemon ends"),
        }
    }
}
