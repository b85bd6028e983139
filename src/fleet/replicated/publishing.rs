//! Publishes the lines of a session, before and after the writes to its file.

use super::{ReplicatedFile, TornLine};
use crate::backend::{AppendOutcome, LogBackend, Position};
use crate::patience;
use crate::replica::ReplicaRecord;
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};
use treelined_core::durability::Durability;
use treelined_core::error::{Error, Kind, Result};
use treelined_files::lock::lock;
use treelined_files::log::upstream::{
    FileLine, LineInStream, PublishOutcome, Publishing, Upstream,
};
use treelined_files::os::file;

/// After an append has left lines in the file, only the follower publishes lines: for this time, or until these lines
/// are published.
const LEFT_BEHIND: Duration = Duration::from_secs(10);

impl Upstream for ReplicatedFile {
    fn is_settled(&self, file: &File) -> bool {
        ReplicatedFile::is_settled(self, file)
    }

    fn waits(&self) -> bool {
        ReplicatedFile::waits(self)
    }

    fn look_up(&self, line: &FileLine) -> Result<LineInStream> {
        self.line_in_log(line)
    }

    fn has_lost(&self) -> bool {
        ReplicatedFile::has_lost(self)
    }

    fn settle(&self, file: &File, until: Option<Instant>) -> Result<()> {
        self.in_time(until, || self.make_equal(file, TornLine::Close))
    }

    fn publish(&self, lines: &[u8], until: Option<Instant>) -> Result<PublishOutcome> {
        self.check_open()?;
        self.in_time(until, || {
            let log = self.source.log()?;
            let expected = self.begin_append(&*log, lines)?;
            let appended = log.append(&self.session, expected, lines);
            self.appended(&*log, lines, appended)
        })
    }

    fn begin_publish(self: Arc<Self>, lines: &[u8], until: Option<Instant>) -> Option<Publishing> {
        let log = self.source.ready()?;
        let lines = Arc::new(lines.to_vec());
        let expected = match self.begin_append(&*log, &lines) {
            Ok(expected) => expected,
            Err(error) => return Some(Box::pin(async { Err(error) })),
        };
        let appending = Arc::clone(&log).begin_append(&self.session, expected, &lines);
        let Some(appending) = appending else {
            lock(&self.state).is_appending = false;
            return None;
        };
        Some(Box::pin(async move {
            let appended = match until {
                None => appending.await,
                Some(until) => {
                    let appended = tokio::time::timeout_at(until.into(), appending).await;
                    appended.unwrap_or_else(|_| Err(self.leave_behind()))
                }
            };
            patience::within(until, || self.appended(&*log, &lines, appended))
        }))
    }

    fn written(&self, file: &File) {
        let mut state = lock(&self.state);
        state.is_appending = false;
        let (Some(record), Ok(status)) = (state.published.take(), file::status_of(file)) else {
            return;
        };
        let is_first = state.record.is_none();
        let is_whole = status.size == record.offset;
        if is_whole && (is_first || state.is_of(file)) {
            state.file = Some(status.identity);
            state.advance(record);
            drop(state);
            // The follower saves later records, since a sync would delay this thread.
            if is_first && let Err(error) = self.save() {
                tracing::warn!(%error, "the next opening of a session compares more");
            }
        } else {
            // The next commit compares file and log.
            state.is_behind = true;
        }
    }

    fn own_end(&self) -> Option<u64> {
        let known = lock(&self.state).record.clone();
        let record = known.or_else(|| ReplicaRecord::load(&self.at).ok().flatten())?;
        // Lines that wait in the file are from this machine.
        let size = self.at.status().ok()?.size;
        record
            .own
            .filter(|_| !record.is_own() && size == record.offset)
    }

    fn queues(&self) -> bool {
        self.queues
    }

    fn durability(&self) -> Durability {
        self.source.durability()
    }
}

impl ReplicatedFile {
    /// Runs the work of an append that waits for servers only for a moment. If an earlier append has left lines in the
    /// file, this fails at once until the follower has published them.
    fn in_time<T>(&self, until: Option<Instant>, work: impl FnOnce() -> Result<T>) -> Result<T> {
        if until.is_none() {
            return work();
        }
        let left_behind = lock(&self.state).left_behind;
        if left_behind.is_some_and(|at| at.elapsed() < LEFT_BEHIND) {
            return Err(patience::over());
        }
        let done = patience::within(until, work);
        match done {
            Err(error) if is_silence(&error) && patience::is_over(until) => {
                Err(self.leave_behind())
            }
            done => done,
        }
    }

    /// Leaves the lines of an append to the follower. Returns the error of the append.
    fn leave_behind(&self) -> Error {
        lock(&self.state).left_behind = Some(Instant::now());
        self.left_behind.notify_one();
        patience::over()
    }

    /// Begins an append. Returns the end of the log, as far as this machine knows it.
    fn begin_append(&self, log: &dyn LogBackend, lines: &[u8]) -> Result<Position> {
        self.check_open()?;
        let most = log.max_line();
        if lines.len() > most {
            let why = format!(
                "the entries have {} bytes, and an append to the team's stream at most {most}",
                lines.len()
            );
            return Err(Error::new(Kind::PayloadTooLarge, why));
        }
        // Only one caller at a time has the lock of the file. The lock of the state is not held while a server is
        // awaited.
        lock(&self.state).is_appending = true;
        Ok(self.position())
    }

    /// Notes the outcome of an append.
    fn appended(
        &self,
        log: &dyn LogBackend,
        lines: &[u8],
        appended: Result<AppendOutcome>,
    ) -> Result<PublishOutcome> {
        let mut state = lock(&self.state);
        match appended {
            Ok(AppendOutcome::Appended(end)) => {
                let identity = log.identity(&self.session)?;
                let record = state.record_behind(&identity, lines, end);
                state.published = Some(ReplicaRecord {
                    own: Some(record.offset),
                    ..record
                });
                Ok(PublishOutcome::Published)
            }
            Ok(AppendOutcome::Conflict) => {
                state.is_appending = false;
                state.is_behind = true;
                Ok(PublishOutcome::Conflict)
            }
            Err(error) => {
                // The log may have the lines, although the append failed.
                state.is_appending = false;
                state.is_behind = true;
                drop(state);
                self.note_failure(&error);
                Err(error)
            }
        }
    }
}

fn is_silence(error: &Error) -> bool {
    matches!(error.kind, Kind::LogUnavailable | Kind::DurabilityUnknown)
}
