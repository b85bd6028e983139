//! The trash folder. Deleted sessions are moved there and can be restored. They are removed from the trash only if a
//! person requests this ([`Store::purge`]).

use super::file_names::{folder_name, is_hidden, is_number};
use super::relocating::{belongings, related, relocate, remove, remove_left};
use super::{Store, exists};
use crate::lock::lock;
use crate::log::append::locked_elsewhere;
use crate::log::{self, Log};
use crate::os::file::{File, Folder, Location};
use crate::os::path;
use crate::store::catalogue::{CatalogueRow, FolderFiles};
use std::cmp::Reverse;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::timestamp::Millis;

/// The folder of deleted sessions.
const TRASH: &str = ".trash";

/// A deleted session.
pub struct DeletedSession {
    pub row: Arc<CatalogueRow>,
    pub deleted_at: Millis,
    /// The path of the file after a restore.
    pub returns_to: PathBuf,
}

impl DeletedSession {
    /// Whether the deleted session has this id. If `path` is given, it must also be the path of the session's file in
    /// the trash.
    fn is(&self, id: &str, path: Option<&str>) -> bool {
        let listing = &self.row.listing;
        let id_of_file = listing.header.as_ref().map(|header| header.id.as_str());
        id_of_file == Some(id) && path.is_none_or(|path| listing.path.to_string_lossy() == *path)
    }
}

impl Store {
    /// Moves the file of a session and its related files to the trash. Returns its new path. On failure all files keep
    /// their paths. Fails with `sessionLocked` if another process holds the lock of the file.
    pub fn trash(&self, location: &Location) -> Result<PathBuf> {
        self.move_to_trash(location, None)
    }

    /// Like [`Self::trash`], for a caller that holds the lock of the file. `locked` is the locked file.
    pub fn trash_locked(&self, location: &Location, locked: &File) -> Result<PathBuf> {
        self.move_to_trash(location, Some(locked))
    }

