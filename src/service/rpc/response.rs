//! The response to a request: its bytes, and the duty to send it.

use super::reply::Reply;
use crate::access::Rights;
use crate::daemon::call::{Call, no_room_for};
use crate::daemon::convert::error;
use crate::daemon::convert::line::on_one_line;
use crate::daemon::pending::Pending;
use crate::stdio::{Outbox, OutboxItem};
use jsonrpsee::types::{Id, Response, ResponsePayload};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::json;

/// Results up to this size, in bytes, are copied into their response.
const SMALL: usize = 64 << 10;

/// The duty to answer a request exactly once. If a handler panics, this value is dropped and answers `internalError`.
#[must_use]
pub(super) struct Responder {
    call: Arc<Call>,
    /// The id as the client sent it; `None` for a notification.
    raw_id: Option<Box<[u8]>>,
    /// Whether the request only reads, so that its answer may be refused.
    reads: bool,
    is_answered: bool,
    /// Ends when the response is queued.
    _open_request: OpenRequest,
}

impl Responder {
    pub(super) fn new(
        call: Arc<Call>,
        raw_id: Option<&[u8]>,
        reads: bool,
        open_request: OpenRequest,
    ) -> Self {
        if let Some(id) = &call.id {
            call.connection
                .begin(id, Arc::clone(&call) as Arc<dyn Pending>);
        }
        Self {
            call,
            raw_id: raw_id.map(Box::from),
            reads,
            is_answered: false,
            _open_request: open_request,
        }
    }

    pub(super) fn call(&self) -> &Arc<Call> {
        &self.call
    }

    /// Queues the response if the request has an id. Then runs the actions that wait for the response.
    pub(super) fn respond(mut self, result: Result<Reply>) {
        self.send(result);
    }

    fn send(&mut self, result: Result<Reply>) {
        self.is_answered = true;
        if let (Some(id), Some(raw_id)) = (&self.call.id, &self.raw_id) {
            let connection = &self.call.connection;
            let result = shown(connection.rights(), result);
            let response = response(raw_id, result, connection.longest_message());
            let (bytes, reserved) = (response.len(), self.call.take_reserved());
            // The result is on one line already. It may be large, so it is not scanned again.
            let answer = match response {
                Reply::Bytes(response) => OutboxItem::of(response),
                Reply::Pieces(pieces) => OutboxItem::Pieces(pieces),
            };
            connection.respond(id, |outbox: &Outbox| {
                if !outbox.push_answer(answer, reserved, self.reads) {
                    let error = no_room_for(bytes as u64);
                    let error = error_response(raw_id, &error);
                    let _always = outbox.push_answer(OutboxItem::of(error), None, false);
                }
            });
        }
        self.call.answered();
    }
}

/// The result in the form that a connection with these rights gets.
fn shown(rights: &Rights, result: Result<Reply>) -> Result<Reply> {
    match result {
        Ok(reply) if rights.redacts() => Ok(Reply::Bytes(rights.shown(reply.into_bytes()))),
        Ok(reply) => Ok(reply),
        Err(error) => Err(rights.shown_error(error)),
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        if !self.is_answered {
            self.send(Err(Error::new(Kind::InternalError, "the handler failed")));
        }
    }
}

/// The requests that have no response yet.
#[derive(Default)]
pub(super) struct OpenRequests {
    count: AtomicUsize,
    /// The bytes of the params of these requests.
    bytes: AtomicUsize,
    idle: Notify,
}

impl OpenRequests {
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Acquire)
    }

    /// Waits until every request has been answered.
    pub(super) async fn ended(&self) {
        loop {
            let idle = self.idle.notified();
            if self.count() == 0 {
                return;
            }
            idle.await;
        }
    }
}

/// A request that has no response yet. It ends when it is dropped.
pub(super) struct OpenRequest {
    all: Arc<OpenRequests>,
    bytes: usize,
}

impl OpenRequest {
    /// A request whose params have this many bytes.
    pub(super) fn new(all: &Arc<OpenRequests>, bytes: usize) -> Self {
        all.bytes.fetch_add(bytes, Ordering::AcqRel);
        all.count.fetch_add(1, Ordering::AcqRel);
        Self {
            all: Arc::clone(all),
            bytes,
        }
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.all.bytes.fetch_sub(self.bytes, Ordering::AcqRel);
        if self.all.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.all.idle.notify_waiters();
        }
    }
}

/// The response for a client that reads at most `limit` bytes.
fn response(raw_id: &[u8], result: Result<Reply>, limit: usize) -> Reply {
    let response = match result {
        Ok(Reply::Bytes(result)) if result.len() <= SMALL => success(raw_id, &result),
        Ok(Reply::Bytes(result)) => around(raw_id, vec![result]),
        Ok(Reply::Pieces(result)) => around(raw_id, result),
        Err(error) => {
            let error = error_response(raw_id, &error);
            // The response always has the kind of the error. It has the details only if they fit.
            Reply::Bytes(match error.len() > limit {
                true => without_details(&error),
                false => error,
            })
        }
    };
    match response.len() {
        length if length > limit => Reply::Bytes(error_response(raw_id, &too_large(length, limit))),
        _ => response,
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

/// A response with a result that is too large to copy.
fn around(raw_id: &[u8], mut result: Vec<Vec<u8>>) -> Reply {
    result.insert(0, success_head(raw_id, 0));
    result.push(b"}".to_vec());
    Reply::Pieces(result)
}

/// The response up to its result. The buffer has space for `more` bytes.
fn success_head(raw_id: &[u8], more: usize) -> Vec<u8> {
    const BEFORE: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":";
    const BETWEEN: &[u8] = b",\"result\":";
    let mut head = Vec::with_capacity(BEFORE.len() + raw_id.len() + BETWEEN.len() + more);
    head.extend_from_slice(BEFORE);
    json::push_raw(&mut head, raw_id);
    head.extend_from_slice(BETWEEN);
    head
}

/// An error response on one line, with the id as the client wrote it.
pub(super) fn error_response(raw_id: &[u8], error: &Error) -> Vec<u8> {
    let payload: ResponsePayload<'_, ()> = ResponsePayload::error(error::to_jsonrpc(error));
    let response = serde_json::to_vec(&Response::new(payload, Id::Null)).unwrap_or_default();
    on_one_line(json::with_member(&response, "id", raw_id))
}
