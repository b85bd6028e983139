//! Group commit (session-file.md §3): adjacent appends in a session's queue share one write and one sync. The check of
//! each append assumes that the appends before it are written.

use super::request::{Append, AppendOutcome, WriteAppends};
use super::shed;
use crate::daemon::Daemon;
use crate::daemon::at_once::at_once_or_later;
use crate::daemon::commit_tail::{CommitTail, bring_back, late_failure};
use crate::daemon::follow::watch_predecessors;
use crate::daemon::guard::{Lease, guard_of};
use crate::daemon::notify::FactsBefore;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use treelined_core::durability::Durability;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::flow::PlannedLines;
use treelined_core::flow::append::Planner;
use treelined_core::id::{EntryId, Source};
use treelined_files::session::SessionState;
use treelined_files::session::commit::{
    CommitOutcome, Contention, Work, landed_in_part, still_waits,
};
use treelined_files::session::failure_of;
use treelined_files::session::sync::RepeatedEntries;

/// A batch is complete once it has this many bytes.
const MAX_WRITE_BYTES: usize = 1 << 20;

/// A batch with more bytes is written on a blocking thread, and a smaller batch on the reader thread.
const INLINE_BATCH_BYTES: u64 = 256 << 10;

impl WriteAppends for Daemon {
    /// Continues on the runtime when it has to wait for the lock of the file or for a sync.
    fn write(self: Arc<Self>, lease: Lease, appends: VecDeque<Append>) {
        at_once_or_later(write_all(self, lease, appends));
    }
}

async fn write_all(daemon: Arc<Daemon>, lease: Lease, waiting: VecDeque<Append>) {
    let found = guard_of(lease, Instant::now());
    let found = found.and_then(|found| found.0.session.check_version().map(|()| found));
    let (open, mut guard) = match found {
        Ok(found) => found,
        Err(error) => {
            for append in waiting {
                append.answer(Err(error.clone()));
            }
            return;
        }
    };
    let mut batch = Batch {
        source: Arc::clone(&daemon.source),
        waiting,
        planned: Vec::new(),
        below_shed: None,
    };
    loop {
        // If an earlier append is not durable, one later append fails with that error.
        while let Err(error) = open.session.syncer.check() {
            if let Some(request) = batch.waiting.pop_front() {
                request.answer(Err(error));
            }
        }
        if batch.waiting.is_empty() {
            return;
        }
        let before = FactsBefore::of(&guard);
        let Ok((ours, rest, changes, committed)) = guard.carry_out(batch).await else {
            return;
        };
        (guard, batch) = (ours, rest);
        let decided = batch.decided(&committed);
        let ends = decided.iter().filter_map(|append| append.outcome.end());
        let ends: Vec<usize> = ends.collect();
        let tail =
            CommitTail::announce(&daemon, &open, &guard, changes, &before, &ends, &committed);
        watch_predecessors(&daemon, &open, &mut guard);
        let finish = finish(tail, decided);
        if batch.waiting.is_empty() {
            drop(guard);
            return finish.await;
        }
        at_once_or_later(finish);
        if let Some(branch) = batch.below_shed.take() {
            let Some(append) = batch.waiting.front() else {
                return;
            };
            let (entries, expected) = (Arc::clone(&append.entries), append.expected.clone());
            let source = Arc::clone(&daemon.source);
            let above = Arc::clone(&entries);
            let check = move |state: &SessionState| {
                let mut planner = Planner::new(&state.tree, &*source);
                shed::planned(state, &mut planner, &entries, &expected).map(drop)
            };
            let next = |error: &Error| shed::branch_above(&above, error);
            let back = bring_back(&daemon, &open, guard, branch, check, next).await;
            let Some((ours, back)) = back else {
                return;
            };
            guard = ours;
            if let Err(error) = back
                && let Some(append) = batch.waiting.pop_front()
            {
                append.answer(Err(error));
            }
        }
    }
}

