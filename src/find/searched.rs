//! The sessions to search.

use super::index::IndexSettings;
use super::request::SearchRequest;
use std::collections::HashSet;
use std::path::PathBuf;
use treelined_core::error::{Error, Result};
use treelined_files::os::file::{Location, Status};
use treelined_files::store::catalogue::CatalogueRow;
use treelined_files::store::{Store, listing};

/// The sessions to search: the store, and the settings of the index.
#[derive(Clone, Copy)]
pub struct SearchedStore<'s> {
    pub store: &'s Store,
    pub index: IndexSettings,
}

impl SearchedStore<'_> {
    /// The files of the sessions that a request searches. Only the filters that need no entries are applied.
    pub(super) fn files(&self, request: &SearchRequest) -> Result<Vec<(Location, Status)>> {
        let mut files = match &request.session {
            None => self.store.session_files()?,
            Some(id) => vec![self.file(id)?],
        };
        if let Some(sorted) = self.sorted(request)? {
            files.retain(|(at, _)| sorted.contains(&at.path()));
        }
        Ok(files)
    }

    /// The number of sessions that have shed branches and pass the filters of sessions. No entry of such a branch is
    /// searched.
    pub(super) fn shed(&self, request: &SearchRequest) -> Result<u64> {
        let mut files = self.store.files_with_cold()?;
        if !files.is_empty()
            && let Some(sorted) = self.sorted(request)?
        {
            files.retain(|at| sorted.contains(&at.path()));
        }
        let is_searched = |at: &&Location| {
            listing::header(at).is_some_and(|header| {
                let id = request.session.as_ref();
                id.is_none_or(|id| *id == header.id) && request.takes_directory(&header.cwd)
            })
        };
        Ok(files.iter().filter(is_searched).count() as u64)
    }

    /// The paths of the sessions with the tag and on the git branch of the request; `None` if the request names
    /// neither.
    fn sorted(&self, request: &SearchRequest) -> Result<Option<HashSet<PathBuf>>> {
        let (tag, git) = (request.tag.as_ref(), request.git.as_ref());
        if tag.is_none() && git.is_none() {
            return Ok(None);
        }
        let is_wanted = |row: &&CatalogueRow| {
            tag.is_none_or(|tag| row.tags().contains(tag))
                && git.is_none_or(|git| row.listing.sorting.git.branch.as_ref() == Some(git))
        };
        let rows = self.store.rows()?;
        let wanted = rows.iter().map(|row| &**row).filter(is_wanted);
        Ok(Some(wanted.map(|row| row.listing.path.clone()).collect()))
    }

    fn file(&self, id: &str) -> Result<(Location, Status)> {
        let location = self.store.find(id)?;
        let status = location.status();
        let path = location.path();
        let status = status.map_err(|error| Error::io(&format!("read {}", path.display()), &error));
        Ok((location, status?))
    }
}
