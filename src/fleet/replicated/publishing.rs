//! Publishes of a session, around the writes to its file.

use super::{ReplicatedFile, TornLine};
use crate::backend::{AppendOutcome, LogBackend, Position};
use std::fs::File;
use std::sync::Arc;
use treelined_core::error::{Error, Kind, Result};
use treelined_files::lock::lock;
use treelined_files::log::upstream::{PublishOutcome, Publishing, Upstream};
use treelined_files::os::file;

impl Upstream for ReplicatedFile {
    fn is_settled(&self, file: &File) -> bool {
        ReplicatedFile::is_settled(self, file)
    }

    fn waits(&self) -> bool {
        ReplicatedFile::waits(self)
    }

    fn settle(&self, file: &File) -> Result<()> {
        self.make_equal(file, TornLine::Close)
    }

    fn publish(&self, lines: &[u8]) -> Result<PublishOutcome> {
        self.check_open()?;
        let log = self.source.log()?;
        let expected = self.begin_append(&*log, lines)?;
        let appended = log.append(&self.session, expected, lines);
        self.appended(&*log, lines, appended)
    }

    fn begin_publish(self: Arc<Self>, lines: &[u8]) -> Option<Publishing> {
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
            let appended = appending.await;
            self.appended(&*log, &lines, appended)
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
            // Later records are saved by the follower: a sync would delay this thread.
            if is_first && let Err(error) = self.save() {
                tracing::warn!(%error, "the next opening of a session compares more");
            }
        } else {
            // The next commit compares.
            state.is_behind = true;
        }
    }

    fn queues(&self) -> bool {
        self.queues
    }
}

impl ReplicatedFile {
    /// Begins an append. Returns the end of the log, as far as it is known here.
    fn begin_append(&self, log: &dyn LogBackend, lines: &[u8]) -> Result<Position> {
        self.check_open()?;
        let most = log.max_line();
        if lines.len() > most {
            let why = format!(
                "the entries have {} bytes, and an append to the log at most {most}",
                lines.len()
            );
            return Err(Error::new(Kind::PayloadTooLarge, why));
        }
        // The lock of the file admits one caller. The state's own lock is not held while a server is waited for.
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
                state.published = Some(self.record_behind(&identity, &state, lines, end));
                Ok(PublishOutcome::Published)
            }
            Ok(AppendOutcome::Conflict) => {
                state.is_appending = false;
                state.is_behind = true;
                Ok(PublishOutcome::Conflict)
            }
            Err(error) => {
                // The log may have the lines.
                state.is_appending = false;
                state.is_behind = true;
                drop(state);
                self.note_silence(&error);
                Err(error)
            }
        }
    }
}
