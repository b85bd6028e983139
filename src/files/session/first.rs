//! Makes the file of a new session, and syncs it (session-file.md §3.6).

use super::state::{SessionGuard, SessionState};
use super::sync;
use super::upstream::{self, Settled};
use crate::blocking::blocking;
use crate::log::append::TryLock;
use crate::log::upstream::PublishOutcome;
use treelined_core::error::Result;
use treelined_core::flow::PlannedLines;

impl<T: Send + 'static> SessionGuard<T> {
    /// Makes the file of a new session with only its header, and syncs it with its folder.
    pub async fn make_file(mut self) -> Result<Self> {
        blocking(move || {
            self.write_header()?;
            Ok(self)
        })
        .await
    }
}

impl SessionState {
    fn write_header(&mut self) -> Result<()> {
        self.until = None;
        let TryLock::Locked(lock) = self.log.try_lock()? else {
            return Ok(());
        };
        let published = self.publish(&PlannedLines::default(), Settled::Equal)?;
        if published == Some(PublishOutcome::Conflict) {
            return Err(upstream::exists());
        }
        let landed = self.log.write(&lock, Vec::new())?;
        self.log.take_in(&mut self.tree, &landed)?;
        let Some(file) = &landed.file else {
            return Ok(());
        };
        if let Some(upstream) = &self.upstream {
            upstream.written(file);
        }
        let synced = self.sync_name();
        if synced.is_err()
            && let Some(at) = self.log.location()
        {
            // No client knows of this file, so it is removed.
            let _removed = at.folder.remove(&at.name);
        }
        synced
    }

    /// Syncs the name of a new file, whatever the durability of the session is (session-file.md §3.6).
    pub(super) fn sync_name(&self) -> Result<()> {
        let at = self.log.location();
        let synced = at.map_or(Ok(()), |at| at.folder.sync());
        synced.map_err(|error| sync::failed(&error))
    }
}
