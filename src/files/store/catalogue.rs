//! The rows of `list_sessions`, kept in memory between lists and in the cache between processes
//! (session-file.md §5).
//!
//! A row is valid for a file with the same path, identity, length and times, including the time of last change. A file
//! without a valid row is read. If the cache is lost or damaged, all files are read.

use crate::cache::{Cache, FormatName, get_status, put_status};
use crate::log::OpenedLog;
use crate::log::header::Header;
use crate::log::index;
use crate::os;
use crate::os::file::{Folder, Location, Status};
use crate::parallel::{self, ThreadPlan};
use crate::store::listing::{Listing, RowScanner};
use crate::store::marks::SessionMarks;
use crate::store::native::{ContinuedIn, ImportSource, Recorded};
use hashbrown::HashSet;
use std::borrow::Borrow;
use std::cmp::Reverse;
use std::ffi::{OsStr, OsString};
use std::hash::{Hash, Hasher};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use treelined_core::bytes::{Cursor, Fields};
use treelined_core::error::{Kind, Result};
use treelined_core::tags::{GitPlace, Sorting};
use treelined_core::timestamp::Millis;

/// The version of the format. It must change with every change of [`save`].
const FORMAT: &FormatName = b"treelined rows12";
const NAME: &str = "sessions.rows";
/// After this many bytes of files were read, the rows are saved again.
const WORTH_KEEPING: u64 = 1 << 20;
/// A list saves its rows when it has read this many bytes of files, and again each time this number has doubled.
const PART: u64 = if cfg!(test) { 1 << 10 } else { 8 << 20 };
/// The bytes of a usual row in memory, with its texts, and with the name and the id of its file: measured for 100,000
/// sessions.
pub const ROW_BYTES: usize = 1 << 10;
/// The most threads that read files.
const MAX_THREADS: usize = 8;
/// The number of files whose status one thread reads at a time. For fewer files, another thread is not worthwhile.
const STATUSES: usize = 256;

/// A row, and the status of its file.
#[derive(Debug)]
pub struct CatalogueRow {
    pub status: Status,
    pub listing: Listing,
    /// The marks that the session has on this machine. They are not in its file.
    pub marks: SessionMarks,
}

impl CatalogueRow {
    pub fn new(status: Status, listing: Listing) -> Self {
        Self {
            status,
            listing,
            marks: SessionMarks::default(),
        }
    }

    /// The same row with these marks.
    pub(crate) fn with_marks(&self, marks: &SessionMarks) -> Self {
        Self {
            marks: marks.clone(),
            ..Self::new(self.status, self.listing.clone())
        }
    }

    /// The tags of the session.
    pub fn tags(&self) -> Vec<String> {
        self.marks.tags(&self.listing.sorting.tags)
    }

    /// The sort key: last activity, then creation, then path (session-file.md §5).
    pub fn key(&self) -> (Reverse<Millis>, Reverse<Millis>, &OsStr) {
        let Listing {
            modified,
            created,
            path,
            ..
        } = &self.listing;
        (Reverse(*modified), Reverse(*created), path.as_os_str())
    }
}

/// The files of one folder.
pub(crate) struct FolderFiles {
    pub folder: Arc<Folder>,
    pub names: Vec<OsString>,
}

/// A row that is compared by the bytes of its path, since comparing the components of two paths takes longer than a
/// `stat`.
#[derive(Debug)]
struct RowByPath(Arc<CatalogueRow>);

impl RowByPath {
    fn path(&self) -> &OsStr {
        self.0.listing.path.as_os_str()
    }
}

impl Borrow<OsStr> for RowByPath {
    fn borrow(&self) -> &OsStr {
        self.path()
    }
}

impl Hash for RowByPath {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.path().hash(state);
    }
}

impl PartialEq for RowByPath {
    fn eq(&self, other: &Self) -> bool {
        self.path() == other.path()
    }
}

impl Eq for RowByPath {}

/// The rows of all sessions at one time, sorted by [`CatalogueRow::key`].
pub type Rows = Arc<Vec<Arc<CatalogueRow>>>;

/// The rows of all sessions.
#[derive(Default)]
pub(crate) struct Catalogue {
    rows: HashSet<RowByPath>,
    /// The rows sorted by [`CatalogueRow::key`].
    in_order: Rows,
    /// Whether the saved rows were loaded already.
    is_loaded: bool,
    /// The number of bytes of files that were read since the rows were saved.
    unkept: u64,
}

