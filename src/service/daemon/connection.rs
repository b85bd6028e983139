//! A client: its introduction, its output, and its unanswered requests.

use super::client::{Client, Transport};
use super::convert::line::on_one_line;
use super::convert::message::message;
use super::pending::Pending;
use crate::access::Rights;
use crate::extensions::ExtensionRun;
use crate::stdio::{Class, Message, Outbox};
use hashbrown::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use treelined_core::id::ConnectionId;
use treelined_files::cancel::Cancel;
use treelined_files::lock::lock;
use treelined_files::os::watch::ProcessWatch;
use treelined_wire::methods::Notification;
use treelined_wire::{self as wire, BeforeEvent, RequestId, notification};

/// A connection to the daemon.
pub struct Connection {
    host: Host,
    pub outbox: Arc<Outbox>,
    pub(crate) id: ConnectionId,
    transport: Transport,
    /// Whether later requests are refused.
    is_ending: AtomicBool,
    /// Cancelled when the daemon asks the connection to end. Running requests then have a limited time.
    pub(crate) asked_to_end: Cancel,
    /// The client as it introduced itself in `initialize`.
    client: OnceLock<Client>,
    /// The rights since `initialize`, if `initialize` has taken rights away.
    lowered: OnceLock<Arc<Rights>>,
    /// Whether the client has called a method other than `initialize`.
    has_called: AtomicBool,
    /// Watches the client's process until the connection ends.
    watch: Mutex<Option<ProcessWatch>>,
    /// The requests without a queued response, by their ids.
    in_flight: Mutex<HashMap<RequestId, Arc<dyn Pending>>>,
}

/// The parts of a daemon that its connections need.
pub(super) struct Host {
    /// The limit of a message, in bytes.
    pub(super) max_frame_bytes: usize,
    /// Whether the daemon refuses later requests.
    pub(super) is_ending: Arc<AtomicBool>,
}

impl Connection {
    pub(super) fn with_id(
        id: ConnectionId,
        transport: Transport,
        host: Host,
        outbox: Arc<Outbox>,
    ) -> Arc<Self> {
        Arc::new(Self {
            host,
            outbox,
            id,
            transport,
            is_ending: AtomicBool::new(false),
            asked_to_end: Cancel::new(),
            client: OnceLock::new(),
            lowered: OnceLock::new(),
            has_called: AtomicBool::new(false),
            watch: Mutex::default(),
            in_flight: Mutex::default(),
        })
    }

    /// The extension that the connection belongs to.
    pub(crate) fn extension(&self) -> Option<&ExtensionRun> {
        self.transport.extension.as_ref()
    }

    /// The rights of the connection.
    pub(crate) fn rights(&self) -> &Arc<Rights> {
        self.lowered.get().unwrap_or(&self.transport.rights)
    }

    /// Sets the rights of the connection from now on, once.
    pub(crate) fn lower(&self, rights: Arc<Rights>) {
        let _set_before = self.lowered.set(rights);
    }

