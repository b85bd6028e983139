//! Records the imports: `.imports/ledger.jsonl` in the session directory (session-file.md §5.8).
//!
//! Lines are only appended, and the last one for a source or session counts. A damaged line is skipped: at worst a
//! source is read again, without new entries. The ledger's lock excludes a second import.

mod line;
pub(super) mod rows;
#[cfg(test)]
mod tests;

use super::source::facts::{Source, SourceStatus};
use crate::tool::Tool;
use hashbrown::{Equivalent, HashMap, HashSet};
use line::Line;
use rows::{DatabaseRow, SessionRow, SourceRow};
use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use treelined_core::error::{Error, Kind, Result};
pub(crate) use treelined_files::os::file::{Folder, Location, Status, is_lock_unsupported};
use treelined_files::os::handle::HandleAccess;
use treelined_files::os::temporary::{self, Temporary};

const FOLDER: &str = ".imports";
const NAME: &str = "ledger.jsonl";
const LOCK: &str = "lock";
/// How long a killed import may hold the lock while the system takes its process apart.
const DYING: Duration = Duration::from_millis(400);
/// The ledger is rewritten without old lines if more than this many are old, and more than are current.
const OLD_LINES: usize = 256;

/// The imports into a session directory.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// `None` for reading only.
    file: Option<LedgerFile>,
    sources: HashMap<(Tool, String), SourceRow>,
    /// By name.
    databases: HashMap<(Tool, String), DatabaseRow>,
    /// By id; the rows of a session are of different tools.
    sessions: HashMap<String, Vec<SessionRow>>,
    /// The session of each native session, with its place in the order of placements.
    placed: HashMap<(Tool, String), (String, usize)>,
    /// Lines in the file.
    lines: usize,
}

/// A key of the maps, borrowed.
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

/// The file of a ledger, whose lock this process has.
#[derive(Debug)]
pub(crate) struct LedgerFile {
    folder: Arc<Folder>,
    /// Released on drop.
    _lock: File,
}

impl LedgerFile {
    /// Takes the lock. Fails with `importBusy` while another import holds it.
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

    /// The status of the file; it changes with each import that notes anything.
    pub(crate) fn status(&self) -> io::Result<Status> {
        self.folder.status(OsStr::new(NAME))
    }
}

