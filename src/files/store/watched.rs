//! The names and ids of all session files, kept between calls. They are current at each call, since the platform
//! reports each change at once (session-file.md §5.4). This is used only for large session directories, and not where
//! other machines may change files.

use super::file_names::{EXTENSION, is_hidden, is_session_file};
use super::listing;
use crate::os::file::{Folder, Identity, Location, Status};
use crate::os::reports::{Report, ReportKind, Reports, WatchNumber};
use hashbrown::{DefaultHashBuilder, HashTable};
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::hash::BuildHasher;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use treelined_core::budget::KNOWN_FILES_BYTES;

/// The number of bytes that one file takes, besides its name and its id.
const PER_FILE: usize = 320;
/// Reading this many headers is faster than comparing all names.
const FEW_UNREAD: usize = 64;
/// If more files than this have changed, the rows of all files are compared, which takes the same time.
const MOST_TOUCHED: usize = 4096;

/// A file in a watched folder.
type FileName = (WatchNumber, Arc<OsStr>);
type Headers = HashMap<Arc<OsStr>, Option<HeaderId>>;

/// The id in the header of a file. It is valid while the file has this status.
#[derive(Debug)]
struct HeaderId {
    status: Status,
    id: Option<Arc<str>>,
}

#[derive(Debug)]
struct WatchedFolder {
    folder: Arc<Folder>,
    /// The session files of the folder. The value is `None` for a file whose header was never read.
    files: Headers,
}

#[derive(Debug)]
struct FileWithId {
    id: Arc<str>,
    file: FileName,
}

/// The session files of a session directory.
#[derive(Debug)]
pub(super) struct Watched {
    reports: Reports,
    root: WatchNumber,
    /// Identifies the directory, since the system does not report that an open folder is removed.
    root_identity: Identity,
    folders: HashMap<WatchNumber, WatchedFolder>,
    by_id: HashTable<FileWithId>,
    hasher: DefaultHashBuilder,
    /// The files whose header was not read, or may have changed since.
    unread: Vec<FileName>,
    /// The files that may have changed since the rows were made; `None` if every file may have changed.
    touched: Option<HashSet<FileName>>,
    bytes: usize,
}

/// The facts about the session files that are kept between calls.
#[derive(Default)]
pub(super) struct Watching {
    /// `None` while the directory is read at each call.
    pub(super) known: Option<Watched>,
    pub(super) remembered: Remembered,
    /// Whether nothing is kept, because the platform does not report changes or there are too many files.
    pub(super) is_refused: bool,
}

/// The ids of files. These ids are kept after reports were lost.
#[derive(Debug, Default)]
pub(super) struct Remembered(HashMap<PathBuf, Headers>);

impl Watched {
    /// Begins to watch the session directory. [`Self::add_folder`] adds the directory and its folders.
    pub(super) fn start(root: &Arc<Folder>) -> io::Result<Self> {
        let reports = Reports::start()?;
        let number = reports.add(root)?;
        let folder = WatchedFolder {
            folder: Arc::clone(root),
            files: HashMap::new(),
        };
        Ok(Self {
            reports,
            root: number,
            root_identity: root.identity()?,
            folders: HashMap::from([(number, folder)]),
            by_id: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            unread: Vec::new(),
            touched: None,
            bytes: 0,
        })
    }

    /// Watches a folder. Its files must be listed after this call.
    pub(super) fn watch_folder(&mut self, folder: &Arc<Folder>) -> io::Result<WatchNumber> {
        let number = self.reports.add(folder)?;
        self.folders.entry(number).or_insert_with(|| WatchedFolder {
            folder: Arc::clone(folder),
            files: HashMap::new(),
        });
        Ok(number)
    }

