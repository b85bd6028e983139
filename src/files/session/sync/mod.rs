//! Durability: syncs the appended lines (session-file.md §3).
//!
//! One sync runs at a time for each session. Lines that are written meanwhile share the next sync.

use crate::blocking::begin;
use crate::invariant::always;
use crate::lock::lock;
use crate::os::FileAt;
use crate::os::file::{self, File, Folder, Identity, Location, Status};
use crate::os::handle;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;
use treelined_core::bytes::index;
use treelined_core::defect::breaks;
use treelined_core::durability::Durability;
use treelined_core::error::{Error, Kind, Result};

/// The longest time that an append stays unsynced with the durability `interval`.
const INTERVAL: Duration = Duration::from_millis(50);

/// The most ranges of a file whose durability is unknown. If there are more, the last range is widened.
const MAX_LOST: usize = 64;

/// The number of bytes at the beginning of a file that are written again after a failed sync. These bytes contain the
/// header.
const BEGINNING: u64 = 64 << 10;

/// The number of files, of all sessions, that stay open for a sync of the durability `interval`.
#[cfg(not(feature = "simulation"))]
static UNSYNCED: AtomicUsize = AtomicUsize::new(0);

// A simulated process is a thread, so each thread has its own count.
#[cfg(feature = "simulation")]
thread_local! {
    static UNSYNCED: AtomicUsize = const { AtomicUsize::new(0) };
}

/// Reads or changes the number of files that wait for a sync.
fn unsynced(act: impl FnOnce(&AtomicUsize) -> usize) -> usize {
    #[cfg(feature = "simulation")]
    return UNSYNCED.with(act);
    #[cfg(not(feature = "simulation"))]
    act(&UNSYNCED)
}

/// A file with unsynced writes.
pub struct UnsyncedFile {
    file: Arc<File>,
    /// The folder of a new file. Its name in this folder must be durable too.
    folder: Option<Arc<Folder>>,
}

impl UnsyncedFile {
    /// A file that was just given its name in this folder.
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

/// Entries that a client has sent again.
#[derive(Debug)]
pub struct RepeatedEntries {
    pub file: Arc<File>,
    pub identity: Identity,
    /// The range of each entry in the file.
    pub spans: Vec<Range<u64>>,
}

/// The results of the syncs of a file.
#[derive(Default)]
struct SyncRecord {
    /// The file that was synced last, and the number of its first bytes that are synced or lost.
    synced: Option<(Identity, u64)>,
    /// The ranges whose sync failed. A later sync cannot prove that they are on disk.
    lost: Vec<(Identity, Range<u64>)>,
    /// The file whose beginning is among the lost bytes, and was not synced again after it was lost.
    headless: Option<Identity>,
}

impl SyncRecord {
    /// Records a sync of the file, which had `size` bytes when the sync began.
    fn note(&mut self, identity: Identity, size: u64, is_synced: bool) {
        let from = match self.synced {
            Some((of, to)) if of == identity => to,
            _ => 0,
        };
        if !is_synced && !breaks("The bytes of a failed sync are remembered as lost") {
            self.lose(identity, from..size);
        }
        match is_synced {
            true if self.headless == Some(identity) => self.headless = None,
            false if from == 0 => self.headless = Some(identity),
            _ => {}
        }
        if !is_synced && breaks("A sync is recorded for the file that it was of") {
            return;
        }
        self.synced = Some((identity, size.max(from)));
    }

    /// Checks the record after a sync of this file, which had `size` bytes when the sync began.
    fn judged(&self, identity: Identity, size: u64, is_synced: bool) -> Result<()> {
        let mut lost = self.lost.iter().filter(|(of, _)| *of == identity);
        always!(
            "A sync is recorded for the file that it was of",
            self.synced.is_some_and(|(of, _)| of == identity)
        )?;
        always!(
            "The bytes of a failed sync are remembered as lost",
            is_synced || lost.any(|(_, lost)| lost.end >= size)
        )?;
        always!(
            "The record of failed syncs is bounded",
            self.lost.len() <= MAX_LOST
        )
    }

    fn lose(&mut self, identity: Identity, span: Range<u64>) {
        let is_full =
            self.lost.len() >= MAX_LOST && !breaks("The record of failed syncs is bounded");
        match self.lost.last_mut() {
            Some((of, last)) if *of == identity && (is_full || last.end == span.start) => {
                last.end = last.end.max(span.end);
            }
            _ => {
                if is_full {
                    self.lost.remove(0);
                }
                self.lost.push((identity, span));
            }
        }
    }

