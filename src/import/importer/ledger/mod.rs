//! Records the imports: `.imports/ledger.jsonl` in the session directory (session-file.md §5.8).
//!
//! Lines are only appended. For each source and session, the last line counts. A damaged line is skipped: at worst a
//! source is read again, and that adds no entries. A lock excludes a second import.
//!
//! At first only the names in each line are read. An import for a hook needs only a few rows, and there may be ten
//! thousand.

mod head;
mod line;
pub(super) mod rows;
mod stored;
#[cfg(test)]
mod tests;

use super::source::facts::{Source, SourceStatus};
use aho_corasick::AhoCorasick;
use hashbrown::{Equivalent, HashMap, HashSet};
use head::Head;
use line::Line;
use rows::{DatabaseRow, SessionRow, SourceRow};
use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use stored::Stored;
use treelined_core::agent::Tool;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::json;
pub(crate) use treelined_files::os::file::{Folder, Location, Status, is_lock_unsupported};
use treelined_files::os::handle::HandleAccess;
use treelined_files::os::temporary::{self, Temporary};

const FOLDER: &str = ".imports";
const NAME: &str = "ledger.jsonl";
const LOCK: &str = "lock";
/// How long the lock of a killed import may still be held while the system ends its process.
const DYING: Duration = Duration::from_millis(400);
/// The ledger is rewritten without its outdated lines if their number is greater than this, and greater than the
/// number of current lines.
const OLD_LINES: usize = 256;

/// The imports into a session directory.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// The file; `None` if the ledger is only read.
    file: Option<LedgerFile>,
    /// The text of the file, with the lines that were added since.
    text: Vec<u8>,
    /// For each source, by its name: the last line.
    sources: HashMap<(Tool, String), Stored<SourceRow>>,
    /// For each database, by its name: the last line.
    databases: HashMap<(Tool, String), Stored<DatabaseRow>>,
    /// For each session, by its id, and for each tool whose conversations it has: the last line.
    sessions: HashMap<(Tool, String), Stored<SessionRow>>,
    /// For each native session: its session and its rank. The rank is the number of native sessions that were placed
    /// before it.
    placed: HashMap<(Tool, String), (String, usize)>,
    /// The number of lines in the file.
    lines: usize,
}

/// A key of the maps that borrows its name.
#[derive(Hash)]
struct Name<'a>(Tool, &'a str);

impl Equivalent<(Tool, String)> for Name<'_> {
    fn equivalent(&self, (tool, name): &(Tool, String)) -> bool {
        self.0 == *tool && self.1 == *name
    }
}

impl From<&Name<'_>> for (Tool, String) {
    fn from(Name(tool, name): &Name<'_>) -> Self {
        (*tool, (*name).to_owned())
    }
}

/// The file of the ledger. This process holds its lock.
#[derive(Debug)]
pub(crate) struct LedgerFile {
    folder: Arc<Folder>,
    /// The lock, which is released on drop.
    _lock: File,
}

impl LedgerFile {
    /// Takes the lock. Fails with `importBusy` if another import holds it.
    pub(crate) fn locked(session_dir: &Path) -> Result<Self> {
        let failed = |error: io::Error| {
            Error::io(
                &format!("open the ledger in {}", session_dir.display()),
                &error,
            )
        };
        let root = Folder::open_or_create(session_dir).map(Arc::new);
        let folder = root.and_then(|root| root.subfolder_or_create(OsStr::new(FOLDER)));
        let folder = Arc::new(folder.map_err(failed)?);
        let _lock = lock(&folder)?;
        Ok(Self { folder, _lock })
    }

    /// The status of the file. It changes with each import that adds a row.
    pub(crate) fn status(&self) -> io::Result<Status> {
        self.folder.status(OsStr::new(NAME))
    }
}