/// Makes a write durable by the session's policy, then answers its requests.
async fn finish(tail: CommitTail, decided: Vec<DecidedAppend>) {
    let (daemon, open) = tail.session();
    let durability = tail.durability();
    // The publication lasts to the end of this function, so that later commits are answered after these requests.
    let (synced, _publication) = tail.finish().await;
    if synced.is_err() && !decided.iter().any(|append| append.outcome.wrote()) {
        // The commit wrote only entries from a replaced file, so no request gets the error.
        daemon.notifier.durability_lost(&open);
    }
    let (repeated, first): (Vec<_>, Vec<_>) = decided
        .into_iter()
        .partition(|append| append.repeated.is_some());
    for DecidedAppend {
        request, outcome, ..
    } in first
    {
        let synced = if outcome.wrote() {
            synced.clone()
        } else {
            Ok(())
        };
        request.answer(appended(outcome, durability, synced));
    }
    // A repeated append also waits for the sync of its entries.
    for DecidedAppend {
        request,
        outcome,
        repeated,
    } in repeated
    {
        let synced = match (repeated, &synced) {
            (_, Err(error)) if outcome.wrote() => Err(error.clone()),
            (Some(entries), _) => {
                let late = late_failure(&daemon, &open);
                let syncer = &open.session.syncer;
                syncer.after_repetition(durability, entries, late).await
            }
            (None, _) => Ok(()),
        };
        request.answer(appended(outcome, durability, synced));
    }
}

fn appended(outcome: Outcome, durability: Durability, synced: Result<()>) -> Result<AppendOutcome> {
    match outcome {
        Outcome::Failed(error) => Err(error),
        Outcome::Written { ids, .. } | Outcome::Known(ids) => synced.map(|()| AppendOutcome {
            entry_ids: ids.iter().map(|id| id.as_str().to_owned()).collect(),
            durability,
        }),
    }
}

impl Append {
    /// Plans this operation after the operations that `planner` has planned; `None` if these operations must be written
    /// first.
    fn plan(
        &self,
        state: &SessionState,
        planner: &mut Planner<'_>,
        is_last: bool,
    ) -> Result<Option<PlannedLines>> {
        let planned = shed::planned(state, planner, &self.entries, &self.expected)?;
        let Some(planned) = planned else {
            return Ok(None);
        };
        // From this point the append cannot be cancelled.
        if !self.cancel.commit() {
            return Err(Error::cancelled());
        }
        if !is_last {
            planner.accept(&self.entries, &planned);
        }
        Ok(Some(planned))
    }
}

/// Appends that are written together.
struct Batch {
    source: Arc<dyn Source>,
    waiting: VecDeque<Append>,
    /// The plans of the first appends in `waiting`, in order.
    planned: Vec<Result<Part>>,
    /// The first entry of the shed branch that the next append needs.
    below_shed: Option<String>,
}

/// The part that one operation has in a batch.
struct Part {
    entry_ids: Vec<EntryId>,
    /// The ids of the operation's entries that are already in the file.
    known_ids: Vec<EntryId>,
    /// The positions of these entries in the file.
    repeated: Option<RepeatedEntries>,
    lines: usize,
    /// The number of lines in the batch up to the end of this operation.
    end: usize,
}

impl Work for Batch {
    fn is_large(&self) -> bool {
        let entries = self
            .waiting
            .iter()
            .flat_map(|request| request.entries.iter());
        let bytes = entries.map(|entry| entry.members.len() as u64);
        bytes.sum::<u64>() > INLINE_BATCH_BYTES
    }

    fn plan(&mut self, state: &SessionState) -> Result<PlannedLines> {
        self.planned.clear();
        self.below_shed = None;
        let mut planner = Planner::new(&state.tree, &*self.source);
        let mut all = PlannedLines::default();
        let mut bytes = 0;
        for (index, request) in self.waiting.iter().enumerate() {
            let is_last = index + 1 == self.waiting.len();
            if bytes >= MAX_WRITE_BYTES {
                break;
            }
            let planned = match request.plan(state, &mut planner, is_last) {
                Ok(Some(planned)) => planned,
                Ok(None) => break,
                Err(error) => {
                    let error = state.explained(error);
                    self.below_shed = shed::branch_above(&request.entries, &error);
                    if self.below_shed.is_some() {
                        break;
                    }
                    self.planned.push(Err(error));
                    continue;
                }
            };
            bytes += planned.lines.iter().map(Vec::len).sum::<usize>();
            let lines = planned.lines.len();
            let known_ids = match planned.entry_ids.len() == lines {
                true => Vec::new(),
                false => {
                    let known = |id: &&EntryId| state.tree.find_any(id.as_str()).is_some();
                    planned.entry_ids.iter().filter(known).cloned().collect()
                }
            };
            let repeated = match state.repeated(known_ids.iter()) {
                Ok(repeated) => repeated,
                Err(error) => {
                    self.planned.push(Err(error));
                    continue;
                }
            };
            all.has_steps |= planned.has_steps;
            all.background |= planned.background;
            all.lines.extend(planned.lines);
            all.ends.push(all.lines.len());
            self.planned.push(Ok(Part {
                entry_ids: planned.entry_ids,
                known_ids,
                repeated,
                lines,
                end: all.lines.len(),
            }));
        }
        planner.keep(&mut all);
        Ok(all)
    }

