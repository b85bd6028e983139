//! Gives free memory back to the system. Otherwise the allocator keeps the memory of large operations.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// If fewer bytes than this are freed, the allocator keeps them.
pub const WORTHWHILE: usize = 4 << 20;
/// The wait before memory is given back. An operation frees its memory in several steps. The memory of all steps is
/// given back together.
const PAUSE: Duration = Duration::from_millis(250);
/// The wait before memory is given back a second time. On a busy machine an operation may free its last memory this
/// late, in pieces that are smaller than [`WORTHWHILE`].
const REST: Duration = Duration::from_secs(2);

static IS_PLANNED: AtomicBool = AtomicBool::new(false);

/// Plans to give free memory back, if `bytes` were freed and are at least [`WORTHWHILE`]. Does not wait.
pub fn freed(bytes: usize) {
    if bytes < WORTHWHILE || IS_PLANNED.swap(true, Ordering::AcqRel) {
        return;
    }
    let give_back = || {
        thread::sleep(PAUSE);
        IS_PLANNED.store(false, Ordering::Release);
        give_back();
        thread::sleep(REST);
        give_back();
    };
    let thread = thread::Builder::new().name("memory".to_owned());
    if thread.spawn(give_back).is_err() {
        IS_PLANNED.store(false, Ordering::Release);
    }
}

/// The allocators of other systems give memory back themselves.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code, reason = "the call has no preconditions")]
fn give_back() {
    let _given_any = unsafe { libc::malloc_trim(0) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn give_back() {}
