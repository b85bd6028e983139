//! Defects that `tests/simulation` puts into the program, to see whether its checks notice them.
//!
//! The name of a defect is the fact that the defect breaks (session-file.md §3.7). Without the feature `simulation`
//! there are no defects, and the compiler leaves out their code.

#[cfg(feature = "simulation")]
use std::cell::Cell;

#[cfg(feature = "simulation")]
thread_local! {
    static BROKEN: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Puts the defect that breaks this fact into the code that runs on this thread. `None` removes the defect.
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