    fn is_lost(&self, entries: &RepeatedEntries) -> bool {
        let starts_in = |lost: &Range<u64>| entries.spans.iter().any(|at| lost.contains(&at.start));
        let mut lost = self.lost.iter();
        lost.any(|(of, lost)| *of == entries.identity && starts_in(lost))
    }

    fn is_synced(&self, entries: &RepeatedEntries) -> bool {
        self.synced.is_some_and(|(of, to)| {
            of == entries.identity && entries.spans.iter().all(|span| span.end <= to)
        })
    }
}

/// Syncs the file of one session.
pub struct Syncer {
    state: Arc<Mutex<SyncState>>,
}

struct SyncState {
    durability: Durability,
    /// The name of the file. The first sync of a file also syncs its folder, since another process may have made or
    /// replaced the file and not have synced its name yet.
    at: Option<Location>,
    /// The requests that wait for a sync. The sync must begin after they arrived.
    waiting: Vec<oneshot::Sender<Result<()>>>,
    /// The files that were written since the last sync began: one file, or two after a migration.
    unsynced: Vec<UnsyncedFile>,
    /// The file whose name is on disk, by a sync of the folder that did not fail.
    named: Option<Identity>,
    running: bool,
    record: SyncRecord,
    /// Whether the timer of the durability `interval` runs.
    scheduled: bool,
    /// The failure of a sync whose appends were answered before. The next append reports it once.
    failed: Option<Error>,
}

impl Syncer {
    /// `at` is the location of the file; `None` if there is no file.
    pub fn new(durability: Durability, at: Option<Location>) -> Self {
        Self {
            state: Arc::new(Mutex::new(SyncState {
                durability,
                at,
                waiting: Vec::new(),
                unsynced: Vec::new(),
                named: None,
                running: false,
                record: SyncRecord::default(),
                scheduled: false,
                failed: None,
            })),
        }
    }

    /// The durability of all following appends.
    pub fn durability(&self) -> Durability {
        lock(&self.state).durability
    }

    /// Changes the durability. An ephemeral session and a replica keep theirs.
    pub fn set_durability(&self, durability: Durability) {
        let mut state = lock(&self.state);
        if !matches!(state.durability, Durability::None | Durability::Replicated) {
            state.durability = durability;
        }
    }

    /// Fails once if a sync failed after its appends were answered.
    pub fn check(&self) -> Result<()> {
        lock(&self.state).failed.take().map_or(Ok(()), Err)
    }

    /// Makes the last write as durable as `durability` promises for the time of the answer. `on_late_failure`
    /// is called if a sync fails after the answer.
    pub async fn after_write(
        &self,
        durability: Durability,
        file: Arc<File>,
        on_late_failure: impl FnOnce() + Send + 'static,
    ) -> Result<()> {
        match durability {
            Durability::None | Durability::Os | Durability::Replicated | Durability::Queued => {
                Ok(())
            }
            Durability::Always => {
                lock(&self.state).note(UnsyncedFile { file, folder: None });
                self.sync().await
            }
            Durability::Interval => {
                lock(&self.state).note(UnsyncedFile { file, folder: None });
                // Files that wait for a sync stay open, and other files need descriptors too.
                if unsynced(|count| count.load(Ordering::Relaxed)) > handle::budget() / 2 {
                    return self.sync().await;
                }
                self.schedule(on_late_failure);
                Ok(())
            }
        }
    }

    /// Makes entries that were sent again as durable as `durability` promises, since the sync of their first
    /// write may still run. Fails if that sync failed.
    pub async fn after_repetition(
        &self,
        durability: Durability,
        entries: RepeatedEntries,
        on_late_failure: impl FnOnce() + Send + 'static,
    ) -> Result<()> {
        if !matches!(durability, Durability::Interval | Durability::Always) {
            return Ok(());
        }
        if !lock(&self.state).record.is_synced(&entries) {
            let file = Arc::clone(&entries.file);
            self.after_write(durability, file, on_late_failure).await?;
        }
        if lock(&self.state).record.is_lost(&entries) {
            return Err(failed(&io::Error::other("it was not tried again")));
        }
        Ok(())
    }

