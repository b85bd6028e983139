//! Starts extensions, restarts those that end, and ends all at the end of the daemon.
//!
//! Each extension has a thread: the system kills a program when the thread that has started it ends.

use super::configured::{Extension, NAME_VARIABLE};
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

/// The time from the start of an extension until it has introduced itself.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The time that an extension has to end by itself once its stdin has ended.
const END_OF_INPUT_GRACE: Duration = Duration::from_millis(500);
/// The time that it then has to end after SIGTERM.
const TERM_GRACE: Duration = Duration::from_secs(2);
/// The longest wait for the end of a connection whose program has ended.
const CONNECTION_ENDS: Duration = Duration::from_secs(10);
/// The longest wait until the stderr of a program that has ended is in the log.
const STDERR_ENDS: Duration = Duration::from_millis(500);
/// Bytes of the stacks of the threads.
const STACK: usize = 256 << 10;

/// One run of an extension, as its connection sees it.
pub(crate) struct ExtensionRun {
    /// The extension's number in the order of the configuration.
    pub(crate) number: usize,
    pub(crate) name: String,
    signals: RunSignals,
}

/// Reports about one run to the supervisor.
#[derive(Clone)]
struct RunSignals {
    run: u64,
    sender: Sender<Signal>,
}

/// A message to the thread of an extension.
enum Signal {
    /// About the run with this number.
    Run(u64, RunChange),
    DaemonEnds,
}

enum RunChange {
    /// The extension has introduced itself.
    Ready,
    /// Its program has ended.
    Died,
    /// Its connection has ended.
    Disconnected,
}

/// The result of a wait.
enum Awaited {
    Change(RunChange),
    TimeIsOver,
    DaemonEnds,
}

/// The reason why a run is over.
enum RunEnd {
    NotStarted(Failure),
    NotServed(anyhow::Error),
    NoHandshake,
    Disconnected,
    Died,
    DaemonEnds,
}

/// Serves sockets as the connection of an extension.
pub(crate) type ServeExtension =
    dyn Fn(ExtensionRun, ExtensionSockets) -> anyhow::Result<()> + Send + Sync;

/// The daemon's ends of the sockets of an extension. There are two, since programs take input on stdout for its end.
pub(crate) struct ExtensionSockets {
    /// From the stdout of the extension.
    pub(crate) input: Stream,
    /// To the stdin of the extension.
    pub(crate) output: Stream,
}

impl ExtensionSockets {
    fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            input: self.input.try_clone()?,
            output: self.output.try_clone()?,
        })
    }

    /// Ends the connection for both sides.
    fn shut_down(&self) {
        for socket in [&self.input, &self.output] {
            // Fails if the other side has ended.
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
    /// Whether the daemon ends. The end of the connections may be noticed before [`Signal::DaemonEnds`].
    daemon_ends: Arc<AtomicBool>,
}

impl Supervisors {
    /// Starts the extensions, given with their numbers. `daemon_ends` is set before the connections are asked to end.
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

    /// Ends all extensions, whose connections must have been asked to end, and waits for them.
    pub(crate) fn end(self) {
        for (sender, _) in &self.threads {
            // Fails if the extension was given up.
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
        // Fails if the supervisor has ended, which then needs no reports.
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

    /// Runs the extension until it fails or the daemon ends.
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
        // A process that the extension has left behind may still have stderr.
        let _late = stderr_ends.recv_timeout(STDERR_ENDS);
        (end, EndStatus(status))
    }

    /// Starts the program. Returns it with this process's ends of its sockets, and a channel that is closed once all of
    /// its stderr is in the log.
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

    /// Waits until the run is over, or until the time for the handshake is.
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

    /// Ends the connection, then the program and its process group: by the end of its input, by SIGTERM, by SIGKILL.
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
                // A process that the extension has left behind may still have the socket.
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

/// How the program ended, for the log.
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
