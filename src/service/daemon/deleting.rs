//! Deletes and restores sessions. If the team has the session, the team's stream is changed before the file (fleet.md
//! "Deletion").

use super::session_files::SessionFiles;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use treelined_core::error::{Error, Kind, Result};
use treelined_core::team::TeamList;
use treelined_files::blocking::blocking;
use treelined_files::log::upstream::{InLog, SharedLog, is_replica};
use treelined_files::os::file::Location;
use treelined_files::store::catalogue::CatalogueRow;

/// The most files that one list compares with the stream of the team, and the longest time for these comparisons.
const MOST_DISCARDED: usize = 16;
const LONGEST: Duration = Duration::from_secs(1);

impl SessionFiles {
    /// Moves a session's file to the trash, after the stream of the team says that the session is deleted. Returns the
    /// new path. If this fails, the session is not deleted. Blocks.
    pub(crate) fn delete(&self, id: &str, at: &Location) -> Result<PathBuf> {
        let Some(log) = self.shared_log() else {
            return self.store.trash(at);
        };
        log.delete(id, at)?;
        let error = match self.store.trash(at) {
            Ok(path) => return Ok(path),
            Err(error) => error,
        };
        // Another machine has deleted the session too, and the follower of the stream has moved the file already.
        if at.status().is_err()
            && let Some(trashed) = self.store.find_trashed(id, None)?
        {
            return Ok(trashed.path());
        }
        if let Err(error) = undo(log, id, at) {
            tracing::error!(%error, "the team's stream says that a session is deleted which is not");
        }
        Err(error)
    }

    /// Moves a deleted session back, after the stream of the team says that it is restored. If the trash has no file of
    /// the session, the file is copied from the stream. Returns the path. Blocks.
    pub(crate) fn restore(&self, id: &str, path: Option<&str>) -> Result<PathBuf> {
        let Some(log) = self.shared_log() else {
            return self.store.restore(id, path);
        };
        let trashed = self.store.find_trashed(id, path)?;
        if trashed.is_none() && path.is_some() {
            return self.store.restore(id, path);
        }
        let is_local = trashed.as_ref().is_some_and(|at| !is_replica(at));
        let before = match log.restore(id) {
            // As far as this machine knows, the session has never been in the stream, so its file is enough.
            Err(error) if error.kind == Kind::LogUnavailable && is_local => {
                return self.store.restore(id, path);
            }
            Err(error) if error.kind == Kind::SessionErased => {
                self.store.erase(id)?;
                return Err(error);
            }
            before => before?,
        };
        let restored = match self.store.find(id) {
            // Another machine deleted the session, and this machine has not opened it since. So the file is not in the
            // trash.
            Ok(at) if before == InLog::Deleted => at.path(),
            Err(_) if before != InLog::Missing && trashed.is_none() => {
                log.fetch(id)?;
                self.store.find(id)?.path()
            }
            _ => match self.store.restore(id, path) {
                // The follower of the stream has restored the file already.
                Err(error) if error.kind == Kind::SessionExists && before == InLog::Deleted => {
                    self.store.find(id)?.path()
                }
                restored => restored?,
            },
        };
        let at = Location::of_path(&restored)?;
        if let Err(error) = log.restored(id, &at, before) {
            tracing::warn!(%error, "a restored session is compared with its log when it is opened");
        }
        Ok(restored)
    }

    /// Removes from a list the sessions that other machines have deleted, and moves their files to the trash. The
    /// team's list only says which sessions to check, and the stream decides. Blocks.
    pub(crate) fn discard_deleted(&self, team: &TeamList, rows: &mut Vec<Arc<CatalogueRow>>) {
        self.drop_erased(team);
        let is_erased = |id: &str| team.erased.contains(id);
        rows.retain(|row| {
            let header = row.listing.header.as_ref();
            header.is_none_or(|header| !is_erased(&header.id))
        });
        let Some(log) = self.shared_log().filter(|_| team.incomplete.is_none()) else {
            return;
        };
        let began = Instant::now();
        let mut left = MOST_DISCARDED;
        rows.retain(|row| {
            let listing = &row.listing;
            let id = listing.header.as_ref().map(|header| &*header.id);
            let described = id.and_then(|id| team.find(id)?.row.as_ref());
            let is_over = left == 0 || began.elapsed() > LONGEST;
            if is_over || !described.is_some_and(|row| row.is_trashed) {
                return true;
            }
            left -= 1;
            let compared = Location::of_path(&listing.path).and_then(|at| log.prepare(&at));
            match compared {
                Err(error) if error.kind == Kind::SessionDeleted => false,
                Err(_) => {
                    left = 0;
                    true
                }
                Ok(()) => true,
            }
        });
    }

    /// Removes the files of sessions that were erased. Blocks.
    fn drop_erased(&self, team: &TeamList) {
        if team.erased.is_empty() {
            return;
        }
        let here = self.store.list().unwrap_or_default();
        let trashed = self.store.trashed().unwrap_or_default();
        let trashed = trashed.iter().map(|trashed| &trashed.row);
        let headers = here
            .iter()
            .chain(trashed)
            .filter_map(|row| row.listing.header.as_ref());
        let ids: HashSet<&str> = headers.map(|header| &*header.id).collect();
        for id in ids.into_iter().filter(|id| team.erased.contains(*id)) {
            if let Err(error) = self.store.erase(id) {
                tracing::warn!(%error, "the files of an erased session are removed later");
            }
        }
    }

    /// Erases a session for the team, and removes its files here.
    pub(crate) async fn erase(self: &Arc<Self>, id: &str) -> Result<()> {
        let (files, id) = (Arc::clone(self), id.to_owned());
        blocking(move || {
            let log = files.shared_log().ok_or_else(|| {
                let why = "this daemon has no team: `treelined purge` removes a deleted session";
                Error::new(Kind::ErasureUnsupported, why)
            })?;
            log.erase(&id)?;
            files.store.erase(&id)
        })
        .await
    }

    /// The locations where parts of an erased session can still exist, as texts for people.
    pub(crate) fn remains(&self) -> Vec<String> {
        let mut remains = vec![
            "backups of the database, with its archive".to_owned(),
            "machines of the team whose daemon does not run: theirs goes when it lists or opens sessions".to_owned(),
        ];
        let origins = self.store.path().join(".origins");
        if origins.exists() {
            let origins = origins.display();
            remains.push(format!(
                "the kept sources of imports in {origins}: `treelined import --forget SESSION`"
            ));
        }
        remains
    }

    /// Like [`Self::delete`], on a blocking thread. `None` for a session without a file.
    pub(crate) async fn delete_file(
        self: &Arc<Self>,
        id: &str,
        at: Option<Location>,
    ) -> Result<Option<PathBuf>> {
        let Some(at) = at else {
            return Ok(None);
        };
        let (files, id) = (Arc::clone(self), id.to_owned());
        blocking(move || files.delete(&id, &at).map(Some)).await
    }
}

/// Reverts a deletion in the stream of the team, if the stream has the deletion.
fn undo(log: &dyn SharedLog, id: &str, at: &Location) -> Result<()> {
    match log.restore(id)? {
        InLog::Deleted => log.restored(id, at, InLog::Deleted),
        InLog::Missing | InLog::Open => Ok(()),
    }
}
