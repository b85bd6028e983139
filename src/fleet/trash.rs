//! Deletes and restores sessions that a log has. Each operation changes first the log, then the file (fleet.md
//! "Deletion").

use super::attempts::{ROUNDS, conflict};
use super::backend::{LogBackend, LogPart};
use super::closing;
use super::describe;
use super::replicated::closing::Closed;
use super::replicated::{ReplicatedFile, TornLine};
use super::team::Team;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use treelined_core::error::{Kind, Result};
use treelined_core::team::TeamRow;
use treelined_files::clock::SharedSource;
use treelined_files::log::header::CURRENT_VERSION;
use treelined_files::log::upstream::InLog;
use treelined_files::os::file::Location;
use treelined_files::store::{Store, listing};

/// Closes the log of a session, and describes the session as deleted to the team. The caller then moves the file to the
/// trash. If the move fails, the caller opens the log again with [`reopen`].
pub(super) fn close(file: &Arc<ReplicatedFile>, team: &Team) -> Result<()> {
    let Some(closed) = file.close(&SharedSource, Some(team.author()))? else {
        return Ok(());
    };
    let Closed {
        position,
        description,
    } = closed;
    // If another machine has closed the log, that machine describes the session.
    if let Some(description) = description {
        note(team, description.row, position.0, true);
    }
    Ok(())
}

/// Opens the log of a deleted session again.
pub(super) fn reopen(log: &dyn LogBackend, session: &str, team: &Team) -> Result<InLog> {
    closing::reopen(log, session, &SharedSource, Some(team.author()))
}

/// Brings the lines of the log into a restored file, and describes the session to the team. If the log does not have
/// the session, the session is pushed when it is opened.
pub(super) fn settle_restored(file: &ReplicatedFile, team: &Team, before: InLog) -> Result<()> {
    if before == InLog::Missing {
        return file.open_alone(&SharedSource, Some(team.author()));
    }
    file.settle_alone(TornLine::Leave)?;
    let row = describe::describe(file.at())?.row;
    note(team, row, file.position().0, false);
    Ok(())
}

/// A file that was moved to the trash, since another machine has deleted its session.
#[derive(Debug, Default)]
pub(super) struct DiscardedFile {
    /// The ids of the entries that are not in the log.
    pub(super) lost: Vec<String>,
    /// The path in the trash; `None` if another process has moved the file.
    pub(super) path: Option<PathBuf>,
}

/// Moves a file to the trash if another machine has deleted its session. `None` if the session is not deleted, for
/// example since it has been restored meanwhile.
pub(super) fn discard(
    store: &Store,
    file: &ReplicatedFile,
    team: &Team,
) -> Result<Option<DiscardedFile>> {
    match file.settle_alone(TornLine::Leave) {
        Err(error) if error.kind == Kind::SessionDeleted => {}
        settled => return settled.map(|()| None),
    }
    let at = file.at();
    if file.is_closing() || store.is_in_trash(at) {
        return Ok(Some(DiscardedFile::default()));
    }
    // The machine that deleted the session may have ended before it described the session as deleted.
    if file.is_closed()
        && let Ok(description) = describe::describe(at)
    {
        note(team, description.row, file.position().0, true);
    }
    for _ in 0..ROUNDS {
        let lost = match file.lost() {
            // Another process of this machine has already moved the file.
            Err(_) if at.status().is_err() => return Ok(Some(DiscardedFile::default())),
            lost => lost?,
        };
        let Some(locked) = file.locked_as(&lost)? else {
            continue;
        };
        let path = match store.trash_locked(at, &locked) {
            Err(_) if at.status().is_err() => None,
            moved => Some(moved?),
        };
        let (session, lost) = (file.session(), lost.ids);
        tracing::info!(
            session,
            ?path,
            lost = lost.len(),
            "another machine has deleted the session"
        );
        return Ok(Some(DiscardedFile { lost, path }));
    }
    Err(conflict(file.session()))
}

/// Moves the file of a restored session back. Returns whether the file is there. The session may still be deleted.
pub(super) fn bring_back(
    store: &Store,
    log: &dyn LogBackend,
    file: &ReplicatedFile,
    path: Option<&Path>,
) -> Result<bool> {
    let session = file.session();
    let is_open = |last: LogPart| !closing::is_closed(session, &last.lines);
    if !log.last(session)?.is_some_and(is_open) {
        return Ok(false);
    }
    let is_there = || file.at().status().is_ok();
    // Another process of this machine may have moved the file already.
    if is_there() {
        return Ok(true);
    }
    let path = path.map(|path| path.to_string_lossy().into_owned());
    match store.restore(session, path.as_deref()) {
        Err(_) if is_there() => Ok(true),
        restored => restored.map(|_| is_there()),
    }
}

fn note(team: &Team, row: TeamRow, sequence: u64, is_trashed: bool) {
    team.note(TeamRow {
        host: team.author().host.clone(),
        sequence,
        is_trashed,
        ..row
    });
}

/// Whether a file can be deleted without a log: no log has sessions in the format of its version.
pub(super) fn is_local(at: &Location) -> bool {
    listing::header(at).is_none_or(|header| header.version != CURRENT_VERSION)
}
