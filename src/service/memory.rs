//! The memory of arriving frames and of unfinished summaries, for all connections together.
//!
//! Memory is reserved before it is used, and a request never waits for it. A request that waited would keep the memory
//! for which others wait. If nothing else is reserved, a reservation may be larger than the limit, so that the largest
//! frame and the longest branch are possible.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use treelined_core::error::{Error, Kind, Result};

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

    /// Reserves these bytes, or fails with `overloaded`.
    pub(crate) fn reserve(self: &Arc<Self>, bytes: u64) -> Result<Reservation> {
        let mut reservation = self.reservation();
        match reservation.resize(usize::try_from(bytes).unwrap_or(usize::MAX)) {
            true => Ok(reservation),
            false => Err(exhausted(bytes)),
        }
    }
}

impl Reservation {
    /// Changes the size of the reservation. False if there is not enough memory; then the size does not change.
    #[must_use]
    pub fn resize(&mut self, bytes: usize) -> bool {
        let (own, limit) = (self.bytes, self.memory.limit);
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
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.memory.held.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

/// The error of a request that needs memory while others use it.
pub(crate) fn exhausted(bytes: u64) -> Error {
    let message = format!(
        "the daemon has no room for the {bytes} bytes that this needs while others use its memory; nothing was done: try again"
    );
    Error::new(Kind::Overloaded, message)
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
    fn the_error_can_be_tried_again() {
        let memory = WorkingMemory::new(1);
        let _held = memory.reserve(1).unwrap();
        assert_eq!(memory.reserve(1).unwrap_err().kind, Kind::Overloaded);
    }
}
