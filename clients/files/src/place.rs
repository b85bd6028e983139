//! Reads and replaces files of a root. It does not follow symbolic links, and it does not lose bytes that another
//! program writes meanwhile (files.md §5). The stage is a folder in the root through which files are exchanged.

use crate::changes::{Kind, Side};
use crate::foreign::is_repository;
use crate::name::Name;
use anyhow::Context;
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, RawMode, RenameFlags, Stat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The beginning of the stage's name.
pub const STAGE: &str = ".treelined-restore-";
/// The end of the stage's name while new files are written to it.
pub const UNFILLED: &str = ".new";

pub const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// The permission bits of a mode, for `chmod`.
#[allow(clippy::useless_conversion, reason = "it has 16 bits on macOS")]
pub fn mode_of(stat: &Stat) -> u32 {
    u32::from(stat.st_mode) & 0o777
}

/// A mode with these bits.
#[allow(
    clippy::unnecessary_fallible_conversions,
    reason = "it has 16 bits on macOS"
)]
pub fn mode(bits: u32) -> Mode {
    RawMode::try_from(bits & 0o777).map_or(Mode::empty(), Mode::from_raw_mode)
}

/// The state of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    Missing,
    Saved(Side),
    Folder,
    /// A socket, a device, or a file that changed while it was read.
    Other,
}

impl Found {
    pub fn is(&self, side: Option<&Side>) -> bool {
        match (self, side) {
            (Found::Missing, None) => true,
            (Found::Saved(found), Some(side)) => found == side,
            _ => false,
        }
    }
}

/// An opened root with its stage.
#[derive(Debug)]
pub struct Place {
    root: OwnedFd,
    stage: OwnedFd,
    stage_name: OsString,
}

impl Place {
    /// Opens the root, and makes a stage for the restore `id`. Until [`Place::filled`], the stage has no files of the
    /// user, and its name says so.
    pub fn open(root: &Path, id: &str) -> anyhow::Result<Place> {
        let failed = || format!("open {}", root.display());
        let root = fs::open(root, FOLDER, Mode::empty()).with_context(failed)?;
        let stage_name = OsString::from(format!("{STAGE}{id}{UNFILLED}"));
        fs::mkdirat(&root, &stage_name, Mode::RWXU).with_context(failed)?;
        let stage = fs::openat(&root, &stage_name, FOLDER, Mode::empty()).with_context(failed)?;
        Ok(Place {
            root,
            stage,
            stage_name,
        })
    }

    /// Renames the stage to say that from now on it may have files of the user.
    pub fn filled(&mut self) -> io::Result<()> {
        let name = self.stage_name.as_bytes();
        let name = name.strip_suffix(UNFILLED.as_bytes()).unwrap_or(name);
        let name = OsStr::from_bytes(name).to_owned();
        fs::renameat(&self.root, &self.stage_name, &self.root, &name)?;
        self.stage_name = name;
        Ok(())
    }

