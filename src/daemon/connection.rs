//! One client: what it has said of itself, its output, and its requests that wait.

use super::{Daemon, convert};
use crate::cancel::Cancel;
use crate::lock::lock;
use crate::stdio::{Class, Outbox};
use crate::wire::{self, BeforeEvent, RequestId, notification};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

/// A connection to the daemon.
pub struct Connection {
    pub daemon: Arc<Daemon>,
    pub outbox: Arc<Outbox>,
    /// The client as it introduced itself in `initialize`.
    client: OnceLock<Client>,
    in_flight: Mutex<HashMap<RequestId, InFlight>>,
}

/// A client that has introduced itself.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) name: Option<String>,
    pub(crate) answers: wire::Answers,
    pub(crate) opt_out: Vec<String>,
    pub(crate) summary_deltas: bool,
    pub(crate) progress: bool,
    /// Bytes.
    pub(crate) max_frame_bytes: usize,
}

impl Client {
    fn answers(&self, event: BeforeEvent) -> bool {
        match event {
            BeforeEvent::SessionBeforeTree => self.answers.session_before_tree,
            BeforeEvent::SessionBeforeFork => self.answers.session_before_fork,
            BeforeEvent::SessionBeforeCompact => self.answers.session_before_compact,
        }
    }
}

/// A request that has not been answered.
#[derive(Clone)]
pub(crate) struct InFlight {
    pub(crate) cancel: Cancel,
    /// The navigation that it asks for, if it is one: an abort may name it before it has begun.
    pub(crate) navigation: Arc<OnceLock<AskedNavigation>>,
}

/// A navigation as it was asked for.
pub(crate) struct AskedNavigation {
    pub(crate) session_id: Option<String>,
    pub(crate) navigation_id: String,
}

impl Connection {
    pub fn new(daemon: Arc<Daemon>, outbox: Arc<Outbox>) -> Arc<Self> {
        Arc::new(Self {
            daemon,
            outbox,
            client: OnceLock::new(),
            in_flight: Mutex::default(),
        })
    }

    /// `None` until `initialize`.
    pub(crate) fn client(&self) -> Option<&Client> {
        self.client.get()
    }

    /// False if the client has introduced itself before.
    pub(crate) fn introduce(&self, client: Client) -> bool {
        self.client.set(client).is_ok()
    }

    /// Whether the client answers such questions.
    pub(crate) fn answers(&self, event: BeforeEvent) -> bool {
        self.client().is_some_and(|client| client.answers(event))
    }

    /// Whether the file of a new session is written with it, unless the client says otherwise: a script
    /// that makes a session expects to find it.
    pub(crate) fn writes_files_at_once(&self) -> bool {
        self.client().is_none()
    }

    /// The most a message to the client may have, in bytes.
    pub(crate) fn client_frame_bytes(&self) -> usize {
        let own_limit = self.daemon.config.max_frame_bytes;
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
        self.outbox.push(convert::on_one_line(message), class);
    }

    /// Queues a piece of a summary. False if the client does not want them.
    pub(crate) fn summary_delta(
        &self,
        session_id: &Arc<str>,
        navigation_id: &str,
        index: u64,
        delta: &str,
    ) -> bool {
        let declared = self.client().is_some_and(|client| client.summary_deltas);
        let wanted = declared && self.wants("summary_delta");
        if wanted {
            self.outbox
                .push_delta(session_id, navigation_id, index, delta);
        }
        wanted
    }

    /// Tells how far long work has come, to clients that want it.
    pub(crate) fn progress(&self, token: &RequestId, progress: u64) {
        self.progress_toward(token, progress, None);
    }

    /// As [`Self::progress`], with the number that it will reach.
    pub(crate) fn progress_toward(&self, token: &RequestId, progress: u64, total: Option<u64>) {
        let wanted = self.client().is_some_and(|client| client.progress);
        if !(wanted && self.wants("progress")) {
            return;
        }
        let told = notification::Progress {
            token: token.clone(),
            progress: progress as f64,
            total: total.map(|total| total as f64),
            message: None,
        };
        if let Some(message) = super::notify::message("progress", &told) {
            self.send(message, Class::Progress);
        }
    }

    /// Requests that wait for something, by their ids.
    pub(crate) fn in_flight(&self) -> std::sync::MutexGuard<'_, HashMap<RequestId, InFlight>> {
        lock(&self.in_flight)
    }

    /// Cancels every request that waits.
    pub fn cancel_all(&self) {
        let waiting: Vec<InFlight> = self.in_flight().values().cloned().collect();
        for request in waiting {
            request.cancel.cancel();
        }
    }

    /// Cancels the request with this id, if it waits.
    pub(crate) fn cancel(&self, id: &RequestId) {
        let request = self.in_flight().get(id).cloned();
        if let Some(request) = request {
            request.cancel.cancel();
        }
    }

    /// How to abort the navigations of a session that are in flight.
    pub(crate) fn asked_navigations(
        &self,
        session_id: &str,
        is_meant: impl Fn(&str) -> bool,
    ) -> Vec<Cancel> {
        let in_flight = self.in_flight();
        let meant = in_flight.values().filter(|request| {
            request.navigation.get().is_some_and(|asked| {
                let of = asked.session_id.as_deref();
                of.is_none_or(|id| id == session_id) && is_meant(&asked.navigation_id)
            })
        });
        meant.map(|request| request.cancel.clone()).collect()
    }
}
