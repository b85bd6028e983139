//! Committing with a session's guard: the write, its notifications, and its durability.

use super::Daemon;
use super::call::Call;
use super::notify::Publication;
use super::open_session::{AppendOutcome, OpenSession, Place, SessionGuard, check_writable, guard};
use super::queue::Scope;
use std::fs::File;
use std::sync::Arc;
use treelined_core::durability::Durability;
use treelined_core::error::{Error, Result};
use treelined_core::flow;
use treelined_core::flow::PlannedLines;
use treelined_core::flow::append::NewEntry;
use treelined_core::id::{ConnectionId, EntryId, ExpectedLeaf};
use treelined_files::cancel::Cancel;
use treelined_files::lock::lock;
use treelined_files::session::commit::CommitOutcome;
use treelined_files::session::{Changes, SessionState};
use treelined_wire::{self as wire, notification};

/// The steps of a commit after its write, the same for every operation: announce it with the guard; then, without the
/// guard, make it durable and send the notifications. The publication ends when the responses are queued.
#[must_use]
pub(crate) struct CommitTail {
    daemon: Arc<Daemon>,
    open: Arc<OpenSession>,
    durability: Durability,
    unsynced: Option<Arc<File>>,
    publication: Option<Publication>,
}

impl CommitTail {
    /// Announces `changes`, of which `ends` are the ends of operations that were written together.
    pub(crate) fn announce(
        daemon: &Arc<Daemon>,
        open: &Arc<OpenSession>,
        core: &SessionState,
        changes: Changes,
        name_before: Option<&str>,
        ends: &[usize],
        outcome: &Result<CommitOutcome>,
    ) -> Self {
        if let Err(error) = outcome {
            open.session.note_failed_making(core, error);
        }
        let outcome = outcome.as_ref().ok();
        let durability = match outcome.is_some_and(|outcome| outcome.is_queued) {
            true => Durability::Queued,
            false => open.session.syncer.durability(),
        };
        let wrote = !changes.own.is_empty() || outcome.is_some_and(|outcome| outcome.wrote);
        // Persist, then notify: with `always` the notifications wait for the sync.
        let is_durable = durability != Durability::Always;
        let publication = wrote.then(|| open.publication(is_durable));
        if wrote {
            daemon.list_changed();
            daemon.describe(core);
        }
        if !open.session.is_closed() {
            daemon.announce(open, core, changes, name_before, ends);
            let was_queued = *lock(&open.queued) == Some(true);
            if was_queued || durability == Durability::Queued {
                daemon.note_queue(open, core);
            }
        }
        Self {
            daemon: Arc::clone(daemon),
            open: Arc::clone(open),
            durability,
            unsynced: outcome.and_then(|outcome| outcome.unsynced.clone()),
            publication,
        }
    }

    pub(crate) fn durability(&self) -> Durability {
        self.durability
    }

    /// Makes the commit as durable as its session promises, then sends its notifications.
    pub(crate) async fn finish(self) -> (Result<()>, Option<Publication>) {
        let synced = match self.unsynced {
            Some(file) => {
                let late = late_failure(&self.daemon, &self.open);
                let syncer = &self.open.session.syncer;
                syncer.after_write(self.durability, file, late).await
            }
            None => Ok(()),
        };
        if let Some(publication) = &self.publication {
            publication.send().await;
        }
        (synced, self.publication)
    }
}

/// Announces that a sync failed after its appends had been answered.
pub(crate) fn late_failure(
    daemon: &Arc<Daemon>,
    open: &Arc<OpenSession>,
) -> impl FnOnce() + Send + use<> {
    let (daemon, open) = (Arc::clone(daemon), Arc::clone(open));
    move || daemon.durability_lost(&open)
}

/// The place in the queue of a request that changes its session, taken when the request arrived.
#[must_use]
pub(crate) struct ChangePlace {
    call: Arc<Call>,
    place: Place,
}

impl ChangePlace {
    pub(crate) fn new(call: &Arc<Call>, session_id: Option<&str>) -> Self {
        Self {
            call: Arc::clone(call),
            place: call.place(session_id, Scope::Session),
        }
    }

    /// The connection of the request.
    pub(crate) fn connection(&self) -> ConnectionId {
        self.call.connection.id
    }

    /// Waits for all earlier requests and returns the session. The commit reads the entries of other writers.
    pub(crate) async fn reached(self) -> Result<Change> {
        let asked = self.place.asked;
        let (open, turn) = guard(self.place.await?, asked)?;
        Ok(Change::new(&self.call, open, turn))
    }

