//! The steps of a commit after its write: announce, make durable, publish.

use super::Daemon;
use super::notify::{FactsBefore, Publication};
use super::open_session::OpenSession;
use serde_json::json;
use std::fs::File;
use std::sync::{Arc, OnceLock};
use treelined_core::durability::Durability;
use treelined_core::error::{Error, Result};
use treelined_files::lock::lock;
use treelined_files::session::commit::CommitOutcome;
use treelined_files::session::shed::{ColdMove, MovedBranches};
use treelined_files::session::{Changes, SessionGuard, SessionState};

/// The steps of a commit after its write, the same for every operation. While the guard is held, the commit is
/// announced. After that, without the guard, the commit is made durable and its notifications are sent. The publication
/// ends when the responses are queued.
#[must_use]
pub(crate) struct CommitTail {
    daemon: Arc<Daemon>,
    open: Arc<OpenSession>,
    durability: Durability,
    /// The durability that this machine has to provide.
    promised: Durability,
    unsynced: Option<Arc<File>>,
    publication: Option<Publication>,
}

impl CommitTail {
    /// Announces `changes`. If several operations were written together, `ends` has the end of each of them.
    pub(crate) fn announce(
        daemon: &Arc<Daemon>,
        open: &Arc<OpenSession>,
        state: &SessionState,
        changes: Changes,
        before: &FactsBefore,
        ends: &[usize],
        outcome: &Result<CommitOutcome>,
    ) -> Self {
        let outcome = outcome.as_ref().ok();
        let promised = match outcome.is_some_and(|outcome| outcome.is_queued) {
            true => Durability::Queued,
            false => open.session.syncer.durability(),
        };
        let durability = state.worth(promised);
        let wrote = !changes.own.is_empty() || outcome.is_some_and(|outcome| outcome.wrote);
        // Notifications follow durability: with the policy `always` they wait for the sync.
        let is_durable = promised != Durability::Always;
        let publication = wrote.then(|| open.publication(is_durable));
        if wrote {
            daemon.list_watch.changed();
            daemon.files.describe(state);
        }
        if !open.session.is_closed() {
            daemon.notifier.announce(open, state, changes, before, ends);
            let was_queued = *lock(&open.queued) == Some(true);
            if was_queued || durability == Durability::Queued {
                daemon.notifier.note_queue(open, state);
            }
        }
        Self {
            daemon: Arc::clone(daemon),
            open: Arc::clone(open),
            durability,
            promised,
            unsynced: outcome.and_then(|outcome| outcome.unsynced.clone()),
            publication,
        }
    }

    /// The session of the commit, and its daemon.
    pub(crate) fn session(&self) -> (Arc<Daemon>, Arc<OpenSession>) {
        (Arc::clone(&self.daemon), Arc::clone(&self.open))
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
                syncer.after_write(self.promised, file, late).await
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
    move || daemon.notifier.durability_lost(&open)
}

/// The guard, the tail of the move, and its outcome.
type ColdMoved<T> = (
    SessionGuard<T>,
    Option<CommitTail>,
    Result<(MovedBranches, CommitOutcome)>,
);

/// Moves branches into the cold file or back, and announces the move. Fails only if the session cannot be used any
/// more; any other error is in the result. If the move was refused before it began, there is no tail.
pub(crate) async fn moved_cold<T: Send + 'static>(
    daemon: &Arc<Daemon>,
    open: &Arc<OpenSession>,
    guard: SessionGuard<T>,
    direction: ColdMove,
    entry_ids: Vec<String>,
) -> Result<ColdMoved<T>> {
    let is_free = open.session.check_not_in_turn();
    let is_free = is_free.and_then(|()| open.client_turn().check_no_branch(None));
    if let Err(error) = is_free.and_then(|()| open.session.syncer.check()) {
        return Ok((guard, None, Err(error)));
    }
    let before = FactsBefore::of(&guard);
    let source = Arc::clone(&daemon.source);
    let (guard, changes, moved) = guard.move_cold(direction, entry_ids, source).await?;
    let (moved, outcome) = match moved {
        Ok((moved, outcome)) => (Ok(moved), Ok(outcome)),
        Err(error) => (Err(error.clone()), Err(error)),
    };
    let tail = CommitTail::announce(daemon, open, &guard, changes, &before, &[], &outcome);
    let moved = moved.and_then(|moved| Ok((moved, outcome?)));
    Ok((guard, Some(tail), moved))
}

/// Brings back the shed branches that an append needs, beginning with `branch`. Before a move, `check` plans the append
/// with the branches back. If `check` fails, nothing is moved: `branch_above` then reads from the error which branch
/// the append needs next. If there is no such branch, the append is refused. `None` if the session cannot be used any
/// more.
pub(crate) async fn bring_back<T: Send + 'static>(
    daemon: &Arc<Daemon>,
    open: &Arc<OpenSession>,
    mut guard: SessionGuard<T>,
    branch: String,
    check: impl Fn(&SessionState) -> Result<()> + Clone + Send + 'static,
    branch_above: impl Fn(&Error) -> Option<String>,
) -> Option<(SessionGuard<T>, Result<()>)> {
    let mut branches = vec![branch.clone()];
    loop {
        let refused: Arc<OnceLock<Error>> = Arc::default();
        let checked = {
            let (check, refused) = (check.clone(), Arc::clone(&refused));
            move |state: &SessionState| {
                check(state).map_err(|error| {
                    let error = state.explained(error);
                    refused.get_or_init(|| error).clone()
                })
            }
        };
        let back = ColdMove::Unshed(Some(Box::new(checked)));
        let moved = moved_cold(daemon, open, guard, back, branches.clone()).await;
        let (ours, tail, moved) = moved.ok()?;
        guard = ours;
        let (synced, _publication) = match tail {
            Some(tail) => tail.finish().await,
            None => (Ok(()), None),
        };
        let Some(error) = refused.get() else {
            return Some((guard, is_back(moved, synced, &branch)));
        };
        match branch_above(error) {
            Some(next) if !branches.contains(&next) => branches.push(next),
            _ => return Some((guard, Err(error.clone()))),
        }
    }
}

/// Whether the branch is back and durable. An error also names the branch that stays shed.
fn is_back(
    moved: Result<(MovedBranches, CommitOutcome)>,
    synced: Result<()>,
    branch: &str,
) -> Result<()> {
    let back = moved.and_then(|(branches, _)| match branches.moved.is_empty() {
        true => Err(Error::entry_not_found(branch)),
        false => synced,
    });
    back.map_err(|error| {
        let mut details = error.details.clone().unwrap_or_else(|| json!({}));
        if let Some(details) = details.as_object_mut() {
            details.insert("shedBranchId".to_owned(), json!(branch));
        }
        error.with_details(details)
    })
}
