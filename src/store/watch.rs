//! Notices that somebody has changed the file of an open session, through the platform's own file
//! watching (storage.md §3). A hint and nothing more: it may come late, twice or never, and what is
//! read or appended is always checked against the file itself.
//!
//! One watcher for all sessions, one watch per folder; nothing runs while nothing happens.

use crate::lock::lock;
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// How long the watcher's thread sleeps once it is woken, and how long it then listens before it
/// sleeps again. Our own appends wake it too: what comes meanwhile then comes together.
const REST: Duration = Duration::from_millis(10);
const AWAKE: Duration = Duration::from_millis(1);

/// Files and who wants to know of them.
pub struct Watcher<T> {
    /// Made with the first file. Changed by callers only, one at a time.
    platform: Mutex<Platform>,
    files: Arc<Files<T>>,
}

type Files<T> = Mutex<HashMap<PathBuf, Weak<T>>>;

#[derive(Default)]
struct Platform {
    watcher: Option<RecommendedWatcher>,
    /// How many files are watched in each folder.
    folders: HashMap<PathBuf, usize>,
}

impl<T: Send + Sync + 'static> Watcher<T> {
    pub fn new() -> Self {
        Self {
            platform: Mutex::default(),
            files: Arc::default(),
        }
    }

    /// Has `changed` called with `who` whenever the file may have changed. It is called on the
    /// watcher's thread and must not wait.
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
            tracing::debug!(%error, "changes by others are noticed at the next call only");
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
                // It may have gone with its folder.
                let _gone = watcher.unwatch(folder);
            }
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
    // Being opened or read changes nothing; our own reading would wake us.
    if matches!(event.kind, EventKind::Access(_)) {
        return;
    }
    for path in &event.paths {
        let who = lock(files).get(path).and_then(Weak::upgrade);
        if let Some(who) = who {
            changed(who);
        }
    }
}
