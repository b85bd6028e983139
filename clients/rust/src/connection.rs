//! One connection: requests and responses through the client of jsonrpsee, notifications, and the end.
//!
//! jsonrpsee matches responses to requests. Three of its properties are unsuitable for a pipe:
//!
//! - It ends the connection at a response that it cannot match, and at a line that it cannot read. `pipe`
//!   removes both.
//! - It silently drops notifications that a subscriber has not read. So notifications go through a channel of
//!   this module.
//! - It does not show the id of a request, and a cancel needs the id. So this module assigns the ids.

use crate::error::{Disconnected, Error, Refusal};
use crate::json::Json;
use jsonrpsee::async_client::RpcService;
use jsonrpsee::core::middleware::{Notification, RpcServiceT};
use jsonrpsee::types::{Id, Request, ResponsePayload};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::io::AsyncWrite;
use tokio::runtime::Handle;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

/// The largest capacity of the channel, since the channel allocates its whole capacity at once.
const MAX_CAPACITY: usize = 1 << 20;

/// A notification whose params have not been parsed.
#[derive(Debug)]
pub(crate) struct RawNotification {
    pub method: String,
    pub params: Json,
}

/// The part of a client that answers the daemon's questions.
pub(crate) trait Answering: Send + Sync {
    /// If this notification is a question, answers it. If it says that a question is over, drops the
    /// question.
    fn dispatch(&self, connection: &Arc<Connection>, notification: &Arc<RawNotification>);

    /// Drops all open questions after the connection has ended.
    fn end_all(&self);
}

/// Resolves when the daemon must be asked to cancel the call.
pub(crate) type CancelOn = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The state that all clones of a client share. It does not keep the daemon alive.
pub(crate) struct Connection {
    rpc: OnceLock<RpcService>,
    runtime: Handle,
    last_id: AtomicU64,
    /// The ids of requests that have no response yet. Only responses to these requests are passed to
    /// jsonrpsee. The lock is from the standard library, since it is held for one operation on the set only.
    pub(crate) unanswered: Mutex<HashSet<u64>>,
    /// The stdin of the daemon. `None` before the start, and after it was closed.
    pub(crate) writer: tokio::sync::Mutex<Option<Box<dyn AsyncWrite + Send + Unpin>>>,
    /// The sender of notifications. `None` after the last notification.
    feed: Mutex<Option<broadcast::Sender<Arc<RawNotification>>>>,
    questions: Box<dyn Answering>,
    /// Whether new calls are refused. Open calls are still answered.
    is_closing: AtomicBool,
    /// Cancelled at the end of the daemon's output.
    pub(crate) is_read: CancellationToken,
    /// Cancelled when the process must be killed without further waiting.
    pub(crate) is_killed: CancellationToken,
    /// Cancelled at the end of the connection, after `why` is set.
    over: CancellationToken,
    why: OnceLock<Disconnected>,
}

