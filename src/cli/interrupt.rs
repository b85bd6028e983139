//! Ends a command at an interrupt, with exit code 130. While the pager shows text, interrupts are for the
//! pager.

use super::failure::INTERRUPTED;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use treelined_files::os::signal::EndSignal;

/// Whether the pager uses the terminal.
static IS_PAGED: AtomicBool = AtomicBool::new(false);

/// Waits for the interrupt in a thread. If the thread cannot be started, the signal itself ends the command.
pub(super) fn watch() {
    let wait = || {
        let Ok(runtime) = super::runtime::small_runtime() else {
            return;
        };
        runtime.block_on(async {
            let Ok(mut interrupt) = EndSignal::interrupt() else {
                return;
            };
            while interrupt.recv().await {
                if !IS_PAGED.load(Ordering::Acquire) {
                    std::process::exit(INTERRUPTED.into());
                }
            }
        });
    };
    let _unwatched = thread::Builder::new().name("interrupt".into()).spawn(wait);
}

/// Runs `shown`; meanwhile interrupts are for the pager.
pub(super) fn leave_to_pager<T>(shown: impl FnOnce() -> T) -> T {
    IS_PAGED.store(true, Ordering::Release);
    let result = shown();
    IS_PAGED.store(false, Ordering::Release);
    result
}
