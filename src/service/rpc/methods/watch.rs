//! `watch_sessions` and `unwatch_sessions` (protocol.md §10.4). [`crate::daemon::list_watch`] finds the changes.

use crate::daemon::list_watchers::ListWatcher;
use crate::rpc::arrival::Arrival;
use crate::rpc::caller::Caller;
use crate::rpc::handler::Remainder;
use std::sync::Arc;
use treelined_core::error::Result;
use treelined_wire as wire;

pub(in crate::rpc) fn watch_sessions(
    arrival: &Arrival<'_>,
    params: wire::WatchSessionsParams,
) -> Result<Remainder<wire::WatchSessionsResult>> {
    let (call, earlier) = (Arc::clone(arrival.call()), arrival.earlier_changes());
    Ok(Remainder::of(async move {
        earlier.await?;
        let watcher = ListWatcher::new(
            &call.connection,
            params.cwd.as_deref(),
            params.archived.unwrap_or_default(),
        );
        call.daemon.list_watch.watch(watcher).await?;
        Ok(wire::WatchSessionsResult {})
    }))
}

pub(in crate::rpc) fn unwatch_sessions(
    caller: &Caller<'_>,
    _: wire::UnwatchSessionsParams,
) -> Result<wire::UnwatchSessionsResult> {
    caller.daemon().list_watch.unwatch(caller.connection().id);
    Ok(wire::UnwatchSessionsResult {})
}