/// The result of comparing files with their rows.
#[derive(Default)]
struct StatusChanges {
    /// Rows of unchanged files.
    known: Vec<Arc<CatalogueRow>>,
    changed: Vec<(Location, Status)>,
}

impl Catalogue {
    /// The rows of these files, sorted by last activity. A file is read once (with `open` if necessary), and again only
    /// if it has changed. A file that is not a session has a row too. With `keeps`, a list saves its rows after each
    /// part. So if a list is killed, for example when an agent kills a slow hook, the next list can use these rows.
    pub(crate) fn list(
        &mut self,
        files: &[FolderFiles],
        cache: Option<&Cache>,
        keeps: bool,
        open: impl Fn(Location) -> Result<OpenedLog> + Sync,
    ) -> Rows {
        if !std::mem::replace(&mut self.is_loaded, true) {
            self.replace(cache.map(load).unwrap_or_default());
        }
        let (known, mut changed) = self.look_at(files);
        // The largest file comes first, so that no thread has a large file left at the end.
        changed.sort_by_key(|(_, status)| Reverse(status.size));
        let (mut made, mut rest) = (Vec::new(), &*changed);
        while !rest.is_empty() {
            let (part, later) = rest.split_at(part_of(rest, read_for(&made)));
            let make = |scanner: &mut RowScanner, number: usize| {
                let (location, status) = part.get(number)?;
                let listing = row_of(scanner, location, *status, &open)?;
                Some(Arc::new(CatalogueRow::new(*status, listing)))
            };
            let rows = in_parallel(part.len(), RowScanner::default, make);
            // Files without a row have been removed, or are not regular files.
            made.extend(rows.into_iter().flatten());
            rest = later;
            if let Some(cache) = cache.filter(|_| keeps && !rest.is_empty()) {
                save(cache, &sorted(known.iter().chain(&made)));
            }
        }
        if made.is_empty() && known.len() == self.in_order.len() {
            return Arc::clone(&self.in_order);
        }
        self.unkept += read_for(&made);
        // The unchanged rows are in order already, so sorting is fast.
        let known: HashSet<*const CatalogueRow> = known.iter().map(Arc::as_ptr).collect();
        let kept = self.in_order.iter();
        let kept = kept.filter(|row| known.contains(&Arc::as_ptr(row)));
        let mut rows: Vec<Arc<CatalogueRow>> = kept.cloned().collect();
        rows.extend(made);
        rows.sort_by(|a, b| a.key().cmp(&b.key()));
        self.replace(rows);
        Arc::clone(&self.in_order)
    }

    /// The rows of all files, if only the files `touched` may have changed since the last call. A file that is gone has
    /// no row.
    pub(crate) fn update(
        &mut self,
        touched: &[Location],
        open: impl Fn(Location) -> Result<OpenedLog> + Sync,
    ) -> Rows {
        let changed = |location: &&Location| {
            let path = location.path();
            let old = self.rows.get(path.as_os_str()).map(|row| row.0.status);
            old != location.status().ok()
        };
        let changed: Vec<&Location> = touched.iter().filter(changed).collect();
        let make = |scanner: &mut RowScanner, number: usize| {
            let location = changed.get(number)?;
            let status = location.status().ok()?;
            let listing = row_of(scanner, location, status, &open)?;
            Some(Arc::new(CatalogueRow::new(status, listing)))
        };
        let made = in_parallel(changed.len(), RowScanner::default, make);
        for (location, row) in changed.iter().zip(made) {
            self.unkept += row.as_ref().map_or(0, |row| row.status.size.max(1));
            let old = self.rows.take(location.path().as_os_str());
            self.replace_one(old.map(|old| old.0), row);
        }
        Arc::clone(&self.in_order)
    }

    fn replace_one(&mut self, old: Option<Arc<CatalogueRow>>, new: Option<Arc<CatalogueRow>>) {
        let rows = Arc::make_mut(&mut self.in_order);
        let place = |rows: &[Arc<CatalogueRow>], row: &CatalogueRow| {
            rows.binary_search_by(|other| other.key().cmp(&row.key()))
        };
        if let Some(Ok(at)) = old.map(|old| place(rows, &old)) {
            rows.remove(at);
        }
        if let Some(new) = new {
            let (Ok(at) | Err(at)) = place(rows, &new);
            rows.insert(at, Arc::clone(&new));
            self.rows.insert(RowByPath(new));
        }
    }

