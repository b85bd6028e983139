//! From a frame to its handler, and the answer back (protocol.md §1).
//!
//! Runs on the thread that reads: a handler is polled once where it arrived, which keeps the order of
//! requests, and goes to the runtime only if it has to wait.

use super::convert;
use super::method;
use super::server::{Call, Server};
use crate::error::{Error, Kind, Result};
use crate::json::{self, Members};
use crate::stdio::Class;
use crate::wire::RequestId;
use futures_util::FutureExt;
use jsonrpsee::core::server::{MethodCallback, MethodResponse, Methods};
use jsonrpsee::types::{Id, Params, Response, ResponsePayload};
use jsonrpsee::{ConnectionId, Extensions};
use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Notify;

/// What works while the client does not read: answers and cancels (protocol.md §1).
const ALWAYS: [&str; 4] = [
    "answer_event",
    "abort_navigation",
    "$/cancel_request",
    "$/cancelRequest",
];

/// What is held back while more of the input is here, so that it is written together (storage.md §3).
const GATHERED: [&str; 4] = [
    "append_message",
    "append_entries",
    "append_label",
    "set_session_name",
];
/// How much of it, in requests and in bytes.
const MAX_GATHERED: usize = 256;
const MAX_GATHERED_BYTES: usize = 256 << 10;

/// Takes frames to handlers.
pub struct Dispatcher {
    server: Arc<Server>,
    methods: Methods,
    runtime: Handle,
    running: Arc<Running>,
    gathered: Mutex<Gathered>,
}

/// Requests that are held back, and what came behind them.
#[derive(Default)]
struct Gathered {
    requests: Vec<Begun>,
    bytes: usize,
}

/// A request whose handler has been polled.
struct Begun {
    future: HandlerFuture,
    /// What it came to, if it is through.
    done: Option<Done>,
    call: Arc<Call>,
    /// As sent; `None` for a notification.
    raw_id: Option<Vec<u8>>,
    running: Counted,
}

/// `None` if the handler panicked.
type Done = Option<MethodResponse>;

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

/// A request as it stands in its frame.
struct Request<'a> {
    /// As sent, raw; `None` for a notification.
    id: Option<(RequestId, &'a [u8])>,
    method: Cow<'a, str>,
    params: Option<&'a str>,
}

/// `None` if the handler panicked.
type HandlerFuture = Pin<Box<dyn Future<Output = Done> + Send>>;

impl Dispatcher {
    pub fn new(server: Arc<Server>, runtime: Handle) -> anyhow::Result<Self> {
        Ok(Self {
            methods: method::table()?.into(),
            server,
            runtime,
            running: Arc::default(),
            gathered: Mutex::default(),
        })
    }

    /// Takes one frame; whatever it is, it is answered exactly once, now or later.
    pub fn frame(&self, frame: &[u8]) {
        match parse(frame) {
            Ok(request) => self.request(request),
            Err(error) => self.refuse(b"null", &error),
        }
    }

    /// Answers a frame that was too long to be read.
    pub fn too_large(&self, id: Option<&[u8]>) {
        let limit = self.server.config.max_frame_bytes;
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
            || self.running.bytes.load(Ordering::Acquire) > self.server.config.max_frame_bytes
    }

    /// Carries out what is held back. Due before the thread that reads waits for anything.
    pub fn settle(&self) {
        let _entered = self.runtime.enter();
        self.server.stop_gathering();
        let gathered = std::mem::take(&mut *self.gathered());
        for mut begun in gathered.requests {
            let done = begun.done.take().or_else(|| poll_once(&mut begun.future));
            match done {
                Some(done) => answer(&begun.call, begun.raw_id.as_deref(), done),
                None => self.spawn(begun),
            }
        }
    }

    fn gathered(&self) -> MutexGuard<'_, Gathered> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn request(&self, request: Request<'_>) {
        let Request { id, method, params } = request;
        tracing::debug!(%method, "request");
        let is_gathered = GATHERED.contains(&&*method);
        if is_gathered {
            self.server.gathering.begin();
        } else {
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
        let callback = match self.methods.method(&method) {
            Some(MethodCallback::Async(callback)) => Arc::clone(callback),
            _ => {
                if let Some(raw_id) = raw_id {
                    let error = Error::new(Kind::MethodNotFound, format!("no method {method:?}"));
                    self.refuse(raw_id, &error);
                }
                return;
            }
        };
        let call = Call::new(
            Arc::clone(&self.server),
            id.as_ref().map(|(id, _)| id.clone()),
        );
        let mut extensions = Extensions::new();
        extensions.insert(Arc::clone(&call));
        // The library's copy of the id is only for its own response, which is used for errors.
        let params = Params::new(params).into_owned();
        let size = params.as_str().map_or(0, str::len);
        let future = callback(Id::Null, params, ConnectionId(0), usize::MAX, extensions);
        let future = AssertUnwindSafe(future).catch_unwind().map(Result::ok);
        self.run(future.boxed(), call, raw_id, size, is_gathered);
    }

    /// What is refused before it reaches a handler.
    fn admit(&self, id: Option<&RequestId>, method: &str) -> Result<()> {
        if id.is_some_and(|id| self.server.in_flight().contains_key(id)) {
            return Err(Error::new(
                Kind::InvalidRequest,
                "a request with this id is still in flight",
            ));
        }
        if self.server.is_ending() {
            return Err(Error::new(
                Kind::ShuttingDown,
                "the daemon is shutting down",
            ));
        }
        let stalled = (self.server.outbox.is_over_limit() || self.is_full())
            && self.server.asks.is_any_open();
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
        mut future: HandlerFuture,
        call: Arc<Call>,
        raw_id: Option<&[u8]>,
        size: usize,
        is_gathered: bool,
    ) {
        let _entered = self.runtime.enter();
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
            let mut in_flight = self.server.in_flight();
            in_flight.insert(id.clone(), Arc::clone(&call));
        }
        self.runtime.spawn(async move {
            let done = future.await;
            if let Some(id) = &call.id {
                call.server.in_flight().remove(id);
            }
            answer(&call, raw_id.as_deref(), done);
            drop(call);
            drop(running);
        });
    }

    fn refuse(&self, raw_id: &[u8], error: &Error) {
        self.server.send(error_response(raw_id, error), Class::Keep);
    }
}

