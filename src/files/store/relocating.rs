//! Moves a session file together with its related files (session-file.md §5.6).
//!
//! The lock of the session is held, so no other process replaces one of the files meanwhile. The related files get
//! their new names before the session file is moved, and lose their old names after that. So the session file has its
//! related files beside it even if the process dies at any call or the power is cut.

use super::file_names::is_number;
use crate::log::append::LOCK_TIMEOUT;
use crate::os::file::{self, File, Folder, Location, TryLockError};
use crate::os::handle::HandleAccess;
use crate::os::temporary::Temporary;
use crate::os::{path, time};
use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use treelined_core::error::{Error, Result};

/// The pause between two attempts to take the lock.
const PAUSE: Duration = Duration::from_millis(5);

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

/// Whether this is the suffix of a related file, such as `.v1.bak`, `.v2.bak.3`, `.quarantine`, `.replica`, `.foreign`
/// or `.cold`.
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

/// The related file of a session with this suffix.
pub(super) fn related(of: &Location, suffix: &OsStr) -> Location {
    let mut name = of.name.clone();
    name.push(suffix);
    Location {
        folder: Arc::clone(&of.folder),
        name,
    }
}

/// Moves a session file and its related files, and syncs both folders. On failure every file keeps its old path, unless
/// only the sync has failed. Fails with `AlreadyExists` if a file has one of the new names, and with `WouldBlock` if
/// another process holds the lock of the session. A caller that holds the lock passes the locked file.
pub(super) fn relocate(from: &Location, to: &Location, held: Option<&File>) -> io::Result<()> {
    // This is checked first, so that related files are not moved for nothing.
    if to.status().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let _lock = match held {
        Some(_) => None,
        None => locked(from)?,
    };
    let suffixes = belongings(from)?;
    let mut moved = Vec::new();
    let mut done = Ok(());
    for suffix in &suffixes {
        let (from, to) = (related(from, suffix), related(to, suffix));
        done = name_also(&from, &to);
        if done.is_err() {
            break;
        }
        moved.push((from, to));
    }
    if done.is_ok() && !moved.is_empty() {
        done = to.folder.sync();
    }
    let done = done.and_then(|()| move_new(from, to));
    if let Err(error) = done {
        for (from, to) in moved {
            if let Err(error) = take_name_back(&from, &to) {
                tracing::error!(%error, "the related files of a session could not be moved back");
            }
        }
        return Err(error);
    }
    to.folder.sync()?;
    from.folder.sync()?;
    // The moved session is complete even if this fails.
    if let Err(error) = remove_old(from, &moved) {
        tracing::warn!(%error, "a related file of a session stays at its old place too");
    }
    Ok(())
}

