//! The ids of all sessions and of all deleted sessions, for imports.

use super::file_names::EXTENSION;
use super::{Store, listing};
use crate::os::file::Location;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::Path;
use treelined_core::error::Result;

impl Store {
    /// The path of the session directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All session files, by the ids of their sessions. The header of a file is read only if the name of the file
    /// contains no id, as when a user has renamed it.
    pub fn session_ids(&self) -> Result<HashMap<String, Location>> {
        let mut ids = HashMap::new();
        for location in self.locations()? {
            let id = id_in_name(&location.name).or_else(|| listing::header_id(&location));
            if let Some(id) = id {
                ids.insert(id, location);
            }
        }
        Ok(ids)
    }

    /// The ids of the deleted sessions.
    pub fn trashed_ids(&self) -> Result<HashSet<String>> {
        let trashed = self.trashed()?;
        let headers = trashed.iter().map(|it| it.row.listing.header.as_ref());
        Ok(headers.flatten().map(|header| header.id.clone()).collect())
    }
}

/// The id in a name of the form `<time>_<id>.jsonl`, if it is a UUID.
fn id_in_name(name: &OsStr) -> Option<String> {
    let (_, id) = name.to_str()?.strip_suffix(EXTENSION)?.rsplit_once('_')?;
    uuid::Uuid::try_parse(id).ok()?;
    Some(id.to_owned())
}
