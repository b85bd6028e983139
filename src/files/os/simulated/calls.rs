//! The calls of the system on the simulated disk, under the names that they have in `rustix`.

use super::disk::{Change, NodeId, ROOT};
pub use super::file::{File, FileAt};
use super::{Called, LeftOut, OpenFile, START, State, call, current, touch};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, SeekFrom};
use rustix::io::Errno;
use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};
use std::sync::Arc;
use treelined_core::defect::breaks;

/// The start of paths that are not relative to a folder.
pub const CWD: Cwd = Cwd;
pub struct Cwd;

/// An open folder, or the start of a path.
pub trait AsFd {
    /// The open file; `None` for the start of a path.
    fn file(&self) -> Option<&File>;
}

impl AsFd for Cwd {
    fn file(&self) -> Option<&File> {
        None
    }
}

impl AsFd for File {
    fn file(&self) -> Option<&File> {
        Some(self)
    }
}

impl<T: AsFd> AsFd for &T {
    fn file(&self) -> Option<&File> {
        (**self).file()
    }
}

impl<T: AsFd> AsFd for Arc<T> {
    fn file(&self) -> Option<&File> {
        (**self).file()
    }
}

pub struct Stat {
    pub st_dev: u64,
    pub st_ino: u64,
    pub st_nlink: u64,
    pub st_mode: u32,
    pub st_uid: u32,
    pub st_size: u64,
    pub st_mtime: u64,
    pub st_mtime_nsec: u64,
    pub st_ctime: u64,
    pub st_ctime_nsec: u64,
}

pub struct StatFs {
    pub f_type: i64,
}

/// The node at which a relative path begins, and the path.
fn folder_of(state: &State, at: &impl AsFd) -> Called<NodeId> {
    match at.file() {
        Some(file) => file.node(state),
        None => Ok(ROOT),
    }
}

fn walk(state: &State, from: NodeId, path: &OsStr) -> Called<NodeId> {
    let mut at = from;
    for part in Path::new(path).components() {
        if let Component::Normal(name) = part {
            let folder = state.disk.node(at).ok_or(Errno::NOENT)?;
            if !folder.is_folder {
                return Err(Errno::NOTDIR);
            }
            at = state.disk.lookup(at, name).ok_or(Errno::NOENT)?;
        }
    }
    Ok(at)
}

fn shown(name: &OsStr) -> std::path::Display<'_> {
    Path::new(name).display()
}

fn open(state: &mut State, node: NodeId, process: usize, flags: OFlags) -> u64 {
    let number = state.next_file;
    state.next_file += 1;
    let appends = flags.contains(OFlags::APPEND) && state.rules.left_out != LeftOut::AppendFlag;
    let file = OpenFile {
        node,
        process,
        appends,
        position: 0,
        has_failed: false,
    };
    state.files.insert(number, file);
    number
}

pub fn openat(at: impl AsFd, name: &OsStr, flags: OFlags, _mode: Mode) -> Called<File> {
    let number = call(
        |_| format!("open {} {:x}", shown(name), flags.bits()),
        |state, process| {
            let folder = folder_of(state, &at)?;
            let node = match walk(state, folder, name) {
                Ok(_) if flags.contains(OFlags::EXCL) => return Err(Errno::EXIST),
                Ok(node) => node,
                Err(Errno::NOENT) if flags.contains(OFlags::CREATE) => {
                    writable(state, folder)?;
                    let open: Vec<NodeId> = state.files.values().map(|file| file.node).collect();
                    state
                        .disk
                        .make(folder, name, false, |id| open.contains(&id))
                }
                Err(error) => return Err(error),
            };
            let is_folder = state.disk.node(node).is_some_and(|node| node.is_folder);
            if flags.contains(OFlags::DIRECTORY) && !is_folder {
                return Err(Errno::NOTDIR);
            }
            if is_folder && flags.contains(OFlags::RDWR) {
                return Err(Errno::ISDIR);
            }
            touch(state, node, false);
            Ok(open(state, node, process, flags))
        },
    )?;
    let (world, process) = current();
    Ok(File {
        world,
        process,
        number,
    })
}

