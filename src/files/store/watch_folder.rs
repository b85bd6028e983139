//! Notices changes to the files of the session directory, also changes by other processes (session-file.md §5). A
//! report is only a hint: it may come late or twice.

use super::file_names::EXTENSION;
use super::ticks::Ticks;
use notify::event::{CreateKind, RemoveKind};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Watches the session directory and its folders until this value is dropped. It is idle while nothing changes, unless
/// the platform refuses the watch.
pub enum FolderWatch {
    Reported { _watcher: RecommendedWatcher },
    Ticking { _ticks: Ticks },
}

impl FolderWatch {
    /// Calls `changed` on its own thread whenever a session file may have been made, changed or removed. If the
    /// platform does not report changes, `changed` is called once a second. `changed` must not block.
    pub(crate) fn start(
        folder: &Path,
        changed: impl Fn() + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let changed = Arc::new(changed);
        let notify = Arc::clone(&changed);
        let on_event = move |event: notify::Result<notify::Event>| {
            if event.is_ok_and(|event| concerns_sessions(&event)) {
                notify();
            }
        };
        let watched = notify::recommended_watcher(on_event).and_then(|mut watcher| {
            watcher.watch(folder, RecursiveMode::Recursive)?;
            Ok(watcher)
        });
        match watched {
            Ok(watcher) => Ok(Self::Reported { _watcher: watcher }),
            Err(error) => {
                let folder = folder.display();
                tracing::warn!(%error, %folder, "cannot be watched, so it is listed once a second");
                let ticks = Ticks::start(move || changed())?;
                Ok(Self::Ticking { _ticks: ticks })
            }
        }
    }
}

/// Whether the event is about a session file or a folder. An event without a path means that events were lost.
fn concerns_sessions(event: &notify::Event) -> bool {
    let is_session = |path: &Path| {
        let name = path.file_name().unwrap_or_default();
        name.as_encoded_bytes().ends_with(EXTENSION.as_bytes())
    };
    let is_folder = matches!(
        event.kind,
        EventKind::Create(CreateKind::Folder) | EventKind::Remove(RemoveKind::Folder)
    );
    !matches!(event.kind, EventKind::Access(_))
        && (is_folder || event.paths.is_empty() || event.paths.iter().any(|path| is_session(path)))
}
