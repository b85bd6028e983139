//! A hundred open sessions without requests.

use crate::Bench;
use crate::daemon::{self, Daemon};
use crate::table::{Row, Table, Target, Unit};
use crate::world::World;
use anyhow::Result;
use std::fs;
use std::time::Duration;

const SESSIONS: u32 = 100;
/// How long to wait until all work is done, and how long to measure.
const WHILE: Duration = Duration::from_secs(3);

pub fn idle(bench: &Bench, table: &mut Table) -> Result<()> {
    let sessions = bench.library.many(SESSIONS)?;
    let world = World::new(bench)?;
    let mut daemon = Daemon::start(bench, &world)?;
    for session in &sessions {
        daemon.open(&world.link(session)?)?;
    }
    std::thread::sleep(WHILE);
    let before = switches(daemon.pid())?;
    std::thread::sleep(WHILE);
    let wakeups = switches(daemon.pid())? - before;
    let memory = daemon::memory(daemon.pid());
    let what = format!("{SESSIONS} sessions open, idle");
    table.push(
        Row::new(
            format!("{what}: resident memory"),
            Unit::Bytes,
            vec![memory],
        )
        .target(Target::AtMost(60e6)),
    );
    table.push(
        Row::new(
            format!("{what}: wake-ups in {} s", WHILE.as_secs()),
            Unit::Count,
            vec![wakeups],
        )
        .target(Target::AtMost(0.0)),
    );
    Ok(())
}

/// The context switches of all threads since they began.
fn switches(pid: u32) -> Result<f64> {
    let mut sum = 0.0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let status = fs::read_to_string(thread?.path().join("status"))?;
        let counts = status.lines().filter_map(|line| {
            let (name, count) = line.split_once(':')?;
            name.ends_with("voluntary_ctxt_switches")
                .then(|| count.trim().parse::<f64>().ok())?
        });
        sum += counts.sum::<f64>();
    }
    Ok(sum)
}
