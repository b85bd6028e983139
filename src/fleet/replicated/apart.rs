//! Makes a file and its log equal. The lock of the file is not held while a server is awaited, so other appends do not
//! wait.
//!
//! The compared lines may have changed before the lock is taken. In this case nothing is written, and the comparison
//! begins again.

use super::super::attempts::{ROUNDS, conflict};
use super::super::backend::{LogBackend, LogIdentity};
use super::super::closing::deleted;
use super::super::comparison::{self, Agreement, Comparison, Relation, Tail};
use super::super::replica::ReplicaRecord;
use super::super::transfer::{self, WRITE};
use super::{PublishedOwn, ReplicatedFile, TornLine, copy_log};
use std::fs::File;
use std::io;
use std::sync::atomic::Ordering;
use treelined_core::error::{Kind, Result};
use treelined_files::lock::lock;
use treelined_files::log::rewrite;
use treelined_files::os::file;
use treelined_files::os::handle::HandleAccess;

/// A file and its log at the end of a comparison.
struct Compared<'a> {
    file: &'a File,
    log: &'a dyn LogBackend,
    identity: &'a LogIdentity,
}

impl ReplicatedFile {
    /// Like [`Upstream::settle`], but takes the lock of the file itself, and does not hold it while a server is
    /// awaited. If there is no file, there is nothing to do. Fails with `sessionDeleted` if the log is closed.
    ///
    /// [`Upstream::settle`]: treelined_files::log::upstream::Upstream::settle
    pub(crate) fn settle_alone(&self, torn: TornLine) -> Result<()> {
        match self.settle_apart(torn) {
            // The file has gone to the trash meanwhile, and the caller will see that.
            Err(error) if error.kind == Kind::StorageIo && self.at.status().is_err() => Ok(()),
            settled => settled.inspect_err(|error| self.note_failure(error)),
        }
    }

    fn settle_apart(&self, torn: TornLine) -> Result<()> {
        for _ in 0..ROUNDS {
            let Some(file) = self.opened()? else {
                return Ok(());
            };
            let log = self.source.log()?;
            let identity = log.identity(&self.session)?;
            let compared = Compared {
                file: &file,
                log: &*log,
                identity: &identity,
            };
            if self.settle_once(&compared, torn)? {
                return Ok(());
            }
        }
        Err(conflict(&self.session))
    }

    /// One round of comparison and copy. Returns whether nothing is left to do.
    fn settle_once(&self, compared: &Compared<'_>, torn: TornLine) -> Result<bool> {
        let Compared {
            file,
            log,
            identity,
        } = *compared;
        let record = match self.record_of(file) {
            Some(record) => Some(record),
            None => ReplicaRecord::load(&self.at)?,
        };
        let place = (&self.at, Tail::Ignored);
        let Comparison {
            at: mut agreed,
            relation,
            is_refilled,
        } = comparison::compare(log, &self.session, place, identity, record.as_ref())?;
        if is_refilled {
            // The positions that this process knows are from the log before the loss.
            lock(&self.state).is_behind = true;
        }
        // Lines that only the file has wait until the session is restored.
        if relation == Relation::FileAhead && identity.is_closed_by(&agreed.last) {
            return Err(deleted(&self.session));
        }
        let is_torn = self.is_torn(file)?;
        if is_torn && torn == TornLine::Leave {
            return Ok(true);
        }
        // Without a record, nothing shows that the file is a copy of this log.
        let is_first = record.is_none();
        match relation {
            Relation::Equal if !is_torn => self.begin_apart(compared, &agreed),
            Relation::Equal | Relation::FileAhead if is_torn => {
                self.close_line(file)?;
                Ok(false)
            }
            Relation::FileAhead if is_first || self.has_only_entries(agreed.offset)? => {
                if self.is_named(file) {
                    let place = (&self.at, identity);
                    self.published.fetch_add(1, Ordering::Relaxed);
                    transfer::append_rest(log, &self.session, place, &mut agreed)?;
                    return self.begin_apart(compared, &agreed);
                }
                Ok(false)
            }
            Relation::LogAhead { partial: 0 } if !is_torn => {
                self.copy_parts_apart(compared, &agreed)?;
                Ok(false)
            }
            // These are two different sessions with the same id.
            Relation::Diverged { partial } if is_first => {
                Err(transfer::diverged(&self.session, &agreed, partial))
            }
            _ => self.rebuild_apart(compared, &agreed),
        }
    }