impl Ledger {
    /// Reads the ledger. If `is_read_only` is false, the ledger can be written, and this call fails with `importBusy`
    /// while another import holds the lock.
    pub(crate) fn open(session_dir: &Path, is_read_only: bool) -> Result<Self> {
        let failed = |error: io::Error| {
            Error::io(
                &format!("open the ledger in {}", session_dir.display()),
                &error,
            )
        };
        let mut ledger = Self::default();
        if is_read_only {
            let folder = Folder::open(session_dir).map(Arc::new);
            if let Ok(folder) = folder.and_then(|root| root.subfolder(OsStr::new(FOLDER))) {
                ledger.read(&folder);
            }
            return Ok(ledger);
        }
        let file = LedgerFile::locked(session_dir)?;
        let folder = Arc::clone(&file.folder);
        // These are temporary files of killed imports.
        let _tidied = temporary::remove_abandoned(&folder);
        ledger.read(&folder);
        ledger.file = Some(file);
        let live = ledger.live();
        if ledger.lines > 2 * live + OLD_LINES {
            ledger.compact().map_err(failed)?;
        }
        Ok(ledger)
    }

    /// The status of the ledger's file; `None` if there is no file.
    pub(crate) fn status(&self) -> Option<Status> {
        self.file.as_ref()?.status().ok()
    }

    /// The row of the source with this name, from the last import that read it.
    pub(crate) fn source(&self, tool: Tool, name: &str) -> Option<&SourceRow> {
        self.sources.get(&Name(tool, name))?.row(&self.text)
    }

    /// The rows of all sources.
    pub(super) fn all(&self) -> impl Iterator<Item = &SourceRow> {
        let rows = self.sources.values();
        rows.filter_map(|stored| stored.row(&self.text))
    }

    /// The sources whose end was held back and is kept in an origin. `tool` limits them to one tool.
    pub(crate) fn held(&self, tool: Option<Tool>) -> impl Iterator<Item = &SourceRow> {
        let mark = memchr::memmem::Finder::new(line::HELD);
        let rows = self.sources.values();
        let rows = rows.filter(move |stored| mark.find(stored.line(&self.text)).is_some());
        let rows = rows.filter_map(|stored| stored.row(&self.text));
        rows.filter(move |row| {
            let is_of_tool = tool.is_none_or(|tool| row.tool == tool);
            is_of_tool && row.held_until.is_some() && !row.origin.is_empty()
        })
    }

    /// The sources that are parts of this database.
    pub(crate) fn parts(
        &self,
        tool: Tool,
        database: &str,
    ) -> impl Iterator<Item = (&str, &SourceRow)> {
        let of_tool = self
            .sources
            .iter()
            .filter(move |((its, _), _)| *its == tool);
        of_tool.filter_map(move |((_, name), stored)| {
            let part = name.strip_prefix(database)?.strip_prefix('#')?;
            Some((part, stored.row(&self.text)?))
        })
    }

