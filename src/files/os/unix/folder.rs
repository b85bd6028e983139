//! Opens files of a session directory safely: relative to an open folder, never through a symbolic link, and never a
//! FIFO or a device. New files are private to their owner (session-file.md §1, §5).

// The simulated calls already have the types to which the calls of the system are converted here.
#![cfg_attr(
    feature = "simulation",
    allow(clippy::useless_conversion, clippy::let_unit_value)
)]

use super::calls::{AsFd, File, OwnedFd, fs, is_folder, make_folders};
use super::stat::{
    changed_of, is_lock_unsupported, is_multi_writer, is_removed, is_secret, status, status_of,
};
use crate::lock::lock;
use crate::os::handle::{self, Handle, HandleAccess};
use crate::os::status::{FileKind, Identity, Status};
use crate::os::time;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::TryLockError;
use std::io;
use std::path::{Path, PathBuf};
#[cfg(not(feature = "simulation"))]
use std::sync::MutexGuard;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use treelined_core::error::{Error, Kind, Result};

/// The mode of new files: 0600.
pub(super) const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
/// The mode of new folders: 0700.
const FOLDER_MODE: Mode = Mode::RWXU;

/// How long this process waits for a lock of a folder that another process holds.
const FOLDER_LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// Threads of this process that want a folder lock wait here for each other. They wait without a time limit, since the
/// limit is only for locks of other processes. If hundreds of threads tested the lock every two milliseconds, they
/// would also take the processor from the thread that holds it.
#[cfg(not(feature = "simulation"))]
static FOLDER_QUEUE: Mutex<()> = Mutex::new(());

#[cfg(not(feature = "simulation"))]
type FolderQueue = MutexGuard<'static, ()>;
/// Simulated processes are threads of one process, and have no queue in common.
#[cfg(feature = "simulation")]
type FolderQueue = ();

fn queue() -> FolderQueue {
    #[cfg(not(feature = "simulation"))]
    lock(&FOLDER_QUEUE)
}

/// A folder. Files in it are opened relative to the open folder, so replacing a folder above it with a link has no
/// effect.
#[derive(Debug)]
pub struct Folder {
    handle: Handle,
    /// The parent folder and the name in it; `None` for a folder opened by its path.
    within: Option<(Arc<Folder>, OsString)>,
    path: PathBuf,
    /// The identity of the open folder, once its name and the names of the folders above it are on disk.
    named: Mutex<Option<Identity>>,
}

/// The flags with which every folder is opened.
const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

impl Folder {
    /// Opens a folder that the user names. Links above it are followed.
    pub fn open(path: &Path) -> io::Result<Self> {
        let folder = File::from(open_at(fs::CWD, path.as_os_str(), FOLDER, Mode::empty())?);
        Ok(Self {
            handle: Handle::new(folder, HandleAccess::Read),
            within: None,
            path: path.to_owned(),
            named: Mutex::default(),
        })
    }

    /// Opens the session directory and keeps it open. First makes it (0700) and its missing parents.
    pub fn open_or_create(path: &Path) -> io::Result<Self> {
        make(path)?;
        Self::open_to_stay(path)
    }

    /// Like [`Folder::open`], and keeps the folder open.
    pub fn open_to_stay(path: &Path) -> io::Result<Self> {
        let folder = File::from(open_at(fs::CWD, path.as_os_str(), FOLDER, Mode::empty())?);
        Ok(Self {
            handle: Handle::kept(folder),
            within: None,
            path: path.to_owned(),
            named: Mutex::default(),
        })
    }

    /// A folder in this folder.
    pub fn subfolder(self: &Arc<Self>, name: &OsStr) -> io::Result<Self> {
        Ok(Self {
            handle: Handle::new(self.open_subfolder(name)?, HandleAccess::Read),
            within: Some((Arc::clone(self), name.to_owned())),
            path: self.path.join(name),
            named: Mutex::default(),
        })
    }

    /// A folder in this folder, which is made (0700) if it is missing.
    pub fn subfolder_or_create(self: &Arc<Self>, name: &OsStr) -> io::Result<Self> {
        self.make_subfolder(name)?;
        self.subfolder(name)
    }

    /// Like [`Folder::subfolder_or_create`], without a sync: the name of a new folder is durable only after
    /// [`Folder::sync`].
    pub fn subfolder_or_create_unsynced(self: &Arc<Self>, name: &OsStr) -> io::Result<Self> {
        self.make_unsynced(name)?;
        self.subfolder(name)
    }

    /// Makes the folder again (0700), with its missing parents, if it was removed.
    pub fn make_again(&self) -> io::Result<()> {
        match &self.within {
            Some((parent, name)) => {
                parent.make_again()?;
                parent.make_subfolder(name)
            }
            None => make(&self.path),
        }
    }

