//! The threads of one connection: one thread reads and dispatches, the other writes.
//!
//! Both threads sleep in the kernel while the connection is idle. The reader of a socket ends the connection when the
//! input ends. A failed write, or a request to end the connection, ends the input.

use super::server::{EndReason, Server};
use crate::access::{Access, Rights, Role};
use crate::daemon::client::Transport;
use crate::daemon::connection::Connection;
use crate::extensions::{ExtensionRun, ExtensionSockets};
use crate::rpc::Dispatcher;
use crate::stdio::{Frame, FrameReader, Outbox, Shortcut, id_in_head};
use crate::web::Admission;
use anyhow::Context;
use std::fs::File;
use std::io::{self, Read};
use std::net::Shutdown;
use std::pin::pin;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
pub(crate) use treelined_files::os::socket::{self, Stream};
use treelined_files::os::{ready, stream::into_file};

/// How long running requests may take after a signal or `shutdown`.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);
/// How long cancelled requests may still take to answer.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(3);
/// When the daemon or an extension ends, the daemon waits this long for a client that does not read.
const STALLED: Duration = Duration::from_secs(1);
/// The longest time until a connection ends after it is asked to end.
pub(super) const LONGEST_END: Duration = SHUTDOWN_GRACE.saturating_add(LAST_WORDS);

/// The bytes of the stack of a thread that reads a socket. Only pages that are used take memory.
const READER_STACK: usize = 1 << 20;
/// The bytes of the stack of a thread that writes.
const WRITER_STACK: usize = 128 << 10;

/// A connection with its dispatcher.
pub(super) struct ServedConnection {
    server: Arc<Server>,
    pub(super) connection: Arc<Connection>,
    pub(super) dispatcher: Dispatcher,
}

impl ServedConnection {
    pub(super) fn new(server: &Arc<Server>, transport: Transport) -> anyhow::Result<Self> {
        let daemon = &server.daemon;
        let outbox = Outbox::within(daemon.settings.max_queued_bytes, &daemon.memory);
        let connection = Connection::over(transport, &server.daemon, outbox);
        let dispatcher = Dispatcher::new(
            Arc::clone(&server.daemon),
            Arc::clone(&connection),
            server.runtime.clone(),
        )?;
        Ok(Self {
            server: Arc::clone(server),
            connection,
            dispatcher,
        })
    }

    fn outbox(&self) -> &Arc<Outbox> {
        &self.connection.outbox
    }

    /// Starts the thread that writes. The thread calls `broken` if the client does not read any more.
    pub(super) fn start_writer(
        &self,
        mut output: Arc<File>,
        broken: impl FnOnce() + Send + 'static,
    ) -> io::Result<JoinHandle<()>> {
        let outbox = Arc::clone(self.outbox());
        let write = move || {
            if outbox.run(&mut output).is_err() {
                broken();
            }
        };
        let thread = thread::Builder::new().name("writer".into());
        thread.stack_size(WRITER_STACK).spawn(write)
    }

