//! An open session: its log and its tree. They are changed only together, and only here.
//!
//! Every caller that reads or changes a session holds its [`SessionGuard`]. Guards are given in the order of requests
//! (protocol.md §1). A guard is held for work in memory and for a write, but never while a caller waits for an answer
//! to a question, for a summarizer or for a sync.
//!
//! `flow` plans the lines to write, and the daemon notifies clients. [`commit`] writes, and [`fork`] copies.

mod activity;
pub mod commit;
mod first;
pub mod fork;
mod kept;
mod making;
mod news;
mod path;
mod predecessors;
mod running;
pub mod shed;
mod state;
pub mod subtree;
pub mod sync;
#[cfg(test)]
mod tests;
mod upstream;

pub use self::activity::Busy;
pub use self::upstream::{LineCheck, failure_of};
pub use running::Activity;
pub use state::{Changes, OrderChange, Session, SessionGuard, SessionState};

use crate::blocking::blocking;
use crate::invariant::always;
use crate::log::append;
use crate::log::body::{Bodies, Fetch};
use crate::log::late_writes::ReplacedFile;
use crate::log::{Log, OpenedLog, Standing};
use crate::os::time;
use crate::session::sync::RepeatedEntries;
use serde_json::json;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use treelined_core::defect::breaks;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::id::{EntryId, ExpectedLeaf};
use treelined_core::tree::Node;
use treelined_core::tree::below::{self, Below};

/// More bytes than this are neither read nor written on the thread that reads requests, since such a read or write
/// could take more than two milliseconds.
const INLINE_BYTES: u64 = 128 << 10;
/// The most entries in the details of `leafMoved`.
const MAX_MOVED_ENTRIES: usize = below::MAX_FOUND;
/// The most bytes of the entries in the details of `leafMoved`.
const MAX_MOVED_BYTES: u64 = 256 << 10;

impl<T> Deref for SessionGuard<T> {
    type Target = SessionState;
    fn deref(&self) -> &SessionState {
        &self.state
    }
}

impl<T> DerefMut for SessionGuard<T> {
    fn deref_mut(&mut self) -> &mut SessionState {
        &mut self.state
    }
}

impl Session {
    /// The right to read or change the session, for a caller that the session's queue has admitted. `with` is the lease
    /// of the queue, and is dropped after the guard. `asked` is the time at which the caller began to wait.
    pub fn guard<T>(&self, asked: Instant, with: T) -> Result<SessionGuard<T>> {
        match Arc::clone(&self.state).try_lock_owned() {
            Ok(state) => Ok(SessionGuard { state, asked, with }),
            Err(_) => Err(Error::new(
                Kind::InternalError,
                "the session is in use outside its queue",
            )),
        }
    }

    /// Like [`Self::guard`], for a session that has been closed and has no queue.
    pub async fn guard_after_close<T>(&self, with: T) -> SessionGuard<T> {
        let asked = time::now();
        let state = Arc::clone(&self.state).lock_owned().await;
        SessionGuard { state, asked, with }
    }

    /// Fails with `sessionBusy` during an agent turn of the client.
    pub fn check_not_in_turn(&self) -> Result<()> {
        match self.activity() {
            Some(turn @ Activity::AgentTurn) => Err(turn.busy()),
            _ => Ok(()),
        }
    }

    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Fails with `versionUnsupported` if this program cannot write the session's version of the format.
    pub fn check_version(&self) -> Result<()> {
        if self.is_newer {
            return Err(Error::new(
                Kind::VersionUnsupported,
                "the session is of a newer version of the format and can only be read",
            ));
        }
        Ok(())
    }
}

