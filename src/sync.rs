//! Durability: when what has been written is made to survive the machine (storage.md §3).
//!
//! One sync runs at a time per session; what is written meanwhile shares the next one.

use crate::error::{Error, Kind, Result};
use crate::log::file::Folder;
use crate::log::handle;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// With `interval`, how long an append may stay unsynced.
const INTERVAL: Duration = Duration::from_millis(50);

/// Files of all sessions that `interval` keeps open until it has synced them.
static UNSYNCED: AtomicUsize = AtomicUsize::new(0);

/// What an answered append survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Nothing: an ephemeral session.
    None,
    /// The death of the process.
    Os,
    /// That of the machine, after at most 50 ms.
    Interval,
    /// That of the machine.
    Always,
}

impl Durability {
    pub const fn name(self) -> &'static str {
        match self {
            Durability::None => "none",
            Durability::Os => "os",
            Durability::Interval => "interval",
            Durability::Always => "always",
        }
    }
}

/// What has been written and not synced.
pub struct Unsynced {
    file: Arc<File>,
    /// Of a file that has just been made: its name has to survive, too.
    folder: Option<Arc<Folder>>,
}

impl Unsynced {
    /// A file that has just been given its name in this folder.
    pub fn made(file: Arc<File>, folder: Arc<Folder>) -> Self {
        Self {
            file,
            folder: Some(folder),
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()?;
        self.folder.as_ref().map_or(Ok(()), |folder| folder.sync())
    }
}

/// Syncs the file of one session.
pub struct Syncer {
    state: Arc<Mutex<State>>,
}

struct State {
    durability: Durability,
    /// Wait for a sync that begins after they came.
    waiting: Vec<oneshot::Sender<Result<()>>>,
    /// Written to since the last sync began: one file, or two after a migration.
    unsynced: Vec<Unsynced>,
    running: bool,
    /// A timer of `interval` is under way.
    scheduled: bool,
    /// A sync failed after its appends had been answered; the next append is told, once.
    failed: Option<Error>,
}

impl Syncer {
    pub fn new(durability: Durability) -> Self {
        Self {
            state: Arc::new(Mutex::new(State {
                durability,
                waiting: Vec::new(),
                unsynced: Vec::new(),
                running: false,
                scheduled: false,
                failed: None,
            })),
        }
    }

    /// What appends are given from now on.
    pub fn durability(&self) -> Durability {
        lock(&self.state).durability
    }

    /// Changes the policy; an ephemeral session has none.
    pub fn set_durability(&self, durability: Durability) {
        let mut state = lock(&self.state);
        if state.durability != Durability::None {
            state.durability = durability;
        }
    }

    /// Fails once if an earlier sync failed unnoticed.
    pub fn check(&self) -> Result<()> {
        lock(&self.state).failed.take().map_or(Ok(()), Err)
    }

    /// Makes what has just been written as durable as `durability` promises before an answer.
    /// `on_late_failure` is called when a sync fails after the answer.
    pub async fn after_write(
        &self,
        durability: Durability,
        file: Arc<File>,
        on_late_failure: impl FnOnce() + Send + 'static,
    ) -> Result<()> {
        match durability {
            Durability::None | Durability::Os => Ok(()),
            Durability::Always => {
                lock(&self.state).note(Unsynced { file, folder: None });
                self.sync().await
            }
            Durability::Interval => {
                lock(&self.state).note(Unsynced { file, folder: None });
                // Files that wait for a sync stay open, and others need descriptors too.
                if UNSYNCED.load(Ordering::Relaxed) > handle::budget() / 2 {
                    return self.sync().await;
                }
                self.schedule(on_late_failure);
                Ok(())
            }
        }
    }

    /// Syncs a new file that nobody waits for, at once: it may be large. `on_late_failure` is called
    /// when that fails.
    pub fn after_making(&self, new: Unsynced, on_late_failure: impl FnOnce() + Send + 'static) {
        lock(&self.state).note(new);
        let syncer = Self {
            state: Arc::clone(&self.state),
        };
        tokio::spawn(async move {
            if let Err(error) = syncer.flush().await {
                syncer.failed_late(error);
                on_late_failure();
            }
        });
    }

    /// With `interval` the next append is told.
    fn failed_late(&self, error: Error) {
        let mut state = lock(&self.state);
        if state.durability == Durability::Interval {
            state.failed = Some(error);
        }
    }

    /// Syncs whatever has not been synced yet: before closing.
    pub async fn flush(&self) -> Result<()> {
        let pending = {
            let state = lock(&self.state);
            state.running || !state.unsynced.is_empty()
        };
        if pending { self.sync().await } else { Ok(()) }
    }

    async fn sync(&self) -> Result<()> {
        let (sender, receiver) = oneshot::channel();
        let start = {
            let mut state = lock(&self.state);
            state.waiting.push(sender);
            !std::mem::replace(&mut state.running, true)
        };
        if start {
            let state = Arc::clone(&self.state);
            tokio::task::spawn_blocking(move || run(&state));
        }
        receiver
            .await
            .unwrap_or_else(|_| Err(failed(&io::Error::other("the daemon is shutting down"))))
    }

    fn schedule(&self, on_late_failure: impl FnOnce() + Send + 'static) {
        if std::mem::replace(&mut lock(&self.state).scheduled, true) {
            return;
        }
        let syncer = Self {
            state: Arc::clone(&self.state),
        };
        tokio::spawn(async move {
            tokio::time::sleep(INTERVAL).await;
            lock(&syncer.state).scheduled = false;
            if let Err(error) = syncer.flush().await {
                lock(&syncer.state).failed = Some(error);
                on_late_failure();
            }
        });
    }
}

impl State {
    fn note(&mut self, new: Unsynced) {
        let is_same = |known: &Unsynced| Arc::ptr_eq(&known.file, &new.file);
        if !self.unsynced.iter().any(is_same) {
            self.unsynced.push(new);
            UNSYNCED.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Syncs until nobody waits any more.
fn run(state: &Mutex<State>) {
    loop {
        let (waiting, files) = {
            let mut state = lock(state);
            if state.waiting.is_empty() {
                state.running = false;
                return;
            }
            (
                std::mem::take(&mut state.waiting),
                std::mem::take(&mut state.unsynced),
            )
        };
        UNSYNCED.fetch_sub(files.len(), Ordering::Relaxed);
        // A failed sync is not tried again: a second success would prove nothing.
        let mut synced = Ok(());
        for file in files {
            synced = synced.and(file.sync().map_err(|error| failed(&error)));
        }
        for sender in waiting {
            // Who no longer listens needs no answer.
            let _gone = sender.send(synced.clone());
        }
    }
}

/// `durabilityUnknown`, with its cause.
pub fn failed(cause: &io::Error) -> Error {
    Error::new(
        Kind::DurabilityUnknown,
        format!("the entry is written, but syncing it failed: {cause}"),
    )
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
