//! One request on its way to its response.

use super::Daemon;
use super::connection::{AskedNavigation, Connection};
use super::open_session::{Lease, OpenSession, Place, SessionGuard, guard};
use super::queue::Scope;
use crate::cancel::Cancel;
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
    /// What happens once the response is queued.
    after: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
    /// The navigation that it asks for, if it is one: an abort may name it before it has begun.
    navigation: OnceLock<AskedNavigation>,
    /// The place in the session's queue that was taken when the request arrived.
    place: Mutex<Option<Place>>,
}

impl Call {
    pub(crate) fn new(connection: &Arc<Connection>, id: Option<wire::RequestId>) -> Arc<Self> {
        Arc::new(Self {
            daemon: Arc::clone(&connection.daemon),
            connection: Arc::clone(connection),
            id,
            cancel: Cancel::new(),
            after: Mutex::default(),
            navigation: OnceLock::new(),
            place: Mutex::default(),
        })
    }

    /// Makes an abort find it while it waits.
    pub(crate) fn names_navigation(&self, asked: AskedNavigation) {
        let _named_before = self.navigation.set(asked);
    }

    pub(crate) fn navigation(&self) -> Option<&AskedNavigation> {
        self.navigation.get()
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

    /// Does something once the response is queued.
    pub(crate) fn after(&self, act: impl FnOnce() + Send + 'static) {
        lock(&self.after).push(Box::new(act));
    }

    /// Does what waits for the response, which has just been queued.
    pub(crate) fn answered(&self) {
        let after = std::mem::take(&mut *lock(&self.after));
        for act in after {
            act();
        }
    }
}
