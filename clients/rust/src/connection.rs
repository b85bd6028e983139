//! One connection: requests and their answers over jsonrpsee's client, what comes unasked, the end.
//!
//! jsonrpsee matches answers to requests. What it would do wrong over a pipe is done here: it ends at an
//! answer that it cannot match and at a line that it cannot read, so neither reaches it; it drops what
//! slow subscribers have not read without a word, so notifications never reach it either; and it tells
//! nobody the id of a request, which is needed to cancel it, so requests are given their ids here.

use crate::error::{Disconnected, Error, Refusal};
use crate::json::Json;
use crate::question::Questions;
use jsonrpsee::async_client::{Client as RpcClient, ClientBuilder, RpcService};
use jsonrpsee::core::middleware::{Notification, RpcServiceBuilder, RpcServiceT};
use jsonrpsee::types::{Id, Request, ResponsePayload};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

/// jsonrpsee's own deadline, which none of ours reaches. Its timers overflow at `Duration::MAX`.
const NEVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Room for unread notifications is made at once.
const MAX_CAPACITY: usize = 1 << 20;

/// A notification as it came.
#[derive(Debug)]
pub(crate) struct Said {
    pub method: String,
    pub params: Json,
}

/// Cancels a call: asks the daemon to cancel it, and the daemon decides.
pub(crate) type CancelOn = Pin<Box<dyn Future<Output = ()> + Send>>;

/// State that all handles of a client share. It does not keep the daemon alive.
pub(crate) struct Connection {
    rpc: OnceLock<RpcService>,
    runtime: Handle,
    last_id: AtomicU64,
    /// Ids that an answer is still to come for: the only answers that jsonrpsee gets to see. A `std`
    /// lock, since it is held for one operation on the set.
    pub(crate) unanswered: Mutex<HashSet<u64>>,
    /// None once the daemon's input has been ended.
    pub(crate) writer: tokio::sync::Mutex<Option<Box<dyn AsyncWrite + Send + Unpin>>>,
    /// None once nothing more will be said.
    feed: Mutex<Option<broadcast::Sender<Arc<Said>>>>,
    pub(crate) questions: Questions,
    /// No more calls are made, but those that were are still answered.
    is_closing: AtomicBool,
    /// Nothing more can be read.
    pub(crate) is_read: CancellationToken,
    /// The process shall not be waited for any longer.
    pub(crate) is_killed: CancellationToken,
    /// The end; `why` is set before.
    over: CancellationToken,
    why: OnceLock<Disconnected>,
}

impl Connection {
    pub(crate) fn new(questions: Questions, capacity: usize) -> Arc<Connection> {
        Arc::new(Connection {
            rpc: OnceLock::new(),
            runtime: Handle::current(),
            last_id: AtomicU64::new(0),
            unanswered: Mutex::default(),
            writer: tokio::sync::Mutex::new(None),
            feed: Mutex::new(Some(broadcast::Sender::new(
                capacity.clamp(1, MAX_CAPACITY),
            ))),
            questions,
            is_closing: AtomicBool::new(false),
            is_read: CancellationToken::new(),
            is_killed: CancellationToken::new(),
            over: CancellationToken::new(),
            why: OnceLock::new(),
        })
    }

