//! The activities that keep a session busy, one at a time.

pub(super) use super::running::Activity;
use super::state::Session;
use crate::lock::lock;
use std::sync::{Arc, MutexGuard};
use treelined_core::error::Result;

impl Session {
    /// The activity that is running.
    pub fn activity(&self) -> Option<Activity> {
        self.activity_slot().clone()
    }

    /// Fails with `sessionBusy` while an agent turn, a compaction or a navigation is running.
    pub fn check_idle(&self) -> Result<()> {
        self.activity()
            .as_ref()
            .map_or(Ok(()), |activity| Err(activity.busy()))
    }

    /// Begins an activity; fails with `sessionBusy` if another activity is running.
    pub fn begin(self: &Arc<Self>, activity: Activity) -> Result<Busy> {
        let mut slot = self.activity_slot();
        if let Some(running) = &*slot {
            return Err(running.busy());
        }
        *slot = Some(activity);
        Ok(Busy(Arc::clone(self)))
    }

    /// Waits until no activity keeps the session busy.
    pub async fn idle(&self) {
        loop {
            let ended = self.ended.notified();
            if self.activity().is_none() {
                return;
            }
            ended.await;
        }
    }

    fn activity_slot(&self) -> MutexGuard<'_, Option<Activity>> {
        lock(&self.activity)
    }
}

/// A running activity. It ends when this value is dropped.
#[must_use]
pub struct Busy(Arc<Session>);

impl Drop for Busy {
    fn drop(&mut self) {
        *self.0.activity_slot() = None;
        self.0.ended.notify_waiters();
    }
}
