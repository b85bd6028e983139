//! The page and the WebSocket. A client of the WebSocket is served like a client of the Unix socket.

use super::connection::serve_page;
use super::listener::MAX_CONNECTIONS;
use super::server::Server;
use crate::web::{Admission, WebAddress, WebBackend, WebListener, WebServer};
use anyhow::{Context, bail};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use treelined_core::error::{Error, Kind, Result};
use treelined_files::lock::lock;
pub(crate) use treelined_files::os::socket::Stream;
use treelined_files::os::stream::into_file;
use treelined_wire::OpenWebResult;

/// The server as the WebSocket sees it.
struct Backend(Arc<Server>);

impl WebBackend for Backend {
    fn admits(&self, token: &str) -> Option<Admission> {
        // All tokens are compared, so that the time does not show which token is right.
        let tokens = self.0.tokens.get().into_iter().flatten();
        tokens
            .enumerate()
            .fold(None, |found, (number, (own, _))| match own.is(token) {
                true => Some(Admission::Token(number)),
                false => found,
            })
    }

    fn connect(&self, stream: Stream, admission: &Admission) -> anyhow::Result<()> {
        let daemon = &self.0.daemon;
        if daemon.is_ending() {
            bail!("the daemon ends");
        }
        if daemon.connections.count() >= MAX_CONNECTIONS {
            bail!("more than {MAX_CONNECTIONS} connections");
        }
        serve_page(&self.0, into_file(stream), admission)
    }

    fn is_ending(&self) -> bool {
        // A signal sets the first flag before it ends all connections.
        self.0.extensions_end.load(Ordering::Acquire) || self.0.daemon.is_ending()
    }

    fn max_message_bytes(&self) -> usize {
        self.0.daemon.settings.max_frame_bytes
    }

    fn refused(&self, why: &str) {
        self.0.refusals.log(why);
    }
}

/// Serves the page on this port, and writes the address into the runtime files.
pub(super) fn start(server: &Arc<Server>, listener: WebListener) -> anyhow::Result<WebAddress> {
    start_in(server, &mut lock(&server.web), listener)
}

fn start_in(
    server: &Arc<Server>,
    web: &mut Option<WebServer>,
    listener: WebListener,
) -> anyhow::Result<WebAddress> {
    let backend = Arc::new(Backend(Arc::clone(server)));
    let started = WebServer::start(listener, &server.runtime, backend).context("listen")?;
    let address = started.address().clone();
    for endpoint in lock(&server.endpoints).iter_mut() {
        let announced = endpoint.announce_web(&address.web_socket(), address.token.expose());
        if announced.is_err() {
            started.stop();
        }
        announced?;
    }
    *web = Some(started);
    Ok(address)
}

/// The address of the page. Serves the page first, if the daemon does not serve it yet.
pub(super) fn open(server: &Arc<Server>) -> Result<OpenWebResult> {
    let mut web = lock(&server.web);
    let address = match &*web {
        Some(web) => Ok(web.address().clone()),
        None => WebListener::bind(&server.daemon.settings.session_dir, None)
            .and_then(|listener| start_in(server, &mut web, listener)),
    };
    let address = address.map_err(|error| {
        let why = format!("the page cannot be served: {error:#}");
        Error::new(Kind::StorageIo, why)
    })?;
    Ok(OpenWebResult {
        address: address.page(),
        web_socket: address.web_socket(),
        token: address.token.expose().to_owned(),
    })
}
