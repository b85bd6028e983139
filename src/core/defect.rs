//! Defects that `tests/simulation` puts into the program, to see whether its checks notice them.
//!
//! A defect is named by the fact that it breaks (session-file.md §3.7). Without the feature `simulation` there is none, and
//! the compiler leaves its code out.

#[cfg(feature = "simulation")]
use std::cell::Cell;

#[cfg(feature = "simulation")]
thread_local! {
    static BROKEN: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Gives the code that runs on this thread the defect that breaks this fact.
#[cfg(feature = "simulation")]
pub fn put(fact: Option<&'static str>) {
    BROKEN.set(fact);
}

/// The fact that the defect of this thread breaks.
#[cfg(feature = "simulation")]
pub fn broken() -> Option<&'static str> {
    BROKEN.get()
}

/// Whether the code that runs on this thread has the defect that breaks this fact.
#[cfg(feature = "simulation")]
pub fn breaks(fact: &str) -> bool {
    broken() == Some(fact)
}

/// Whether the code has the defect that breaks this fact.
#[cfg(not(feature = "simulation"))]
#[inline]
pub const fn breaks(_fact: &str) -> bool {
    false
}
