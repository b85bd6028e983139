//! Waits until the session files of a tool have probably changed. The waiting thread does no work meanwhile.
//!
//! An event only starts the next import, which finds the changes by the status of the files. So events may be
//! dropped, as long as one more event says that some were dropped.

use super::discover::{WatchScope, WatchedPlace};
use notify::event::ModifyKind;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use treelined_files::lock::lock;

/// A wait ends when one file has been quiet for this long. Tools write several lines at a time, and an import takes the
/// last message as complete only after this time.
const CALM: Duration = Duration::from_millis(if cfg!(test) { 50 } else { 1000 });
/// A wait ends after this time even if changes continue.
const LONGEST_UNREST: Duration = Duration::from_millis(if cfg!(test) { 500 } else { 10_000 });
/// The most paths whose last change is remembered. All other paths count as one path.
const MAX_PATHS: usize = 1_024;

/// Watches the locations in which tools keep their sessions.
pub struct Watch {
    _watcher: RecommendedWatcher,
    /// Receives a message when `unrest` has changed.
    changes: Receiver<()>,
    unrest: Arc<Mutex<Unrest>>,
    /// The locations that cannot be watched, with the reasons.
    failures: Vec<(PathBuf, notify::Error)>,
}

/// The changes since the last wait.
#[derive(Default)]
struct Unrest {
    since: Option<Instant>,
    /// The time of the last change of each path.
    paths: HashMap<PathBuf, Instant>,
    /// Whether a folder has appeared, or events were dropped, so that the list of watched locations is incomplete.
    is_stale: bool,
}

impl Unrest {
    fn note(&mut self, paths: Vec<PathBuf>, wake: Wake, now: Instant) {
        self.is_stale |= wake == Wake::Stale;
        self.since.get_or_insert(now);
        for mut path in paths {
            if self.paths.len() >= MAX_PATHS && !self.paths.contains_key(&path) {
                path = PathBuf::new();
            }
            self.paths.insert(path, now);
        }
    }

    /// The time at which a wait ends if nothing more changes. One quiet file is enough, even if others still change.
    fn ends(&self) -> Option<Instant> {
        let since = self.since?;
        let calm = self.paths.values().min().map(|last| *last + CALM);
        Some(calm.map_or(since + CALM, |calm| calm.min(since + LONGEST_UNREST)))
    }
}

/// The reason why a wait has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    Changed,
    /// Sources may have changed, and the locations must be watched again.
    Stale,
    TimedOut,
}

impl Watch {
    /// Watches these locations. If one is missing, the nearest folder above it is watched.
    pub fn of(places: &[WatchedPlace]) -> notify::Result<Self> {
        let (sender, changes) = mpsc::sync_channel(1);
        let unrest = Arc::new(Mutex::new(Unrest::default()));
        let noted = Arc::clone(&unrest);
        let wanted: Vec<WatchedPlace> = places.to_vec();
        let on_event = move |event: notify::Result<Event>| {
            let Some((wake, paths)) = change_of(event, &wanted) else {
                return;
            };
            lock(&noted).note(paths, wake, Instant::now());
            // If a message is waiting already, it also stands for this change.
            let _waiting = sender.try_send(());
        };
        let mut watcher = notify::recommended_watcher(on_event)?;
        let mut failures = Vec::new();
        // Each folder is watched once, because a second watch would replace the first one.
        let mut folders: BTreeMap<&Path, (bool, &Path)> = BTreeMap::new();
        for place in places {
            let folder = nearest(&place.path);
            let has_tree = place.scope == WatchScope::Tree && folder == place.path;
            let known = folders.entry(folder).or_insert((has_tree, &place.path));
            known.0 |= has_tree;
        }
        for (folder, (has_tree, place)) in folders {
            let mode = match has_tree {
                true => RecursiveMode::Recursive,
                false => RecursiveMode::NonRecursive,
            };
            if let Err(error) = watcher.watch(folder, mode) {
                failures.push((place.to_owned(), error));
            }
        }
        Ok(Self {
            _watcher: watcher,
            changes,
            unrest,
            failures,
        })
    }

    /// The locations that cannot be watched, with the reasons.
    pub fn failures(&self) -> &[(PathBuf, notify::Error)] {
        &self.failures
    }

    /// Waits for a change, and then until one changed file has been quiet for a moment. `limit` is the longest wait;
    /// without it the wait may never end.
    pub fn wait(&self, limit: Option<Duration>) -> Wake {
        let limit = limit.map(|limit| Instant::now() + limit);
        loop {
            let now = Instant::now();
            let ends = lock(&self.unrest).ends();
            if ends.is_some_and(|ends| ends <= now) {
                let unrest = std::mem::take(&mut *lock(&self.unrest));
                return match unrest.is_stale {
                    true => Wake::Stale,
                    false => Wake::Changed,
                };
            }
            if limit.is_some_and(|limit| limit <= now) {
                return Wake::TimedOut;
            }
            let next = ends.into_iter().chain(limit).min();
            let received = match next {
                Some(next) => self.changes.recv_timeout(next - now),
                None => {
                    let received = self.changes.recv();
                    received.map_err(|_| RecvTimeoutError::Disconnected)
                }
            };
            // The watcher has ended, so it must be made again.
            if received == Err(RecvTimeoutError::Disconnected) {
                return Wake::Stale;
            }
        }
    }
}

/// The path itself if it exists, else the nearest folder above it that exists.
fn nearest(path: &Path) -> &Path {
    path.ancestors()
        .find(|above| above.is_dir())
        .unwrap_or(path)
}

