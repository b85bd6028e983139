//! The session directory: finds, lists, makes and deletes session files (session-file.md §1, §5). This module knows
//! files and headers, but not the trees of open sessions.

pub mod catalogue;
pub mod conversations;
pub mod family;
mod file_names;
mod finding;
mod imported;
pub mod listing;
mod marked_rows;
mod marking;
pub mod marks;
pub mod moving;
pub mod native;
mod relocating;
mod ticks;
pub mod trash;
pub mod watch;
pub mod watch_folder;
mod watched;

use crate::blocking::begin_thread;
use crate::cache::Cache;
use crate::cancel::Cancel;
use crate::clock;
use crate::kept::Kept;
use crate::lock::lock;
use crate::log::header::Header;
use crate::log::{Log, OpenedLog};
use crate::os::file::{Folder, FolderLock, Location, Status};
use crate::os::heap;
use crate::os::temporary;
use catalogue::{Catalogue, Rows};
use file_names::{file_name, folder_name};
use marked_rows::MarkedRows;
use marks::ReadMarks;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, Weak};
use std::time::Duration;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::id::{self, SessionId};
use watch_folder::FolderWatch;
use watched::Watching;

/// How long a process that ends waits for writes to the cache.
const KEEPING: Duration = Duration::from_secs(2);

/// Lends this number of bytes of memory until the returned value is dropped; `None` if too few bytes are free.
pub type Lender = dyn Fn(u64) -> Option<Box<dyn Send>> + Send + Sync;

/// The bytes of memory that an update of the search index needs, for the segment that it writes and for the counts of
/// its threads.
const INDEX_BYTES: u64 = 64 << 20;

/// The session directory.
pub struct Store {
    path: PathBuf,
    /// The folder of the session directory. It is opened once, and everything in it is reached through the open folder.
    root: OnceLock<Arc<Folder>>,
    /// The folders in use, which their sessions share.
    folders: Mutex<HashMap<OsString, Weak<Folder>>>,
    catalogue: Mutex<Catalogue>,
    /// The rows of the sessions in the trash folder.
    trashed: Mutex<Catalogue>,
    keeping: Arc<CacheWrites>,
    /// Folders from which this process has removed abandoned files.
    tidied: Mutex<HashSet<PathBuf>>,
    /// The session id in the header of each file. A lost id is read again.
    headers: Mutex<HashMap<PathBuf, (Status, Option<String>)>>,
    /// The number of session files at the last reading of the directory.
    count: AtomicUsize,
    watching: Mutex<Watching>,
    marks: ReadMarks,
    marked_rows: MarkedRows,
    kept: Arc<Kept>,
    /// Lends the memory of the search index while it is updated.
    lender: OnceLock<Box<Lender>>,
    /// Whether the search index is being updated.
    indexing: Arc<AtomicBool>,
    /// This is cancelled when the process ends.
    ending: Cancel,
}

/// Counts the threads that are writing to the cache.
#[derive(Default)]
struct CacheWrites {
    running: Mutex<usize>,
    done: Condvar,
}

impl Store {
    /// The session directory at `path`, which need not exist yet. Nothing is read or made here.
    pub fn new(path: PathBuf) -> Self {
        Self::within(path, Kept::default())
    }

    /// Like [`Self::new`]. `kept` limits all memory that is kept between calls.
    pub fn within(path: PathBuf, kept: Kept) -> Self {
        Self {
            path,
            kept: Arc::new(kept),
            lender: OnceLock::new(),
            root: OnceLock::new(),
            folders: Mutex::default(),
            catalogue: Mutex::default(),
            trashed: Mutex::default(),
            keeping: Arc::default(),
            tidied: Mutex::default(),
            headers: Mutex::default(),
            count: AtomicUsize::new(0),
            watching: Mutex::default(),
            marks: ReadMarks::default(),
            marked_rows: MarkedRows::default(),
            indexing: Arc::default(),
            ending: Cancel::new(),
        }
    }

    /// The location of a new session's file.
    pub fn place(&self, header: &Header) -> Result<Location> {
        let root = self.root()?;
        let name = folder_name(&header.cwd);
        let made = root.make_subfolder(&name);
        made.map_err(|error| self.failed("create a folder in", &error))?;
        let folder = self
            .subfolder(&root, &name)
            .map_err(|error| self.failed("open a folder in", &error))?;
        Ok(Location {
            folder,
            name: file_name(header).into(),
        })
    }