impl Connection {
    pub(crate) fn new(questions: Box<dyn Answering>, capacity: usize) -> Arc<Connection> {
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

    /// Stores the service of jsonrpsee through which requests are sent.
    pub(crate) fn has_service(&self, service: RpcService) {
        let _ = self.rpc.set(service);
    }

    /// Calls a method. `params` is an error if serializing the params has failed.
    pub(crate) async fn call<R: DeserializeOwned>(
        self: &Arc<Self>,
        method: &str,
        params: Result<Json, serde_json::Error>,
        deadline: Duration,
        cancel_on: Option<CancelOn>,
    ) -> Result<R, Error> {
        let params = params.map_err(|error| Error::InvalidCall {
            method: method.to_owned(),
            message: error.to_string(),
        })?;
        let result = self
            .exchange(
                self.service()?,
                method,
                params.into_raw(),
                deadline,
                cancel_on,
            )
            .await?;
        result.parse().map_err(|error| Error::Unexpected {
            method: method.to_owned(),
            message: error.to_string(),
        })
    }

    async fn exchange(
        self: &Arc<Self>,
        rpc: &RpcService,
        method: &str,
        params: Box<RawValue>,
        deadline: Duration,
        mut cancel_on: Option<CancelOn>,
    ) -> Result<Json, Error> {
        let call = PendingRequest::new(self);
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
        // `biased`, because a response that has arrived counts even if the connection has ended since.
        let response = loop {
            tokio::select! {
                biased;
                response = &mut response => break response,
                () = self.over.cancelled() => {
                    call.finish();
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
        call.finish();
        match response {
            Ok(response) => match response.into_response().into_inner().payload {
                ResponsePayload::Success(result) => Ok(result.into_owned().into()),
                ResponsePayload::Error(error) => Err(Error::Refused {
                    method: method.to_owned(),
                    error: Refusal::new(&error),
                }),
            },
            // jsonrpsee drops a request only when the connection ends.
            Err(_) => {
                self.over.cancelled().await;
                Err(self.why_over().into())
            }
        }
    }

    /// Asks the daemon to cancel a request, without waiting for an answer.
    fn cancel(self: &Arc<Self>, id: u64) {
        let Some(rpc) = self.rpc.get().cloned() else {
            return;
        };
        self.runtime.spawn(async move {
            let params = Json::from(serde_json::json!({ "requestId": id })).into_raw();
            let cancel = Notification::new("$/cancel_request".into(), Some(Cow::Owned(params)));
            // This fails if the connection has ended; the request has ended with it.
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

    /// Sends `shutdown`. From here on new calls fail, and earlier calls are still answered.
    pub(crate) async fn shut_down(self: &Arc<Self>, deadline: Duration) -> Result<Json, Error> {
        let params = Json::from(serde_json::json!({})).into_raw();
        let rpc = self.service()?;
        self.is_closing.store(true, Ordering::Relaxed);
        self.exchange(rpc, "shutdown", params, deadline, None).await
    }

    /// Closes the daemon's stdin.
    pub(crate) async fn end_input(&self) {
        self.writer.lock().await.take();
    }

    /// Ends the connection. If it is ended several times, the first reason is kept.
    pub(crate) fn end(&self, why: Disconnected) {
        let _ = self.why.set(why);
        self.over.cancel();
        lock(&self.feed).take();
        self.questions.end_all();
    }

    /// Waits for the end of the connection and returns the reason.
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

    /// Subscribes to the notifications from now on; `None` if the connection has ended.
    pub(crate) fn subscribe(&self) -> Option<broadcast::Receiver<Arc<RawNotification>>> {
        lock(&self.feed).as_ref().map(broadcast::Sender::subscribe)
    }

    /// Sends a notification to all streams, and to the answerer of its event.
    pub(crate) fn publish(self: &Arc<Self>, notification: RawNotification) {
        let notification = Arc::new(notification);
        if let Some(feed) = lock(&self.feed).as_ref() {
            // This fails if there are no streams.
            let _ = feed.send(Arc::clone(&notification));
        }
        self.questions.dispatch(self, &notification);
    }
}

/// Ends the connection when the task that owns this value is dropped. That happens if the runtime ends before
/// the client.
pub(crate) struct EndGuard(pub(crate) Arc<Connection>);

impl Drop for EndGuard {
    fn drop(&mut self) {
        self.0
            .end(Disconnected::because("the runtime of the client has ended"));
    }
}

/// A request that has no response yet. If it is dropped before the response, for example with the future of a
/// call, the request is cancelled.
struct PendingRequest<'a> {
    connection: &'a Arc<Connection>,
    id: u64,
    is_settled: bool,
}

impl<'a> PendingRequest<'a> {
    fn new(connection: &'a Arc<Connection>) -> PendingRequest<'a> {
        let id = connection.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        lock(&connection.unanswered).insert(id);
        PendingRequest {
            connection,
            id,
            is_settled: false,
        }
    }

    fn finish(mut self) {
        self.is_settled = true;
    }
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        if !self.is_settled {
            self.connection.cancel(self.id);
        }
    }
}

/// Ignores poisoning: each lock is held for one operation only, so a panic cannot leave the data half
/// changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
