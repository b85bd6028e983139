//! The turns of a session's clients, and the messages that wait for their end (protocol.md §3.13).

use std::collections::{BTreeMap, HashMap};
use treelined_core::error::{Error, Kind, Result};
use treelined_core::flow::append::{NewEntry, NewParent};
use treelined_core::id::{ConnectionId, EntryId, ExpectedLeaf};
use treelined_core::tree::{Node, Tree};
use treelined_files::session::{Busy, SessionState};

/// The turn of the whole session that has not ended.
pub(super) struct RunningTurn {
    /// The connection that has begun the turn. The turn ends with the connection.
    by: ConnectionId,
    id: String,
    _busy: Busy,
}

impl RunningTurn {
    /// The connection that has begun the turn.
    pub(super) fn by(&self) -> ConnectionId {
        self.by
    }
}

/// A turn of one branch. Several such turns can run at the same time.
struct BranchTurn {
    by: ConnectionId,
    /// The entry of the branch at which the turn began.
    entry_id: EntryId,
    queue: MessageQueue,
}

/// The turns of a session's clients.
#[derive(Default)]
pub(crate) struct ClientTurn {
    pub(super) running: Option<RunningTurn>,
    /// The turns of branches, by their ids.
    branches: BTreeMap<String, BranchTurn>,
    /// The messages that wait for the end of the turn of the whole session.
    queue: MessageQueue,
}

/// Messages that wait for the end of a turn, oldest first. These messages never request a turn, since the client that
/// ends the turn decides about the next one.
#[derive(Default)]
struct MessageQueue {
    entries: Vec<NewEntry>,
    /// The index in `entries` of each message with an id.
    places: HashMap<EntryId, usize>,
    /// Bytes of the messages.
    bytes: usize,
}

/// The most bytes of messages that wait for the end of a turn, for all branches of a session together.
const MAX_QUEUED: usize = 64 << 20;
/// The most turns of branches of one session at a time.
const MAX_TURNS: usize = 1024;

impl ClientTurn {
    /// Begins the turn of a connection.
    pub(crate) fn begin(&mut self, by: ConnectionId, id: String, busy: Busy) {
        let _busy = busy;
        self.running = Some(RunningTurn { by, id, _busy });
    }

    /// Begins a turn of the branch of an entry.
    pub(crate) fn begin_branch(
        &mut self,
        by: ConnectionId,
        id: String,
        entry_id: EntryId,
    ) -> Result<()> {
        if self.branches.len() >= MAX_TURNS {
            let message = format!("a session has at most {MAX_TURNS} turns of branches: end some");
            return Err(Error::new(Kind::Overloaded, message));
        }
        let queue = MessageQueue::default();
        let turn = BranchTurn {
            by,
            entry_id,
            queue,
        };
        self.branches.insert(id, turn);
        Ok(())
    }

    /// Whether a turn of this connection is running, for the session or for a branch.
    pub(crate) fn is_of(&self, connection: ConnectionId) -> bool {
        self.is_sessions_of(connection) || self.branches.values().any(|turn| turn.by == connection)
    }

    /// Whether a turn of another connection is running.
    pub(super) fn has_others(&self, connection: ConnectionId) -> bool {
        let running = self.running.iter().map(|running| running.by);
        let mut all = running.chain(self.branches.values().map(|turn| turn.by));
        all.any(|by| by != connection)
    }

    /// Whether the turn of the whole session belongs to this connection.
    pub(crate) fn is_sessions_of(&self, connection: ConnectionId) -> bool {
        let running = self.running.as_ref();
        running.is_some_and(|running| running.by == connection)
    }

    /// Whether this is the id of the turn of the whole session.
    pub(crate) fn is_sessions(&self, id: &str) -> bool {
        let running = self.running.as_ref();
        running.is_some_and(|running| running.id == id)
    }

    /// Fails with `sessionBusy` if a turn of a branch is running. With `by`, only the turns of that connection count.
    pub(crate) fn check_no_branch(&self, by: Option<ConnectionId>) -> Result<()> {
        let mut turns = self.branches.iter();
        match turns.find(|(_, turn)| by.is_none_or(|by| turn.by == by)) {
            Some((id, _)) => Err(busy(id)),
            None => Ok(()),
        }
    }

    /// Fails with `sessionBusy` if the branch that begins with `head` has a turn.
    pub(crate) fn check_branch(&self, tree: &Tree, head: Node) -> Result<()> {
        if self.branches.is_empty() {
            return Ok(());
        }
        let archived = tree.archived();
        for (id, turn) in &self.branches {
            let entry = tree.find(turn.entry_id.as_str());
            let tip = entry.map(|entry| tree.newest_step_below(entry, &archived));
            let mut ends = [entry, tip].into_iter().flatten();
            if ends.any(|end| tree.is_ancestor(head, end)) {
                return Err(busy(id));
            }
        }
        Ok(())
    }

    /// The ids of the turns of branches that these connections have begun.
    pub(super) fn branch_ids(&self, is_meant: impl Fn(ConnectionId) -> bool) -> Vec<String> {
        let turns = self.branches.iter();
        let meant = turns.filter(|(_, turn)| is_meant(turn.by));
        meant.map(|(id, _)| id.clone()).collect()
    }