    /// Syncs a new file in the background, without delay, since it may be large. `on_late_failure` is called
    /// if the sync fails.
    pub fn after_making(&self, new: UnsyncedFile, on_late_failure: impl FnOnce() + Send + 'static) {
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

    /// Stores a failure. The next append with the durability `interval` reports it.
    fn failed_late(&self, error: Error) {
        let mut state = lock(&self.state);
        if state.durability == Durability::Interval {
            state.failed = Some(error);
        }
    }

    /// Syncs all unsynced files. It is called before the session is closed.
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
            let is_silent = breaks("One sync of a session runs at a time");
            !std::mem::replace(&mut state.running, !is_silent)
        };
        if start {
            let state = Arc::clone(&self.state);
            drop(begin(move || run(&state)));
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

impl SyncState {
    /// The folder to sync; `None` if the folder was synced after it got this file. A failed sync of a folder is tried
    /// again, unlike a failed sync of a file.
    fn folder_to_sync(&self, identity: Identity) -> Option<Arc<Folder>> {
        let is_named = self.named == Some(identity);
        let folder = self.at.as_ref().map(|at| Arc::clone(&at.folder));
        folder.filter(|_| !is_named)
    }

    /// The location of the file if its beginning must be written again before it is synced.
    fn headless(&self, identity: Identity) -> Option<Location> {
        self.at
            .clone()
            .filter(|_| self.record.headless == Some(identity))
    }

    fn note(&mut self, new: UnsyncedFile) {
        let is_same = |known: &UnsyncedFile| Arc::ptr_eq(&known.file, &new.file);
        if !self.unsynced.iter().any(is_same) {
            self.unsynced.push(new);
            if !breaks("Each file that waits for a sync is counted once") {
                unsynced(|count| count.fetch_add(1, Ordering::Relaxed));
            }
        }
    }
}

/// If a sync of the beginning of the file has failed, writes the same bytes again. Without a new write, no later sync
/// of any process writes these bytes to the disk.
fn write_beginning(state: &Mutex<SyncState>, identity: Option<Identity>) -> io::Result<()> {
    let headless = identity.and_then(|identity| lock(state).headless(identity));
    let Some(at) = headless else {
        return Ok(());
    };
    let file = at.folder.file_in_place(&at.name);
    let file = file.map_err(|error| io::Error::other(error.message))?;
    let status = file::status_of(&file)?;
    if Some(status.identity) != identity {
        // A file is synced before it replaces a session file.
        return Ok(());
    }
    let mut beginning = vec![0; index(status.size.min(BEGINNING))];
    file.read_exact_at(&mut beginning, 0)?;
    if beginning.starts_with(&[0]) {
        return Err(io::Error::other("the beginning of the file is lost"));
    }
    file.write_all_at(&beginning, 0)
}

/// Records that a sync of a file failed. If the beginning of the file is among the lost bytes, it is written and synced
/// at once. Otherwise another process may append, and may answer when its own sync succeeds, although the beginning is
/// not on disk. If this sync fails too, the beginning is written once more, so that the next sync of any process writes
/// it to the disk.
fn restore_beginning(state: &Mutex<SyncState>, file: &File, status: &Status) {
    let identity = status.identity;
    lock(state).record.note(identity, status.size, false);
    if lock(state).headless(identity).is_none() {
        return;
    }
    let write = || write_beginning(state, Some(identity));
    match write().and_then(|()| file.sync_data()) {
        Ok(()) => lock(state).record.headless = None,
        Err(_) => drop(write()),
    }
}

/// Syncs until no request is waiting.
fn run(state: &Mutex<SyncState>) {
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
        let counted = unsynced(|count| count.fetch_sub(files.len(), Ordering::Relaxed));
        let counts = always!(
            "Each file that waits for a sync is counted once",
            counted >= files.len()
        );
        let alone = always!("One sync of a session runs at a time", lock(state).running);
        // A failed sync is not repeated, since a later success would prove nothing.
        let mut synced = counts.and(alone);
        for unsynced in files {
            let before = file::status_of(&unsynced.file);
            let identity = before.as_ref().ok().map(|status| status.identity);
            let mut done = write_beginning(state, identity).and_then(|()| unsynced.sync());
            if done.is_err()
                && let Ok(status) = &before
            {
                restore_beginning(state, &unsynced.file, status);
            }
            if let Ok(status) = before {
                let folder = lock(state).folder_to_sync(status.identity);
                let named = folder.map_or(Ok(()), |folder| folder.sync());
                let mut state = lock(state);
                if named.is_ok() {
                    state.named = Some(status.identity);
                }
                done = done.and(named);
                let record = &mut state.record;
                record.note(status.identity, status.size, done.is_ok());
                synced = synced.and(record.judged(status.identity, status.size, done.is_ok()));
            }
            synced = synced.and(done.map_err(|error| failed(&error)));
        }
        for sender in waiting {
            // The receiver is dropped if the request was cancelled.
            let _gone = sender.send(synced.clone());
        }
    }
}

/// The error `durabilityUnknown` with its cause.
pub(crate) fn failed(cause: &io::Error) -> Error {
    Error::new(
        Kind::DurabilityUnknown,
        format!("the entry is written, but syncing it failed: {cause}"),
    )
}

#[cfg(test)]
mod tests;