/// The content of an event about the watched locations: the kind of change, and the changed paths; `None` if there is
/// no change.
fn change_of(
    event: notify::Result<Event>,
    places: &[WatchedPlace],
) -> Option<(Wake, Vec<PathBuf>)> {
    let event = match event {
        Ok(event) if !event.need_rescan() => event,
        // Events were dropped.
        _ => return Some((Wake::Stale, Vec::new())),
    };
    // Reads are not changes.
    if matches!(event.kind, EventKind::Access(_)) {
        return None;
    }
    let is_below = |path: &PathBuf| {
        let mut places = places.iter();
        places.any(|place| place.scope != WatchScope::Folders && path.starts_with(&place.path))
    };
    // A location, or a folder above it, has appeared or was removed; or a folder that may have a location has appeared.
    let is_above = |path: &PathBuf| places.iter().any(|place| place.path.starts_with(path));
    let is_new = |path: &PathBuf| {
        let is_in = |place: &WatchedPlace| {
            place.scope == WatchScope::Folders && path.parent() == Some(&place.path)
        };
        places.iter().any(is_in) && path.is_dir()
    };
    let has_appeared = matches!(
        event.kind,
        EventKind::Create(_) | EventKind::Modify(ModifyKind::Name(_))
    );
    let mut paths = event.paths.iter();
    if paths.any(|path| is_above(path) || has_appeared && is_new(path)) {
        return Some((Wake::Stale, event.paths));
    }
    let is_change = event.paths.iter().any(is_below);
    is_change.then_some((Wake::Changed, event.paths))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::importer::discover::{Request, watched_places};
    use std::fs;
    use treelined_core::agent::Tool;

    const SHORT: Option<Duration> = Some(Duration::from_millis(300));
    const LONG: Option<Duration> = Some(Duration::from_secs(20));

    fn place(path: PathBuf, has_tree: bool) -> WatchedPlace {
        let scope = match has_tree {
            true => WatchScope::Tree,
            false => WatchScope::Files,
        };
        WatchedPlace { path, scope }
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

    /// The number of changes for each wake depends on the machine: while a build runs on the same machine, the
    /// watcher's thread may pause for longer than `CALM`.
    #[test]
    fn many_changes_wake_few_times() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let watch = Watch::of(&[place(root.clone(), true)]).unwrap();
        for number in 0..500 {
            fs::write(root.join(format!("{number}.jsonl")), "{}\n").unwrap();
        }
        assert_eq!(watch.wait(LONG), Wake::Changed);
        let more = (0..).take_while(|_| watch.wait(SHORT) == Wake::Changed);
        assert!(more.count() < 50, "of 500 changes");
    }

    /// Once a file that was written without a pause delayed the import of all other files by ten seconds.
    #[test]
    fn a_busy_file_does_not_delay_another_one() {
        let start = Instant::now();
        let at = |millis: u64| start + Duration::from_millis(millis);
        let mut unrest = Unrest::default();
        assert_eq!(unrest.ends(), None);
        unrest.note(vec!["busy".into()], Wake::Changed, at(0));
        unrest.note(vec!["done".into()], Wake::Changed, at(10));
        unrest.note(vec!["busy".into()], Wake::Changed, at(40));
        assert_eq!(unrest.ends(), Some(at(10) + CALM));
        let mut alone = Unrest::default();
        (0..100).for_each(|number| alone.note(vec!["busy".into()], Wake::Changed, at(40 * number)));
        assert_eq!(alone.ends(), Some(at(0) + LONGEST_UNREST));
        for number in 0..2 * MAX_PATHS {
            alone.note(vec![number.to_string().into()], Wake::Changed, at(1));
        }
        assert_eq!(alone.paths.len(), MAX_PATHS + 1);
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

    /// Once the chats of a workspace that was opened for the first time were imported only when a chat of another
    /// workspace changed. The same happened with a folder of archived sessions that Codex makes later.
    #[test]
    fn a_folder_that_a_tool_makes_later_is_watched_too() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let workspaces = root.join("User/workspaceStorage");
        fs::create_dir_all(workspaces.join("old/chatSessions")).unwrap();
        let request = Request {
            from: Some(Tool::VscodeChat),
            paths: vec![root.join("User")],
        };
        let watch = || Watch::of(&watched_places(&request)).unwrap();
        let first = watch();
        fs::write(workspaces.join("old/state.vscdb"), "x").unwrap();
        assert_eq!(first.wait(SHORT), Wake::TimedOut, "it is not a chat");
        fs::create_dir(workspaces.join("new")).unwrap();
        assert_eq!(first.wait(LONG), Wake::Stale);
        let second = watch();
        fs::create_dir(workspaces.join("new/chatSessions")).unwrap();
        assert_eq!(second.wait(LONG), Wake::Stale);
        let third = watch();
        fs::write(workspaces.join("new/chatSessions/s.jsonl"), "{}\n").unwrap();
        assert_eq!(third.wait(LONG), Wake::Changed);

        fs::create_dir_all(root.join(".codex/sessions")).unwrap();
        let request = Request {
            from: Some(Tool::Codex),
            paths: vec![root.join(".codex")],
        };
        let codex = Watch::of(&watched_places(&request)).unwrap();
        fs::write(root.join(".codex/history.jsonl"), "{}\n").unwrap();
        assert_eq!(codex.wait(SHORT), Wake::TimedOut, "it has no sessions");
        fs::create_dir(root.join(".codex/archived_sessions")).unwrap();
        assert_eq!(codex.wait(LONG), Wake::Stale);
    }

    #[test]
    fn dropped_events_count_as_a_change_of_everything() {
        let dropped = Event::new(EventKind::Other).set_flag(notify::event::Flag::Rescan);
        assert_eq!(change_of(Ok(dropped), &[]), Some((Wake::Stale, Vec::new())));
    }
}
