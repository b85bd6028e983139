//! Passes a frame to its handler (protocol.md §1).
//!
//! This code runs on the reader thread. A request takes its place in the queue of its session here, so that the order
//! of requests is fixed before a handler waits. A handler runs on this thread until it has to wait, and then on the
//! runtime.

use super::request::{Request, parse};
use super::response::{OpenRequest, OpenRequests, Responder, error_response};
use super::table::{self, Method};
use crate::daemon::Daemon;
use crate::daemon::call::Call;
use crate::daemon::connection::Connection;
use crate::stdio::Class;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Handle;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::suggest;
use treelined_files::lock::lock;
use treelined_wire::RequestId;

/// The methods that run even while the client does not read: answers and cancels (protocol.md §1).
const ALWAYS: [&str; 4] = [
    "answer_event",
    "abort_navigation",
    "$/cancel_request",
    "$/cancelRequest",
];

/// The method that may reduce the rights. Clients must call it before all other methods.
const INITIALIZE: &str = "initialize";

/// The limits of the appends that wait for more input: their number and their bytes.
const MAX_HELD: usize = 256;
const MAX_HELD_BYTES: usize = 256 << 10;
/// The most requests that wait. At this number the reader pauses.
const MAX_OPEN_REQUESTS: usize = 4096;
/// The most characters of a method's name that an error repeats.
const MAX_ECHO: usize = 100;
/// A paused reader checks at this interval whether it can continue.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Passes frames to handlers.
pub struct Dispatcher {
    daemon: Arc<Daemon>,
    connection: Arc<Connection>,
    runtime: Handle,
    open_requests: Arc<OpenRequests>,
    held: Mutex<HeldAppends>,
}

/// The appends that wait for more input, so that they can be written together (session-file.md §3).
#[derive(Default)]
struct HeldAppends {
    count: usize,
    /// The bytes of the params.
    bytes: usize,
}

