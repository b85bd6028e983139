//! Reads and writes the files of others: only regular ones that this user may write, and whole or not at all.

use crate::refusal::Refusal;
use rustix::fs::{Access, CWD, Gid, RenameFlags, Uid, access, renameat_with};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The most bytes of a file that is edited.
const MAX_BYTES: u64 = 64 << 20;

/// What is at a path; `None` if nothing is. Refuses links, files with several names, and what may not be written.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, Refusal> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            check_folder(path)?;
            return Ok(None);
        }
        Err(error) => return Err(failed(&error)),
    };
    check(&metadata)?;
    access(path, Access::WRITE_OK).map_err(|_| Refusal::new("it may not be written"))?;
    check_folder(path)?;
    fs::read(path).map(Some).map_err(|error| failed(&error))
}

fn check(metadata: &Metadata) -> Result<(), Refusal> {
    let reason = match () {
        () if metadata.file_type().is_symlink() => "it is a link to another place",
        () if !metadata.is_file() => "it is not a regular file",
        () if metadata.nlink() > 1 => "it has several names",
        () if metadata.len() > MAX_BYTES => "it is larger than 64 MiB",
        () if metadata.permissions().mode() & 0o222 == 0 => "it may not be written",
        () => return Ok(()),
    };
    Err(Refusal::new(reason))
}

/// Whether a file can be made in the nearest folder that exists.
fn check_folder(path: &Path) -> Result<(), Refusal> {
    let folder = path.ancestors().skip(1).find(|above| above.exists());
    let folder = folder.ok_or_else(|| Refusal::new("it has no folder"))?;
    let may_write = folder.is_dir() && access(folder, Access::WRITE_OK).is_ok();
    match may_write {
        true => Ok(()),
        false => Err(Refusal::new(format!(
            "{} may not be written",
            folder.display()
        ))),
    }
}

/// Makes the folders above a path. Returns those that are new, outermost first.
pub(crate) fn make_folders(path: &Path) -> io::Result<Vec<PathBuf>> {
    let missing = path.ancestors().skip(1).take_while(|above| !above.exists());
    let mut missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
    missing.reverse();
    for folder in &missing {
        fs::create_dir(folder)?;
    }
    Ok(missing)
}

/// Replaces a file that still has the content `before`, with its mode and owner; makes it if `before` is `None`.
pub(crate) fn write(path: &Path, before: Option<&[u8]>, new: &[u8]) -> Result<(), Refusal> {
    let beside = beside(path);
    let written = write_beside(path, &beside, before, new);
    if written.is_err() {
        let _gone = fs::remove_file(&beside);
    }
    written
}

fn write_beside(
    path: &Path,
    beside: &Path,
    before: Option<&[u8]>,
    new: &[u8],
) -> Result<(), Refusal> {
    let old = before.and_then(|_| fs::symlink_metadata(path).ok());
    // A new file is as other files of this user.
    let mode = if old.is_some() { 0o600 } else { 0o666 };
    let opened = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(beside);
    let mut file = opened.map_err(|error| failed(&error))?;
    file.write_all(new).map_err(|error| failed(&error))?;
    if let Some(old) = &old {
        keep_owner(&file, old)?;
    }
    file.sync_all().map_err(|error| failed(&error))?;
    unchanged(path, before)?;
    let named = match before {
        Some(_) => fs::rename(beside, path),
        None => renameat_with(CWD, beside, CWD, path, RenameFlags::NOREPLACE).map_err(Into::into),
    };
    named.map_err(|error| failed(&error))?;
    sync_folder(path);
    Ok(())
}

/// Fails if a file is not as it was shown.
pub(crate) fn unchanged(path: &Path, before: Option<&[u8]>) -> Result<(), Refusal> {
    match read(path)?.as_deref() == before {
        true => Ok(()),
        false => Err(Refusal::new(
            "it has changed in the meantime; run the command again",
        )),
    }
}

/// Removes a file that still has the content `before`.
pub(crate) fn remove(path: &Path, before: &[u8]) -> Result<(), Refusal> {
    unchanged(path, Some(before))?;
    fs::remove_file(path).map_err(|error| failed(&error))?;
    sync_folder(path);
    Ok(())
}

fn keep_owner(file: &File, old: &Metadata) -> Result<(), Refusal> {
    let new = file.metadata().map_err(|error| failed(&error))?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        let (user, group) = (Uid::from_raw(old.uid()), Gid::from_raw(old.gid()));
        let kept = rustix::fs::fchown(file, Some(user), Some(group));
        kept.map_err(|_| Refusal::new("its owner cannot be kept"))?;
    }
    let mode = fs::Permissions::from_mode(old.permissions().mode() & 0o7777);
    file.set_permissions(mode).map_err(|error| failed(&error))
}

fn beside(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.treelined-setup", std::process::id()));
    path.with_file_name(name)
}

/// A name that a crash takes away is written by the next setup.
fn sync_folder(path: &Path) {
    let folder = path.parent().map(File::open);
    let _synced = folder.and_then(Result::ok).map(|folder| folder.sync_all());
}

fn failed(error: &io::Error) -> Refusal {
    Refusal::new(error.to_string())
}
