//! Samples, for tests that would take minutes with every case.

/// The seed of a sample, which is another one in each run: the number in `TREELINED_TEST_SEED`, else one of the clock. It
/// is printed, so that a failure can be seen again.
pub(crate) fn seed() -> u64 {
    let seed = match std::env::var("TREELINED_TEST_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64,
    };
    eprintln!("TREELINED_TEST_SEED={seed}");
    seed
}

/// Whether tests take every case, as in `tests/long/run`.
pub(crate) fn is_whole() -> bool {
    std::env::var_os("TREELINED_TEST_LONG").is_some()
}
