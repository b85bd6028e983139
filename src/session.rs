//! An open session: its log and its tree, changed together and nowhere else.
//!
//! Owns the order of things: whoever reads or writes holds the session's [`Turn`], and turns are taken
//! in the order they were asked for (protocol.md §1). A turn is held for memory work and for a write,
//! never while a question, a summarizer or a sync is waited for.
//!
//! It does not know what is written or why (`flow`), nor who is told (`rpc`).

use crate::cancel::Cancel;
use crate::error::{Error, Kind, Result};
use crate::id::{EntryId, SessionId};
use crate::log::append::{self, Lock, TryLock};
use crate::log::body::{Bodies, Fetch};
use crate::log::carry::Predecessor;
use crate::log::diagnostic::Diagnostic;
use crate::log::file::Location;
use crate::log::ingest::CURRENT_VERSION;
use crate::log::scan::Kind as EntryKind;
use crate::log::{Log, Opened, Standing};
use crate::sync::{self, Durability, Syncer};
use crate::tree::{Flags, Node, Tree};
use serde_json::json;
use std::fs::File;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, OwnedMutexGuard};

/// How long an append waits for a lock that another process holds (storage.md §3).
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// More new bytes than this are not read on the thread that reads requests.
const INLINE_REFRESH_BYTES: u64 = 1 << 20;
/// Entries shown with `leafMoved`.
const MAX_MOVED_ENTRIES: usize = 100;
/// What they may have together, in bytes.
const MAX_MOVED_BYTES: u64 = 256 << 10;

/// One open session.
pub struct Session {
    pub id: SessionId,
    pub read_only: bool,
    /// Of a version of the format that cannot be written.
    is_newer: bool,
    pub ephemeral: bool,
    /// Of its file; `None` if it never has one.
    pub path: Option<PathBuf>,
    /// Tells revisions of this opening from those of another.
    pub nonce: u32,
    /// An async lock, since it is handed out first come first served and may be held by a
    /// navigation that waits (on a connection without `initialize`).
    core: Arc<tokio::sync::Mutex<Core>>,
    activity: Mutex<Option<Activity>>,
    /// Told when an activity ends.
    ended: Notify,
    closed: AtomicBool,
    pub syncer: Syncer,
}

/// What keeps a session busy (protocol.md §4.1).
#[derive(Debug, Clone)]
pub enum Activity {
    Navigation { id: String, abort: Cancel },
    Compaction { abort: Cancel },
    Turn,
}

/// A session's log and tree.
pub struct Core {
    pub log: Log,
    pub tree: Tree,
    /// Nodes from this number on arrived after the leaf came to stand where it is.
    leaf_since: usize,
    read_only: bool,
    /// Files that were replaced a short while ago.
    predecessors: Vec<Predecessor>,
    /// Since when others have held the file's lock whenever we asked.
    contended_since: Option<Instant>,
}

/// The right to read or change a session, until dropped.
pub struct Turn {
    core: OwnedMutexGuard<Core>,
    /// When it was asked for.
    asked: Instant,
}

impl Deref for Turn {
    type Target = Core;
    fn deref(&self) -> &Core {
        &self.core
    }
}

impl DerefMut for Turn {
    fn deref_mut(&mut self) -> &mut Core {
        &mut self.core
    }
}

/// Lines ready to be written, as a pure flow has planned them.
#[derive(Debug, Default)]
pub struct Planned {
    /// Whole entries, without line breaks, in file order.
    pub lines: Vec<Vec<u8>>,
    /// Their ids, leaf records left out.
    pub entry_ids: Vec<EntryId>,
}

/// What an operation changed or found changed.
#[derive(Debug, Default)]
pub struct Changes {
    /// Entries appended by this operation.
    pub own: Vec<Node>,
    /// Entries that others have appended, found meanwhile.
    pub others: Vec<Node>,
    /// Whether others have appended anything, be it only a move of their leaf.
    pub others_moved: bool,
    pub diagnostics: Vec<Diagnostic>,
}

