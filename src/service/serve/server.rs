//! The parts that all connections share.

use super::refusals::Refusals;
use crate::access::Access;
use crate::daemon::Daemon;
use crate::endpoint::Endpoint;
use crate::parts::Parts;
use crate::settings::DaemonSettings;
use crate::web::{Token, WebServer};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock};
use tokio::runtime::{Handle, Runtime};
use treelined_core::id::Source;
use treelined_files::lock::lock;

/// The reason why a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndReason {
    /// The input has ended. Running requests may finish.
    InputEnded,
    /// A header block has no valid length, so the next message cannot be found.
    BadBlock,
    /// A signal, `shutdown`, or the end of the client's process.
    Asked,
    /// The client does not read any more.
    OutputBroken,
}

/// An event that the main thread waits for.
pub(super) enum ServeEvent {
    /// A signal asks the daemon to end.
    Asked,
    StdioEnded(EndReason),
    /// The last connection has ended.
    NoConnection,
}

/// The parts that all connections share.
pub(super) struct Server {
    pub(super) daemon: Arc<Daemon>,
    pub(super) runtime: Handle,
    pub(super) events: Mutex<Sender<ServeEvent>>,
    /// The sockets with their runtime files.
    pub(super) endpoints: Mutex<Vec<Endpoint>>,
    /// The sockets of limited connections, with their runtime files.
    pub(super) limited: Mutex<Vec<Endpoint>>,
    /// The tokens for the WebSocket that give an access.
    pub(super) tokens: OnceLock<Vec<(Token, Access)>>,
    /// The server of the page and the WebSocket, if there is one.
    pub(super) web: Mutex<Option<WebServer>>,
    pub(super) refusals: Refusals,
    /// Set before the extensions are asked to end, so that they are not restarted.
    pub(super) extensions_end: Arc<AtomicBool>,
}

impl Server {
    /// A server without connections. It reports events through `events`.
    pub(super) fn new(
        settings: DaemonSettings,
        parts: Parts,
        source: Arc<dyn Source>,
        runtime: &Runtime,
        events: Sender<ServeEvent>,
    ) -> Arc<Self> {
        Arc::new(Self {
            daemon: Daemon::new(settings, parts, source, runtime.handle()),
            runtime: runtime.handle().clone(),
            events: Mutex::new(events),
            endpoints: Mutex::default(),
            limited: Mutex::default(),
            tokens: OnceLock::new(),
            web: Mutex::default(),
            refusals: Refusals::default(),
            extensions_end: Arc::default(),
        })
    }

    /// Reports an event to the main thread. The main thread may have ended the daemon already.
    pub(super) fn report(&self, event: ServeEvent) {
        let _late = lock(&self.events).send(event);
    }

    pub(super) fn connection_ended(&self) {
        if self.daemon.connections.count_clients() == 0 {
            self.report(ServeEvent::NoConnection);
        }
    }

    /// Asks all connections to end.
    pub(super) fn end_connections(&self) {
        self.extensions_end.store(true, Ordering::Release);
        for connection in self.daemon.connections.all() {
            connection.ask_to_end();
        }
    }

    /// Asks the connections of extensions to end.
    pub(super) fn end_extensions(&self) {
        self.extensions_end.store(true, Ordering::Release);
        let all = self.daemon.connections.all().into_iter();
        for connection in all.filter(|connection| connection.extension().is_some()) {
            connection.ask_to_end();
        }
    }
}