    pub fn stage(&self) -> BorrowedFd<'_> {
        self.stage.as_fd()
    }

    /// Removes the stage. Fails if it still has files.
    pub fn close(self) -> io::Result<()> {
        fs::unlinkat(&self.root, &self.stage_name, AtFlags::REMOVEDIR)?;
        Ok(())
    }

    /// Opens the folder of a file. Returns it with the name of the file in it. No part of the path may be a symbolic
    /// link. Missing folders are made if `makes` is set.
    fn parent<'n>(&self, name: &'n Name, makes: bool) -> io::Result<(OwnedFd, &'n OsStr)> {
        parent(&self.root, name, makes)
    }

    /// The status of a file, if it exists and is regular.
    pub fn stat(&self, name: &Name) -> Option<Stat> {
        let (folder, last) = self.parent(name, false).ok()?;
        let stat = fs::statat(&folder, last, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        (FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile).then_some(stat)
    }

    /// Moves a file to the stage, if its content is `old`. If the content differs, returns the reason as a text. `step`
    /// is called before the move.
    pub fn take_away(
        &self,
        name: &Name,
        old: &Side,
        staged: &str,
        step: &mut dyn FnMut(),
    ) -> Result<(), String> {
        let (folder, last) = self
            .parent(name, false)
            .map_err(|error| error.to_string())?;
        check(folder.as_fd(), last, Some(old))?;
        step();
        move_new(folder.as_fd(), last, self.stage(), staged.as_ref())?;
        let why = match found(self.stage(), staged.as_ref()) {
            Ok(found) if found.is(Some(old)) => return Ok(()),
            Ok(_) => CHANGED.to_owned(),
            Err(error) => error.to_string(),
        };
        // Another program has written the file between the check and the move, so the file is moved back.
        match move_new(self.stage(), staged.as_ref(), folder.as_fd(), last) {
            Ok(()) => Err(why),
            Err(error) => Err(self.stays(staged, &error)),
        }
    }

    /// Exchanges the staged file with the file at `name`, if the file at `name` has the content `old`. Afterwards the
    /// old file is in the stage, with the name `staged` or `aside`. If the content differs, returns the reason as a
    /// text. `step` is called before the exchange.
    pub fn put(
        &self,
        name: &Name,
        old: Option<&Side>,
        new: &Side,
        (staged, aside): (&str, &str),
        step: &mut dyn FnMut(),
    ) -> Result<(), String> {
        let (folder, last) = self.parent(name, true).map_err(|error| error.to_string())?;
        if old.is_none() && is_without_files(folder.as_fd(), last) {
            step();
            remove_folders(folder.as_fd(), last);
        }
        check(folder.as_fd(), last, old)?;
        step();
        let Some(old) = old else {
            return move_new(self.stage(), staged.as_ref(), folder.as_fd(), last);
        };
        let exchange = RenameFlags::EXCHANGE;
        match fs::renameat_with(&self.stage, staged, &folder, last, exchange) {
            Ok(()) => {}
            // This file system cannot exchange two names, so the old file is moved to the stage first.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                self.take_away(name, old, aside, step)?;
                return move_new(self.stage(), staged.as_ref(), folder.as_fd(), last);
            }
            Err(error) => return Err(error.to_string()),
        }
        match found(self.stage(), staged.as_ref()) {
            Ok(found) if found.is(Some(old)) => return Ok(()),
            _ => {}
        }
        // Another program has written the file between the check and the exchange, so the files are exchanged back.
        let back = fs::renameat_with(&self.stage, staged, &folder, last, exchange);
        let ours = found(self.stage(), staged.as_ref());
        match (back, ours) {
            (Ok(()), Ok(ours)) if ours.is(Some(new)) => Err(CHANGED.to_owned()),
            _ => Err(self.stays(staged, "it changes again and again")),
        }
    }

    fn stays(&self, staged: &str, why: &str) -> String {
        let stage = self.stage_name.to_string_lossy();
        format!("{why}; its bytes are in {stage}/{staged}")
    }

    /// Removes the empty folders above a removed file. Stops at the first folder for which `keeps` is true.
    pub fn remove_empty(&self, name: &Name, keeps: impl Fn(&[u8]) -> bool) {
        let mut path = name.0.as_slice();
        while let Some(end) = path.iter().rposition(|byte| *byte == b'/') {
            path = path.get(..end).unwrap_or_default();
            let folder = Name(path.to_owned());
            if keeps(path) {
                return;
            }
            let Ok((above, last)) = self.parent(&folder, false) else {
                return;
            };
            if fs::unlinkat(&above, last, AtFlags::REMOVEDIR).is_err() {
                return;
            }
        }
    }

    /// Syncs the folder of a file.
    pub fn sync(&self, name: &Name) {
        if let Ok((folder, _)) = self.parent(name, false) {
            let _not_kept = fs::fsync(folder);
        }
    }

    /// Removes a staged file if its content is `content`. Returns whether it was removed.
    pub fn drop_staged(&self, staged: &str, content: &Side) -> bool {
        match found(self.stage(), staged.as_ref()) {
            Ok(Found::Missing) => true,
            Ok(found) if found.is(Some(content)) => {
                fs::unlinkat(&self.stage, staged, AtFlags::empty()).is_ok()
            }
            _ => false,
        }
    }

    /// Removes the staged files that were not used, and the stage.
    pub fn discard(self, staged: impl Iterator<Item = String>) {
        for name in staged {
            let _missing = fs::unlinkat(&self.stage, name.as_str(), AtFlags::empty());
        }
        let _not_empty = self.close();
    }
}

/// Opens the folder of a file below `root`, like [`Place::parent`].
fn parent<'n>(root: &OwnedFd, name: &'n Name, makes: bool) -> io::Result<(OwnedFd, &'n OsStr)> {
    if !name.is_safe() {
        return Err(io::Error::other("its name leads elsewhere"));
    }
    let mut parts = name.0.split(|byte| *byte == b'/').map(OsStr::from_bytes);
    let last = parts.next_back().unwrap_or_default();
    let mut folder = root.try_clone()?;
    for part in parts {
        let opened = fs::openat(&folder, part, FOLDER, Mode::empty());
        folder = match opened {
            Err(Errno::NOENT) if makes => {
                match fs::mkdirat(&folder, part, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                fs::openat(&folder, part, FOLDER, Mode::empty())?
            }
            Err(Errno::NOTDIR | Errno::LOOP) => {
                return Err(io::Error::new(
                    io::ErrorKind::NotADirectory,
                    "a part of its path is not a folder",
                ));
            }
            opened => opened?,
        };
        if is_repository(&folder) {
            return Err(io::Error::other("it is in a repository"));
        }
    }
    Ok((folder, last))
}

/// Reads the state of a path below a root. No part of the path may be a symbolic link.
pub fn look(root: &Path, name: &Name) -> io::Result<Found> {
    let root = fs::open(root, FOLDER, Mode::empty())?;
    match parent(&root, name, false) {
        Ok((folder, last)) => found(folder.as_fd(), last),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Found::Missing),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(Found::Missing),
        Err(error) => Err(error),
    }
}

