//! Serves the connections around a [`Daemon`], and ends the connections and the daemon (protocol.md §1, §10).
//!
//! [`server`] has the state that connections share, and [`connection`] has the threads of one connection. [`listener`]
//! accepts the clients of a socket, and [`web`] the clients of a WebSocket. [`address`] names the addresses to listen
//! on. [`refusals`] logs refused clients. A small runtime runs requests that wait. The main thread waits for the end,
//! so that a reader that is blocked in `read` does not keep the process alive.
//!
//! The end of stdin ends the daemon only if nothing else is served.

mod address;
mod connection;
mod listener;
mod refusals;
mod server;
mod stdio;
mod web;

pub use address::ListenAddress;

use self::connection::{LAST_WORDS, LONGEST_END, serve_extension};
use self::server::{EndReason, ServeEvent, Server};
use self::stdio::StdioConnection;
use crate::access::Access;
use crate::daemon::{agent_turn, follow};
use crate::endpoint::Endpoint;
use crate::extensions::{ServeExtension, Supervisors};
use crate::parts::Parts;
use crate::settings::DaemonSettings;
use crate::web::{Token, WebListener};
use anyhow::Context;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use treelined_core::error::{Error, Kind};
use treelined_core::id::Source;
use treelined_files::clock::{SharedSource, SystemSource};
use treelined_files::lock::lock;
use treelined_files::os::process;
use treelined_files::os::signal::{self, EndSignal};
use treelined_files::os::socket::Listener;

/// The reason why the daemon ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DaemonEnd {
    Asked,
    /// The connection on stdin and stdout was the only one, and has ended.
    Stdio(EndReason),
    /// There was no connection for the time of `--idle-exit`.
    Idle,
}

pub type LimitedSocket = (Endpoint, Listener, Access);
pub type AccessToken = (Token, Access);

/// The addresses at which a daemon serves.
pub struct Endpoints {
    pub stdio: bool,
    pub sockets: Vec<(Endpoint, Listener)>,
    /// The sockets of limited connections. Their runtime files do not have the address of the page.
    pub limited: Vec<LimitedSocket>,
    /// The tokens for the WebSocket that give an access.
    pub tokens: Vec<AccessToken>,
    /// The port of the page and the WebSocket.
    pub web: Option<WebListener>,
    /// The time without a connection after which the daemon ends. It counts only if the daemon has a socket or a port.
    pub idle_exit: Option<Duration>,
    /// Called when all addresses are served.
    pub on_ready: Box<dyn FnOnce()>,
    /// Whether the daemon starts the extensions of its configuration.
    pub extensions: bool,
}

