//! The agent turn of a session's client, and the messages that wait for its end (semantics.md §5).
//!
//! Messages sent during a turn wait in memory and are appended when the turn ends. The turn ends even if the append
//! fails: the messages then wait for the next `end_turn`, or go before the next message.

use super::Daemon;
use super::commit::{AppendOutcome, Change};
use super::open_session::{OpenSession, SessionGuard};
use std::collections::HashMap;
use std::sync::{Arc, MutexGuard};
use treelined_core::error::{Error, Kind, Result};
use treelined_core::flow::append::NewEntry;
use treelined_core::id::{ConnectionId, EntryId, ExpectedLeaf};
use treelined_files::cancel::Cancel;
use treelined_files::lock::lock;
pub(crate) use treelined_files::session::Busy;
use treelined_wire::notification;

/// A turn that has not ended.
struct RunningTurn {
    /// Its connection ends it.
    by: ConnectionId,
    _busy: Busy,
}

/// The agent turn of a session's client.
#[derive(Default)]
pub(crate) struct ClientTurn {
    running: Option<RunningTurn>,
    /// Messages that wait for the end of the turn, oldest first. They never request a turn, since the client
    /// that ends a turn decides about the next one.
    queue: Vec<NewEntry>,
    /// Indexes into `queue` by id.
    places: HashMap<EntryId, usize>,
    /// Bytes of the queued messages.
    bytes: usize,
}

/// The limit of the bytes of messages that wait for the end of a turn.
const MAX_QUEUED: usize = 64 << 20;

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

impl ClientTurn {
    /// Begins the turn of a connection.
    pub(crate) fn begin(&mut self, by: ConnectionId, busy: Busy) {
        self.running = Some(RunningTurn { by, _busy: busy });
    }

    /// Whether a turn of this connection is running.
    pub(crate) fn is_of(&self, connection: ConnectionId) -> bool {
        let running = self.running.as_ref();
        running.is_some_and(|running| running.by == connection)
    }

    /// Queues a message; a message that is queued already is ignored. Another message with its id fails with
    /// `duplicateEntryId`.
    pub(crate) fn enqueue(&mut self, entry: NewEntry) -> Result<()> {
        let place = entry.id.as_ref().and_then(|id| self.places.get(id));
        match place.and_then(|place| self.queue.get(*place)) {
            Some(queued) if queued.members == entry.members => return Ok(()),
            Some(_) => {
                return Err(Error::new(
                    Kind::DuplicateEntryId,
                    "another message that waits has this id",
                ));
            }
            None => {}
        }
        if self.bytes + entry.members.len() > MAX_QUEUED {
            return Err(Error::new(
                Kind::Overloaded,
                format!(
                    "the messages that wait for the end of the turn may have {MAX_QUEUED} bytes: \
                     call end_turn first"
                ),
            ));
        }
        self.push(entry);
        Ok(())
    }

    fn push(&mut self, entry: NewEntry) {
        self.bytes += entry.members.len();
        if let Some(id) = &entry.id {
            self.places.insert(id.clone(), self.queue.len());
        }
        self.queue.push(entry);
    }

    /// Takes the queued messages. A message gets a new id if its id has been used since.
    pub(crate) fn take(&mut self, turn: &SessionGuard) -> Vec<NewEntry> {
        self.places.clear();
        self.bytes = 0;
        let mut queue = std::mem::take(&mut self.queue);
        for queued in &mut queue {
            let id = queued.id.as_ref();
            if id.is_some_and(|id| turn.tree.find_any(id.as_str()).is_some()) {
                queued.id = None;
            }
        }
        queue
    }

    /// Puts messages back in front of those queued since.
    fn put_back(&mut self, first: impl Iterator<Item = NewEntry>) {
        let since = std::mem::take(&mut self.queue);
        self.places.clear();
        self.bytes = 0;
        for entry in first.chain(since) {
            self.push(entry);
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
