//! Appends the lines of an import to a session file.

use super::shed::LockedSession;
use std::time::{Duration, Instant};
use treelined_core::error::{Error, Kind, Result};
use treelined_files::cancel::Cancel;
use treelined_files::log::append::{self, Lock, TryLock};
use treelined_files::log::{OpenedLog, Standing};
use treelined_files::os::file::Location;
use treelined_files::store::Store;

/// The longest wait for the lock of a session file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// The pause between two attempts to take the lock.
const PAUSE: Duration = Duration::from_millis(1);
/// The most bytes of new lines in memory before they are written. A smaller import writes once.
const MAX_WAITING_BYTES: usize = 48 << 20;

/// Appends lines to a file whose lock it holds. Without a lock, nothing is written.
pub(super) struct Appender {
    pub(super) session: LockedSession,
    pub(super) lock: Option<Lock>,
    waiting: Vec<Vec<u8>>,
    bytes: usize,
}

impl Appender {
    pub(super) fn new(session: LockedSession, lock: Option<Lock>) -> Self {
        Self {
            session,
            lock,
            waiting: Vec::new(),
            bytes: 0,
        }
    }

    pub(super) fn push(&mut self, line: Vec<u8>) -> Result<()> {
        if self.bytes > 0 && self.bytes + line.len() > MAX_WAITING_BYTES {
            self.write()?;
        }
        self.bytes += line.len();
        self.waiting.push(line);
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        let lines = std::mem::take(&mut self.waiting);
        self.bytes = 0;
        let Some(lock) = self.lock.as_ref().filter(|_| !lines.is_empty()) else {
            return Ok(());
        };
        let OpenedLog { log, tree, .. } = &mut self.session.opened;
        let mut outcome = log.write(lock, lines)?;
        let failure = outcome.failure.take();
        log.take_in(tree, &outcome)?;
        failure.map_or(Ok(()), Err)
    }

    /// Writes the remaining lines and syncs the file.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.write()?;
        if let Some((file, _)) = self.session.opened.log.file_to_sync()? {
            let synced = file.sync_data();
            synced.map_err(|error| Error::io("sync the session file", &error))?;
        }
        Ok(())
    }
}

/// Takes the lock of the file, and reads the entries that other processes have written.
pub(super) fn lock_fresh(
    store: &Store,
    at: &Location,
    opened: &mut OpenedLog,
    cancel: &Cancel,
) -> Result<Lock> {
    let began = Instant::now();
    loop {
        if cancel.is_cancelled() {
            return Err(Error::cancelled());
        }
        if let TryLock::Locked(lock) = opened.log.try_lock()? {
            match opened.log.standing()? {
                Standing::Unchanged => return Ok(lock),
                Standing::Grown(_) => {
                    opened.log.refresh(&mut opened.tree)?;
                    return Ok(lock);
                }
                Standing::Replaced => {
                    drop(lock);
                    *opened = store.open(at.clone(), cancel)?;
                }
                Standing::Deleted => return Err(append::deleted()),
            }
        }
        if began.elapsed() > LOCK_TIMEOUT {
            let mut error = Error::new(
                Kind::SessionLocked,
                "another process holds the lock of the session file",
            );
            error.retry_after_ms = Some(500);
            return Err(error);
        }
        std::thread::sleep(PAUSE);
    }
}
