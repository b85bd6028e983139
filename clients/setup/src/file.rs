//! Reads and writes the files of other programs. A file must be a regular file that this user may write; it is written
//! completely or not at all.

use crate::refusal::Refusal;
use rustix::fs::{Access, CWD, Gid, RenameFlags, Uid, access, renameat_with};
use rustix::io::Errno;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The most bytes of a file that is edited.
const MAX_BYTES: u64 = 64 << 20;

/// The file at a path; `None` if there is none. Refuses links, files with several names, and files that this user may
/// not write.
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

/// Checks that a file can be made below the nearest folder that exists.
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

/// Makes the missing folders above a path, with access for this user only. Adds them to `made`, outermost first.
pub(crate) fn make_folders(path: &Path, made: &mut Vec<PathBuf>) -> io::Result<()> {
    let missing = path.ancestors().skip(1).take_while(|above| !above.exists());
    let missing: Vec<&Path> = missing.collect();
    for folder in missing.into_iter().rev() {
        DirBuilder::new().mode(0o700).create(folder)?;
        made.push(folder.to_owned());
    }
    Ok(())
}

/// Replaces a file that still has the content `before`, and keeps its mode and owner. If `before` is `None`, makes the
/// file, with access for this user only.
pub(crate) fn write(path: &Path, before: Option<&[u8]>, new: &[u8]) -> Result<(), Refusal> {
    let beside = beside(path);
    let written = write_beside(&beside, before.map(|_| path), new);
    let named = written
        .and_then(|()| unchanged(path, before))
        .and_then(|()| match before {
            Some(before) => replace(path, &beside, before),
            None => renameat_with(CWD, &beside, CWD, path, RenameFlags::NOREPLACE)
                .map_err(|error| failed(&error.into())),
        });
    // The file `beside` is now our new text or the replaced file. The file stays if it has the edit of another program
    // and could not be moved back to `path`.
    if named.is_ok() || unchanged(&beside, Some(new)).is_ok() {
        let _gone = fs::remove_file(&beside);
    }
    named?;
    sync_folder(path);
    Ok(())
}

fn write_beside(beside: &Path, old: Option<&Path>, new: &[u8]) -> Result<(), Refusal> {
    let old = old.and_then(|path| fs::symlink_metadata(path).ok());
    let opened = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(beside);
    let mut file = opened.map_err(|error| failed(&error))?;
    file.write_all(new).map_err(|error| failed(&error))?;
    if let Some(old) = &old {
        keep_owner(&file, old)?;
    }
    file.sync_all().map_err(|error| failed(&error))
}

/// Replaces a file that has the content `before` with the file `beside`. If another program has changed the file since
/// it was read, the changed file is put back.
fn replace(path: &Path, beside: &Path, before: &[u8]) -> Result<(), Refusal> {
    match renameat_with(CWD, beside, CWD, path, RenameFlags::EXCHANGE) {
        Ok(()) => {}
        // The file system cannot exchange names.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            return fs::rename(beside, path).map_err(|error| failed(&error));
        }
        Err(error) => return Err(failed(&error.into())),
    }
    unchanged(beside, Some(before)).map_err(|refusal| {
        match renameat_with(CWD, beside, CWD, path, RenameFlags::EXCHANGE) {
            Ok(()) => refusal,
            Err(_) => kept_beside(beside),
        }
    })
}

fn kept_beside(beside: &Path) -> Refusal {
    let beside = beside.display();
    Refusal::new(format!(
        "it has changed in the meantime; the change is in {beside}"
    ))
}

/// Fails if a file no longer has the content that was shown to the user.
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
    let beside = beside(path);
    take_away(path, &beside, before)?;
    fs::remove_file(&beside).map_err(|error| failed(&error))?;
    sync_folder(path);
    Ok(())
}

/// Renames a file with the content `before` to `beside`. If another program has changed the file since it was read, the
/// changed file is put back.
fn take_away(path: &Path, beside: &Path, before: &[u8]) -> Result<(), Refusal> {
    let rename = |from: &Path, to: &Path| {
        let renamed = renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE);
        match renamed {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => fs::rename(from, to),
            other => other.map_err(Into::into),
        }
    };
    rename(path, beside).map_err(|error| failed(&error))?;
    unchanged(beside, Some(before)).map_err(|refusal| match rename(beside, path) {
        Ok(()) => refusal,
        Err(_) => kept_beside(beside),
    })
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

/// Syncs a folder. An error is ignored: if a crash loses the name of a file, the next setup writes the file again.
fn sync_folder(path: &Path) {
    let folder = path.parent().map(File::open);
    let _synced = folder.and_then(Result::ok).map(|folder| folder.sync_all());
}

fn failed(error: &io::Error) -> Refusal {
    Refusal::new(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An edit between the last check and the rename was once lost.
    #[test]
    fn an_edit_before_the_rename_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (path, beside) = (folder.path().join("a"), folder.path().join("b"));
        for before in ["read", "edited"] {
            fs::write(&path, "edited").unwrap();
            fs::write(&beside, "new").unwrap();
            let replaced = replace(&path, &beside, before.as_bytes());
            assert_eq!(replaced.is_ok(), before == "edited", "{replaced:?}");
            let expected = if before == "edited" { "new" } else { "edited" };
            assert_eq!(fs::read_to_string(&path).unwrap(), expected);
        }
        fs::remove_file(&beside).unwrap();
        assert!(take_away(&path, &beside, b"read").is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(take_away(&path, &beside, b"new").is_ok());
        assert!(!path.exists());
    }

    #[test]
    fn what_is_new_is_for_this_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/c");
        let mut made = Vec::new();
        make_folders(&path, &mut made).unwrap();
        write(&path, None, b"x").unwrap();
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(made, [folder.path().join("a"), folder.path().join("a/b")]);
        assert!(made.iter().all(|folder| mode(folder) == 0o700));
        assert_eq!(fs::read_dir(folder.path().join("a/b")).unwrap().count(), 1);
    }
}