    /// Watches the session files, whichever process changes them. Makes the session directory if it does not exist.
    pub fn watch(&self, changed: impl Fn() + Send + Sync + 'static) -> Result<FolderWatch> {
        let root = self.root()?;
        FolderWatch::start(root.path(), changed).map_err(|error| {
            let why = format!("the session directory cannot be watched: {error}");
            Error::new(Kind::StorageIo, why)
        })
    }

    /// The path that [`Self::place`] would give to the file of a new session; makes nothing.
    pub fn place_to_be(&self, header: &Header) -> PathBuf {
        self.path()
            .join(folder_name(&header.cwd))
            .join(file_name(header))
    }

    /// Reserves the id of a new session. Fails with `sessionExists` if the header of any file has it. While the
    /// returned lock is held, no other process can reserve an id.
    pub fn claim(&self, id: &str) -> Result<FolderLock> {
        let lock = self.root()?.lock()?;
        match self.find(id) {
            Ok(_) => Err(exists(id)),
            Err(error) if error.kind == Kind::SessionNotFound => Ok(lock),
            Err(error) => Err(error),
        }
    }

    /// Opens the file of a session, using its side index. Opening only reads the session file. If a new index is
    /// worthwhile, it is written in the background.
    pub fn open(&self, location: Location, cancel: &Cancel) -> Result<OpenedLog> {
        let Some(cache) = self.cache() else {
            return Log::open_unless(location, cancel);
        };
        let (opened, index) = Log::open_indexed(location, &cache, cancel)?;
        if let Some(index) = index {
            self.keep(move || index.write(&cache));
        }
        Ok(opened)
    }

    /// The cache; `None` if there is no session directory.
    pub fn cache(&self) -> Option<Cache> {
        self.root_if_there().ok()?.map(Cache::of)
    }

    /// Runs `write`, which writes to the cache, on its own thread.
    fn keep(&self, write: impl FnOnce() + Send + 'static) {
        let running = CacheWriteGuard::begin(&self.keeping);
        let spawned = begin_thread("cache", move || {
            let _running = running;
            write();
        });
        if let Err(error) = spawned {
            tracing::info!(%error, "nothing is kept in the cache");
        }
    }

    /// Like [`Store::tidy`], but only the first time for each folder.
    pub fn tidy_once(&self, folder: &Arc<Folder>) {
        let mut tidied = lock(&self.tidied);
        let is_first = tidied.insert(folder.path().to_owned());
        drop(tidied);
        if is_first {
            self.tidy(Arc::clone(folder));
        }
    }

    /// Removes unfinished files of killed processes from a folder, in the background.
    pub fn tidy(&self, folder: Arc<Folder>) {
        self.keep(move || {
            if let Err(error) = temporary::remove_abandoned(&folder) {
                tracing::info!(%error, "a folder could not be tidied up");
            }
        });
    }

    /// Runs `work`, which updates the search index, on its own thread, unless such work is running. The work is
    /// cancelled when the process ends.
    pub fn index_in_background(&self, work: impl FnOnce(&Cancel) + Send + 'static) {
        if self.indexing.swap(true, Ordering::AcqRel) {
            return;
        }
        let (indexing, ending) = (
            IndexingGuard(Arc::clone(&self.indexing)),
            self.ending.clone(),
        );
        let lent = self.lender.get().map(|lender| lender(INDEX_BYTES));
        // The next search tries again.
        if lent.as_ref().is_some_and(Option::is_none) {
            return;
        }
        self.keep(move || {
            work(&ending);
            drop((indexing, lent));
            heap::freed(heap::WORTHWHILE);
        });
    }

    /// Ends the work in the background. Its finished parts remain.
    pub fn end(&self) {
        self.ending.cancel();
        self.settle();
    }

    /// Waits, for a limited time, until all writes to the cache have ended.
    pub fn settle(&self) {
        let running = self.keeping.lock();
        let waited = self
            .keeping
            .done
            .wait_timeout_while(running, KEEPING, |running| *running > 0);
        drop(waited);
    }

    /// Sets the lender of the memory for updates of the search index.
    pub fn borrow_from(&self, lender: Box<Lender>) {
        let _set_before = self.lender.set(lender);
    }

    /// The memory that is kept between calls.
    pub fn kept(&self) -> &Arc<Kept> {
        &self.kept
    }

    /// The rows of all session files, sorted by last activity. Files that are not sessions have rows too.
    pub fn list(&self) -> Result<Rows> {
        let rows = self.rows_and(true)?;
        if let Some(cache) = self.cache()
            && let Some(rows) = self.catalogue().worth_keeping()
        {
            self.keep(move || catalogue::save(&cache, &rows));
        }
        Ok(rows)
    }