/// Fails if the folder was removed, or if there is no space for a name.
fn writable(state: &State, folder: NodeId) -> Called<()> {
    if state
        .disk
        .node(folder)
        .is_none_or(|folder| folder.links == 0)
    {
        return Err(Errno::NOENT);
    }
    match state.disk.space {
        Some(0) => Err(Errno::NOSPC),
        _ => Ok(()),
    }
}

pub fn mkdirat(at: impl AsFd, name: &OsStr, _mode: Mode) -> Called<()> {
    call(
        |_| format!("mkdir {}", shown(name)),
        |state, _| {
            let folder = folder_of(state, &at)?;
            if state.disk.lookup(folder, name).is_some() {
                return Err(Errno::EXIST);
            }
            writable(state, folder)?;
            let made = state.disk.make(folder, name, true, |_| true);
            touch(state, made, true);
            touch(state, folder, true);
            Ok(())
        },
    )
}

fn stat(state: &State, id: NodeId) -> Called<Stat> {
    let node = state.disk.node(id).ok_or(Errno::NOENT)?;
    let mode = if node.is_folder { 0o040_700 } else { 0o100_600 };
    let part = |nanos: u64| (nanos / 1_000_000_000, nanos % 1_000_000_000);
    let ((st_mtime, st_mtime_nsec), (st_ctime, st_ctime_nsec)) =
        (part(node.modified), part(node.changed));
    Ok(Stat {
        st_dev: 1,
        st_ino: node.inode,
        st_nlink: u64::from(node.links),
        st_mode: mode,
        st_uid: rustix::process::geteuid().as_raw(),
        st_size: node.data.len() as u64,
        st_mtime,
        st_mtime_nsec,
        st_ctime,
        st_ctime_nsec,
    })
}

pub fn fstat(file: impl AsFd) -> Called<Stat> {
    call(
        |_| "fstat".to_owned(),
        |state, _| {
            let mut found = stat(state, folder_of(state, &file)?)?;
            let holder = state.locks.get(&folder_of(state, &file)?);
            let is_holder = file.file().is_some_and(|file| holder == Some(&file.number));
            let fact = "Lines are written to the file that was read, and whose lock is held";
            found.st_ino += u64::from(is_holder && breaks(fact));
            Ok(found)
        },
    )
}

pub fn statat(at: impl AsFd, name: &OsStr, _flags: AtFlags) -> Called<Stat> {
    call(
        |_| format!("stat {}", shown(name)),
        |state, _| stat(state, walk(state, folder_of(state, &at)?, name)?),
    )
}

/// Says that the disk has the file system ext4.
pub fn fstatfs(_file: impl AsFd) -> Called<StatFs> {
    Ok(StatFs { f_type: 0xef53 })
}

/// There are no holes.
pub fn seek(_file: impl AsFd, _to: SeekFrom) -> Called<u64> {
    Err(Errno::INVAL)
}

pub fn renameat(at: impl AsFd, from: &OsStr, to_at: impl AsFd, to: &OsStr) -> Called<()> {
    renameat_with(at, from, to_at, to, RenameFlags::empty())
}

pub fn renameat_with(
    at: impl AsFd,
    from: &OsStr,
    to_at: impl AsFd,
    to: &OsStr,
    flags: RenameFlags,
) -> Called<()> {
    call(
        |_| format!("rename {} {} {:x}", shown(from), shown(to), flags.bits()),
        |state, _| {
            let (folder, to_folder) = (folder_of(state, &at)?, folder_of(state, &to_at)?);
            let node = state.disk.lookup(folder, from).ok_or(Errno::NOENT)?;
            writable(state, to_folder)?;
            match state.disk.lookup(to_folder, to) {
                Some(_) if flags.contains(RenameFlags::NOREPLACE) => return Err(Errno::EXIST),
                Some(other) if other == node => return Ok(()),
                _ => {}
            }
            state.disk.change(Change::Rename {
                from: (folder, from.to_owned()),
                to: (to_folder, to.to_owned()),
                node,
            });
            let now = START * 1_000_000_000 + state.now;
            if let Some(node) = state.disk.nodes.get_mut(&node) {
                node.changed = now;
            }
            touch(state, folder, true);
            touch(state, to_folder, true);
            Ok(())
        },
    )
}

