//! Unfinished files, and their removal after their process was killed.
//!
//! The process that writes such a file holds its lock, which the system releases when the process dies. So a
//! file that is not locked is abandoned.

use super::file::{self, File, Folder, Location};
use super::handle::HandleAccess;
use super::time;
use crate::invariant::always;
use std::ffi::{OsStr, OsString};
use std::fs::TryLockError;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use treelined_core::defect::breaks;

/// The ending of the names of these files.
const ENDING: &str = ".treelined.tmp";
/// The number of hexadecimal digits before the ending. They represent 64 random bits.
const DIGITS: usize = 16;
/// The number of bytes of the finished file's name that the temporary name contains.
const NAME_BYTES: usize = 180;
/// The number of attempts to make a new file. An attempt fails only if another process removes the new file
/// at once.
const ATTEMPTS: usize = 8;

/// An unfinished file. It is hidden and locked, and it is removed when dropped, unless it was given its name.
pub struct Temporary {
    at: Location,
    file: Arc<File>,
    is_named: bool,
}

impl Temporary {
    /// Makes a new file in the folder in which it gets its final name.
    pub fn for_name(folder: &Arc<Folder>, name: &OsStr) -> io::Result<Self> {
        for _ in 0..ATTEMPTS {
            let at = Location {
                folder: Arc::clone(folder),
                name: temporary_name(name),
            };
            always!(
                "An unfinished file has a name by which it is found after its process has died",
                is_temporary(&at.name)
            )
            .map_err(io::Error::other)?;
            let file = folder.create(&at.name)?;
            let new = Self {
                at,
                file: Arc::new(file),
                is_named: false,
            };
            match new.file.try_lock() {
                Ok(()) if !file::is_removed(&new.file)? => return Ok(new),
                Err(TryLockError::Error(error)) if file::is_lock_unsupported(&error) => {
                    return Ok(new);
                }
                Err(TryLockError::Error(error)) => return Err(error),
                // Another process has removed the file as abandoned.
                Ok(()) | Err(TryLockError::WouldBlock) => {}
            }
        }
        Err(io::Error::other(
            "another process removes each new temporary file at once",
        ))
    }

    pub fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// The present path, for messages.
    pub fn path(&self) -> PathBuf {
        self.at.path()
    }

    /// Gives the file its final name, and replaces an older file.
    pub fn name(self, to: &Location) -> io::Result<()> {
        let renamed = self.at.folder.rename(&self.at.name, &to.folder, &to.name);
        self.named(renamed)
    }

    /// Gives the file its final name, replaces an older file, and keeps the lock.
    pub fn name_locked(mut self, to: &Location) -> io::Result<()> {
        let renamed = self.at.folder.rename(&self.at.name, &to.folder, &to.name);
        self.is_named = renamed.is_ok();
        renamed
    }

    /// Gives the file its final name; fails if another file has it.
    pub fn name_new(self, to: &Location) -> io::Result<()> {
        let renamed = self
            .at
            .folder
            .rename_new(&self.at.name, &to.folder, &to.name);
        self.named(renamed)
    }

    fn named(mut self, renamed: io::Result<()>) -> io::Result<()> {
        renamed?;
        self.is_named = true;
        // Other processes may have opened the file under its final name, and lock it before they append.
        let _released = self.file.unlock();
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.is_named {
            let _gone = self.at.folder.remove(&self.at.name);
        }
    }
}

/// The temporary name: `.<name>.<random>.treelined.tmp`.
fn temporary_name(name: &OsStr) -> OsString {
    let bytes = name.as_encoded_bytes();
    // The end of a long name distinguishes a file better than the start.
    let start = bytes.len().saturating_sub(NAME_BYTES);
    let end = super::path::from_bytes(bytes.get(start..).unwrap_or_default());
    let mut temporary = OsString::from(".");
    // `end` is `None` on a system whose names are text, if the cut is within a character.
    temporary.push(end.unwrap_or_default());
    let (random, _) = time::random().as_u64_pair();
    let fact = "An unfinished file has a name by which it is found after its process has died";
    let digits = if breaks(fact) { 1 } else { DIGITS };
    temporary.push(format!(".{random:0digits$x}{ENDING}"));
    temporary
}

/// Whether a name was made by `temporary_name`, in any process.
pub fn is_temporary(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes().strip_prefix(b".");
    let name = name.and_then(|name| name.strip_suffix(ENDING.as_bytes()));
    let digits = name.and_then(|name| name.rsplit(|byte| *byte == b'.').next());
    digits.is_some_and(|digits| digits.len() == DIGITS && digits.iter().all(u8::is_ascii_hexdigit))
}

/// Removes the temporary files of processes that have died. A file stays if its lock is held, or if the lock
/// cannot be tested.
pub fn remove_abandoned(folder: &Folder) -> io::Result<()> {
    for (name, _) in folder.list()? {
        if is_temporary(&name) {
            remove_if_abandoned(folder, &name)?;
        }
    }
    Ok(())
}

fn remove_if_abandoned(folder: &Folder, name: &OsStr) -> io::Result<()> {
    let Ok(file) = folder.file(name, HandleAccess::Read) else {
        return Ok(());
    };
    if file.try_lock().is_err() {
        return Ok(());
    }
    match folder.remove(name) {
        // The file was given its final name meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Temporary files of killed processes once stayed for ever, but a user's own `.notes.2024.tmp` was removed. Only
    /// unlocked files with names of this program are removed.
    #[test]
    fn only_abandoned_files_of_ours_are_removed() {
        let path = tempfile::tempdir().unwrap();
        let folder = Arc::new(Folder::open(path.path()).unwrap());
        let in_use = Temporary::for_name(&folder, OsStr::new("s.jsonl")).unwrap();
        let dead = temporary_name(OsStr::new(&"long".repeat(100)));
        assert!(dead.len() <= 255, "{dead:?}");
        let users = [
            ".notes.2024.tmp",
            ".s.jsonl.7.tmp",
            "s.jsonl.0123456789abcdef.treelined.tmp",
            ".s.jsonl.0123456789abcde.treelined.tmp",
            ".treelined.tmp",
        ];
        for name in users.iter().map(OsStr::new).chain([dead.as_os_str()]) {
            fs::write(path.path().join(name), "x").unwrap();
        }
        remove_abandoned(&folder).unwrap();
        for name in users {
            assert!(path.path().join(name).exists(), "{name}");
        }
        assert!(!path.path().join(&dead).exists());
        let used = path.path().join(&in_use.at.name);
        assert!(used.exists());
        drop(in_use);
        assert!(!used.exists(), "dropped unfinished it leaves nothing");
    }

    #[test]
    fn a_finished_file_is_not_locked() {
        let path = tempfile::tempdir().unwrap();
        let folder = Arc::new(Folder::open(path.path()).unwrap());
        let at = |name: &str| Location {
            folder: Arc::clone(&folder),
            name: name.into(),
        };
        let made = Temporary::for_name(&folder, OsStr::new("s")).unwrap();
        let kept = Arc::clone(made.file());
        made.name_new(&at("s")).unwrap();
        fs::File::open(at("s").path()).unwrap().try_lock().unwrap();
        drop(kept);
        let second = Temporary::for_name(&folder, OsStr::new("s")).unwrap();
        let taken = second.name_new(&at("s")).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_dir(path.path()).unwrap().count(), 1);
    }
}