    /// As [`Self::reached`]; fails if the session is read-only.
    pub(crate) async fn writable(self) -> Result<Change> {
        let mut change = self.reached().await?;
        check_writable(&change.open, &mut change.turn)?;
        Ok(change)
    }
}

/// The right to change a session once, with the session's guard.
pub(crate) struct Change {
    pub(crate) daemon: Arc<Daemon>,
    pub(crate) open: Arc<OpenSession>,
    pub(crate) turn: SessionGuard,
    pub(crate) cancel: Cancel,
    /// The request, if the change has one.
    call: Option<Arc<Call>>,
}

/// The outcome of a change.
pub(crate) struct ChangeOutcome<R> {
    /// The result of `then`, which reads the session right after the commit.
    pub(crate) seen: R,
    pub(crate) entry_ids: Vec<String>,
    pub(crate) durability: Durability,
}

impl Change {
    /// A change for a request.
    pub(crate) fn new(call: &Arc<Call>, open: Arc<OpenSession>, turn: SessionGuard) -> Self {
        Self {
            daemon: Arc::clone(&call.daemon),
            open,
            turn,
            cancel: call.cancel.clone(),
            call: Some(Arc::clone(call)),
        }
    }

    /// A change without a request.
    pub(crate) fn unasked(
        daemon: &Arc<Daemon>,
        open: Arc<OpenSession>,
        turn: SessionGuard,
    ) -> Self {
        Self {
            daemon: Arc::clone(daemon),
            open,
            turn,
            cancel: Cancel::new(),
            call: None,
        }
    }

    /// The same, after reading the entries of other writers.
    pub(crate) async fn caught_up(self) -> Result<Self> {
        let turn = self.daemon.caught_up(&self.open, self.turn).await?;
        Ok(Self { turn, ..self })
    }

    /// Writes the plan of `plan` and announces it, calls `then` with the session and the durability of what was written,
    /// releases the guard, and makes the commit as durable as its session promises.
    pub(crate) async fn commit<P, T, R>(self, plan: P, then: T) -> Result<ChangeOutcome<R>>
    where
        P: FnMut(&SessionState) -> Result<PlannedLines> + Send + 'static,
        T: FnOnce(&SessionState, Option<Durability>) -> R,
    {
        let (daemon, open) = (self.daemon, self.open);
        open.session.syncer.check()?;
        let name_before = self.turn.tree.name().map(str::to_owned);
        let (turn, changes, outcome) = self.turn.commit(&self.cancel, plan).await;
        let Some(mut turn) = turn else {
            return Err(outcome.err().unwrap_or_else(Error::cancelled));
        };
        let name_before = name_before.as_deref();
        let tail = CommitTail::announce(&daemon, &open, &turn, changes, name_before, &[], &outcome);
        let durability = tail.durability();
        let outcome = outcome.map(|outcome| {
            let written = outcome.wrote.then_some(durability);
            (then(&turn, written), outcome.entry_ids)
        });
        daemon.watch_predecessors(&open, &mut turn);
        drop(turn);
        let (synced, publication) = tail.finish().await;
        if let Some(call) = self.call {
            // Later commits are answered behind this one.
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
        let plan = move |core: &SessionState| {
            let stored = |node| core.entry(node);
            let planned = flow::append::plan(&core.tree, &*source, &entries, &stored);
            // A retry has already moved the leaf.
            let is_retry = planned
                .as_ref()
                .is_ok_and(|planned| planned.lines.is_empty());
            if !is_retry {
                core.check_expected_leaf(&expected)?;
            }
            planned
        };
        let repeated = |core: &SessionState, _| core.repeated(chosen.iter());
        let changed = self.commit(plan, repeated).await?;
        // Some of the entries may have been in the file before.
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

impl Daemon {
    /// Announces that a sync failed after its appends had been answered (session-file.md §3).
    pub(crate) fn durability_lost(&self, open: &OpenSession) {
        if open.session.is_closed() {
            tracing::error!("entries of a session that has been closed may not be on disk");
            return;
        }
        self.notify(open, |seq| notification::Diagnostics {
            session_id: open.id.to_string(),
            seq,
            diagnostics: vec![wire::Diagnostic::of_file(
                wire::DiagnosticKind::DurabilityUnknown,
            )],
        });
    }
}
