//! The sessions to search.

use super::index::IndexSettings;
use treelined_core::error::{Error, Result};
use treelined_files::os::file::{Location, Status};
use treelined_files::store::Store;

/// The sessions to search: the store, and the settings of the index.
#[derive(Clone, Copy)]
pub struct SearchedStore<'s> {
    pub store: &'s Store,
    pub index: IndexSettings,
}

impl SearchedStore<'_> {
    /// The files of all sessions, or of one.
    pub(super) fn files(&self, session: Option<&str>) -> Result<Vec<(Location, Status)>> {
        let Some(id) = session else {
            return self.store.session_files();
        };
        let location = self.store.find(id)?;
        let status = location.status();
        let path = location.path();
        let status = status.map_err(|error| Error::io(&format!("read {}", path.display()), &error));
        Ok(vec![(location, status?)])
    }
}