impl Session {
    pub fn new(opened: Opened, read_only: bool, durability: Durability) -> Arc<Self> {
        let Opened { log, tree, .. } = opened;
        let path = log.location().map(Location::path);
        let ephemeral = path.is_none();
        let is_newer = log.version() > CURRENT_VERSION;
        let read_only = read_only || is_newer;
        let id = log.header().map(|h| h.id.as_str()).unwrap_or_default();
        Arc::new(Self {
            id: SessionId::new(id),
            read_only,
            is_newer,
            ephemeral,
            path,
            nonce: uuid::Uuid::new_v4().as_fields().0,
            core: Arc::new(tokio::sync::Mutex::new(Core {
                leaf_since: tree.node_count(),
                log,
                tree,
                read_only,
                predecessors: Vec::new(),
                contended_since: None,
            })),
            activity: Mutex::new(None),
            ended: Notify::new(),
            closed: AtomicBool::new(false),
            syncer: Syncer::new(if ephemeral {
                Durability::None
            } else {
                durability
            }),
        })
    }

    /// Waits for everything asked of this session before, then for nothing else.
    pub async fn turn(&self, cancel: &Cancel) -> Result<Turn> {
        let asked = Instant::now();
        let core = cancel.guard(Arc::clone(&self.core).lock_owned()).await?;
        if self.is_closed() {
            return Err(Error::session_not_found(self.id.as_str()));
        }
        Ok(Turn { core, asked })
    }

    /// A turn that has taken in what others have appended: the way to read.
    pub async fn fresh_turn(&self, cancel: &Cancel) -> Result<(Turn, Changes)> {
        let turn = self.turn(cancel).await?;
        turn.refreshed().await
    }

    /// The log and tree, for a thread that may wait.
    pub fn blocking_core(&self) -> tokio::sync::MutexGuard<'_, Core> {
        self.core.blocking_lock()
    }

    /// `sessionBusy` during a turn of the client's.
    pub fn check_not_in_turn(&self) -> Result<()> {
        match self.activity() {
            Some(turn @ Activity::Turn) => Err(turn.busy()),
            _ => Ok(()),
        }
    }

    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// `readOnly` where nothing may be changed.
    pub fn check_writable(&self) -> Result<()> {
        if self.is_newer {
            return Err(Error::new(
                Kind::VersionUnsupported,
                "the session is of a newer version of the format and can only be read",
            ));
        }
        if self.read_only {
            return Err(Error::new(
                Kind::ReadOnly,
                "the session is open for reading only",
            ));
        }
        Ok(())
    }

    /// What the session is busy with.
    pub fn activity(&self) -> Option<Activity> {
        self.activity_slot().clone()
    }

    /// `sessionBusy` while a turn, a compaction or a navigation is running.
    pub fn check_idle(&self) -> Result<()> {
        self.activity()
            .as_ref()
            .map_or(Ok(()), |activity| Err(activity.busy()))
    }

    /// Begins an activity; `sessionBusy` if there is one.
    pub fn begin(self: &Arc<Self>, activity: Activity) -> Result<Busy> {
        let mut slot = self.activity_slot();
        if let Some(running) = &*slot {
            return Err(running.busy());
        }
        *slot = Some(activity);
        Ok(Busy(Arc::clone(self)))
    }

    /// Waits until nothing keeps the session busy.
    pub async fn idle(&self) {
        loop {
            let ended = self.ended.notified();
            if self.activity().is_none() {
                return;
            }
            ended.await;
        }
    }

    fn activity_slot(&self) -> std::sync::MutexGuard<'_, Option<Activity>> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the activity when dropped.
#[must_use]
pub struct Busy(Arc<Session>);

impl Drop for Busy {
    fn drop(&mut self) {
        *self.0.activity_slot() = None;
        self.0.ended.notify_waiters();
    }
}

impl Activity {
    fn busy(&self) -> Error {
        let (by, id) = match self {
            Activity::Navigation { id, .. } => ("navigation", Some(id)),
            Activity::Compaction { .. } => ("compaction", None),
            Activity::Turn => ("turn", None),
        };
        let details = match id {
            Some(id) => json!({ "by": by, "navigationId": id }),
            None => json!({ "by": by }),
        };
        Error::new(Kind::SessionBusy, format!("a {by} is running")).with_details(details)
    }
}

