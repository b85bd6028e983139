//! The rows of `list_sessions`, kept in memory from one list to the next, and in the cache from one
//! process to the next (storage.md §5).
//!
//! A row counts for a file of the same path, identity, length and times, that of its last change among
//! them; any other is read anew. Lost or
//! damaged, all are.

use crate::bytes::{Cursor, Fields};
use crate::cache::Cache;
use crate::error::{Kind, Result};
use crate::log::OpenedLog;
use crate::log::index::{self, get_header, put_header};
use crate::os::file::{Folder, Identity, Location, Status};
use crate::parallel::{self, Plan};
use crate::store::listing::{Listing, Scanner};
use crate::timestamp::Millis;
use hashbrown::HashSet;
use std::borrow::Borrow;
use std::cmp::Reverse;
use std::ffi::{OsStr, OsString};
use std::hash::{Hash, Hasher};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// To be changed with everything that is written below.
const FORMAT: &[u8; 16] = b"treelined rows 2";
const NAME: &str = "sessions.rows";
/// Having read so many bytes anew, the rows are kept on disk again.
const WORTH_KEEPING: u64 = 1 << 20;
/// Threads that look at files, at most.
const MAX_THREADS: usize = 8;
/// Files that one thread asks for their status in one go: less is not worth a thread.
const STATUSES: usize = 256;

/// A row, and what its file was like.
#[derive(Debug)]
pub struct Row {
    pub status: Status,
    pub listing: Listing,
    /// The row as clients get it, made for the first one that does.
    pub shown: OnceLock<Box<[u8]>>,
}

impl Row {
    pub fn new(status: Status, listing: Listing) -> Self {
        Self {
            status,
            listing,
            shown: OnceLock::new(),
        }
    }

    /// By last activity, then creation, then path (storage.md §5).
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

/// Files of one folder.
pub struct Files {
    pub folder: Arc<Folder>,
    pub names: Vec<OsString>,
}

/// A row under its path, in its bytes: comparing components takes longer than asking for a file's
/// status.
#[derive(Debug)]
struct ByPath(Arc<Row>);

impl ByPath {
    fn path(&self) -> &OsStr {
        self.0.listing.path.as_os_str()
    }
}

impl Borrow<OsStr> for ByPath {
    fn borrow(&self) -> &OsStr {
        self.path()
    }
}

impl Hash for ByPath {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.path().hash(state);
    }
}

impl PartialEq for ByPath {
    fn eq(&self, other: &Self) -> bool {
        self.path() == other.path()
    }
}

impl Eq for ByPath {}

/// The rows of all sessions.
#[derive(Default)]
pub struct Catalogue {
    rows: HashSet<ByPath>,
    /// The same ones, by [`Row::key`].
    in_order: Vec<Arc<Row>>,
    /// Whether what the last process left has been read.
    is_loaded: bool,
    /// Bytes of the files read since the rows were kept on disk.
    unkept: u64,
}

/// What a look at some files gives.
#[derive(Default)]
struct Seen {
    /// Rows of files that are as they were.
    known: Vec<Arc<Row>>,
    changed: Vec<(Location, Status)>,
}

impl Catalogue {
    /// The rows of these files, by last activity: each is read once, by `open` where that is needed, and
    /// again only when it has changed. A file that is no session has its row too.
    pub fn list(
        &mut self,
        files: &[Files],
        cache: Option<&Cache>,
        open: impl Fn(Location) -> Result<OpenedLog> + Sync,
    ) -> Vec<Arc<Row>> {
        if !std::mem::replace(&mut self.is_loaded, true) {
            self.replace(cache.map(load).unwrap_or_default());
        }
        let (known, mut changed) = self.look_at(files);
        // The largest first, so that no thread is left with one at the end.
        changed.sort_by_key(|(_, status)| Reverse(status.size));
        let make = |scanner: &mut Scanner, number: usize| {
            let (location, status) = changed.get(number)?;
            let listing = row_of(scanner, location, *status, &open)?;
            Some(Arc::new(Row::new(*status, listing)))
        };
        let made = in_parallel(changed.len(), Scanner::default, make);
        // Those that are not there are gone meanwhile, or no regular files.
        let made: Vec<Arc<Row>> = made.into_iter().flatten().collect();
        if made.is_empty() && known.len() == self.in_order.len() {
            return self.in_order.clone();
        }
        let sizes = made.iter().map(|row| row.status.size.max(1));
        self.unkept += sizes.sum::<u64>();
        // What stays is in order already, and quickly sorted again.
        let known: HashSet<*const Row> = known.iter().map(Arc::as_ptr).collect();
        let mut rows = std::mem::take(&mut self.in_order);
        rows.retain(|row| known.contains(&Arc::as_ptr(row)));
        rows.extend(made);
        rows.sort_by(|a, b| a.key().cmp(&b.key()));
        self.replace(rows);
        self.in_order.clone()
    }

    /// These are all rows, in order.
    fn replace(&mut self, rows: Vec<Arc<Row>>) {
        self.rows = rows.iter().cloned().map(ByPath).collect();
        self.in_order = rows;
    }

    /// All rows, if it is time that they are kept on disk again; then it is not for a while.
    pub fn worth_keeping(&mut self) -> Option<Vec<Arc<Row>>> {
        let is_worth_it = self.unkept >= WORTH_KEEPING;
        is_worth_it.then(|| {
            self.unkept = 0;
            self.in_order.clone()
        })
    }