    /// Like [`Self::list`], but writes nothing to the cache.
    pub fn rows(&self) -> Result<Rows> {
        self.rows_and(false)
    }

    fn rows_and(&self, keeps: bool) -> Result<Rows> {
        let cache = self.cache();
        let open = |location| self.open(location, &Cancel::new());
        // The rows are listed while the lock is held, since another list may be waiting for the lock and needs current
        // rows.
        let mut catalogue = self.catalogue();
        if let Some(touched) = self.touched()? {
            let rows = catalogue.update(&touched, open);
            self.kept.set_rows(catalogue.bytes());
            drop(catalogue);
            return Ok(self.with_marks(rows));
        }
        let files = self.files().inspect_err(|_| {
            if let Some(known) = &mut lock(&self.watching).known {
                known.forget_touched();
            }
        })?;
        let rows = catalogue.list(&files, cache.as_ref(), keeps, open);
        self.kept.set_rows(catalogue.bytes());
        drop(catalogue);
        Ok(self.with_marks(rows))
    }

    /// The session directory; `None` if it does not exist.
    fn root_if_there(&self) -> Result<Option<Arc<Folder>>> {
        if let Some(root) = self.root.get() {
            return Ok(Some(Arc::clone(root)));
        }
        match Folder::open_to_stay(&self.path) {
            Ok(root) => Ok(Some(self.adopt(root))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed("open", &error)),
        }
    }

    fn root(&self) -> Result<Arc<Folder>> {
        if let Some(root) = self.root.get() {
            return Ok(Arc::clone(root));
        }
        let root = Folder::open_or_create(&self.path);
        Ok(self.adopt(root.map_err(|error| self.failed("create", &error))?))
    }

    /// Warns once if other users have permissions for the session directory. The permissions are not changed, since the
    /// user may have chosen them.
    fn adopt(&self, root: Folder) -> Arc<Folder> {
        Arc::clone(self.root.get_or_init(|| {
            if root.mode().is_ok_and(|mode| mode & 0o077 != 0) {
                let folder = self.path.display();
                tracing::warn!(
                    "the session directory {folder} can be read or changed by other users: `chmod 700 {folder}` keeps them out"
                );
            }
            Arc::new(root)
        }))
    }

    fn subfolder(&self, root: &Arc<Folder>, name: &OsStr) -> io::Result<Arc<Folder>> {
        let mut folders = lock(&self.folders);
        if let Some(folder) = folders.get(name).and_then(Weak::upgrade)
            && folder.identity()? == root.status(name)?.identity
        {
            return Ok(folder);
        }
        folders.retain(|_, folder| folder.strong_count() > 0);
        let folder = Arc::new(root.subfolder(name)?);
        folders.insert(name.to_owned(), Arc::downgrade(&folder));
        Ok(folder)
    }

    fn catalogue(&self) -> MutexGuard<'_, Catalogue> {
        lock(&self.catalogue)
    }

    fn failed(&self, action: &str, error: &io::Error) -> Error {
        Error::io(&format!("{action} {}", self.path.display()), error)
    }
}

impl CacheWrites {
    fn lock(&self) -> MutexGuard<'_, usize> {
        lock(&self.running)
    }
}

/// When this is dropped, the search index may be updated again.
struct IndexingGuard(Arc<AtomicBool>);

