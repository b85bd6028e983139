//! Committing with a session's guard: the right to change a session once, and the write itself.

use super::Daemon;
use super::append::AppendOutcome;
use super::call::{Call, TakesPlace};
use super::commit_tail::{CommitTail, late_failure, moved_cold};
use super::follow::{caught_up, watch_predecessors};
use super::guard::{Place, SessionGuard, check_writable, guard_of};
use super::notify::FactsBefore;
use super::open_session::OpenSession;
use std::sync::Arc;
use treelined_core::durability::Durability;
use treelined_core::error::{Error, Result};
use treelined_core::flow;
use treelined_core::flow::PlannedLines;
use treelined_core::flow::append::NewEntry;
use treelined_core::id::{ConnectionId, EntryId, ExpectedLeaf};
use treelined_files::cancel::Cancel;
use treelined_files::session::SessionState;
use treelined_files::session::shed::{ColdMove, MovedBranches};

/// The place of a request in the queue of the session that it changes. The place is taken when the request arrives.
#[must_use]
pub(crate) struct ChangePlace {
    call: Arc<Call>,
    place: Place,
}

impl TakesPlace for ChangePlace {
    fn take(call: &Arc<Call>, session_id: Option<&str>) -> Self {
        Self {
            call: Arc::clone(call),
            place: call.place(session_id),
        }
    }
}

impl ChangePlace {
    /// The request.
    pub(crate) fn call(&self) -> Arc<Call> {
        Arc::clone(&self.call)
    }

    /// The connection of the request.
    pub(crate) fn connection(&self) -> ConnectionId {
        self.call.connection.id
    }

    /// Waits for all earlier requests and returns the session. The later commit reads the entries of other writers.
    pub(crate) async fn reached(self) -> Result<Change> {
        let asked = self.place.asked;
        let (open, guard) = guard_of(self.place.await?, asked)?;
        Ok(Change::new(&self.call, open, guard))
    }

    /// Like [`Self::reached`], but fails if the session is read-only.
    pub(crate) async fn writable(self) -> Result<Change> {
        let mut change = self.reached().await?;
        check_writable(&change.open, &mut change.guard)?;
        Ok(change)
    }
}

/// The right to change a session once. It has the session's guard.
pub(crate) struct Change {
    pub(crate) daemon: Arc<Daemon>,
    pub(crate) open: Arc<OpenSession>,
    pub(crate) guard: SessionGuard,
    pub(crate) cancel: Cancel,
    /// The request that makes the change, if there is one.
    call: Option<Arc<Call>>,
}

/// The outcome of a change.
pub(crate) struct ChangeOutcome<R> {
    /// The result of `then`, which is called right after the commit.
    pub(crate) seen: R,
    pub(crate) entry_ids: Vec<String>,
    pub(crate) durability: Durability,
}

impl Change {
    /// A change for a request.
    pub(crate) fn new(call: &Arc<Call>, open: Arc<OpenSession>, guard: SessionGuard) -> Self {
        Self {
            daemon: Arc::clone(&call.daemon),
            open,
            guard,
            cancel: call.cancel.clone(),
            call: Some(Arc::clone(call)),
        }
    }

    /// A change without a request.
    pub(crate) fn unasked(
        daemon: &Arc<Daemon>,
        open: Arc<OpenSession>,
        guard: SessionGuard,
    ) -> Self {
        Self {
            daemon: Arc::clone(daemon),
            open,
            guard,
            cancel: Cancel::new(),
            call: None,
        }
    }

    /// The same right, after the entries of other writers are read.
    pub(crate) async fn caught_up(self) -> Result<Self> {
        let guard = caught_up(&self.daemon, &self.open, self.guard).await?;
        Ok(Self { guard, ..self })
    }

