//! The beginning and the end of connections.

use super::Daemon;
use super::client::Transport;
use super::closing;
use super::connection::{Connection, Host};
use crate::stdio::Outbox;
use std::sync::Arc;

impl Connection {
    /// A connection whose input the daemon cannot end.
    pub fn new(daemon: &Arc<Daemon>, outbox: Arc<Outbox>) -> Arc<Self> {
        let transport = Transport {
            cwd: Some(daemon.settings.cwd.clone()),
            end_input: Box::new(|| {}),
            extension: None,
            is_page: false,
            rights: Arc::default(),
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

    /// Removes everything that belongs to the connection, after its requests are answered. Each part of the daemon has
    /// one line here.
    pub async fn ended(self: &Arc<Self>, daemon: &Arc<Daemon>) {
        self.keep_watch(None);
        daemon.list_watch.unwatch(self.id);
        if let Some(run) = self.extension() {
            let extensions = &daemon.questions.extensions;
            extensions.set_ended(run.number, self.id);
        }
        daemon.offers.remove_all(self.id);
        closing::close_sessions_of(daemon, self).await;
    }

    /// Removes the connection, which has ended, after its output is written.
    pub fn remove(&self, daemon: &Daemon) {
        daemon.connections.remove(self.id);
    }
}