impl Dispatcher {
    pub fn new(
        daemon: Arc<Daemon>,
        connection: Arc<Connection>,
        runtime: Handle,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            daemon,
            connection,
            runtime,
            open_requests: Arc::default(),
            held: Mutex::default(),
        })
    }

    /// Takes one frame, and answers it exactly once, now or later. If `more` input is available, an append waits for
    /// it.
    pub fn frame(&self, frame: &[u8], more: bool) {
        match parse(frame) {
            Ok(request) => self.request(request, more),
            Err(error) => self.refuse(b"null", &error),
        }
    }

    /// Answers a frame that exceeds the limit.
    pub fn too_large(&self, id: Option<&[u8]>) {
        let limit = self.daemon.settings.max_frame_bytes;
        let error = Error::new(
            Kind::RequestTooLarge,
            format!("a frame may have at most {limit} bytes"),
        );
        self.refuse(id.unwrap_or(b"null"), &error);
    }

    /// Answers a frame for which the memory of all connections has no room.
    pub fn no_memory(&self, id: Option<&[u8]>) {
        let message = "the daemon has no room for this frame while others use its memory; nothing was done: try again, or send less at once";
        let error = Error::new(Kind::MemoryExhausted, message);
        self.refuse(id.unwrap_or(b"null"), &error);
    }

    /// Answers a damaged header block.
    pub fn bad_block(&self) {
        let error = Error::new(
            Kind::ParseError,
            "a header block without a valid Content-Length",
        );
        self.refuse(b"null", &error);
    }

    /// Waits until fewer requests wait, or until `unless` is true.
    pub fn wait_for_room(&self, unless: &dyn Fn() -> bool) {
        if self.is_full() {
            self.settle();
        }
        while self.is_full() && !unless() {
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    fn is_full(&self) -> bool {
        self.open_requests.count() >= MAX_OPEN_REQUESTS
            || self.open_requests.bytes() > self.daemon.settings.max_frame_bytes
    }

    /// Writes the appends that wait for more input. The reader thread must call this before it waits for anything.
    pub fn settle(&self) {
        let held = std::mem::take(&mut *lock(&self.held));
        if held.count > 0 {
            let _entered = self.runtime.enter();
            self.daemon.registry.queues.settle();
        }
    }

    /// Waits until every request has been answered.
    pub async fn drained(&self) {
        self.settle();
        self.open_requests.ended().await;
    }

    fn request(&self, request: Request<'_>, more: bool) {
        let Request { id, method, params } = request;
        let known = table::find(&method);
        // An unknown name may contain anything, so it is not written to the log.
        let logged = known.as_ref().map(|known| (known.name, known.scope.name()));
        let (name, scope) = logged.unwrap_or(("unknown", ""));
        tracing::debug!(method = name, scope, "request");
        let holds = known.as_ref().is_some_and(|known| known.groups) && self.holds(more);
        if !holds {
            self.settle();
        }
        let raw_id = id.as_ref().map(|(_, raw)| *raw);
        if let Err(error) = self.admit(id.as_ref().map(|(id, _)| id), &method) {
            // An id in use belongs to another request, so the answer has a null id.
            match (raw_id, error.kind) {
                (Some(_), Kind::InvalidRequest) => self.refuse(b"null", &error),
                (Some(raw_id), _) => self.refuse(raw_id, &error),
                (None, _) => {}
            }
            return;
        }
        let Some(known) = known else {
            if let Some(raw_id) = raw_id {
                self.refuse(raw_id, &unknown(&method));
            }
            return;
        };
        if let Err(error) = self.permit(&known) {
            if let Some(raw_id) = raw_id {
                self.refuse(raw_id, &error);
            }
            return;
        }
        let bytes = params.map_or(0, str::len);
        let call = Call::new(&self.daemon, &self.connection, id.map(|(id, _)| id));
        let open_request = OpenRequest::new(&self.open_requests, bytes);
        let responder = Responder::new(call, raw_id, known.only_reads(), open_request);
        let entered = self.runtime.enter();
        known.begin(params, responder, holds);
        drop(entered);
        if holds && self.hold(bytes) {
            self.settle();
        }
    }

    /// Refuses a method for which the connection has no right. This check comes before every handler.
    fn permit(&self, method: &Method) -> Result<()> {
        if method.name != INITIALIZE {
            self.connection.calls();
        }
        let rights = self.connection.rights();
        rights.check_method(method.name, method.right)
    }

    /// Whether an append must wait for more input: `more` is available, or other appends wait already.
    fn holds(&self, more: bool) -> bool {
        more || lock(&self.held).count > 0
    }

    /// Counts a waiting append. Returns whether the limit is reached.
    fn hold(&self, bytes: usize) -> bool {
        let mut held = lock(&self.held);
        held.count += 1;
        held.bytes += bytes;
        held.count >= MAX_HELD || held.bytes >= MAX_HELD_BYTES
    }

    /// Refuses requests that must not reach a handler.
    fn admit(&self, id: Option<&RequestId>, method: &str) -> Result<()> {
        if id.is_some_and(|id| self.connection.is_in_use(id)) {
            return Err(Error::new(
                Kind::InvalidRequest,
                "a request with this id is still in flight",
            ));
        }
        if self.connection.is_ending() {
            return Err(Error::new(Kind::ShuttingDown, "the connection is ending"));
        }
        let stalled = (self.connection.outbox.is_over_limit() || self.is_full())
            && self.daemon.questions.is_asked(self.connection.id);
        if stalled && !ALWAYS.contains(&method) {
            return Err(Error::new(
                Kind::Overloaded,
                "too much is unread or waits already; nothing was executed",
            ));
        }
        Ok(())
    }

    fn refuse(&self, raw_id: &[u8], error: &Error) {
        self.connection
            .send(error_response(raw_id, error), Class::Keep);
    }
}

fn unknown(method: &str) -> Error {
    let named: String = method.chars().take(MAX_ECHO).collect();
    let meant = suggest::hint(&named, table::names());
    Error::new(Kind::MethodNotFound, format!("no method {named:?}{meant}"))
}
