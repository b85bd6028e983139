//! How long the calls of a thread wait for servers: until their own deadlines, or until a moment that the caller sets.
//!
//! An append of a daemon with `offline = "queue"` is answered soon, whatever the network does (schema/fleet.md
//! "Offline"). It holds the lock of the file, so that everything that it asks of a server ends at one moment.

use std::cell::Cell;
use std::time::Instant;
use treelined_core::error::{Error, Kind};

thread_local! {
    static UNTIL: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Sets back what was set before.
struct Earlier(Option<Instant>);

impl Drop for Earlier {
    fn drop(&mut self) {
        UNTIL.set(self.0);
    }
}

/// Works with calls that end at this moment; `None` leaves them their own deadlines.
pub(crate) fn within<T>(until: Option<Instant>, work: impl FnOnce() -> T) -> T {
    let _earlier = Earlier(UNTIL.replace(until));
    work()
}

/// The moment at which calls of this thread end.
pub(crate) fn until() -> Option<Instant> {
    UNTIL.get()
}

/// Whether this moment is over.
pub(crate) fn is_over(until: Option<Instant>) -> bool {
    until.is_some_and(|until| Instant::now() >= until)
}

/// The error of a call that ended at that moment.
pub(crate) fn over() -> Error {
    Error::new(Kind::LogUnavailable, "the servers did not answer soon")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_moment_holds_for_the_work_alone() {
        let now = Instant::now();
        within(Some(now), || {
            assert_eq!(until(), Some(now));
            within(None, || assert_eq!(until(), None));
            assert!(is_over(until()));
        });
        assert_eq!(until(), None);
        assert!(!is_over(until()));
    }
}
