//! Repeats the report of the last import, without reading the ledger, if a new import would find nothing new.
//!
//! The report of an import depends on six things: the request, the status of each source, the names in the folders of
//! the sources, the names in the session directory, the names in its origins, and the ledger. While none of these
//! changes, the report is the same. Sources in databases, and files that are recognized by their content, are always
//! read.

use super::discover::{Home, Request as Search, homes_of_files};
use super::ledger::{Ledger, LedgerFile};
use super::origin::Origins;
use super::redaction::Policy;
use super::request::{Import, ImportRequest};
use super::source::facts::{Source, SourceStatus};
use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use treelined_core::error::Result;
use treelined_files::kept::KeptPart;
use treelined_files::lock::lock;
use treelined_files::os::file::{FileKind, Folder, Location, Status};
use treelined_files::os::heap;
use treelined_files::parallel::{ThreadPlan, map_in_order};

/// For each group of this many files, one more thread is used.
const FILES_OF_THREAD: usize = 256;

/// The number of files that one thread examines at a time.
const FILES_OF_PART: usize = 64;

/// The last import, if it found nothing new.
#[derive(Default)]
pub struct LastImport(Arc<Mutex<Option<Arc<RepeatableImport>>>>);

/// An import that found nothing new.
struct RepeatableImport {
    request: ImportRequest,
    policy: Policy,
    session_dir: PathBuf,
    state: ImportState,
    /// The report, as JSON.
    json: Vec<u8>,
    part: KeptPart,
}

/// The state on which the report of an import depends.
pub(super) struct ImportState {
    homes: Vec<Home>,
    /// The folders of the sources, and of the session directory.
    folders: Vec<FolderState>,
    /// The status of the ledger's file; `None` until the import has ended.
    ledger: Option<Status>,
}

/// The state of a folder, and of the sources or session files in it.
struct FolderState {
    path: PathBuf,
    status: Status,
    names: Vec<OsString>,
    /// The status of each file, in the order of the names.
    files: Vec<SourceStatus>,
}

impl LastImport {
    /// Imports, and returns the report as JSON. If nothing has changed since the last import, its report is returned
    /// again.
    pub fn run(&self, import: &Import<'_>) -> Result<Vec<u8>> {
        match self.repeated(import)? {
            Some(json) => Ok(json),
            None => self.made(import),
        }
    }

    /// The report of the last import, if this import would give the same report.
    pub(super) fn repeated(&self, import: &Import<'_>) -> Result<Option<Vec<u8>>> {
        let last = lock(&self.0).clone();
        let Some(last) = last.filter(|last| last.is_of(import)) else {
            return Ok(None);
        };
        // Like any import, this fails while another one runs.
        let ledger = LedgerFile::locked(import.session_dir)?;
        let search = import.search();
        let is_same = last.state.holds(&ledger, &search, import.session_dir);
        last.part.used();
        Ok(is_same.then(|| last.json.clone()))
    }

    fn made(&self, import: &Import<'_>) -> Result<Vec<u8>> {
        let (mut report, state) = import.run_repeatably()?;
        // Reading the list of sessions may write the cache, but a dry run must not write anything. A recorder has no
        // conversations of exports.
        if !import.request.is_dry_run && report.may_be_recorded() {
            report.name_conversations(&import.store.list()?);
        }
        let json = report.json()?;
        drop(report);
        heap::freed(heap::WORTHWHILE);
        *lock(&self.0) = None;
        let kept =
            state.and_then(|state| Some((self.part(import, json.len() + state.bytes())?, state)));
        *lock(&self.0) = kept.map(|(part, state)| {
            Arc::new(RepeatableImport {
                request: import.request.clone(),
                policy: Policy::read(import.session_dir),
                session_dir: import.session_dir.to_owned(),
                state,
                json: json.clone(),
                part,
            })
        });
        Ok(json)
    }

    /// The memory to keep the result of an import.
    fn part(&self, import: &Import<'_>, bytes: usize) -> Option<KeptPart> {
        let last = Arc::downgrade(&self.0);
        import.store.kept().take(bytes, move || {
            if let Some(last) = last.upgrade()
                && let Ok(mut last) = last.try_lock()
            {
                *last = None;
            }
        })
    }
}

impl RepeatableImport {
    fn is_of(&self, import: &Import<'_>) -> bool {
        self.request == *import.request
            && self.session_dir == import.session_dir
            && self.policy == Policy::read(import.session_dir)
    }
}

impl ImportState {
    /// The state of the session directory before an import. `None` if some sources may not be files.
    pub(super) fn before(search: &Search, session_dir: &Path) -> Option<Self> {
        let homes = homes_of_files(search, session_dir)?;
        let root = Arc::new(Folder::open(session_dir).ok()?);
        let mut folders = vec![FolderState::of(root.path(), root.own_status().ok()?)];
        for (name, kind) in root.list().ok()? {
            let is_hidden = name.as_encoded_bytes().starts_with(b".");
            if kind != FileKind::Folder || is_hidden {
                continue;
            }
            let folder = root.subfolder(&name).ok()?;
            folders.push(FolderState::of(folder.path(), folder.own_status().ok()?));
        }
        if let Ok((path, status)) = Origins::folder_status(session_dir) {
            folders.push(FolderState::of(&path, status));
        }
        Some(Self {
            homes,
            folders,
            ledger: None,
        })
    }

