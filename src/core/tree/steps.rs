//! Counts the steps of loops that could take more than one step per line. With the count, tests show
//! that a file of twice the length takes twice as many steps. Outside of tests nothing is counted.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Adds to the count.
#[inline]
pub(super) fn count(steps: usize) {
    #[cfg(test)]
    STEPS.with(|made| made.set(made.get() + steps as u64));
    #[cfg(not(test))]
    let _not_counted = steps;
}

/// The number of steps that `work` takes on this thread.
#[cfg(test)]
pub(super) fn of(work: impl FnOnce()) -> u64 {
    let before = STEPS.with(std::cell::Cell::get);
    work();
    STEPS.with(std::cell::Cell::get) - before
}
