//! The sessions to search.

use super::index::IndexSettings;
use super::request::SearchRequest;
use std::collections::HashSet;
use std::path::Path;
use treelined_core::error::{Error, Result};
use treelined_files::os::file::{Location, Status};
use treelined_files::store::Store;
use treelined_files::store::catalogue::CatalogueRow;

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
        if request.tag.is_some() || request.git.is_some() {
            let rows = self.store.rows()?;
            let is_wanted = |row: &&CatalogueRow| {
                let (tag, git) = (request.tag.as_ref(), request.git.as_ref());
                tag.is_none_or(|tag| row.tags().contains(tag))
                    && git.is_none_or(|git| row.listing.sorting.git.branch.as_ref() == Some(git))
            };
            let wanted = rows.iter().map(|row| &**row).filter(is_wanted);
            let wanted: HashSet<&Path> = wanted.map(|row| &*row.listing.path).collect();
            files.retain(|(at, _)| wanted.contains(&*at.path()));
        }
        Ok(files)
    }

    fn file(&self, id: &str) -> Result<(Location, Status)> {
        let location = self.store.find(id)?;
        let status = location.status();
        let path = location.path();
        let status = status.map_err(|error| Error::io(&format!("read {}", path.display()), &error));
        Ok((location, status?))
    }
}
