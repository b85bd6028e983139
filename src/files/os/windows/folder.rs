//! Folders, by their paths. Unlike a folder of Unix, one that is replaced by a link above it is followed there.

use super::stat::{OPEN_REPARSE_POINT, is_secret, open_itself, status_of};
use crate::os::file::{FileKind, Identity, Status};
use crate::os::handle::HandleAccess;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use treelined_core::error::{Error, Kind, Result};

/// How long to wait for another process's lock of a folder.
const FOLDER_LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// The hidden file whose lock is that of its folder: a folder has no locks.
const LOCK_NAME: &str = ".treelined.lock";
/// The right to append without the right to write elsewhere.
const APPEND_DATA: u32 = 0x4;
/// The right to read, with that to ask for the status and to wait.
const GENERIC_READ: u32 = 0x8000_0000;

/// A folder.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Opens a folder that the user names; links above it are followed.
    pub fn open(path: &Path) -> io::Result<Self> {
        match fs::metadata(path)?.is_dir() {
            true => Ok(Self {
                path: path.to_owned(),
            }),
            false => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// Opens the session directory, making it and its missing parents first.
    pub fn open_or_create(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        Self::open(path)
    }

    /// As [`Folder::open`].
    pub fn open_to_stay(path: &Path) -> io::Result<Self> {
        Self::open(path)
    }

    /// A folder in this folder, which is no link.
    pub fn subfolder(self: &Arc<Self>, name: &OsStr) -> io::Result<Self> {
        let path = self.path.join(name);
        match fs::symlink_metadata(&path)?.is_dir() {
            true => Ok(Self { path }),
            false => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// A folder in this folder, made if missing.
    pub fn subfolder_or_create(self: &Arc<Self>, name: &OsStr) -> io::Result<Self> {
        self.make_subfolder(name)?;
        self.subfolder(name)
    }

    /// As [`Folder::subfolder_or_create`].
    pub fn subfolder_or_create_unsynced(self: &Arc<Self>, name: &OsStr) -> io::Result<Self> {
        self.subfolder_or_create(name)
    }

    /// Makes the folder again, with its missing parents, if it was removed.
    pub fn make_again(&self) -> io::Result<()> {
        fs::create_dir_all(&self.path)
    }

    /// Makes a folder in it unless it exists.
    pub fn make_subfolder(&self, name: &OsStr) -> io::Result<()> {
        fs::create_dir_all(self.path.join(name))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// False: locks and appends of several processes were never tried on this system.
    pub fn is_multi_writer(&self) -> bool {
        false
    }

    /// The identity of the folder.
    pub fn identity(&self) -> io::Result<Identity> {
        Ok(self.own_status()?.identity)
    }

    /// The status of the folder. It changes whenever a name is added, removed or replaced.
    pub fn own_status(&self) -> io::Result<Status> {
        status_of(&open_itself(&self.path)?)
    }

    /// Fails: folders have access lists, which are not read.
    pub fn mode(&self) -> io::Result<u32> {
        Err(super::unsupported("tell who may read a folder"))
    }

    /// Whether this user owns the folder and no other user may look into it.
    pub(crate) fn is_secret(&self) -> io::Result<bool> {
        is_secret(&open_itself(&self.path)?)
    }

    /// The names in the folder, each with the kind that the listing gives.
    pub fn list(&self) -> io::Result<Vec<(OsString, FileKind)>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let kind = match entry.file_type()? {
                kind if kind.is_file() => FileKind::File,
                kind if kind.is_dir() => FileKind::Folder,
                _ => FileKind::Other,
            };
            if entry.file_name() != LOCK_NAME {
                entries.push((entry.file_name(), kind));
            }
        }
        Ok(entries)
    }

    /// The status of the file with this name, without following links.
    pub fn status(&self, name: &OsStr) -> io::Result<Status> {
        status_of(&open_itself(&self.path.join(name))?)
    }

    /// The last change of the file with this name: seconds and nanoseconds of Unix time.
    pub fn changed(&self, name: &OsStr) -> io::Result<(i64, i64)> {
        Ok(self.status(name)?.changed)
    }

    /// Passes the status of each file to `each`, as [`Folder::status`].
    pub fn statuses<'n>(
        &self,
        names: impl IntoIterator<Item = &'n OsString>,
        mut each: impl FnMut(&'n OsStr, io::Result<Status>),
    ) -> io::Result<()> {
        for name in names {
            each(name, self.status(name));
        }
        Ok(())
    }

    /// Opens a regular file; refuses anything else untouched.
    pub fn file(&self, name: &OsStr, access: HandleAccess) -> Result<File> {
        let path = self.path.join(name);
        let mut options = OpenOptions::new();
        match access {
            HandleAccess::Read => options.read(true),
            HandleAccess::Append => options.access_mode(GENERIC_READ | APPEND_DATA),
        };
        let file = options.custom_flags(OPEN_REPARSE_POINT).open(&path);
        let file = file.map_err(|error| failed("open", &path, &error))?;
        let metadata = file.metadata();
        let metadata = metadata.map_err(|error| failed("stat", &path, &error))?;
        if !metadata.file_type().is_file() {
            let message = format!("{} is not a regular file", path.display());
            return Err(Error::new(Kind::PathDenied, message));
        }
        Ok(file)
    }

    /// Makes a new file for appending; fails with `AlreadyExists` if the name is taken.
    pub fn create(&self, name: &OsStr) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let options = options.read(true).append(true).create_new(true);
        options.open(self.path.join(name))
    }

    /// Renames `from` to `to`, atomically replacing a file of that name.
    pub fn rename(&self, from: &OsStr, to_folder: &Folder, to: &OsStr) -> io::Result<()> {
        fs::rename(self.path.join(from), to_folder.path.join(to))
    }

    /// As [`Folder::rename`], but fails with `AlreadyExists` if the name is taken.
    pub fn rename_new(&self, from: &OsStr, to_folder: &Folder, to: &OsStr) -> io::Result<()> {
        let from = self.path.join(from);
        fs::hard_link(&from, to_folder.path.join(to))?;
        fs::remove_file(from)
    }

    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    /// Removes an empty folder in this one.
    pub fn remove_subfolder(&self, name: &OsStr) -> io::Result<()> {
        fs::remove_dir(self.path.join(name))
    }

    /// Waits for the exclusive right to choose names in this folder; all processes of this program ask for it.
    pub fn lock(&self) -> Result<FolderLock> {
        let failed = |error: io::Error| failed("lock the folder", &self.path, &error);
        self.make_again().map_err(failed)?;
        let mut options = OpenOptions::new();
        let options = options.read(true).append(true).create(true);
        let file = options.open(self.path.join(LOCK_NAME)).map_err(failed)?;
        let began = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(FolderLock { _file: file }),
                Err(TryLockError::WouldBlock) if began.elapsed() < FOLDER_LOCK_TIMEOUT => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(TryLockError::WouldBlock) => {
                    let message = "another process is making a session in the same folder";
                    return Err(Error::new(Kind::SessionLocked, message));
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
    }

    /// Does nothing: a folder cannot be synced.
    pub fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

fn failed(action: &str, path: &Path, error: &io::Error) -> Error {
    Error::io(&format!("{action} {}", path.display()), error)
}

/// The exclusive right to choose names in a folder, released on drop.
#[must_use]
pub struct FolderLock {
    _file: File,
}