impl<T: Send + 'static> SessionGuard<T> {
    pub fn with(&mut self) -> &mut T {
        &mut self.with
    }

    /// Releases the session, and returns the lease of the queue.
    pub fn into_with(self) -> T {
        self.with
    }

    /// Reads the entries of other writers.
    pub async fn refreshed(mut self) -> Result<(Self, Changes)> {
        match self.log.standing()? {
            // The open file still has all entries, but no entry can be appended.
            Standing::Unchanged | Standing::Deleted => Ok((self, Changes::default())),
            Standing::Grown(bytes) if bytes <= INLINE_BYTES => {
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
}

impl SessionState {
    /// The state of a session as it was read.
    fn of(opened: OpenedLog, read_only: bool) -> Self {
        let OpenedLog { log, tree, .. } = opened;
        Self {
            below: Below::from_now_on(&tree),
            left_at: None,
            log,
            tree,
            read_only,
            predecessors: Vec::new(),
            contended_since: None,
            until: None,
            is_patient: false,
            upstream: None,
            signature: None,
            unknown_first: None,
            first_message: OnceLock::new(),
        }
    }

    /// Sets whether the session is open for reading only in this daemon.
    pub fn set_read_only(&mut self, read_only: bool) {
        self.read_only = read_only;
    }

    /// The leaf of this daemon.
    pub fn leaf(&self) -> Option<Node> {
        self.tree.leaf()
    }

    /// The working directory that the header names.
    pub fn cwd(&self) -> &str {
        self.log.header().map_or("", |header| &header.cwd)
    }

    pub fn leaf_id(&self) -> Option<&str> {
        self.id_of(self.leaf())
    }

    pub fn id_of(&self, node: Option<Node>) -> Option<&str> {
        node.map(|node| self.tree.id(node))
    }

    /// The entry with this id.
    pub fn find(&self, id: &str) -> Result<Node> {
        self.tree.find(id).ok_or_else(|| self.not_found(id))
    }

    /// The entry with this id, or for `None` the position before the first entry.
    pub fn find_position(&self, id: Option<&str>) -> Result<Option<Node>> {
        id.map(|id| self.find(id)).transpose()
    }

    /// The offsets and lengths of these entries in the file, so that they can be synced; `None` without a file.
    pub fn repeated<'a>(
        &self,
        ids: impl Iterator<Item = &'a EntryId>,
    ) -> Result<Option<RepeatedEntries>> {
        let span = |node: Node| {
            let place = self.tree.place(node);
            place.offset..place.offset + u64::from(place.len)
        };
        let nodes = ids.filter_map(|id| self.tree.find_any(id.as_str()));
        let spans: Vec<_> = nodes.map(span).collect();
        if spans.is_empty() {
            return Ok(None);
        }
        Ok(self
            .log
            .file_to_sync()?
            .map(|(file, identity)| RepeatedEntries {
                file,
                identity,
                spans,
            }))
    }

    /// A snapshot from which bodies can be read without the guard.
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

    /// The entry in the form that clients get, as JSON.
    pub fn entry(&self, node: Node) -> Result<Vec<u8>> {
        let bodies = self.bodies();
        bodies.entry(&bodies.fetch(&self.tree, node)?)
    }

    /// Fails with `leafMoved` if the leaf is not at the step of the expected leaf, or if others have appended steps
    /// below this step since the leaf moved there (protocol.md §3).
    pub fn check_expected_leaf(&self, expected: &ExpectedLeaf) -> Result<()> {
        let (expected_id, known) = match expected {
            ExpectedLeaf::Any => return Ok(()),
            ExpectedLeaf::Empty => (None, Some(None)),
            ExpectedLeaf::At(id) => (Some(id.as_str()), self.tree.resolve(id.as_str())),
        };
        let same = known.is_some_and(|at| self.tree.is_same_conversation(at, self.leaf()));
        let below = self.below.found();
        if same && below.is_empty() {
            return Ok(());
        }
        let mut since: Vec<Node> = match known {
            Some(at) => {
                let above = self.tree.ancestors(self.leaf());
                let newer = above.take_while(|node| Some(*node) != at);
                newer.take(MAX_MOVED_ENTRIES).collect()
            }
            None => self.leaf().into_iter().collect(),
        };
        since.extend_from_slice(below);
        since.sort_unstable();
        since.dedup();
        Err(self.leaf_moved(expected_id, &since))
    }

    /// Fails with `leafMoved` unless `parent` is at the step of the expected entry, and no step is below it
    /// (protocol.md §3.5).
    pub fn check_expected_tip(&self, expected: &ExpectedLeaf, parent: Option<&str>) -> Result<()> {
        let (expected_id, known) = match expected {
            ExpectedLeaf::Any => return Ok(()),
            ExpectedLeaf::Empty => (None, Some(None)),
            ExpectedLeaf::At(id) => (Some(id.as_str()), self.tree.resolve(id.as_str())),
        };
        let parent = self.find_position(parent)?;
        let step = self.tree.skip_bookkeeping(parent);
        let below = self.tree.step_below(step);
        let same = known.is_some_and(|at| self.tree.is_same_conversation(at, parent));
        if same && below.is_none() {
            return Ok(());
        }
        let newest = match (below, step) {
            (Some(below), Some(step)) => {
                let archived = self.tree.archived();
                let newest = |node| self.tree.newest_step_below(node, &archived);
                Some(newest(step)).max(Some(newest(below)))
            }
            (below, step) => below.or(step),
        };
        let since: Vec<Node> = below.into_iter().collect();
        Err(self.moved_to(expected_id, self.id_of(newest), &since))
    }

    /// Fails with `leafMoved` if the leaf is not at the step of `old`.
    pub fn check_leaf_is_still(&self, old: Option<&str>) -> Result<()> {
        let known = match old {
            None => Some(None),
            Some(id) => self.tree.resolve(id),
        };
        if known.is_some_and(|at| self.tree.is_same_conversation(at, self.leaf())) {
            return Ok(());
        }
        let above = self.tree.ancestors(self.leaf());
        let mut since: Vec<Node> = match known {
            Some(at) => {
                let newer = above.take_while(|node| Some(*node) != at);
                newer.take(MAX_MOVED_ENTRIES).collect()
            }
            None => Vec::new(),
        };
        since.reverse();
        Err(self.leaf_moved(old, &since))
    }

    fn leaf_moved(&self, expected: Option<&str>, since: &[Node]) -> Error {
        self.moved_to(expected, self.leaf_id(), since)
    }

    fn moved_to(&self, expected: Option<&str>, leaf_id: Option<&str>, since: &[Node]) -> Error {
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
            "leafId": leaf_id,
            "entries": entries,
        }))
    }

    /// Reads the entries that others have appended since the last refresh.
    fn refresh(&mut self) -> Result<Changes> {
        let before = self.tree.node_count();
        let file_leaf = self.tree.file_leaf();
        self.log.refresh(&mut self.tree)?;
        always!(
            "Reading on takes no entry out of the tree",
            self.tree.node_count() >= before
        )?;
        let mut changes = Changes {
            diagnostics: self.log.take_diagnostics(),
            ..Changes::default()
        };
        self.note_others(before, file_leaf, &mut changes);
        Ok(changes)
    }

    /// Reads the whole file again after it was replaced or rewritten; the leaf stays at the same id.
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
        let leaf = match breaks("The leaf is an entry of the tree in which it is looked up") {
            true => self.tree.leaf(),
            false => leaf,
        };
        always!(
            "The leaf is an entry of the tree in which it is looked up",
            leaf.is_none_or(|leaf| {
                let is_there = opened.tree.node(leaf.number()) == Some(leaf);
                is_there && opened.tree.find(opened.tree.id(leaf)) == Some(leaf)
            })
        )?;
        let old_log = std::mem::replace(&mut self.log, opened.log);
        let old_tree = std::mem::replace(&mut self.tree, opened.tree);
        self.tree.take_place_of(&old_tree);
        self.tree.set_leaf(leaf);
        self.below = Below::from_now_on(&self.tree);
        let now_open = self.log.identity();
        let was_edited = old_log.identity() == now_open;
        self.predecessors
            .retain(|predecessor| predecessor.identity() != now_open);
        let mut changes = Changes::default();
        self.note_new(&old_tree, &mut changes);
        if !self.read_only && !was_edited {
            self.predecessors
                .extend(ReplacedFile::of(old_log, old_tree));
        }
        // A file that was edited in place may have new damage.
        if was_edited {
            changes.diagnostics = opened.diagnostics;
        }
        if self.read_only && self.tree.leaf() != self.tree.file_leaf() {
            self.move_leaf(self.tree.file_leaf());
        }
        Ok(changes)
    }

    fn move_leaf(&mut self, leaf: Option<Node>) {
        let former = self.tree.leaf();
        // The walk ends at the old leaf, so an append below the old leaf takes one step.
        let tree = &self.tree;
        let step = tree
            .ancestors(leaf)
            .find(|node| Some(*node) == former || !tree.kind(*node).is_bookkeeping());
        let keeps_step = step == former || step == self.below.step();
        self.tree.set_leaf(leaf);
        if !keeps_step {
            self.below = Below::from_now_on(&self.tree);
        }
    }
}
