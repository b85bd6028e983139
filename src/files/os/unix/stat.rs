//! The status of files, and operations on files outside of a session directory.

use super::calls::{AsFd, File, fs};
use crate::os::status::{Identity, Status};
use rustix::fs::{OFlags, SeekFrom};
use rustix::io::Errno;
use std::fs::{DirBuilder, FileType, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Converts a number of `stat`, whose type differs between platforms.
fn signed(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// Like [`signed`], for numbers that are never negative.
fn unsigned(number: impl TryInto<u64>) -> u64 {
    number.try_into().unwrap_or(u64::MAX)
}

/// The time of the last change of content or metadata: seconds and nanoseconds of Unix time.
pub(super) fn changed_of(stat: &fs::Stat) -> (i64, i64) {
    (signed(stat.st_ctime), signed(stat.st_ctime_nsec))
}

pub(super) fn status(stat: &fs::Stat) -> Status {
    Status {
        identity: Identity {
            device: unsigned(stat.st_dev),
            inode: unsigned(stat.st_ino),
        },
        size: unsigned(stat.st_size),
        modified: (signed(stat.st_mtime), signed(stat.st_mtime_nsec)),
        changed: changed_of(stat),
    }
}

/// The status of an open file.
pub fn status_of(file: &File) -> io::Result<Status> {
    Ok(status(&fs::fstat(file)?))
}

/// The time of the last change of an open file's content or metadata: seconds and nanoseconds of Unix time.
pub fn changed(file: &File) -> io::Result<(i64, i64)> {
    Ok(changed_of(&fs::fstat(file)?))
}

/// Whether this user owns an open file and no other user may write to it.
pub fn is_private(file: &File) -> io::Result<bool> {
    let stat = fs::fstat(file)?;
    let is_ours = stat.st_uid == rustix::process::geteuid().as_raw();
    Ok(is_ours && stat.st_mode & 0o022 == 0)
}

/// Whether this user owns an open file and no other user may read or write it.
pub fn is_secret(file: &File) -> io::Result<bool> {
    let stat = fs::fstat(file)?;
    let is_ours = stat.st_uid == rustix::process::geteuid().as_raw();
    Ok(is_ours && stat.st_mode & 0o077 == 0)
}

/// The status of a file, from metadata that was read already.
pub fn status_of_metadata(metadata: &Metadata) -> Status {
    Status {
        identity: Identity {
            device: metadata.dev(),
            inode: metadata.ino(),
        },
        size: metadata.size(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
    }
}

/// The identity of a file, without following links; `None` if the file does not exist.
pub fn identity_of(path: &Path) -> Option<Identity> {
    let metadata = path.symlink_metadata().ok()?;
    Some(status_of_metadata(&metadata).identity)
}

/// Whether an open file or folder was removed.
pub fn is_removed(file: &File) -> io::Result<bool> {
    Ok(fs::fstat(file)?.st_nlink == 0)
}

/// The user who owns a file, and its permission bits.
#[allow(clippy::unnecessary_wraps, reason = "other systems have neither")]
pub fn owner_and_mode(metadata: &Metadata) -> io::Result<(u32, u32)> {
    Ok((metadata.uid(), metadata.mode()))
}

/// Removes all rights of other users to a folder (0700).
pub fn make_private(folder: &Path) -> io::Result<()> {
    std::fs::set_permissions(folder, Permissions::from_mode(0o700))
}

pub fn is_pipe(kind: FileType) -> bool {
    kind.is_fifo()
}

/// Opens a file for reading, unless the last component of `path` is a symbolic link. Opening a FIFO does not wait for
/// its other end.
pub fn open_regular(path: &Path) -> io::Result<std::fs::File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let flags = i32::try_from(flags.bits()).unwrap_or(0);
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags).open(path)
}

/// A temporary file (0600) without a name. The system removes it at the end of the process.
pub fn unnamed_file() -> io::Result<std::fs::File> {
    let name = format!("treelined-{}", uuid::Uuid::new_v4().simple());
    let path = std::env::temp_dir().join(name);
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create_new(true).mode(0o600);
    let file = options.open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// Makes a folder (0700); its parent must exist.
pub fn make_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// The offset of the next stored bytes: `offset` itself or, if a hole in the file begins there, the end of the hole.
pub fn behind_hole(file: &File, offset: u64) -> u64 {
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    match fs::seek(file, SeekFrom::Data(offset)) {
        Ok(data) => return data.max(offset),
        // After `offset` there is only a hole.
        Err(Errno::NXIO) => {
            let len = file.metadata().map(|file| file.len());
            return len.map_or(offset, |len| len.max(offset));
        }
        Err(_) => {}
    }
    offset
}

/// Whether an error of `flock` means that the file system does not support locks. Network file systems may require a
/// writable descriptor, which a folder cannot have.
pub fn is_lock_unsupported(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    error.kind() == io::ErrorKind::Unsupported
        || [Errno::NOLCK, Errno::BADF]
            .iter()
            .any(|errno| code == Some(errno.raw_os_error()))
}

/// Whether `flock` and `O_APPEND` work as specified on the file system of `file`. On network and FUSE file systems they
/// do not.
#[cfg(target_os = "linux")]
pub(crate) fn is_multi_writer(file: &impl AsFd) -> bool {
    const NETWORK: [i64; 7] = [
        0x6969,      // NFS
        0x517b,      // SMB
        0xff53_4d42, // CIFS
        0xfe53_4d42, // SMB2
        0x0102_1997, // 9p
        0x6573_5546, // FUSE
        0x5346_414f, // AFS
    ];
    fs::fstatfs(file).is_ok_and(|stat| !NETWORK.contains(&(signed(stat.f_type) & 0xffff_ffff)))
}

/// Whether only this machine can change files on this file system, so that every change is reported. On other file
/// systems a change by another machine is not reported.
#[cfg(all(target_os = "linux", not(feature = "simulation")))]
pub(crate) fn is_of_this_machine(file: &impl AsFd) -> bool {
    const LOCAL: [i64; 7] = [
        0xef53,      // ext2, ext3, ext4
        0x5846_5342, // XFS
        0x9123_683e, // Btrfs
        0xf2f5_2010, // F2FS
        0x0102_1994, // tmpfs
        0x2fc1_2fc1, // ZFS
        0x794c_7630, // overlayfs
    ];
    fs::fstatfs(file).is_ok_and(|stat| LOCAL.contains(&(signed(stat.f_type) & 0xffff_ffff)))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn is_multi_writer(_file: &impl AsFd) -> bool {
    true
}
