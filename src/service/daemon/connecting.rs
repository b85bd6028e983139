//! How connections begin and end, and the questions to their clients.

use super::Daemon;
use super::connection::{Connection, Host, Transport};
use crate::ask::Answerer;
use crate::stdio::Outbox;
use std::sync::Arc;
use treelined_core::id::ConnectionId;

impl Connection {
    /// A connection whose input ends by itself.
    pub fn new(daemon: &Arc<Daemon>, outbox: Arc<Outbox>) -> Arc<Self> {
        let transport = Transport {
            cwd: Some(daemon.settings.cwd.clone()),
            end_input: Box::new(|| {}),
            extension: None,
            is_page: false,
        };
        Self::over(transport, daemon, outbox)
    }

    /// A connection over this transport, with the next id of the daemon.
    pub(crate) fn over(transport: Transport, daemon: &Daemon, outbox: Arc<Outbox>) -> Arc<Self> {
        let host = Host {
            max_frame_bytes: daemon.settings.max_frame_bytes,
            is_ending: Arc::clone(&daemon.ending),
        };
        let connections = &daemon.connections;
        connections.add(|id| Self::with_id(id, transport, host, outbox))
    }
}

impl Daemon {
    /// Removes everything that belongs to a connection whose requests are answered: each room adds one line.
    pub async fn connection_ended(self: &Arc<Self>, connection: &Arc<Connection>) {
        connection.keep_watch(None);
        self.unwatch_sessions(connection);
        self.extension_ended(connection);
        self.commands().remove_all(connection.id);
        self.change_renderers(|renderers| renderers.remove_all(connection.id));
        self.close_sessions_of(connection).await;
    }

    /// Drops a connection that has ended, once its output is written.
    pub fn remove_connection(&self, connection: &Connection) {
        self.connections.remove(connection.id);
    }

    /// Whether a question waits for this client.
    pub(crate) fn is_asked(&self, client: ConnectionId) -> bool {
        self.asks.waits_for(Answerer::Client(client)) || self.peers.is_asked(client)
    }

    /// Takes a client out of all questions, as one without an opinion. Questions of its own operations end as aborted.
    pub(crate) fn leave_questions(&self, client: ConnectionId) {
        self.asks.leave(client, None);
        self.peers.leave(client, None);
    }
}
