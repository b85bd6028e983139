//! Gives free memory back to the system. The allocator keeps the memory of large operations otherwise.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Freed memory of fewer bytes is left to the allocator.
pub const WORTHWHILE: usize = 4 << 20;
/// More memory is freed soon after the first, so it is given back together.
const PAUSE: Duration = Duration::from_millis(250);
/// On a busy machine the rest of it, in pieces that are not worthwhile alone, is freed up to this much later.
const REST: Duration = Duration::from_secs(2);

static IS_PLANNED: AtomicBool = AtomicBool::new(false);

/// Plans to give free memory back, if `bytes` were freed and are worth it. Does not wait.
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
