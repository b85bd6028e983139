//! Committing: what a turn writes (session-file.md §3). PlannedLines against the refreshed tree and under the
//! file's lock, written in one call, then taken in.

use super::{Changes, INLINE_BYTES, SessionGuard, SessionState};
use crate::blocking::blocking;
use crate::cancel::Cancel;
use crate::entry::Kind as EntryKind;
use crate::error::{Error, Kind, Result};
use crate::flow::PlannedLines;
use crate::id::EntryId;
use crate::log::Standing;
use crate::log::append::{self, Lock, TryLock, WriteOutcome};
use crate::session::sync;
use crate::tree::Flags;
use serde_json::json;
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long an append waits for a lock that another process holds (session-file.md §3).
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// Between two attempts. The lock goes to whoever asks at the right moment, so one who asks seldom may
/// find it taken for long where many append.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// The work of a commit: one operation, or several that are planned in turn and written together.
pub trait Work: Send + 'static {
    /// Whether writing it takes longer than the thread that reads requests may be held up.
    fn is_large(&self) -> bool {
        false
    }

    /// The lines to write. Asked for once, with the lock held and the tree fresh.
    fn plan(&mut self, core: &SessionState) -> Result<PlannedLines>;

    /// Asked again and again while others hold the lock, since when is told; an error gives up.
    fn wait(&mut self, contended_since: Option<Instant>) -> Result<()>;
}

/// One operation.
struct Operation<P> {
    plan: Option<P>,
    cancel: Cancel,
    asked: Instant,
}

impl<P> Work for Operation<P>
where
    P: FnOnce(&SessionState) -> Result<PlannedLines> + Send + 'static,
{
    fn plan(&mut self, core: &SessionState) -> Result<PlannedLines> {
        let plan = self.plan.take();
        plan.map_or_else(|| Ok(PlannedLines::default()), |plan| plan(core))
    }

    fn wait(&mut self, contended_since: Option<Instant>) -> Result<()> {
        still_waits(&self.cancel, self.asked, contended_since)
    }
}

/// Fails once an operation asked for at `asked` is not to wait for the lock any longer.
pub(crate) fn still_waits(
    cancel: &Cancel,
    asked: Instant,
    contended_since: Option<Instant>,
) -> Result<()> {
    if cancel.is_cancelled() {
        return Err(Error::cancelled());
    }
    // Who has waited in line for others that did not get the lock does not wait anew.
    let since = contended_since.unwrap_or(asked).max(asked);
    if since.elapsed() < LOCK_TIMEOUT {
        return Ok(());
    }
    let mut error = Error::new(
        Kind::SessionLocked,
        "another process holds the lock of the session file",
    );
    error.retry_after_ms = Some(500);
    Err(error)
}

/// The outcome of a commit.
#[derive(Debug)]
pub struct CommitOutcome {
    pub entry_ids: Vec<EntryId>,
    /// Whether anything was written.
    pub wrote: bool,
    /// The file that remains to be synced by the session's policy.
    pub unsynced: Option<Arc<File>>,
    /// Lines that were planned.
    lines: usize,
    /// How many of them are in the file whole.
    pub whole: usize,
    /// Why not all of them.
    pub failure: Option<Error>,
}

/// The outcome of one attempt to commit.
enum Attempt {
    Done(CommitOutcome),
    /// It has to be made where waiting is allowed.
    Later,
    /// It is in the file; what is there to be read before it takes too long here.
    Written(Box<Written>),
}

/// Lines in the file that are not in the tree yet.
struct Written {
    lock: Lock,
    landed: WriteOutcome,
    /// How many were planned.
    lines: usize,
    entry_ids: Vec<EntryId>,
    ends: Vec<usize>,
}

