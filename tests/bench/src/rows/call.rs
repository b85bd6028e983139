//! The start of the program, and calls that do nothing.

use crate::Bench;
use crate::daemon::{self, Daemon, StartOptions};
use crate::machine;
use crate::table::{Outcome, Row, Table, Target, Unit, median, quantile};
use crate::world::World;
use anyhow::{Context, Result};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

const SPAWNS: usize = 15;
pub const CALLS: usize = 3_000;
const PIPELINED: u64 = 300_000;

/// The time from the start of the process until its first answer, to a plain call and to `initialize`.
pub fn start(bench: &Bench, table: &mut Table) -> Result<()> {
    let (mut plain, mut greeted) = (Vec::new(), Vec::new());
    let (mut limit, mut pi, mut memory) = (Vec::new(), Outcome::default(), 0f64);
    for _ in 0..SPAWNS {
        let world = World::new(bench)?;
        let began = Instant::now();
        let mut daemon = Daemon::start(bench, &world)?;
        daemon.timed("list_sessions", "{}")?;
        plain.push(began.elapsed().as_secs_f64());
        memory = memory.max(daemon.peak_memory());
        let began = Instant::now();
        Daemon::start(bench, &world)?.settle()?;
        greeted.push(began.elapsed().as_secs_f64());
        limit.push(machine::spawn_true()?);
        start_pi(bench, &world, &mut pi)?;
    }
    let least = quantile(&plain, 0.0).map_or_else(String::new, |least| Unit::Seconds.show(least));
    table.push(
        Row::new("start → first answer", Unit::Seconds, plain)
            .note(format!("least {least}"))
            .pi(pi)
            .limit("/bin/true", limit.clone())
            .target(Target::OfLimit(2.0, 2e-3))
            .target(Target::ThanPi(100.0))
            .memory(memory),
    );
    table.push(
        Row::new("start → answer to initialize", Unit::Seconds, greeted)
            .limit("/bin/true", limit)
            .target(Target::OfLimit(2.0, 2e-3)),
    );
    Ok(())
}

/// Starts the program of pi itself: `pi --mode rpc`.
fn start_pi(bench: &Bench, world: &World, outcome: &mut Outcome) -> Result<()> {
    let Some(install) = &bench.pi else {
        outcome.is_missing = true;
        return Ok(());
    };
    let began = Instant::now();
    let mut child = Command::new(&install.runtime)
        .arg(&install.program)
        .args(["--mode", "rpc", "--no-session", "--offline"])
        .env("HOME", world.home())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut input = child.stdin.take().context("its input")?;
    input.write_all(b"{\"id\":\"1\",\"type\":\"get_state\"}\n")?;
    let mut line = String::new();
    let read = BufReader::new(child.stdout.take().context("its output")?).read_line(&mut line)?;
    if read > 0 {
        outcome.values.push(began.elapsed().as_secs_f64());
        outcome.memory = Some(daemon::peak_memory(child.id()));
    } else {
        outcome.failure = Some("no answer".to_owned());
    }
    let _dead = child.kill();
    child.wait()?;
    Ok(())
}

/// `get_leaf` of an empty session in memory.
pub fn round_trip(bench: &Bench, table: &mut Table) -> Result<()> {
    let (mut ours, mut limit) = (Vec::new(), Vec::new());
    daemon::pinned(|| {
        for _ in 0..bench.rounds {
            let world = World::new(bench)?;
            let how = StartOptions {
                pinned: true,
                ..StartOptions::default()
            };
            let mut daemon = Daemon::start_as(bench, &world, how)?;
            ours.extend(median(&trivial_calls(&mut daemon)?));
            limit.extend(median(&machine::round_trips(CALLS)?));
        }
        Ok(())
    })?;
    table.push(
        Row::new(
            "trivial call, one after another, one core",
            Unit::Seconds,
            ours,
        )
        .limit("bare line server", limit)
        .target(Target::OfLimit(2.5, 0.0)),
    );

    let mut rates = Vec::new();
    let mut memory: f64 = 0.0;
    for _ in 0..bench.rounds {
        let world = World::new(bench)?;
        let mut daemon = Daemon::start(bench, &world)?;
        daemon.call("create_session", "{\"ephemeral\":true}")?;
        rates.push(pipelined(&mut daemon, PIPELINED, |_| {
            ("get_leaf", "{}".to_owned())
        })?);
        memory = memory.max(daemon.peak_memory());
    }
    table.push(
        Row::new("trivial call, pipelined", Unit::PerSecond, rates)
            .target(Target::AtLeast(300_000.0))
            .memory(memory),
    );
    Ok(())
}

pub fn trivial_calls(daemon: &mut Daemon) -> Result<Vec<f64>> {
    daemon.call("create_session", "{\"ephemeral\":true}")?;
    (0..CALLS).map(|_| daemon.timed("get_leaf", "{}")).collect()
}

/// Calls per second with a writer that does not wait for answers.
pub fn pipelined(
    daemon: &mut Daemon,
    count: u64,
    call: impl Fn(u64) -> (&'static str, String),
) -> Result<f64> {
    let first = daemon.reserve_ids(count);
    let mut requests = Vec::new();
    for number in 0..count {
        let (method, params) = call(number);
        requests.extend_from_slice(daemon::request(first + number, method, &params).as_bytes());
    }
    let mut input = daemon.take_input()?;
    let began = Instant::now();
    let writer = std::thread::spawn(move || input.write_all(&requests).map(|()| input));
    daemon.wait_for_responses(count)?;
    let took = began.elapsed().as_secs_f64();
    let input = writer
        .join()
        .map_err(|_| anyhow::anyhow!("the writer panicked"))??;
    daemon.give_input(input);
    Ok(count as f64 / took)
}

/// Calls per second, while `window` calls are always unanswered.
pub fn in_flight(daemon: &mut Daemon, window: u64, count: u64, params: &str) -> Result<f64> {
    let began = Instant::now();
    for _ in 0..window {
        daemon.send("append_message", params)?;
    }
    for number in 0..count {
        daemon.wait_for_responses(1)?;
        if number + window < count {
            daemon.send("append_message", params)?;
        }
    }
    Ok(count as f64 / began.elapsed().as_secs_f64())
}
