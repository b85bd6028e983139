//! Notices changes to the files of the session directory, also those of other processes (session-file.md §5). Only a
//! hint: it may come late or twice.

use super::EXTENSION;
use notify::event::{CreateKind, RemoveKind};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use std::path::Path;

/// Watches the session directory and its folders until dropped. Idle while nothing changes.
pub(crate) struct FolderWatch {
    _watcher: RecommendedWatcher,
}

impl FolderWatch {
    /// Calls `changed` on the watcher's thread whenever a session file may have been made, changed or removed. It must
    /// not block.
    pub(crate) fn start(
        folder: &Path,
        changed: impl Fn() + Send + 'static,
    ) -> notify::Result<Self> {
        let on_event = move |event: notify::Result<notify::Event>| {
            if event.is_ok_and(|event| concerns_sessions(&event)) {
                changed();
            }
        };
        let mut watcher = notify::recommended_watcher(on_event)?;
        watcher.watch(folder, RecursiveMode::Recursive)?;
        Ok(Self { _watcher: watcher })
    }
}

/// Whether the event is about a session file or a folder. Events without a path follow an overflow.
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
