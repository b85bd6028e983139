//! Appends: within the process, over the pipe, many at a time, and synced.

use super::{call, size};
use crate::Bench;
use crate::daemon::{self, Daemon, StartOptions};
use crate::machine;
use crate::table::{Outcome, Row, Table, Target, Unit, median, quantile};
use crate::world::World;
use anyhow::{Context, Result};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;
use treelined_bench::library::Shape;
use treelined_core::durability::Durability;
use treelined_core::flow::append::NewEntry;
use treelined_core::flow::append::plan as plan_append;
use treelined_files::cancel::Cancel;
use treelined_files::clock::SystemSource;
use treelined_files::log::Log;
use treelined_files::os::file::Location;
use treelined_files::session::Session;
use treelined_files::session::SessionState;

/// The size of a message's text in bytes. Its line is near the median of all entries.
const TEXT_BYTES: usize = 600;
const APPENDS: usize = 10_000;
const CALLS: usize = 2_000;
const PIPELINED: u64 = 50_000;
const SYNCED: usize = 100;
const IN_FLIGHT: u64 = 64;

fn text() -> String {
    "The parser fails because the cache is stale. ".repeat(TEXT_BYTES / 45)
}

fn message() -> String {
    json!({ "role": "user", "content": [{ "type": "text", "text": text() }], "timestamp": 0 })
        .to_string()
}

fn params() -> String {
    format!("{{\"message\":{}}}", message())
}

/// A line with about the size that the line of such a message has in the file.
fn line() -> Vec<u8> {
    let line = format!(
        "{{\"type\":\"message\",\"id\":\"01234567\",\"parentId\":\"01234567\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"message\":{}}}\n",
        message()
    );
    line.into_bytes()
}

pub fn append(bench: &Bench, table: &mut Table) -> Result<()> {
    for n in bench.sizes.iter().copied() {
        within(bench, table, n)?;
    }
    over_the_pipe(bench, table)?;
    pipelined(bench, table)?;
    synced(bench, table)
}

/// The time until a message is a line in the file and an entry in the tree, without JSON-RPC. In the same way, pi's
/// `appendMessage` is measured without its RPC mode. Each measurement has its own process.
fn within(bench: &Bench, table: &mut Table, n: u32) -> Result<()> {
    let session = bench.library.session(Shape::Conversation, n)?;
    let (mut p50, mut p99) = (Vec::new(), Vec::new());
    let (mut pi, mut pi_p99) = (Outcome::default(), Outcome::default());
    let (mut write, mut write_p99) = (Vec::new(), Vec::new());
    for _ in 0..bench.rounds_for(n) {
        let world = World::new(bench)?;
        let path = world.copy(&session)?;
        let (half, most) = own_appends(&path)?;
        p50.push(half);
        p99.push(most);
        std::fs::copy(&session.path, &path)?;
        pi.measure(bench.pi.as_ref(), |pi| {
            pi.open(&path)?;
            let answer = pi.ask(&json!({ "op": "append", "count": APPENDS, "text": text() }))?;
            pi_p99.values.extend(answer["p99"].as_f64());
            answer["seconds"].as_f64().context("no seconds")
        })?;
        let writes = machine::writes(&world.project().join("bare"), &line(), APPENDS)?;
        write.extend(median(&writes));
        write_p99.extend(quantile(&writes, 0.99));
    }
    pi_p99.is_missing = pi.is_missing;
    let size = size(n);
    table.push(
        Row::new(
            format!("append to {size} in process, p50"),
            Unit::Seconds,
            p50,
        )
        .pi(pi)
        .limit("write", write)
        .target(Target::AtMost(5e-6)),
    );
    table.push(
        Row::new(
            format!("append to {size} in process, p99"),
            Unit::Seconds,
            p99,
        )
        .pi(pi_p99)
        .limit("write", write_p99)
        .target(Target::AtMost(20e-6)),
    );
    Ok(())
}

/// Appends in a process that has done nothing else.
fn own_appends(path: &Path) -> Result<(f64, f64)> {
    let ran = Command::new(std::env::current_exe()?)
        .arg("append")
        .arg(path)
        .output()?;
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    let mut numbers = said.split_whitespace().filter_map(|word| word.parse().ok());
    let both = numbers.next().zip(numbers.next());
    both.with_context(|| String::from_utf8_lossy(&ran.stderr).into_owned())
}

/// The mode `append` of this program: it appends to the session and prints the median and the 99th
/// percentile.
pub fn in_process(mut arguments: impl Iterator<Item = String>) -> Result<()> {
    let path = PathBuf::from(arguments.next().context("append takes a path")?);
    let opened = Log::open(Location::of_path(&path)?)?;
    let session = Session::new(opened, false, Durability::Os);
    let message = message();
    let cancel = Cancel::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    let mut times = Vec::with_capacity(APPENDS);
    for _ in 0..APPENDS {
        let began = Instant::now();
        runtime.block_on(append_one(&session, &cancel, &message))?;
        times.push(began.elapsed().as_secs_f64());
    }
    let p99 = quantile(&times, 0.99);
    println!(
        "{} {}",
        median(&times).context("no times")?,
        p99.context("no times")?
    );
    Ok(())
}

