//! Commits the lines of an operation: takes the lock of the file, refreshes the tree, plans the lines, writes them in
//! one call, and adds them to the tree (session-file.md §3).

use super::INLINE_BYTES;
use super::state::{Changes, SessionGuard, SessionState};
use super::upstream::{self, Settled};
use crate::blocking::blocking;
use crate::cancel::Cancel;
use crate::log::Standing;
use crate::log::append::{self, LOCK_TIMEOUT, Lock, TryLock, WriteOutcome, locked_elsewhere};
use crate::log::upstream::{PublishOutcome, Publishing};
use crate::os::file::File;
use crate::os::time;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use treelined_core::defect::breaks;
use treelined_core::entry::Kind as EntryKind;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::flow::{LeafAfter, PlannedLines};
use treelined_core::id::EntryId;
use treelined_core::tree::Flags;

/// The longest time that an append to a replica waits for the lock. Another process may hold the lock while that
/// process waits for a server (fleet.md).
const LOG_LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest pause between two attempts to take the lock. With longer pauses, this process would seldom get the lock
/// while many other writers take it often.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// The work of a commit: one operation, or several that are planned one after the other and written together.
pub trait Work: Send + 'static {
    /// Whether the work could delay the thread that reads requests.
    fn is_large(&self) -> bool {
        false
    }

    /// Plans the lines to write. The caller holds the lock, and has refreshed the tree. `plan` is called again if
    /// others have changed the session before the lines were written.
    fn plan(&mut self, state: &SessionState) -> Result<PlannedLines>;

    /// Called before each pause while others hold the lock. An error ends the waiting.
    fn wait(&mut self, contention: Contention) -> Result<()>;
}

/// How long others have held the lock of a session file.
#[derive(Debug, Clone, Copy)]
pub struct Contention {
    /// The time at which others were first found to hold the lock.
    since: Option<Instant>,
    /// The longest time that an operation waits.
    limit: Duration,
}

#[cfg(any(test, feature = "test-support"))]
impl Contention {
    /// A contention that begins now, for operations that wait for `limit`.
    pub fn over(limit: Duration) -> Self {
        let since = Some(time::now());
        Self { since, limit }
    }
}

/// The work of one operation.
struct Operation<P> {
    plan: P,
    cancel: Cancel,
    asked: Instant,
}

impl<P> Work for Operation<P>
where
    P: FnMut(&SessionState) -> Result<PlannedLines> + Send + 'static,
{
    fn plan(&mut self, state: &SessionState) -> Result<PlannedLines> {
        (self.plan)(state)
    }

    fn wait(&mut self, contention: Contention) -> Result<()> {
        still_waits(&self.cancel, self.asked, contention)
    }
}

/// Fails with `sessionLocked` if the operation has waited too long for the lock. `asked` is the time at which it began
/// to wait.
pub fn still_waits(cancel: &Cancel, asked: Instant, contention: Contention) -> Result<()> {
    if cancel.is_cancelled() {
        return Err(Error::cancelled());
    }
    // While this operation waited for its turn, other operations may have waited for the same lock. Their waiting time
    // counts, so this operation does not wait the whole time again.
    let since = contention.since.unwrap_or(asked).max(asked);
    if time::since(since) < contention.limit {
        return Ok(());
    }
    let mut error = locked_elsewhere();
    error.retry_after_ms = Some(500);
    Err(error)
}

/// The outcome of a commit.
#[derive(Debug, Default)]
pub struct CommitOutcome {
    pub entry_ids: Vec<EntryId>,
    /// Whether any line was written.
    pub wrote: bool,
    /// A file that must still be synced, according to the durability of the session.
    pub unsynced: Option<Arc<File>>,
    /// The number of planned lines of the operations.
    lines: usize,
    /// The number of lines that are complete in the file.
    pub whole: usize,
    /// The reason why not all lines are complete.
    pub failure: Option<Error>,
    /// Whether lines of the file, which is a replica, wait for the team's stream.
    pub is_queued: bool,
}