    /// Adds the state of the sources. `None` if a source may have to be read again although it does not change.
    pub(super) fn with_sources(
        mut self,
        sources: &[Source],
        folders: &[(PathBuf, Status)],
        ledger: &Ledger,
    ) -> Option<Self> {
        let mut numbers = HashMap::new();
        for (path, status) in folders {
            numbers.insert(path.clone(), self.folders.len());
            self.folders.push(FolderState::of(path, *status));
        }
        for source in sources {
            // The end of a source that was held back may become old enough to be imported.
            if ledger
                .source(source.tool, &source.name())
                .is_none_or(|row| row.held_until.is_some())
            {
                return None;
            }
            let number = *numbers.get(source.path.parent()?)?;
            let folder = self.folders.get_mut(number)?;
            folder.names.push(source.path.file_name()?.to_owned());
            folder.files.push(source.status);
        }
        let are_settled = self.folders.iter().all(|folder| folder.status.is_settled());
        are_settled.then_some(self)
    }

    /// Adds the state of the session files, because another program may shorten them.
    pub(super) fn with_sessions(
        mut self,
        sessions: &HashMap<String, Location>,
        ledger: &Ledger,
    ) -> Option<Self> {
        let paths = self.folders.iter().enumerate();
        let numbers: HashMap<PathBuf, usize> = paths
            .map(|(number, folder)| (folder.path.clone(), number))
            .collect();
        for (id, at) in sessions {
            if !ledger.has_noted(id) {
                continue;
            }
            let number = *numbers.get(at.folder.path())?;
            let folder = self.folders.get_mut(number)?;
            folder.names.push(at.name.clone());
            folder.files.push(SourceStatus::of_file(at.status().ok()?));
        }
        Some(self)
    }

    /// Adds the status of the ledger, after the import.
    pub(super) fn with_ledger(self, ledger: &Ledger) -> Option<Self> {
        let ledger = Some(ledger.status()?);
        Some(Self { ledger, ..self })
    }

    /// Whether nothing has changed.
    fn holds(&self, ledger: &LedgerFile, search: &Search, session_dir: &Path) -> bool {
        self.ledger.is_some()
            && self.ledger == ledger.status().ok()
            && homes_of_files(search, session_dir).is_some_and(|homes| homes == self.homes)
            && self.folders_hold()
    }

    fn folders_hold(&self) -> bool {
        let parts: Vec<(&FolderState, Range<usize>)> = self
            .folders
            .iter()
            .flat_map(|folder| folder.parts().map(move |names| (folder, names)))
            .collect();
        let holds = |(): &mut (), number: usize| {
            let part = parts.get(number).cloned();
            part.is_some_and(|(folder, names)| folder.holds(names).unwrap_or(false))
        };
        let take = |holds| match holds {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        let files: usize = self.folders.iter().map(|folder| folder.names.len()).sum();
        // Each part is examined at once: no thread waits for the result of another.
        let plan = ThreadPlan {
            ahead: parts.len().max(1),
            ..ThreadPlan::up_to(files / FILES_OF_THREAD + 1)
        };
        map_in_order(parts.len(), plan, || (), holds, take).is_continue()
    }

    /// The approximate number of bytes that the state needs in memory.
    fn bytes(&self) -> usize {
        let of_folder = |folder: &FolderState| {
            let names = folder.names.iter();
            let names: usize = names.map(|name| name.len() + size_of::<OsString>()).sum();
            names + folder.files.len() * size_of::<SourceStatus>() + folder.path.as_os_str().len()
        };
        self.folders.iter().map(of_folder).sum()
    }
}

impl FolderState {
    fn of(path: &Path, status: Status) -> Self {
        Self {
            path: path.to_owned(),
            status,
            names: Vec::new(),
            files: Vec::new(),
        }
    }

    /// The ranges of names that threads examine at a time. There is at least one range, because the folder itself is
    /// examined too.
    fn parts(&self) -> impl Iterator<Item = Range<usize>> {
        let starts = (0..self.names.len().max(1)).step_by(FILES_OF_PART);
        starts.map(|start| start..self.names.len().min(start + FILES_OF_PART))
    }

    /// Whether the files of a range are unchanged. With the first range, the folder itself is examined too.
    fn holds(&self, part: Range<usize>) -> io::Result<bool> {
        let folder = Folder::open(&self.path)?;
        if part.start == 0 && folder.own_status()? != self.status {
            return Ok(false);
        }
        let files = self.files.get(part.clone()).unwrap_or_default();
        let names = self.names.get(part).unwrap_or_default();
        let (mut known, mut is_same) = (files.iter(), true);
        folder.statuses(names, |_, status| {
            let status = status.ok().map(SourceStatus::of_file);
            is_same &= status.as_ref() == known.next();
        })?;
        Ok(is_same)
    }
}
