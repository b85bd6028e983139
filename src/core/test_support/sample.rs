//! Samples of cases and of numbers, for this crate's tests and for `tests/it`.

/// The seed of a test: the number in `TREELINED_TEST_SEED`, else `default`. It is printed, so that a failure can be
/// reproduced.
pub fn seed(default: u64) -> u64 {
    let given = std::env::var("TREELINED_TEST_SEED").ok();
    let seed = given.map_or(default, |seed| {
        seed.parse().expect("TREELINED_TEST_SEED is a number")
    });
    eprintln!("TREELINED_TEST_SEED={seed}");
    seed
}

/// A default seed that is different in each run.
pub fn of_the_clock() -> u64 {
    let now = std::time::UNIX_EPOCH.elapsed().expect("the clock is set");
    u64::from(now.subsec_nanos())
}

/// Whether tests run all cases and the full numbers (`tests/long/run`), and not only the part that takes a few seconds.
pub fn is_long_run() -> bool {
    std::env::var_os("TREELINED_TEST_LONG").is_some()
}
