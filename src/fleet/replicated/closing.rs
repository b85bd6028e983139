//! Deletes a session: closes its log, and then its file.

use super::super::backend::{LogBackend, Position};
use super::super::closing;
use super::super::describe::{self, Description};
use super::{ReplicatedFile, TornLine};
use crate::attempts::ROUNDS;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use treelined_core::author::Author;
use treelined_core::error::{Kind, Result};
use treelined_core::id::Source;
use treelined_files::lock::lock;
use treelined_files::log::upstream::{PublishOutcome, Upstream, is_replica};
use treelined_files::os::file::Location;

/// The record of a deletion has fewer bytes than this, since its longest members are ids.
const MOST_RECORD: u64 = 64 << 10;

/// The result of closing a log.
pub(crate) struct Closed {
    /// The position of the record of the deletion.
    pub(crate) position: Position,
    /// The session before the deletion; `None` if another machine has closed the log.
    pub(crate) description: Option<Description>,
}

impl ReplicatedFile {
    pub(crate) fn session(&self) -> &str {
        &self.session
    }

    pub(crate) fn at(&self) -> &Location {
        &self.at
    }

    /// Whether the log is known to be closed.
    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.state).is_closed()
    }

    /// Whether this process is deleting the session. While it does, the follower of the session does not change the
    /// file.
    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    /// Notes that this process no longer deletes the session, so that the follower changes the file again.
    pub(crate) fn stop_closing(&self) {
        self.is_closing.store(false, Ordering::Release);
    }

    pub(super) fn check_open(&self) -> Result<()> {
        match self.is_closed() {
            true => Err(closing::deleted(&self.session)),
            false => Ok(()),
        }
    }

    /// Closes the log, then writes the same record to the file. Before that, publishes the waiting lines of the file,
    /// and copies the missing lines of the log to the file. `None` if the log does not have the session.
    ///
    /// If the log cannot be reached, this fails even if lines can be queued: the deletion moves the file, but queued
    /// lines are published from the present path.
    pub(crate) fn close(
        self: &Arc<Self>,
        source: &dyn Source,
        by: Option<&Author>,
    ) -> Result<Option<Closed>> {
        self.is_closing.store(true, Ordering::Release);
        let closed = self.close_settled(source, by);
        if !matches!(closed, Ok(Some(_))) {
            self.stop_closing();
        }
        closed
    }

    fn close_settled(
        self: &Arc<Self>,
        source: &dyn Source,
        by: Option<&Author>,
    ) -> Result<Option<Closed>> {
        let log = match self.source.log() {
            // As far as this machine knows, the session has never been in the log.
            Err(error) if error.kind == Kind::LogUnavailable && !is_replica(&self.at) => {
                return Ok(None);
            }
            log => log?,
        };
        for _ in 0..ROUNDS {
            let Some(file) = self.locked()? else {
                return Ok(None);
            };
            if !self.has_log(&*log, &file)? {
                return Ok(None);
            }
            match self.make_equal(&file, TornLine::Close) {
                Err(error) if error.kind == Kind::SessionDeleted => {
                    let position = self.position();
                    let description = None;
                    return Ok(Some(Closed {
                        position,
                        description,
                    }));
                }
                made => made?,
            }
            // Another file may have replaced this one.
            if !self.is_settled(&file) {
                continue;
            }
            let description = match describe::describe(&self.at) {
                Err(_) if !self.is_named(&file) => continue,
                described => described?,
            };
            let line = closing::trashed(&self.session, description.leaf.as_deref(), source, by);
            if self.publish(&line, None)? == PublishOutcome::Conflict {
                continue;
            }
            let position = Position(self.published_sequence());
            // The log is closed now, so the deletion has succeeded. A failure from here on concerns only this machine.
            if let Err(error) = self.append(&file, &line) {
                tracing::warn!(%error, "a deleted session lacks the record of its deletion");
            }
            self.written(&file);
            let description = Some(description);
            return Ok(Some(Closed {
                position,
                description,
            }));
        }
        Err(crate::attempts::conflict(&self.session))
    }

    /// Whether the log has the session, or the record of the file says that it has.
    fn has_log(&self, log: &dyn LogBackend, file: &File) -> Result<bool> {
        let has_record = self.record_of(file).is_some()
            || crate::replica::ReplicaRecord::load(&self.at)?.is_some();
        Ok(has_record || log.last(&self.session)?.is_some())
    }

    fn published_sequence(&self) -> u64 {
        let state = lock(&self.state);
        let record = state.published.as_ref().or(state.record.as_ref());
        record.map_or(0, |record| record.sequence)
    }

    /// For a restored session that no log has: ends the file with the record of the restoration. If a log gets this
    /// file later, the log is open.
    pub(crate) fn open_alone(&self, source: &dyn Source, by: Option<&Author>) -> Result<()> {
        let Some(file) = self.locked()? else {
            return Ok(());
        };
        let end = self
            .at
            .status()
            .map_err(|error| self.failed("stat", &error))?
            .size;
        let length = end.min(MOST_RECORD);
        let last = crate::files::bytes_of(&self.at, end - length, length)?;
        match closing::restored(&self.session, &last, source, by) {
            Some(line) => self.append(&file, &line),
            None => Ok(()),
        }
    }
}
