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
use std::sync::{Arc, PoisonError};
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

/// Takes frames to handlers.
pub struct Dispatcher {
    server: Arc<Server>,
    methods: Methods,
    runtime: Handle,
    running: Arc<Running>,
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

type HandlerFuture = Pin<Box<dyn Future<Output = MethodResponse> + Send>>;

impl Dispatcher {
    pub fn new(server: Arc<Server>, runtime: Handle) -> anyhow::Result<Self> {
        Ok(Self {
            methods: method::table()?.into(),
            server,
            runtime,
            running: Arc::default(),
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
        while self.is_full() && !unless() {
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    fn is_full(&self) -> bool {
        self.running.count.load(Ordering::Acquire) >= MAX_RUNNING
            || self.running.bytes.load(Ordering::Acquire) > self.server.config.max_frame_bytes
    }

    /// Waits until every request has been answered.
    pub async fn drained(&self) {
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
        self.run(Box::pin(future), call, raw_id, size);
    }

    /// What is refused before it reaches a handler.
    fn admit(&self, id: Option<&RequestId>, method: &str) -> Result<()> {
        if let Some(id) = id
            && self.server.in_flight().contains_key(id)
        {
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

    fn run(&self, future: HandlerFuture, call: Arc<Call>, raw_id: Option<&[u8]>, size: usize) {
        let mut future = AssertUnwindSafe(future).catch_unwind().boxed();
        let _entered = self.runtime.enter();
        if let Poll::Ready(done) = future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            answer(&call, raw_id, done.ok());
            return;
        }
        if let Some(id) = &call.id {
            let mut in_flight = self.server.in_flight();
            in_flight.insert(id.clone(), Arc::clone(&call));
        }
        let raw_id = raw_id.map(<[u8]>::to_vec);
        let running = Arc::clone(&self.running);
        running.bytes.fetch_add(size, Ordering::AcqRel);
        running.count.fetch_add(1, Ordering::AcqRel);
        self.runtime.spawn(async move {
            let done = future.await;
            if let Some(id) = &call.id {
                call.server.in_flight().remove(id);
            }
            answer(&call, raw_id.as_deref(), done.ok());
            drop(call);
            running.bytes.fetch_sub(size, Ordering::AcqRel);
            if running.count.fetch_sub(1, Ordering::AcqRel) == 1 {
                running.idle.notify_waiters();
            }
        });
    }

    fn refuse(&self, raw_id: &[u8], error: &Error) {
        self.server.send(error_response(raw_id, error), Class::Keep);
    }
}

/// Queues the response, if one is due, then what is to be said after it.
fn answer(call: &Call, raw_id: Option<&[u8]>, done: Option<MethodResponse>) {
    if let Some(raw_id) = raw_id {
        let result = call
            .result
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let is_error = done.as_ref().is_none_or(MethodResponse::is_error);
        let response = match (done, result) {
            (Some(done), Some(result)) if done.is_success() => success_response(raw_id, result),
            (Some(done), _) => with_id(done.as_ref(), raw_id),
            (None, _) => {
                let error = Error::new(Kind::InternalError, "the handler failed");
                error_response(raw_id, &error)
            }
        };
        let limit = call.server.client_frame_bytes();
        // The kind is the contract; details are what there is room for.
        let response = if response.len() > limit && is_error {
            without_details(&response)
        } else {
            response
        };
        let response = if response.len() > limit {
            let error = Error::new(
                Kind::ResponseTooLarge,
                format!(
                    "the response has {} bytes, the client takes {limit}",
                    response.len()
                ),
            );
            error_response(raw_id, &error)
        } else {
            response
        };
        call.server.send(response, Class::Keep);
    }
    let after = std::mem::take(&mut *call.after.lock().unwrap_or_else(PoisonError::into_inner));
    for say in after {
        say();
    }
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
    head.extend_from_slice(raw_id);
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
    let text = std::str::from_utf8(frame).map_err(|_| Error::new(Kind::ParseError, "not UTF-8"))?;
    let value = json::value_span(frame).map_err(|_| not_json())?;
    match frame.get(value.start) {
        Some(b'{') => {}
        Some(b'[') => {
            return Err(Error::new(
                Kind::BatchUnsupported,
                "batches are not supported",
            ));
        }
        _ => return Err(invalid("not a request object")),
    }
    let (mut version, mut id, mut method, mut params) = (None, None, None, None);
    let mut members = Members::open(frame, value.start).map_err(|_| not_json())?;
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
