//! The deletion of a session: its log is closed, then its file.

use super::super::backend::{LogBackend, Position};
use super::super::closing;
use super::super::describe::{self, Description};
use super::{ReplicatedFile, TornLine};
use crate::attempts::ROUNDS;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use treelined_core::error::{Kind, Result};
use treelined_core::id::Source;
use treelined_files::lock::lock;
use treelined_files::log::upstream::{PublishOutcome, Upstream, is_replica};
use treelined_files::os::file::Location;

/// A record of a deletion has less bytes than this: its longest members are ids.
const MOST_RECORD: u64 = 64 << 10;

/// A log that was closed.
pub(crate) struct Closed {
    /// The record of the deletion.
    pub(crate) position: Position,
    /// The session as it was; `None` if another machine has closed the log.
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

    /// Whether this process deletes the session: its followers leave the file alone.
    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    /// The deletion failed behind the record: the session goes on.
    pub(crate) fn stop_closing(&self) {
        self.is_closing.store(false, Ordering::Release);
    }

    pub(super) fn check_open(&self) -> Result<()> {
        match self.is_closed() {
            true => Err(closing::deleted(&self.session)),
            false => Ok(()),
        }
    }

    /// Closes the log, then writes the same record to the file, which has all of the log by then. Lines of the file
    /// that wait are published first. `None` if the log does not have the session.
    ///
    /// A log that cannot be reached fails it, also where lines are queued: the file is about to leave the place from
    /// which they are published.
    pub(crate) fn close(self: &Arc<Self>, source: &dyn Source) -> Result<Option<Closed>> {
        self.is_closing.store(true, Ordering::Release);
        let closed = self.close_settled(source);
        if !matches!(closed, Ok(Some(_))) {
            self.stop_closing();
        }
        closed
    }

    fn close_settled(self: &Arc<Self>, source: &dyn Source) -> Result<Option<Closed>> {
        let log = match self.source.log() {
            // It has never been in the log, as far as is known here.
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
            // Another file may have taken the place of this one.
            if !self.is_settled(&file) {
                continue;
            }
            let description = match describe::describe(&self.at) {
                Err(_) if !self.is_named(&file) => continue,
                described => described?,
            };
            let line = closing::trashed(&self.session, description.leaf.as_deref(), source);
            if self.publish(&line, None)? == PublishOutcome::Conflict {
                continue;
            }
            let position = Position(self.published_sequence());
            // The log is closed: what is left to do is that of this machine.
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

    /// Whether the log has the session, or the file says that it should.
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

    /// Ends a file whose session is restored, though no log has it, with the record that says so: a log that gets the
    /// file is open.
    pub(crate) fn open_alone(&self, source: &dyn Source) -> Result<()> {
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
        match closing::restored(&self.session, &last, source) {
            Some(line) => self.append(&file, &line),
            None => Ok(()),
        }
    }
}