    /// Adds the files of a folder. Fails if all files together need too much memory.
    pub(super) fn add_files<'n>(
        &mut self,
        number: WatchNumber,
        names: impl Iterator<Item = &'n OsStr>,
        remembered: &mut Remembered,
    ) -> io::Result<()> {
        let Some(known) = self.folders.get_mut(&number) else {
            return Ok(());
        };
        let mut headers = remembered.0.remove(known.folder.path()).unwrap_or_default();
        for name in names {
            self.bytes += PER_FILE + name.len();
            let name: Arc<OsStr> = Arc::from(name);
            let header = headers.remove(&name).flatten();
            known.files.insert(Arc::clone(&name), header);
            self.unread.push((number, name));
        }
        match self.bytes <= KNOWN_FILES_BYTES {
            true => Ok(()),
            false => Err(io::ErrorKind::OutOfMemory.into()),
        }
    }

    /// Applies the reports of changes. Returns false if the directory must be read again. `open` opens a new folder of
    /// the session directory.
    pub(super) fn catch_up(&mut self, open: impl Fn(&OsStr) -> Option<Arc<Folder>>) -> bool {
        let (mut new_folders, mut is_whole) = (Vec::new(), true);
        let (mut files, root) = (Vec::new(), self.root);
        let take = |report: Report| match report.kind {
            ReportKind::File if is_session_file(&report.name) => {
                files.push((report.folder, report.name));
            }
            _ if report.folder != root || is_hidden(&report.name) => {}
            ReportKind::File => {}
            // A folder with the name of a session file cannot hold session files.
            ReportKind::NewFolder if is_session_file(&report.name) => {}
            ReportKind::NewFolder => new_folders.push(report.name),
            ReportKind::OldFolder => is_whole = false,
        };
        let root = self.folders.get(&self.root).map(|known| &known.folder);
        let is_there = root.is_some_and(|root| root.is_still(self.root_identity));
        if !self.reports.take(take) || !is_whole || !is_there {
            return false;
        }
        for (number, name) in files {
            self.touch(number, Arc::from(name));
        }
        new_folders.into_iter().all(|name| match open(&name) {
            Some(folder) => self.add_folder(&folder).is_ok(),
            // The name is a link, or the folder was removed again.
            None => true,
        })
    }

    fn add_folder(&mut self, folder: &Arc<Folder>) -> io::Result<()> {
        let number = self.watch_folder(folder)?;
        for (name, _) in folder.list()? {
            if is_session_file(&name) {
                self.touch(number, Arc::from(name));
            }
        }
        Ok(())
    }

    /// Records that a file may have been added, changed or removed.
    fn touch(&mut self, number: WatchNumber, name: Arc<OsStr>) {
        let Some(known) = self.folders.get_mut(&number) else {
            return;
        };
        if !known.files.contains_key(&name) {
            self.bytes += PER_FILE + name.len();
            known.files.insert(Arc::clone(&name), None);
        }
        if let Some(touched) = &mut self.touched {
            touched.insert((number, Arc::clone(&name)));
            if touched.len() > MOST_TOUCHED {
                self.touched = None;
            }
        }
        let is_last = |file: &FileName| file.0 == number && file.1 == name;
        if !self.unread.last().is_some_and(is_last) {
            self.unread.push((number, name));
        }
        if self.unread.len() > 2 * (self.bytes / PER_FILE).max(MOST_TOUCHED) {
            let mut seen = HashSet::new();
            self.unread.retain(|file| seen.insert(file.clone()));
        }
    }

    /// Whether the kept facts take more memory than they may.
    pub(super) fn is_too_large(&self) -> bool {
        self.bytes > KNOWN_FILES_BYTES
    }

    /// The files that may have changed since the last call; `None` if every file may have changed.
    pub(super) fn take_touched(&mut self) -> Option<Vec<Location>> {
        let touched = self.touched.replace(HashSet::new())?;
        let located = touched.iter().filter_map(|file| self.location(file));
        Some(located.collect())
    }

    /// Call this if no rows were made from the result of [`Self::take_touched`].
    pub(super) fn forget_touched(&mut self) {
        self.touched = None;
    }

    fn location(&self, (number, name): &FileName) -> Option<Location> {
        let folder = Arc::clone(&self.folders.get(number)?.folder);
        let name = name.as_ref().to_owned();
        Some(Location { folder, name })
    }

    /// The files that have this id in their headers. If the name of such a file contains the id, only the files that
    /// are known so far are returned: the headers of other files need not be read.
    pub(super) fn with_id(&mut self, id: &str) -> Vec<Location> {
        let (ending, plain) = (format!("_{id}{EXTENSION}"), format!("{id}{EXTENSION}"));
        let is_named = |name: &OsStr| {
            let name = name.as_encoded_bytes();
            name.ends_with(ending.as_bytes()) || name == plain.as_bytes()
        };
        if self.unread.len() > FEW_UNREAD {
            let of_folder = |(number, known): (&WatchNumber, &WatchedFolder)| {
                let names = known.files.keys().filter(|name| is_named(name));
                let number = *number;
                names
                    .map(move |name| (number, Arc::clone(name)))
                    .collect::<Vec<_>>()
            };
            let named: Vec<FileName> = self.folders.iter().flat_map(of_folder).collect();
            named.iter().for_each(|file| self.read(file));
            let found = self.find(id);
            if found.iter().any(|location| is_named(&location.name)) {
                return found;
            }
        }
        while let Some(file) = self.unread.pop() {
            self.read(&file);
        }
        self.find(id)
    }

    fn find(&self, id: &str) -> Vec<Location> {
        let found = self.by_id.iter_hash(self.hasher.hash_one(id));
        let found = found.filter(|known| &*known.id == id);
        found
            .filter_map(|known| self.location(&known.file))
            .collect()
    }

    /// Reads the header of a file, unless it was read while the file had the same status.
    fn read(&mut self, file: &FileName) {
        let Some(location) = self.location(file) else {
            return;
        };
        let Some(known) = self.folders.get_mut(&file.0) else {
            return;
        };
        let before = known.files.remove(&file.1);
        let old = before.as_ref().and_then(Option::as_ref);
        let Ok(status) = location.status() else {
            let name = PER_FILE + file.1.len();
            self.bytes = self.bytes.saturating_sub(name);
            let id = old.and_then(|old| old.id.clone());
            return self.reindex(file, id, None);
        };
        let before_id = old.and_then(|old| old.id.clone());
        let is_same = old.is_some_and(|old| old.status == status);
        let id = match is_same {
            true => before_id.clone(),
            false => listing::header_id(&location).map(Arc::from),
        };
        let header = HeaderId {
            status,
            id: id.clone(),
        };
        known.files.insert(Arc::clone(&file.1), Some(header));
        self.reindex(file, before_id, id);
    }

    fn reindex(&mut self, file: &FileName, before: Option<Arc<str>>, id: Option<Arc<str>>) {
        let hasher = &self.hasher;
        for old in [before, id.clone()].into_iter().flatten() {
            let is_it = |known: &FileWithId| known.file == *file;
            if let Ok(known) = self.by_id.find_entry(hasher.hash_one(&*old), is_it) {
                self.bytes = self.bytes.saturating_sub(old.len());
                known.remove();
            }
        }
        if let Some(id) = id {
            let hash = hasher.hash_one(&*id);
            self.bytes += id.len();
            let file = file.clone();
            let again = |known: &FileWithId| hasher.hash_one(&*known.id);
            self.by_id
                .insert_unique(hash, FileWithId { id, file }, again);
        }
    }

    /// The ids, each with the status of its file, for a later start.
    pub(super) fn remember(self) -> Remembered {
        let folders = self.folders.into_values();
        let of_folder = |known: WatchedFolder| (known.folder.path().to_owned(), known.files);
        Remembered(folders.map(of_folder).collect())
    }
}