/// Serves until the daemon ends.
pub fn run(
    settings: DaemonSettings,
    parts: Parts,
    endpoints: Endpoints,
) -> anyhow::Result<ExitCode> {
    let Endpoints {
        stdio,
        sockets,
        limited,
        tokens,
        web,
        idle_exit,
        on_ready,
        extensions,
    } = endpoints;
    if stdio && io::stdin().is_terminal() {
        introduce();
    }
    let is_alone = sockets.is_empty() && web.is_none();
    let idle_exit = idle_exit.filter(|_| !is_alone);
    let runtime = start_runtime()?;
    let (events, received) = mpsc::channel();
    let source: Arc<dyn Source> = match parts.shared_log {
        Some(_) => Arc::new(SharedSource),
        None => Arc::new(SystemSource),
    };
    let server = Server::new(settings, parts, source, &runtime, events);
    let _set_once = server.tokens.set(tokens);
    watch_signals(&runtime, &server)?;
    serve_page_on_request(&server);
    if !is_alone {
        process::raise_descriptor_limit();
    }
    let mut stdio = match stdio {
        true => Some(stdio::serve(&server)?),
        false => None,
    };
    for (endpoint, socket) in sockets {
        lock(&server.endpoints).push(endpoint);
        listener::start(&server, socket, None).context("start a thread")?;
    }
    for (endpoint, socket, access) in limited {
        lock(&server.limited).push(endpoint);
        listener::start(&server, socket, Some(access)).context("start a thread")?;
    }
    if let Some(listener) = web {
        web::start(&server, listener).inspect_err(|_| withdraw(&server))?;
    }
    on_ready();
    let supervisors = match extensions {
        true => start_extensions(&server)?,
        false => Supervisors::default(),
    };
    let end = wait_for_end(&server, &received, &mut stdio, is_alone, idle_exit);
    // The port is freed first, since another daemon may start while the connections of this daemon end.
    if let Some(web) = &*lock(&server.web) {
        web.stop();
    }
    withdraw(&server);
    finish(&server, end, stdio);
    if let Some(web) = lock(&server.web).take() {
        runtime.block_on(web.ended());
    }
    supervisors.end();
    runtime.shutdown_background();
    Ok(match end {
        DaemonEnd::Stdio(EndReason::BadBlock) => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    })
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

/// Removes the sockets and their runtime files from the disk.
fn withdraw(server: &Server) {
    for endpoints in [&server.endpoints, &server.limited] {
        lock(endpoints).iter_mut().for_each(Endpoint::withdraw);
    }
}

/// Lets clients ask for the page (protocol.md §17).
fn serve_page_on_request(server: &Arc<Server>) {
    let weak = Arc::downgrade(server);
    server.daemon.set_web(Box::new(move || {
        let ended = || Error::new(Kind::ShuttingDown, "the daemon is shutting down");
        web::open(&weak.upgrade().ok_or_else(ended)?)
    }));
}

/// Starts the extensions. Each extension is served like a client of a socket.
fn start_extensions(server: &Arc<Server>) -> anyhow::Result<Supervisors> {
    let serve: Arc<ServeExtension> = Arc::new({
        let server = Arc::clone(server);
        move |run, sockets| serve_extension(&server, run, sockets)
    });
    let extensions = server.daemon.questions.extensions.all();
    Supervisors::start(extensions, &serve, &server.extensions_end).context("start a thread")
}

/// Waits until the daemon has to end. The end of stdin ends the daemon if stdin `is_alone`. Otherwise it ends only that
/// connection.
fn wait_for_end(
    server: &Arc<Server>,
    events: &Receiver<ServeEvent>,
    stdio: &mut Option<StdioConnection>,
    is_alone: bool,
    idle_exit: Option<Duration>,
) -> DaemonEnd {
    let mut idle_since = Instant::now();
    loop {
        let is_idle = server.daemon.connections.count_clients() == 0;
        let event = match idle_exit.filter(|_| is_idle) {
            Some(limit) => events.recv_timeout(limit.saturating_sub(idle_since.elapsed())),
            None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match event {
            Ok(ServeEvent::Asked) | Err(RecvTimeoutError::Disconnected) => {
                return DaemonEnd::Asked;
            }
            Ok(ServeEvent::StdioEnded(reason)) if is_alone => return DaemonEnd::Stdio(reason),
            Ok(ServeEvent::StdioEnded(reason)) => {
                // After `shutdown`, the end of stdin is a second reason. It changes nothing.
                let Some(StdioConnection { served, writer }) = stdio.take() else {
                    continue;
                };
                thread::spawn(move || served.finish(reason, writer));
            }
            Ok(ServeEvent::NoConnection) => idle_since = Instant::now(),
            Err(RecvTimeoutError::Timeout) if server.daemon.connections.count_clients() == 0 => {
                return DaemonEnd::Idle;
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Ends the connections, then the daemon. Waits for running requests, cancels requests that take longer than the grace
/// time, and syncs files.
fn finish(server: &Server, end: DaemonEnd, stdio: Option<StdioConnection>) {
    let daemon = &server.daemon;
    daemon.end();
    daemon.hooks.begin_end();
    if end == DaemonEnd::Stdio(EndReason::OutputBroken) {
        // The client is gone, but the acknowledged entries must survive.
        server.end_extensions();
        server.runtime.block_on(async {
            follow::look_a_last_time(daemon).await;
            daemon.registry.flush().await;
        });
        daemon.files.end();
        return;
    }
    if !matches!(end, DaemonEnd::Stdio(_)) {
        server.end_connections();
    }
    let mine = stdio.as_ref().map(|stdio| stdio.served.connection.id);
    let sockets_until = Instant::now() + LONGEST_END;
    server.runtime.block_on(async {
        if let Some(StdioConnection { served, .. }) = &stdio {
            served.begin_end(match end {
                DaemonEnd::Stdio(reason) => reason,
                _ => EndReason::Asked,
            });
            let work = async {
                served.dispatcher.drained().await;
                agent_turn::end_all(daemon).await;
                daemon.hooks.drained().await;
            };
            served.within_grace(work).await;
        }
        server.end_extensions();
        daemon.connections.ended_except(mine, sockets_until).await;
        if stdio.is_none() {
            // These are the turns of connections that have not ended in time.
            agent_turn::end_all(daemon).await;
            let _late = tokio::time::timeout(LAST_WORDS, daemon.hooks.drained()).await;
        }
        follow::look_a_last_time(daemon).await;
        daemon.registry.flush().await;
    });
    if let Some(StdioConnection { served, writer }) = stdio {
        served.connection.outbox.close();
        let _panicked = writer.join();
    }
    daemon.files.end();
    daemon.files.store.end();
}

/// Ends the daemon at a signal. A signal during the end limits the time for running requests.
fn watch_signals(runtime: &Runtime, server: &Arc<Server>) -> anyhow::Result<()> {
    let _entered = runtime.enter();
    for mut signal in EndSignal::all().context("watch signals")? {
        let server = Arc::clone(server);
        runtime.spawn(async move {
            if signal.recv().await {
                server.report(ServeEvent::Asked);
                server.end_connections();
            }
        });
    }
    signal::outlive_the_size_limit().context("watch signals")
}

/// Introduces the program to a user who starts it in a terminal.
fn introduce() {
    let mut stderr = io::stderr();
    // If the text cannot be written, the daemon still runs.
    let _unread = writeln!(
        stderr,
        "treelined keeps conversation trees for other programs: it reads JSON-RPC, one message a line,\n\
         from stdin. Try:  {{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"list_sessions\"}}\n\
         Ctrl-D ends it. See also: treelined --help, treelined demo"
    );
}
