//! Moves archived branches of a session into its cold file, and back (session-file.md §4.10).

use super::commit::CommitOutcome;
use super::state::{Changes, SessionGuard, SessionState};
use crate::blocking::blocking;
use crate::log::append::{LOCK_TIMEOUT, Lock, locked_elsewhere};
use crate::log::cold::{self, ShedRecords};
use crate::log::shed::{StayingBranch, in_memory};
use crate::log::unshed::WholeCheck;
use crate::log::upstream::is_replica;
use crate::log::{OpenedLog, Standing};
use crate::os::{process, time};
use hashbrown::HashSet;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::flow::shed::ShedBranch;
use treelined_core::id::Source;
use treelined_core::tree::Node;

/// The pause between two attempts to take the lock.
const PAUSE: Duration = Duration::from_millis(1);

/// A move of branches.
pub enum ColdMove {
    /// Archived branches go into the cold file.
    Shed,
    /// Branches come back from the cold file, if the check allows this.
    Unshed(Option<BranchCheck>),
}

/// Checks the state that a session has after the branches are back. If the check fails, the session stays unchanged.
pub type BranchCheck = Box<dyn FnMut(&SessionState) -> Result<()> + Send>;

/// The branches of a move.
#[derive(Debug, Default)]
pub struct MovedBranches {
    pub moved: Vec<ShedBranch>,
    /// The archived branches that stay in the session file.
    pub staying: Vec<StayingBranch>,
}

impl<T: Send + 'static> SessionGuard<T> {
    /// Moves the branches of these entries, or all that can move if no entry is named. Also returns the guard. Reports
    /// changes even if the move failed. Fails only if the session cannot be used any more.
    pub async fn move_cold(
        mut self,
        direction: ColdMove,
        entry_ids: Vec<String>,
        source: Arc<dyn Source>,
    ) -> Result<(Self, Changes, Result<(MovedBranches, CommitOutcome)>)> {
        blocking(move || {
            let mut changes = Changes::default();
            let moved = match direction {
                ColdMove::Shed => self.shed(&entry_ids, &*source, &mut changes),
                ColdMove::Unshed(check) => self.unshed(&entry_ids, check, &mut changes),
            };
            let moved = moved.map(|moved| {
                let mut outcome = CommitOutcome::default();
                outcome.wrote = !moved.moved.is_empty();
                (moved, outcome)
            });
            Ok((self, changes, moved))
        })
        .await
    }
}

impl SessionState {
    fn shed(
        &mut self,
        entry_ids: &[String],
        source: &dyn Source,
        changes: &mut Changes,
    ) -> Result<MovedBranches> {
        let lock = self.lock_alone(changes)?;
        let mut heads = self.tree.outermost_archived();
        if !entry_ids.is_empty() {
            let chosen = self.archived_heads(&heads, entry_ids)?;
            heads.retain(|head| chosen.contains(head));
        }
        if heads.is_empty() {
            return Ok(MovedBranches::default());
        }
        let (moved, staying) = self.log.shed(&lock, &self.tree, heads, source)?;
        drop(lock);
        if !moved.is_empty() {
            self.read_moved(changes)?;
        }
        Ok(MovedBranches { moved, staying })
    }