impl Ledger {
    /// Reads the ledger. To write it, `is_read_only` must be false; then it fails with `importBusy` while another
    /// import holds the lock.
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
        // Killed imports have left these files.
        let _tidied = temporary::remove_abandoned(&folder);
        ledger.read(&folder);
        ledger.file = Some(file);
        let live = ledger.live();
        if ledger.lines > 2 * live + OLD_LINES {
            ledger.compact().map_err(failed)?;
        }
        Ok(ledger)
    }

    /// The status of the ledger's file; `None` without one.
    pub(crate) fn status(&self) -> Option<Status> {
        self.file.as_ref()?.status().ok()
    }

    /// The source with this name, as last read.
    pub(crate) fn source(&self, tool: Tool, name: &str) -> Option<&SourceRow> {
        self.sources.get(&Name(tool, name))
    }

    /// The sources with an end that was held back and is kept in an origin; `None` for any tool.
    pub(crate) fn held(&self, tool: Option<Tool>) -> impl Iterator<Item = &SourceRow> {
        let rows = self.sources.values();
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
        self.sources.values().filter_map(move |row| {
            let part = row.source.strip_prefix(database)?.strip_prefix('#')?;
            (row.tool == tool).then_some((part, row))
        })
    }

    /// Whether all sessions of a database with this status are imported.
    pub(crate) fn has_database(&self, tool: Tool, name: &str, status: &SourceStatus) -> bool {
        let row = self.databases.get(&Name(tool, name));
        row.is_some_and(|row| row.status == *status)
    }

    /// The session of a native session, and its position in the order of placements.
    pub(crate) fn target(&self, tool: Tool, native: &str) -> Option<(&str, usize)> {
        let placed = self.placed.get(&Name(tool, native));
        placed.map(|(session, rank)| (&**session, *rank))
    }

    /// A session after the last import from a tool.
    pub(crate) fn session(&self, tool: Tool, id: &str) -> Option<&SessionRow> {
        self.rows(id).iter().find(|row| row.tool == tool)
    }

    /// A session after the last import from each tool.
    pub(crate) fn rows(&self, id: &str) -> &[SessionRow] {
        self.sessions.get(id).map_or(&[], Vec::as_slice)
    }

    /// Whether the user has deleted a session, and imports skip it.
    pub(crate) fn is_trashed(&self, id: &str) -> bool {
        self.rows(id).iter().any(|row| row.trashed)
    }

    /// Remembers sources and sessions, in one append.
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

    /// Remembers the databases of which all `sources` are imported.
    pub(crate) fn note_databases(
        &mut self,
        databases: Vec<DatabaseRow>,
        sources: &[Source],
    ) -> Result<()> {
        let is_noted = |source: &Source| {
            let row = self.source(source.tool, &source.name());
            row.is_some_and(|row| row.status == source.status)
        };
        let missing: HashSet<_> = sources
            .iter()
            .filter(|source| source.part.is_some() && !is_noted(source))
            .map(|source| (source.tool, source.path.to_string_lossy().into_owned()))
            .collect();
        let is_whole = |row: &DatabaseRow| !missing.contains(&(row.tool, row.database.clone()));
        let is_new = |row: &DatabaseRow| !self.has_database(row.tool, &row.database, &row.status);
        let new = databases
            .into_iter()
            .filter(|row| is_whole(row) && is_new(row));
        let lines = new.map(Line::Database).collect();
        self.append(lines)
    }

    /// Remembers whether the user has deleted a session for good.
    pub(crate) fn note_trashed(&mut self, session: &str, trashed: bool) -> Result<()> {
        let rows = self.rows(session).iter().map(|row| SessionRow {
            trashed,
            ..row.clone()
        });
        let lines = rows.map(Line::Session).collect();
        self.append(lines)
    }

    /// The files of a tool that were read.
    pub(crate) fn files(&self, tool: Tool) -> impl Iterator<Item = &str> {
        let rows = self.sources.values();
        // Version 0 is a row that only places sessions.
        let files = rows.filter(move |row| row.tool == tool && row.version > 0);
        files.map(|row| &*row.source)
    }

    /// The sources of a session.
    pub(crate) fn sources_of<'l>(
        &'l self,
        session: &'l str,
    ) -> impl Iterator<Item = &'l SourceRow> {
        let is_target = move |row: &SourceRow| row.targets.iter().any(|target| target == session);
        // Version 0 is a row that only places sessions.
        let rows = self.sources.values();
        rows.filter(move |row| row.version > 0 && is_target(row))
    }

    /// Whether an import has made the session.
    pub(crate) fn has(&self, session: &str) -> bool {
        let is_target = |row: &SourceRow| row.targets.iter().any(|target| target == session);
        self.sessions.contains_key(session) || self.sources.values().any(is_target)
    }

    /// Forgets the origins of a session, and returns those that no other session has.
    pub(crate) fn forget(&mut self, session: &str) -> Result<Vec<String>> {
        let of_session = |row: &&SourceRow| row.targets.iter().any(|target| target == session);
        let is_shared = |row: &SourceRow| row.targets.iter().any(|target| target != session);
        let rows = || self.sources.values().filter(|row| !row.origin.is_empty());
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
        Ok(origins)
    }

    /// Applies a line.
    fn take(&mut self, line: Line) {
        match line {
            Line::Source(row) => {
                for (native, target) in row.natives.iter().zip(&row.targets) {
                    self.place(row.tool, native, target);
                }
                self.sources.insert((row.tool, row.source.clone()), row);
            }
            Line::Database(row) => {
                self.databases.insert((row.tool, row.database.clone()), row);
            }
            Line::Session(row) => {
                let rows = self.sessions.entry(row.session.clone()).or_default();
                match rows.iter_mut().find(|known| known.tool == row.tool) {
                    Some(known) => *known = row,
                    None => rows.push(row),
                }
            }
            Line::Placement(tool, native, session) => self.place(tool, &native, &session),
        }
    }

    /// Places a native session, once.
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
        // A line is a source or its session.
        let rows = memchr::memchr_iter(b'\n', &text).count() / 2;
        self.sources.reserve(rows);
        self.sessions.reserve(rows);
        self.placed.reserve(rows);
        for bytes in text
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
        {
            self.lines += 1;
            match Line::parse(bytes) {
                Some(line) => self.take(line),
                None => tracing::debug!("a damaged line in the ledger of imports"),
            }
        }
    }

    fn append(&mut self, lines: Vec<Line>) -> Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        // A line break first: the last line may be torn.
        let mut text = b"\n".to_vec();
        for line in &lines {
            line.write(&mut text);
        }
        if let Some(LedgerFile { folder, .. }) = &self.file {
            let written = open_or_create(folder).and_then(|mut file| file.write_all(&text));
            let what = "write the ledger of imports";
            written.map_err(|error| Error::io(what, &error))?;
        }
        self.lines += lines.len();
        lines.into_iter().for_each(|line| self.take(line));
        Ok(())
    }

    /// The number of current lines.
    fn live(&self) -> usize {
        let sessions: usize = self.sessions.values().map(Vec::len).sum();
        self.sources.len() + self.databases.len() + sessions + self.placed.len()
    }

    /// Rewrites the ledger without old lines.
    fn compact(&mut self) -> io::Result<()> {
        let Some(LedgerFile { folder, .. }) = &self.file else {
            return Ok(());
        };
        let mut placed: Vec<_> = self.placed.iter().collect();
        placed.sort_by_key(|(_, (_, rank))| *rank);
        let placed = placed.into_iter().map(|((tool, native), (session, _))| {
            Line::Placement(*tool, native.clone(), session.clone())
        });
        let sources = self.sources.values().cloned().map(Line::Source);
        let databases = self.databases.values().cloned().map(Line::Database);
        let sessions = self.sessions.values().flatten().cloned();
        let sessions = sessions.map(Line::Session);
        let mut text = Vec::new();
        let all = placed.chain(sources).chain(databases).chain(sessions);
        all.for_each(|line| line.write(&mut text));
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

fn open_or_create(folder: &Folder) -> io::Result<File> {
    match folder.file(OsStr::new(NAME), HandleAccess::Append) {
        Ok(file) => Ok(file),
        Err(_) => folder.create(OsStr::new(NAME)),
    }
}

/// The right to import into this session directory.
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