    /// Notes that the client calls a method other than `initialize`.
    pub(crate) fn calls(&self) {
        self.has_called.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_called(&self) -> bool {
        self.has_called.load(Ordering::Relaxed)
    }

    /// Whether requests of the connection may make files outside of the session directory.
    pub(crate) fn may_place_files(&self) -> bool {
        self.extension().is_none() && !self.transport.is_page
    }

    /// The name that other clients see: the name of the extension or the client, else `client-` and the number of the
    /// connection.
    pub(crate) fn display_name(&self) -> String {
        if let Some(extension) = self.extension() {
            return extension.name.clone();
        }
        let name = self.client().and_then(|client| client.name.clone());
        name.unwrap_or_else(|| format!("client-{}", self.id.0))
    }

    /// The working directory of a new session whose request names none.
    pub(crate) fn default_cwd(&self) -> Option<&str> {
        let own = self.client().and_then(|client| client.cwd.as_deref());
        own.or(self.transport.cwd.as_deref())
    }

    /// Whether an operation with this abort handle is a request of this client.
    pub(crate) fn asked_for(&self, abort: &Cancel) -> bool {
        let in_flight = self.in_flight();
        in_flight.values().any(|call| call.cancel().is_same(abort))
    }

    /// Keeps the watch of the client's process; `None` ends the watch.
    pub(crate) fn keep_watch(&self, watch: Option<ProcessWatch>) {
        *lock(&self.watch) = watch;
    }

    /// Refuses later requests.
    pub(crate) fn end(&self) {
        self.is_ending.store(true, Ordering::Release);
    }

    /// Whether the input of the connection has ended, or the daemon has asked the connection to end.
    pub(crate) fn has_ended(&self) -> bool {
        self.is_ending.load(Ordering::Acquire)
    }

    /// Whether later requests are refused.
    pub(crate) fn is_ending(&self) -> bool {
        self.has_ended() || self.host.is_ending.load(Ordering::Acquire)
    }

    /// Ends the connection: later requests are refused, and running ones have a limited time.
    pub(crate) fn ask_to_end(&self) {
        self.end();
        self.asked_to_end.cancel();
        // A paused reader has to wake to see the end.
        self.outbox.wake();
        (self.transport.end_input)();
    }

    /// `None` until `initialize`.
    pub(crate) fn client(&self) -> Option<&Client> {
        self.client.get()
    }

    /// False if the client has introduced itself before.
    pub(crate) fn introduce(&self, client: Client) -> bool {
        self.client.set(client).is_ok()
    }

    /// Whether the client answers questions for this event.
    pub(crate) fn answers(&self, event: BeforeEvent) -> bool {
        self.declared_answer(event).is_some()
    }

    /// How the client answers this event, if it does.
    pub(crate) fn declared_answer(&self, event: BeforeEvent) -> Option<wire::DeclaredAnswer> {
        self.client()?.declared_answer(event)
    }

    /// Whether the file of a new session is written at once, if the request does not say so. A client without an
    /// introduction is a script, and a script expects the file.
    pub(crate) fn writes_files_at_once(&self) -> bool {
        self.client().is_none()
    }

    /// The limit, in bytes, of the content of a message to the client. It leaves room for the marks that replace
    /// secrets.
    pub(crate) fn client_frame_bytes(&self) -> usize {
        match self.rights().redacts() {
            true => self.longest_message() / 2,
            false => self.longest_message(),
        }
    }

    /// The limit of a message to the client, in bytes.
    pub(crate) fn longest_message(&self) -> usize {
        let own_limit = self.host.max_frame_bytes;
        self.client()
            .map_or(own_limit, |client| client.max_frame_bytes)
    }

    /// Whether the client wants notifications of this name.
    pub(crate) fn wants(&self, method: &str) -> bool {
        !self
            .client()
            .is_some_and(|client| client.opt_out.iter().any(|name| name == method))
    }

    /// Queues a message, line breaks and line separators escaped.
    pub(crate) fn send(&self, message: Vec<u8>, class: Class) {
        let message = self.rights().shown(message);
        self.outbox.push(on_one_line(message), class);
    }

    /// Queues a message that is on one line already.
    pub(crate) fn send_message(&self, message: Message, class: Class) {
        match self.rights().redacts() {
            true => self.send(message.into_text(), class),
            false => self.outbox.push_message(message, class),
        }
    }

    /// Queues a part of a summary. False if the client does not want parts of summaries.
    pub(crate) fn summary_delta(
        &self,
        session_id: &Arc<str>,
        navigation_id: &str,
        index: u64,
        delta: &str,
    ) -> bool {
        let declared = self.client().is_some_and(|client| client.summary_deltas);
        let wanted = declared && self.wants(notification::SummaryDelta::NAME);
        if wanted {
            self.outbox
                .push_delta(session_id, navigation_id, index, delta);
        }
        wanted
    }

    /// Sends progress to a client that wants it.
    pub(crate) fn progress(&self, token: &RequestId, progress: u64) {
        self.progress_toward(token, progress, None);
    }

    /// Like [`Self::progress`], with the total.
    pub(crate) fn progress_toward(&self, token: &RequestId, progress: u64, total: Option<u64>) {
        let wanted = self.client().is_some_and(|client| client.progress);
        if !(wanted && self.wants(notification::Progress::NAME)) {
            return;
        }
        let params = notification::Progress {
            token: token.clone(),
            progress: progress as f64,
            total: total.map(|total| total as f64),
            message: None,
        };
        if let Some(message) = message(&params) {
            self.send(message, Class::Progress);
        }
    }

    /// Whether the client wants the hits of a search as they are found.
    pub(crate) fn wants_search_hits(&self) -> bool {
        let declared = self.client().is_some_and(|client| client.search_hits);
        declared && self.wants(notification::FoundHit::NAME)
    }

    /// Queues a hit of the search with this `token`. The outbox may drop it, since the result contains it too.
    pub(crate) fn search_hit(&self, token: &RequestId, hit: wire::SearchHit) {
        let found = notification::FoundHit {
            token: token.clone(),
            hit,
        };
        if let Some(message) = message(&found) {
            self.send(message, Class::Progress);
        }
    }

    /// Whether a request with this id has not been answered (protocol.md §1.3).
    pub(crate) fn is_in_use(&self, id: &RequestId) -> bool {
        self.in_flight().contains_key(id)
    }

    /// Reserves the id of a request until its response is queued.
    pub(crate) fn begin(&self, id: &RequestId, request: Arc<dyn Pending>) {
        self.in_flight().insert(id.clone(), request);
    }

    /// Queues the response of a request with `push` and frees the id, in one step. So a later request with the same id
    /// is answered after this request, and a client that has read the response can use the id again.
    pub(crate) fn respond(&self, id: &RequestId, push: impl FnOnce(&Outbox)) {
        let mut in_flight = self.in_flight();
        in_flight.remove(id);
        push(&self.outbox);
    }

    fn in_flight(&self) -> MutexGuard<'_, HashMap<RequestId, Arc<dyn Pending>>> {
        lock(&self.in_flight)
    }

    /// Cancels every request that waits.
    pub fn cancel_all(&self) {
        let waiting: Vec<Arc<dyn Pending>> = self.in_flight().values().cloned().collect();
        for request in waiting {
            request.cancel().cancel();
        }
    }

    /// Cancels the request with this id, if it waits.
    pub(crate) fn cancel(&self, id: &RequestId) {
        let request = self.in_flight().get(id).cloned();
        if let Some(request) = request {
            request.cancel().cancel();
        }
    }

    /// The abort handles of the unanswered navigations of a session. With `unnamed`, navigations that name no session
    /// are included.
    pub(crate) fn asked_navigations(
        &self,
        session_id: &str,
        unnamed: bool,
        is_meant: impl Fn(&str) -> bool,
    ) -> Vec<Cancel> {
        let in_flight = self.in_flight();
        let meant = in_flight.values().filter(|request| {
            request.navigation().is_some_and(|asked| {
                let of = asked.session_id.as_deref();
                of.map_or(unnamed, |id| id == session_id) && is_meant(&asked.navigation_id)
            })
        });
        meant.map(|request| request.cancel().clone()).collect()
    }
}