impl Turn {
    /// Takes in what others have appended.
    pub async fn refreshed(mut self) -> Result<(Turn, Changes)> {
        match self.log.standing()? {
            // The open file still has everything; only appending is impossible.
            Standing::Unchanged | Standing::Deleted => Ok((self, Changes::default())),
            Standing::Grown(bytes) if bytes <= INLINE_REFRESH_BYTES => {
                let changes = self.refresh()?;
                Ok((self, changes))
            }
            standing => {
                blocking(move || {
                    let changes = self.catch_up(standing)?;
                    Ok((self, changes))
                })
                .await
            }
        }
    }

    /// Plans against the refreshed tree and writes what was planned, under the file's lock. Comes
    /// back with the turn; what changed is told even if it failed.
    pub async fn commit<P>(
        mut self,
        cancel: &Cancel,
        plan: P,
    ) -> (Option<Turn>, Changes, Result<Committed>)
    where
        P: FnOnce(&Core) -> Result<Planned> + Send + 'static,
    {
        let mut plan = Some(plan);
        let mut changes = Changes::default();
        match self.try_commit(&mut plan, &mut changes, false) {
            Ok(Some(committed)) => (Some(self), changes, Ok(committed)),
            Err(error) => (Some(self), changes, Err(error)),
            Ok(None) => {
                let cancel = cancel.clone();
                let outcome = blocking(move || {
                    let result = self.commit_waiting(&cancel, plan, &mut changes);
                    Ok((self, changes, result))
                })
                .await;
                match outcome {
                    Ok((turn, changes, result)) => (Some(turn), changes, result),
                    Err(error) => (None, Changes::default(), Err(error)),
                }
            }
        }
    }
}

/// What a commit did.
#[derive(Debug)]
pub struct Committed {
    pub entry_ids: Vec<EntryId>,
    /// Whether anything was written.
    pub wrote: bool,
    /// What has still to be synced by the session's policy.
    pub unsynced: Option<Arc<File>>,
}

/// A plan that has not been carried out yet.
type Pending<P> = Option<P>;

impl Core {
    /// Where this daemon stands.
    pub fn leaf(&self) -> Option<Node> {
        self.tree.leaf()
    }

    pub fn leaf_id(&self) -> Option<&str> {
        self.id_of(self.leaf())
    }

    pub fn id_of(&self, node: Option<Node>) -> Option<&str> {
        node.map(|node| self.tree.id(node))
    }

    /// The entry with this id.
    pub fn find(&self, id: &str) -> Result<Node> {
        self.tree.find(id).ok_or_else(|| Error::entry_not_found(id))
    }

    /// An entry, or for `None` the empty position.
    pub fn find_position(&self, id: Option<&str>) -> Result<Option<Node>> {
        id.map(|id| self.find(id)).transpose()
    }

    /// A snapshot to read bodies from without the turn.
    pub fn bodies(&self) -> Bodies {
        self.log.bodies()
    }

    /// Prepares reading the bodies of these entries.
    pub fn fetch(&self, nodes: impl IntoIterator<Item = Node>) -> Result<Vec<Fetch>> {
        let bodies = self.bodies();
        nodes
            .into_iter()
            .map(|node| bodies.fetch(&self.tree, node))
            .collect()
    }

    /// The entry as clients get it.
    pub fn entry(&self, node: Node) -> Result<Vec<u8>> {
        let bodies = self.bodies();
        bodies.entry(&bodies.fetch(&self.tree, node)?)
    }

    /// Fails with `leafMoved` if the client's idea of the leaf is wrong by more than labels and
    /// session_info, or if others have appended below it since we came to stand there
    /// (protocol.md §3). `None`: no check.
    pub fn check_expected_leaf(&self, expected: Option<Option<&str>>) -> Result<()> {
        let Some(expected_id) = expected else {
            return Ok(());
        };
        let expected = expected_id.map(|id| self.tree.resolve(id));
        let known = match expected {
            None => Some(None),
            Some(resolved) => resolved,
        };
        let same = known.is_some_and(|at| self.tree.settle(at) == self.tree.settle(self.leaf()));
        let below = self.others_below_leaf();
        if same && below.is_empty() {
            return Ok(());
        }
        let mut since: Vec<Node> = match known {
            Some(at) => {
                let above = self.tree.ancestors(self.leaf());
                above.take_while(|node| Some(*node) != at).collect()
            }
            None => self.leaf().into_iter().collect(),
        };
        since.extend(below);
        since.sort_unstable();
        since.dedup();
        Err(self.leaf_moved(expected_id, &since))
    }