    /// The file, without its lock; `None` if there is no file.
    fn opened(&self) -> Result<Option<File>> {
        match self.at.folder.file(&self.at.name, HandleAccess::Append) {
            Ok(file) => Ok(Some(file)),
            Err(_) if self.at.status().is_err() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The same file with its lock, and its size. `None` if another file has replaced it.
    fn locked_again(&self, file: &File) -> Result<Option<(File, u64)>> {
        let Some(locked) = self.locked()? else {
            return Ok(None);
        };
        let failed = |error: io::Error| self.failed("stat", &error);
        let now = file::status_of(&locked).map_err(failed)?;
        let is_same = now.identity == file::status_of(file).map_err(failed)?.identity;
        Ok(is_same.then_some((locked, now.size)))
    }

    /// Sets the state to: the file is equal to the log up to `agreed`. Returns whether the file ends there.
    fn begin_apart(&self, compared: &Compared<'_>, agreed: &Agreement) -> Result<bool> {
        let Some((locked, size)) = self.locked_again(compared.file)? else {
            return Ok(false);
        };
        {
            // An append of this process may have published more meanwhile.
            let state = lock(&self.state);
            let reached = state.record.as_ref().map(|record| record.sequence);
            if reached > Some(agreed.position.0) && state.is_equal(&locked) && !state.is_behind {
                return Ok(true);
            }
        }
        if size < agreed.offset {
            return Ok(false);
        }
        self.begin(&locked, agreed.record(compared.identity))?;
        Ok(size == agreed.offset)
    }

    /// Ends an incomplete last line with a line break.
    fn close_line(&self, file: &File) -> Result<()> {
        match self.locked_again(file)? {
            Some((locked, _)) if self.is_torn(&locked)? => self.append(&locked, b"\n"),
            _ => Ok(()),
        }
    }

    /// Appends the lines that the log has after `agreed`, until another program appends.
    fn copy_parts_apart(&self, compared: &Compared<'_>, agreed: &Agreement) -> Result<()> {
        let mut reached = agreed.clone();
        let (mut pending, mut offset) = (Vec::new(), agreed.offset);
        for part in compared.log.read(&self.session, agreed.position)? {
            let part = part?;
            pending.extend_from_slice(&part.lines);
            reached.advance(part.end, &part.lines);
            if pending.len() >= WRITE {
                if !self.append_apart(compared, offset, &pending, &reached)? {
                    return Ok(());
                }
                pending.clear();
                offset = reached.offset;
            }
        }
        self.append_apart(compared, offset, &pending, &reached)?;
        Ok(())
    }

    /// Appends lines of the log that end at `reached`. Returns false if the file no longer ends at `offset`.
    fn append_apart(
        &self,
        compared: &Compared<'_>,
        offset: u64,
        lines: &[u8],
        reached: &Agreement,
    ) -> Result<bool> {
        match self.locked_again(compared.file)? {
            Some((locked, size)) if size == offset => {
                self.append(&locked, lines)?;
                self.begin(&locked, reached.record(compared.identity))?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Writes the file again from three parts: the equal part, the rest of the log, and the lines that were appended to
    /// the file meanwhile. The rest of the log ends with the lines that only the file had. Returns true if no lines
    /// were appended meanwhile.
    fn rebuild_apart(&self, compared: &Compared<'_>, agreed: &Agreement) -> Result<bool> {
        let Compared {
            file,
            log,
            identity,
        } = *compared;
        self.published.fetch_add(1, Ordering::Relaxed);
        let PublishedOwn { before, end, seen } = self.publish_own(log, agreed, Tail::Ignored)?;
        let old = self.at.folder.file(&self.at.name, HandleAccess::Read)?;
        let failed = |error: io::Error| self.failed("stat", &error);
        let identities = [&old, file].map(file::status_of);
        if let [Ok(old), Ok(compared)] = &identities
            && old.identity != compared.identity
        {
            return Ok(false);
        }
        let mut reached = agreed.clone();
        let (mut stopped, mut held) = (None, None);
        let replaced = rewrite::replace(&self.at, &self.at, |out| {
            rewrite::copy_range(out, &old, 0, agreed.offset)?;
            let copied = copy_log(log, &self.session, out, &mut reached, end);
            let locked = copied.and_then(|()| self.locked_again(file));
            let Ok(Some((locked, size))) = locked else {
                stopped = Some(locked.map(drop));
                return Err(io::Error::other("the file is not made again"));
            };
            rewrite::copy_range(out, &old, seen, size.saturating_sub(seen))?;
            held = Some((locked, size));
            Ok(())
        });
        match stopped {
            Some(Err(error)) => return Err(error),
            // Another file has replaced this file.
            Some(Ok(())) => return Ok(false),
            None => replaced?,
        }
        tracing::info!(
            session = self.session,
            "the file has the order of the team's stream again"
        );
        let new = self.at.folder.file(&self.at.name, HandleAccess::Read)?;
        let size = file::status_of(&new).map_err(failed)?.size;
        let is_equal = size == reached.offset;
        if before < end {
            reached.note_own();
        }
        self.begin(&new, reached.record(identity))?;
        drop(held);
        Ok(is_equal)
    }
}
