//! The memory of arriving frames, of unread output, and of unfinished summaries, for all connections together.
//!
//! Memory is reserved before it is used, and a request never waits for it. A waiting request would keep memory that
//! other waiting requests need. If nothing else is reserved, a reservation may be larger than the limit, so that the
//! largest frame, the largest answer and the longest branch are possible.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use treelined_core::error::{Error, Kind, Result};
use treelined_files::os::heap;

/// Small answers have these bytes in addition to the limit, so that large answers cannot delay them.
const SMALL_BYTES: usize = 16 << 20;

/// How much of the memory a reservation may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// Notifications that may be lost: half of the limit, so that clients that only listen cannot delay the answers to
    /// other clients.
    Notices,
    /// Everything else: the limit.
    Whole,
    /// Small answers: the limit and [`SMALL_BYTES`].
    Small,
}

/// The reserved bytes.
#[derive(Debug)]
pub struct WorkingMemory {
    limit: usize,
    held: AtomicUsize,
}

/// A part of the memory. It is free again when this value is dropped.
#[derive(Debug)]
pub struct Reservation {
    memory: Arc<WorkingMemory>,
    bytes: usize,
}

impl WorkingMemory {
    pub fn new(limit: usize) -> Arc<Self> {
        let held = AtomicUsize::new(0);
        Arc::new(Self { limit, held })
    }

    /// A reservation of no bytes yet.
    pub fn reservation(self: &Arc<Self>) -> Reservation {
        let memory = Arc::clone(self);
        Reservation { memory, bytes: 0 }
    }

    /// Reserves these bytes, or fails with `memoryExhausted`.
    pub(crate) fn reserve(self: &Arc<Self>, bytes: u64) -> Result<Reservation> {
        let mut reservation = self.reservation();
        match reservation.resize(usize::try_from(bytes).unwrap_or(usize::MAX)) {
            true => Ok(reservation),
            false => Err(exhausted(bytes)),
        }
    }
}

impl Reservation {
    /// The reserved bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Changes the size of the reservation. False if there is not enough memory; then the size does not change.
    #[must_use]
    pub fn resize(&mut self, bytes: usize) -> bool {
        self.resize_within(bytes, Share::Whole)
    }

    /// Like [`resize`](Self::resize), with another limit.
    #[must_use]
    pub(crate) fn resize_within(&mut self, bytes: usize, share: Share) -> bool {
        let own = self.bytes;
        let limit = match share {
            Share::Notices => self.memory.limit / 2,
            Share::Whole => self.memory.limit,
            Share::Small => self.memory.limit.saturating_add(SMALL_BYTES),
        };
        let change = |held: usize| {
            let others = held.saturating_sub(own);
            let sum = others.saturating_add(bytes);
            (bytes <= own || others == 0 || sum <= limit).then_some(sum)
        };
        let held = &self.memory.held;
        let is_changed = held
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, change)
            .is_ok();
        if is_changed {
            self.bytes = bytes;
        }
        is_changed
    }

    /// Sets the size of the reservation without a limit, for output that must not be lost.
    pub(crate) fn force(&mut self, bytes: usize) {
        if bytes == self.bytes {
            return;
        }
        let held = &self.memory.held;
        match bytes.checked_sub(self.bytes) {
            Some(more) => held.fetch_add(more, Ordering::AcqRel),
            None => held.fetch_sub(self.bytes.saturating_sub(bytes), Ordering::AcqRel),
        };
        self.bytes = bytes;
    }

    /// Adds another reservation of the same memory to this reservation.
    pub(crate) fn absorb(&mut self, mut other: Self) {
        self.bytes = self.bytes.saturating_add(std::mem::take(&mut other.bytes));
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.memory.held.fetch_sub(self.bytes, Ordering::AcqRel);
        heap::freed(self.bytes);
    }
}

/// The error of a request that needs memory that other requests use.
pub(crate) fn exhausted(bytes: u64) -> Error {
    let message = format!(
        "the daemon has no room for the {bytes} bytes that this needs while others use its memory; nothing was done: try again"
    );
    Error::new(Kind::MemoryExhausted, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_limited_and_a_lone_use_is_not() {
        let memory = WorkingMemory::new(100);
        let mut one = memory.reservation();
        assert!(one.resize(1_000), "alone");
        assert!(memory.reserve(1).is_err());
        assert!(one.resize(60));
        let two = memory.reserve(40).unwrap();
        assert!(!one.resize(61), "the size stays");
        assert!(memory.reserve(1).is_err());
        assert!(one.resize(0) && one.resize(60));
        drop(two);
        assert!(one.resize(usize::MAX), "alone again");
        drop(one);
        assert_eq!(memory.held.load(Ordering::Acquire), 0);
    }

    #[test]
    fn notices_have_half_and_small_answers_have_more() {
        let memory = WorkingMemory::new(100);
        let mut one = memory.reserve(40).unwrap();
        let mut two = memory.reservation();
        assert!(!two.resize_within(11, Share::Notices));
        assert!(two.resize_within(10, Share::Notices));
        assert!(!two.resize(61));
        assert!(two.resize_within(SMALL_BYTES + 60, Share::Small));
        assert!(!two.resize_within(SMALL_BYTES + 61, Share::Small));
        two.force(SMALL_BYTES + 61);
        assert_eq!(two.bytes(), SMALL_BYTES + 61);
        two.force(1);
        one.absorb(two);
        assert_eq!(one.bytes(), 41);
        drop(one);
        assert_eq!(memory.held.load(Ordering::Acquire), 0);
    }

    #[test]
    fn the_error_can_be_tried_again() {
        let memory = WorkingMemory::new(1);
        let _held = memory.reserve(1).unwrap();
        assert_eq!(memory.reserve(1).unwrap_err().kind, Kind::MemoryExhausted);
    }
}
