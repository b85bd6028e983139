//! What was answered: the entries that must be found after the history.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An acknowledged entry.
#[derive(Debug, Clone)]
pub struct Acked {
    pub session: String,
    pub id: String,
    /// A text that the line of the entry has, and no other line.
    pub tag: String,
    pub writer: usize,
    /// The numbers of the moments at which the operation began and was answered.
    pub began: u64,
    pub answered: u64,
    /// Whether the entry must survive a power cut.
    pub is_durable: bool,
    /// Whether a sync has failed that it may have been in.
    pub is_doubtful: bool,
    /// Whether the writer took no lock.
    pub is_lockless: bool,
}

#[derive(Debug, Default, Clone)]
pub struct Pages {
    pub acked: Vec<Acked>,
    pub sessions: Vec<String>,
    /// The sessions that a writer tried to delete.
    pub deleted: BTreeSet<String>,
    /// The writers that ended by themselves.
    pub ended: BTreeSet<usize>,
    /// How often each verb has changed something.
    pub done: BTreeMap<&'static str, u64>,
    /// Answers that no promise allows.
    pub faults: Vec<String>,
    moment: u64,
}

/// The record that all writers share.
#[derive(Debug, Default)]
pub struct Book(Mutex<Pages>);

impl Book {
    pub fn lock(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn moment(&self) -> u64 {
        let mut pages = self.lock();
        pages.moment += 1;
        pages.moment
    }

    pub fn did(&self, verb: &'static str) {
        *self.lock().done.entry(verb).or_default() += 1;
    }

    /// Records that a sync of a writer failed after its answers.
    pub fn sync_failed(&self, writer: usize, session: &str) {
        for acked in &mut self.lock().acked {
            acked.is_doubtful |= acked.writer == writer && acked.session == session;
        }
    }

    /// Makes what a writer has in a session durable; in all sessions for `None`.
    pub fn made_durable(&self, writer: usize, session: Option<&str>, until: u64) {
        for acked in &mut self.lock().acked {
            let is_meant = session.is_none_or(|session| acked.session == session);
            let is_sure = !acked.is_lockless && !acked.is_doubtful;
            if is_meant && acked.writer == writer && is_sure && acked.answered <= until {
                acked.is_durable = true;
            }
        }
    }
}