impl Drop for IndexingGuard {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Counts as a thread that writes to the cache until it is dropped.
struct CacheWriteGuard(Arc<CacheWrites>);

impl CacheWriteGuard {
    fn begin(keeping: &Arc<CacheWrites>) -> Self {
        *keeping.lock() += 1;
        Self(Arc::clone(keeping))
    }
}

impl Drop for CacheWriteGuard {
    fn drop(&mut self) {
        *self.0.lock() -= 1;
        self.0.done.notify_all();
    }
}

/// The error `sessionExists`.
pub fn exists(id: &str) -> Error {
    Error::new(
        Kind::SessionExists,
        format!("there is a session {id:?} already: open it, or choose another id"),
    )
}

/// The id of a new session: the id that the client has chosen, if it is well formed, or a new one.
pub fn choose_id(chosen: Option<&str>) -> Result<SessionId> {
    match chosen {
        None => Ok(clock::new_session_id()),
        Some(id) if id::is_valid(id) => Ok(SessionId::new(id)),
        Some(_) => Err(Error::invalid_params(
            "sessionId",
            "must be letters, digits, '.', '_' or '-', at most 128 bytes, beginning and ending with a letter or digit",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::catalogue::CatalogueRow;
    use crate::store::listing::Listing;
    use std::path::Path;

    #[test]
    fn folders_are_named_after_the_working_directory() {
        for (cwd, name) in [
            ("/tmp/pr oj:x\\y/z", "--tmp-pr oj-x-y-z--"),
            ("/", "----"),
            ("C:\\work", "--C--work--"),
            ("../../etc", "--..-..-etc--"),
            ("/a\u{1b}[2J\n\u{9b}\u{202e}z", "--a-[2J---z--"),
        ] {
            assert_eq!(folder_name(cwd), OsStr::new(name), "{cwd}");
        }
        assert!(folder_name(&"ä/".repeat(500)).len() <= 255);
    }

    /// The rows that another process lists, using the saved rows.
    fn listed(path: &Path) -> Vec<Listing> {
        let store = Store::new(path.to_owned());
        let rows = store.list().unwrap();
        store.settle();
        let mut listed: Vec<Listing> = rows.iter().map(|row| row.listing.clone()).collect();
        listed.sort_by(|a, b| a.path.cmp(&b.path));
        listed
    }

    #[test]
    fn a_list_is_the_same_with_and_without_what_was_kept() {
        use std::fs;
        let folder = tempfile::tempdir().unwrap();
        let of = |n: usize| folder.path().join("--c--").join(format!("{n}.jsonl"));
        let write = |n: usize, messages: usize| {
            let mut text =
                format!("{{\"type\":\"session\",\"version\":3,\"id\":\"s{n}\",\"cwd\":\"/c\"}}\n");
            for message in 0..messages {
                text.push_str(&format!(
                    "{{\"type\":\"message\",\"id\":\"m{message}\",\"parentId\":null,\"message\":{{\"role\":\"user\",\"content\":\"{}\"}}}}\n",
                    "hello ".repeat(2000)
                ));
            }
            fs::write(of(n), text).unwrap();
        };
        fs::create_dir(folder.path().join("--c--")).unwrap();
        for n in 0..40 {
            write(n, n % 7);
        }
        fs::write(folder.path().join("broken.jsonl"), "{}\n").unwrap();
        let first = listed(folder.path());
        let kept = folder.path().join(".cache").join("sessions.rows");
        assert!(kept.exists() && first.len() == 41);
        assert_eq!(listed(folder.path()), first);

        // After the rows were saved, files are changed, removed and added.
        write(3, 9);
        fs::remove_file(of(4)).unwrap();
        write(50, 2);
        let second = listed(folder.path());
        assert_eq!(second.len(), 41);
        fs::remove_dir_all(folder.path().join(".cache")).unwrap();
        assert_eq!(listed(folder.path()), second);
    }

    /// A list uses saved rows instead of reading files. A forged row proves this.
    #[test]
    fn a_list_is_made_of_what_was_kept() {
        let folder = tempfile::tempdir().unwrap();
        let header = r#"{"type":"session","version":3,"id":"a","cwd":"/c"}"#;
        std::fs::write(folder.path().join("s.jsonl"), format!("{header}\n")).unwrap();
        let store = Store::new(folder.path().to_owned());
        let marked = store
            .list()
            .unwrap()
            .iter()
            .map(|row| {
                let mut listing = row.listing.clone();
                listing.name = Some("kept".to_owned());
                Arc::new(CatalogueRow::new(row.status, listing))
            })
            .collect::<Vec<_>>();
        store.settle();
        catalogue::save(&store.cache().unwrap(), &marked);
        assert_eq!(listed(folder.path())[0].name.as_deref(), Some("kept"));
        std::fs::remove_dir_all(folder.path().join(".cache")).unwrap();
        assert_eq!(listed(folder.path())[0].name, None);
    }

    #[test]
    fn the_index_is_updated_only_with_memory() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().to_owned());
        let (has_memory, updates) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicUsize::new(0)),
        );
        let lends = Arc::clone(&has_memory);
        store.borrow_from(Box::new(move |_| {
            let lent: Box<dyn Send> = Box::new(());
            lends.load(Ordering::Acquire).then_some(lent)
        }));
        let update = || {
            let updates = Arc::clone(&updates);
            store.index_in_background(move |_| {
                updates.fetch_add(1, Ordering::AcqRel);
            });
            store.settle();
        };
        update();
        assert_eq!(updates.load(Ordering::Acquire), 0);
        has_memory.store(true, Ordering::Release);
        update();
        assert_eq!(
            updates.load(Ordering::Acquire),
            1,
            "a later search updates it"
        );
    }
}
