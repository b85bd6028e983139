//! One import. It finds the sources, reads the changed sources and their relatives, joins their conversations into
//! sessions, and writes the sessions.

use super::batch::Batch;
use super::create::SessionWork;
use super::databases::Closing;
use super::discover::{Request as Search, discover, searched_places, source_at};
use super::git::InGit;
use super::gone::gone;
use super::groups::groups;
use super::home::{Found, Homes};
use super::large::LargeSources;
use super::ledger::Ledger;
use super::ledger::rows::SourceRow;
use super::limits::{Limits, TOO_LARGE};
use super::origin::Origins;
use super::reading::{ReadSource, Reading, SourceContents, tools};
use super::recorded::records_of;
use super::redaction::Redaction;
use super::relatives::Relatives;
use super::repeat::ImportState;
pub use super::request::{Import, ImportRequest};
use super::result::Results;
use super::shed;
use super::sides::Sides;
use super::source::facts::{ScanFailure, Source};
use crate::family::forest::{SessionTree, TreeEntry};
use crate::format;
use crate::importer::report::{ImportReport, ImportedFile, ImportedSession};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use treelined_core::agent::Tool;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::name;
use treelined_core::timestamp::Millis;
use treelined_files::lock::lock;
use treelined_files::os::file::{Folder, Location};
use treelined_files::parallel::{ThreadPlan, cores, map_in_order};
use treelined_files::store::catalogue::Rows;

/// The number of additional threads, because threads often wait for the disk.
pub(super) const WAITING: usize = 6;

/// The most sessions that are opened to find out whether a recorder has written into them. For more sessions, their
/// rows in the list are used.
const MOST_OPENED: usize = 8;

/// The folders with new files whose names are not durable yet.
type NewNames = BTreeMap<PathBuf, Arc<Folder>>;

/// The content of the session directory before an import.
struct Known {
    /// The session files, by the ids of their sessions.
    sessions: HashMap<String, Location>,
    origins: hashbrown::HashSet<OsString>,
    /// The names of the sources whose sessions are written anew.
    anew: HashSet<String>,
    large: Mutex<LargeSources>,
    redaction: Redaction,
    /// The rows of all sessions before the import of an export; `None` until they are needed.
    rows: Mutex<Option<Rows>>,
}

