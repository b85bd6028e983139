//! Files of a session directory: their identity, their status and their location.

pub use super::status::{FileKind, Identity, Status};
use super::time;
use std::ffi::OsString;
pub use std::fs::TryLockError;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use treelined_core::error::{Error, Kind, Result};

pub use super::unix::calls::File;
pub use super::unix::folder::{Folder, FolderLock};
pub use super::unix::stat::{
    behind_hole, changed, identity_of, is_lock_unsupported, is_pipe, is_private, is_removed,
    is_secret, make_private, make_private_folder, open_regular, owner_and_mode, status_of,
    status_of_metadata, unnamed_file,
};

/// A time in nanoseconds that is longer than a tick of the clock from which file systems take the times of
/// files.
const TICK: i128 = 50_000_000;

impl Status {
    /// Whether any later change gives the file another status. This is true once the times of the file are older than a
    /// tick of the clock.
    pub fn is_settled(&self) -> bool {
        let now = time::system_now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.map_or(0, |now| i128::try_from(now.as_nanos()).unwrap_or(i128::MAX));
        let nanos =
            |(seconds, nanos): (i64, i64)| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        now.saturating_sub(nanos(self.changed)) > TICK
    }
}

/// A file's name in a folder.
#[derive(Debug, Clone)]
pub struct Location {
    pub folder: Arc<Folder>,
    pub name: OsString,
}

impl Location {
    /// The location of a file at a path that the user gave.
    pub fn of_path(path: &Path) -> Result<Self> {
        let denied = |why: &str| Error::new(Kind::PathDenied, format!("{}: {why}", path.display()));
        let name = path.file_name().ok_or_else(|| denied("names no file"))?;
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let folder = Folder::open(&folder)
            .map_err(|error| Error::io(&format!("open {}", folder.display()), &error))?;
        Ok(Self {
            folder: Arc::new(folder),
            name: name.to_owned(),
        })
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }

    /// The location of the file in the same folder whose name is this name followed by `suffix`.
    pub fn beside(&self, suffix: &str) -> Self {
        let mut name = self.name.clone();
        name.push(suffix);
        Self {
            folder: Arc::clone(&self.folder),
            name,
        }
    }

    pub fn status(&self) -> io::Result<Status> {
        self.folder.status(&self.name)
    }
}
