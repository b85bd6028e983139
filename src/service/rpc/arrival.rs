//! Requests of scope `registry`: they may change the set of open sessions and of session files, or list it. The arrival
//! of a request decides which earlier requests it waits for.

use crate::daemon::call::Call;
use crate::daemon::guard::Place;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use treelined_core::error::Result;

/// The longest time that a list waits for earlier appends.
const EARLIER_APPENDS: Duration = Duration::from_millis(250);

/// A request at its arrival.
pub(super) struct Arrival<'a> {
    call: &'a Arc<Call>,
}

impl<'a> Arrival<'a> {
    pub(super) fn of(call: &'a Arc<Call>) -> Self {
        Self { call }
    }

    /// The request, for the rest of its work.
    pub(super) fn call(&self) -> &'a Arc<Call> {
        self.call
    }

    /// Takes a place in the queue of a session, to close, delete or restore it.
    pub(super) fn place_to_change(&self, session_id: Option<&str>) -> Place {
        self.call.place_to_change(session_id)
    }

    /// Waits until earlier changes are in the files. These are the changes of [`Self::earlier_changes_of_sessions`],
    /// and imports.
    pub(super) fn earlier_changes(&self) -> impl Future<Output = Result<()>> + Send + use<> {
        let (queues, by) = (&self.call.daemon.registry.queues, self.call.connection.id);
        let imports = queues.imports_ended(Some(by));
        let sessions = self.earlier_changes_of_sessions();
        let cancel = self.call.cancel.clone();
        async move {
            sessions.await?;
            cancel.guard(imports).await
        }
    }

    /// Waits until earlier changes of single sessions are in the files. These are creations, deletions, copies and
    /// appends. The wait for appends has a limit, since they may wait for the lock of another process or for a slow
    /// opening.
    pub(super) fn earlier_changes_of_sessions(
        &self,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        let queues = &self.call.daemon.registry.queues;
        let (appends, changes) = (queues.earlier_ended(), queues.changes_ended());
        let cancel = self.call.cancel.clone();
        async move {
            let _waiting = tokio::time::timeout(EARLIER_APPENDS, appends).await;
            cancel.guard(changes).await
        }
    }
}
