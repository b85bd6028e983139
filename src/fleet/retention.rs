//! Closes and erases sessions without activity (schema/fleet.md "Retention").

use super::backend::{AppendOutcome, LogBackend, Position};
use super::closing;
use super::describe::{self, Description};
use super::engine::{Engine, wait};
pub use super::quiet::{Due, QuietSession};
use super::settings::Retention;
use super::team::TeamRows;
use std::collections::HashSet;
use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use treelined_core::author::Author;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::team::TeamRow;
use treelined_files::clock::SharedSource;
use treelined_files::os::file::{Folder, Location};
use treelined_files::os::temporary::Temporary;

/// The most sessions of one round of a daemon.
const ROUND: usize = 1000;
/// The most sessions that a command handles at once.
const ALL: usize = 100_000;
/// After this many sessions, a round reads again which sessions are open.
const OPEN_AGAIN: usize = 100;
/// The pause between two rounds in a session directory.
const HOUR: Duration = Duration::from_secs(60 * 60);
const CACHE: &str = ".cache";
/// The name of a file in the cache. A round holds the lock of this file. The file's modification time is the end of the
/// last round.
const TURN: &str = "retained";

/// The result for a session.
#[derive(Debug)]
pub enum Retained {
    /// The session was closed or erased. In a dry run, it would be closed or erased.
    Done,
    /// A daemon has the session open.
    Open,
    /// Another program has appended meanwhile.
    Active,
    Failed(Error),
}

/// How a command or a daemon retains sessions.
pub struct Round<'a> {
    pub retention: Retention,
    pub session_dir: &'a Path,
    /// The writer of the records that close sessions.
    pub author: &'a Author,
    /// Whether the round changes nothing and only reports.
    pub is_dry: bool,
}

impl Round<'_> {
    /// Closes and erases all sessions for which this is due. Waits for another round in the session directory.
    pub fn run(
        &self,
        log: &dyn Engine,
        each: &mut dyn FnMut(&QuietSession, Retained) -> io::Result<()>,
    ) -> Result<()> {
        let turn = Turn::open(self.session_dir)?;
        turn.file
            .lock()
            .map_err(|error| Error::io("lock the cache", &error))?;
        let mut seen = HashSet::new();
        loop {
            let found = wait(log.runtime(), log.quiet(self.retention, ALL))?;
            let is_last = found.len() < ALL || self.is_dry;
            let new = found.into_iter();
            let new: Vec<_> = new.filter(|of| seen.insert(of.session.clone())).collect();
            // A session that could not be closed or erased is found again.
            if new.is_empty() {
                return turn.end();
            }
            self.handle(log, &turn, &new, each)?;
            if is_last {
                return turn.end();
            }
        }
    }

    /// The round of a daemon, unless another round is running or has ended less than an hour ago.
    pub(super) fn run_in_turn(&self, log: &dyn Engine) -> Result<()> {
        let turn = Turn::open(self.session_dir)?;
        match turn.file.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(Error::io("lock the cache", &error)),
            Ok(()) if turn.is_recent() => return Ok(()),
            Ok(()) => {}
        }
        let found = wait(log.runtime(), log.quiet(self.retention, ROUND))?;
        let mut tell = |of: &QuietSession, retained: Retained| {
            let QuietSession { session, due, .. } = of;
            match retained {
                Retained::Done => tracing::info!(session, ?due, "a session without activity"),
                Retained::Failed(error) => {
                    tracing::warn!(session, ?due, %error, "a session without activity stays");
                }
                Retained::Open | Retained::Active => {}
            }
            Ok(())
        };
        let handled = self.handle(log, &turn, &found, &mut tell);
        // If the servers cannot be reached, the time of the last round stays, so that the next round begins soon.
        if !matches!(&handled, Err(error) if error.kind == Kind::LogUnavailable) {
            turn.end()?;
        }
        handled
    }

    fn handle(
        &self,
        log: &dyn Engine,
        turn: &Turn,
        sessions: &[QuietSession],
        each: &mut dyn FnMut(&QuietSession, Retained) -> io::Result<()>,
    ) -> Result<()> {
        let rows = TeamRows::of(log);
        for some in sessions.chunks(OPEN_AGAIN) {
            let open = wait(log.runtime(), log.open_sessions())?;
            for of in some {
                let done = match of.due {
                    _ if open.contains(&of.session) => Ok(Retained::Open),
                    _ if self.is_dry => Ok(Retained::Done),
                    Due::Close => self.close(log, of, &turn.folder, &rows),
                    Due::Erase => {
                        let erased = wait(log.runtime(), log.erase(&of.session));
                        erased.map(|()| Retained::Done)
                    }
                };
                let retained = match done {
                    // The same error would follow for the other sessions.
                    Err(error) if error.kind == Kind::LogUnavailable => return Err(error),
                    Err(error) if error.kind == Kind::LogDenied && of.due == Due::Close => {
                        return Err(error);
                    }
                    Err(error) => Retained::Failed(error),
                    Ok(retained) => retained,
                };
                let told = each(of, retained);
                told.map_err(|error| Error::io("report a session", &error))?;
            }
        }
        Ok(())
    }

    /// Closes the log of a session, and describes the session as deleted to the team.
    fn close(
        &self,
        log: &dyn Engine,
        of: &QuietSession,
        cache: &Arc<Folder>,
        rows: &TeamRows,
    ) -> Result<Retained> {
        let Some(Description { row, leaf }) = describe_lines(log, of, cache)? else {
            return Ok(Retained::Active);
        };
        let line = closing::trashed(
            &of.session,
            leaf.as_deref(),
            &SharedSource,
            Some(self.author),
        );
        let AppendOutcome::Appended(end) = log.append(&of.session, of.end, &line)? else {
            return Ok(Retained::Active);
        };
        let row = TeamRow {
            host: self.author.host.clone(),
            sequence: end.0,
            is_trashed: true,
            ..row
        };
        if let Err(error) = rows.write(row) {
            tracing::info!(%error, "the team's list has a session that is deleted");
        }
        Ok(Retained::Done)
    }
}

