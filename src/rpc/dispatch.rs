//! From a frame to its handler, and the answer back (protocol.md §1).
//!
//! Runs on the thread that reads. A request takes its place in the queue of its session here, so that the order of
//! requests is fixed before a handler waits. A handler runs here until it has to wait, then on the runtime.

use super::call::Call;
use super::reply::Reply;
use super::request::{Request, parse};
use super::table::{self, Handling};
use crate::daemon::Daemon;
use crate::daemon::connection::Connection;
use crate::daemon::convert;
use crate::error::{Error, Kind, Result};
use crate::json;
use crate::lock::lock;
use crate::stdio::Class;
use crate::wire::RequestId;
use futures_util::FutureExt;
use jsonrpsee::types::{Id, Response, ResponsePayload};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Notify;

/// Methods that work while the client does not read: answers and cancels (protocol.md §1).
const ALWAYS: [&str; 4] = [
    "answer_event",
    "abort_navigation",
    "$/cancel_request",
    "$/cancelRequest",
];

/// Methods whose requests wait while more input is here, so that they are written together (session-file.md §3).
const GATHERED: [&str; 4] = [
    "append_message",
    "append_entries",
    "append_label",
    "set_session_name",
];
/// At most so many such requests wait, and so many bytes of them.
const MAX_GATHERED: usize = 256;
const MAX_GATHERED_BYTES: usize = 256 << 10;

/// Takes frames to handlers.
pub struct Dispatcher {
    connection: Arc<Connection>,
    runtime: Handle,
    running: Arc<Running>,
    gathered: Mutex<Gathered>,
}

/// Requests that are held back, and what came behind them.
#[derive(Default)]
struct Gathered {
    /// Whether appends wait for more input.
    has_begun: bool,
    requests: Vec<Begun>,
    bytes: usize,
}

/// A request whose handler has been polled.
struct Begun {
    future: Handling,
    /// The outcome, if the handler has ended.
    done: Option<Done>,
    call: Arc<Call>,
    /// As sent; `None` for a notification.
    raw_id: Option<Vec<u8>>,
    running: Counted,
}

/// `None` if the handler panicked.
type Done = Option<Result<Reply>>;

/// One of the requests that have not been answered, until dropped.
struct Counted {
    running: Arc<Running>,
    bytes: usize,
}

impl Counted {
    fn new(running: &Arc<Running>, bytes: usize) -> Self {
        running.bytes.fetch_add(bytes, Ordering::AcqRel);
        running.count.fetch_add(1, Ordering::AcqRel);
        Self {
            running: Arc::clone(running),
            bytes,
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.running.bytes.fetch_sub(self.bytes, Ordering::AcqRel);
        if self.running.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.running.idle.notify_waiters();
        }
    }
}

/// Requests that may wait for something at a time; further ones are not read.
const MAX_RUNNING: usize = 4096;
/// Results up to this size, in bytes, are copied into their response.
const SMALL: usize = 64 << 10;
/// Longest name of a method that an error repeats, in characters.
const MAX_ECHO: usize = 100;
/// How often a reader that waits looks whether it may go on.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Requests that have not been answered yet.
#[derive(Default)]
struct Running {
    count: AtomicUsize,
    /// Of their frames.
    bytes: AtomicUsize,
    idle: Notify,
}

impl Dispatcher {
    pub fn new(connection: Arc<Connection>, runtime: Handle) -> anyhow::Result<Self> {
        Ok(Self {
            connection,
            runtime,
            running: Arc::default(),
            gathered: Mutex::default(),
        })
    }

    fn daemon(&self) -> &Daemon {
        &self.connection.daemon
    }

    /// Takes one frame; whatever it is, it is answered exactly once, now or later. What can be done
    /// together with what follows is held back if `more` is here already.
    pub fn frame(&self, frame: &[u8], more: bool) {
        match parse(frame) {
            Ok(request) => self.request(request, more),
            Err(error) => self.refuse(b"null", &error),
        }
    }

    /// Answers a frame that was too long to be read.
    pub fn too_large(&self, id: Option<&[u8]>) {
        let limit = self.daemon().config.max_frame_bytes;
        let error = Error::new(
            Kind::RequestTooLarge,
            format!("a frame may have at most {limit} bytes"),
        );
        self.refuse(id.unwrap_or(b"null"), &error);
    }

    /// Answers what is no frame at all.
    pub fn bad_block(&self) {
        let error = Error::new(
            Kind::ParseError,
            "a header block without a valid Content-Length",
        );
        self.refuse(b"null", &error);
    }