    /// The approximate bytes of the rows in memory, and of the names and ids of their files.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.len().saturating_mul(ROW_BYTES)
    }

    /// Replaces all rows with `rows`, which must be in order.
    fn replace(&mut self, rows: Vec<Arc<CatalogueRow>>) {
        self.rows = rows.iter().cloned().map(RowByPath).collect();
        self.in_order = Arc::new(rows);
    }

    /// Returns all rows if at least [`WORTH_KEEPING`] bytes of files were read since the rows were saved, and sets the
    /// count of bytes to 0. Otherwise returns `None`.
    pub(crate) fn worth_keeping(&mut self) -> Option<Rows> {
        let is_worth_it = self.unkept >= WORTH_KEEPING;
        is_worth_it.then(|| {
            self.unkept = 0;
            Arc::clone(&self.in_order)
        })
    }

    /// Compares the status of each file with its row.
    fn look_at(&self, files: &[FolderFiles]) -> (Vec<Arc<CatalogueRow>>, Vec<(Location, Status)>) {
        let of_folder = |files| {
            let FolderFiles { folder, names }: &FolderFiles = files;
            names.chunks(STATUSES).map(move |names| (folder, names))
        };
        let tasks: Vec<(&Arc<Folder>, &[OsString])> = files.iter().flat_map(of_folder).collect();
        let look = |(): &mut (), number: usize| {
            let mut seen = StatusChanges::default();
            if let Some((folder, names)) = tasks.get(number) {
                self.look_at_some(folder, names, &mut seen);
            }
            seen
        };
        let mut known = Vec::with_capacity(self.rows.len());
        let mut changed = Vec::new();
        for seen in in_parallel(tasks.len(), || (), look) {
            known.extend(seen.known);
            changed.extend(seen.changed);
        }
        (known, changed)
    }

    fn look_at_some(&self, folder: &Arc<Folder>, names: &[OsString], seen: &mut StatusChanges) {
        let mut path = folder.path().join("").into_os_string().into_encoded_bytes();
        let start = path.len();
        // A missing folder has no files.
        let _gone = folder.statuses(names, |name, status| {
            let Ok(status) = status else {
                return;
            };
            path.truncate(start);
            path.extend_from_slice(name.as_encoded_bytes());
            let known = os::path::from_bytes(&path).and_then(|path| self.rows.get(path));
            match known {
                Some(RowByPath(row)) if row.status == status => seen.known.push(Arc::clone(row)),
                _ => {
                    let folder = Arc::clone(folder);
                    let name = name.to_owned();
                    seen.changed.push((Location { folder, name }, status));
                }
            }
        });
    }
}

/// The number of bytes of the files of these rows.
fn read_for(rows: &[Arc<CatalogueRow>]) -> u64 {
    rows.iter().map(|row| row.status.size.max(1)).sum()
}

/// The number of files that are read before the rows are saved. Each part is as large as all earlier parts together, so
/// that most rows are saved only a few times.
fn part_of(files: &[(Location, Status)], read: u64) -> usize {
    let mut left = PART.max(read);
    let is_in = |(_, status): &&(Location, Status)| {
        let is_in = left > 0;
        left = left.saturating_sub(status.size.max(1));
        is_in
    };
    files.iter().take_while(is_in).count()
}

fn sorted<'r>(rows: impl Iterator<Item = &'r Arc<CatalogueRow>>) -> Vec<Arc<CatalogueRow>> {
    let mut rows: Vec<Arc<CatalogueRow>> = rows.cloned().collect();
    rows.sort_by(|one, other| one.key().cmp(&other.key()));
    rows
}

/// The row of one file; `None` if the file cannot be read at all.
fn row_of(
    scanner: &mut RowScanner,
    location: &Location,
    status: Status,
    open: impl Fn(Location) -> Result<OpenedLog>,
) -> Option<Listing> {
    // For a large file, opening it with its side index is faster than reading it.
    let is_large = status.size >= index::WORTHWHILE;
    let scanned = (!is_large).then(|| scanner.row(location)).flatten();
    scanned.or_else(|| Listing::of(location, open(location.clone())).ok())
}

