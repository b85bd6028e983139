//! Sessions that are deleted and restored while a log has them: the log first, then the file (fleet.md "Deletion").

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

/// Closes the log of a session, whose file its caller moves to the trash, and describes it as deleted to the team. If
/// the move fails, [`reopen`] takes it back.
pub(super) fn close(file: &Arc<ReplicatedFile>, team: &Team) -> Result<()> {
    let Some(closed) = file.close(&SharedSource)? else {
        return Ok(());
    };
    let Closed {
        position,
        description,
    } = closed;
    // Another machine that closed the log describes it.
    if let Some(description) = description {
        note(team, description.row, position.0, true);
    }
    Ok(())
}

/// Opens the log of a deleted session again.
pub(super) fn reopen(log: &dyn LogBackend, session: &str) -> Result<InLog> {
    closing::reopen(log, session, &SharedSource)
}

/// Brings the lines of the log into a file that is back in its place, and describes the session to the team. A session
/// that the log has not is pushed when it is opened.
pub(super) fn settle_restored(file: &ReplicatedFile, team: &Team, before: InLog) -> Result<()> {
    if before == InLog::Missing {
        return file.open_alone(&SharedSource);
    }
    file.settle_alone(TornLine::Leave)?;
    let row = describe::describe(file.at())?.row;
    note(team, row, file.position().0, false);
    Ok(())
}

/// A file that went to the trash, since another machine has deleted the session.
#[derive(Debug, Default)]
pub(super) struct DiscardedFile {
    /// The ids of the entries that the log does not have.
    pub(super) lost: Vec<String>,
    /// The path in the trash; `None` if another process has moved the file.
    pub(super) path: Option<PathBuf>,
}

/// Moves the file of a session that another machine has deleted to the trash. `None` if the session is not deleted: it
/// may have been restored meanwhile.
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
    // The machine that deleted the session may have ended before it said so.
    if file.is_closed()
        && let Ok(description) = describe::describe(at)
    {
        note(team, description.row, file.position().0, true);
    }
    for _ in 0..ROUNDS {
        let lost = match file.lost() {
            // Another process of this machine was faster.
            Err(_) if at.status().is_err() => return Ok(Some(DiscardedFile::default())),
            lost => lost?,
        };
        let Some(_locked) = file.locked_as(&lost)? else {
            continue;
        };
        let path = match store.trash(at) {
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

/// Moves the file of a session back that has been restored. Returns whether the file is there: the session may still be
/// deleted.
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
    // A process of this machine may have been faster.
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
        host: team.host().to_owned(),
        sequence,
        is_trashed,
        ..row
    });
}

/// Whether a file may be deleted without its log: the format of its version is in none.
pub(super) fn is_local(at: &Location) -> bool {
    listing::header(at).is_none_or(|header| header.version != CURRENT_VERSION)
}
