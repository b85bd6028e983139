//! Requests of scope `immediate`: the connection that asks, and the parts of the daemon that answer. They have no place
//! in a queue.

use crate::daemon::Daemon;
use crate::daemon::call::Call;
use crate::daemon::connection::Connection;
use crate::daemon::opened;
use std::future::Future;
use std::sync::Arc;
use treelined_core::error::Result;
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

    /// Fails with `sessionNotFound` if the session is not open for the connection. Waits only while an earlier request
    /// of the connection may open the session, and not for other requests of the session. Such a request may wait for
    /// an answer of this client, and the client may ask a person before it answers.
    pub(super) fn check_open(
        &self,
        session_id: Option<&str>,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        let queues = &self.call.daemon.registry.queues;
        let id = session_id.filter(|id| !queues.is_open_for(self.call.connection.id, id));
        let place = id.map(|id| self.call.place(Some(id)));
        async move {
            match place {
                Some(place) => place.await.map(drop),
                None => Ok(()),
            }
        }
    }

    /// The request, for work that outlives the handler.
    pub(super) fn call(&self) -> Arc<Call> {
        Arc::clone(self.call)
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
