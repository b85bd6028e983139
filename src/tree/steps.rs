//! Counts the steps of whatever could take more than one per line, so that tests can prove that a file
//! twice as long takes twice as many. Counts nothing outside tests.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// So many steps are made.
#[inline]
pub fn count(steps: usize) {
    #[cfg(test)]
    STEPS.with(|made| made.set(made.get() + steps as u64));
    #[cfg(not(test))]
    let _not_counted = steps;
}

/// How many steps `work` makes on this thread.
#[cfg(test)]
pub fn of(work: impl FnOnce()) -> u64 {
    let before = STEPS.with(std::cell::Cell::get);
    work();
    STEPS.with(std::cell::Cell::get) - before
}