    /// Fails with `leafMoved` unless the leaf still is `old`, give or take labels and session_info.
    pub fn check_leaf_is_still(&self, old: Option<&str>) -> Result<()> {
        let known = match old {
            None => Some(None),
            Some(id) => self.tree.resolve(id),
        };
        if known.is_some_and(|at| self.tree.settle(at) == self.tree.settle(self.leaf())) {
            return Ok(());
        }
        let above = self.tree.ancestors(self.leaf());
        let mut since: Vec<Node> = match known {
            Some(at) => above.take_while(|node| Some(*node) != at).collect(),
            None => Vec::new(),
        };
        since.reverse();
        Err(self.leaf_moved(old, &since))
    }

    fn leaf_moved(&self, expected: Option<&str>, since: &[Node]) -> Error {
        let start = since.len().saturating_sub(MAX_MOVED_ENTRIES);
        let newest = since.get(start..).unwrap_or_default();
        let size = |node: &Node| u64::from(self.tree.place(*node).len);
        let fits = newest.iter().map(size).sum::<u64>() <= MAX_MOVED_BYTES;
        let newest = if fits { newest } else { &[] };
        let entries: Vec<serde_json::Value> = newest
            .iter()
            .filter_map(|node| serde_json::from_slice(&self.entry(*node).ok()?).ok())
            .collect();
        Error::new(
            Kind::LeafMoved,
            "the leaf is not where the client expects it",
        )
        .with_details(json!({
            "expectedLeafId": expected,
            "leafId": self.leaf_id(),
            "entries": entries,
        }))
    }

    /// What others have appended below the leaf since it came to stand there, labels and
    /// session_info left out.
    fn others_below_leaf(&self) -> Vec<Node> {
        let since = (self.leaf_since..self.tree.node_count()).filter_map(|n| self.tree.node(n));
        since
            .filter(|node| self.tree.flags(*node).has(Flags::FOREIGN))
            .filter(|node| {
                !matches!(
                    self.tree.kind(*node),
                    EntryKind::Label | EntryKind::SessionInfo | EntryKind::LeafRecord
                )
            })
            .filter(|node| match self.leaf() {
                Some(leaf) => self.tree.is_ancestor(leaf, *node),
                None => true,
            })
            .take(MAX_MOVED_ENTRIES)
            .collect()
    }

    /// Takes in what others have appended since the last look.
    fn refresh(&mut self) -> Result<Changes> {
        let before = self.tree.node_count();
        let file_leaf = self.tree.file_leaf();
        self.log.refresh(&mut self.tree)?;
        let mut changes = Changes {
            diagnostics: self.log.take_diagnostics(),
            ..Changes::default()
        };
        self.note_others(before, file_leaf, &mut changes);
        Ok(changes)
    }

    fn note_others(&mut self, before: usize, file_leaf: Option<Node>, changes: &mut Changes) {
        let new = (before..self.tree.node_count()).filter_map(|n| self.tree.node(n));
        let entries = new.filter(|node| self.tree.kind(*node) != EntryKind::LeafRecord);
        changes.others.extend(entries);
        changes.others_moved |=
            before < self.tree.node_count() || file_leaf != self.tree.file_leaf();
        if self.read_only && self.tree.leaf() != self.tree.file_leaf() {
            self.move_leaf(self.tree.file_leaf());
        }
    }

    /// Refreshes, or opens the file again if it is another one with the same session.
    fn catch_up(&mut self, standing: Standing) -> Result<Changes> {
        match standing {
            Standing::Replaced => self.reopen(),
            _ => self.refresh(),
        }
    }