impl<T: Send + 'static> SessionGuard<T> {
    /// Commits one operation. Comes back with the turn; what changed is told even if it failed.
    pub async fn commit<P>(
        self,
        cancel: &Cancel,
        plan: P,
    ) -> (Option<Self>, Changes, Result<CommitOutcome>)
    where
        P: FnOnce(&SessionState) -> Result<PlannedLines> + Send + 'static,
    {
        let work = Operation {
            plan: Some(plan),
            cancel: cancel.clone(),
            asked: self.asked,
        };
        match self.carry_out(work).await {
            Ok((turn, _, changes, committed)) => (
                Some(turn),
                changes,
                committed.and_then(CommitOutcome::in_full),
            ),
            Err(error) => (None, Changes::default(), Err(error)),
        }
    }

    /// Makes the file of a new session, with nothing but its header in it, synced with its name.
    pub async fn make_file(mut self) -> Result<Self> {
        blocking(move || {
            self.write_header()?;
            Ok(self)
        })
        .await
    }

    /// Plans, and writes what was planned; at once if the lock is free and there is little to read,
    /// else where waiting is allowed. Fails only where nothing can be carried out any more.
    pub async fn carry_out<W: Work>(
        mut self,
        mut work: W,
    ) -> Result<(Self, W, Changes, Result<CommitOutcome>)> {
        let mut changes = Changes::default();
        let attempt = match work.is_large() {
            true => Ok(Attempt::Later),
            false => self.try_commit(&mut work, &mut changes, false),
        };
        match attempt {
            Ok(Attempt::Done(committed)) => Ok((self, work, changes, Ok(committed))),
            Err(error) => Ok((self, work, changes, Err(error))),
            Ok(Attempt::Written(written)) => {
                blocking(move || {
                    let result = self.take_in(*written, &mut changes);
                    Ok((self, work, changes, result))
                })
                .await
            }
            Ok(Attempt::Later) => {
                blocking(move || {
                    let result = self.commit_waiting(&mut work, &mut changes);
                    Ok((self, work, changes, result))
                })
                .await
            }
        }
    }

    fn commit_waiting(
        &mut self,
        work: &mut impl Work,
        changes: &mut Changes,
    ) -> Result<CommitOutcome> {
        let mut pause = Duration::from_micros(50);
        loop {
            match self.try_commit(work, changes, true)? {
                Attempt::Done(committed) => return Ok(committed),
                Attempt::Written(written) => return self.take_in(*written, changes),
                Attempt::Later => {}
            }
            work.wait(self.contended_since)?;
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

impl CommitOutcome {
    /// For one operation: an error unless all of it is in the file.
    fn in_full(self) -> Result<Self> {
        match self.failure {
            Some(failure) => {
                // Leaf records come first and are nobody's entries.
                let records = self.lines.saturating_sub(self.entry_ids.len());
                let written = self.entry_ids.iter();
                let written = written.take(self.whole.saturating_sub(records));
                Err(landed_in_part(failure, written))
            }
            None => Ok(self),
        }
    }
}

impl SessionState {
    /// One attempt, planned only once the lock is held.
    fn try_commit(
        &mut self,
        work: &mut impl Work,
        changes: &mut Changes,
        may_wait: bool,
    ) -> Result<Attempt> {
        let Some(lock) = self.lock_fresh(changes, may_wait)? else {
            return Ok(Attempt::Later);
        };
        let carried = self.carry_over(&lock, changes)?;
        let planned = work.plan(self)?;
        if planned.lines.is_empty() {
            return Ok(Attempt::Done(CommitOutcome {
                entry_ids: planned.entry_ids,
                wrote: false,
                unsynced: carried,
                lines: 0,
                whole: 0,
                failure: None,
            }));
        }
        let written = self.write(lock, planned)?;
        // Writers that take no lock may have come between.
        if !may_wait && self.log.unread_before(&written.landed) > INLINE_BYTES {
            return Ok(Attempt::Written(Box::new(written)));
        }
        self.take_in(written, changes).map(Attempt::Done)
    }

    /// Takes the lock and takes in what others have appended; `None` if that cannot be done now.
    fn lock_fresh(&mut self, changes: &mut Changes, may_wait: bool) -> Result<Option<Lock>> {
        // The first write syncs file and folder.
        if !may_wait && self.log.location().is_some() && !self.log.is_written() {
            return Ok(None);
        }
        let mut has_rewritten = false;
        loop {
            let TryLock::Locked(lock) = self.log.try_lock()? else {
                // It may be the lock of a file that has been replaced, and the new one's is free.
                if may_wait && self.log.standing()? == Standing::Replaced {
                    self.catch_up_into(Standing::Replaced, changes)?;
                }
                self.contended_since.get_or_insert_with(Instant::now);
                return Ok(None);
            };
            self.contended_since = None;
            match self.log.standing()? {
                Standing::Unchanged => {}
                Standing::Grown(bytes) if may_wait || bytes <= INLINE_BYTES => {
                    self.catch_up_into(Standing::Grown(bytes), changes)?;
                }
                Standing::Grown(_) => return Ok(None),
                // The lock is on the old file.
                Standing::Replaced => {
                    drop(lock);
                    if !may_wait {
                        return Ok(None);
                    }
                    self.catch_up_into(Standing::Replaced, changes)?;
                    continue;
                }
                standing @ Standing::Deleted => {
                    return append::refuse(standing).map_or(Ok(None), Err);
                }
            }
            if !self.log.needs_rewrite() {
                return Ok(Some(lock));
            }
            if !may_wait {
                return Ok(None);
            }
            if std::mem::replace(&mut has_rewritten, true) {
                return Err(Error::new(
                    Kind::StorageIo,
                    "the session file is of an older version still after it was migrated; nothing was written",
                ));
            }
            self.log.rewrite(&lock, &self.tree)?;
            drop(lock);
            self.catch_up_into(Standing::Replaced, changes)?;
        }
    }

    fn write_header(&mut self) -> Result<()> {
        let TryLock::Locked(lock) = self.log.try_lock()? else {
            return Ok(());
        };
        let landed = self.log.write(&lock, Vec::new())?;
        self.log.take_in(&mut self.tree, &landed)?;
        let Some(file) = &landed.file else {
            return Ok(());
        };
        let synced = self.sync_creation(file);
        if synced.is_err()
            && let Some(at) = self.log.location()
        {
            // Nobody has been told of it.
            let _removed = at.folder.remove(&at.name);
        }
        synced
    }

    fn write(&mut self, lock: Lock, planned: PlannedLines) -> Result<Written> {
        let lines = planned.lines.len();
        let landed = self.log.write(&lock, planned.lines)?;
        Ok(Written {
            lock,
            landed,
            lines,
            entry_ids: planned.entry_ids,
            ends: planned.ends,
        })
    }

    /// Takes what has been written into the tree.
    fn take_in(&mut self, written: Written, changes: &mut Changes) -> Result<CommitOutcome> {
        let Written {
            lock,
            landed,
            lines,
            entry_ids,
            ends,
        } = written;
        let before = self.tree.node_count();
        let whole = self.log.take_in(&mut self.tree, &landed)?;
        drop(lock);
        changes.diagnostics.extend(self.log.take_diagnostics());
        self.sort_out(before, changes);
        match landed.failure {
            // The last line is ours, so it decides as it would on opening.
            None => self.move_leaf(self.tree.file_leaf()),
            // What did not land whole leaves the leaf alone.
            Some(_) => {
                let ends = ends.iter().rev();
                let done = ends.copied().find(|end| *end <= whole).unwrap_or(0);
                if let Some(last) = done.checked_sub(1).and_then(|at| changes.own.get(at)) {
                    self.move_leaf(Some(*last));
                }
            }
        }
        let unsynced = match landed.file {
            Some(file) if landed.created => {
                self.sync_creation(&file)?;
                None
            }
            file => file,
        };
        Ok(CommitOutcome {
            entry_ids,
            wrote: true,
            unsynced,
            lines,
            whole,
            failure: landed.failure,
        })
    }

    fn catch_up_into(&mut self, standing: Standing, changes: &mut Changes) -> Result<()> {
        let found = self.catch_up(standing)?;
        changes.others.extend(found.others);
        changes.others_moved |= found.others_moved;
        changes.diagnostics.extend(found.diagnostics);
        Ok(())
    }

    /// Tells what was just taken in apart: ours, and what came between.
    fn sort_out(&mut self, before: usize, changes: &mut Changes) {
        for node in (before..self.tree.node_count()).filter_map(|n| self.tree.node(n)) {
            let foreign = self.tree.flags(node).has(Flags::FOREIGN);
            changes.others_moved |= foreign;
            if self.tree.kind(node) == EntryKind::LeafRecord {
                continue;
            }
            if foreign {
                changes.others.push(node);
            } else {
                changes.own.push(node);
            }
        }
        self.below.look(&self.tree);
    }

    /// A new file and its name are made durable whatever the policy (session-file.md §3).
    fn sync_creation(&self, file: &File) -> Result<()> {
        let folder = || match self.log.location() {
            Some(at) => at.folder.sync(),
            None => Ok(()),
        };
        file.sync_all()
            .and_then(|()| folder())
            .map_err(|error| sync::failed(&error))
    }
}

/// The failure of an operation of which these entries are in the file.
pub(crate) fn landed_in_part<'a>(
    failure: Error,
    written: impl Iterator<Item = &'a EntryId>,
) -> Error {
    let written: Vec<&str> = written.map(EntryId::as_str).collect();
    if written.is_empty() {
        return failure;
    }
    failure.with_details(json!({ "writtenIds": written }))
}
