//! The trash folder. Deleted sessions are moved there and can be restored. They are removed from it only if a person
//! requests it ([`Store::purge`]).
//!
//! The file of a session is moved together with its related files: the originals that migrations kept, the
//! quarantine of repairs, and the cold file.

use super::file_names::{folder_name, is_hidden};
use super::{Store, exists};
use crate::lock::lock;
use crate::log::{self, Log};
use crate::os::file::{self, Folder, Location};
use crate::os::handle::HandleAccess;
use crate::os::path;
use crate::os::temporary::Temporary;
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
    /// Moves the file of a session and its related files to the trash. Returns its new path. On failure everything
    /// stays where it was.
    pub fn trash(&self, location: &Location) -> Result<PathBuf> {
        let failed =
            |error: io::Error| Error::io(&format!("delete {}", location.path().display()), &error);
        let trash = self.root()?.subfolder_or_create(OsStr::new(TRASH));
        let trash = Arc::new(trash.map_err(failed)?);
        if let Some(cache) = self.cache() {
            log::remove_cached(location, &cache);
        }
        let suffixes = belongings(location).map_err(failed)?;
        let mut name = location.name.clone();
        let mut number = 1;
        loop {
            let to = Location {
                folder: Arc::clone(&trash),
                name: name.clone(),
            };
            match relocate(location, &to, &suffixes) {
                Ok(()) => break,
                // The trash has an earlier session with this name.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    number += 1;
                    name.clone_from(&location.name);
                    name.push(format!(".{number}"));
                }
                Err(error) => return Err(failed(error)),
            }
        }
        let synced = trash.sync().and_then(|()| location.folder.sync());
        synced.map_err(failed)?;
        Ok(trash.path().join(name))
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
        let suffixes = belongings(&from).map_err(failed)?;
        match relocate(&from, &to, &suffixes) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(exists(id)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(not_found()),
            Err(error) => return Err(failed(error)),
        }
        let synced = to.folder.sync().and_then(|()| from.folder.sync());
        synced.map_err(failed)?;
        Ok(to.path())
    }

    /// Removes a deleted session from the disk: the file `path` in the trash, if it belongs to the session `id`. The
    /// related files are removed first, so that after a failure the session can still be restored or removed. Returns
    /// the number of bytes of the file.
    pub fn purge(&self, id: &str, path: &str) -> Result<u64> {
        let at = self.find_trashed(id, Some(path))?;
        let at = at.ok_or_else(|| {
            let message = format!("the session {id:?} is not in the trash as {path}");
            Error::new(Kind::SessionNotFound, message)
        })?;
        remove_whole(&at)
    }

    /// Removes a session from the disk: its file, the files in the trash with its id, their related files, and its cache.
    /// Succeeds if there is none.
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
        while let Some(at) = self.find_trashed(id, None)? {
            remove_whole(&at)?;
        }
        Ok(())
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
        let mut name = at.name.clone();
        name.push(suffix);
        let related = Location {
            folder: Arc::clone(&at.folder),
            name,
        };
        remove(&related).map_err(failed)?;
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

