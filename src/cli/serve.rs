//! Serving: the threads around a [`Daemon`], and the end (protocol.md §1).
//!
//! One thread reads and dispatches, one writes, and a small runtime runs requests that wait. The main thread
//! waits for the end, so that a reader blocked in `read` does not keep the process alive.

use super::Options;
use crate::clock::SystemSource;
use crate::config::Config;
use crate::daemon::Daemon;
use crate::daemon::connection::Connection;
use crate::rpc::Dispatcher;
use crate::stdio::{Frame, FrameReader, Outbox, Shortcut, id_in_head};
use anyhow::Context;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

/// How long running summaries may take after a signal or `shutdown`.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);
/// The time for which cancelled requests may still answer.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// The reason why serving ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndReason {
    /// Stdin has ended; running requests may finish.
    InputEnded,
    /// A header block has no length, so the next message cannot be found.
    BadBlock,
    /// A signal, `shutdown`, or the end of the client's process.
    Asked,
    /// The reader of stdout has ended.
    OutputBroken,
}

/// Serves stdin and stdout until the end.
pub(super) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    if io::stdin().is_terminal() {
        introduce();
    }
    let config = read_config(options)?;
    let runtime = start_runtime()?;
    let (end, ended) = mpsc::channel();
    let outbox = Outbox::new(config.max_queued_bytes);
    let max_frame_bytes = config.max_frame_bytes;
    let asked = end.clone();
    let on_shutdown = Box::new(move || report(&asked, EndReason::Asked));
    let daemon = Daemon::new(
        config,
        Arc::new(SystemSource),
        runtime.handle(),
        on_shutdown,
    );
    let connection = Connection::new(Arc::clone(&daemon), Arc::clone(&outbox));
    let dispatcher = Dispatcher::new(Arc::clone(&connection), runtime.handle().clone())?;
    let serving = ServedConnection {
        runtime,
        outbox,
        daemon,
        connection,
        dispatcher: Arc::new(dispatcher),
    };

    watch_signals(&serving.runtime, &end)?;
    let output = unbuffered(io::stdout())?;
    let shortcut = Shortcut::new(&output);
    let writer = serving.start_writer(output, end.clone())?;
    serving.start_reader(shortcut, max_frame_bytes, end)?;
    let reason = ended.recv().unwrap_or(EndReason::InputEnded);
    serving.finish(reason, ended, writer);
    Ok(match reason {
        EndReason::BadBlock => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    })
}

/// The configuration. Problems that do not prevent serving are logged.
fn read_config(options: &Options) -> anyhow::Result<Config> {
    let settings = options.settings()?;
    let (file, problems) = settings.complaints();
    for problem in problems {
        let file = file.map(Path::display);
        tracing::warn!(file = file.map(tracing::field::display), "{problem}");
    }
    settings.into_config()
}

fn start_runtime() -> anyhow::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .enable_io()
        .thread_name("treelined")
        .build()
        .context("start the runtime")
}

/// The daemon with its one connection, and the runtime for requests that wait.
struct ServedConnection {
    runtime: Runtime,
    outbox: Arc<Outbox>,
    daemon: Arc<Daemon>,
    connection: Arc<Connection>,
    dispatcher: Arc<Dispatcher>,
}

impl ServedConnection {
    fn start_writer(&self, mut output: File, end: Sender<EndReason>) -> io::Result<JoinHandle<()>> {
        let outbox = Arc::clone(&self.outbox);
        let write = move || {
            if outbox.run(&mut output).is_err() {
                report(&end, EndReason::OutputBroken);
            }
        };
        thread::Builder::new().name("writer".into()).spawn(write)
    }

    /// Starts the thread that reads stdin. Nothing joins it, since it may be blocked in `read` at the end.
    fn start_reader(
        &self,
        shortcut: Option<Shortcut>,
        max_frame_bytes: usize,
        end: Sender<EndReason>,
    ) -> anyhow::Result<()> {
        let input = unbuffered(io::stdin())?;
        let (dispatcher, connection) = (Arc::clone(&self.dispatcher), Arc::clone(&self.connection));
        let reader = move || {
            let shortcut = shortcut.as_ref();
            let reason = read(input, max_frame_bytes, &dispatcher, &connection, shortcut);
            report(&end, reason);
        };
        thread::Builder::new().name("reader".into()).spawn(reader)?;
        Ok(())
    }