    /// Begins to read and to write. The connection is read until what is returned is dropped.
    pub(crate) async fn start<R, W>(self: &Arc<Self>, reader: R, writer: W) -> RpcClient<RpcService>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        *self.writer.lock().await = Some(Box::new(writer));
        let connection = Arc::clone(self);
        // Instead of the default logger, which formats every message. It is where the service shows.
        let middleware = RpcServiceBuilder::new().layer_fn(move |service: RpcService| {
            let _ = connection.rpc.set(service.clone());
            service
        });
        ClientBuilder::new()
            .set_rpc_middleware(middleware)
            .request_timeout(NEVER)
            .build_with_tokio(
                crate::pipe::Sender::new(Arc::clone(self)),
                crate::pipe::Receiver::new(Arc::clone(self), reader),
            )
    }

    /// Calls a method and gives its result as it came.
    pub(crate) async fn request(
        self: &Arc<Self>,
        method: &str,
        params: Box<RawValue>,
        deadline: Duration,
        cancel_on: Option<CancelOn>,
    ) -> Result<Json, Error> {
        self.exchange(self.service()?, method, params, deadline, cancel_on)
            .await
    }

    async fn exchange(
        self: &Arc<Self>,
        rpc: &RpcService,
        method: &str,
        params: Box<RawValue>,
        deadline: Duration,
        mut cancel_on: Option<CancelOn>,
    ) -> Result<Json, Error> {
        let call = InFlight::new(self);
        let response = rpc.call(Request::owned(
            method.to_owned(),
            Some(params),
            Id::Number(call.id),
        ));
        let cancelled = async {
            match cancel_on.as_mut() {
                Some(cancel_on) => cancel_on.await,
                None => std::future::pending().await,
            }
        };
        let expired = tokio::time::sleep(deadline);
        tokio::pin!(response, cancelled, expired);
        let mut is_cancelled = false;
        // In this order: an answer that has come counts, whatever else has happened since.
        let response = loop {
            tokio::select! {
                biased;
                response = &mut response => break response,
                () = self.over.cancelled() => {
                    call.settled();
                    return Err(self.why_over().into());
                }
                () = &mut cancelled, if !is_cancelled => {
                    is_cancelled = true;
                    self.cancel(call.id);
                }
                () = &mut expired => {
                    return Err(Error::Timeout { method: method.to_owned(), after: deadline });
                }
            }
        };
        call.settled();
        match response {
            Ok(response) => match response.into_response().into_inner().payload {
                ResponsePayload::Success(result) => Ok(result.into_owned().into()),
                ResponsePayload::Error(error) => Err(Error::Refused {
                    method: method.to_owned(),
                    error: Refusal::new(&error),
                }),
            },
            // jsonrpsee has ended, which it does only when the connection does.
            Err(_) => {
                self.over.cancelled().await;
                Err(self.why_over().into())
            }
        }
    }

    /// Asks the daemon to cancel a request. Does not wait.
    fn cancel(self: &Arc<Self>, id: u64) {
        let Some(rpc) = self.rpc.get().cloned() else {
            return;
        };
        self.runtime.spawn(async move {
            let params = Json::from(serde_json::json!({ "requestId": id })).into_raw();
            let cancel = Notification::new("$/cancel_request".into(), Some(Cow::Owned(params)));
            // Where nobody listens any more there is nothing to cancel.
            let _ = rpc.notification(cancel).await;
        });
    }

    fn service(&self) -> Result<&RpcService, Error> {
        if let Some(why) = self.why.get() {
            return Err(why.clone().into());
        }
        self.rpc
            .get()
            .filter(|_| !self.is_closing.load(Ordering::Relaxed))
            .ok_or_else(|| Disconnected::because("the client is closed").into())
    }

    /// Asks the daemon to end. From now on calls fail; those made before are still answered.
    pub(crate) async fn shut_down(self: &Arc<Self>, deadline: Duration) -> Result<Json, Error> {
        let params = Json::from(serde_json::json!({})).into_raw();
        let rpc = self.service()?;
        self.is_closing.store(true, Ordering::Relaxed);
        self.exchange(rpc, "shutdown", params, deadline, None).await
    }

    /// Ends the daemon's input.
    pub(crate) async fn end_input(&self) {
        self.writer.lock().await.take();
    }

    /// The end. The first reason counts.
    pub(crate) fn end(&self, why: Disconnected) {
        let _ = self.why.set(why);
        self.over.cancel();
        lock(&self.feed).take();
        self.questions.all_over();
    }

    /// Resolves at the end, with its reason.
    pub(crate) async fn over(&self) -> Disconnected {
        self.over.cancelled().await;
        self.why_over()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.is_cancelled()
    }

    pub(crate) fn why_over(&self) -> Disconnected {
        self.why
            .get()
            .cloned()
            .unwrap_or_else(|| Disconnected::because("the connection has ended"))
    }

    /// Subscribes to later notifications; `None` if the connection has ended.
    pub(crate) fn subscribe(&self) -> Option<broadcast::Receiver<Arc<Said>>> {
        lock(&self.feed).as_ref().map(broadcast::Sender::subscribe)
    }

    /// Hands a notification to all who listen, and to who answers it.
    pub(crate) fn said(self: &Arc<Self>, said: Said) {
        let said = Arc::new(said);
        if let Some(feed) = lock(&self.feed).as_ref() {
            // Fails if nobody listens.
            let _ = feed.send(Arc::clone(&said));
        }
        self.questions.heard(self, &said);
    }
}

/// Ends the connection with the task that looks after the daemon: when the runtime does before the client,
/// the task is dropped, and nobody else would notice the end.
pub(crate) struct EndsWith(pub(crate) Arc<Connection>);

impl Drop for EndsWith {
    fn drop(&mut self) {
        self.0
            .end(Disconnected::because("the runtime of the client has ended"));
    }
}

/// A request on its way. Dropped without an answer, as when its future is, it is cancelled.
struct InFlight<'a> {
    connection: &'a Arc<Connection>,
    id: u64,
    is_settled: bool,
}

impl<'a> InFlight<'a> {
    fn new(connection: &'a Arc<Connection>) -> InFlight<'a> {
        let id = connection.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        lock(&connection.unanswered).insert(id);
        InFlight {
            connection,
            id,
            is_settled: false,
        }
    }

    fn settled(mut self) {
        self.is_settled = true;
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if !self.is_settled {
            self.connection.cancel(self.id);
        }
    }
}

/// Ignores poisoning: each lock is held for one operation, so a panic leaves the data whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