    /// Reads the file anew after it was replaced or rewritten; the leaf is kept, by its id.
    fn reopen(&mut self) -> Result<Changes> {
        let refused = || append::refuse(Standing::Replaced);
        let Some(location) = self.log.location().cloned() else {
            return Ok(Changes::default());
        };
        let opened = match Log::open(location) {
            Ok(opened) => opened,
            Err(error) if error.kind == Kind::HeaderMissing => {
                return Err(refused().unwrap_or(error));
            }
            Err(error) => return Err(error),
        };
        let ours = self.log.header().map(|header| header.id.as_str());
        if opened.log.header().map(|header| header.id.as_str()) != ours {
            return refused().map_or_else(|| Ok(Changes::default()), Err);
        }
        let leaf = match self.leaf_id() {
            None => None,
            Some(id) => match opened.tree.find(id) {
                Some(node) => Some(node),
                None => opened.tree.file_leaf(),
            },
        };
        let known = self.tree.node_count();
        let old_log = std::mem::replace(&mut self.log, opened.log);
        let old_tree = std::mem::replace(&mut self.tree, opened.tree);
        self.tree.take_place_of(&old_tree);
        self.move_leaf(leaf);
        let now_open = self.log.identity();
        self.predecessors
            .retain(|predecessor| predecessor.identity() != now_open);
        if !self.read_only && old_log.identity() != now_open {
            self.predecessors.extend(Predecessor::of(old_log, old_tree));
        }
        // What is wrong with the file was told when it was opened.
        let mut changes = Changes::default();
        if self.tree.node_count() > known {
            self.note_others(known, None, &mut changes);
        }
        Ok(changes)
    }

    /// Whether the session's file was replaced so short a while ago that something may still arrive
    /// in the old one.
    pub fn has_predecessor(&mut self) -> bool {
        self.predecessors
            .retain(|predecessor| !predecessor.is_over() || predecessor.has_arrivals());
        !self.predecessors.is_empty()
    }

    /// Whether something has arrived there.
    pub fn has_arrivals(&self) -> bool {
        self.predecessors.iter().any(Predecessor::has_arrivals)
    }

    /// Writes what has arrived in files that were replaced. The lock is held and the tree fresh.
    fn carry_over(&mut self, lock: &Lock, changes: &mut Changes) -> Result<Option<Arc<File>>> {
        let mut unsynced = None;
        let mut predecessors = std::mem::take(&mut self.predecessors);
        let mut carried = Ok(());
        for predecessor in &mut predecessors {
            if carried.is_ok() && predecessor.has_arrivals() {
                carried = self
                    .carry_from(predecessor, lock, changes)
                    .map(|file| unsynced = file.or(unsynced.take()));
            }
        }
        self.predecessors = predecessors;
        carried.map(|()| unsynced)
    }

    fn carry_from(
        &mut self,
        predecessor: &mut Predecessor,
        lock: &Lock,
        changes: &mut Changes,
    ) -> Result<Option<Arc<File>>> {
        let lines = predecessor.arrivals(&self.tree)?;
        if lines.is_empty() {
            return Ok(None);
        }
        let before = self.tree.node_count();
        let file_leaf = self.tree.file_leaf();
        let written = self.log.write_for_others(lock, &mut self.tree, lines);
        changes.diagnostics.extend(self.log.take_diagnostics());
        self.note_others(before, file_leaf, changes);
        let file = written?;
        predecessor.carried();
        Ok(file)
    }

    fn move_leaf(&mut self, leaf: Option<Node>) {
        self.tree.set_leaf(leaf);
        self.leaf_since = self.tree.node_count();
    }

