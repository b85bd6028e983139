//! Operations that ask before they commit (protocol.md §1.6): navigation and compaction.
//!
//! The operation waits for earlier requests, and plans with the session's guard. Then it releases the session, and
//! waits for clients and for a summarizer. At last it takes a place in the queue after the requests that have arrived
//! in the meantime, and commits.

use super::call::{Call, TakesPlace};
use super::commit::Change;
use super::event_question::EventQuestion;
use super::follow::current;
use super::guard::{Place, SessionGuard, check_writable, guard_of};
use super::open_session::OpenSession;
use super::reading::inline_or_blocking;
use std::sync::Arc;
use std::time::Duration;
use treelined_core::error::Result;
use treelined_core::id::ExpectedLeaf;
pub(crate) use treelined_files::session::{Activity, Busy, SessionState};
use treelined_wire::BeforeEvent;

/// The place of a request in the queue of its session. The request asks before it commits. The place is taken when the
/// request arrives.
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
    pub(crate) guard: SessionGuard,
}

/// An operation that waits for clients or a summarizer, while other requests run.
#[must_use]
pub(crate) struct WaitingOperation {
    pub(crate) request: SessionRequest,
    busy: Busy,
    /// The guard, if the client has not introduced itself. Such a client is a script, and its requests must run one
    /// after the other.
    kept: Option<SessionGuard>,
}

impl TakesPlace for Release {
    fn take(call: &Arc<Call>, session_id: Option<&str>) -> Self {
        Self {
            call: Arc::clone(call),
            place: call.place(session_id),
        }
    }
}

impl Release {
    /// For an operation that does not keep the session busy: waits for all earlier requests, reads the entries of other
    /// writers, and returns the session. If the operation `writes` later, fails if the session is read-only.
    pub(crate) async fn read(self, writes: bool) -> Result<(SessionRequest, SessionGuard)> {
        let (call, asked) = (self.call, self.place.asked);
        let (open, mut guard) = current(&call.daemon, self.place.await?, asked).await?;
        if writes {
            check_writable(&open, &mut guard)?;
        }
        Ok((SessionRequest { call, open }, guard))
    }

    /// Begins the operation after all earlier requests, and reads the entries of other writers. The session is busy
    /// until the operation ends. Cancelling the request aborts the operation whenever it waits.
    pub(crate) async fn begin(
        self,
        expected: &ExpectedLeaf,
        activity: Activity,
    ) -> Result<PlannedOperation> {
        let (call, asked) = (self.call, self.place.asked);
        let (open, mut guard) = current(&call.daemon, self.place.await?, asked).await?;
        check_writable(&open, &mut guard)?;
        open.session.check_idle()?;
        guard.check_expected_leaf(expected)?;
        let busy = open.session.begin(activity)?;
        Ok(PlannedOperation {
            request: SessionRequest { call, open },
            busy,
            guard,
        })
    }
}

impl PlannedOperation {
    /// Runs `read`, which reads about `bytes` from the session, with the guard.
    pub(crate) async fn read<T: Send + 'static>(
        self,
        bytes: u64,
        read: impl FnOnce(&SessionState) -> Result<T> + Send + 'static,
    ) -> Result<(Self, T)> {
        inline_or_blocking(bytes, move || {
            let found = read(&self.guard)?;
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
            kept: keeps.then_some(self.guard),
        }
    }

    /// The right to commit without a question.
    pub(crate) fn into_change(mut self) -> Change {
        self.guard.with().busy = Some(self.busy);
        let SessionRequest { call, open } = self.request;
        Change::new(&call, open, self.guard)
    }
}

impl SessionRequest {
    /// The right to change the session, after the requests that have arrived in the meantime.
    pub(crate) async fn writable(&self) -> Result<Change> {
        let place = self.call.place(Some(&self.open.id));
        let asked = place.asked;
        let (open, mut guard) = guard_of(place.await?, asked)?;
        check_writable(&open, &mut guard)?;
        Ok(Change::new(&self.call, open, guard))
    }

    /// Fails with `summarizerUnavailable` if no client, hook, extension or summarizer can give a summary.
    pub(crate) fn check_summarizable(&self, event: BeforeEvent) -> Result<()> {
        let (daemon, asker) = (&self.call.daemon, self.call.connection.id);
        let answerers = daemon.questions.answerers(&self.open, event, asker);
        if answerers.is_empty() {
            daemon.summarizer()?;
        }
        Ok(())
    }

    /// A question that this request asks.
    pub(crate) fn asking(
        &self,
        event: BeforeEvent,
        timeout: Option<Duration>,
    ) -> EventQuestion<'_> {
        EventQuestion {
            questions: &self.call.daemon.questions,
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
    /// The right to commit, after the requests that have arrived in the meantime. Fails with `cancelled` if the
    /// operation is aborted before that.
    pub(crate) async fn reached(self) -> Result<Change> {
        let SessionRequest { call, open } = self.request;
        let mut guard = match self.kept {
            Some(guard) => guard,
            None => {
                let place = call.place(Some(&open.id));
                let asked = place.asked;
                guard_of(place.await?, asked)?.1
            }
        };
        guard.with().busy = Some(self.busy);
        Ok(Change::new(&call, open, guard))
    }
}
