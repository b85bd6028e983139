//! The connection on stdin and stdout.

use super::connection::ServedConnection;
use super::server::{EndReason, ServeEvent, Server};
use crate::daemon::client::Transport;
use crate::stdio::Shortcut;
use anyhow::Context;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use treelined_files::os::stream;

/// The connection on stdin and stdout, with its writer.
pub(super) struct StdioConnection {
    pub(super) served: Arc<ServedConnection>,
    pub(super) writer: JoinHandle<()>,
}

/// Serves stdin and stdout. The main thread ends the connection. No thread joins the reader thread, since it may be
/// blocked in `read` at the end.
pub(super) fn serve(server: &Arc<Server>) -> anyhow::Result<StdioConnection> {
    let output = Arc::new(stream::stdout().context("open the standard streams")?);
    let input = stream::stdin().context("open the standard streams")?;
    let ended = |reason: EndReason| {
        let server = Arc::clone(server);
        move || server.report(ServeEvent::StdioEnded(reason))
    };
    let transport = Transport {
        cwd: Some(server.daemon.settings.cwd.clone()),
        end_input: Box::new(ended(EndReason::Asked)),
        extension: None,
        is_page: false,
        rights: Arc::default(),
    };
    let served = Arc::new(ServedConnection::new(server, transport)?);
    let shortcut = Shortcut::new(&output);
    let writer = served.start_writer(output, ended(EndReason::OutputBroken))?;
    let reader = {
        let (server, served) = (Arc::clone(server), Arc::clone(&served));
        move || {
            let reason = served.read(input, shortcut.as_ref());
            server.report(ServeEvent::StdioEnded(reason));
        }
    };
    thread::Builder::new().name("reader".into()).spawn(reader)?;
    Ok(StdioConnection { served, writer })
}
