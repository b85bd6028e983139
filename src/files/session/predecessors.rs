//! The files that other files have replaced recently, and the lines that still arrive in them (session-file.md §2.6).

use super::state::{Changes, SessionState};
use crate::log::append::Lock;
use crate::log::cold::{self, ShedRecords};
use crate::log::late_writes::{Handover, ReplacedFile};
use crate::os::file::{File, Identity};
use crate::os::process;
use std::sync::Arc;
use treelined_core::error::Result;

impl SessionState {
    /// Whether the session's file was replaced so recently that lines may still arrive in the old file.
    pub fn has_predecessor(&mut self) -> bool {
        self.predecessors
            .retain(|predecessor| !predecessor.is_over() || predecessor.has_arrivals());
        !self.predecessors.is_empty()
    }

    /// The identities of the replaced files.
    pub fn predecessors(&self) -> impl Iterator<Item = Identity> {
        self.predecessors.iter().filter_map(ReplacedFile::identity)
    }

    /// Follows a replaced file that another process has handed over.
    pub fn take_over(&mut self, replaced: ReplacedFile) {
        self.predecessors.push(replaced);
    }

    /// The replaced files to which other programs may still write, each with the data that another process needs to
    /// follow the file.
    pub fn handovers(&self) -> impl Iterator<Item = (Arc<File>, Handover)> {
        self.handovers_beside(process::writers_of)
    }

    /// Like [`Self::handovers`]. `writers_of` finds the other programs that have a file open, if the system provides
    /// this information.
    pub(super) fn handovers_beside(
        &self,
        writers_of: impl Fn(Identity) -> Option<Vec<u32>>,
    ) -> impl Iterator<Item = (Arc<File>, Handover)> {
        let held = self.predecessors.iter().filter(move |replaced| {
            let writers = replaced.identity().and_then(&writers_of);
            // If the system gives no answer, such programs may exist. The last of them may have written and closed the
            // file after the last check for arrivals.
            writers.is_none_or(|writers| !writers.is_empty()) || replaced.has_arrivals()
        });
        held.filter_map(ReplacedFile::handover)
    }

    /// Ends the wait for lines in the replaced files to which no program can write any more, so that an unfinished last
    /// line is copied in its present form.
    pub fn end_waiting(&mut self, is_unheld: impl Fn(Identity) -> bool) {
        for replaced in &mut self.predecessors {
            if replaced.identity().is_some_and(&is_unheld) {
                replaced.end_waiting();
            }
        }
    }

    /// Whether lines have arrived in a replaced file.
    pub fn has_arrivals(&self) -> bool {
        self.predecessors.iter().any(ReplacedFile::has_arrivals)
    }

    /// Copies lines that arrived in replaced files. Requires the lock and a fresh tree.
    pub(super) fn carry_over(
        &mut self,
        lock: &Lock,
        changes: &mut Changes,
    ) -> Result<Option<Arc<File>>> {
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
        predecessor: &mut ReplacedFile,
        lock: &Lock,
        changes: &mut Changes,
    ) -> Result<Option<Arc<File>>> {
        let arrived = predecessor.arrivals(&self.tree)?;
        let is_none = arrived.is_empty();
        let lines = self.without_shed(arrived);
        if lines.is_empty() && !is_none {
            predecessor.carried();
        }
        if lines.is_empty() || !predecessor.may_append(&self.log) {
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

    /// The late lines without those whose entries another process has copied and then shed.
    fn without_shed(&self, lines: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let Some(at) = self.log.location().filter(|_| self.tree.has_shed()) else {
            return lines;
        };
        let records = ShedRecords::of(&self.tree, &self.bodies());
        let left = records.and_then(|records| cold::without_shed(at, &records, lines.clone()));
        left.unwrap_or_else(|error| {
            tracing::warn!(%error, "late lines are not compared with the shed branches");
            lines
        })
    }
}
