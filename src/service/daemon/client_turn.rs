//! The messages that wait for the end of a client's turn.

use std::collections::HashMap;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::flow::append::NewEntry;
use treelined_core::id::{ConnectionId, EntryId};
use treelined_files::session::{Busy, SessionState};

/// A turn that has not ended.
pub(super) struct RunningTurn {
    /// Its connection ends it.
    by: ConnectionId,
    _busy: Busy,
}

/// The agent turn of a session's client.
#[derive(Default)]
pub(crate) struct ClientTurn {
    pub(super) running: Option<RunningTurn>,
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
    pub(crate) fn take(&mut self, state: &SessionState) -> Vec<NewEntry> {
        self.places.clear();
        self.bytes = 0;
        let mut queue = std::mem::take(&mut self.queue);
        for queued in &mut queue {
            let id = queued.id.as_ref();
            if id.is_some_and(|id| state.tree.find_any(id.as_str()).is_some()) {
                queued.id = None;
            }
        }
        queue
    }

    /// Puts messages back in front of those queued since.
    pub(super) fn put_back(&mut self, first: impl Iterator<Item = NewEntry>) {
        let since = std::mem::take(&mut self.queue);
        self.places.clear();
        self.bytes = 0;
        for entry in first.chain(since) {
            self.push(entry);
        }
    }
}
