//! Notices changes to the files of open sessions through the platform's file watching (session-file.md §3).
//! Only a hint: it may come late, twice or never, and every read and append checks the file itself.
//!
//! One watcher serves all sessions, with one watch per folder. It is idle while nothing changes.

use crate::lock::lock;
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// How long the watcher's thread sleeps after an event, and then listens before it sleeps again. Our own
/// appends wake it too; this combines events.
const REST: Duration = Duration::from_millis(10);
const AWAKE: Duration = Duration::from_millis(1);

/// Calls subscribers when their files change.
pub(crate) struct Watcher<T> {
    /// Made with the first file. Only callers change it, one at a time.
    platform: Mutex<Platform>,
    files: Arc<Files<T>>,
}

type Files<T> = Mutex<HashMap<PathBuf, Weak<T>>>;

#[derive(Default)]
struct Platform {
    watcher: Option<RecommendedWatcher>,
    /// The number of watched files in each folder.
    folders: HashMap<PathBuf, usize>,
}

impl<T: Send + Sync + 'static> Watcher<T> {
    pub(crate) fn new() -> Self {
        Self {
            platform: Mutex::default(),
            files: Arc::default(),
        }
    }

    /// Calls `changed` with `who` whenever the file may have changed, on the watcher's thread. It must not
    /// block.
    pub(crate) fn add(&self, file: &Path, who: &Arc<T>, changed: fn(Arc<T>)) {
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

    pub(crate) fn remove(&self, file: &Path) {
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
                // The watch may have ended with its folder.
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
    // Opening and reading change nothing, and our own reads would wake us.
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