    /// Writes the lines of `plan` and announces them. Then calls `then` with the session and the durability of the
    /// lines. After that, releases the guard, and makes the commit as durable as its session promises.
    pub(crate) async fn commit<P, T, R>(self, plan: P, then: T) -> Result<ChangeOutcome<R>>
    where
        P: FnMut(&SessionState) -> Result<PlannedLines> + Send + 'static,
        T: FnOnce(&SessionState, Option<Durability>) -> R,
    {
        let (daemon, open) = (self.daemon, self.open);
        open.session.syncer.check()?;
        let before = FactsBefore::of(&self.guard);
        let (guard, changes, outcome) = self.guard.commit(&self.cancel, plan).await;
        let Some(mut guard) = guard else {
            return Err(outcome.err().unwrap_or_else(Error::cancelled));
        };
        let tail = CommitTail::announce(&daemon, &open, &guard, changes, &before, &[], &outcome);
        let durability = tail.durability();
        let outcome = outcome.map(|outcome| {
            let written = outcome.wrote.then_some(durability);
            (then(&guard, written), outcome.entry_ids)
        });
        watch_predecessors(&daemon, &open, &mut guard);
        drop(guard);
        let (synced, publication) = tail.finish().await;
        if let Some(call) = self.call {
            // The publication ends after the response, so that later commits are answered after this commit.
            call.after(move || drop(publication));
        }
        let (seen, entry_ids) = outcome?;
        synced?;
        let entry_ids = entry_ids.iter().map(|id| id.as_str().to_owned());
        Ok(ChangeOutcome {
            seen,
            entry_ids: entry_ids.collect(),
            durability,
        })
    }

    /// Moves branches into the cold file or back, and announces this. Returns the branches and their durability, if any
    /// branch was moved.
    pub(crate) async fn move_cold(
        self,
        direction: ColdMove,
        entry_ids: Vec<String>,
    ) -> Result<(MovedBranches, Option<Durability>)> {
        let (daemon, open) = (self.daemon, self.open);
        let moved = moved_cold(&daemon, &open, self.guard, direction, entry_ids).await?;
        let (mut guard, tail, moved) = moved;
        let Some(tail) = tail else {
            return Ok((moved?.0, None));
        };
        let durability = tail.durability();
        watch_predecessors(&daemon, &open, &mut guard);
        drop(guard);
        let (synced, publication) = tail.finish().await;
        if let Some(call) = self.call {
            call.after(move || drop(publication));
        }
        let (branches, outcome) = moved?;
        synced?;
        Ok((branches, outcome.wrote.then_some(durability)))
    }

    /// Appends entries as one operation.
    pub(crate) async fn append(
        self,
        expected: ExpectedLeaf,
        entries: Vec<NewEntry>,
    ) -> Result<AppendOutcome> {
        let (daemon, open) = (Arc::clone(&self.daemon), Arc::clone(&self.open));
        let source = Arc::clone(&daemon.source);
        let chosen = entries.iter().filter_map(|entry| entry.id.clone());
        let chosen: Vec<EntryId> = chosen.collect();
        let plan = move |state: &SessionState| {
            let stored = |node| state.entry(node);
            let planned = flow::append::plan(&state.tree, &*source, &entries, &stored);
            // The first attempt of a repeated append has moved the leaf, so the expected leaf is not checked.
            let is_retry = planned
                .as_ref()
                .is_ok_and(|planned| planned.lines.is_empty());
            if !is_retry {
                state.check_expected_leaf(&expected)?;
            }
            planned
        };
        let repeated = |state: &SessionState, _| state.repeated(chosen.iter());
        let changed = self.commit(plan, repeated).await?;
        // Some of the entries may have been in the file already. The append also waits until those entries are synced.
        if let Some(entries) = changed.seen? {
            let late = late_failure(&daemon, &open);
            let syncer = &open.session.syncer;
            syncer
                .after_repetition(changed.durability, entries, late)
                .await?;
        }
        Ok(AppendOutcome {
            entry_ids: changed.entry_ids,
            durability: changed.durability,
        })
    }
}