    /// Each append has its own time limit.
    fn wait(&mut self, contention: Contention) -> Result<()> {
        // After an earlier round, the plans still include requests that are answered here.
        self.planned.clear();
        let waiting = std::mem::take(&mut self.waiting);
        let mut gone = None;
        for request in waiting {
            match still_waits(&request.cancel, request.asked, contention) {
                Ok(()) => self.waiting.push_back(request),
                Err(error) => {
                    request.answer(Err(error.clone()));
                    gone = Some(error);
                }
            }
        }
        match gone {
            Some(error) if self.waiting.is_empty() => Err(error),
            _ => Ok(()),
        }
    }
}

/// An append with its outcome.
struct DecidedAppend {
    request: Append,
    outcome: Outcome,
    /// The entries of the append that were already in the file.
    repeated: Option<RepeatedEntries>,
}

enum Outcome {
    Written {
        ids: Vec<EntryId>,
        /// The number of lines in the batch up to the end of this operation.
        end: usize,
    },
    /// All entries of the append were already in the file.
    Known(Vec<EntryId>),
    Failed(Error),
}

impl Outcome {
    fn wrote(&self) -> bool {
        self.end().is_some()
    }

    fn end(&self) -> Option<usize> {
        match self {
            Self::Written { end, .. } => Some(*end),
            Self::Known(_) | Self::Failed(_) => None,
        }
    }
}

