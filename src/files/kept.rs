//! The memory that a process keeps between requests, for all its parts together (session-file.md §6).
//!
//! All data that is kept here can be made or read again. When a part needs memory, other parts are given up, the least
//! recently used part first. The rows of a list are not given up, since each list needs all of them; they leave less
//! memory to the other parts.

use crate::lock::lock;
use crate::os::heap;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The usual limit, in bytes.
pub const KEPT_BYTES: usize = 64 << 20;
/// The parts may always have this many bytes together, however many rows there are.
const LEAST_BYTES: usize = 16 << 20;

/// The memory of all parts.
pub struct Kept {
    limit: usize,
    /// The bytes of rows.
    rows: AtomicUsize,
    parts: Mutex<KeptParts>,
}

#[derive(Default)]
struct KeptParts {
    bytes: usize,
    next: u64,
    /// The parts by the number of their last use. The first part is the least recently used part.
    all: BTreeMap<u64, Part>,
}

struct Part {
    bytes: usize,
    give_up: Arc<dyn Fn() + Send + Sync>,
}

/// The memory of one part. It is free again when this value is dropped.
pub struct KeptPart {
    kept: Arc<Kept>,
    bytes: usize,
    last_use: AtomicU64,
}

impl fmt::Debug for KeptPart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} bytes", self.bytes)
    }
}

impl Default for Kept {
    fn default() -> Self {
        Self::new(KEPT_BYTES)
    }
}

impl Kept {
    /// Parts may have `limit` bytes together.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            rows: AtomicUsize::new(0),
            parts: Mutex::default(),
        }
    }

    /// The most bytes that parts may have together now.
    pub fn most(&self) -> usize {
        let rows = self.rows.load(Ordering::Relaxed);
        let least = LEAST_BYTES.min(self.limit);
        self.limit.saturating_sub(rows).max(least)
    }

    /// Sets the bytes of the rows.
    pub(crate) fn set_rows(&self, bytes: usize) {
        self.rows.store(bytes, Ordering::Relaxed);
    }

    /// Reserves memory for a part of this size. Gives up other parts if their memory is needed. Returns `None` if that
    /// is not enough.
    ///
    /// `give_up` drops the part, and with it the [`KeptPart`]. It does nothing while the part is in use: it must not
    /// wait for a lock, since the caller of this function may hold it.
    pub fn take(
        self: &Arc<Self>,
        bytes: usize,
        give_up: impl Fn() + Send + Sync + 'static,
    ) -> Option<KeptPart> {
        let give_up: Arc<dyn Fn() + Send + Sync> = Arc::new(give_up);
        let mut tried = None;
        loop {
            let oldest = {
                let mut parts = lock(&self.parts);
                if parts.bytes.saturating_add(bytes) <= self.most() {
                    let number = parts.add(Part { bytes, give_up });
                    return Some(KeptPart {
                        kept: Arc::clone(self),
                        bytes,
                        last_use: AtomicU64::new(number),
                    });
                }
                if bytes > self.most() {
                    return None;
                }
                let after = tried.map_or(0, |tried| tried + 1);
                let (number, part) = parts.all.range(after..).next()?;
                tried = Some(*number);
                Arc::clone(&part.give_up)
            };
            oldest();
        }
    }
}

impl KeptParts {
    fn add(&mut self, part: Part) -> u64 {
        let number = self.next;
        self.next += 1;
        self.bytes += part.bytes;
        self.all.insert(number, part);
        number
    }
}

impl KeptPart {
    /// Changes the size of the part. No other part is given up before the next [`Kept::take`].
    pub fn resize(&mut self, bytes: usize) {
        let mut parts = lock(&self.kept.parts);
        let last = self.last_use.load(Ordering::Relaxed);
        if let Some(part) = parts.all.get_mut(&last) {
            part.bytes = bytes;
            parts.bytes = parts.bytes - self.bytes + bytes;
            self.bytes = bytes;
        }
    }

    /// Notes that the part is used, so that other parts are given up first.
    pub fn used(&self) {
        let mut parts = lock(&self.kept.parts);
        let last = self.last_use.load(Ordering::Relaxed);
        if last + 1 == parts.next {
            return;
        }
        if let Some(part) = parts.all.remove(&last) {
            parts.bytes -= part.bytes;
            let number = parts.add(part);
            self.last_use.store(number, Ordering::Relaxed);
        }
    }
}

impl Drop for KeptPart {
    fn drop(&mut self) {
        let mut parts = lock(&self.kept.parts);
        let last = self.last_use.load(Ordering::Relaxed);
        if let Some(part) = parts.all.remove(&last) {
            parts.bytes -= part.bytes;
        }
        drop(parts);
        heap::freed(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::TryLockError;

    /// Holds the memory of one part.
    type Slot = Arc<Mutex<Option<KeptPart>>>;

    fn put(kept: &Arc<Kept>, slot: &Slot, bytes: usize) -> bool {
        let same = Arc::clone(slot);
        let part = kept.take(bytes, move || match same.try_lock() {
            Ok(mut slot) => *slot = None,
            Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => {}
        });
        let is_kept = part.is_some();
        *lock(slot) = part;
        is_kept
    }

    fn is_kept(slot: &Slot) -> bool {
        lock(slot).is_some()
    }

    #[test]
    fn the_part_that_was_not_used_for_the_longest_time_is_given_up_first() {
        let kept = Arc::new(Kept::new(100));
        let [first, second, third] = [Slot::default(), Slot::default(), Slot::default()];
        assert!(put(&kept, &first, 40) && put(&kept, &second, 30));
        lock(&second).as_mut().unwrap().resize(40);
        lock(&first).as_ref().unwrap().used();
        assert!(put(&kept, &third, 50));
        assert!(is_kept(&first) && !is_kept(&second) && is_kept(&third));
        assert!(put(&kept, &second, 100), "all others are given up");
        assert!(!is_kept(&first) && !is_kept(&third));
        assert!(!put(&kept, &first, 101), "larger than everything");
        assert!(is_kept(&second), "nothing is given up in vain");
        *lock(&second) = None;
        assert_eq!(lock(&kept.parts).bytes, 0);
    }

    #[test]
    fn a_part_in_use_is_not_given_up() {
        let kept = Arc::new(Kept::new(100));
        let [used, idle, new] = [Slot::default(), Slot::default(), Slot::default()];
        assert!(put(&kept, &used, 60) && put(&kept, &idle, 40));
        let in_use = lock(&used);
        assert!(put(&kept, &new, 40), "the idle part makes room");
        assert!(!put(&kept, &idle, 60), "the other one does not");
        drop(in_use);
        assert!(put(&kept, &idle, 60));
    }

    #[test]
    fn rows_leave_less_to_the_parts() {
        let kept = Arc::new(Kept::new(3 * LEAST_BYTES));
        let slot = Slot::default();
        assert!(put(&kept, &slot, 3 * LEAST_BYTES));
        kept.set_rows(LEAST_BYTES);
        assert!(!put(&kept, &slot, 2 * LEAST_BYTES + 1));
        assert!(put(&kept, &slot, 2 * LEAST_BYTES));
        kept.set_rows(100 * LEAST_BYTES);
        assert_eq!(kept.most(), LEAST_BYTES);
    }
}
