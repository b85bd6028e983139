//! The status of files, and files outside a session directory.

use super::unsupported;
use crate::os::file::{Identity, Status};
use std::fs::{DirBuilder, File, FileType, Metadata, OpenOptions};
use std::io;
use std::os::windows::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use winapi_util::file::information;

/// Opens a link itself, and not the file that it names.
pub(super) const OPEN_REPARSE_POINT: u32 = 0x0020_0000;
/// Lets a folder be opened.
const BACKUP_SEMANTICS: u32 = 0x0200_0000;
/// The file is removed once it is closed, also if the process is killed.
const DELETE_ON_CLOSE: u32 = 0x0400_0000;
/// Seconds from 1601, with which the system's times begin, to 1970.
const EPOCH: i64 = 11_644_473_600;
/// Ticks of a file's time in a second.
const TICKS: u64 = 10_000_000;

/// Seconds and nanoseconds of Unix time.
fn unix_time(ticks: u64) -> (i64, i64) {
    let seconds = i64::try_from(ticks / TICKS).unwrap_or(i64::MAX);
    let nanos = i64::try_from(ticks % TICKS * 100).unwrap_or(0);
    (seconds.saturating_sub(EPOCH), nanos)
}

/// The status of an open file. The last change of its metadata is not known, so that of its content is in its place.
pub fn status_of(file: &File) -> io::Result<Status> {
    let found = information(file)?;
    let modified = unix_time(found.last_write_time().unwrap_or(0));
    Ok(Status {
        identity: Identity {
            device: found.volume_serial_number(),
            inode: found.file_index(),
        },
        size: found.file_size(),
        modified,
        changed: modified,
    })
}

/// The last change of an open file's content: seconds and nanoseconds of Unix time.
pub fn changed(file: &File) -> io::Result<(i64, i64)> {
    Ok(status_of(file)?.changed)
}

/// The status of a file whose metadata was read; it has no identity.
pub fn status_of_metadata(metadata: &Metadata) -> Status {
    let modified = unix_time(metadata.last_write_time());
    Status {
        identity: Identity {
            device: 0,
            inode: 0,
        },
        size: metadata.len(),
        modified,
        changed: modified,
    }
}

/// Opens a file or a folder by name to look at it, without following a link.
pub(super) fn open_itself(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let flags = OPEN_REPARSE_POINT | BACKUP_SEMANTICS;
    options.read(true).custom_flags(flags).open(path)
}

/// The identity of a file, without following links; `None` if there is none.
pub fn identity_of(path: &Path) -> Option<Identity> {
    let file = open_itself(path).ok()?;
    Some(status_of(&file).ok()?.identity)
}

/// Whether an open file was removed.
pub fn is_removed(file: &File) -> io::Result<bool> {
    Ok(information(file)?.number_of_links() == 0)
}

/// Fails: access lists are not read.
pub fn is_private(_file: &File) -> io::Result<bool> {
    Err(unsupported("tell who may change a file"))
}

/// Fails: access lists are not read.
pub fn is_secret(_file: &File) -> io::Result<bool> {
    Err(unsupported("tell who may read a file"))
}

/// Fails: access lists are not read.
pub fn owner_and_mode(_metadata: &Metadata) -> io::Result<(u32, u32)> {
    Err(unsupported("tell who owns a file"))
}

/// Fails: access lists are not written.
pub fn make_private(_folder: &Path) -> io::Result<()> {
    Err(unsupported("make a folder private"))
}

pub fn is_pipe(_kind: FileType) -> bool {
    false
}

/// Opens a file to read it; of a symbolic link, the link itself, which is no regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .custom_flags(OPEN_REPARSE_POINT)
        .open(path)
}

/// A temporary file in the user's folder, which the system removes with the process.
pub fn unnamed_file() -> io::Result<File> {
    let name = format!("treelined-{}", uuid::Uuid::new_v4().simple());
    let path = std::env::temp_dir().join(name);
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create_new(true);
    options.custom_flags(DELETE_ON_CLOSE).open(&path)
}

/// Makes a folder in one that exists. It has the rights of that one.
pub fn make_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().create(path)
}

/// The offset itself: the holes of a file are not asked for.
pub fn behind_hole(_file: &File, offset: u64) -> u64 {
    offset
}

/// Whether an error of a lock means that locks are not supported.
pub fn is_lock_unsupported(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported
}