/// Takes the lock of a session file that may be replaced meanwhile; `None` on a file system without locks. The lock is
/// released on drop.
fn locked(at: &Location) -> io::Result<Option<File>> {
    let began = time::now();
    loop {
        let before = at.status()?.identity;
        let file = open(at)?;
        let lock = match file.try_lock() {
            Ok(()) => Some(file),
            Err(TryLockError::Error(error)) if file::is_lock_unsupported(&error) => {
                return Ok(None);
            }
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(file) = lock
            && before == file::status_of(&file)?.identity
            && before == at.status()?.identity
        {
            return Ok(Some(file));
        }
        if time::since(began) >= LOCK_TIMEOUT {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        time::sleep(PAUSE);
    }
}

fn open(at: &Location) -> io::Result<File> {
    let file = at.folder.file(&at.name, HandleAccess::Read);
    file.map_err(|error| io::Error::other(error.message))
}

/// Gives a related file its new name in addition to its old name. A folder is moved, because it can have only one name.
fn name_also(from: &Location, to: &Location) -> io::Result<()> {
    if to_folder(from).is_some() {
        return move_new(from, to);
    }
    match from.folder.link(&from.name, &to.folder, &to.name) {
        // A killed move may have given the file this name already.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match is_same(from, to)? {
            true => Ok(()),
            false => Err(error),
        },
        // The new name is on another file system, or the file system has no hard links.
        Err(error) if error.kind() != io::ErrorKind::NotFound => copy_file(from, to),
        linked => linked,
    }
}

/// Undoes [`name_also`].
fn take_name_back(from: &Location, to: &Location) -> io::Result<()> {
    match to_folder(to) {
        Some(_) => move_new(to, from),
        None => to.folder.remove(&to.name),
    }
}

/// Removes the old names of the related files. A folder was moved, so it has no old name.
fn remove_old(of: &Location, moved: &[(Location, Location)]) -> io::Result<()> {
    for (from, _) in moved {
        match of.folder.remove(&from.name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    match moved.is_empty() {
        true => Ok(()),
        false => of.folder.sync(),
    }
}

/// Removes the names at `old` that a killed move of the session has left.
pub(super) fn remove_left(old: &Location, at: &Location) -> Result<()> {
    let failed = |error: io::Error| Error::io(&format!("remove {}", old.path().display()), &error);
    if old.status().is_ok() {
        return Ok(());
    }
    for suffix in belongings(old).map_err(failed)? {
        let (left, kept) = (related(old, &suffix), related(at, &suffix));
        if is_same(&left, &kept).unwrap_or(false) {
            left.folder.remove(&left.name).map_err(failed)?;
        }
    }
    Ok(())
}

fn is_same(one: &Location, other: &Location) -> io::Result<bool> {
    Ok(one.status()?.identity == other.status()?.identity)
}

/// Moves a file or folder to a name that must be free.
fn move_new(from: &Location, to: &Location) -> io::Result<()> {
    match from.folder.rename_new(&from.name, &to.folder, &to.name) {
        // The file is on another file system.
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => match to_folder(from) {
            Some(folder) => copy_folder(from, Arc::new(folder), to),
            None => {
                copy_file(from, to)?;
                from.folder.remove(&from.name)
            }
        },
        other => other,
    }
}

/// Removes a file, or a folder that has only files.
pub(super) fn remove(at: &Location) -> io::Result<()> {
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
        folder.remove(&name)?;
    }
    from.folder.remove_subfolder(&from.name)
}

/// Copies a file. The copy is complete, private and on disk when it gets its name.
fn copy_file(from: &Location, to: &Location) -> io::Result<()> {
    let mut source = open(from)?;
    let copy = Temporary::for_name(&to.folder, &to.name)?;
    let mut copied = 0;
    while copied < file::status_of(&source)?.size {
        copied += io::copy(&mut source, &mut &**copy.file())?;
    }
    copy.file().sync_all()?;
    copy.name_new(to)?;
    to.folder.sync()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

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

    /// A folder with the file `s`.
    fn folder() -> (tempfile::TempDir, impl Fn(&str) -> Location) {
        let path = tempfile::tempdir().unwrap();
        let folder = Arc::new(Folder::open(path.path()).unwrap());
        fs::write(path.path().join("s"), "text").unwrap();
        let at = move |name: &str| Location {
            folder: Arc::clone(&folder),
            name: name.into(),
        };
        (path, at)
    }

    /// A copy to a trash on another file system was once made by path, kept the mode 0644, and was not on disk when the
    /// file was removed.
    #[test]
    fn a_copy_is_private_and_whole() {
        use std::os::unix::fs::PermissionsExt;
        let (path, at) = folder();
        fs::create_dir(at("q").path()).unwrap();
        fs::write(at("q/1.damaged").path(), "text").unwrap();
        for name in ["s", "q/1.damaged"] {
            fs::set_permissions(at(name).path(), fs::Permissions::from_mode(0o644)).unwrap();
        }
        copy_file(&at("s"), &at("t")).unwrap();
        copy_folder(&at("q"), Arc::new(to_folder(&at("q")).unwrap()), &at("p")).unwrap();
        for name in ["t", "p/1.damaged"] {
            let path = at(name).path();
            assert_eq!(fs::read_to_string(&path).unwrap(), "text");
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
        assert_eq!(fs::read_dir(path.path()).unwrap().count(), 3);
    }

    /// A session was once moved to the trash while another process moved its branches. The new session file then went
    /// to the trash without its cold file.
    #[test]
    fn a_session_whose_lock_is_held_stays() {
        let (_path, at) = folder();
        let held = fs::File::open(at("s").path()).unwrap();
        held.lock().unwrap();
        let busy = relocate(&at("s"), &at("t"), None).unwrap_err();
        assert_eq!(busy.kind(), io::ErrorKind::WouldBlock);
        assert!(at("s").status().is_ok() && at("t").status().is_err());
        relocate(&at("s"), &at("t"), Some(&held)).unwrap();
        relocate(&at("t"), &at("s"), Some(&held)).unwrap();
        drop(held);
        relocate(&at("s"), &at("t"), None).unwrap();
        assert!(at("s").status().is_err() && at("t").status().is_ok());
    }

    /// A move that was killed has left both names of a related file.
    #[test]
    fn a_move_goes_on_where_a_killed_one_ended() {
        let (path, at) = folder();
        fs::write(at("s.cold").path(), "branch").unwrap();
        fs::hard_link(at("s.cold").path(), at("t.cold").path()).unwrap();
        relocate(&at("s"), &at("t"), None).unwrap();
        assert_eq!(fs::read_dir(path.path()).unwrap().count(), 2);

        fs::hard_link(at("t.cold").path(), at("s.cold").path()).unwrap();
        fs::write(at("s.replica").path(), "of another session").unwrap();
        remove_left(&at("s"), &at("t")).unwrap();
        assert!(at("s.cold").status().is_err() && at("s.replica").status().is_ok());
        assert_eq!(fs::read_to_string(at("t.cold").path()).unwrap(), "branch");
    }

    #[test]
    fn a_related_file_of_another_session_stops_the_move() {
        let (path, at) = folder();
        fs::write(at("s.cold").path(), "branch").unwrap();
        fs::create_dir(at("s.quarantine").path()).unwrap();
        fs::write(at("t.cold").path(), "other").unwrap();
        let taken = relocate(&at("s"), &at("t"), None).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_dir(path.path()).unwrap().count(), 4);
        for (name, text) in [("s.cold", "branch"), ("t.cold", "other")] {
            assert_eq!(fs::read_to_string(at(name).path()).unwrap(), text);
        }
        assert!(at("s.quarantine").path().is_dir());
    }
}