/// The outcome of one attempt to commit.
enum Attempt {
    Done(CommitOutcome),
    /// The commit must be made on a thread that may block.
    Later,
    /// The lines are in the file, but reading them would take too long on this thread.
    Written(Box<WrittenLines>),
    /// The lines are on their way to the team's stream.
    Publishing(Box<LinesToPublish>),
}

/// Lines that the team's stream is asked to append.
struct LinesToPublish {
    lock: Lock,
    planned: PlannedLines,
    publishing: Publishing,
}

/// Lines that are in the file and not in the tree yet.
pub(super) struct WrittenLines {
    lock: Lock,
    landed: WriteOutcome,
    /// The number of planned lines of the operations.
    lines: usize,
    entry_ids: Vec<EntryId>,
    ends: Vec<usize>,
    leaf_after: LeafAfter,
    /// Whether the lines are in the team's stream, if the file is a replica.
    is_published: bool,
    is_queued: bool,
}

impl<T: Send + 'static> SessionGuard<T> {
    /// Commits one operation. Also returns the guard. Reports changes even if the operation failed.
    pub async fn commit<P>(
        self,
        cancel: &Cancel,
        plan: P,
    ) -> (Option<Self>, Changes, Result<CommitOutcome>)
    where
        P: FnMut(&SessionState) -> Result<PlannedLines> + Send + 'static,
    {
        let work = Operation {
            plan,
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

    /// Plans and writes the lines. The work runs on this thread if the lock is free and there is little to read, else
    /// on a blocking thread. Fails only if the session cannot be used any more.
    pub async fn carry_out<W: Work>(
        mut self,
        mut work: W,
    ) -> Result<(Self, W, Changes, Result<CommitOutcome>)> {
        self.begin_waiting();
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
            Ok(Attempt::Publishing(lines)) => self.publish_then_write(*lines, work, changes).await,
            Ok(Attempt::Later) => self.commit_on_thread(work, changes).await,
        }
    }

    async fn commit_on_thread<W: Work>(
        mut self,
        mut work: W,
        mut changes: Changes,
    ) -> Result<(Self, W, Changes, Result<CommitOutcome>)> {
        blocking(move || {
            let result = self.commit_waiting(&mut work, &mut changes);
            Ok((self, work, changes, result))
        })
        .await
    }

    /// Waits for the team's stream without blocking a thread, and then writes. After a conflict the commit is made on
    /// a thread that may block.
    async fn publish_then_write<W: Work>(
        mut self,
        lines: LinesToPublish,
        work: W,
        mut changes: Changes,
    ) -> Result<(Self, W, Changes, Result<CommitOutcome>)> {
        let LinesToPublish {
            lock,
            planned,
            publishing,
        } = lines;
        let published = publishing.await;
        let is_published = match self.judged(&planned, published) {
            Ok(Some(PublishOutcome::Conflict)) => {
                drop(lock);
                return self.commit_on_thread(work, changes).await;
            }
            Ok(published) => published.is_some(),
            Err(error) => return Ok((self, work, changes, Err(error))),
        };
        let result = match self.write(lock, planned, is_published) {
            Ok(written) if self.log.unread_before(&written.landed) > INLINE_BYTES => {
                return blocking(move || {
                    let result = self.take_in(written, &mut changes);
                    Ok((self, work, changes, result))
                })
                .await;
            }
            Ok(written) => self.take_in(written, &mut changes),
            Err(error) => Err(error),
        };
        Ok((self, work, changes, result))
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
                // Others hold the lock. This attempt may wait, so it never ends as `Publishing`.
                Attempt::Publishing(_) | Attempt::Later => {}
            }
            work.wait(self.contention())?;
            time::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

impl CommitOutcome {
    /// The outcome for a single operation: an error unless all of its lines are in the file.
    fn in_full(self) -> Result<Self> {
        match self.failure {
            Some(failure) if self.whole < self.lines => {
                // Leaf records come first, and have no ids to return.
                let records = self.lines.saturating_sub(self.entry_ids.len());
                let written = self.entry_ids.iter();
                let written = written.take(self.whole.saturating_sub(records));
                Err(landed_in_part(failure, written))
            }
            _ => Ok(self),
        }
    }
}

impl SessionState {
    /// Makes one attempt to commit. The lines are planned only after the lock was taken.
    fn try_commit(
        &mut self,
        work: &mut impl Work,
        changes: &mut Changes,
        may_wait: bool,
    ) -> Result<Attempt> {
        for _ in 0..upstream::ROUNDS {
            let Some(lock) = self.lock_fresh(changes, may_wait)? else {
                return Ok(Attempt::Later);
            };
            if !may_wait && !self.is_settled(&lock) {
                return Ok(Attempt::Later);
            }
            let carried = self.carry_over(&lock, changes)?;
            let settled = self.settle(&lock, changes)?;
            if settled == Settled::Replaced {
                continue;
            }
            if let Some(first) = self.unknown_first.take() {
                self.publish_first_again(lock, first, changes)?;
                continue;
            }
            let mut planned = work.plan(self)?;
            self.sign(&mut planned.lines);
            if planned.lines.is_empty() {
                return Ok(Attempt::Done(CommitOutcome {
                    entry_ids: planned.entry_ids,
                    wrote: false,
                    unsynced: carried,
                    lines: 0,
                    whole: 0,
                    failure: None,
                    is_queued: settled == Settled::Queued,
                }));
            }
            if !may_wait && let Some(publishing) = self.begin_publish(&planned) {
                return Ok(Attempt::Publishing(Box::new(LinesToPublish {
                    lock,
                    planned,
                    publishing,
                })));
            }
            if !may_wait && self.upstream.is_some() {
                return Ok(Attempt::Later);
            }
            let published = match self.publish(&planned, settled) {
                Err(error) if error.kind == Kind::DurabilityUnknown && !self.log.is_written() => {
                    self.unknown_first = Some(planned);
                    return Err(error);
                }
                published => published?,
            };
            if published == Some(PublishOutcome::Conflict) {
                // This session has no file yet, so the stream has another session with its id.
                if !self.log.is_written() {
                    return Err(upstream::exists());
                }
                continue;
            }
            let written = self.write(lock, planned, published.is_some())?;
            // Writers that take no lock may have appended just before this write.
            if !may_wait && self.log.unread_before(&written.landed) > INLINE_BYTES {
                return Ok(Attempt::Written(Box::new(written)));
            }
            return self.take_in(written, changes).map(Attempt::Done);
        }
        Err(upstream::conflict())
    }

    fn contention(&self) -> Contention {
        Contention {
            since: self.contended_since,
            limit: match self.upstream {
                Some(_) => LOG_LOCK_TIMEOUT,
                None => LOCK_TIMEOUT,
            },
        }
    }

    /// Takes the lock and reads the lines that others have appended. `None` if that cannot be done at once.
    pub(super) fn lock_fresh(
        &mut self,
        changes: &mut Changes,
        may_wait: bool,
    ) -> Result<Option<Lock>> {
        // The first write syncs the file and its folder, which takes time.
        if !may_wait && self.log.location().is_some() && !self.log.is_written() {
            return Ok(None);
        }
        let mut has_rewritten = false;
        loop {
            let TryLock::Locked(lock) = self.log.try_lock()? else {
                // The lock that others hold may be the lock of a file that was replaced, while the lock of the new
                // file is free.
                if may_wait && self.log.standing()? == Standing::Replaced {
                    self.catch_up_into(Standing::Replaced, changes)?;
                }
                self.contended_since.get_or_insert_with(time::now);
                return Ok(None);
            };
            self.contended_since = None;
            match self.log.standing()? {
                Standing::Unchanged => {}
                Standing::Grown(bytes) if may_wait || bytes <= INLINE_BYTES => {
                    self.catch_up_into(Standing::Grown(bytes), changes)?;
                }
                Standing::Grown(_) => return Ok(None),
                // The lock that was taken is the lock of the old file.
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
            let is_left_out = breaks("Nothing is appended to a file before its migration");
            if !self.log.needs_rewrite() || is_left_out {
                return Ok(Some(lock));
            }
            if !may_wait {
                return Ok(None);
            }
            if std::mem::replace(&mut has_rewritten, true) {
                return Err(Error::new(
                    Kind::StorageIo,
                    "the session file still has an older version after it was migrated; nothing was written",
                ));
            }
            self.log.rewrite(&lock, &self.tree)?;
            drop(lock);
            self.catch_up_into(Standing::Replaced, changes)?;
        }
    }

    pub(super) fn write(
        &mut self,
        lock: Lock,
        planned: PlannedLines,
        is_published: bool,
    ) -> Result<WrittenLines> {
        let (lines, leaf_after) = (planned.own_lines(), planned.leaf_after());
        self.check_plan(&lock, &planned)?;
        let landed = self.log.write(&lock, planned.lines);
        let landed = match landed {
            Err(error) if is_published => {
                self.note_written(lock.file());
                return Err(upstream::only_published(&error, &planned.entry_ids));
            }
            landed => landed?,
        };
        Ok(WrittenLines {
            lock,
            landed,
            lines,
            entry_ids: planned.entry_ids,
            ends: planned.ends,
            leaf_after,
            is_published,
            is_queued: self.upstream.is_some() && !is_published,
        })
    }

    /// Adds the written lines to the tree.
    pub(super) fn take_in(
        &mut self,
        written: WrittenLines,
        changes: &mut Changes,
    ) -> Result<CommitOutcome> {
        let WrittenLines {
            lock,
            landed,
            lines,
            entry_ids,
            ends,
            leaf_after,
            is_published,
            is_queued,
        } = written;
        let before = self.tree.node_count();
        let whole = self.log.take_in(&mut self.tree, &landed);
        if is_published {
            self.note_written(landed.file.as_ref());
        }
        let whole = whole?;
        if leaf_after == LeafAfter::Background && !is_published {
            self.keep_for_others(&lock);
        }
        drop(lock);
        changes.diagnostics.extend(self.log.take_diagnostics());
        changes.stays |= leaf_after.stays();
        self.sort_out(before, changes);
        match landed.failure {
            _ if leaf_after.stays() => {}
            None if leaf_after == LeafAfter::Own => self.move_leaf(changes.own.last().copied()),
            // The line of this commit is the last one, so it decides the leaf, as it does when the file is opened.
            None if breaks("The leaf is never at a leaf record") => {
                let last = self.tree.node_count().checked_sub(1);
                self.move_leaf(last.and_then(|last| self.tree.node(last)));
            }
            None => self.move_leaf(self.tree.file_leaf()),
            // Lines that are not whole in the file do not move the leaf.
            Some(_) => {
                let whole_operation = (ends.is_empty() && whole >= lines).then_some(lines);
                let ends = ends.iter().copied().chain(whole_operation).rev();
                let done = ends.into_iter().find(|end| *end <= whole).unwrap_or(0);
                if let Some(last) = done.checked_sub(1).and_then(|at| changes.own.get(at)) {
                    self.move_leaf(Some(*last));
                }
            }
        }
        self.check_written(landed.failure.is_some(), whole, lines)?;
        let unsynced = match landed.file {
            Some(_) if landed.created => {
                self.sync_name()?;
                None
            }
            file => file,
        };
        let failure = landed.failure.map(|failure| match is_published {
            true => upstream::only_published(&failure, &entry_ids),
            false => failure,
        });
        Ok(CommitOutcome {
            entry_ids,
            wrote: true,
            unsynced,
            lines,
            whole,
            failure,
            is_queued,
        })
    }

    /// Divides the newly read entries into the entries of this commit and the entries that others appended meanwhile.
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
}

/// The error for an operation of which only the entries `written` are in the file.
pub fn landed_in_part<'a>(failure: Error, written: impl Iterator<Item = &'a EntryId>) -> Error {
    let written: Vec<&str> = written.map(EntryId::as_str).collect();
    if written.is_empty() {
        return failure;
    }
    failure.with_details(json!({ "writtenIds": written }))
}
