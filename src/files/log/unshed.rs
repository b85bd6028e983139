//! Moves the lines of shed branches from the cold file back into the session file (session-file.md §4.10).

use super::append::Lock;
use super::cold::{self, ColdReader, Piece, SUFFIX};
#[cfg(any(test, feature = "simulation"))]
use super::repair::locked;
use super::rewrite::{self, copy_range};
use super::shed::{ShedSource, WholeLines};
use super::state::{Log, LogStorage, OpenedLog, Standing};
use crate::invariant::always;
use crate::os::file::File;
#[cfg(any(test, feature = "simulation"))]
use crate::os::file::Location;
use crate::os::temporary::{self, Temporary};
use hashbrown::{HashMap, HashSet};
use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use treelined_core::error::Result;
use treelined_core::json;
use treelined_core::tree::Tree;

/// The most attempts to read a session whose branches another process moves meanwhile.
const ATTEMPTS: usize = 3;

/// Checks the session in the form that it has after the move. If the check fails, the session stays unchanged.
pub type WholeCheck<'a> = &'a mut dyn FnMut(OpenedLog) -> Result<()>;

impl Log {
    /// Moves the lines of shed branches back, unless `check` fails. Requires the lock, and all lines in `tree`. After
    /// this call the caller must reopen the log.
    pub fn unshed(
        &self,
        lock: &Lock,
        tree: &Tree,
        entry_ids: &HashSet<String>,
        check: Option<WholeCheck<'_>>,
    ) -> Result<()> {
        let session = self.shed_source(lock, tree)?;
        let (at, records) = (session.at, &session.records);
        let failed = |error: io::Error| session.failed("restore branches of", &error);
        temporary::remove_abandoned(&at.folder).map_err(failed)?;
        let is_meant = |of: &str| entry_ids.contains(of);
        cold::check(at, records, is_meant, |line| {
            let id = json::get(line, "id").and_then(json::id);
            id.is_some_and(|id| tree.find_any(&id).is_some())
        })?;
        let stored = cold::open(at)?;
        always!(
            "A branch that comes back has a record in the session file",
            entry_ids.iter().all(|id| records.has(id))
        )?;
        let temporary = Temporary::for_name(&at.folder, &at.name).map_err(failed)?;
        write_with(&session, stored.as_ref(), is_meant, temporary.file()).map_err(failed)?;
        if let Some(check) = check {
            let new = Arc::clone(temporary.file());
            check(Self::open_unnamed(at.clone(), new)?)?;
        }
        rewrite::finish(temporary, at).map_err(failed)?;
        // The session file has the lines, so their copies in the cold file do no harm.
        if let Err(error) = clear_cold(&session, stored.as_ref(), is_meant) {
            tracing::warn!(%error, "lines that are back in a session stay in its cold file");
        }
        Ok(())
    }
}

/// Writes the lines of the session file, and the lines of the branches for which `is_meant` is true.
fn write_with(
    session: &ShedSource<'_>,
    stored: Option<&File>,
    is_meant: impl Fn(&str) -> bool,
    to: &File,
) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(rewrite::BUFFER, to);
    copy_range(&mut out, session.file, 0, session.lines.start)?;
    let mut reader = ColdReader::new(stored, &session.records)?;
    let named = session.named_records()?;
    session.walk(&mut reader, |piece| match piece {
        Piece::Hot(_, line) => cold::write_hot(&mut out, session.file, line),
        Piece::Record(line, of) if !is_meant(of) => cold::write_hot(&mut out, session.file, line),
        Piece::Record(line, _) => match cold::left_record(line, &named) {
            Some(left) => {
                out.write_all(&left)?;
                out.write_all(b"\n")
            }
            None => Ok(()),
        },
        Piece::Cold(line) if is_meant(&line.of) => {
            out.write_all(&line.line)?;
            out.write_all(b"\n")
        }
        Piece::Cold(_) => Ok(()),
    })?;
    out.flush()?;
    session.keep_time(to)
}

