//! The agent turn of a session's client, and the messages that wait for its end (semantics.md §5).
//!
//! Messages sent during a turn wait in memory and are appended when the turn ends. The turn ends even if the append
//! fails: the messages then wait for the next `end_turn`, or go before the next message.

use super::Daemon;
use super::client_turn::ClientTurn;
use super::commit::Change;
use super::open_session::{AppendOutcome, OpenSession};
use std::sync::{Arc, MutexGuard};
use treelined_core::error::Result;
use treelined_core::flow::append::NewEntry;
use treelined_core::id::ExpectedLeaf;
use treelined_files::cancel::Cancel;
use treelined_files::lock::lock;
use treelined_wire::notification;

impl OpenSession {
    pub(crate) fn is_in_turn(&self) -> bool {
        self.client_turn().running.is_some()
    }

    pub(crate) fn client_turn(&self) -> MutexGuard<'_, ClientTurn> {
        lock(&self.turn)
    }
}

impl Daemon {
    /// Ends a client's turns when its connection ends, and appends the queued messages.
    pub async fn end_turns(self: &Arc<Self>) {
        for open in self.open_sessions() {
            self.end_turn(&open).await;
        }
    }

    /// Ends the turn of a session, and appends the queued messages.
    pub(crate) async fn end_turn(self: &Arc<Self>, open: &OpenSession) {
        let turn = self.turn(None, Some(&open.id), &Cancel::new()).await;
        let Ok((open, turn)) = turn else {
            return;
        };
        if let Err(error) = end(Change::unasked(self, open, turn)).await {
            tracing::error!(kind = error.kind.name(), "queued messages are lost");
        }
    }
}

/// Ends the turn of a session's client, and appends the messages that waited for its end.
pub(crate) async fn end(change: Change) -> Result<()> {
    let queue = {
        let mut state = change.open.client_turn();
        state.running = None;
        state.take(&change.turn)
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

pub(crate) fn request_turn(daemon: &Daemon, open: &OpenSession, entry_id: &str) {
    daemon.notify(open, |seq| notification::TurnRequested {
        session_id: open.id.to_string(),
        seq,
        entry_id: entry_id.to_owned(),
    });
}