    /// Makes a folder (0700) in this folder, unless it exists.
    pub fn make_subfolder(&self, name: &OsStr) -> io::Result<()> {
        match self.make_unsynced(name)? {
            // The name of the folder must be as durable as its content. If the folder stayed without a sync, the next
            // attempt would treat its name as durable.
            true => self.sync().inspect_err(|_| {
                let _is_used = self.remove_subfolder(name);
            }),
            false => Ok(()),
        }
    }

    /// Like [`Folder::make_subfolder`], without a sync. Returns whether the folder is new.
    fn make_unsynced(&self, name: &OsStr) -> io::Result<bool> {
        let make = || self.at(|fd| fs::mkdirat(fd, name, FOLDER_MODE));
        let made = match make() {
            // This folder itself was removed.
            Err(Errno::NOENT) => {
                self.make_again()?;
                make()
            }
            other => other,
        };
        match made {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn open_subfolder(&self, name: &OsStr) -> Result<File, Errno> {
        let flags = FOLDER | OFlags::NOFOLLOW;
        self.at(|fd| open_at(fd, name, flags, Mode::empty()))
            .map(File::from)
    }

    /// The open folder.
    fn fd(&self) -> Result<Arc<File>, Errno> {
        self.handle.get(HandleAccess::Read, || self.open_again())
    }

    fn open_again(&self) -> Result<File, Errno> {
        match &self.within {
            Some((parent, name)) => parent.open_subfolder(name),
            None => open_at(fs::CWD, self.path.as_os_str(), FOLDER, Mode::empty()).map(File::from),
        }
    }

    /// Runs `act` on the folder. If the folder was removed, runs `act` on the folder that has its name now.
    fn at<T>(&self, act: impl Fn(&File) -> Result<T, Errno>) -> Result<T, Errno> {
        let fd = self.fd()?;
        match act(&fd) {
            Err(Errno::NOENT) if is_removed(&fd).is_ok_and(|is_removed| is_removed) => {
                let fd = self.handle.set(self.open_again()?, HandleAccess::Read);
                act(&fd)
            }
            other => other,
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether several processes may append to files in this folder (session-file.md §3).
    pub fn is_multi_writer(&self) -> bool {
        self.fd().is_ok_and(|fd| is_multi_writer(&fd))
    }

    /// The descriptor of the open folder.
    #[cfg(not(feature = "simulation"))]
    pub(super) fn descriptor(&self) -> io::Result<Arc<File>> {
        Ok(self.fd()?)
    }

    /// The identity of the open folder.
    pub fn identity(&self) -> io::Result<Identity> {
        Ok(status_of(&*self.fd()?)?.identity)
    }

    /// Whether the open folder has this identity and still exists.
    pub fn is_still(&self, identity: Identity) -> bool {
        let is_it = |folder: &File| {
            let is_there = is_removed(folder).is_ok_and(|is_removed| !is_removed);
            is_there && status_of(folder).is_ok_and(|status| status.identity == identity)
        };
        self.fd().is_ok_and(|folder| is_it(&folder))
    }

    /// The status of the open folder. It changes whenever a name is added, removed or replaced.
    pub fn own_status(&self) -> io::Result<Status> {
        status_of(&*self.fd()?)
    }

    /// The permission bits of the folder.
    #[allow(clippy::useless_conversion, reason = "macOS has modes of 16 bits")]
    pub fn mode(&self) -> io::Result<u32> {
        let mode = Mode::from_raw_mode(fs::fstat(self.fd()?)?.st_mode);
        Ok(u32::from(mode.bits()) & 0o777)
    }

    /// Whether this user owns the folder, and no other user may read or search it.
    pub fn is_secret(&self) -> io::Result<bool> {
        is_secret(&*self.fd()?)
    }

    /// The names in the folder, each with the kind that the listing gives.
    pub fn list(&self) -> io::Result<Vec<(OsString, FileKind)>> {
        use std::os::unix::ffi::OsStringExt;
        let mut entries = Vec::new();
        for entry in self.at(|fd| fs::Dir::read_from(fd))? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                let kind = match entry.file_type() {
                    FileType::RegularFile => FileKind::File,
                    FileType::Directory => FileKind::Folder,
                    FileType::Unknown => FileKind::Unknown,
                    _ => FileKind::Other,
                };
                entries.push((OsString::from_vec(name.to_vec()), kind));
            }
        }
        Ok(entries)
    }

    /// The status of the file with this name, without following links.
    pub fn status(&self, name: &OsStr) -> io::Result<Status> {
        let stat = self.at(|fd| fs::statat(fd, name, AtFlags::SYMLINK_NOFOLLOW))?;
        Ok(status(&stat))
    }

    /// The last change of content, metadata or name of the file with this name: seconds and nanoseconds of Unix
    /// time.
    pub fn changed(&self, name: &OsStr) -> io::Result<(i64, i64)> {
        let stat = self.at(|fd| fs::statat(fd, name, AtFlags::SYMLINK_NOFOLLOW))?;
        Ok(changed_of(&stat))
    }

    /// Passes the status of each file to `each`, like [`Folder::status`]. The folder is opened only once.
    pub fn statuses<'n>(
        &self,
        names: impl IntoIterator<Item = &'n OsString>,
        mut each: impl FnMut(&'n OsStr, io::Result<Status>),
    ) -> io::Result<()> {
        let folder = self.fd()?;
        for name in names {
            let found = match fs::statat(&*folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => Ok(status(&stat)),
                // The open folder may have been removed and made again.
                Err(_) => self.status(name),
            };
            each(name, found);
        }
        Ok(())
    }

    /// Opens a regular file. Anything else is refused, and the attempt does not change it.
    pub fn file(&self, name: &OsStr, access: HandleAccess) -> Result<File> {
        self.regular(
            name,
            match access {
                HandleAccess::Read => OFlags::RDONLY,
                HandleAccess::Append => OFlags::RDWR | OFlags::APPEND,
            },
        )
    }

    /// Like [`Folder::file`], for reading and for writing at an offset: on Linux a file that is open for appending
    /// ignores the offset.
    pub fn file_in_place(&self, name: &OsStr) -> Result<File> {
        self.regular(name, OFlags::RDWR)
    }

    fn regular(&self, name: &OsStr, access: OFlags) -> Result<File> {
        // NONBLOCK, so that opening a FIFO does not wait for its other end.
        let flags = access | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let denied = || {
            let path = self.path.join(name);
            Error::new(
                Kind::PathDenied,
                format!("{} is not a regular file", path.display()),
            )
        };
        let fd = match self.at(|folder| open_at(folder, name, flags, Mode::empty())) {
            Ok(fd) => fd,
            Err(Errno::LOOP | Errno::NXIO | Errno::ISDIR | Errno::NODEV) => return Err(denied()),
            Err(error) => return Err(self.failed("open", name, error)),
        };
        let stat = fs::fstat(&fd).map_err(|error| self.failed("stat", name, error))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(denied());
        }
        Ok(File::from(fd))
    }

    /// Makes a new file (0600) for appending; fails with `EEXIST` if a file has the name.
    pub fn create(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDWR
            | OFlags::APPEND
            | OFlags::CREATE
            | OFlags::EXCL
            | OFlags::CLOEXEC
            | OFlags::NOFOLLOW;
        let fd = self.at(|folder| open_at(folder, name, flags, FILE_MODE))?;
        Ok(File::from(fd))
    }

    /// Renames `from` to `to`. A file with the name `to` is replaced atomically.
    pub fn rename(&self, from: &OsStr, to_folder: &Folder, to: &OsStr) -> io::Result<()> {
        let to_folder = to_folder.fd()?;
        Ok(self.at(|folder| fs::renameat(folder, from, &*to_folder, to))?)
    }

    /// Like [`Folder::rename`], but fails with `EEXIST` if a file has the name `to`.
    pub fn rename_new(&self, from: &OsStr, to_folder: &Folder, to: &OsStr) -> io::Result<()> {
        let target = to_folder.fd()?;
        let flags = RenameFlags::NOREPLACE;
        match self.at(|folder| fs::renameat_with(folder, from, &*target, to, flags)) {
            // Some file systems do not have this call.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => match to_folder.status(to) {
                Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
                Err(_) => self.rename(from, to_folder, to),
            },
            other => Ok(other?),
        }
    }

