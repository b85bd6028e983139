//! Waits until a tool may have written something. No work is done in the meantime.
//!
//! A change is only a hint: the next import finds the changes by the status of the files. So dropped events cost
//! nothing, as long as an event reports them.

use super::discover::WatchedPlace;
use crate::lock::lock;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The quiet time that ends a wait: tools write several lines at a time.
const CALM: Duration = Duration::from_millis(if cfg!(test) { 50 } else { 1000 });
/// The limit after which a wait ends although changes continue.
const LONGEST_UNREST: Duration = Duration::from_millis(if cfg!(test) { 500 } else { 10_000 });

/// Watches the places where tools keep their sessions.
pub(crate) struct Watch {
    _watcher: RecommendedWatcher,
    changes: Receiver<()>,
    /// A folder has appeared, or events were dropped: the watched places are incomplete.
    is_stale: Arc<Mutex<bool>>,
    /// Places that cannot be watched, and the reasons.
    failures: Vec<(PathBuf, notify::Error)>,
}

/// The end of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    Changed,
    /// As `Changed`; the places must be watched again.
    Stale,
    TimedOut,
}

impl Watch {
    /// Watches these places. For a missing one it watches the nearest folder above.
    pub(crate) fn of(places: &[WatchedPlace]) -> notify::Result<Self> {
        let (sender, changes) = mpsc::sync_channel(1);
        let is_stale = Arc::new(Mutex::new(false));
        let stale = Arc::clone(&is_stale);
        let wanted: Vec<WatchedPlace> = places.to_vec();
        let on_event = move |event: notify::Result<Event>| {
            let Some(change) = change_of(event, &wanted) else {
                return;
            };
            *lock(&stale) |= change == Wake::Stale;
            // A pending change covers this one too.
            let _waiting = sender.try_send(());
        };
        let mut watcher = notify::recommended_watcher(on_event)?;
        let mut failures = Vec::new();
        for place in places {
            let (folder, mode) = match (nearest(&place.path), place.is_recursive) {
                (folder, true) if folder == place.path => (folder, RecursiveMode::Recursive),
                (folder, _) => (folder, RecursiveMode::NonRecursive),
            };
            if let Err(error) = watcher.watch(folder, mode) {
                failures.push((place.path.clone(), error));
            }
        }
        Ok(Self {
            _watcher: watcher,
            changes,
            is_stale,
            failures,
        })
    }

    /// Places that cannot be watched, and the reasons.
    pub(crate) fn failures(&self) -> &[(PathBuf, notify::Error)] {
        &self.failures
    }

    /// Waits for a change, and then until nothing has changed for a moment. Without a limit it may wait for ever.
    pub(crate) fn wait(&self, limit: Option<Duration>) -> Wake {
        let first = match limit {
            Some(limit) => self.changes.recv_timeout(limit),
            None => self
                .changes
                .recv()
                .map_err(|_| RecvTimeoutError::Disconnected),
        };
        match first {
            Err(RecvTimeoutError::Timeout) => return Wake::TimedOut,
            // The watcher has ended.
            Err(RecvTimeoutError::Disconnected) => return Wake::Stale,
            Ok(()) => {}
        }
        let began = Instant::now();
        while began.elapsed() < LONGEST_UNREST && self.changes.recv_timeout(CALM).is_ok() {}
        match std::mem::take(&mut *lock(&self.is_stale)) {
            true => Wake::Stale,
            false => Wake::Changed,
        }
    }
}

/// The folder itself, or the nearest one above that exists.
fn nearest(path: &Path) -> &Path {
    path.ancestors()
        .find(|above| above.is_dir())
        .unwrap_or(path)
}

/// Whether an event changes something below the places; `None` if not.
fn change_of(event: notify::Result<Event>, places: &[WatchedPlace]) -> Option<Wake> {
    let event = match event {
        Ok(event) if !event.need_rescan() => event,
        // Events were dropped.
        _ => return Some(Wake::Stale),
    };
    // Reads by this program are no change.
    if matches!(event.kind, EventKind::Access(_)) {
        return None;
    }
    let is_below = |path: &PathBuf| places.iter().any(|place| path.starts_with(&place.path));
    // A place, or a folder above it, has appeared or disappeared.
    let is_above = |path: &PathBuf| places.iter().any(|place| place.path.starts_with(path));
    if event.paths.iter().any(is_above) {
        return Some(Wake::Stale);
    }
    event.paths.iter().any(is_below).then_some(Wake::Changed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const SHORT: Option<Duration> = Some(Duration::from_millis(300));
    const LONG: Option<Duration> = Some(Duration::from_secs(20));

    fn place(path: PathBuf, is_recursive: bool) -> WatchedPlace {
        WatchedPlace { path, is_recursive }
    }

    #[test]
    fn a_wait_ends_with_a_change_and_not_without() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir_all(root.join("projects/a")).unwrap();
        fs::write(root.join("projects/a/s.jsonl"), "{}\n").unwrap();
        let watch = Watch::of(&[place(root.join("projects"), true)]).unwrap();
        assert!(watch.failures().is_empty());
        assert_eq!(watch.wait(SHORT), Wake::TimedOut);
        fs::read(root.join("projects/a/s.jsonl")).unwrap();
        assert_eq!(watch.wait(SHORT), Wake::TimedOut, "reading changes nothing");
        fs::write(root.join("other"), "x").unwrap();
        assert_eq!(watch.wait(SHORT), Wake::TimedOut, "it is elsewhere");
        fs::write(root.join("projects/a/s.jsonl"), "{}\n{}\n").unwrap();
        assert_eq!(watch.wait(LONG), Wake::Changed);
        fs::create_dir(root.join("projects/b")).unwrap();
        assert_eq!(watch.wait(LONG), Wake::Changed);
        fs::write(root.join("projects/b/t.jsonl"), "{}\n").unwrap();
        assert_eq!(watch.wait(LONG), Wake::Changed, "in a new folder");
        assert_eq!(watch.wait(SHORT), Wake::TimedOut);
    }

    #[test]
    fn many_changes_are_one() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let watch = Watch::of(&[place(root.clone(), true)]).unwrap();
        for number in 0..500 {
            fs::write(root.join(format!("{number}.jsonl")), "{}\n").unwrap();
        }
        assert_eq!(watch.wait(LONG), Wake::Changed);
        assert_eq!(watch.wait(SHORT), Wake::TimedOut);
    }

    #[test]
    fn a_place_that_appears_is_watched_anew() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let places = [place(root.join("home/.claude/projects"), true)];
        let watch = Watch::of(&places).unwrap();
        fs::write(root.join("unrelated"), "x").unwrap();
        assert_eq!(watch.wait(SHORT), Wake::TimedOut);
        fs::create_dir_all(root.join("home/.claude/projects/a")).unwrap();
        assert_eq!(watch.wait(LONG), Wake::Stale);
        let watch = Watch::of(&places).unwrap();
        fs::write(root.join("home/.claude/projects/a/s.jsonl"), "{}\n").unwrap();
        assert_eq!(watch.wait(LONG), Wake::Changed);
    }

    #[test]
    fn dropped_events_count_as_a_change_of_everything() {
        let dropped = Event::new(EventKind::Other).set_flag(notify::event::Flag::Rescan);
        assert_eq!(change_of(Ok(dropped), &[]), Some(Wake::Stale));
    }
}