/// Describes a session by the lines of its log. `None` if the log does not end where the engine has found its end.
fn describe_lines(
    log: &dyn LogBackend,
    of: &QuietSession,
    cache: &Arc<Folder>,
) -> Result<Option<Description>> {
    let failed = |error: io::Error| Error::io("write a session to the cache", &error);
    let copy = Temporary::for_name(cache, TURN.as_ref()).map_err(failed)?;
    let mut end = Position::START;
    for part in log.read(&of.session, Position::START)? {
        let part = part?;
        end = part.end;
        (&**copy.file()).write_all(&part.lines).map_err(failed)?;
    }
    if end != of.end {
        return Ok(None);
    }
    let described = describe::describe(&Location::of_path(&copy.path())?)?;
    match described.row.session_id == of.session {
        true => Ok(Some(described)),
        false => Err(Error::new(
            Kind::LogForeign,
            format!("session {:?} has the header of another one", of.session),
        )),
    }
}

/// The turn of one process: of all processes that use a session directory, only one runs a round at a time.
struct Turn {
    folder: Arc<Folder>,
    file: File,
}

impl Turn {
    fn open(session_dir: &Path) -> Result<Self> {
        let opened = || {
            let root = Arc::new(Folder::open_or_create(session_dir)?);
            let folder = Arc::new(root.subfolder_or_create_unsynced(CACHE.as_ref())?);
            let options = File::options()
                .write(true)
                .create(true)
                .truncate(false)
                .open(folder.path().join(TURN));
            Ok(Self {
                folder,
                file: options?,
            })
        };
        opened().map_err(|error: io::Error| Error::io("open the cache", &error))
    }

    fn is_recent(&self) -> bool {
        let status = self
            .file
            .metadata()
            .and_then(|status| Ok((status.modified()?, status.len())));
        // The file is empty until the first round has ended. A time in the future comes from a wrong clock.
        status.is_ok_and(|(at, bytes)| {
            bytes > 0
                && SystemTime::now()
                    .duration_since(at)
                    .is_ok_and(|age| age < HOUR)
        })
    }

    fn end(&self) -> Result<()> {
        let written = (&self.file)
            .write_all(b"\n")
            .and_then(|()| self.file.set_modified(SystemTime::now()));
        written.map_err(|error| Error::io("write to the cache", &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_recent_for_an_hour() {
        let folder = tempfile::tempdir().unwrap();
        let turn = Turn::open(folder.path()).unwrap();
        assert!(!turn.is_recent(), "no round has ended");
        turn.end().unwrap();
        let again = Turn::open(folder.path()).unwrap();
        assert!(again.is_recent());
        for (now, is_recent) in [
            (SystemTime::now() - HOUR, false),
            (SystemTime::now() - HOUR / 2, true),
            (SystemTime::now() + HOUR, false),
        ] {
            again.file.set_modified(now).unwrap();
            assert_eq!(again.is_recent(), is_recent);
        }
    }
}
