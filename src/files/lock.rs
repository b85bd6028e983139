//! Mutexes without poisoning.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Locks `mutex`, even if a thread has panicked while it held the lock. This is safe, since no value of this crate is
/// half changed at a point where a panic may happen. It is necessary, since one failed request must not make all later
/// requests fail.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for `changed` without holding the lock, and then takes the lock again.
pub(crate) fn wait<'m, T>(changed: &Condvar, guard: MutexGuard<'m, T>) -> MutexGuard<'m, T> {
    changed.wait(guard).unwrap_or_else(PoisonError::into_inner)
}