/// Opens a folder and lists its names; `None` if the path is not a folder.
fn names_in(folder: BorrowedFd<'_>, name: &OsStr) -> Option<(OwnedFd, Vec<OsString>)> {
    let opened = fs::openat(folder, name, FOLDER, Mode::empty()).ok()?;
    let mut names = Vec::new();
    for entry in fs::Dir::read_from(&opened).ok()? {
        let entry = entry.ok()?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            names.push(OsStr::from_bytes(name).to_owned());
        }
    }
    Some((opened, names))
}

/// Whether there are only folders below this folder, and no files. Such folders are not saved.
fn is_without_files(folder: BorrowedFd<'_>, name: &OsStr) -> bool {
    names_in(folder, name).is_some_and(|(opened, names)| {
        let mut names = names.iter();
        names.all(|name| is_without_files(opened.as_fd(), name))
    })
}

/// Removes a folder and the folders below it. A folder that has got a file meanwhile stays.
fn remove_folders(folder: BorrowedFd<'_>, name: &OsStr) {
    if let Some((opened, names)) = names_in(folder, name) {
        for name in &names {
            remove_folders(opened.as_fd(), name);
        }
        let _not_empty = fs::unlinkat(folder, name, AtFlags::REMOVEDIR);
    }
}

const CHANGED: &str = "it has changed meanwhile";

fn check(folder: BorrowedFd<'_>, name: &OsStr, side: Option<&Side>) -> Result<(), String> {
    match found(folder, name) {
        Ok(found) if found.is(side) => Ok(()),
        Ok(Found::Folder) => Err("a folder with files that are not saved is there".to_owned()),
        Ok(Found::Missing) => Err("it was removed meanwhile".to_owned()),
        Ok(_) if side.is_none() => Err("a file that is not saved is there".to_owned()),
        Ok(_) => Err(CHANGED.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Renames a file. Fails if the new name is taken.
fn move_new(
    from: BorrowedFd<'_>,
    name: &OsStr,
    to: BorrowedFd<'_>,
    new: &OsStr,
) -> Result<(), String> {
    match fs::renameat_with(from, name, to, new, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => Err("another program has made a file there meanwhile".to_owned()),
        Err(Errno::XDEV) => Err("it is on another file system than the root".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Reads the state of a name in a folder.
pub fn found(folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<Found> {
    let stat = match fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Found::Missing),
        stat => stat?,
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Ok(Found::Folder),
        FileType::Symlink => {
            let target = fs::readlinkat(folder, name, Vec::new())?;
            let id = id(target.to_bytes())?;
            Ok(Found::Saved(Side {
                kind: Kind::Link,
                id,
            }))
        }
        FileType::RegularFile => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = File::from(fs::openat(folder, name, flags, Mode::empty())?);
            let metadata = file.metadata()?;
            let size = metadata.len();
            let kind = match metadata_mode(&metadata) & 0o100 {
                0 => Kind::File,
                _ => Kind::Program,
            };
            if !metadata.is_file() {
                return Ok(Found::Other);
            }
            Ok(match id_of(file, size)? {
                Some(id) => Found::Saved(Side { kind, id }),
                None => Found::Other,
            })
        }
        _ => Ok(Found::Other),
    }
}

fn metadata_mode(metadata: &std::fs::Metadata) -> u32 {
    std::os::unix::fs::MetadataExt::mode(metadata)
}

fn id(bytes: &[u8]) -> io::Result<String> {
    let size = bytes.len() as u64;
    id_of(bytes, size)?.ok_or_else(|| io::Error::other("a link changes while it is read"))
}

/// The hash that git gives to these bytes; `None` if there are more or fewer than `size`.
pub fn id_of(reader: impl Read, size: u64) -> io::Result<Option<String>> {
    let mut hash = Sha256::new();
    hash.update(format!("blob {size}\0"));
    let mut reader = reader.take(size.saturating_add(1));
    if io::copy(&mut reader, &mut Hashing(&mut hash))? != size {
        return Ok(None);
    }
    Ok(Some(
        hash.finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
    ))
}

struct Hashing<'h>(&'h mut Sha256);

impl io::Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
