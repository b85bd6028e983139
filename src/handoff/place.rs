//! Makes files for agents. A file that exists is never touched.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use treelined_core::error::{Error, Kind, Result};
use treelined_files::os::file::{Folder, Location};
use treelined_files::os::temporary::{self, Temporary};

/// The folder of the session directory for files that no agent keeps.
pub(crate) const FOLDER: &str = ".continuations";
/// The age after which the files of the own folder are removed.
const MAX_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A file to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFile {
    /// Absolute.
    pub path: PathBuf,
    pub bytes: Vec<u8>,
}

/// Makes the files, readable for their owner only, with their folders. Each has its whole content and is on the disk when
/// it gets its name. Fails with `fileExists` for a name that is taken; then no file has changed.
pub fn place(files: &[NewFile]) -> Result<()> {
    for file in files {
        if let Some(folder) = file.path.parent().filter(|folder| folder.ends_with(FOLDER)) {
            remove_old(folder, SystemTime::now());
        }
        write(file).map_err(|error| failed(&file.path, &error))?;
    }
    Ok(())
}

/// Removes the files of a folder that were made long ago: their agents have their own copies by now.
pub(crate) fn remove_old(folder: &Path, now: SystemTime) {
    let found = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for file in found {
        let modified = file.metadata().and_then(|metadata| metadata.modified());
        let age = modified
            .ok()
            .and_then(|modified| now.duration_since(modified).ok());
        if age.is_some_and(|age| age > MAX_AGE) {
            let _removed = std::fs::remove_file(file.path());
        }
    }
}

fn write(file: &NewFile) -> io::Result<()> {
    let missing = || io::Error::from(io::ErrorKind::InvalidFilename);
    let parent = file.path.parent().ok_or_else(missing)?;
    let at = Location {
        folder: Arc::new(Folder::open_or_create(parent)?),
        name: file.path.file_name().ok_or_else(missing)?.to_owned(),
    };
    // Those of processes that were killed would stay for ever. A folder that cannot be listed can be written.
    let _unlisted = temporary::remove_abandoned(&at.folder);
    let temporary = Temporary::for_name(&at.folder, &at.name)?;
    (&**temporary.file()).write_all(&file.bytes)?;
    temporary.file().sync_all()?;
    temporary.name_new(&at)?;
    at.folder.sync()
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