    /// The names of a tool's sources whose lines contain one of the words. Among them are all sources that have a
    /// word as their name, native session, target or base.
    pub(crate) fn mentioning<'w>(
        &self,
        tool: Tool,
        words: impl Iterator<Item = &'w str>,
    ) -> HashSet<&str> {
        let words: Vec<Vec<u8>> = words.map(as_written).collect();
        let Ok(search) = AhoCorasick::new(words) else {
            debug_assert!(false, "too many words");
            return self.files(tool).collect();
        };
        let of_tool = self.sources.iter().filter(|((its, _), _)| *its == tool);
        let has_one = of_tool.filter(|(_, stored)| search.is_match(stored.line(&self.text)));
        has_one.map(|((_, name), _)| name.as_str()).collect()
    }

    /// Whether all sessions of a database were imported while it had this status.
    pub(crate) fn has_database(&self, tool: Tool, name: &str, status: &SourceStatus) -> bool {
        let stored = self.databases.get(&Name(tool, name));
        let row = stored.and_then(|stored| stored.row(&self.text));
        row.is_some_and(|row| row.status == *status)
    }

    /// The session of a native session, and the rank of the native session.
    pub(crate) fn target(&self, tool: Tool, native: &str) -> Option<(&str, usize)> {
        let placed = self.placed.get(&Name(tool, native));
        placed.map(|(session, rank)| (&**session, *rank))
    }

    /// The row of a session, from the last import of this tool.
    pub(crate) fn session(&self, tool: Tool, id: &str) -> Option<&SessionRow> {
        self.sessions.get(&Name(tool, id))?.row(&self.text)
    }

    /// The rows of a session, from the last import of each tool.
    pub(crate) fn rows(&self, id: &str) -> impl Iterator<Item = &SessionRow> {
        let tools = Tool::ALL.into_iter();
        tools.filter_map(move |tool| self.session(tool, id))
    }

    /// Whether the ledger has a row for a session.
    pub(crate) fn has_noted(&self, id: &str) -> bool {
        let mut tools = Tool::ALL.into_iter();
        tools.any(|tool| self.sessions.contains_key(&Name(tool, id)))
    }

    /// Whether the user has deleted a session, so that imports skip it.
    pub(crate) fn is_trashed(&self, id: &str) -> bool {
        self.rows(id).any(|row| row.trashed)
    }

    /// Adds rows for sources and sessions, in one append.
    pub(crate) fn note(
        &mut self,
        sources: Vec<SourceRow>,
        sessions: Vec<SessionRow>,
    ) -> Result<()> {
        let sources = sources.into_iter().map(Line::Source);
        self.append(
            sources
                .chain(sessions.into_iter().map(Line::Session))
                .collect(),
        )
    }

    /// The databases that have a source whose present state is not imported.
    pub(crate) fn incomplete(&self, sources: &[Source]) -> HashSet<(Tool, String)> {
        let is_noted = |source: &Source| {
            let row = self.source(source.tool, &source.name());
            row.is_some_and(|row| row.status == source.status)
        };
        let parts = sources.iter().filter(|source| source.part.is_some());
        let missing = parts.filter(|source| !is_noted(source));
        missing
            .map(|source| (source.tool, source.path.to_string_lossy().into_owned()))
            .collect()
    }

    /// Adds the rows of the databases whose sources are all imported.
    pub(crate) fn note_databases(
        &mut self,
        databases: Vec<DatabaseRow>,
        incomplete: &HashSet<(Tool, String)>,
    ) -> Result<()> {
        let is_whole = |row: &DatabaseRow| !incomplete.contains(&(row.tool, row.database.clone()));
        let is_new = |row: &DatabaseRow| !self.has_database(row.tool, &row.database, &row.status);
        let new = databases
            .into_iter()
            .filter(|row| is_whole(row) && is_new(row));
        let lines = new.map(Line::Database).collect();
        self.append(lines)
    }

    /// Notes whether the user has deleted a session and imports skip it.
    pub(crate) fn note_trashed(&mut self, session: &str, trashed: bool) -> Result<()> {
        let rows = self.rows(session).map(|row| SessionRow {
            trashed,
            ..row.clone()
        });
        let lines = rows.map(Line::Session).collect();
        self.append(lines)
    }

    /// The names of a tool's sources that are whole files.
    pub(crate) fn files(&self, tool: Tool) -> impl Iterator<Item = &str> {
        let names = self.sources.keys();
        let names = names.filter(move |(its, name)| *its == tool && !rows::is_placement(name));
        names.map(|(_, name)| &**name)
    }

    /// The sources of a session.
    pub(crate) fn sources_of<'l>(
        &'l self,
        session: &'l str,
    ) -> impl Iterator<Item = &'l SourceRow> {
        let is_target = move |row: &&SourceRow| row.targets.iter().any(|target| target == session);
        let rows = self.all().filter(is_target);
        rows.filter(|row| !rows::is_placement(&row.source))
    }

    /// Whether an import has made the session.
    pub(crate) fn has(&self, session: &str) -> bool {
        let is_target = |row: &SourceRow| row.targets.iter().any(|target| target == session);
        self.has_noted(session) || self.all().any(is_target)
    }

    /// The session with this id if an import has made it; else the sessions that have a native session with this id.
    pub(crate) fn named<'l>(&'l self, name: &'l str) -> Vec<&'l str> {
        if self.has(name) {
            return vec![name];
        }
        let tools = Tool::ALL.into_iter();
        let placed = tools.filter_map(|tool| self.target(tool, name));
        let mut sessions: Vec<&str> = placed.map(|(session, _)| session).collect();
        sessions.sort_unstable();
        sessions.dedup();
        sessions
    }

    /// The imported sessions whose id begins with `start`.
    pub(crate) fn beginning_with<'l>(&'l self, start: &str) -> Vec<&'l str> {
        let noted = self.sessions.keys().map(|(_, id)| id.as_str());
        let targets = self.all().flat_map(|row| &row.targets).map(String::as_str);
        let mut sessions: Vec<&str> = noted
            .chain(targets)
            .filter(|id| id.starts_with(start))
            .collect();
        sessions.sort_unstable();
        sessions.dedup();
        sessions
    }

    /// Removes the origins of a session from its rows. Returns the origins that no other session uses.
    pub(crate) fn forget(&mut self, session: &str) -> Result<Vec<String>> {
        let of_session = |row: &&SourceRow| row.targets.iter().any(|target| target == session);
        let is_shared = |row: &SourceRow| row.targets.iter().any(|target| target != session);
        let rows = || self.all().filter(|row| !row.origin.is_empty());
        let shared: HashSet<&str> = rows()
            .filter(|row| is_shared(row))
            .map(|row| &*row.origin)
            .collect();
        let forgotten: Vec<SourceRow> = rows()
            .filter(of_session)
            .filter(|row| !shared.contains(&*row.origin))
            .cloned()
            .collect();
        drop(shared);
        let mut origins: Vec<String> = forgotten.iter().map(|row| row.origin.clone()).collect();
        origins.sort();
        origins.dedup();
        let without = |row: SourceRow| {
            Line::Source(SourceRow {
                origin: String::new(),
                ..row
            })
        };
        self.append(forgotten.into_iter().map(without).collect())?;
        // Outdated lines may contain names of sessions as they were before later imports replaced secrets in them.
        let compacted = self.compact();
        compacted.map_err(|error| Error::io("write the ledger of imports", &error))?;
        Ok(origins)
    }

    /// Reads the lines of the text from this position on.
    fn index(&mut self, from: usize) {
        let text = std::mem::take(&mut self.text);
        let rest = text.get(from..).unwrap_or_default();
        let breaks = memchr::memchr_iter(b'\n', rest).map(|at| from + at);
        let mut start = from;
        for end in breaks.chain([text.len()]) {
            let line = text.get(start..end).unwrap_or_default();
            if !line.is_empty() {
                self.lines += 1;
                match Head::read(line) {
                    Some(head) => self.take(head, start..end),
                    None => tracing::debug!("a damaged line in the ledger of imports"),
                }
            }
            start = end + 1;
        }
        self.text = text;
    }

    /// Applies the names of a line.
    fn take(&mut self, head: Head<'_>, line: Range<usize>) {
        match head {
            Head::Source(tool, name, placed) => {
                for (native, target) in placed {
                    self.place(tool, &native, &target);
                }
                let key = (tool, name.into_owned());
                self.sources.insert(key, Stored::at(line));
            }
            Head::Database(tool, name) => {
                let key = (tool, name.into_owned());
                self.databases.insert(key, Stored::at(line));
            }
            Head::Session(tool, id) => {
                let key = (tool, id.into_owned());
                self.sessions.insert(key, Stored::at(line));
            }
            Head::Placement(tool, native, session) => self.place(tool, &native, &session),
        }
    }

    /// Notes in which session a native session is. The first line about a native session counts.
    fn place(&mut self, tool: Tool, native: &str, session: &str) {
        let rank = self.placed.len();
        let name = Name(tool, native);
        let entry = self.placed.entry_ref(&name);
        entry.or_insert_with(|| (session.to_owned(), rank));
    }

    fn read(&mut self, folder: &Folder) {
        let mut text = Vec::new();
        if let Ok(mut file) = folder.file(OsStr::new(NAME), HandleAccess::Read)
            && let Err(error) = file.read_to_end(&mut text)
        {
            tracing::warn!(%error, "the ledger of imports cannot be read; sources are read again");
        }
        // Most lines are either a source or its session.
        let rows = memchr::memchr_iter(b'\n', &text).count() / 2;
        self.sources.reserve(rows);
        self.sessions.reserve(rows);
        self.placed.reserve(rows);
        self.text = text;
        self.index(0);
    }

    fn append(&mut self, lines: Vec<Line>) -> Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        // The text begins with a line break, because the last line of the file may be torn.
        let mut text = b"\n".to_vec();
        for line in &lines {
            line.write(&mut text);
        }
        if let Some(LedgerFile { folder, .. }) = &self.file {
            let written = open_or_create(folder).and_then(|mut file| file.write_all(&text));
            let what = "write the ledger of imports";
            written.map_err(|error| Error::io(what, &error))?;
        }
        let from = self.text.len();
        self.text.append(&mut text);
        self.index(from);
        Ok(())
    }

    /// The number of lines that are current.
    fn live(&self) -> usize {
        self.sources.len() + self.databases.len() + self.sessions.len() + self.placed.len()
    }

    /// Rewrites the file without outdated lines.
    fn compact(&mut self) -> io::Result<()> {
        let Some(LedgerFile { folder, .. }) = &self.file else {
            return Ok(());
        };
        let mut placed: Vec<_> = self.placed.iter().collect();
        placed.sort_by_key(|(_, (_, rank))| *rank);
        let placed = placed.into_iter().map(|((tool, native), (session, _))| {
            Line::Placement(*tool, native.clone(), session.clone())
        });
        let mut text = Vec::new();
        placed.for_each(|line| line.write(&mut text));
        let sources = self.sources.values().map(|stored| stored.line(&self.text));
        let databases = self
            .databases
            .values()
            .map(|stored| stored.line(&self.text));
        let sessions = self.sessions.values().map(|stored| stored.line(&self.text));
        for line in sources.chain(databases).chain(sessions) {
            text.extend_from_slice(line);
            text.push(b'\n');
        }
        let new = Temporary::for_name(folder, OsStr::new(NAME))?;
        (&**new.file()).write_all(&text)?;
        new.file().sync_data()?;
        new.name(&Location {
            folder: Arc::clone(folder),
            name: NAME.into(),
        })?;
        self.lines = self.live();
        Ok(())
    }
}