    /// Fails with `sessionBusy` if this turn of a branch belongs to another connection.
    pub(crate) fn check_own_branch(&self, id: &str, by: ConnectionId) -> Result<()> {
        match self.branches.get(id) {
            Some(turn) if turn.by != by => Err(busy(id)),
            _ => Ok(()),
        }
    }

    /// The end of the branch of a turn. Fails if the turn does not run, or if the file does not have the entry at which
    /// the turn began.
    pub(crate) fn tip(&self, id: &str, state: &SessionState) -> Result<Node> {
        let turn = self.branches.get(id).ok_or_else(|| no_turn(id))?;
        let entry = state.find(turn.entry_id.as_str())?;
        let archived = state.tree.archived();
        Ok(state.tree.newest_step_below(entry, &archived))
    }

    /// Queues a message for the end of the session's turn, or for the end of a branch's turn. A message that is already
    /// queued is ignored. A different message with the same id fails with `duplicateEntryId`.
    pub(crate) fn enqueue(&mut self, branch: Option<&str>, entry: NewEntry) -> Result<()> {
        let branches = self.branches.values().map(|turn| turn.queue.bytes);
        let queued = self.queue.bytes + branches.sum::<usize>();
        let queue = match branch {
            None => &mut self.queue,
            Some(id) => match self.branches.get_mut(id) {
                Some(turn) => &mut turn.queue,
                None => return Err(no_turn(id)),
            },
        };
        queue.enqueue(entry, queued)
    }

    /// Takes the messages that wait for the end of the session's turn. If an entry has used the id of a message in the
    /// meantime, the message gets a new id.
    pub(crate) fn take(&mut self, state: &SessionState) -> Vec<NewEntry> {
        self.queue.take(state)
    }

    /// Puts messages back, before the messages that were queued after them.
    pub(super) fn put_back(&mut self, first: impl Iterator<Item = NewEntry>) {
        self.queue.put_back(first);
    }

    /// The messages that wait for the end of a branch's turn, as background entries at the end of the branch. They stay
    /// queued until [`Self::end_branch`].
    pub(crate) fn of_branch(&mut self, id: &str, state: &SessionState) -> Result<Vec<NewEntry>> {
        if !self.branches.contains_key(id) {
            return Ok(Vec::new());
        }
        let tip = state.tree.id(self.tip(id, state)?).to_owned();
        let Some(turn) = self.branches.get_mut(id) else {
            return Ok(Vec::new());
        };
        let queued = turn.queue.take(state);
        turn.queue.put_back(queued.clone().into_iter());
        let queued = queued.into_iter().enumerate();
        let queued = queued.map(|(index, entry)| {
            let entry = match index {
                0 => entry.with_parent(NewParent::Named(Some(tip.clone()))),
                _ => entry,
            };
            entry.in_background(index, None)
        });
        queued.collect()
    }

    pub(crate) fn end_branch(&mut self, id: &str) {
        self.branches.remove(id);
    }
}

/// The error for a branch that a turn keeps busy.
fn busy(turn_id: &str) -> Error {
    let details = serde_json::json!({ "by": "turn", "turnId": turn_id });
    let message = "a turn of a branch is running: end it with end_turn first";
    Error::new(Kind::SessionBusy, message).with_details(details)
}

fn no_turn(id: &str) -> Error {
    let reason = format!("no turn with the id {id:?} is running: leave it out, or begin one");
    Error::invalid_params("turnId", reason)
}

impl MessageQueue {
    /// `queued` is the number of bytes that wait in all queues of the session.
    fn enqueue(&mut self, entry: NewEntry, queued: usize) -> Result<()> {
        let place = entry.id.as_ref().and_then(|id| self.places.get(id));
        match place.and_then(|place| self.entries.get(*place)) {
            Some(queued) if queued.members == entry.members => return Ok(()),
            Some(_) => {
                return Err(Error::new(
                    Kind::DuplicateEntryId,
                    "another message that waits has this id",
                ));
            }
            None => {}
        }
        if queued + entry.members.len() > MAX_QUEUED {
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
            self.places.insert(id.clone(), self.entries.len());
        }
        self.entries.push(entry);
    }

    fn take(&mut self, state: &SessionState) -> Vec<NewEntry> {
        self.places.clear();
        self.bytes = 0;
        let mut queue = std::mem::take(&mut self.entries);
        for queued in &mut queue {
            let id = queued.id.as_ref();
            if id.is_some_and(|id| state.tree.find_any(id.as_str()).is_some()) {
                queued.id = None;
            }
        }
        queue
    }

    fn put_back(&mut self, first: impl Iterator<Item = NewEntry>) {
        let since = std::mem::take(&mut self.entries);
        self.places.clear();
        self.bytes = 0;
        for entry in first.chain(since) {
            self.push(entry);
        }
    }
}

/// Checks the position that a message of a turn expects: the end of the turn's branch, or the leaf.
pub(crate) fn check_expected(
    turns: &ClientTurn,
    branch: Option<&str>,
    state: &SessionState,
    expected: &ExpectedLeaf,
) -> Result<()> {
    match branch {
        None => state.check_expected_leaf(expected),
        Some(id) => {
            let tip = turns.tip(id, state)?;
            state.check_expected_tip(expected, Some(state.tree.id(tip)))
        }
    }
}
