//! Finds files that a program has open for writing. If a restore replaces such a file, the program's later writes are
//! lost (files.md §5).

use crate::changes::Change;
use crate::name::Name;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The changed files that a program of this user has open for writing. Only `/proc` shows this, so on other systems
/// no file is found.
pub fn held(root: &Path, changes: &[Change]) -> BTreeSet<Name> {
    let there = changes.iter().filter(|change| change.old.is_some());
    let names: BTreeMap<PathBuf, &Name> = there
        .map(|change| (root.join(change.name.as_path()), &change.name))
        .collect();
    let mut held = BTreeSet::new();
    if names.is_empty() {
        return held;
    }
    for process in entries(Path::new("/proc")) {
        let is_process = process
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit));
        if !is_process {
            continue;
        }
        for open in entries(&process.join("fd")) {
            let file = fs::read_link(&open).ok();
            let Some(name) = file.and_then(|file| names.get(&file)) else {
                continue;
            };
            if fs::symlink_metadata(&open).is_ok_and(|link| is_for_writing(&link)) {
                held.insert((*name).clone());
            }
        }
    }
    held
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.flatten().map(|entry| entry.path())
}

/// Whether a file was opened for writing. The mode of the link in `/proc/ID/fd` shows it.
fn is_for_writing(link: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::mode(link) & 0o200 != 0
}
