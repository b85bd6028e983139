//! The client, a handle that can be cloned.

use crate::connection::Connection;
use crate::error::{Disconnected, Error};
use crate::generated::InitializeResult;
use crate::notifications::Notifications;
use jsonrpsee::async_client::{Client as RpcClient, RpcService};
use std::sync::Arc;
use std::time::Duration;

/// A connection to a daemon, with a function for each method of the protocol. Clones share the connection.
///
/// The functions return [`Call`](crate::Call)s: set the optional params of a call, then `.await` it.
///
/// [`close`](Client::close) ends the daemon after it has answered all calls. Dropping the last clone closes
/// the pipes of the daemon, and kills the daemon if it does not end by itself. Then it is unknown whether
/// unanswered calls took effect.
#[derive(Clone)]
pub struct Client {
    owner: Arc<ConnectionOwner>,
    server: Arc<InitializeResult>,
    /// The session of calls that do not name one.
    session: Option<Arc<str>>,
}

/// Ends the connection when it is dropped.
pub(crate) struct ConnectionOwner {
    pub connection: Arc<Connection>,
    /// Runs the tasks that read and write. They end when this is dropped.
    pub _rpc: RpcClient<RpcService>,
    pub deadline: Option<Duration>,
    pub grace: Duration,
    pub pid: Option<u32>,
}

impl Drop for ConnectionOwner {
    fn drop(&mut self) {
        self.connection
            .end(Disconnected::because("the client was dropped"));
    }
}

impl Client {
    pub(crate) fn new(owner: ConnectionOwner, server: InitializeResult) -> Client {
        Client {
            owner: Arc::new(owner),
            server: Arc::new(server),
            session: None,
        }
    }

    /// Returns a client whose calls are about this session, unless a call names another one. Without a
    /// session the daemon uses the open one, if exactly one is open.
    #[must_use = "the client itself stays as it is"]
    pub fn with_session(&self, session_id: &str) -> Client {
        Client {
            session: Some(session_id.into()),
            ..self.clone()
        }
    }

    /// Streams the notifications that arrive from now on. When a call returns, the stream contains every
    /// notification that the daemon sent before the response.
    pub fn notifications(&self) -> Notifications {
        Notifications::new(self.connection().subscribe())
    }

    /// Returns the daemon's answer to `initialize`.
    pub fn server(&self) -> &InitializeResult {
        &self.server
    }

    /// Returns the process id of the daemon, if this client started it.
    pub fn pid(&self) -> Option<u32> {
        self.owner.pid
    }

    /// Resolves when the connection has ended. Returns the error that the open calls get.
    pub async fn closed(&self) -> Disconnected {
        self.connection().over().await
    }

    /// Returns whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.connection().is_over()
    }

    /// Asks the daemon to shut down, closes its stdin, and waits until it has ended. Open calls are answered,
    /// and new calls fail. The daemon is killed after the builder's `grace`. Fails if the daemon was killed,
    /// if it ended with an error, or if it had ended before.
    pub async fn close(&self) -> Result<(), Error> {
        let connection = self.connection();
        if connection.is_over() {
            return ending(connection.why_over());
        }
        close(connection, self.owner.grace).await
    }

    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.owner.connection
    }

    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.owner.deadline
    }

    pub(crate) fn session_id(&self) -> Option<String> {
        self.session.as_deref().map(str::to_owned)
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("pid", &self.owner.pid)
            .field("session", &self.session)
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

/// Shuts down the daemon; kills it if it has not ended after `grace`.
pub(crate) async fn close(connection: &Arc<Connection>, grace: Duration) -> Result<(), Error> {
    let asked = async {
        // After `shutdown` the daemon refuses new requests, and gives running summaries 5 s; if only its
        // stdin were closed, they would continue. If the daemon does not answer, its stdin is closed
        // nevertheless.
        let _ = connection.shut_down(grace).await;
        connection.end_input().await;
        connection.over().await
    };
    match tokio::time::timeout(grace, asked).await {
        Ok(why) => ending(why),
        Err(_) => {
            connection.is_killed.cancel();
            ending(connection.over().await)
        }
    }
}

/// Fails unless the daemon ended by itself and without an error.
fn ending(why: Disconnected) -> Result<(), Error> {
    match why.status {
        Some(status) if status.success() => Ok(()),
        None if why.reason == crate::process::CLOSED => Ok(()),
        _ => Err(why.into()),
    }
}