    fn unshed(
        &mut self,
        entry_ids: &[String],
        check: Option<BranchCheck>,
        changes: &mut Changes,
    ) -> Result<MovedBranches> {
        let lock = self.lock_alone(changes)?;
        let records = ShedRecords::of(&self.tree, &self.bodies())?;
        let all = self.tree.shed().into_iter().map(|(id, _)| id.to_owned());
        let meant: HashSet<String> = match entry_ids {
            [] => all.collect(),
            ids => {
                let found = ids.iter().map(|id| self.shed_branch(&records, id));
                found.collect::<Result<_>>()?
            }
        };
        if meant.is_empty() {
            return Ok(MovedBranches::default());
        }
        let mut check = check.map(|mut check| {
            let leaf_id = self.leaf_id().map(str::to_owned);
            move |opened: OpenedLog| {
                let mut with_branches = Self::of(opened, false);
                let leaf = leaf_id
                    .as_deref()
                    .and_then(|id| with_branches.tree.find(id));
                with_branches.tree.set_leaf(leaf);
                check(&with_branches)
            }
        });
        let check = check.as_mut().map(|check| check as WholeCheck<'_>);
        self.log.unshed(&lock, &self.tree, &meant, check)?;
        let in_order = self.tree.shed();
        let moved = in_order.into_iter().filter(|(id, _)| meant.contains(*id));
        let moved = moved
            .filter_map(|(id, _)| records.branch(id).cloned())
            .collect();
        drop(lock);
        self.read_moved(changes)?;
        Ok(MovedBranches {
            moved,
            staying: Vec::new(),
        })
    }

    /// Reads the file that has replaced the old one. Entries that came back are not appends: they are announced as a
    /// change of the order.
    fn read_moved(&mut self, changes: &mut Changes) -> Result<()> {
        let (appended, moved) = (changes.others.len(), changes.others_moved);
        self.catch_up_into(Standing::Replaced, changes)?;
        changes.others.truncate(appended);
        changes.others_moved = moved;
        Ok(())
    }

    /// The branches in the cold file, in file order of their records.
    pub fn shed_branches(&self) -> Result<Vec<ShedBranch>> {
        let records = ShedRecords::of(&self.tree, &self.bodies())?;
        let shed = self.tree.shed().into_iter();
        Ok(shed
            .filter_map(|(id, _)| records.branch(id).cloned())
            .collect())
    }

    /// The first entry of the shed branch that has this entry.
    fn shed_branch(&self, records: &ShedRecords, entry_id: &str) -> Result<String> {
        if records.has(entry_id) {
            return Ok(entry_id.to_owned());
        }
        let at = self.log.location().ok_or_else(in_memory)?;
        let found = cold::branch_of(at, records, entry_id)?;
        found.ok_or_else(|| {
            let message = format!("no shed branch has the entry {entry_id:?}");
            Error::new(Kind::EntryNotFound, message).with_details(json!({ "entryId": entry_id }))
        })
    }

    /// The outermost archived branches of these entries.
    fn archived_heads(&self, heads: &[Node], entry_ids: &[String]) -> Result<Vec<Node>> {
        let found = entry_ids.iter().map(|id| {
            let node = self.find(id)?;
            let mut above = self.tree.ancestors(Some(node));
            above.find(|node| heads.contains(node)).ok_or_else(|| {
                let reason =
                    format!("has {id:?}, which is in no archived branch: archive it first");
                Error::invalid_params("entryIds", reason)
            })
        });
        found.collect()
    }

    /// Returns the error. If the error is about an entry in the cold file, the message says so.
    pub fn explained(&self, error: Error) -> Error {
        let details = error.details.as_ref();
        let entry_id = details.and_then(|details| details.get("entryId")?.as_str());
        match entry_id {
            Some(entry_id) if error.kind == Kind::EntryNotFound => self.not_found(entry_id),
            _ => error,
        }
    }

    /// The error for an entry that is not in the session file. The message says whether the entry is in the cold file.
    pub(super) fn not_found(&self, entry_id: &str) -> Error {
        let error = Error::entry_not_found(entry_id);
        if !self.tree.has_shed() {
            return error;
        }
        let found = || {
            let records = ShedRecords::of(&self.tree, &self.bodies()).ok()?;
            let at = self.log.location()?;
            cold::branch_of(at, &records, entry_id).ok()?
        };
        let Some(branch) = found() else {
            return error;
        };
        let message =
            format!("the entry {entry_id:?} is in a shed branch: unshed_branches brings it back");
        Error::new(Kind::EntryNotFound, message)
            .with_details(json!({ "entryId": entry_id, "shedBranchId": branch }))
    }

    /// Takes the lock for a replacement of the file. Fails unless only this process has the file open.
    fn lock_alone(&mut self, changes: &mut Changes) -> Result<Lock> {
        let at = self.log.location().cloned().ok_or_else(in_memory)?;
        if self.upstream.is_some() || is_replica(&at) {
            let why = "belongs to a team, whose stream has every line: archive the branch only";
            return Err(Error::invalid_params("sessionId", why));
        }
        if !self.log.is_written() {
            return Err(in_memory());
        }
        let began = time::now();
        let lock = loop {
            if let Some(lock) = self.lock_fresh(changes, true)? {
                break lock;
            }
            if time::since(began) >= LOCK_TIMEOUT {
                return Err(locked_elsewhere());
            }
            time::sleep(PAUSE);
        };
        self.carry_over(&lock, changes)?;
        let openers = self.log.identity().and_then(process::openers_of);
        match openers.as_deref() {
            Some([]) => Ok(lock),
            Some([process, ..]) => {
                let why = format!("process {process} has the session open: close it there first");
                Err(Error::new(Kind::SessionLocked, why))
            }
            // The system does not say who has the file open, so another process may have it open.
            None => {
                let why = "this system does not say which processes have the session open";
                Err(Error::new(Kind::SessionLocked, why))
            }
        }
    }
}
