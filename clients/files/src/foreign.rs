//! Finds repositories of the user inside the root. They are neither saved nor changed (files.md §3).

use crate::name::{FOREIGN, Name};
use rustix::fs::{AtFlags, FileType, statat};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Whether a folder has the files of a repository directly in it. Such a folder is a bare repository, a folder
/// `.git`, or the folder of a linked working tree.
pub fn is_repository(folder: impl AsFd) -> bool {
    let is = |name: &str, kind: FileType| {
        statat(&folder, name, AtFlags::empty())
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == kind)
    };
    let has_head = || statat(&folder, "HEAD", AtFlags::SYMLINK_NOFOLLOW).is_ok();
    let is_whole = || is("objects", FileType::Directory) && is("refs", FileType::Directory);
    has_head() && (is_whole() || is("commondir", FileType::RegularFile))
}

/// Whether this folder, or a folder above it, has the files of a repository directly in it.
pub fn is_in_repository(folder: &Path) -> bool {
    let mut above = folder.ancestors();
    above.any(|above| std::fs::File::open(above).is_ok_and(is_repository))
}

/// Finds the repositories that have files below a root.
pub struct Repositories<'r> {
    root: &'r Path,
    /// For each folder that was checked, by its path: whether it is a repository.
    known: HashMap<Vec<u8>, bool>,
}

impl<'r> Repositories<'r> {
    pub fn new(root: &'r Path) -> Repositories<'r> {
        let known = HashMap::new();
        Repositories { root, known }
    }

    /// Looks for a repository at each folder of the path `name`, from the root down. Returns the path of the first
    /// repository, which ends with `/` unless the repository is a file. `None` if there is no repository.
    pub fn of(&mut self, name: &Name) -> Option<Name> {
        let mut begin = 0;
        for part in name.0.split(|byte| *byte == b'/') {
            let end = begin + part.len();
            let is_folder = end < name.0.len();
            let path = name.0.get(..end + usize::from(is_folder))?;
            let is_foreign = FOREIGN
                .iter()
                .any(|foreign| part.eq_ignore_ascii_case(foreign));
            if is_foreign || (is_folder && self.is_one(path)) {
                return Some(Name(path.to_owned()));
            }
            begin = end + 1;
        }
        None
    }

    fn is_one(&mut self, folder: &[u8]) -> bool {
        if let Some(known) = self.known.get(folder) {
            return *known;
        }
        let path = self.root.join(OsStr::from_bytes(folder));
        let is_one = std::fs::File::open(path).is_ok_and(is_repository);
        self.known.insert(folder.to_owned(), is_one);
        is_one
    }
}
