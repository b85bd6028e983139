//! The lock of a socket. Only its holder may remove a stale socket and bind a new one.
//!
//! The system releases the lock when its holder ends. No child process inherits the lock, except for a daemon that is
//! started: the starter passes the lock on as stdin.

use super::place::Place;
use anyhow::{Context, bail};
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use treelined_files::os::file::{Location, identity_of, is_private, status_of};
use treelined_files::os::handle::HandleAccess;

/// How long a starter waits until its daemon is ready.
pub const START_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a process waits for the lock while another process holds it. That process may be waiting for a daemon.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(15);

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(5);

/// The lock, held. It is released on drop.
#[must_use]
#[derive(Debug)]
pub struct StartLock(File);

impl StartLock {
    /// Takes the lock; `None` if another process holds it.
    pub(crate) fn try_take(place: &Place) -> anyhow::Result<Option<Self>> {
        let path = place.lock_file();
        let file = open_private(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("lock {}", path.display()))
            }
        }
    }

    /// Waits until the lock is taken. Fails after `patience`.
    pub(crate) fn take(place: &Place, patience: Duration) -> anyhow::Result<Self> {
        let began = Instant::now();
        loop {
            if let Some(lock) = Self::try_take(place)? {
                return Ok(lock);
            }
            if began.elapsed() > patience {
                bail!(Self::held(place));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Whether another process holds the lock.
    pub(super) fn is_taken(place: &Place) -> bool {
        let open = |at: Location| at.folder.file(&at.name, HandleAccess::Read);
        let file = Location::of_path(&place.lock_file()).and_then(open);
        file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// The error message for a lock that another process does not release.
    pub(super) fn held(place: &Place) -> String {
        let path = place.lock_file();
        format!(
            "another process has held the lock {path} for seconds without starting a daemon: end it (`fuser {path}` \
             finds it), or give another path with --socket",
            path = path.display()
        )
    }

    /// The lock that a starter has passed on as this stream. `None` if the stream is not the lock file.
    pub(super) fn passed_on(place: &Place, file: File) -> io::Result<Option<Self>> {
        let is_lock = identity_of(&place.lock_file()) == Some(status_of(&file)?.identity);
        // The starter's open file has the lock already, so this call changes nothing: a lock belongs to an open file,
        // and not to a process.
        Ok((is_lock && file.try_lock().is_ok()).then_some(Self(file)))
    }

    /// Makes the lock a stream of a child process, which then holds the lock.
    pub(super) fn into_stream(self) -> Stdio {
        self.0.into()
    }
}

/// Opens a file beside the socket for reading and appending, and makes the file (mode 0600) if it is missing. Fails if
/// the path is a link or not a regular file, or if another user could change the file.
pub(super) fn open_private(path: &Path) -> anyhow::Result<File> {
    let at = Location::of_path(path)?;
    let file = match at.folder.create(&at.name) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            at.folder.file(&at.name, HandleAccess::Append)?
        }
        other => other.with_context(|| format!("make {}", path.display()))?,
    };
    let is_private = is_private(&file).with_context(|| path.display().to_string())?;
    if !is_private {
        bail!(
            "{} belongs to another user or can be written by others: remove it, or give another path with --socket",
            path.display()
        );
    }
    Ok(file)
}
