//! The sockets to which clients connect.

use super::connection::serve_socket;
use super::refusals::Refusals;
use super::server::Server;
use crate::access::Access;
use crate::endpoint::peer_is_same_user;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
pub(crate) use treelined_files::os::socket::{Listener, Stream};
use treelined_files::os::stream::into_file;

/// The most connections at a time (protocol.md §10).
pub(super) const MAX_CONNECTIONS: usize = 1024;
/// The pause after a failed accept, for example without free descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Starts the thread that accepts the clients of a socket. The clients have this access. No thread joins this thread,
/// since it is blocked in `accept` when the daemon ends.
pub(super) fn start(
    server: &Arc<Server>,
    listener: Listener,
    access: Option<Access>,
) -> io::Result<()> {
    let server = Arc::clone(server);
    let accept = move || {
        let refusals = Refusals::default();
        loop {
            match listener.accept() {
                Ok((stream, _)) => accepted(&server, stream, access.as_ref(), &refusals),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    refusals.log(&format!("no connection could be accepted: {error}"));
                    thread::sleep(PAUSE);
                }
            }
        }
    };
    thread::Builder::new().name("accept".into()).spawn(accept)?;
    Ok(())
}

/// Serves an accepted connection, or closes it at once.
fn accepted(server: &Arc<Server>, stream: Stream, access: Option<&Access>, refusals: &Refusals) {
    let daemon = &server.daemon;
    if daemon.is_ending() {
        return;
    }
    if !peer_is_same_user(&stream).is_ok_and(|is_same| is_same) {
        refusals.log("a connection of another user was closed");
        return;
    }
    if daemon.connections.count() >= MAX_CONNECTIONS {
        refusals.log(&format!(
            "more than {MAX_CONNECTIONS} connections: one was closed"
        ));
        return;
    }
    if let Err(error) = serve_socket(server, into_file(stream), access) {
        refusals.log(&format!("a connection could not be served: {error:#}"));
    }
}
