//! Notices changes to the files of open sessions, with the file watching of the platform (session-file.md §3). A
//! report is only a hint: it may come late, twice or never. Every read and append checks the file itself.
//!
//! One watcher serves all sessions, with one watch for each folder. The watcher is idle while nothing changes. If a
//! folder cannot be watched, the watcher examines the files once a second.

use super::ticks::Ticks;
use crate::lock::lock;
use crate::os::file::{Location, Status};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// How long the thread of the watcher sleeps after an event before it listens again. The appends of this process wake
/// the thread too, and the pause combines several events into one.
const REST: Duration = Duration::from_millis(10);
const AWAKE: Duration = Duration::from_millis(1);

/// Calls subscribers when their files change.
pub struct Watcher<T> {
    /// The watch of the platform. It is made with the first file. Only callers change it, one at a time.
    platform: Mutex<Platform>,
    files: Arc<Files<T>>,
}

type Files<T> = Mutex<HashMap<PathBuf, Weak<T>>>;

#[derive(Default)]
struct Platform {
    watcher: Option<RecommendedWatcher>,
    /// The number of watched files in each folder.
    folders: HashMap<PathBuf, usize>,
    /// Examines all files once a second, if the changes in a folder are not reported.
    ticks: Option<Ticks>,
}

impl<T: Send + Sync + 'static> Watcher<T> {
    pub fn new() -> Self {
        Self {
            platform: Mutex::default(),
            files: Arc::default(),
        }
    }

    /// Calls `changed` with `who`, on the thread of the watcher, whenever the file may have changed. `changed` must
    /// not block.
    pub fn add(&self, file: &Path, who: &Arc<T>, changed: fn(Arc<T>)) {
        let Some(folder) = file.parent() else {
            return;
        };
        lock(&self.files).insert(file.to_owned(), Arc::downgrade(who));
        let mut platform = lock(&self.platform);
        let count = platform.folders.entry(folder.to_owned()).or_default();
        *count += 1;
        if *count > 1 {
            return;
        }
        if let Err(error) = self.watch(&mut platform, folder, changed) {
            let folder = folder.display();
            tracing::warn!(%error, %folder, "cannot be watched, so its open sessions are looked at once a second; the limit of watches can be raised (Linux: fs.inotify.max_user_instances)");
            self.tick(&mut platform, changed);
        }
    }

    fn tick(&self, platform: &mut Platform, changed: fn(Arc<T>)) {
        if platform.ticks.is_some() {
            return;
        }
        let files = Arc::clone(&self.files);
        let mut seen = HashMap::new();
        match Ticks::start(move || look(&files, &mut seen, changed)) {
            Ok(ticks) => platform.ticks = Some(ticks),
            Err(error) => {
                tracing::warn!(%error, "changes by others are noticed at the next call only");
            }
        }
    }

    fn watch(
        &self,
        platform: &mut Platform,
        folder: &Path,
        changed: fn(Arc<T>),
    ) -> notify::Result<()> {
        let watcher = match &mut platform.watcher {
            Some(watcher) => watcher,
            none => {
                let files = Arc::clone(&self.files);
                let mut rested = Instant::now();
                let on_event = move |event| {
                    if rested.elapsed() > AWAKE {
                        std::thread::sleep(REST);
                        rested = Instant::now();
                    }
                    tell(&files, event, changed);
                };
                none.insert(notify::recommended_watcher(on_event)?)
            }
        };
        watcher.watch(folder, RecursiveMode::NonRecursive)
    }

    pub fn remove(&self, file: &Path) {
        let Some(folder) = file.parent() else {
            return;
        };
        if lock(&self.files).remove(file).is_none() {
            return;
        }
        let mut platform = lock(&self.platform);
        let Some(count) = platform.folders.get_mut(folder) else {
            return;
        };
        *count -= 1;
        if *count == 0 {
            platform.folders.remove(folder);
            if let Some(watcher) = &mut platform.watcher {
                // The watch may have ended already, together with its folder.
                let _gone = watcher.unwatch(folder);
            }
        }
        if platform.folders.is_empty() {
            platform.ticks = None;
        }
    }
}

impl<T: Send + Sync + 'static> Default for Watcher<T> {
    fn default() -> Self {
        Self::new()
    }
}

fn tell<T>(files: &Files<T>, event: notify::Result<notify::Event>, changed: fn(Arc<T>)) {
    let Ok(event) = event else {
        return;
    };
    // Opening and reading a file do not change it. The reads of this process also cause such events.
    if matches!(event.kind, EventKind::Access(_)) {
        return;
    }
    if event.need_rescan() {
        // The platform has dropped events, so any file may have changed.
        let everyone: Vec<Arc<T>> = lock(files).values().filter_map(Weak::upgrade).collect();
        everyone.into_iter().for_each(changed);
        return;
    }
    for path in &event.paths {
        let who = lock(files).get(path).and_then(Weak::upgrade);
        if let Some(who) = who {
            changed(who);
        }
    }
}

/// Calls the subscribers of the files whose status differs from the status in `seen`. A file that is not in `seen`
/// counts as changed, since it may have changed after its subscriber read it.
fn look<T>(files: &Files<T>, seen: &mut HashMap<PathBuf, Option<Status>>, changed: fn(Arc<T>)) {
    let watched: Vec<(PathBuf, Weak<T>)> = lock(files)
        .iter()
        .map(|(path, who)| (path.clone(), Weak::clone(who)))
        .collect();
    let mut now = HashMap::with_capacity(watched.len());
    for (path, who) in watched {
        let status = Location::of_path(&path)
            .ok()
            .and_then(|place| place.status().ok());
        if seen.get(&path) != Some(&status)
            && let Some(who) = who.upgrade()
        {
            changed(who);
        }
        now.insert(path, status);
    }
    *seen = now;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const PATIENCE: Duration = Duration::from_secs(60);

    fn wait_for_more(calls: &AtomicUsize, than: usize) {
        let began = Instant::now();
        while calls.load(Ordering::SeqCst) <= than {
            assert!(began.elapsed() < PATIENCE, "no call after {than}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// If one user has 128 daemons, inotify refuses a watch to the next daemon. That daemon once noticed entries of
    /// others only at the next call of its client, so an editor showed an old tree until its user typed something. In
    /// this test a missing folder takes the place of the refusal.
    #[test]
    fn a_file_without_a_watch_is_looked_at() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("later/a.jsonl");
        let calls = Arc::new(AtomicUsize::new(0));
        let watcher = Watcher::new();
        watcher.add(&file, &calls, |calls| {
            calls.fetch_add(1, Ordering::SeqCst);
        });
        wait_for_more(&calls, 0);
        for text in ["a", "ab", "abc"] {
            let before = calls.load(Ordering::SeqCst);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
            wait_for_more(&calls, before);
        }
        watcher.remove(&file);
        assert!(lock(&watcher.platform).ticks.is_none());
    }
}