    /// Waits until not too many requests wait, or until `unless` holds.
    pub fn wait_for_room(&self, unless: &dyn Fn() -> bool) {
        if self.is_full() {
            self.settle();
        }
        while self.is_full() && !unless() {
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    fn is_full(&self) -> bool {
        self.running.count.load(Ordering::Acquire) >= MAX_RUNNING
            || self.running.bytes.load(Ordering::Acquire) > self.daemon().config.max_frame_bytes
    }

    /// Writes the appends that wait for more input. To be called before the thread that reads waits for anything.
    pub fn settle(&self) {
        let gathered = std::mem::take(&mut *self.gathered());
        if !gathered.has_begun {
            return;
        }
        let _entered = self.runtime.enter();
        self.connection.daemon.queues.settle();
        for mut begun in gathered.requests {
            let done = begun.done.take().or_else(|| poll_once(&mut begun.future));
            match done {
                Some(done) => answer(&begun.call, begun.raw_id.as_deref(), done),
                None => self.spawn(begun),
            }
        }
    }

    fn gathered(&self) -> MutexGuard<'_, Gathered> {
        lock(&self.gathered)
    }

    /// Waits until every request has been answered.
    pub async fn drained(&self) {
        self.settle();
        loop {
            let idle = self.running.idle.notified();
            if self.running.count.load(Ordering::Acquire) == 0 {
                return;
            }
            idle.await;
        }
    }

    fn request(&self, request: Request<'_>, more: bool) {
        let Request { id, method, params } = request;
        let known = table::find(&method);
        // A name that is not in the table may be anything: it stays out of the log.
        let logged = known.as_ref().map(|known| (known.name, known.scope.name()));
        let (name, scope) = logged.unwrap_or(("unknown", ""));
        tracing::debug!(method = name, scope, "request");
        let is_gathered = GATHERED.contains(&&*method) && self.gathers(more);
        if !is_gathered {
            self.settle();
        }
        let raw_id = id.as_ref().map(|(_, raw)| *raw);
        if let Err(error) = self.admit(id.as_ref().map(|(id, _)| id), &method) {
            // An id that is in flight names another request.
            match (raw_id, error.kind) {
                (Some(_), Kind::InvalidRequest) => self.refuse(b"null", &error),
                (Some(raw_id), _) => self.refuse(raw_id, &error),
                (None, _) => {}
            }
            return;
        }
        let Some(known) = known else {
            if let Some(raw_id) = raw_id {
                let named: String = method.chars().take(MAX_ECHO).collect();
                let error = Error::new(Kind::MethodNotFound, format!("no method {named:?}"));
                self.refuse(raw_id, &error);
            }
            return;
        };
        let call = Call::new(&self.connection, id.map(|(id, _)| id), is_gathered);
        let _entered = self.runtime.enter();
        match known.begin(params, Arc::clone(&call)) {
            Some(future) => {
                let size = params.map_or(0, str::len);
                self.run(future, call, raw_id, size, is_gathered);
            }
            None => answer(&call, raw_id, None),
        }
    }

    /// Whether an append waits for what follows: if more is here, or others wait already.
    fn gathers(&self, more: bool) -> bool {
        let mut gathered = self.gathered();
        if more && !gathered.has_begun {
            gathered.has_begun = true;
        }
        gathered.has_begun
    }

    /// Refuses requests that must not reach a handler.
    fn admit(&self, id: Option<&RequestId>, method: &str) -> Result<()> {
        if id.is_some_and(|id| self.connection.in_flight().contains_key(id)) {
            return Err(Error::new(
                Kind::InvalidRequest,
                "a request with this id is still in flight",
            ));
        }
        if self.daemon().is_ending() {
            return Err(Error::new(
                Kind::ShuttingDown,
                "the daemon is shutting down",
            ));
        }
        let stalled =
            (self.connection.outbox.is_over_limit() || self.is_full()) && self.daemon().is_asking();
        if stalled && !ALWAYS.contains(&method) {
            return Err(Error::new(
                Kind::Overloaded,
                "too much is unread or waits already; nothing was executed",
            ));
        }
        Ok(())
    }

    fn run(
        &self,
        mut future: Handling,
        call: Arc<Call>,
        raw_id: Option<&[u8]>,
        size: usize,
        is_gathered: bool,
    ) {
        let done = poll_once(&mut future);
        let begun = |done| Begun {
            future,
            done,
            call: Arc::clone(&call),
            raw_id: raw_id.map(<[u8]>::to_vec),
            running: Counted::new(&self.running, size),
        };
        let mut gathered = self.gathered();
        // What is through already is answered in its place behind them.
        if is_gathered && (done.is_none() || !gathered.requests.is_empty()) {
            gathered.requests.push(begun(done));
            gathered.bytes += size;
            let is_much =
                gathered.requests.len() >= MAX_GATHERED || gathered.bytes >= MAX_GATHERED_BYTES;
            drop(gathered);
            if is_much {
                self.settle();
            }
            return;
        }
        drop(gathered);
        match done {
            Some(done) => answer(&call, raw_id, done),
            None => self.spawn(begun(None)),
        }
    }

    /// Leaves the rest of a request to the runtime.
    fn spawn(&self, begun: Begun) {
        let Begun {
            future,
            call,
            raw_id,
            running,
            ..
        } = begun;
        if let Some(id) = &call.id {
            let mut in_flight = self.connection.in_flight();
            in_flight.insert(id.clone(), call.in_flight());
        }
        self.runtime.spawn(async move {
            let done = AssertUnwindSafe(future).catch_unwind().await.ok();
            if let Some(id) = &call.id {
                call.connection.in_flight().remove(id);
            }
            answer(&call, raw_id.as_deref(), done);
            drop(call);
            drop(running);
        });
    }

    fn refuse(&self, raw_id: &[u8], error: &Error) {
        self.connection
            .send(error_response(raw_id, error), Class::Keep);
    }
}

fn poll_once(future: &mut Handling) -> Option<Done> {
    let mut context = Context::from_waker(Waker::noop());
    let poll = || future.as_mut().poll(&mut context);
    match catch_unwind(AssertUnwindSafe(poll)) {
        Ok(Poll::Ready(done)) => Some(Some(done)),
        Ok(Poll::Pending) => None,
        Err(_) => Some(None),
    }
}

/// Queues the response, if one is due, then what is to be said after it.
fn answer(call: &Call, raw_id: Option<&[u8]>, done: Done) {
    if let Some(raw_id) = raw_id {
        let limit = call.connection.client_frame_bytes();
        let failed = || Error::new(Kind::InternalError, "the handler failed");
        let mut response = match done.unwrap_or_else(|| Err(failed())) {
            Ok(Reply::Bytes(result)) if result.len() <= SMALL => success(raw_id, &result),
            Ok(Reply::Bytes(result)) => around(raw_id, vec![result]),
            Ok(Reply::Pieces(result)) => around(raw_id, result),
            Err(error) => {
                let error = error_response(raw_id, &error);
                // The kind is the contract; details are what there is room for.
                Reply::Bytes(match error.len() > limit {
                    true => without_details(&error),
                    false => error,
                })
            }
        };
        let length = response.len();
        if length > limit {
            response = Reply::Bytes(error_response(raw_id, &too_large(length, limit)));
        }
        // On one line already, and not to be looked through again: it may be large.
        match response {
            Reply::Bytes(response) => call.connection.outbox.push(response, Class::Keep),
            Reply::Pieces(pieces) => call.connection.outbox.push_pieces(pieces),
        }
    }
    let after = std::mem::take(&mut *lock(&call.after));
    for say in after {
        say();
    }
}

fn too_large(bytes: usize, limit: usize) -> Error {
    let message = format!("the response has {bytes} bytes, the client takes {limit}");
    Error::new(Kind::ResponseTooLarge, message)
}

fn without_details(response: &[u8]) -> Vec<u8> {
    let error = json::get(response, "error").unwrap_or(b"{}");
    let data = json::get(error, "data").unwrap_or(b"{}");
    let error = json::with_member(error, "data", &json::without_member(data, "details"));
    json::with_member(response, "error", &error)
}

/// A response with this result.
fn success(raw_id: &[u8], result: &[u8]) -> Reply {
    let mut response = success_head(raw_id, result.len() + 1);
    response.extend_from_slice(result);
    response.push(b'}');
    Reply::Bytes(response)
}

/// A response around a result that is too large to be copied.
fn around(raw_id: &[u8], mut result: Vec<Vec<u8>>) -> Reply {
    result.insert(0, success_head(raw_id, 0));
    result.push(b"}".to_vec());
    Reply::Pieces(result)
}

/// Up to the result, with room for `more` bytes.
fn success_head(raw_id: &[u8], more: usize) -> Vec<u8> {
    const BEFORE: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":";
    const BETWEEN: &[u8] = b",\"result\":";
    let mut head = Vec::with_capacity(BEFORE.len() + raw_id.len() + BETWEEN.len() + more);
    head.extend_from_slice(BEFORE);
    json::push_raw(&mut head, raw_id);
    head.extend_from_slice(BETWEEN);
    head
}

/// On one line, the id as the client spelled it.
fn error_response(raw_id: &[u8], error: &Error) -> Vec<u8> {
    let payload: ResponsePayload<'_, ()> = ResponsePayload::error(convert::error(error));
    let response = serde_json::to_vec(&Response::new(payload, Id::Null)).unwrap_or_default();
    convert::on_one_line(json::with_member(&response, "id", raw_id))
}
