//! Operations that ask before they commit (protocol.md §1.6): navigation and compaction.
//!
//! The operation waits for earlier requests and plans with the session's guard; releases the session while it waits for
//! clients and for a summarizer; then takes its place after the requests that arrived since, and commits.

use super::call::Call;
use super::commit::Change;
use super::open_session::{OpenSession, Place, SessionGuard, check_writable, guard};
use super::question::EventQuestion;
use super::queue::Scope;
use super::reading::inline_or_blocking;
use std::sync::Arc;
use std::time::Duration;
use treelined_core::error::Result;
use treelined_core::id::ExpectedLeaf;
pub(crate) use treelined_files::session::{Activity, Busy, SessionState};
use treelined_wire::BeforeEvent;

/// The place in the queue of a request that asks before it commits, taken when the request arrived.
#[must_use]
pub(crate) struct Release {
    pub(crate) call: Arc<Call>,
    place: Place,
}

/// A request and its session.
pub(crate) struct SessionRequest {
    pub(crate) call: Arc<Call>,
    pub(crate) open: Arc<OpenSession>,
}

/// An operation that plans with the session's guard.
#[must_use]
pub(crate) struct PlannedOperation {
    pub(crate) request: SessionRequest,
    /// Dropped before the guard, so that the next request does not find the session busy.
    busy: Busy,
    pub(crate) turn: SessionGuard,
}

/// An operation that waits for clients or a summarizer, while other requests run.
#[must_use]
pub(crate) struct WaitingOperation {
    pub(crate) request: SessionRequest,
    busy: Busy,
    /// The guard, on a connection without `initialize`: later requests wait, so that a script's requests run one after
    /// the other.
    kept: Option<SessionGuard>,
}

impl Release {
    pub(crate) fn new(call: &Arc<Call>, session_id: Option<&str>) -> Self {
        Self {
            call: Arc::clone(call),
            place: call.place(session_id, Scope::Session),
        }
    }

    /// Begins the operation, which keeps the session busy, after all earlier requests and after reading the entries of
    /// other writers. Cancelling the request aborts the operation at any wait.
    pub(crate) async fn begin(
        self,
        expected: &ExpectedLeaf,
        activity: Activity,
    ) -> Result<PlannedOperation> {
        let (call, asked) = (self.call, self.place.asked);
        let (open, turn) = guard(self.place.await?, asked)?;
        let mut turn = call.daemon.caught_up(&open, turn).await?;
        check_writable(&open, &mut turn)?;
        open.session.check_idle()?;
        turn.check_expected_leaf(expected)?;
        let busy = open.session.begin(activity)?;
        Ok(PlannedOperation {
            request: SessionRequest { call, open },
            busy,
            turn,
        })
    }
}

impl PlannedOperation {
    /// Reads `bytes` from the session, with its guard.
    pub(crate) async fn read<T: Send + 'static>(
        self,
        bytes: u64,
        read: impl FnOnce(&SessionState) -> Result<T> + Send + 'static,
    ) -> Result<(Self, T)> {
        inline_or_blocking(bytes, move || {
            let found = read(&self.turn)?;
            Ok((self, found))
        })
        .await
    }

    /// Lets later requests run.
    pub(crate) fn release(self) -> WaitingOperation {
        let keeps = self.request.call.connection.client().is_none();
        WaitingOperation {
            request: self.request,
            busy: self.busy,
            kept: keeps.then_some(self.turn),
        }
    }

    /// The right to commit without a question.
    pub(crate) fn into_change(mut self) -> Change {
        self.turn.with().busy = Some(self.busy);
        let SessionRequest { call, open } = self.request;
        Change::new(&call, open, self.turn)
    }
}

impl SessionRequest {
    /// `summarizerUnavailable` if neither a client, a hook nor a summarizer can give a summary.
    pub(crate) fn check_summarizable(&self, event: BeforeEvent) -> Result<()> {
        let daemon = &self.call.daemon;
        if daemon
            .answerers(&self.open, event, self.call.connection.id)
            .is_empty()
        {
            daemon.summarizer()?;
        }
        Ok(())
    }

    /// A question of this request.
    pub(crate) fn asking(
        &self,
        event: BeforeEvent,
        timeout: Option<Duration>,
    ) -> EventQuestion<'_> {
        EventQuestion {
            daemon: &self.call.daemon,
            open: &self.open,
            asker: self.call.connection.id,
            event,
            navigation_id: None,
            timeout,
            abort: &self.call.cancel,
            takes_summary: true,
        }
    }
}

impl WaitingOperation {
    /// The right to commit, after the requests that arrived since. Fails with `cancelled` if the operation is aborted
    /// first.
    pub(crate) async fn reached(self) -> Result<Change> {
        let SessionRequest { call, open } = self.request;
        let mut turn = match self.kept {
            Some(turn) => turn,
            None => {
                let place = call.place(Some(&open.id), Scope::Session);
                let asked = place.asked;
                guard(place.await?, asked)?.1
            }
        };
        turn.with().busy = Some(self.busy);
        Ok(Change::new(&call, open, turn))
    }
}
