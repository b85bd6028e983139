//! The client: a handle on a connection, to be cloned at will.

use crate::builder::Builder;
use crate::call::Call;
use crate::connection::Connection;
use crate::error::{Disconnected, Error};
use crate::generated::InitializeResult;
use crate::notifications::Notifications;
use jsonrpsee::async_client::{Client as RpcClient, RpcService};
use serde::Serialize;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// A connection to a daemon, with a function for each method of the protocol. Clones share it.
///
/// The functions return [`Call`]s: give them the params that may be left out, and `.await` them.
///
/// [`close`](Client::close) ends the daemon in good order. When the last clone is dropped instead, the
/// daemon's pipes are closed and it is killed if it does not end, so that no process is left behind; calls
/// that it has not answered by then may or may not have been carried out.
#[derive(Clone)]
pub struct Client {
    life: Arc<Life>,
    server: Arc<InitializeResult>,
    /// Of calls that name no session.
    session: Option<Arc<str>>,
}

/// Ends the connection when it is dropped.
pub(crate) struct Life {
    pub connection: Arc<Connection>,
    /// Reads and writes for as long as it lives.
    pub _rpc: RpcClient<RpcService>,
    pub deadline: Option<Duration>,
    pub grace: Duration,
    pub pid: Option<u32>,
}

impl Drop for Life {
    fn drop(&mut self) {
        self.connection
            .end(Disconnected::because("the client was dropped"));
    }
}

impl Client {
    /// Begins to say which daemon to start, and what for.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn new(life: Life, server: InitializeResult) -> Client {
        Client {
            life: Arc::new(life),
            server: Arc::new(server),
            session: None,
        }
    }

    /// Calls a method by its name in the protocol, with params as there. The functions named after the
    /// methods are this with types.
    ///
    /// ```no_run
    /// # async fn example(client: treelined_client::Client) -> Result<(), treelined_client::Error> {
    /// use treelined_client::Json;
    ///
    /// let leaf: Json = client.call("get_leaf", serde_json::json!({})).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn call<P: Serialize, R>(
        &self,
        method: impl Into<Cow<'static, str>>,
        params: P,
    ) -> Call<P, R> {
        Call::new(self.clone(), method.into(), params)
    }

    /// The same client, whose calls are about that session where they name no other. Without it the daemon
    /// takes the one session that is open.
    #[must_use = "the client itself stays as it is"]
    pub fn with_session(&self, session_id: &str) -> Client {
        Client {
            session: Some(session_id.into()),
            ..self.clone()
        }
    }

    /// Streams the notifications that arrive from now on. When a call returns, the stream holds every
    /// notification that the daemon sent before the response.
    pub fn notifications(&self) -> Notifications {
        Notifications::new(self.connection().subscribe())
    }

    /// Returns the daemon's answer to `initialize`.
    pub fn server(&self) -> &InitializeResult {
        &self.server
    }

    /// The daemon's process, if this client started it.
    pub fn pid(&self) -> Option<u32> {
        self.life.pid
    }

    /// Resolves when the connection has ended, with the error that open calls fail with.
    pub async fn closed(&self) -> Disconnected {
        self.connection().over().await
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.connection().is_over()
    }

    /// Lets the daemon finish what it has accepted, ends its input, and waits until it is gone; after the
    /// builder's `grace` it is killed. Calls that are open are answered, new ones fail. Fails if the daemon
    /// did not end by itself and in good order, or had ended before.
    pub async fn close(&self) -> Result<(), Error> {
        let connection = self.connection();
        if connection.is_over() {
            return ending(connection.why_over());
        }
        close(connection, self.life.grace).await
    }

    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.life.connection
    }

    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.life.deadline
    }

    pub(crate) fn session_id(&self) -> Option<String> {
        self.session.as_deref().map(str::to_owned)
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("pid", &self.life.pid)
            .field("session", &self.session)
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

/// Ends the daemon in good order, if it goes within `grace`.
pub(crate) async fn close(connection: &Arc<Connection>, grace: Duration) -> Result<(), Error> {
    let asked = async {
        // It says no to what is new and lets summaries run for seconds only, which the end of its input
        // alone would not. One that does not answer is ended all the same.
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

/// Whether that was an end in good order.
fn ending(why: Disconnected) -> Result<(), Error> {
    match why.status {
        Some(status) if status.success() => Ok(()),
        None if why.reason == crate::process::CLOSED => Ok(()),
        _ => Err(why.into()),
    }
}