/// Removes the lines of these branches from the cold file.
fn clear_cold(
    session: &ShedSource<'_>,
    stored: Option<&File>,
    is_meant: impl Fn(&str) -> bool,
) -> Result<()> {
    let to = session.at.beside(SUFFIX);
    if session.records.are_all(&is_meant) {
        let removed = to.folder.remove(&to.name).and_then(|()| to.folder.sync());
        return removed.map_err(|error| session.failed("remove the cold file of", &error));
    }
    rewrite::replace(&to, &to, |out| {
        let mut reader = ColdReader::new(stored, &session.records)?;
        let named = session.named_records()?;
        // A line that stays in place of a record shifts the offsets of the cold lines after it.
        let mut shift = 0;
        session.walk(&mut reader, |piece| match piece {
            Piece::Cold(line) if !is_meant(&line.of) => {
                cold::write_cold(out, line.at + shift, &line.of, &line.line)
            }
            Piece::Record(line, of) if is_meant(of) => {
                shift += cold::left_record(line, &named).map_or(0, |left| left.len() as u64 + 1);
                Ok(())
            }
            Piece::Cold(_) | Piece::Hot(..) | Piece::Record(..) => Ok(()),
        })
    })
}

/// A session with the lines of its shed branches at their old positions, for a program that compares them. It is read
/// from a copy without a name.
pub struct WholeLog {
    pub opened: OpenedLog,
    /// For each entry of a shed branch: the id of the first entry of the branch.
    branch_of: HashMap<String, String>,
}

impl WholeLog {
    /// `None` if no branch is shed.
    pub fn of(session: &OpenedLog) -> Result<Option<Self>> {
        let OpenedLog { log, tree, .. } = session;
        let LogStorage::File(stored) = &log.store else {
            return Ok(None);
        };
        let Some((file, _)) = log.file_to_sync()?.filter(|_| tree.has_shed()) else {
            return Ok(None);
        };
        let Some(lines) = WholeLines::of(log, tree, &file, stored.end)? else {
            return Ok(None);
        };
        let failed = |error: io::Error| stored.failed("copy", &error);
        let copy = Temporary::for_name(&stored.at.folder, &stored.at.name).map_err(failed)?;
        let mut out = BufWriter::with_capacity(rewrite::BUFFER, &**copy.file());
        copy_range(&mut out, &file, 0, lines.start()).map_err(failed)?;
        lines.each(|line| cold::write_hot(&mut out, &file, line).map_err(failed))?;
        out.flush().map_err(failed)?;
        drop(out);
        let file = Arc::clone(copy.file());
        Ok(Some(Self {
            opened: Log::open_unnamed(stored.at.clone(), file)?,
            branch_of: lines.branches().map_err(failed)?,
        }))
    }

    /// Like [`WholeLog::of`], for a session whose lock is not held: another process may move its branches meanwhile, so
    /// `open` opens it again.
    pub fn of_unlocked(open: impl Fn() -> Result<OpenedLog>) -> Result<OpenedLog> {
        let mut attempt = 1;
        loop {
            let session = open()?;
            match Self::of(&session) {
                Ok(None) => return Ok(session),
                Ok(Some(whole)) => return Ok(whole.opened),
                Err(error) => match session.log.standing()? {
                    Standing::Replaced if attempt < ATTEMPTS => attempt += 1,
                    _ => return Err(error),
                },
            }
        }
    }

    /// The first entry of the shed branch that has this entry.
    pub fn branch_of(&self, entry_id: &str) -> Option<&str> {
        self.branch_of.get(entry_id).map(String::as_str)
    }
}

/// Moves all shed branches of a session back, for a check of the whole session. No other process may have it open.
#[cfg(any(test, feature = "simulation"))]
pub fn restore(at: &Location) -> Result<()> {
    let mut opened = Log::open(at.clone())?;
    if !opened.tree.has_shed() {
        return Ok(());
    }
    let lock = locked(&mut opened.log)?;
    let shed = opened.tree.shed().into_iter();
    let entry_ids: HashSet<String> = shed.map(|(id, _)| id.to_owned()).collect();
    opened.log.unshed(&lock, &opened.tree, &entry_ids, None)
}
