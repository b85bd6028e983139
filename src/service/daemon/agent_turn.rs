//! The agent turn of a session's client, and the messages that wait for its end (semantics.md §5).
//!
//! Messages sent during a turn wait in memory and are appended when the turn ends. The turn ends even if the append
//! fails: the messages then wait for the next `end_turn`, or go before the next message.

use super::Daemon;
use super::append::AppendOutcome;
use super::commit::Change;
use std::sync::Arc;
use treelined_core::error::Result;
use treelined_core::flow::append::NewEntry;
use treelined_core::id::ExpectedLeaf;

/// Ends a client's turns when its connection ends, and appends the queued messages.
pub(crate) async fn end_all(daemon: &Arc<Daemon>) {
    for open in daemon.registry.all() {
        end_of(daemon, &open.id).await;
    }
}

/// Ends the turn of a session, and appends the queued messages.
pub(crate) async fn end_of(daemon: &Arc<Daemon>, session_id: &str) {
    let Ok((open, guard)) = daemon.registry.own_guard(session_id).await else {
        return;
    };
    if let Err(error) = end(Change::unasked(daemon, open, guard)).await {
        tracing::error!(kind = error.kind.name(), "queued messages are lost");
    }
}

/// Ends the turn of a session's client, and appends the messages that waited for its end.
pub(crate) async fn end(change: Change) -> Result<()> {
    let queue = {
        let mut state = change.open.client_turn();
        state.running = None;
        state.take(&change.guard)
    };
    if !queue.is_empty() {
        flush(change, queue, None, ExpectedLeaf::Any).await?;
    }
    Ok(())
}

/// Appends the queued messages, then `last`, as one operation. On failure, messages that were not written are
/// queued again.
pub(crate) async fn flush(
    change: Change,
    queue: Vec<NewEntry>,
    last: Option<NewEntry>,
    expected: ExpectedLeaf,
) -> Result<AppendOutcome> {
    let open = Arc::clone(&change.open);
    let entries = queue.iter().chain(&last).cloned().collect();
    match change.append(expected, entries).await {
        Ok(appended) => Ok(appended),
        Err(error) => {
            let details = error.details.as_ref();
            let written = details.and_then(|details| details.get("writtenIds")?.as_array());
            let written = written.map_or(0, Vec::len);
            open.client_turn().put_back(queue.into_iter().skip(written));
            Err(error)
        }
    }
}
