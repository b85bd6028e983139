//! The daemon's part in extensions: when one is ready, and the sessions that are open for it (protocol.md §11).

use super::Daemon;
use super::connection::Connection;
use std::sync::Arc;

impl Daemon {
    /// Notes that the extension of a connection has introduced itself.
    pub(crate) fn extension_ready(&self, connection: &Arc<Connection>) {
        if let Some(run) = connection.extension() {
            self.extensions.set_ready(run.number, connection.id);
            run.ready();
        }
    }

    /// Notes that the connection of an extension has ended.
    pub(crate) fn extension_ended(&self, connection: &Connection) {
        if let Some(run) = connection.extension() {
            self.extensions.set_ended(run.number, connection.id);
        }
    }
}