    /// Asks for the status of each file.
    fn look_at(&self, files: &[Files]) -> (Vec<Arc<Row>>, Vec<(Location, Status)>) {
        let of_folder = |files| {
            let Files { folder, names }: &Files = files;
            names.chunks(STATUSES).map(move |names| (folder, names))
        };
        let tasks: Vec<(&Arc<Folder>, &[OsString])> = files.iter().flat_map(of_folder).collect();
        let look = |(): &mut (), number: usize| {
            let mut seen = Seen::default();
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

    fn look_at_some(&self, folder: &Arc<Folder>, names: &[OsString], seen: &mut Seen) {
        let mut path = folder.path().join("").into_os_string().into_encoded_bytes();
        let start = path.len();
        // Without the folder there is none of them.
        let _gone = folder.statuses(names, |name, status| {
            let Ok(status) = status else {
                return;
            };
            path.truncate(start);
            path.extend_from_slice(name.as_bytes());
            match self.rows.get(OsStr::from_bytes(&path)) {
                Some(ByPath(row)) if row.status == status => seen.known.push(Arc::clone(row)),
                _ => {
                    let folder = Arc::clone(folder);
                    let name = name.to_owned();
                    seen.changed.push((Location { folder, name }, status));
                }
            }
        });
    }
}

/// The row of one file; `None` if it cannot be read at all.
fn row_of(
    scanner: &mut Scanner,
    location: &Location,
    status: Status,
    open: impl Fn(Location) -> Result<OpenedLog>,
) -> Option<Listing> {
    // What is known of a large file since it was last opened is quicker than reading it.
    let is_large = status.size >= index::WORTHWHILE;
    let scanned = (!is_large).then(|| scanner.row(location)).flatten();
    scanned.or_else(|| Listing::of(location, open(location.clone())).ok())
}

/// What `work` makes of each number below `count`, in order, by several threads, each of which has a state of
/// its own.
fn in_parallel<S, T: Send>(
    count: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> T + Sync,
) -> Vec<T> {
    let plan = Plan {
        ahead: count,
        ..Plan::up_to(MAX_THREADS)
    };
    let mut all = Vec::with_capacity(count);
    let _never_breaks = parallel::map_in_order(count, plan, state, work, |done| {
        all.push(done);
        ControlFlow::<()>::Continue(())
    });
    all
}

/// What the last process left, in order; empty if there is nothing to be believed.
fn load(cache: &Cache) -> Vec<Arc<Row>> {
    let read = cache.read(NAME, FORMAT, |contents| {
        let bytes = contents.take(contents.left())?;
        let mut fields = Cursor::new(&bytes);
        let rows = fields.list(|fields| get(fields).map(Arc::new))?;
        fields.is_at_end().then_some(rows)
    });
    read.unwrap_or_default()
}

/// Keeps rows for the next process. Nothing depends on this.
pub fn save(cache: &Cache, rows: &[Arc<Row>]) {
    let mut out = Fields::default();
    out.count(rows.len());
    for row in rows {
        put(&mut out, row);
    }
    if let Err(error) = cache.write(NAME, FORMAT, &[&out.0]) {
        tracing::info!(%error, "the list of sessions could not be kept");
    }
}

fn put(out: &mut Fields, row: &Row) {
    let Row {
        status,
        listing: row,
        ..
    } = row;
    out.u64(status.identity.device);
    out.u64(status.identity.inode);
    out.u64(status.size);
    out.i64(status.modified.0);
    out.i64(status.modified.1);
    out.i64(status.changed.0);
    out.i64(status.changed.1);
    out.bytes(row.path.as_os_str().as_bytes());
    out.optional(row.header.as_ref(), put_header);
    out.optional(row.name.as_deref(), Fields::text);
    out.i64(row.created);
    out.i64(row.modified);
    out.u64(row.message_count);
    out.text(&row.first_message);
    out.u8(u8::from(row.problem.is_some()));
}

fn get(fields: &mut Cursor<'_>) -> Option<Row> {
    let status = Status {
        identity: Identity {
            device: fields.u64()?,
            inode: fields.u64()?,
        },
        size: fields.u64()?,
        modified: (fields.i64()?, fields.i64()?),
        changed: (fields.i64()?, fields.i64()?),
    };
    let listing = Listing {
        path: PathBuf::from(OsStr::from_bytes(fields.bytes()?)),
        header: fields.optional(get_header)?,
        name: fields.optional(|fields| Some(fields.text()?.to_owned()))?,
        created: fields.i64()?,
        modified: fields.i64()?,
        message_count: fields.u64()?,
        first_message: fields.text()?.to_owned(),
        problem: match fields.u8()? {
            0 => None,
            // The only one a row can have.
            _ => Some(Kind::HeaderMissing),
        },
    };
    Some(Row::new(status, listing))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::file::Folder;
    use std::fs;

    fn row(path: &str, size: u64) -> Row {
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
            header: Some(crate::log::new_header("s", 5, "/c", Some("p"))),
            name: Some("n\u{2028}".to_owned()),
            created: -1,
            modified: 2,
            message_count: 120,
            first_message: "first".to_owned(),
            problem: None,
        };
        Row::new(status, listing)
    }

    fn loaded(cache: &Cache) -> Vec<(Status, Listing)> {
        let rows = load(cache);
        let plain = |row: &Arc<Row>| (row.status, row.listing.clone());
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
}
