//! `watch_sessions` and `unwatch_sessions` (protocol.md §10.4). [`crate::daemon::list_watch`] notices the changes.

use super::list::earlier_changes;
use crate::daemon::call::Call;
use crate::rpc::handler::Remainder;
use std::sync::Arc;
use treelined_core::error::Result;
use treelined_wire as wire;

pub(in crate::rpc) fn watch_sessions(
    call: &Arc<Call>,
    params: wire::WatchSessionsParams,
) -> Result<Remainder<wire::WatchSessionsResult>> {
    let call = Arc::clone(call);
    let earlier = earlier_changes(&call);
    Ok(Box::pin(async move {
        earlier.await?;
        let cwd = params.cwd.as_deref();
        call.daemon.watch_sessions(&call.connection, cwd).await?;
        Ok(wire::WatchSessionsResult {})
    }))
}

pub(in crate::rpc) fn unwatch_sessions(
    call: &Arc<Call>,
    _: wire::UnwatchSessionsParams,
) -> Result<wire::UnwatchSessionsResult> {
    call.daemon.unwatch_sessions(&call.connection);
    Ok(wire::UnwatchSessionsResult {})
}
