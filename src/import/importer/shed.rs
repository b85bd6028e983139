//! Sessions with shed branches: an import compares a session with its source, so it reads all lines of the session. The
//! import moves a shed branch back only if it writes below an entry of the branch or names such an entry
//! (session-file.md §4.10).

use hashbrown::HashSet;
use treelined_core::error::{Error, Kind, Result};
use treelined_files::cancel::Cancel;
use treelined_files::log::append::Lock;
use treelined_files::log::unshed::WholeLog;
use treelined_files::log::{OpenedLog, cold};
use treelined_files::os::file::Location;
use treelined_files::os::process;
use treelined_files::store::Store;

/// Whether a session has at least `len` bytes, its earlier length. The lines of shed branches count.
pub(super) fn is_as_long(at: &Location, len: Option<u64>) -> bool {
    cold::size_with(at).is_ok_and(|size| len.is_none_or(|len| size >= len))
}

/// Opens a session with the lines of its shed branches, to read it.
pub(super) fn open_whole(store: &Store, at: &Location, cancel: &Cancel) -> Result<OpenedLog> {
    WholeLog::of_unlocked(|| store.open(at.clone(), cancel))
}

/// A session file whose lock is held, and its whole session.
pub(super) struct LockedSession {
    pub(super) opened: OpenedLog,
    whole: Option<WholeLog>,
}

impl LockedSession {
    pub(super) fn new(opened: OpenedLog) -> Result<Self> {
        let whole = WholeLog::of(&opened)?;
        Ok(Self { opened, whole })
    }

    /// The session with the lines of its shed branches.
    pub(super) fn whole(&self) -> &OpenedLog {
        self.whole
            .as_ref()
            .map_or(&self.opened, |whole| &whole.opened)
    }

    /// Moves back the shed branches that have one of these entries. True if there are such branches. In this case the
    /// session must be opened again.
    pub(super) fn bring_back<'e>(
        &self,
        lock: &Lock,
        entries: impl Iterator<Item = &'e str>,
    ) -> Result<bool> {
        let Some(whole) = &self.whole else {
            return Ok(false);
        };
        let branches = entries.filter_map(|id| whole.branch_of(id).map(str::to_owned));
        let branches: HashSet<String> = branches.collect();
        if branches.is_empty() {
            return Ok(false);
        }
        let writers = self.opened.log.identity().and_then(process::writers_of);
        if let Some(writer) = writers.unwrap_or_default().first() {
            let why = format!("process {writer} has it open for writing: end it first");
            return Err(Error::new(Kind::SessionLocked, why));
        }
        let OpenedLog { log, tree, .. } = &self.opened;
        log.unshed(lock, tree, &branches, None)?;
        Ok(true)
    }
}