    /// One attempt; `None` if it has to be made where waiting is allowed. The plan is only taken
    /// once the lock is held.
    fn try_commit<P>(
        &mut self,
        plan: &mut Pending<P>,
        changes: &mut Changes,
        may_wait: bool,
    ) -> Result<Option<Committed>>
    where
        P: FnOnce(&Core) -> Result<Planned>,
    {
        // The first write syncs file and folder.
        if !may_wait && self.log.location().is_some() && !self.log.is_written() {
            return Ok(None);
        }
        let standing = self.log.standing()?;
        if standing == Standing::Replaced {
            if !may_wait {
                return Ok(None);
            }
            self.catch_up_into(standing, changes)?;
        }
        let TryLock::Locked(lock) = self.log.try_lock()? else {
            self.contended_since.get_or_insert_with(Instant::now);
            return Ok(None);
        };
        self.contended_since = None;
        match self.log.standing()? {
            Standing::Unchanged => {}
            Standing::Grown(bytes) if may_wait || bytes <= INLINE_REFRESH_BYTES => {
                self.catch_up_into(Standing::Grown(bytes), changes)?;
            }
            Standing::Grown(_) => return Ok(None),
            // Replaced between the two looks: the lock is on the old file.
            Standing::Replaced => return Ok(None),
            standing @ Standing::Deleted => {
                return append::refuse(standing).map_or(Ok(None), Err);
            }
        }
        if self.log.needs_rewrite() {
            if !may_wait {
                return Ok(None);
            }
            self.log.rewrite(&lock, &self.tree)?;
            drop(lock);
            self.catch_up_into(Standing::Replaced, changes)?;
            return self.try_commit(plan, changes, may_wait);
        }
        let carried = self.carry_over(&lock, changes)?;
        let Some(plan) = plan.take() else {
            return Ok(None);
        };
        let planned = plan(self)?;
        if planned.lines.is_empty() {
            return Ok(Some(Committed {
                entry_ids: planned.entry_ids,
                wrote: false,
                unsynced: carried,
            }));
        }
        let before = self.tree.node_count();
        let line_count = planned.lines.len();
        let landed = self.log.write(&lock, planned.lines)?;
        let whole = self.log.take_in(&mut self.tree, &landed)?;
        drop(lock);
        changes.diagnostics.extend(self.log.take_diagnostics());
        self.sort_out(before, changes);
        if let Some(failure) = landed.failure {
            return Err(landed_in_part(
                failure,
                &planned.entry_ids,
                whole,
                line_count,
            ));
        }
        // The last line is ours, so it decides as it would on opening.
        self.move_leaf(self.tree.file_leaf());
        let unsynced = match landed.file {
            Some(file) if landed.created => {
                self.sync_creation(&file)?;
                None
            }
            file => file,
        };
        Ok(Some(Committed {
            entry_ids: planned.entry_ids,
            wrote: true,
            unsynced,
        }))
    }

    fn catch_up_into(&mut self, standing: Standing, changes: &mut Changes) -> Result<()> {
        let found = self.catch_up(standing)?;
        changes.others.extend(found.others);
        changes.others_moved |= found.others_moved;
        changes.diagnostics.extend(found.diagnostics);
        Ok(())
    }

    /// Tells what was just taken in apart: ours, and what came between.
    fn sort_out(&mut self, before: usize, changes: &mut Changes) {
        for node in (before..self.tree.node_count()).filter_map(|n| self.tree.node(n)) {
            let foreign = self.tree.flags(node).has(Flags::FOREIGN);
            changes.others_moved |= foreign;
            if self.tree.kind(node) == EntryKind::LeafRecord {
                continue;
            }
            if foreign {
                changes.others.push(node);
            } else {
                changes.own.push(node);
            }
        }
    }

    /// A new file and its name are made durable whatever the policy (storage.md §3).
    fn sync_creation(&self, file: &File) -> Result<()> {
        let folder = || match self.log.location() {
            Some(at) => at.folder.sync(),
            None => Ok(()),
        };
        file.sync_all()
            .and_then(|()| folder())
            .map_err(|error| sync::failed(&error))
    }
}

impl Turn {
    fn commit_waiting<P>(
        &mut self,
        cancel: &Cancel,
        mut plan: Pending<P>,
        changes: &mut Changes,
    ) -> Result<Committed>
    where
        P: FnOnce(&Core) -> Result<Planned>,
    {
        let mut pause = Duration::from_micros(50);
        loop {
            if let Some(committed) = self.try_commit(&mut plan, changes, true)? {
                return Ok(committed);
            }
            if cancel.is_cancelled() {
                return Err(Error::cancelled());
            }
            // Who has waited in line for others that did not get the lock does not wait anew.
            let since = self.contended_since.unwrap_or(self.asked).max(self.asked);
            if since.elapsed() >= LOCK_TIMEOUT {
                let mut error = Error::new(
                    Kind::SessionLocked,
                    "another process holds the lock of the session file",
                );
                error.retry_after_ms = Some(500);
                return Err(error);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        }
    }
}

/// Runs what may wait on a thread for that.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(Error::new(
            Kind::ShuttingDown,
            "the daemon is shutting down",
        )),
    }
}

fn landed_in_part(failure: Error, ids: &[EntryId], whole: usize, lines: usize) -> Error {
    // Leaf records come first and are nobody's entries.
    let records = lines.saturating_sub(ids.len());
    let written = ids.iter().take(whole.saturating_sub(records));
    let written: Vec<&str> = written.map(EntryId::as_str).collect();
    if written.is_empty() {
        return failure;
    }
    failure.with_details(json!({ "writtenIds": written }))
}