    /// Reads frames until the input ends. Responses to frames that have already arrived are written together.
    pub(super) fn read(&self, input: impl Read, shortcut: Option<&Shortcut>) -> EndReason {
        let Self {
            connection,
            dispatcher,
            ..
        } = self;
        let outbox = self.outbox();
        let max_frame_bytes = self.server.daemon.settings.max_frame_bytes;
        let memory = self.server.daemon.memory.reservation();
        let frames = FrameReader::new(input, max_frame_bytes).within(memory);
        let mut frames = frames.on_settled({
            let outbox = Arc::clone(outbox);
            move |framing| outbox.set_framing(framing)
        });
        let mut more = false;
        loop {
            if !more {
                dispatcher.settle();
                if connection.is_ending() {
                    outbox.uncork();
                    return EndReason::Asked;
                }
                match shortcut {
                    Some(shortcut) => outbox.uncork_through(shortcut),
                    None => outbox.uncork(),
                }
            }
            let goes_on =
                || self.server.daemon.questions.is_asked(connection.id) || connection.is_ending();
            if outbox.is_over_limit() {
                dispatcher.settle();
            }
            outbox.wait_for_room(&goes_on);
            dispatcher.wait_for_room(&goes_on);
            let frame;
            (frame, more) = match frames.next_and_more() {
                Ok(next) => next,
                Err(error) => {
                    // The socket of a client that was killed reports a reset.
                    if error.kind() != io::ErrorKind::ConnectionReset {
                        tracing::warn!(%error, "the input could not be read");
                    }
                    return EndReason::InputEnded;
                }
            };
            outbox.cork();
            match frame {
                Frame::Message(message) => dispatcher.frame(message, more),
                Frame::TooLarge { head } => dispatcher.too_large(id_in_head(head)),
                Frame::NoMemory { head } => dispatcher.no_memory(id_in_head(head)),
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

    /// Refuses later requests. If the reason limits the time of running requests, this time begins now.
    pub(super) fn begin_end(&self, reason: EndReason) {
        self.connection.end();
        self.server.daemon.questions.leave(self.connection.id, None);
        self.outbox().wake();
        match reason {
            EndReason::InputEnded | EndReason::BadBlock => {}
            EndReason::Asked => {
                self.connection.asked_to_end.cancel();
            }
            EndReason::OutputBroken => self.connection.cancel_all(),
        }
    }

    /// Waits until `work` is done. After the connection is asked to end, requests get a grace time. Requests that take
    /// longer are cancelled, and then answered.
    pub(super) async fn within_grace(&self, work: impl Future<Output = ()>) {
        let mut work = pin!(work);
        tokio::select! {
            () = &mut work => {}
            () = self.grace_period() => {
                self.connection.cancel_all();
                let _stuck = tokio::time::timeout(LAST_WORDS, work).await;
            }
        }
    }

    /// Waits until the connection is asked to end, and then for the grace time. A signal, `shutdown` and the death of
    /// the client's process ask for the end, and may do so after the end of the input.
    async fn grace_period(&self) {
        self.connection.asked_to_end.cancelled().await;
        tokio::time::sleep(SHUTDOWN_GRACE).await;
    }

    /// Ends this connection, but not the daemon: answers running requests, and removes everything that belongs to the
    /// connection.
    pub(super) fn finish(&self, reason: EndReason, writer: JoinHandle<()>) {
        self.begin_end(reason);
        let daemon = &self.server.daemon;
        self.server.runtime.block_on(async {
            self.within_grace(self.dispatcher.drained()).await;
            self.connection.ended(daemon).await;
        });
        self.outbox().close();
        let is_extension = self.connection.extension().is_some();
        let is_limited = || is_extension || daemon.is_ending();
        if self
            .outbox()
            .is_written(&|| is_limited().then_some(STALLED))
        {
            let _panicked = writer.join();
        }
        self.connection.remove(daemon);
        self.server.connection_ended();
    }
}

/// Serves a client that has connected to a socket.
pub(super) fn serve_socket(
    server: &Arc<Server>,
    socket: File,
    access: Option<&Access>,
) -> anyhow::Result<()> {
    let socket = Arc::new(socket);
    let rights = match access {
        // If the secrets of a connection cannot be replaced, the connection is not served.
        Some(access) => server.daemon.redaction.rights_under(access)?,
        None => Arc::default(),
    };
    let of = Origin {
        rights,
        ..Origin::default()
    };
    serve_sockets(server, (&socket, &socket), of)
}

/// Serves a client of the WebSocket.
pub(super) fn serve_page(
    server: &Arc<Server>,
    socket: File,
    admission: &Admission,
) -> anyhow::Result<()> {
    let socket = Arc::new(socket);
    let of = Origin {
        is_page: true,
        rights: match admission {
            Admission::Page => Rights::of(Role::Page),
            Admission::Token(number) => {
                let token = server.tokens.get().and_then(|tokens| tokens.get(*number));
                let (_, access) = token.context("there is no such token")?;
                server.daemon.redaction.rights_under(access)?
            }
        },
        ..Origin::default()
    };
    serve_sockets(server, (&socket, &socket), of)
}

/// Serves a run of an extension.
pub(super) fn serve_extension(
    server: &Arc<Server>,
    run: ExtensionRun,
    sockets: ExtensionSockets,
) -> anyhow::Result<()> {
    let file = |socket: Stream| Arc::new(into_file(socket));
    let (input, output) = (file(sockets.input), file(sockets.output));
    let of = Origin {
        rights: Rights::of(Role::Extension(run.may)),
        extension: Some(run),
        ..Origin::default()
    };
    serve_sockets(server, (&input, &output), of)
}

/// The origin of a connection.
#[derive(Default)]
struct Origin {
    extension: Option<ExtensionRun>,
    is_page: bool,
    rights: Arc<Rights>,
}

fn serve_sockets(
    server: &Arc<Server>,
    (input, output): (&Arc<File>, &Arc<File>),
    of: Origin,
) -> anyhow::Result<()> {
    let Origin {
        extension,
        is_page,
        rights,
    } = of;
    let (input, output) = (Arc::clone(input), Arc::clone(output));
    let ended = Arc::clone(&input);
    let transport = Transport {
        // An extension has the working directory of the daemon.
        cwd: extension
            .as_ref()
            .map(|_| server.daemon.settings.cwd.clone()),
        end_input: Box::new(move || socket::end(&ended, Shutdown::Read)),
        extension,
        is_page,
        rights,
    };
    let served = ServedConnection::new(server, transport)?;
    let broken = {
        let (input, output) = (Arc::clone(&input), Arc::clone(&output));
        let connection = Arc::clone(&served.connection);
        move || {
            connection.cancel_all();
            socket::end(&output, Shutdown::Both);
            socket::end(&input, Shutdown::Both);
        }
    };
    let id = served.connection.id;
    let started = start_threads(served, (input, output), broken);
    if started.is_err() {
        server.daemon.connections.remove(id);
    }
    Ok(started?)
}

fn start_threads(
    served: ServedConnection,
    (input, output): (Arc<File>, Arc<File>),
    broken: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    let outbox = Arc::clone(served.outbox());
    if let Some(shortcut) = Shortcut::new(&output) {
        outbox.write_at_once(shortcut);
    }
    let writer = served.start_writer(Arc::clone(&output), broken)?;
    let reader = move || {
        let shortcut = Shortcut::new(&output);
        let reason = served.read(Arc::clone(&input), shortcut.as_ref());
        let reason = match ready::is_hung_up(&input) {
            true => EndReason::OutputBroken,
            false => reason,
        };
        served.finish(reason, writer);
        socket::end(&output, Shutdown::Both);
        socket::end(&input, Shutdown::Both);
        if let Some(run) = served.connection.extension() {
            run.disconnected();
        }
    };
    let thread = thread::Builder::new().name("reader".into());
    let started = thread.stack_size(READER_STACK).spawn(reader);
    // The writer must not wait without a reader, so the outbox is closed.
    started.map(drop).inspect_err(|_| outbox.close())
}
