//! Tests that a task takes linear time, on a machine that other programs use too.

use std::time::{Duration, Instant};
use std::{fs, thread};

/// The most tries. A try measures the time of each size.
const TRIES: u32 = 10;

/// Checks that a task takes linear time. `task` gets one of the two `sizes`, runs the task with this size, and returns
/// the time of the task (see [`processor_time`]).
///
/// The limit is in the middle between linear time and quadratic time: a task of 32 times the size may take up to 181
/// times the time. The fastest try of each size counts, since another program may slow down a processor for a while.
///
/// # Panics
///
/// If no try is linear.
#[track_caller]
pub fn check_linear(what: &str, sizes: [usize; 2], mut task: impl FnMut(usize) -> Duration) {
    let growth = sizes[1] as f64 / sizes[0] as f64;
    let most = growth.powf(1.5);
    let mut fastest = [Duration::MAX; 2];
    for number in 0..TRIES {
        thread::sleep(Duration::from_millis(50) * number);
        for (size, fastest) in sizes.into_iter().zip(&mut fastest) {
            *fastest = task(size).min(*fastest);
        }
        if fastest[1].as_secs_f64() < most * fastest[0].as_secs_f64() {
            return;
        }
    }
    panic!("{what}: sizes {sizes:?} take {fastest:?}, not linear time");
}

/// The time that a processor spends on `task` in this thread. A clock would also count the time in which the thread
/// waits for a processor. The clock is used only on a system that does not report the processor time of a thread.
pub fn processor_time<T>(task: impl FnOnce() -> T) -> Duration {
    let (clock, spent) = (Instant::now(), spent());
    drop(task());
    match (spent, self::spent()) {
        (Some(before), Some(after)) => after.saturating_sub(before),
        _ => clock.elapsed(),
    }
}

/// The processor time of this thread so far.
fn spent() -> Option<Duration> {
    // Linux updates the number when the thread yields. Without this call, the number was once the number of the last
    // tick, up to 4 ms ago, so a short task took no time.
    thread::yield_now();
    let stat = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    stat.split(' ')
        .next()?
        .parse()
        .ok()
        .map(Duration::from_nanos)
}

#[test]
#[should_panic(expected = "not linear time")]
fn quadratic_time_is_found() {
    check_linear("squares", [10, 320], |size| {
        Duration::from_nanos((size * size) as u64)
    });
}

#[test]
fn linear_time_passes_beside_a_slow_try() {
    let mut tries = 0;
    check_linear("lines", [10, 320], |size| {
        tries += 1;
        let slower = if tries < 4 { 40 } else { 1 };
        Duration::from_nanos(size as u64 * if size > 10 { slower } else { 1 })
    });
    assert_eq!(tries, 4);
}
