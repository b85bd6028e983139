//! One request on its way to its answer.

use crate::cancel::Cancel;
use crate::daemon::Daemon;
use crate::daemon::connection::{AskedNavigation, Connection, InFlight};
use crate::daemon::open_session::{Lease, OpenSession, Place, SessionGuard, guard};
use crate::daemon::queue::Scope;
use crate::error::Result;
use crate::lock::lock;
use crate::wire;
use std::sync::{Arc, Mutex, OnceLock};

/// One request on its way.
pub(crate) struct Call {
    pub(crate) daemon: Arc<Daemon>,
    pub(crate) connection: Arc<Connection>,
    pub(crate) id: Option<wire::RequestId>,
    pub(crate) cancel: Cancel,
    /// An append waits for the appends behind it that have arrived already.
    pub(crate) holds: bool,
    /// What is to be said after the response.
    pub(crate) after: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
    navigation: Arc<OnceLock<AskedNavigation>>,
    /// The place in the session's queue that was taken when the request arrived.
    place: Mutex<Option<Place>>,
}

impl Call {
    pub(crate) fn new(
        connection: &Arc<Connection>,
        id: Option<wire::RequestId>,
        holds: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            daemon: Arc::clone(&connection.daemon),
            connection: Arc::clone(connection),
            id,
            cancel: Cancel::new(),
            holds,
            after: Mutex::default(),
            navigation: Arc::default(),
            place: Mutex::default(),
        })
    }

    pub(crate) fn in_flight(&self) -> InFlight {
        InFlight {
            cancel: self.cancel.clone(),
            navigation: Arc::clone(&self.navigation),
        }
    }

    /// Makes an abort find it while it waits.
    pub(crate) fn names_navigation(&self, asked: AskedNavigation) {
        let _named_before = self.navigation.set(asked);
    }

    /// Takes a place in the queue of the session that is meant.
    pub(crate) fn take_place(&self, session_id: Option<&str>) {
        let queues = &self.daemon.queues;
        let place = queues.lease(session_id, Scope::Session, &self.cancel);
        *lock(&self.place) = Some(place);
    }

    /// Gives up the place, for a handler that takes another one.
    pub(crate) fn drop_place(&self) {
        let place = lock(&self.place).take();
        drop(place);
    }

    /// The session that is meant, in the place taken when the request arrived; in a new one, if this is not the
    /// first time.
    pub(crate) async fn turn(
        &self,
        session_id: Option<&str>,
    ) -> Result<(Arc<OpenSession>, SessionGuard)> {
        let place = lock(&self.place).take();
        let place = place.unwrap_or_else(|| {
            let queues = &self.daemon.queues;
            queues.lease(session_id, Scope::Session, &self.cancel)
        });
        let asked = place.asked;
        guard(place.await?, asked)
    }

    /// The session the params mean, with what others have appended taken in.
    pub(crate) async fn fresh(
        &self,
        params: &impl wire::OnSession,
    ) -> Result<(Arc<OpenSession>, SessionGuard)> {
        let (open, turn) = self.turn(params.session_id()).await?;
        let turn = self.daemon.caught_up(&open, turn).await?;
        Ok((open, turn))
    }

    /// The session a mutation means. A commit takes in what others have appended itself, so that is not done
    /// here.
    pub(crate) async fn mutable(
        &self,
        params: &impl wire::Mutation,
    ) -> Result<(Arc<OpenSession>, SessionGuard)> {
        let (open, turn) = self.turn(params.session_id()).await?;
        open.session.check_writable()?;
        Ok((open, turn))
    }

    /// Opens a session once the response is queued: nothing of it may go out, and no other request may reach
    /// it, before (protocol.md §7).
    pub(crate) fn open_after(&self, open: &Arc<OpenSession>, mut lease: Lease) {
        let (daemon, open) = (Arc::clone(&self.daemon), Arc::clone(open));
        self.after(move || {
            lease.set_open(Some(Arc::clone(&open)));
            daemon.notify(&open, "session_opened", |seq| {
                wire::notification::SessionOpened {
                    session_id: open.id.to_string(),
                    seq,
                }
            });
            daemon.watch(&open);
            drop(lease);
        });
    }

    /// Says something once the response is on its way.
    pub(crate) fn after(&self, say: impl FnOnce() + Send + 'static) {
        let mut after = lock(&self.after);
        after.push(Box::new(say));
    }
}
