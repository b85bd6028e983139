//! A request from its arrival to its response.

use super::Daemon;
use super::connection::Connection;
use super::guard::Place;
use super::pending::{AskedNavigation, Pending};
use super::queue::Scope;
use crate::memory::Reservation;
use std::sync::{Arc, Mutex, OnceLock};
use treelined_core::error::{Error, Kind, Result};
use treelined_files::cancel::Cancel;
use treelined_files::lock::lock;
use treelined_wire as wire;

/// A request without a response.
pub(crate) struct Call {
    pub(crate) daemon: Arc<Daemon>,
    pub(crate) connection: Arc<Connection>,
    pub(crate) id: Option<wire::RequestId>,
    pub(crate) cancel: Cancel,
    /// Actions that run when the response is queued.
    after: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
    /// The navigation of this request, if it is one. An abort may name the navigation before it begins.
    navigation: OnceLock<AskedNavigation>,
    /// The memory that was reserved for the answer. `None` if the answer is small, or if its size was not known in
    /// advance.
    reserved: Mutex<Option<Reservation>>,
}

/// No memory is reserved for answers up to this size, in bytes, before they are made.
const SMALL_ANSWER: u64 = 64 << 10;
/// The bytes that an answer has in addition to the data that it is made from.
const AROUND: u64 = 4 << 10;

impl Call {
    pub(crate) fn new(
        daemon: &Arc<Daemon>,
        connection: &Arc<Connection>,
        id: Option<wire::RequestId>,
    ) -> Arc<Self> {
        Arc::new(Self {
            daemon: Arc::clone(daemon),
            connection: Arc::clone(connection),
            id,
            cancel: Cancel::new(),
            after: Mutex::default(),
            navigation: OnceLock::new(),
            reserved: Mutex::default(),
        })
    }

    /// Reserves memory for an answer of about this many bytes before it is made. Fails with `memoryExhausted`.
    pub(crate) fn reserve(&self, bytes: u64) -> Result<()> {
        if bytes <= SMALL_ANSWER {
            return Ok(());
        }
        let bytes = bytes.saturating_add(AROUND);
        let reserved = self.daemon.memory.reserve(bytes);
        let reserved = reserved.map_err(|_| no_room_for(bytes))?;
        *lock(&self.reserved) = Some(reserved);
        Ok(())
    }

    /// The memory that [`reserve`](Self::reserve) has reserved.
    pub(crate) fn take_reserved(&self) -> Option<Reservation> {
        lock(&self.reserved).take()
    }

    /// Lets an abort find the navigation while the request waits.
    pub(crate) fn names_navigation(&self, asked: AskedNavigation) {
        let _named_before = self.navigation.set(asked);
    }

    /// Takes a place in the queue of an open session. Without an id, this is the only session that is open for the
    /// connection.
    pub(crate) fn place(&self, session_id: Option<&str>) -> Place {
        self.place_in(Scope::Session, session_id)
    }

    /// Like [`Self::place`], for a request that closes, deletes, restores or copies the session.
    pub(crate) fn place_to_change(&self, session_id: Option<&str>) -> Place {
        self.place_in(Scope::Change, session_id)
    }

    /// Takes a place in the queue of a session that the request opens.
    pub(crate) fn place_to_open(&self, session_id: &str) -> Place {
        self.place_in(Scope::Open, Some(session_id))
    }

    /// Takes a place in the queue of a new session. If the id is `fresh`, no other request can name it yet; otherwise a
    /// client may have chosen it.
    pub(crate) fn place_to_create(&self, session_id: &str, fresh: bool) -> Place {
        let scope = match fresh {
            true => Scope::CreateFresh,
            false => Scope::Create,
        };
        self.place_in(scope, Some(session_id))
    }

    fn place_in(&self, scope: Scope, session_id: Option<&str>) -> Place {
        let by = Some(self.connection.id);
        let queues = &self.daemon.registry.queues;
        queues.lease(by, session_id, scope, &self.cancel)
    }

    /// Runs `act` when the response is queued.
    pub(crate) fn after(&self, act: impl FnOnce() + Send + 'static) {
        lock(&self.after).push(Box::new(act));
    }

    /// Runs the actions that wait for the response, which the caller has just queued.
    pub(crate) fn answered(&self) {
        let after = std::mem::take(&mut *lock(&self.after));
        for act in after {
            act();
        }
    }
}

/// The error of a read whose answer needs memory that other requests use.
pub(crate) fn no_room_for(bytes: u64) -> Error {
    let message = format!(
        "the daemon has no room for an answer of {bytes} bytes while clients do not read theirs: read what it has sent and try again, or ask for less at once"
    );
    Error::new(Kind::MemoryExhausted, message)
}

impl Pending for Call {
    fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    fn navigation(&self) -> Option<&AskedNavigation> {
        self.navigation.get()
    }
}

/// A place in the queue of a session, for requests that do more than read. It is taken when the request arrives.
pub(crate) trait TakesPlace {
    /// `session_id` is the session that the request names; `None` for the only session that is open for its connection.
    fn take(call: &Arc<Call>, session_id: Option<&str>) -> Self;
}