    fn move_to_trash(&self, location: &Location, locked: Option<&File>) -> Result<PathBuf> {
        let failed =
            |error: io::Error| Error::io(&format!("delete {}", location.path().display()), &error);
        let trash = self.root()?.subfolder_or_create(OsStr::new(TRASH));
        let trash = Arc::new(trash.map_err(failed)?);
        if let Some(cache) = self.cache() {
            log::remove_cached(location, &cache);
        }
        let mut name = location.name.clone();
        let mut number = 1;
        loop {
            let to = Location {
                folder: Arc::clone(&trash),
                name: name.clone(),
            };
            match relocate(location, &to, locked) {
                Ok(()) => return Ok(to.path()),
                // The trash has an earlier session with this name.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    number += 1;
                    name.clone_from(&location.name);
                    name.push(format!(".{number}"));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(locked_elsewhere());
                }
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// The deleted sessions, most recent first.
    pub fn trashed(&self) -> Result<Vec<DeletedSession>> {
        let Some((root, trash)) = self.trash_folder()? else {
            return Ok(Vec::new());
        };
        let listed = trash.list().map_err(|error| self.failed("read", &error))?;
        let names = listed.into_iter().map(|(name, _)| name);
        let names: Vec<OsString> = names.filter(|name| name_before(name).is_some()).collect();
        let files = [FolderFiles {
            folder: Arc::clone(&trash),
            names,
        }];
        let mut known = lock(&self.trashed);
        let rows = known.list(&files, None, false, Log::open);
        drop(known);
        let of_row = |row: Arc<CatalogueRow>| {
            let name = row.listing.path.file_name()?;
            let (seconds, nanoseconds) = trash.changed(name).ok()?;
            let header = row.listing.header.as_ref();
            let cwd = header.map(|header| header.cwd.as_str()).unwrap_or_default();
            let folder = root.path().join(folder_name(cwd));
            Some(DeletedSession {
                deleted_at: seconds * 1000 + nanoseconds / 1_000_000,
                returns_to: folder.join(name_before(name)?),
                row,
            })
        };
        let mut trashed: Vec<DeletedSession> = rows.iter().cloned().filter_map(of_row).collect();
        trashed.sort_by_key(|trashed| Reverse(trashed.deleted_at));
        Ok(trashed)
    }

    /// The file in the trash that [`Self::restore`] would restore.
    pub fn find_trashed(&self, id: &str, path: Option<&str>) -> Result<Option<Location>> {
        let found = self
            .trashed()?
            .into_iter()
            .find(|trashed| trashed.is(id, path));
        let name = found.and_then(|trashed| Some(trashed.row.listing.path.file_name()?.to_owned()));
        let folder = self.trash_folder()?.map(|(_, trash)| trash);
        Ok(folder
            .zip(name)
            .map(|(folder, name)| Location { folder, name }))
    }

    /// Whether a file is in the trash.
    pub fn is_in_trash(&self, at: &Location) -> bool {
        let Ok(Some((_, trash))) = self.trash_folder() else {
            return false;
        };
        let there = Location {
            folder: trash,
            name: at.name.clone(),
        };
        match (there.status(), at.status()) {
            (Ok(there), Ok(here)) => there.identity == here.identity,
            _ => false,
        }
    }

    /// Restores a deleted session with its related files. Restores the file `path` if it is given, else the last
    /// deleted file with this id.
    pub fn restore(&self, id: &str, path: Option<&str>) -> Result<PathBuf> {
        let not_found = || {
            Error::new(
                Kind::SessionNotFound,
                format!("there is no session {id:?} in the trash: list_trash lists its sessions"),
            )
        };
        let _claimed = self.claim(id)?;
        let mut trashed = self.trashed()?.into_iter();
        let trashed = trashed.find(|trashed| trashed.is(id, path));
        let trashed = trashed.ok_or_else(not_found)?;
        let listing = &trashed.row.listing;
        let header = listing.header.as_ref().ok_or_else(not_found)?;
        let (_, trash) = self.trash_folder()?.ok_or_else(not_found)?;
        let name = listing.path.file_name().ok_or_else(not_found)?;
        let from = Location {
            folder: trash,
            name: name.to_owned(),
        };
        let to = Location {
            name: name_before(name).ok_or_else(not_found)?.to_owned(),
            ..self.place(header)?
        };
        let failed =
            |error: io::Error| Error::io(&format!("restore {}", from.path().display()), &error);
        match relocate(&from, &to, None) {
            Ok(()) => Ok(to.path()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(exists(id)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(not_found()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(locked_elsewhere()),
            Err(error) => Err(failed(error)),
        }
    }

    /// Removes a deleted session from the disk: the file `path` in the trash, if it belongs to the session `id`. The
    /// related files are removed first, so that after a failure the session can still be restored or removed. Returns
    /// the number of bytes of the file.
    pub fn purge(&self, id: &str, path: &str) -> Result<u64> {
        self.remove_trashed(id, Some(path))?.ok_or_else(|| {
            let message = format!("the session {id:?} is not in the trash as {path}");
            Error::new(Kind::SessionNotFound, message)
        })
    }

    /// Removes a session from the disk: its file, the files in the trash with its id, their related files, and its
    /// cache. Also succeeds if there is nothing to remove.
    pub fn erase(&self, id: &str) -> Result<()> {
        match self.find(id) {
            Ok(at) => {
                if let Some(cache) = self.cache() {
                    log::remove_cached(&at, &cache);
                }
                remove_whole(&at)?;
            }
            Err(error) if error.kind == Kind::SessionNotFound => {}
            Err(error) => return Err(error),
        }
        while self.remove_trashed(id, None)?.is_some() {}
        Ok(())
    }

    /// Removes the file in the trash that [`Self::restore`] would restore. Returns the number of bytes of the file;
    /// `None` if there is none.
    fn remove_trashed(&self, id: &str, path: Option<&str>) -> Result<Option<u64>> {
        let mut trashed = self.trashed()?.into_iter();
        let Some(trashed) = trashed.find(|trashed| trashed.is(id, path)) else {
            return Ok(None);
        };
        let at = Location::of_path(&trashed.row.listing.path)?;
        if let Ok(old) = Location::of_path(&trashed.returns_to) {
            remove_left(&old, &at)?;
        }
        remove_whole(&at).map(Some)
    }

    /// The session directory and its trash folder; `None` if no session was ever deleted.
    fn trash_folder(&self) -> Result<Option<(Arc<Folder>, Arc<Folder>)>> {
        let Some(root) = self.root_if_there()? else {
            return Ok(None);
        };
        match root.subfolder(OsStr::new(TRASH)) {
            Ok(trash) => Ok(Some((root, Arc::new(trash)))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed("open the trash of", &error)),
        }
    }
}

/// Removes a file after its related files. Returns the number of bytes of the file.
fn remove_whole(at: &Location) -> Result<u64> {
    let failed = |error: io::Error| Error::io(&format!("remove {}", at.path().display()), &error);
    let suffixes = belongings(at).map_err(failed)?;
    let size = at.status().map_err(failed)?.size;
    for suffix in suffixes {
        remove(&related(at, &suffix)).map_err(failed)?;
    }
    at.folder.remove(&at.name).map_err(failed)?;
    at.folder.sync().map_err(failed)?;
    Ok(size)
}

/// The name that a session file in the trash had before, without the number that makes it unique.
fn name_before(name: &OsStr) -> Option<&OsStr> {
    let bytes = name.as_encoded_bytes();
    if is_hidden(name) {
        return None;
    }
    if bytes.ends_with(b".jsonl") {
        return Some(name);
    }
    let dot = bytes.iter().rposition(|byte| *byte == b'.')?;
    let (before, number) = bytes.split_at_checked(dot)?;
    let is_numbered = before.ends_with(b".jsonl") && is_number(number.get(1..)?);
    path::from_bytes(before).filter(|_| is_numbered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_the_trash_says_the_name_before() {
        for (name, before) in [
            ("s.jsonl", Some("s.jsonl")),
            ("s.jsonl.12", Some("s.jsonl")),
            ("s.jsonl.v1.bak", None),
            ("s.jsonl.v1.bak.2", None),
            ("s.jsonl.quarantine", None),
            (".s.jsonl.0.treelined.tmp", None),
            ("s.jsonl.", None),
            ("notes", None),
        ] {
            assert_eq!(
                name_before(OsStr::new(name)),
                before.map(OsStr::new),
                "{name}"
            );
        }
    }
}
