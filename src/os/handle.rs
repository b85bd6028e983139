//! Open files and folders that may be closed again while nobody uses them, so that the number of
//! sessions that can be open does not hang on the number of descriptors.
//!
//! Owns which of them are open. What they are, and how they are opened again, is the caller's.

use crate::lock::lock;
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// Held open at most, where the process may have very many.
const MAX_OPEN: usize = 4096;
/// Held open at least, however few the process may have.
const MIN_OPEN: usize = 8;

/// Everything that is open now and could be closed. Of the process, as descriptors are.
static OPEN: Mutex<Vec<Arc<Slot>>> = Mutex::new(Vec::new());
/// Counts uses, to know the least recently used.
static CLOCK: AtomicU64 = AtomicU64::new(0);

/// A file or folder; closed when dropped, and before that when others need its descriptor.
#[derive(Debug)]
pub struct Handle {
    slot: Arc<Slot>,
    /// Never closed before it is dropped.
    kept: bool,
}

#[derive(Debug, Default)]
struct Slot {
    /// std: held for an `open` at most.
    open: Mutex<Option<Open>>,
    used: AtomicU64,
}

#[derive(Debug)]
struct Open {
    file: Arc<File>,
    access: Access,
}

/// What an open file is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    Read,
    /// Reading too.
    Append,
}

impl Handle {
    /// Of something that is open already.
    pub fn new(file: File, access: Access) -> Self {
        Self::of(Arc::new(file), access)
    }

    /// As [`Handle::new`], of something that others have open too.
    pub fn of(file: Arc<File>, access: Access) -> Self {
        let handle = Self {
            slot: Arc::default(),
            kept: false,
        };
        handle.put(file, access);
        handle
    }

    /// As [`Handle::new`], but open until it is dropped.
    pub fn kept(file: File) -> Self {
        let handle = Self {
            slot: Arc::default(),
            kept: true,
        };
        handle.set(file, Access::Read);
        handle
    }

    /// The open file; opened by `open` if it is closed, or open for less. It stays open while the
    /// caller holds it.
    pub fn get<E>(
        &self,
        access: Access,
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
        *slot = Some(Open {
            file: Arc::clone(&file),
            access,
        });
        drop(slot);
        if !was_open {
            self.admit();
        }
        Ok(file)
    }

    /// Puts another file in its place.
    pub fn set(&self, file: File, access: Access) -> Arc<File> {
        self.put(Arc::new(file), access)
    }

    fn put(&self, file: Arc<File>, access: Access) -> Arc<File> {
        let open = Open {
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

    /// Makes it known as open, at the cost of the least recently used ones.
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
        // Read once each: they go on being used meanwhile.
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

    /// Closes the file unless somebody uses it; true if it is closed.
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

/// Closes everything that nobody uses now; whether that was anything.
pub fn close_idle() -> bool {
    let mut open = lock(&OPEN);
    let before = open.len();
    open.retain(|slot| !slot.close_if_idle());
    open.len() < before
}

/// How many may be open at a time: half of what the process may have, so that the rest is there for
/// pipes, listings and copies.
pub fn budget() -> usize {
    static BUDGET: OnceLock<usize> = OnceLock::new();
    *BUDGET.get_or_init(|| {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let half = limit.map_or(MAX_OPEN, |limit| {
            usize::try_from(limit / 2).unwrap_or(MAX_OPEN)
        });
        half.clamp(MIN_OPEN, MAX_OPEN)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle() -> Handle {
        Handle::new(tempfile::tempfile().unwrap(), Access::Read)
    }

    fn is_open(handle: &Handle) -> bool {
        lock(&handle.slot.open).is_some()
    }

    // One test, since what is open is the process's.
    #[test]
    fn what_is_not_used_is_closed_and_opened_again() {
        let (idle, used, kept) = (
            handle(),
            handle(),
            Handle::kept(tempfile::tempfile().unwrap()),
        );
        let in_use = used.get(Access::Read, || Err("is open")).unwrap();
        assert!(close_idle());
        assert!(!is_open(&idle) && is_open(&used) && is_open(&kept));
        drop(in_use);
        assert_eq!(idle.get(Access::Read, || Err("gone")).err(), Some("gone"));
        let mut opened = 0;
        for access in [Access::Read, Access::Read, Access::Append, Access::Read] {
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