    /// Gives the file `from` the name `to` too; fails with `EEXIST` if a file has that name.
    pub fn link(&self, from: &OsStr, to_folder: &Folder, to: &OsStr) -> io::Result<()> {
        let to_folder = to_folder.fd()?;
        Ok(self.at(|folder| fs::linkat(folder, from, &*to_folder, to, AtFlags::empty()))?)
    }

    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(self.at(|folder| fs::unlinkat(folder, name, AtFlags::empty()))?)
    }

    /// Removes an empty folder in this folder.
    pub fn remove_subfolder(&self, name: &OsStr) -> io::Result<()> {
        Ok(self.at(|folder| fs::unlinkat(folder, name, AtFlags::REMOVEDIR))?)
    }

    /// Waits for the exclusive right to choose names in this folder. All processes of this program request this right.
    /// On a file system without locks this call returns at once.
    pub fn lock(&self) -> Result<FolderLock> {
        let failed = |error: io::Error| {
            Error::io(&format!("lock the folder {}", self.path.display()), &error)
        };
        let open = || self.open_again();
        let folder = match open() {
            // The folder was removed.
            Err(Errno::NOENT) => self.make_again().and_then(|()| Ok(open()?)),
            other => other.map_err(io::Error::from),
        };
        let folder = folder.map_err(failed)?;
        let began = time::now();
        let queue = queue();
        let locked = |folder| FolderLock {
            _folder: folder,
            _queue: queue,
        };
        loop {
            match folder.try_lock() {
                Ok(()) => return Ok(locked(folder)),
                Err(TryLockError::WouldBlock) if time::since(began) < FOLDER_LOCK_TIMEOUT => {
                    time::sleep(Duration::from_millis(2));
                }
                Err(TryLockError::WouldBlock) => {
                    let message = "another process is making a session in the same folder";
                    return Err(Error::new(Kind::SessionLocked, message));
                }
                Err(TryLockError::Error(error)) if is_lock_unsupported(&error) => {
                    return Ok(locked(folder));
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
    }

    /// Makes the names in this folder durable. The first call also syncs the folders above this folder. A process that
    /// made one of these folders may have been killed before it synced the name of the folder.
    pub fn sync(&self) -> io::Result<()> {
        let folder = self.fd()?;
        sync_folder(&folder)?;
        let status = status_of(&folder)?;
        if *lock(&self.named) == Some(status.identity) {
            return Ok(());
        }
        match &self.within {
            Some((above, _)) => above.sync()?,
            None => sync_above(&self.path, status.identity.device)?,
        }
        *lock(&self.named) = Some(status.identity);
        Ok(())
    }

    fn failed(&self, action: &str, name: &OsStr, error: Errno) -> Error {
        let path = self.path.join(name);
        Error::io(
            &format!("{action} {}", path.display()),
            &io::Error::from(error),
        )
    }
}

/// The exclusive right to choose names in a folder, released on drop.
#[must_use]
pub struct FolderLock {
    /// A separate descriptor of the folder, so that threads of one process also exclude each other.
    _folder: File,
    _queue: FolderQueue,
}

/// Makes a folder (0700) and its missing parents, and syncs their names, since a file is lost together with the name of
/// its folder.
fn make(path: &Path) -> io::Result<()> {
    let missing = path.ancestors().take_while(|above| !is_folder(above));
    let parents: Vec<&Path> = missing.filter_map(Path::parent).collect();
    make_folders(path)?;
    for parent in parents {
        if let Some(parent) = open_above(parent)? {
            sync_folder(&parent)?;
        }
    }
    Ok(())
}

/// Syncs the folders above a path, up to the root of its file system.
fn sync_above(path: &Path, device: u64) -> io::Result<()> {
    for above in path.ancestors().skip(1) {
        if let Some(above) = open_above(above)? {
            if status_of(&above)?.identity.device != device {
                break;
            }
            sync_folder(&above)?;
        }
    }
    Ok(())
}

/// Opens a folder above a session directory. `None` if this user may search the folder but not read it, or if the path
/// no longer exists because the session directory was moved.
fn open_above(path: &Path) -> io::Result<Option<File>> {
    let is_here = path.as_os_str().is_empty();
    match File::open(if is_here { Path::new(".") } else { path }) {
        Ok(folder) => Ok(Some(folder)),
        Err(error) => match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound => Ok(None),
            _ => Err(error),
        },
    }
}

fn sync_folder(folder: &File) -> io::Result<()> {
    match folder.sync_all() {
        // Some file systems cannot sync folders.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        other => other,
    }
}

/// Calls `openat`. If no descriptor is free, closes unused files and tries once more.
fn open_at(folder: impl AsFd, name: &OsStr, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    match fs::openat(&folder, name, flags, mode) {
        Err(Errno::MFILE | Errno::NFILE) if handle::close_idle() => {
            fs::openat(&folder, name, flags, mode)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client may ask for a thousand sessions at once. The time limit for other processes does not apply to the
    /// threads that make these sessions.
    #[test]
    fn threads_of_one_process_wait_for_each_other_as_long_as_it_takes() {
        let made = tempfile::tempdir().unwrap();
        let hold = FOLDER_LOCK_TIMEOUT / 10;
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..15)
                .map(|_| {
                    scope.spawn(|| {
                        let folder = Folder::open(made.path()).unwrap();
                        let lock = folder.lock();
                        std::thread::sleep(hold);
                        lock.map(drop)
                    })
                })
                .collect();
            for thread in threads {
                thread.join().unwrap().unwrap();
            }
        });
    }
}