/// The results of `work` for each number below `count`, in order. Several threads work, each with its own state.
fn in_parallel<S, T: Send>(
    count: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> T + Sync,
) -> Vec<T> {
    let plan = ThreadPlan {
        ahead: count,
        ..ThreadPlan::up_to(MAX_THREADS.min(count))
    };
    let mut all = Vec::with_capacity(count);
    let _never_breaks = parallel::map_in_order(count, plan, state, work, |done| {
        all.push(done);
        ControlFlow::<()>::Continue(())
    });
    all
}

/// The saved rows, in order; empty if they are missing or damaged.
fn load(cache: &Cache) -> Vec<Arc<CatalogueRow>> {
    let read = || {
        let kept = cache.open(NAME, FORMAT)?;
        let bytes = kept.blocks.first()?.read(&kept.file)?;
        let mut fields = Cursor::new(&bytes);
        let rows = fields.list(|fields| get(fields).map(Arc::new))?;
        fields.is_at_end().then_some(rows)
    };
    read().unwrap_or_default()
}

/// Saves the rows for the next process. A failure is logged.
pub(crate) fn save(cache: &Cache, rows: &[Arc<CatalogueRow>]) {
    let mut out = Fields::default();
    out.count(rows.len());
    for row in rows {
        put(&mut out, row);
    }
    if let Err(error) = cache.write(NAME, FORMAT, &[], &[&out.0]) {
        tracing::info!(%error, "the list of sessions could not be saved");
    }
}

fn put(out: &mut Fields, row: &CatalogueRow) {
    let CatalogueRow {
        status,
        listing: row,
        ..
    } = row;
    put_status(out, *status);
    out.bytes(row.path.as_os_str().as_encoded_bytes());
    out.optional(row.header.as_ref(), |out, header| header.put(out));
    out.optional(row.name.as_deref(), Fields::text);
    out.i64(row.created);
    out.i64(row.modified);
    out.u64(row.message_count);
    out.text(&row.first_message);
    out.optional(row.source.as_ref(), |out, source| {
        out.optional(source.tool.as_deref(), Fields::text);
        out.count(source.native_ids.len());
        source.native_ids.iter().for_each(|id| out.text(id));
    });
    out.count(row.recorded.len());
    for record in &row.recorded {
        out.text(&record.native_id);
        out.text(&record.entry_id);
    }
    out.count(row.continued.len());
    for continued in &row.continued {
        out.text(&continued.tool);
        out.optional(continued.native_id.as_deref(), Fields::text);
        out.text(&continued.entry_id);
    }
    let Sorting { tags, git } = &row.sorting;
    out.count(tags.len());
    tags.iter().for_each(|tag| out.text(tag));
    for text in [&git.branch, &git.commit, &git.worktree] {
        out.optional(text.as_deref(), Fields::text);
    }
    out.u8(u8::from(row.problem.is_some()));
}

