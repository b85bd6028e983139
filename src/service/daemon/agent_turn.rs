//! The turns of a session's clients, and the messages that wait for the end of a turn (protocol.md §3.13).
//!
//! A message that is sent during a turn waits in memory, and is appended when the turn ends. The turn ends even if the
//! append fails. The messages then wait for the next `end_turn`, or are appended before the next message.

use super::Daemon;
use super::append::AppendOutcome;
use super::client_turn::RunningTurn;
use super::commit::Change;
use std::sync::Arc;
use treelined_core::error::Result;
use treelined_core::flow::append::NewEntry;
use treelined_core::id::{ConnectionId, ExpectedLeaf};

/// Ends all turns and appends the queued messages, when the daemon ends.
pub(crate) async fn end_all(daemon: &Arc<Daemon>) {
    for open in daemon.registry.all() {
        end_of(daemon, &open.id, |_| true).await;
    }
}

/// Ends the turns of a session that these connections have begun, and appends the queued messages.
pub(crate) async fn end_of(
    daemon: &Arc<Daemon>,
    session_id: &str,
    is_meant: impl Fn(ConnectionId) -> bool,
) {
    let Ok((open, guard)) = daemon.registry.own_guard(session_id).await else {
        return;
    };
    let (is_sessions, branches) = {
        let turns = open.client_turn();
        let by = turns.running.as_ref().map(RunningTurn::by);
        // If no turn runs, the queue can have messages of an earlier turn that could not be written. They are written
        // now.
        (by.is_none_or(&is_meant), turns.branch_ids(&is_meant))
    };
    if is_sessions {
        lost(end(Change::unasked(daemon, open, guard)).await);
    } else {
        drop(guard);
    }
    for id in branches {
        let Ok((open, guard)) = daemon.registry.own_guard(session_id).await else {
            return;
        };
        lost(end_branch(Change::unasked(daemon, Arc::clone(&open), guard), &id).await);
        open.client_turn().end_branch(&id);
    }
}

fn lost(ended: Result<()>) {
    if let Err(error) = ended {
        tracing::error!(kind = error.kind.name(), "queued messages are lost");
    }
}

/// Ends the turn of a branch, and appends its messages in the background. If the messages cannot be written, the turn
/// continues.
pub(crate) async fn end_branch(change: Change, id: &str) -> Result<()> {
    let open = Arc::clone(&change.open);
    let queue = open.client_turn().of_branch(id, &change.guard)?;
    if !queue.is_empty() {
        change.append(ExpectedLeaf::Any, queue).await?;
    }
    open.client_turn().end_branch(id);
    Ok(())
}

/// Ends the turn of a session's client, and appends the messages that have waited for the end.
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
