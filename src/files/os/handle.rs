//! Open files and folders that are closed while unused, so that the number of open sessions does not depend on
//! the number of descriptors.
//!
//! This module decides which files and folders are open; callers open them again.

use super::unix::calls::File;
use super::unix::process::descriptor_limit;
use crate::lock::lock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// The most open handles, even if the process may have very many descriptors.
const MAX_OPEN: usize = 4096;
/// The fewest open handles, even if the process may have few descriptors.
const MIN_OPEN: usize = 8;

/// All open handles that can be closed. The list is global, since descriptors belong to the process.
static OPEN: Mutex<Vec<Arc<Slot>>> = Mutex::new(Vec::new());
/// Counts uses. The counts show which handle was used least recently.
static CLOCK: AtomicU64 = AtomicU64::new(0);

/// A file or folder. It is closed when it is dropped, or earlier if other handles need its descriptor.
#[derive(Debug)]
pub(crate) struct Handle {
    slot: Arc<Slot>,
    /// Whether the file stays open until the handle is dropped.
    kept: bool,
}

#[derive(Debug, Default)]
struct Slot {
    /// A mutex of the standard library, since it is locked for at most one `open`.
    open: Mutex<Option<HandleFile>>,
    used: AtomicU64,
}

#[derive(Debug)]
struct HandleFile {
    file: Arc<File>,
    access: HandleAccess,
}

/// The access that an open file allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HandleAccess {
    Read,
    /// Appending and reading.
    Append,
}

impl Handle {
    /// A handle of an open file.
    pub(crate) fn new(file: File, access: HandleAccess) -> Self {
        Self::of(Arc::new(file), access)
    }

    /// Like [`Handle::new`], for a file that has other owners too.
    pub(crate) fn of(file: Arc<File>, access: HandleAccess) -> Self {
        let handle = Self {
            slot: Arc::default(),
            kept: false,
        };
        handle.put(file, access);
        handle
    }

    /// Like [`Handle::new`], but the file stays open until the handle is dropped.
    pub(crate) fn kept(file: impl Into<Arc<File>>) -> Self {
        let handle = Self {
            slot: Arc::default(),
            kept: true,
        };
        handle.put(file.into(), HandleAccess::Read);
        handle
    }

    /// The open file. If the file is closed, or allows less access, `open` opens it. The file stays open while the
    /// caller has it.
    pub(crate) fn get<E>(
        &self,
        access: HandleAccess,
        open: impl FnOnce() -> Result<File, E>,
    ) -> Result<Arc<File>, E> {
        self.slot.touch();
        let mut slot = lock(&self.slot.open);
        if let Some(open) = &*slot
            && open.access >= access
        {
            return Ok(Arc::clone(&open.file));
        }
        let file = Arc::new(open()?);
        let was_open = slot.is_some();
        *slot = Some(HandleFile {
            file: Arc::clone(&file),
            access,
        });
        drop(slot);
        if !was_open {
            self.admit();
        }
        Ok(file)
    }

    /// Replaces the file.
    pub(crate) fn set(&self, file: File, access: HandleAccess) -> Arc<File> {
        self.put(Arc::new(file), access)
    }

    fn put(&self, file: Arc<File>, access: HandleAccess) -> Arc<File> {
        let open = HandleFile {
            file: Arc::clone(&file),
            access,
        };
        self.slot.touch();
        let was_open = lock(&self.slot.open).replace(open).is_some();
        if !was_open {
            self.admit();
        }
        file
    }

    /// Registers the handle as open. If too many are open, closes those that were used least recently.
    fn admit(&self) {
        if self.kept {
            return;
        }
        let mut open = lock(&OPEN);
        open.push(Arc::clone(&self.slot));
        if open.len() <= budget() {
            return;
        }
        let mut by_age: Vec<Arc<Slot>> = open.clone();
        // The age of each slot is read once, since it may change during the sort.
        by_age.sort_by_cached_key(|slot| slot.used.load(Ordering::Relaxed));
        for slot in by_age {
            if open.len() <= budget() {
                return;
            }
            if slot.close_if_idle() {
                open.retain(|listed| !Arc::ptr_eq(listed, &slot));
            }
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.kept {
            lock(&OPEN).retain(|slot| !Arc::ptr_eq(slot, &self.slot));
        }
    }
}

impl Slot {
    fn touch(&self) {
        let now = CLOCK.fetch_add(1, Ordering::Relaxed);
        self.used.store(now, Ordering::Relaxed);
    }

    /// Closes the file unless it is in use; returns whether it is closed.
    fn close_if_idle(&self) -> bool {
        let Ok(mut slot) = self.open.try_lock() else {
            return false;
        };
        let idle = slot
            .as_ref()
            .is_none_or(|open| Arc::strong_count(&open.file) == 1);
        if idle {
            slot.take();
        }
        idle
    }
}

/// Closes all unused files; returns whether there were any.
pub(crate) fn close_idle() -> bool {
    let mut open = lock(&OPEN);
    let before = open.len();
    open.retain(|slot| !slot.close_if_idle());
    open.len() < before
}

/// The most handles that may be open at a time: half of the descriptors that the process may have. The other
/// half is for pipes, listings and copies.
pub(crate) fn budget() -> usize {
    static BUDGET: OnceLock<usize> = OnceLock::new();
    *BUDGET.get_or_init(|| {
        let half = descriptor_limit().map_or(MAX_OPEN, |limit| {
            usize::try_from(limit / 2).unwrap_or(MAX_OPEN)
        });
        half.clamp(MIN_OPEN, MAX_OPEN)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle() -> Handle {
        Handle::new(tempfile::tempfile().unwrap(), HandleAccess::Read)
    }

    fn is_open(handle: &Handle) -> bool {
        lock(&handle.slot.open).is_some()
    }

    // One test, since open handles belong to the process.
    #[test]
    fn an_unused_handle_is_closed_and_reopened() {
        let (idle, used, kept) = (
            handle(),
            handle(),
            Handle::kept(tempfile::tempfile().unwrap()),
        );
        let in_use = used.get(HandleAccess::Read, || Err("is open")).unwrap();
        assert!(close_idle());
        assert!(!is_open(&idle) && is_open(&used) && is_open(&kept));
        drop(in_use);
        assert_eq!(
            idle.get(HandleAccess::Read, || Err("gone")).err(),
            Some("gone")
        );
        let mut opened = 0;
        for access in [
            HandleAccess::Read,
            HandleAccess::Read,
            HandleAccess::Append,
            HandleAccess::Read,
        ] {
            let open = || {
                opened += 1;
                tempfile::tempfile()
            };
            idle.get(access, open).unwrap();
        }
        assert_eq!(opened, 2, "once to read, once more to append");

        let many: Vec<Handle> = (0..budget() + 10).map(|_| handle()).collect();
        let open = many.iter().filter(|handle| is_open(handle)).count();
        assert!(open <= budget() && open >= budget() / 2, "{open}");
        assert!(is_open(&many[budget() + 9]) && !is_open(&many[0]));
        drop(many);
    }
}
