//! Requests of scope `immediate`: the connection that asks, and the parts of the daemon that answer. They have no place
//! in a queue.

use crate::daemon::Daemon;
use crate::daemon::call::Call;
use crate::daemon::connection::Connection;
use crate::daemon::opened;
use std::sync::Arc;
use treelined_core::error::{Error, Result};
use treelined_files::cancel::Cancel;

/// The request of a handler that needs no session.
pub(super) struct Caller<'a> {
    call: &'a Arc<Call>,
}

impl<'a> Caller<'a> {
    pub(super) fn of(call: &'a Arc<Call>) -> Self {
        Self { call }
    }

    pub(super) fn daemon(&self) -> &'a Daemon {
        &self.call.daemon
    }

    /// The connection that asks.
    pub(super) fn connection(&self) -> &'a Arc<Connection> {
        &self.call.connection
    }

    /// Cancels the request.
    pub(super) fn cancel(&self) -> &'a Cancel {
        &self.call.cancel
    }

    /// Fails with `sessionNotFound` if the session is not open for the connection.
    pub(super) fn check_open(&self, session_id: Option<&str>) -> Result<()> {
        let queues = &self.call.daemon.registry.queues;
        match session_id {
            Some(id) if !queues.is_open_for(self.call.connection.id, id) => {
                Err(Error::session_not_found(id))
            }
            _ => Ok(()),
        }
    }

    /// Notes that the client has introduced itself. If the client is an extension, sessions are opened for it after the
    /// response.
    pub(super) fn introduced(&self) {
        if self.call.connection.extension().is_some() {
            let call = Arc::clone(self.call);
            self.call.after(move || opened::extension_ready(&call));
        }
    }
}