async fn append_one(session: &Arc<Session>, cancel: &Cancel, message: &str) -> Result<()> {
    let entries = [NewEntry::message(message.as_bytes())?];
    let turn = session.guard(Instant::now(), ())?;
    let plan = move |core: &SessionState| {
        plan_append(&core.tree, &SystemSource, &entries, &|node| {
            core.entry(node)
        })
    };
    let (_turn, _changes, committed) = turn.commit(cancel, plan).await;
    committed?;
    Ok(())
}

fn over_the_pipe(bench: &Bench, table: &mut Table) -> Result<()> {
    let session = bench.library.session(Shape::Conversation, 10_000)?;
    let (mut ours, mut trivial) = (Vec::new(), Vec::new());
    daemon::pinned(|| {
        for _ in 0..bench.rounds {
            let world = World::new(bench)?;
            let how = StartOptions {
                pinned: true,
                ..StartOptions::default()
            };
            trivial.extend(median(&call::trivial_calls(&mut Daemon::start_as(
                bench, &world, how,
            )?)?));
            let mut daemon = Daemon::start_as(bench, &world, how)?;
            daemon.open(&world.copy(&session)?)?;
            let params = params();
            let times: Result<Vec<f64>> = (0..CALLS)
                .map(|_| daemon.timed("append_message", &params))
                .collect();
            ours.extend(median(&times?));
        }
        Ok(())
    })?;
    table.push(
        Row::new("append over the pipe, one core", Unit::Seconds, ours)
            .limit("our trivial call", trivial)
            .target(Target::OfLimit(2.0, 0.0)),
    );
    Ok(())
}

fn pipelined(bench: &Bench, table: &mut Table) -> Result<()> {
    let session = bench.library.session(Shape::Conversation, 10_000)?;
    let (mut rates, mut write, mut memory) = (Vec::new(), Vec::new(), 0f64);
    for _ in 0..bench.rounds {
        let world = World::new(bench)?;
        let mut daemon = Daemon::start(bench, &world)?;
        daemon.open(&world.copy(&session)?)?;
        rates.push(call::pipelined(&mut daemon, PIPELINED, |_| {
            ("append_message", params())
        })?);
        memory = memory.max(daemon.peak_memory());
        let writes = machine::writes(&world.project().join("bare"), &line(), PIPELINED as usize)?;
        write.push(PIPELINED as f64 / writes.iter().sum::<f64>());
    }
    table.push(
        Row::new("append over the pipe, pipelined", Unit::PerSecond, rates)
            .limit("write each", write)
            .target(Target::AtLeast(80_000.0))
            .memory(memory),
    );
    Ok(())
}

fn synced(bench: &Bench, table: &mut Table) -> Result<()> {
    let session = bench.library.session(Shape::Conversation, 1_000)?;
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    let (mut together, mut grouped) = (Vec::new(), Vec::new());
    for _ in 0..bench.rounds {
        let world = World::new(bench)?;
        let how = StartOptions {
            durability: "always",
            ..StartOptions::default()
        };
        let mut daemon = Daemon::start_as(bench, &world, how)?;
        daemon.open(&world.copy(&session)?)?;
        let (params, line) = (params(), line());
        let beside = world.project().join("bare");
        // Both are measured in turns, so that they find the disk in the same state.
        let (mut our_times, mut bare_times) = (Vec::new(), Vec::new());
        for _ in 0..SYNCED / 10 {
            for _ in 0..10 {
                our_times.push(daemon.timed("append_message", &params)?);
            }
            bare_times.extend(machine::synced_writes(&beside, &line, 10)?);
        }
        ours.extend(median(&our_times));
        let single = median(&bare_times).context("no times")?;
        bare.push(single);
        let rate = call::in_flight(&mut daemon, IN_FLIGHT, SYNCED as u64 * IN_FLIGHT, &params)?;
        together.push(rate);
        grouped.push(machine::synced_together(
            &beside,
            &line,
            IN_FLIGHT as usize,
            SYNCED,
        )?);
    }
    let one_by_one = 1.0 / median(&bare).context("no times")?;
    table.push(
        Row::new("append, always", Unit::Seconds, ours)
            .limit("write + fdatasync", bare)
            .target(Target::OfLimit(1.3, 0.0)),
    );
    table.push(
        Row::new("append, always, 64 in flight", Unit::PerSecond, together)
            .limit("64 writes, one fdatasync", grouped)
            .target(Target::AtLeast(20.0 * one_by_one)),
    );
    Ok(())
}