fn poll_once(future: &mut HandlerFuture) -> Option<Done> {
    let mut context = Context::from_waker(Waker::noop());
    match future.as_mut().poll(&mut context) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}

/// Queues the response, if one is due, then what is to be said after it.
fn answer(call: &Call, raw_id: Option<&[u8]>, done: Done) {
    if let Some(raw_id) = raw_id {
        let result = call
            .result
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let limit = call.server.client_frame_bytes();
        let error = match (done, result) {
            (Some(done), Some(result)) if done.is_success() => {
                let response = success_response(raw_id, result);
                if response.len() <= limit {
                    // On one line already, and not to be looked through again: it may be large.
                    call.server.outbox.push(response, Class::Keep);
                    None
                } else {
                    Some(error_response(raw_id, &too_large(response.len(), limit)))
                }
            }
            (done, _) => {
                let error = match done {
                    Some(done) => with_id(done.as_ref(), raw_id),
                    None => {
                        let error = Error::new(Kind::InternalError, "the handler failed");
                        error_response(raw_id, &error)
                    }
                };
                // The kind is the contract; details are what there is room for.
                let error = match error.len() > limit {
                    true => without_details(&error),
                    false => error,
                };
                Some(match error.len() > limit {
                    true => error_response(raw_id, &too_large(error.len(), limit)),
                    false => error,
                })
            }
        };
        if let Some(error) = error {
            call.server.send(error, Class::Keep);
        }
    }
    let after = std::mem::take(&mut *call.after.lock().unwrap_or_else(PoisonError::into_inner));
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

/// Put around the result where it is, since that may be large.
fn success_response(raw_id: &[u8], mut result: Vec<u8>) -> Vec<u8> {
    let mut head = Vec::with_capacity(raw_id.len() + 40);
    head.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    json::push_raw(&mut head, raw_id);
    head.extend_from_slice(b",\"result\":");
    result.reserve(head.len() + 1);
    result.push(b'}');
    result.splice(0..0, head);
    result
}

fn error_response(raw_id: &[u8], error: &Error) -> Vec<u8> {
    let payload: ResponsePayload<'_, ()> = ResponsePayload::error(convert::error(error));
    let response = serde_json::to_string(&Response::new(payload, Id::Null));
    with_id(&response.unwrap_or_default(), raw_id)
}

/// A response that the library made for the id null, for the id as the client spelled it.
fn with_id(response: &str, raw_id: &[u8]) -> Vec<u8> {
    json::with_member(response.as_bytes(), "id", raw_id)
}

/// Reads the envelope, every byte checked to be JSON in the same pass.
fn parse(frame: &[u8]) -> Result<Request<'_>> {
    let not_json = || Error::new(Kind::ParseError, "not JSON");
    let invalid = |why: &'static str| Error::new(Kind::InvalidRequest, why);
    let text =
        simdutf8::basic::from_utf8(frame).map_err(|_| Error::new(Kind::ParseError, "not UTF-8"))?;
    let start = json::skip_space(frame, 0);
    if frame.get(start) != Some(&b'{') {
        json::value_span(frame).map_err(|_| not_json())?;
        return Err(match frame.get(start) {
            Some(b'[') => Error::new(Kind::BatchUnsupported, "batches are not supported"),
            _ => invalid("not a request object"),
        });
    }
    let (mut version, mut id, mut method, mut params) = (None, None, None, None);
    let mut members = Members::open(frame, start).map_err(|_| not_json())?;
    while let Some(member) = members.next().map_err(|_| not_json())? {
        let slot = if member.is(frame, "jsonrpc") {
            &mut version
        } else if member.is(frame, "id") {
            &mut id
        } else if member.is(frame, "method") {
            &mut method
        } else if member.is(frame, "params") {
            &mut params
        } else {
            continue;
        };
        *slot = Some(member.value);
    }
    if json::skip_space(frame, members.end()) < frame.len() {
        return Err(not_json());
    }
    let raw = |span: Option<json::Span>| span.and_then(|span| frame.get(span));
    let id = match raw(id) {
        None => None,
        Some(raw) => match request_id(raw) {
            Some(id) => Some((id, raw)),
            None => {
                return Err(invalid(
                    "an id is a string or an integer from 0 to 2^53 - 1",
                ));
            }
        },
    };
    if raw(version).and_then(json::string).as_deref() != Some("2.0") {
        return Err(invalid("not a request of JSON-RPC 2.0"));
    }
    let method = raw(method)
        .and_then(json::string)
        .ok_or_else(|| invalid("no method"))?;
    let params = params.and_then(|span| text.get(span));
    Ok(Request { id, method, params })
}

fn request_id(raw: &[u8]) -> Option<RequestId> {
    const LARGEST: u64 = (1 << 53) - 1;
    if let Some(text) = json::string(raw) {
        return Some(RequestId::Text(text.into_owned()));
    }
    let number: u64 = std::str::from_utf8(raw).ok()?.parse().ok()?;
    (number <= LARGEST && raw.iter().all(u8::is_ascii_digit)).then_some(RequestId::Number(number))
}