impl Import<'_> {
    /// Imports. Fails with `importBusy` while another import runs, and with `invalidParams` for a path that is
    /// missing or inside the session directory. If it fails with `cancelled`, the sessions written so far stay. The
    /// report has each source that could not be imported, with the reason. The state is returned if nothing new was
    /// found: while it is the same, a further import would give the same report.
    pub(super) fn run_repeatably(&self) -> Result<(ImportReport, Option<ImportState>)> {
        let _closing = Closing;
        let mut ledger = Ledger::open(self.session_dir, self.request.is_dry_run)?;
        let search = self.search();
        let before = ImportState::before(&search, self.session_dir);
        let mut found = discover(&search, self.session_dir, &ledger)?;
        let mut results = Results::default();
        let has_failures = !found.failures.is_empty();
        for failure in std::mem::take(&mut found.failures) {
            results.fail(failure);
        }
        let mut known = Known {
            sessions: self.store.session_ids()?,
            origins: Origins::names(self.session_dir),
            anew: HashSet::new(),
            large: Mutex::new(LargeSources::read(self.session_dir)),
            redaction: Redaction::of(
                self.session_dir,
                self.request.redact,
                !self.request.is_dry_run,
                self.redact,
            )?,
            rows: Mutex::default(),
        };
        let state = before.and_then(|before| {
            let state = before.with_sources(&found.sources, &found.folders, &ledger)?;
            state.with_sessions(&known.sessions, &ledger)
        });
        let state = state.filter(|_| !has_failures);
        super::rebuild::rebuild(&mut ledger, self.store, &known.sessions, self.cancel)?;
        if let Some(again) = &self.request.again {
            ledger.note_trashed(again, false)?;
            if let Some(at) = known.sessions.get(again) {
                let (dir, sources) = (self.session_dir, &mut found.sources);
                let is_recorded = self.has_record(at);
                known.anew = super::anew::sources(again, dir, sources, &ledger, is_recorded)?;
            }
        }
        let gone = gone(&search, &found, &ledger, self.session_dir);
        let state = state.filter(|_| gone.is_empty());
        found.sources.extend(gone);
        let mut incomplete = hashbrown::HashSet::new();
        for tool in tools(&found.sources) {
            let its = found.sources.extract_if(.., |source| source.tool == tool);
            // Each group is freed after it was imported: an export may have tens of thousands of conversations.
            for sources in groups(tool, its.collect()) {
                self.tool(tool, &sources, &known, &mut ledger, &mut results)?;
                incomplete.extend(ledger.incomplete(&sources));
            }
        }
        if !self.request.is_dry_run {
            ledger.note_databases(found.databases, &incomplete)?;
            lock(&known.large).write(self.session_dir)?;
        }
        let mut result = results.finish();
        let is_nothing = result.totals.files == 0 && result.totals.failed == 0;
        if is_nothing && self.request.paths.is_empty() {
            result.places = Some(searched_places(&search));
        }
        let is_nothing_new = result.files.is_empty() && result.totals.failed == 0;
        let state = state.filter(|_| is_nothing_new && !is_nothing && !self.request.is_dry_run);
        let state = state.and_then(|state| state.with_ledger(&ledger));
        Ok((result, state))
    }

    /// The locations to search for sources.
    pub(super) fn search(&self) -> Search {
        Search {
            from: self.request.from,
            paths: self.request.paths.clone(),
        }
    }

    fn tool(
        &self,
        tool: Tool,
        sources: &[Source],
        known: &Known,
        ledger: &mut Ledger,
        results: &mut Results,
    ) -> Result<()> {
        results.found(sources.len());
        let is_unchanged = |source: &Source| {
            let row = ledger.source(tool, &source.name());
            row.is_some_and(|row| self.is_unchanged(source, row, known, ledger))
        };
        let (unchanged, changed): (Vec<Source>, Vec<Source>) =
            sources.iter().cloned().partition(is_unchanged);
        let find = |path: &Path| source_at(tool, path, self.session_dir);
        let mut relatives = Relatives::of(tool, sources, unchanged, &find);
        let mut next = changed;
        let mut read: Vec<ReadSource> = Vec::new();
        let mut homes: HashMap<String, String> = HashMap::new();
        while !next.is_empty() {
            let first = read.len();
            self.read(next, known, ledger, &mut read, results)?;
            let new = read.get(first..).unwrap_or_default();
            let found = self.homes(tool, new, known, ledger)?;
            homes.extend(found.homes);
            for source in read.get_mut(first..).unwrap_or_default() {
                let members = &mut source.members;
                members.retain(|member| !found.silent.contains(&member.native_id));
            }
            let new = read.get(first..).unwrap_or_default();
            next = relatives.take(new, ledger, &homes, &known.anew);
        }
        results.found(relatives.added());
        for source in relatives.rest() {
            // The source was not modified later, so its conversations have no later messages.
            let since = self.request.since.unwrap_or(Millis::MIN).div_euclid(1000);
            let is_wanted = |row: &ImportedSession| {
                self.is_of_cwd(&row.cwd) && source.status.modified.0 >= since
            };
            results.unchanged(tool, &source, ledger, &known.sessions, &is_wanted);
        }
        if read.is_empty() {
            return Ok(());
        }
        let mut batch = Batch::new(
            tool,
            read,
            ledger,
            &homes,
            self.request,
            known.redaction.clone(),
        );
        self.adopt(&mut batch, &homes, known, ledger)?;
        self.write(batch, known, ledger, results)
    }

    /// For each native session that the ledger does not have, the session to which it belongs.
    fn homes(
        &self,
        tool: Tool,
        read: &[ReadSource],
        known: &Known,
        ledger: &Ledger,
    ) -> Result<Found> {
        let rows = || self.rows(tool, known);
        let homes = Homes {
            tool,
            store: self.store,
            rows: &rows,
            known: &known.sessions,
            ledger,
            cancel: self.cancel,
        };
        homes.find(read)
    }

    /// The rows of all sessions. For an export, these are the rows from before the import. The sessions that the import
    /// writes have no conversation of a later group, and new rows of all sessions after each group would take time and
    /// memory.
    fn rows(&self, tool: Tool, known: &Known) -> Result<Rows> {
        if !tool.is_export() {
            return self.store.rows();
        }
        let mut rows = lock(&known.rows);
        match &*rows {
            Some(rows) => Ok(Arc::clone(rows)),
            None => Ok(Arc::clone(rows.insert(self.store.rows()?))),
        }
    }

    /// Finds the nodes of this tool that the sessions already have, because the conversations were handed over from
    /// these sessions or recorded in them.
    fn adopt(
        &self,
        batch: &mut Batch,
        homes: &HashMap<String, String>,
        known: &Known,
        ledger: &Ledger,
    ) -> Result<()> {
        let homes: HashSet<&String> = homes.values().collect();
        let recorded = self.recorded(batch, known)?;
        for at in 0..batch.forest.sessions.len() {
            let Some(tree) = batch.forest.sessions.get(at) else {
                continue;
            };
            let id = &tree.session_id;
            let row = ledger.session(batch.tool, id);
            let is_home =
                homes.contains(id) || recorded.contains(id) || row.is_some_and(|row| row.is_home);
            if let Some(file) = known.sessions.get(id).filter(|_| is_home) {
                let opened = shed::open_whole(self.store, file, self.cancel);
                let adopted = opened.and_then(|opened| batch.adopt(at, &opened));
                match adopted {
                    Err(error) if ends_import(&error) => return Err(error),
                    adopted => batch
                        .not_compared
                        .extend(adopted.err().map(|error| (at, error))),
                }
            }
        }
        Ok(())
    }

    /// The sessions of a batch into which a recorder has written.
    fn recorded(&self, batch: &Batch, known: &Known) -> Result<HashSet<String>> {
        let sessions = batch.forest.sessions.iter().map(|tree| &tree.session_id);
        let there: Vec<(&String, &Location)> = sessions
            .filter_map(|id| known.sessions.get_key_value(id))
            .collect();
        if there.len() > MOST_OPENED {
            let rows = self.rows(batch.tool, known)?;
            let rows = rows.iter().filter(|row| !row.listing.recorded.is_empty());
            let headers = rows.filter_map(|row| row.listing.header.as_ref());
            return Ok(headers.map(|header| header.id.clone()).collect());
        }
        let mut recorded = HashSet::new();
        for (id, at) in there {
            if self.has_record(at) {
                recorded.insert(id.clone());
            }
        }
        Ok(recorded)
    }

    /// Whether a recorder has written into a session. False if the session cannot be read, because such a session is
    /// not written either.
    fn has_record(&self, at: &Location) -> bool {
        let opened = self.store.open(at.clone(), self.cancel);
        opened.is_ok_and(|opened| records_of(&opened).is_ok_and(|records| !records.is_empty()))
    }

    /// Whether a source is unchanged since an earlier import read it, and its sessions are complete.
    fn is_unchanged(
        &self,
        source: &Source,
        row: &SourceRow,
        known: &Known,
        ledger: &Ledger,
    ) -> bool {
        let is_told = self.request.is_final || self.request.has_ended;
        let may_be_longer = row
            .held_until
            .is_some_and(|until| is_told || until <= self.now);
        let is_there = |session: &String| {
            let row = ledger.session(row.tool, session);
            match known.sessions.get(session) {
                // A session file that was shortened lacks entries, so its source is read again.
                Some(at) => shed::is_as_long(at, row.map(|row| row.len)),
                None => row.is_some_and(|row| row.trashed),
            }
        };
        source.kept.is_none()
            && row.status == source.status
            && !known.anew.contains(&source.name())
            && !may_be_longer
            // The hook may have seen a new position in git, so the session gets a record of it.
            && !row.natives.iter().any(|native| self.request.git.contains_key(native))
            && row.targets.iter().all(is_there)
            && (row.origin.is_empty() || known.origins.contains(OsStr::new(&row.origin)))
    }

    /// Reads sources on all cores. Sources that cannot be read are added to the report.
    fn read(
        &self,
        sources: Vec<Source>,
        known: &Known,
        ledger: &Ledger,
        read: &mut Vec<ReadSource>,
        results: &mut Results,
    ) -> Result<()> {
        // If secrets are replaced, no bytes are kept, because these would contain the secrets.
        let origins = match self.request.is_dry_run || known.redaction.is_on {
            true => None,
            false => Some(Origins::of(self.session_dir)?.for_sources(&sources)),
        };
        let total = sources.iter().map(|source| source.status.size).sum();
        (self.progress)(0, total);
        let progress = |bytes: u64| (self.progress)(bytes, 0);
        let mut refused = Vec::new();
        let large = lock(&known.large);
        let sides = Sides::default();
        let reading = Reading {
            sides: &sides,
            ledger,
            anew: &known.anew,
            limits: self.request.limits,
            large: &large,
            origins: origins.as_ref(),
            is_final: self.request.is_final,
            has_ended: self.request.has_ended,
            now: self.now,
            cancel: self.cancel,
            progress: &progress,
        };
        let work = |(): &mut (), number: usize| {
            let source = sources.get(number)?;
            let read = reading.read(format(source.tool), source.clone());
            Some(read.map_err(|failure| (number, failure)))
        };
        let first = read.len();
        let take = |done: Option<Result<ReadSource, (usize, ScanFailure)>>| {
            match done {
                None => {}
                Some(Ok(source)) => read.push(source),
                Some(Err((number, ScanFailure::Source(mut failure)))) => {
                    if failure.kind == TOO_LARGE
                        && let Some(source) = sources.get(number)
                    {
                        failure.path = source.name().into();
                        refused.push((number, failure.message.clone()));
                    }
                    results.fail(failure);
                }
                Some(Err((_, ScanFailure::Import(error)))) => return ControlFlow::Break(error),
            }
            ControlFlow::Continue(())
        };
        // All results stay in memory in any case, so a thread never waits because of a long source.
        let plan = ThreadPlan {
            ahead: sources.len(),
            ..ThreadPlan::up_to(cores())
        };
        let done = map_in_order(sources.len(), plan, || (), work, take);
        drop(large);
        let mut large = lock(&known.large);
        for (number, message) in refused {
            if let Some(source) = sources.get(number) {
                large.refuse(source, &message);
            }
        }
        let is_unlimited = self.request.limits == Limits::NONE;
        for source in read.get(first..).unwrap_or_default() {
            large.imported(&source.source, source.is_beyond, is_unlimited);
        }
        match done {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        }
    }

    /// Writes the sessions of one tool, and adds them to the ledger.
    fn write(
        &self,
        batch: Batch,
        known: &Known,
        ledger: &mut Ledger,
        results: &mut Results,
    ) -> Result<()> {
        let files = batch.files();
        let sessions = batch.forest.sessions.iter().enumerate();
        let wanted = sessions.filter(|(_, tree)| self.is_wanted(tree));
        let wanted: BTreeSet<usize> = wanted.map(|(at, _)| at).collect();
        let order: Vec<usize> = wanted.iter().copied().collect();
        let trashed = self.trashed(&batch, &order, &known.sessions, ledger)?;
        let folders: Mutex<NewNames> = Mutex::default();
        // A source may have many sessions. Each thread opens it once for all of them.
        let contents = || SourceContents::new(&batch.sources, &batch.source_of);
        let work = |contents: &mut SourceContents<'_>, number: usize| {
            let at = order.get(number).copied()?;
            let tree = batch.forest.sessions.get(at)?;
            if let Some(error) = batch.not_compared.get(&at) {
                return Some((at, Err(error.clone())));
            }
            let row = batch.row(tree);
            if trashed.contains(&tree.session_id) {
                let skipped = Some("trashed".to_owned());
                return Some((at, Ok(ImportedSession { skipped, ..row })));
            }
            let written = self.session(&batch, tree, row, (&files, &folders), contents, known);
            Some((at, written))
        };
        let mut failed: HashMap<usize, Error> = HashMap::new();
        let mut rows: Vec<(usize, ImportedSession)> = Vec::new();
        let take = |done: Option<(usize, Result<ImportedSession>)>| {
            match done {
                None => {}
                Some((at, Ok(row))) => rows.push((at, row)),
                Some((_, Err(error))) if ends_import(&error) => return ControlFlow::Break(error),
                Some((at, Err(error))) => {
                    failed.insert(at, error);
                }
            }
            ControlFlow::Continue(())
        };
        let plan = ThreadPlan {
            helpers: cores() + WAITING,
            ahead: order.len(),
        };
        let done = map_in_order(order.len(), plan, contents, work, take);
        if !self.request.is_dry_run {
            // The ledger may only name files that a crash cannot remove, so the folders are synced first.
            for folder in lock(&folders).values() {
                let synced = folder.sync();
                synced.map_err(|error| Error::io("sync a folder of sessions", &error))?;
            }
            if !known.redaction.is_on {
                Origins::of(self.session_dir)?.sync()?;
            }
            batch.note(ledger, &rows, &failed)?;
        }
        if let ControlFlow::Break(error) = done {
            return Err(error);
        }
        for (number, (source, file)) in batch.sources.iter().zip(files).enumerate() {
            let mut sessions = batch.sessions_of(number).peekable();
            // A source is not in the report if none of its sessions was requested.
            let is_left_out = sessions.peek().is_some() && !sessions.any(|at| wanted.contains(&at));
            if !is_left_out {
                results.read(source, file, batch.failure(number, &failed));
            }
        }
        for (_, row) in rows {
            results.session(row);
        }
        Ok(())
    }

    /// Whether a session has the requested directory and time.
    fn is_wanted(&self, tree: &SessionTree) -> bool {
        let of_cwd = self.is_of_cwd(tree.cwd.as_deref().unwrap_or_default());
        let since = self.request.since;
        of_cwd && since.is_none_or(|since| tree.ended.is_some_and(|ended| ended >= since))
    }

    fn is_of_cwd(&self, its: &str) -> bool {
        let wanted = self.request.cwd.as_deref();
        wanted.is_none_or(|cwd| name::directory(its) == name::directory(cwd))
    }

    /// The sessions that were imported before and that the user has deleted since.
    fn trashed(
        &self,
        batch: &Batch,
        wanted: &[usize],
        known: &HashMap<String, Location>,
        ledger: &mut Ledger,
    ) -> Result<HashSet<String>> {
        let mut gone = HashSet::new();
        let trees = wanted
            .iter()
            .filter_map(|at| batch.forest.sessions.get(*at));
        let missing: Vec<&SessionTree> = trees
            .filter(|tree| !known.contains_key(&tree.session_id))
            .collect();
        if missing.is_empty() {
            return Ok(gone);
        }
        let in_trash = self.store.trashed_ids()?;
        for tree in missing {
            let id = &tree.session_id;
            let is_again = self.request.again.as_ref() == Some(id);
            let is_noted = ledger.is_trashed(id);
            if (is_noted || in_trash.contains(id)) && !is_again {
                if !is_noted && !self.request.is_dry_run {
                    ledger.note_trashed(id, true)?;
                }
                gone.insert(id.clone());
            }
        }
        Ok(gone)
    }

    /// Writes one session. In a dry run it is only counted.
    fn session(
        &self,
        batch: &Batch,
        tree: &SessionTree,
        row: ImportedSession,
        (files, folders): (&[ImportedFile], &Mutex<NewNames>),
        contents: &mut SourceContents<'_>,
        known: &Known,
    ) -> Result<ImportedSession> {
        let maker = batch.maker(tree);
        let sources: BTreeSet<usize> = batch.sources_of(tree).collect();
        contents.keep_open(&sources);
        let files: Vec<&ImportedFile> = sources.iter().filter_map(|at| files.get(*at)).collect();
        let mut work = SessionWork {
            tree,
            maker: &maker,
            row,
            files: &files,
            git: InGit::of(tree, &batch.members, &self.request.git),
            now: self.now,
            cancel: self.cancel,
        };
        let writes = !self.request.is_dry_run;
        let at = known.sessions.get(&tree.session_id);
        let old = at.filter(|_| batch.has_source(tree, &known.anew));
        match at {
            Some(at) if old.is_none() => {
                let is_known = |entry: &TreeEntry| batch.is_known(entry);
                work.extend(self.store, at.clone(), contents, &is_known, writes)
            }
            _ if writes => {
                let (row, folder) = work.create(self.store, contents, old)?;
                lock(folders).insert(folder.path().to_owned(), folder);
                Ok(row)
            }
            _ => {
                let path = self.store.place_to_be(&work.header());
                work.row.path = path.display().to_string();
                work.count_new();
                Ok(work.row)
            }
        }
    }
}

/// Whether an error ends the whole import, and not just one session.
fn ends_import(error: &Error) -> bool {
    matches!(
        error.kind,
        Kind::Cancelled | Kind::StorageFull | Kind::PathDenied
    )
}
