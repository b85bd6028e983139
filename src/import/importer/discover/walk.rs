//! Lists the files below a folder. It does not follow symbolic links and does not open files.

use crate::importer::source::facts::SourceFailure;
use hashbrown::HashMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use treelined_core::agent::Tool;
pub(crate) use treelined_files::os::file::{FileKind, Folder, Status};

/// A walk through all folders below a folder.
pub(super) struct Walk {
    /// The folders that are not listed yet.
    folders: Vec<Arc<Folder>>,
    /// The files that are listed and not returned yet.
    files: Vec<PathBuf>,
    /// This folder and the folders below it are not searched.
    except: PathBuf,
    trees: Vec<PathBuf>,
    failures: Vec<(PathBuf, io::Error)>,
    /// The folders that were listed. Each has its status from before it was listed.
    pub(super) listed: Vec<(PathBuf, Status)>,
}

impl Walk {
    pub(super) fn new(folder: &Path, except: &Path) -> Self {
        let mut walk = Self {
            folders: Vec::new(),
            files: Vec::new(),
            except: except.to_owned(),
            trees: Vec::new(),
            failures: Vec::new(),
            listed: Vec::new(),
        };
        match Folder::open(folder) {
            Ok(opened) => walk.folders.push(Arc::new(opened)),
            Err(error) => walk.fail(folder, error),
        }
        walk
    }

    pub(super) fn next(&mut self) -> Option<PathBuf> {
        while self.files.is_empty() {
            let folder = self.folders.pop()?;
            self.list(&folder);
        }
        self.files.pop()
    }

    /// Removes and returns opencode's folders of small files. The walk does not return files below them.
    pub(super) fn trees(&mut self) -> impl Iterator<Item = PathBuf> {
        std::mem::take(&mut self.trees).into_iter()
    }

    pub(super) fn failures(self, tool: Option<Tool>) -> impl Iterator<Item = SourceFailure> {
        let failed =
            move |(path, error): (PathBuf, io::Error)| SourceFailure::io(tool, &path, &error);
        self.failures.into_iter().map(failed)
    }

    fn list(&mut self, folder: &Arc<Folder>) {
        let before = folder.own_status();
        let listed = match before.and_then(|before| Ok((folder.list()?, before))) {
            Ok((listed, before)) => {
                self.listed.push((folder.path().to_owned(), before));
                listed
            }
            Err(error) => return self.fail(folder.path(), error),
        };
        let has = |wanted: &str| listed.iter().any(|(name, _)| name == wanted);
        if has("session") && has("message") && super::homes::is_tree(folder.path()) {
            self.trees.push(folder.path().to_owned());
            return;
        }
        for (name, kind) in listed {
            let path = folder.path().join(&name);
            let kind = match kind {
                // The list does not have the kind of this file, so its status is read.
                FileKind::Unknown => kind_of(&path),
                kind => kind,
            };
            match kind {
                FileKind::File => self.files.push(path),
                FileKind::Folder if path != self.except => match folder.subfolder(&name) {
                    Ok(inner) => self.folders.push(Arc::new(inner)),
                    Err(error) => self.fail(&path, error),
                },
                _ => {}
            }
        }
    }

    fn fail(&mut self, path: &Path, error: io::Error) {
        // The file may have been removed since it was listed.
        if error.kind() != io::ErrorKind::NotFound {
            self.failures.push((path.to_owned(), error));
        }
    }
}

fn kind_of(path: &Path) -> FileKind {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => FileKind::File,
        Ok(metadata) if metadata.is_dir() => FileKind::Folder,
        _ => FileKind::Unknown,
    }
}

/// The status of each file; `None` if it is missing.
pub(super) fn statuses(
    files: &[PathBuf],
) -> impl Iterator<Item = (&PathBuf, io::Result<Option<Status>>)> {
    // The key is the bytes of the path. To hash the path itself is slow, because it is hashed part by part.
    let mut by_folder: HashMap<&[u8], Vec<usize>> = HashMap::new();
    let mut names = Vec::with_capacity(files.len());
    for (number, file) in files.iter().enumerate() {
        let folder = file.parent().unwrap_or(file).as_os_str();
        names.push(file.file_name().unwrap_or(OsStr::new("")).to_owned());
        let of_folder = by_folder.entry(folder.as_encoded_bytes());
        of_folder.or_default().push(number);
    }
    let mut found: Vec<io::Result<Option<Status>>> = Vec::new();
    found.resize_with(files.len(), || Ok(None));
    for numbers in by_folder.values() {
        let first = numbers.first().and_then(|number| files.get(*number));
        let folder = first.and_then(|file| file.parent());
        let Some(Ok(folder)) = folder.map(Folder::open) else {
            continue;
        };
        let of_folder = numbers.iter().filter_map(|number| names.get(*number));
        let mut next = numbers.iter();
        // If the folder cannot be opened any more, its files count as missing.
        let _asked = folder.statuses(of_folder, |_, status| {
            let status = match status {
                Ok(status) => Ok(Some(status)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            };
            let number = next.next().copied();
            if let Some(slot) = number.and_then(|number| found.get_mut(number)) {
                *slot = status;
            }
        });
    }
    files.iter().zip(found)
}
