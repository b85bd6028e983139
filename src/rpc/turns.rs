//! The client's agent turns, and messages from plugins: `begin_turn`, `end_turn`, `send_message`
//! (semantics.md §5).
//!
//! What is sent during a turn waits here, in memory, and is appended when the turn ends. If that
//! fails the turn is over all the same, and the messages go on waiting: for the next `end_turn`, or
//! in front of the next message.

use super::call::Call;
use super::reply::Reply;
use crate::cancel::Cancel;
use crate::daemon::Daemon;
use crate::daemon::commit::{Appended, append};
use crate::daemon::open_session::{OpenSession, SessionGuard};
use crate::error::{Error, Kind, Result};
use crate::flow::append::NewEntry;
use crate::id::{EntryId, ExpectedLeaf};
use crate::lock::lock;
use crate::session::{Activity, Busy};
use crate::wire::{self, Disposition, Mutation, notification};
use std::collections::HashMap;
use std::sync::{Arc, MutexGuard};

/// The turn of a session's client.
#[derive(Default)]
pub struct ClientTurn {
    running: Option<Busy>,
    /// What waits for the end of the turn, oldest first. None of it requests a turn: the client that
    /// ends one decides about the next.
    queue: Vec<NewEntry>,
    /// Places in the queue by id.
    places: HashMap<EntryId, usize>,
    /// Of the queue.
    bytes: usize,
}

/// What may wait for the end of a turn, in bytes.
const MAX_QUEUED: usize = 64 << 20;

pub async fn begin_turn(call: Arc<Call>, params: wire::BeginTurnParams) -> Result<Reply> {
    let (open, _turn) = call.fresh(&params).await?;
    let busy = open.session.begin(Activity::AgentTurn)?;
    open.client_turn().running = Some(busy);
    Reply::of(&wire::BeginTurnResult {})
}

pub async fn end_turn(call: Arc<Call>, params: wire::EndTurnParams) -> Result<Reply> {
    let id = params.session_id.as_deref();
    let (open, turn) = call.turn(id).await?;
    end(&call.daemon, &call.cancel, &open, turn).await?;
    Reply::of(&wire::EndTurnResult {})
}

pub async fn send_message(call: Arc<Call>, params: wire::SendMessageParams) -> Result<Reply> {
    let details = params.details.as_ref().map(|raw| raw.get().as_bytes());
    let entry = NewEntry::custom_message(
        &params.custom_type,
        params.content.get().as_bytes(),
        params.display,
        details,
    )?
    .with_id(params.entry_id.as_deref(), "entryId")?;
    let (open, turn) = call.mutable(&params).await?;
    let known = params.entry_id.as_deref();
    let is_retry = known.is_some_and(|id| turn.tree.find_any(id).is_some());
    if open.is_in_turn() && !is_retry {
        turn.check_expected_leaf(params.expected_leaf())?;
        open.client_turn().enqueue(entry)?;
        return Reply::of(&wire::SendMessageResult {
            disposition: Disposition::Queued,
            entry_id: params.entry_id,
            durability: wire::Durability::None,
        });
    }
    let triggers_turn = params.trigger_turn.unwrap_or_default();
    let requests_turn = triggers_turn && !open.is_in_turn() && !is_retry;
    let before = match open.is_in_turn() {
        true => Vec::new(),
        false => open.client_turn().take(&turn),
    };
    let expected = params.expected_leaf().clone();
    let appended = flush(
        &call.daemon,
        &call.cancel,
        &open,
        turn,
        before,
        Some(entry),
        expected,
    )
    .await?;
    let entry_id = appended.entry_ids.last().cloned();
    let entry_id =
        entry_id.ok_or_else(|| Error::new(Kind::InternalError, "nothing was appended"))?;
    if requests_turn {
        request_turn(&call.daemon, &open, &entry_id);
    }
    Reply::of(&wire::SendMessageResult {
        disposition: match requests_turn {
            true => Disposition::TurnRequested,
            false => Disposition::Appended,
        },
        entry_id: Some(entry_id),
        durability: appended.durability,
    })
}

impl OpenSession {
    fn is_in_turn(&self) -> bool {
        self.client_turn().running.is_some()
    }

    fn client_turn(&self) -> MutexGuard<'_, ClientTurn> {
        lock(&self.turn)
    }
}

impl Daemon {
    /// Ends the turns of a client that has gone: what was queued is appended.
    pub async fn end_turns(self: &Arc<Self>) {
        for open in self.open_sessions() {
            let cancel = Cancel::new();
            let Ok((open, turn)) = self.turn(Some(&open.id), &cancel).await else {
                continue;
            };
            if let Err(error) = end(self, &cancel, &open, turn).await {
                tracing::error!(kind = error.kind.name(), "queued messages are lost");
            }
        }
    }
}

impl ClientTurn {
    /// Queues a message; the same one once. Another one with its id is `duplicateEntryId`.
    fn enqueue(&mut self, entry: NewEntry) -> Result<()> {
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

    /// Takes what waits. An id that somebody else has taken meanwhile is given up, not the message.
    fn take(&mut self, turn: &SessionGuard) -> Vec<NewEntry> {
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

    /// Has these wait again, before those that have come since.
    fn put_back(&mut self, first: impl Iterator<Item = NewEntry>) {
        let since = std::mem::take(&mut self.queue);
        self.places.clear();
        self.bytes = 0;
        for entry in first.chain(since) {
            self.push(entry);
        }
    }
}

async fn end(
    daemon: &Arc<Daemon>,
    cancel: &Cancel,
    open: &Arc<OpenSession>,
    turn: SessionGuard,
) -> Result<()> {
    let queue = {
        let mut state = open.client_turn();
        state.running = None;
        state.take(&turn)
    };
    if !queue.is_empty() {
        flush(daemon, cancel, open, turn, queue, None, ExpectedLeaf::Any).await?;
    }
    Ok(())
}

/// Appends what waited, then `last`, as one operation. On failure what has not been written waits
/// again.
async fn flush(
    daemon: &Arc<Daemon>,
    cancel: &Cancel,
    open: &Arc<OpenSession>,
    turn: SessionGuard,
    queue: Vec<NewEntry>,
    last: Option<NewEntry>,
    expected: ExpectedLeaf,
) -> Result<Appended> {
    let entries = queue.iter().chain(&last).cloned().collect();
    match append(daemon, cancel, open, turn, expected, entries).await {
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

fn request_turn(daemon: &Daemon, open: &OpenSession, entry_id: &str) {
    daemon.notify(open, "turn_requested", |seq| notification::TurnRequested {
        session_id: open.id.to_string(),
        seq,
        entry_id: entry_id.to_owned(),
    });
}