impl Batch {
    /// Removes the appends whose outcome `committed` decides.
    fn decided(&mut self, committed: &Result<CommitOutcome>) -> Vec<DecidedAppend> {
        let planned = std::mem::take(&mut self.planned);
        let (whole, failure) = match committed {
            Ok(committed) => (committed.whole, committed.failure.as_ref()),
            Err(error) => (0, Some(error)),
        };
        // If nothing was planned, all appends have failed for the same reason.
        let count = match failure {
            Some(_) if planned.is_empty() => self.waiting.len(),
            _ => planned.len(),
        };
        let mut parts = planned.into_iter();
        let decide = |request: Append| {
            let mut part = parts.next();
            let repeated = part
                .as_mut()
                .and_then(|part| part.as_mut().ok()?.repeated.take());
            let outcome = match (part, failure) {
                (Some(Err(error)), _) => Outcome::Failed(error),
                (None, Some(error)) => Outcome::Failed(error.clone()),
                (Some(Ok(part)), _) if part.lines == 0 => Outcome::Known(part.entry_ids),
                (Some(Ok(part)), failure) if failure.is_none() || part.end <= whole => {
                    Outcome::Written {
                        ids: part.entry_ids,
                        end: part.end,
                    }
                }
                (Some(Ok(part)), Some(failure)) => {
                    let start = part.end - part.lines;
                    let new = part.entry_ids.iter();
                    let new = new.filter(|id| !part.known_ids.contains(id));
                    let failure = failure_of(failure, new.clone());
                    let there = new.take(whole.saturating_sub(start));
                    Outcome::Failed(landed_in_part(failure, there))
                }
                _ => Outcome::Failed(Error::new(Kind::InternalError, "nothing was planned")),
            };
            DecidedAppend {
                request,
                outcome,
                repeated,
            }
        };
        self.waiting.drain(..count).map(decide).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::Parts;
    use crate::settings::DaemonSettings;
    use std::collections::BTreeMap;
    use std::sync::Mutex;
    use std::time::Duration;
    use tokio::runtime::Runtime;
    use treelined_core::id::ExpectedLeaf;
    use treelined_files::cancel::Cancel;
    use treelined_files::clock::SystemSource;
    use treelined_files::lock::lock;

    fn daemon(runtime: &Runtime) -> Arc<Daemon> {
        let settings = DaemonSettings {
            session_dir: "/nowhere".into(),
            durability: Durability::Os,
            summarizer: None,
            hooks: Vec::new(),
            extensions: Vec::new(),
            renderers: BTreeMap::new(),
            redact: Default::default(),
            max_frame_bytes: 1 << 20,
            max_queued_bytes: 1 << 20,
            max_working_bytes: 256 << 20,
            max_kept_bytes: 64 << 20,
            cwd: "/".to_owned(),
        };
        Daemon::new(
            settings,
            Parts::default(),
            Arc::new(SystemSource),
            runtime.handle(),
        )
    }

    /// An append that gives its failure to `failed`.
    fn append(daemon: &Arc<Daemon>, failed: impl FnOnce(Error) + Send + 'static) -> Append {
        Append {
            writer: Arc::clone(daemon) as Arc<dyn WriteAppends>,
            entries: Arc::default(),
            expected: ExpectedLeaf::Any,
            cancel: Cancel::new(),
            asked: Instant::now(),
            answer: Box::new(move |answer| failed(answer.map(drop).unwrap_err())),
        }
    }

    /// Once, a batch was planned, another writer appended to the session file before the batch was written, and the
    /// appends gave up while another process held the lock. The daemon then removed the planned appends a second time,
    /// and panicked.
    #[test]
    fn appends_that_give_up_after_a_conflict_are_answered_once() {
        let runtime = Runtime::new().unwrap();
        let daemon = daemon(&runtime);
        let answers: Arc<Mutex<Vec<Kind>>> = Arc::default();
        let append = || {
            let answers = Arc::clone(&answers);
            append(&daemon, move |error| lock(&answers).push(error.kind))
        };
        let part = || {
            Ok(Part {
                entry_ids: Vec::new(),
                known_ids: Vec::new(),
                repeated: None,
                lines: 1,
                end: 1,
            })
        };
        let mut batch = Batch {
            source: Arc::clone(&daemon.source),
            waiting: VecDeque::from([append(), append()]),
            planned: vec![part(), part()],
            below_shed: None,
        };
        let gave_up = batch.wait(Contention::over(Duration::ZERO));
        let decided = batch.decided(&Err(gave_up.unwrap_err()));
        assert!(decided.is_empty() && batch.waiting.is_empty());
        assert_eq!(*lock(&answers), [Kind::SessionLocked; 2]);
    }

    /// The appends of a batch share a failure. Once, each was answered without ids, so that no client could find out
    /// which entries were written.
    #[test]
    fn an_unknown_outcome_names_the_entries_of_each_append() {
        let runtime = Runtime::new().unwrap();
        let daemon = daemon(&runtime);
        let answers: Arc<Mutex<Vec<serde_json::Value>>> = Arc::default();
        let append = || {
            let answers = Arc::clone(&answers);
            append(&daemon, move |error| {
                lock(&answers).push(error.details.unwrap())
            })
        };
        let part = |end: usize| {
            Ok(Part {
                entry_ids: vec![EntryId::new(format!("e{end}")), EntryId::new("known")],
                known_ids: vec![EntryId::new("known")],
                repeated: None,
                lines: 1,
                end,
            })
        };
        let mut batch = Batch {
            source: Arc::clone(&daemon.source),
            waiting: VecDeque::from([append(), append()]),
            planned: vec![part(1), part(2)],
            below_shed: None,
        };
        let unknown = Error::new(Kind::DurabilityUnknown, "no answer");
        let unknown = unknown.with_details(serde_json::json!({ "entryIds": [] }));
        for DecidedAppend {
            request, outcome, ..
        } in batch.decided(&Err(unknown))
        {
            request.answer(appended(outcome, Durability::Replicated, Ok(())));
        }
        let expected = ["e1", "e2"].map(|id| serde_json::json!({ "entryIds": [id] }));
        assert_eq!(*lock(&answers), expected);
    }
}