/// A word in the form that strings have in a line.
fn as_written(word: &str) -> Vec<u8> {
    let quoted = json::quoted(word);
    let inner = quoted.get(1..quoted.len() - 1);
    inner.unwrap_or_default().to_vec()
}

fn open_or_create(folder: &Folder) -> io::Result<File> {
    match folder.file(OsStr::new(NAME), HandleAccess::Append) {
        Ok(file) => Ok(file),
        Err(_) => folder.create(OsStr::new(NAME)),
    }
}

/// Takes the lock of the session directory's imports.
fn lock(folder: &Folder) -> Result<File> {
    let name = OsStr::new(LOCK);
    let file = match folder.file(name, HandleAccess::Append) {
        Ok(file) => file,
        Err(_) => match folder.create(name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                folder.file(name, HandleAccess::Append)?
            }
            created => created.map_err(|error| Error::io("make the lock of imports", &error))?,
        },
    };
    let until = Instant::now() + DYING;
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(DYING / 20),
            tried => return locked(file, tried),
        }
    }
}

fn locked(file: File, tried: std::result::Result<(), TryLockError>) -> Result<File> {
    match tried {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let message = "another import is under way in this session directory; wait for its end";
            Err(Error::new(Kind::ImportBusy, message))
        }
        Err(TryLockError::Error(error)) if is_lock_unsupported(&error) => Ok(file),
        Err(TryLockError::Error(error)) => Err(Error::io("lock the imports", &error)),
    }
}