    /// Waits for running requests, cancels those that outlast the grace time, and syncs files.
    fn finish(self, reason: EndReason, ended: Receiver<EndReason>, writer: JoinHandle<()>) {
        let Self {
            runtime,
            outbox,
            daemon,
            connection,
            dispatcher,
        } = self;
        daemon.end();
        daemon.end_questions();
        outbox.wake();
        if reason == EndReason::OutputBroken {
            // The client is gone, but acknowledged entries must survive.
            runtime.block_on(daemon.flush());
            return;
        }
        runtime.block_on(async {
            let mut finish = pin!(async {
                dispatcher.drained().await;
                daemon.end_turns().await;
                daemon.hooks.drained().await;
            });
            tokio::select! {
                () = &mut finish => {}
                () = grace_period(reason, ended) => {
                    // Requests that still run are cancelled and answered.
                    connection.cancel_all();
                    let _stuck = tokio::time::timeout(LAST_WORDS, finish).await;
                }
            }
            daemon.look_a_last_time().await;
            daemon.flush().await;
        });
        outbox.close();
        let _panicked = writer.join();
        daemon.store.end();
        runtime.shutdown_background();
    }
}

/// Ends after the grace time that a signal, `shutdown` or the death of the client's process begins; it may
/// follow the end of stdin.
async fn grace_period(reason: EndReason, ended: Receiver<EndReason>) {
    if reason != EndReason::Asked {
        let is_asked =
            move || while let Ok(EndReason::InputEnded | EndReason::BadBlock) = ended.recv() {};
        let _panicked = tokio::task::spawn_blocking(is_asked).await;
    }
    tokio::time::sleep(SHUTDOWN_GRACE).await;
}

/// Reads frames until stdin ends. Responses to frames that have already arrived are written together.
fn read(
    input: impl Read,
    max_frame_bytes: usize,
    dispatcher: &Dispatcher,
    connection: &Connection,
    shortcut: Option<&Shortcut>,
) -> EndReason {
    let (daemon, outbox) = (&connection.daemon, &connection.outbox);
    let mut frames = FrameReader::new(input, max_frame_bytes).on_settled({
        let outbox = Arc::clone(outbox);
        move |framing| outbox.set_framing(framing)
    });
    let mut more = false;
    loop {
        if !more {
            dispatcher.settle();
            if daemon.is_ending() {
                outbox.uncork();
                return EndReason::Asked;
            }
            match shortcut {
                Some(shortcut) => outbox.uncork_through(shortcut),
                None => outbox.uncork(),
            }
        }
        let goes_on = || daemon.is_asking() || daemon.is_ending();
        if outbox.is_over_limit() {
            dispatcher.settle();
        }
        outbox.wait_for_room(&goes_on);
        dispatcher.wait_for_room(&goes_on);
        let frame;
        (frame, more) = match frames.next_and_more() {
            Ok(next) => next,
            Err(error) => {
                tracing::warn!(%error, "the input could not be read");
                return EndReason::InputEnded;
            }
        };
        outbox.cork();
        match frame {
            Frame::Message(message) => dispatcher.frame(message, more),
            Frame::TooLarge { head } => dispatcher.too_large(id_in_head(head)),
            Frame::BadBlock => {
                dispatcher.bad_block();
                outbox.uncork();
                return EndReason::BadBlock;
            }
            Frame::Eof => {
                outbox.uncork();
                return EndReason::InputEnded;
            }
        }
    }
}

fn watch_signals(runtime: &Runtime, end: &Sender<EndReason>) -> anyhow::Result<()> {
    let _entered = runtime.enter();
    for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
        let mut signals = signal(kind).context("watch signals")?;
        let end = end.clone();
        runtime.spawn(async move {
            if signals.recv().await.is_some() {
                report(&end, EndReason::Asked);
            }
        });
    }
    super::outlive_the_size_limit()
}

/// Reports a reason for the end. Only the first one counts, so the receiver may be gone.
fn report(end: &Sender<EndReason>, reason: EndReason) {
    let _late = end.send(reason);
}

/// Opens the stream without the buffer of the standard handle: frames and the outbox have buffers of their
/// own.
fn unbuffered(stream: impl AsFd) -> anyhow::Result<File> {
    let descriptor = stream.as_fd().try_clone_to_owned();
    Ok(File::from(descriptor.context("open the standard streams")?))
}

/// Introduces the program to a user who starts it in a terminal.
fn introduce() {
    let mut stderr = io::stderr();
    // A failure has no consequence.
    let _unread = writeln!(
        stderr,
        "treelined keeps conversation trees for other programs: it reads JSON-RPC, one message a line,\n\
         from stdin. Try:  {{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"list_sessions\"}}\n\
         Ctrl-D ends it. See also: treelined --help, treelined demo"
    );
}