fn is_number(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

/// The suffixes of the related files of a session file: the originals that migrations kept, the quarantine of repairs,
/// the cold file, and the files of a replica (fleet.md).
pub(super) fn belongings(of: &Location) -> io::Result<Vec<OsString>> {
    let mut found = Vec::new();
    for (name, _) in of.folder.list()? {
        let suffix = name
            .as_encoded_bytes()
            .strip_prefix(of.name.as_encoded_bytes());
        let suffix = suffix.filter(|suffix| is_belonging(suffix));
        found.extend(suffix.and_then(path::from_bytes).map(OsStr::to_owned));
    }
    Ok(found)
}

/// Whether a suffix is one of a related file, such as `.v1.bak`, `.v2.bak.3`, `.quarantine`, `.replica`,
/// `.foreign` or `.cold`.
fn is_belonging(suffix: &[u8]) -> bool {
    let backup = [b".v1.bak".as_slice(), b".v2.bak"]
        .iter()
        .find_map(|backup| suffix.strip_prefix(*backup));
    let number = |rest: &[u8]| rest.strip_prefix(b".").is_some_and(is_number);
    let is_named = [
        b".quarantine".as_slice(),
        b".replica",
        b".foreign",
        b".cold",
    ]
    .contains(&suffix);
    is_named || backup.is_some_and(|rest| rest.is_empty() || number(rest))
}

/// Moves the related files of a session, and then its file, so that after a failure the session is where it was. On
/// failure the related files are moved back.
pub(super) fn relocate(from: &Location, to: &Location, suffixes: &[OsString]) -> io::Result<()> {
    let with = |at: &Location, suffix: &OsStr| {
        let mut name = at.name.clone();
        name.push(suffix);
        Location {
            folder: Arc::clone(&at.folder),
            name,
        }
    };
    // This is checked first, so that related files are not moved for nothing.
    if to.status().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let mut moved: Vec<&OsString> = Vec::new();
    let mut done = Ok(());
    for suffix in suffixes {
        done = move_new(&with(from, suffix), &with(to, suffix));
        if done.is_err() {
            break;
        }
        moved.push(suffix);
    }
    let done = done.and_then(|()| move_new(from, to));
    if done.is_err() {
        for suffix in moved {
            if let Err(error) = move_new(&with(to, suffix), &with(from, suffix)) {
                tracing::error!(%error, "the related files of a session could not be moved back");
            }
        }
    }
    done
}

/// Moves a file or folder to a name that must be free.
fn move_new(from: &Location, to: &Location) -> io::Result<()> {
    match from.folder.rename_new(&from.name, &to.folder, &to.name) {
        // The file is on another file system.
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => match to_folder(from) {
            Some(folder) => copy_folder(from, Arc::new(folder), to),
            None => copy_file(from, to),
        },
        other => other,
    }
}

/// Removes a file, or a folder that has only files.
fn remove(at: &Location) -> io::Result<()> {
    let Some(folder) = to_folder(at) else {
        return at.folder.remove(&at.name);
    };
    for (name, _) in folder.list()? {
        folder.remove(&name)?;
    }
    at.folder.remove_subfolder(&at.name)
}

fn to_folder(at: &Location) -> Option<Folder> {
    at.folder.subfolder(&at.name).ok()
}

/// Copies a folder that has only files, and removes it after the copy is on disk.
fn copy_folder(from: &Location, folder: Arc<Folder>, to: &Location) -> io::Result<()> {
    let copy = Arc::new(to.folder.subfolder_or_create(&to.name)?);
    for (name, _) in folder.list()? {
        let at = |folder: &Arc<Folder>| Location {
            folder: Arc::clone(folder),
            name: name.clone(),
        };
        copy_file(&at(&folder), &at(&copy))?;
    }
    from.folder.remove_subfolder(&from.name)
}

/// Copies a file to another file system, and removes it after the copy is complete, private and on disk. The lock of
/// the file is held, so no cooperating writer can append meanwhile.
fn copy_file(from: &Location, to: &Location) -> io::Result<()> {
    let mut source = from
        .folder
        .file(&from.name, HandleAccess::Read)
        .map_err(|error| io::Error::other(error.message))?;
    match source.try_lock() {
        Ok(()) => {}
        Err(file::TryLockError::WouldBlock) => {
            return Err(io::Error::new(
                io::ErrorKind::ResourceBusy,
                "another process is writing to it: try again",
            ));
        }
        Err(file::TryLockError::Error(error)) if file::is_lock_unsupported(&error) => {}
        Err(file::TryLockError::Error(error)) => return Err(error),
    }
    let copy = Temporary::for_name(&to.folder, &to.name)?;
    let mut copied = 0;
    while copied < file::status_of(&source)?.size {
        copied += io::copy(&mut source, &mut &**copy.file())?;
    }
    copy.file().sync_all()?;
    copy.name_new(to)?;
    to.folder.sync()?;
    if from.status()?.identity == file::status_of(&source)?.identity {
        from.folder.remove(&from.name)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_related_files_are_moved_with_a_session() {
        for suffix in [
            ".v1.bak",
            ".v2.bak",
            ".v1.bak.2",
            ".v2.bak.31",
            ".quarantine",
        ] {
            assert!(is_belonging(suffix.as_bytes()), "{suffix}");
        }
        for suffix in [
            "",
            ".bak",
            ".v1.bak.",
            ".v1.bak.x",
            ".v3.bak",
            ".quarantine.2",
            "~",
        ] {
            assert!(!is_belonging(suffix.as_bytes()), "{suffix}");
        }
    }

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

    /// A copy to a trash on another file system was once made by path, kept the mode 0644, and was not on disk when the
    /// file was removed.
    #[test]
    fn a_copy_is_private_and_whole() {
        use std::os::unix::fs::PermissionsExt;
        let path = tempfile::tempdir().unwrap();
        let folder = Arc::new(Folder::open(path.path()).unwrap());
        let at = |name: &str| Location {
            folder: Arc::clone(&folder),
            name: name.into(),
        };
        std::fs::create_dir(at("q").path()).unwrap();
        for name in ["s", "q/1.damaged"] {
            let path = path.path().join(name);
            std::fs::write(&path, "text").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        }
        copy_file(&at("s"), &at("t")).unwrap();
        copy_folder(&at("q"), Arc::new(to_folder(&at("q")).unwrap()), &at("p")).unwrap();
        for name in ["t", "p/1.damaged"] {
            let path = path.path().join(name);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "text");
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
        assert_eq!(std::fs::read_dir(path.path()).unwrap().count(), 2);

        let held = std::fs::File::open(at("t").path()).unwrap();
        held.lock().unwrap();
        let busy = copy_file(&at("t"), &at("u")).unwrap_err();
        assert_eq!(busy.kind(), io::ErrorKind::ResourceBusy);
        assert!(at("t").status().is_ok() && at("u").status().is_err());
    }
}
