//! Makes the files of a handoff. A file that exists is never changed.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use treelined_core::error::{Error, Kind, Result};
use treelined_files::os::file::{Folder, Location};
use treelined_files::os::temporary::{self, Temporary};

/// The folder in the session directory for files that are not kept in an agent's folder.
pub(crate) const FOLDER: &str = ".continuations";
/// The age at which files in that folder are removed.
const MAX_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A file to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFile {
    /// The absolute path.
    pub path: PathBuf,
    pub bytes: Vec<u8>,
}

/// Makes the files and their folders. Only the owner can read them. A file gets its name when its whole content is on
/// the disk. Fails with `fileExists` if a name is taken. After a failure, the files that were already made are
/// removed.
pub fn place(files: &[NewFile]) -> Result<()> {
    let mut made: Vec<Location> = Vec::new();
    for file in files {
        let placed = location(&file.path).and_then(|at| {
            write(&at, &file.bytes)?;
            made.push(at);
            made.last().map_or(Ok(()), |at| at.folder.sync())
        });
        if let Err(error) = placed {
            for at in &made {
                let _gone = at.folder.remove(&at.name);
            }
            return Err(failed(&file.path, &error));
        }
    }
    Ok(())
}

/// Opens the folder of a file, or makes it. If the folder is `FOLDER` in the session directory, it must not be a
/// symbolic link, and its old files are removed.
fn location(path: &Path) -> io::Result<Location> {
    let missing = || io::Error::from(io::ErrorKind::InvalidFilename);
    let parent = path.parent().ok_or_else(missing)?;
    let folder = match parent.parent().filter(|_| parent.ends_with(FOLDER)) {
        Some(session_dir) => {
            let session_dir = Arc::new(Folder::open_or_create(session_dir)?);
            let own = session_dir.subfolder_or_create(OsStr::new(FOLDER))?;
            // Old files cannot be removed if the folder cannot be listed, but a new file can still be written.
            let _unlisted = remove_old(&own, SystemTime::now());
            own
        }
        None => Folder::open_or_create(parent)?,
    };
    Ok(Location {
        folder: Arc::new(folder),
        name: path.file_name().ok_or_else(missing)?.to_owned(),
    })
}

/// Removes the files that are older than `MAX_AGE`. By this age, agents have copied the files.
pub(crate) fn remove_old(folder: &Folder, now: SystemTime) -> io::Result<()> {
    let now = now.duration_since(SystemTime::UNIX_EPOCH);
    let now = now.map_or(0, |now| now.as_secs().cast_signed());
    for (name, _) in folder.list()? {
        if is_own(&name)
            && let Ok(status) = folder.status(&name)
            && now.saturating_sub(status.modified.0) > MAX_AGE.as_secs().cast_signed()
        {
            folder.remove(&name)?;
        }
    }
    Ok(())
}

/// Whether a file in `FOLDER` has a name that a writer gives.
fn is_own(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let is_between = |start: &str, end: &str| name.starts_with(start) && name.ends_with(end);
    is_between("session-", ".jsonl")
        || is_between("ses_", ".json")
        || is_between("goose-", ".jsonl")
        || is_between("", ".prompt.md")
}

fn write(at: &Location, bytes: &[u8]) -> io::Result<()> {
    // Temporary files of killed processes are removed. If the folder cannot be listed, a new file can still be
    // written.
    let _unlisted = temporary::remove_abandoned(&at.folder);
    let temporary = Temporary::for_name(&at.folder, &at.name)?;
    (&**temporary.file()).write_all(bytes)?;
    temporary.file().sync_all()?;
    temporary.name_new(at)
}

fn failed(path: &Path, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::AlreadyExists => {
            let message = format!("the file {} exists already", path.display());
            Error::new(Kind::FileExists, message)
        }
        _ => Error::io(&format!("write {}", path.display()), error),
    }
}