fn get(fields: &mut Cursor<'_>) -> Option<CatalogueRow> {
    let status = get_status(fields)?;
    let listing = Listing {
        path: PathBuf::from(os::path::from_bytes(fields.bytes()?)?),
        header: fields.optional(Header::get)?,
        name: fields.optional(|fields| Some(fields.text()?.to_owned()))?,
        created: fields.i64()?,
        modified: fields.i64()?,
        message_count: fields.u64()?,
        first_message: fields.text()?.to_owned(),
        source: fields.optional(|fields| {
            let tool = fields.optional(|fields| Some(fields.text()?.to_owned()))?;
            let count = fields.count()?;
            let ids = (0..count).map(|_| Some(fields.text()?.to_owned()));
            Some(ImportSource {
                tool,
                native_ids: ids.collect::<Option<_>>()?,
            })
        })?,
        recorded: fields.list(|fields| {
            Some(Recorded {
                native_id: fields.text()?.to_owned(),
                entry_id: fields.text()?.to_owned(),
            })
        })?,
        continued: fields.list(|fields| {
            Some(ContinuedIn {
                tool: fields.text()?.to_owned(),
                native_id: fields.optional(|fields| Some(fields.text()?.to_owned()))?,
                entry_id: fields.text()?.to_owned(),
            })
        })?,
        sorting: Sorting {
            tags: fields
                .list(|fields| Some(fields.text()?.to_owned()))?
                .into_iter()
                .collect(),
            git: GitPlace {
                branch: fields.optional(|fields| Some(fields.text()?.to_owned()))?,
                commit: fields.optional(|fields| Some(fields.text()?.to_owned()))?,
                worktree: fields.optional(|fields| Some(fields.text()?.to_owned()))?,
            },
        },
        problem: match fields.u8()? {
            0 => None,
            // No other problem is saved with a row.
            _ => Some(Kind::HeaderMissing),
        },
    };
    Some(CatalogueRow::new(status, listing))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Log;
    use crate::os::file::{Folder, Identity};
    use std::fs;

    fn row(path: &str, size: u64) -> CatalogueRow {
        let status = Status {
            identity: Identity {
                device: 1,
                inode: size,
            },
            size,
            modified: (3, 4),
            changed: (5, 6),
        };
        let listing = Listing {
            path: path.into(),
            header: Some(crate::log::header::Header::new("s", 5, "/c", Some("p"))),
            name: Some("n\u{2028}".to_owned()),
            created: -1,
            modified: 2,
            message_count: 120,
            first_message: "first".to_owned(),
            source: Some(ImportSource {
                tool: Some("codex".to_owned()),
                native_ids: vec!["n1".to_owned(), "n2".to_owned()],
            }),
            recorded: vec![Recorded {
                native_id: "r".to_owned(),
                entry_id: "e".to_owned(),
            }],
            continued: [Some("n"), None]
                .map(|id| ContinuedIn {
                    tool: "codex".to_owned(),
                    native_id: id.map(str::to_owned),
                    entry_id: "e".to_owned(),
                })
                .into(),
            sorting: Sorting {
                tags: ["a".to_owned(), "b".to_owned()].into(),
                git: GitPlace {
                    branch: Some("main".to_owned()),
                    ..GitPlace::default()
                },
            },
            problem: None,
        };
        CatalogueRow::new(status, listing)
    }

    fn loaded(cache: &Cache) -> Vec<(Status, Listing)> {
        let rows = load(cache);
        let plain = |row: &Arc<CatalogueRow>| (row.status, row.listing.clone());
        rows.iter().map(plain).collect()
    }

    #[test]
    fn rows_come_back_or_none_do() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::of(Arc::new(Folder::open_to_stay(folder.path()).unwrap()));
        assert!(loaded(&cache).is_empty());
        let mut broken = row("/c", 9);
        broken.listing.header = None;
        broken.listing.name = None;
        broken.listing.problem = Some(Kind::HeaderMissing);
        let rows = [row("/a", 7), row("/b", 8), broken].map(Arc::new);
        save(&cache, &rows);
        let saved: Vec<_> = rows
            .iter()
            .map(|row| (row.status, row.listing.clone()))
            .collect();
        assert_eq!(loaded(&cache), saved);
        let path = folder.path().join(".cache").join(NAME);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << (at % 8);
            fs::write(&path, &flipped).unwrap();
            assert!(loaded(&cache).is_empty(), "byte {at}");
        }
        for len in 0..whole.len() {
            fs::write(&path, &whole[..len]).unwrap();
            assert!(loaded(&cache).is_empty(), "length {len}");
        }
    }

    /// A hook that an agent kills after four seconds once listed all sessions from the beginning each time, and never
    /// finished.
    #[test]
    fn a_list_that_is_killed_leaves_its_rows_to_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let root = Arc::new(Folder::open_to_stay(folder.path()).unwrap());
        let cache = Cache::of(Arc::clone(&root));
        let names = ["a.jsonl", "b.jsonl", "c.jsonl"].map(OsString::from);
        for (number, name) in names.iter().enumerate() {
            let header = format!(
                r#"{{"type":"session","version":3,"id":"s{number}","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}}"#
            );
            let blanks = " ".repeat(3000 - number);
            fs::write(folder.path().join(name), format!("{header}{blanks}\n")).unwrap();
        }
        let files = [FolderFiles {
            folder: root,
            names: names.into(),
        }];
        let list = |keeps| Catalogue::default().list(&files, Some(&cache), keeps, Log::open);
        assert_eq!((list(false).len(), loaded(&cache).len()), (3, 0));
        // The store saves the last part. Each part is as large as all earlier parts, so the second part has all other
        // files.
        assert_eq!((list(true).len(), loaded(&cache).len()), (3, 1));
        assert_eq!((list(true).len(), loaded(&cache).len()), (3, 2));
    }
}