pub fn linkat(
    at: impl AsFd,
    from: &OsStr,
    to_at: impl AsFd,
    to: &OsStr,
    _flags: AtFlags,
) -> Called<()> {
    call(
        |_| format!("link {} {}", shown(from), shown(to)),
        |state, _| {
            let (folder, to_folder) = (folder_of(state, &at)?, folder_of(state, &to_at)?);
            let node = state.disk.lookup(folder, from).ok_or(Errno::NOENT)?;
            writable(state, to_folder)?;
            if state.disk.lookup(to_folder, to).is_some() {
                return Err(Errno::EXIST);
            }
            state.disk.change(Change::Name {
                folder: to_folder,
                name: to.to_owned(),
                node,
                is_folder: false,
            });
            touch(state, to_folder, true);
            Ok(())
        },
    )
}

pub fn unlinkat(at: impl AsFd, name: &OsStr, flags: AtFlags) -> Called<()> {
    call(
        |_| format!("unlink {}", shown(name)),
        |state, _| {
            let folder = folder_of(state, &at)?;
            let node = state.disk.lookup(folder, name).ok_or(Errno::NOENT)?;
            let known = state.disk.node(node).ok_or(Errno::NOENT)?;
            match (known.is_folder, flags.contains(AtFlags::REMOVEDIR)) {
                (true, false) => return Err(Errno::ISDIR),
                (false, true) => return Err(Errno::NOTDIR),
                (true, true) if !known.names.is_empty() => return Err(Errno::NOTEMPTY),
                _ => {}
            }
            let name = name.to_owned();
            state.disk.change(Change::Unname { folder, name });
            touch(state, folder, true);
            Ok(())
        },
    )
}

/// The names of a folder.
pub struct Dir(std::vec::IntoIter<DirEntry>);

pub struct DirEntry {
    name: CString,
    is_folder: bool,
}

impl Dir {
    pub fn read_from(folder: impl AsFd) -> Called<Self> {
        let listed = call(
            |_| "list".to_owned(),
            |state, _| {
                let id = folder_of(state, &folder)?;
                let names = &state.disk.node(id).ok_or(Errno::NOENT)?.names;
                let entries = names.iter().filter_map(|(name, node)| {
                    Some(DirEntry {
                        name: CString::new(name.as_bytes()).ok()?,
                        is_folder: state.disk.node(*node)?.is_folder,
                    })
                });
                Ok(entries.collect::<Vec<_>>())
            },
        )?;
        Ok(Self(listed.into_iter()))
    }
}

impl Iterator for Dir {
    type Item = Called<DirEntry>;
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(Ok)
    }
}

impl DirEntry {
    pub fn file_name(&self) -> &std::ffi::CStr {
        &self.name
    }

    pub fn file_type(&self) -> FileType {
        match self.is_folder {
            true => FileType::Directory,
            false => FileType::RegularFile,
        }
    }
}

pub fn is_folder(path: &Path) -> bool {
    let found = statat(CWD, path.as_os_str(), AtFlags::empty());
    found.is_ok_and(|stat| stat.st_mode & 0o040_000 != 0)
}

pub fn make_folders(path: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = path
        .ancestors()
        .take_while(|above| !is_folder(above))
        .collect();
    for folder in missing.into_iter().rev() {
        let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let parent = File::open(parent)?;
        match mkdirat(&parent, name, Mode::empty()) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

impl File {
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(openat(
            CWD,
            path.as_os_str(),
            OFlags::RDONLY,
            Mode::empty(),
        )?)
    }
}
