//! How long the calls of a thread wait for servers: until their own deadlines, or until a moment that the caller sets.
//!
//! A daemon with `offline = "queue"` answers an append soon, whatever the network does (schema/fleet.md "Offline"). The
//! append holds the lock of the file, so all calls of servers that it makes must end at the same moment.

use std::cell::Cell;
use std::time::Instant;
use treelined_core::error::{Error, Kind};

thread_local! {
    static UNTIL: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Sets the earlier moment again when it is dropped.
struct Earlier(Option<Instant>);

impl Drop for Earlier {
    fn drop(&mut self) {
        UNTIL.set(self.0);
    }
}

/// Runs work whose calls of servers end at this moment. With `None`, they end at their own deadlines.
pub(crate) fn within<T>(until: Option<Instant>, work: impl FnOnce() -> T) -> T {
    let _earlier = Earlier(UNTIL.replace(until));
    work()
}

/// The moment at which the calls of this thread end.
pub(crate) fn until() -> Option<Instant> {
    UNTIL.get()
}

/// Whether this moment has passed.
pub(crate) fn is_over(until: Option<Instant>) -> bool {
    until.is_some_and(|until| Instant::now() >= until)
}

/// The error of a call that has ended at the moment that the caller set.
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
