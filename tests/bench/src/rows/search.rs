//! `search` over a whole directory: by scanning the files, beside ripgrep, and with the index.

use crate::Bench;
use crate::daemon::{self, Daemon, StartOptions};
use crate::machine;
use crate::table::{Row, Table, Target, Unit, median};
use crate::world::World;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A word that one entry has.
const NEEDLE: &str = "findmehere42";
const RARE: &str = r#"{"query":"findmehere42"}"#;
const COMMON: &str = r#"{"query":"error file"}"#;
/// The session with the word.
const SESSION: &str = r#"{"type":"session","version":3,"id":"needle","timestamp":"2026-01-02T00:00:00.000Z","cwd":"/bench"}
{"type":"message","id":"n1","parentId":null,"timestamp":"2026-01-02T00:00:00.000Z","message":{"role":"user","content":"where is findMeHere42"}}
"#;
/// The time that making the index may take.
const PATIENCE: Duration = Duration::from_secs(1800);
/// The longest time between two checks whether the index is complete.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const WITH_INDEX: StartOptions = StartOptions {
    durability: "os",
    pinned: false,
    index_from: Some(0),
};

pub fn search(bench: &Bench, table: &mut Table) -> Result<()> {
    for count in bench.counts.iter().copied() {
        let sessions = bench.library.many(count)?;
        let bytes: u64 = sessions.iter().map(|session| session.facts.bytes).sum();
        let what = format!("search, {count} sessions, {} MB", bytes / 1_000_000);
        let world = World::new(bench)?;
        for session in &sessions {
            world.link(session)?;
        }
        add_needle(&world)?;
        let paths = || sessions.iter().map(|session| session.path.as_path());
        machine::utf8_pass(paths())?;
        let (mut rare, mut common) = (Vec::new(), Vec::new());
        let (mut read, mut ripgrep, mut memory) = (Vec::new(), Vec::new(), 0f64);
        for _ in 0..bench.rounds {
            let how = StartOptions {
                index_from: Some(u64::MAX),
                ..StartOptions::default()
            };
            let mut daemon = Daemon::start_as(bench, &world, how)?;
            daemon.settle()?;
            rare.push(found_one(&mut daemon)?);
            common.push(daemon.timed("search", COMMON)?);
            memory = memory.max(daemon.peak_memory());
            daemon.stop()?;
            read.push(machine::utf8_pass(paths())?);
            ripgrep.extend(by_ripgrep(&world.project())?);
        }
        let mut row = Row::new(format!("{what}: a rare word"), Unit::Seconds, rare)
            .limit("read + UTF-8", read)
            .memory(memory);
        if count <= 2_000 {
            row = row.target(Target::AtMost(250e-3));
        }
        if let Some(ripgrep) = median(&ripgrep) {
            row = row
                .target(Target::AtMost(ripgrep))
                .note("the second target is `rg --json` and a decoder");
        }
        table.push(row);
        table.push(Row::new(
            format!("{what}: common words"),
            Unit::Seconds,
            common,
        ));
        indexed(bench, table, &world, &what, bytes)?;
    }
    Ok(())
}

/// The time of a search that finds one entry.
pub(super) fn found_one(daemon: &mut Daemon) -> Result<f64> {
    let time = daemon.timed("search", RARE)?;
    let response: Value = serde_json::from_slice(daemon.response())?;
    ensure!(response["result"]["totals"]["entries"] == 1, "{response}");
    Ok(time)
}

/// The time that `rg --json` takes, including decoding its output; `None` without ripgrep.
fn by_ripgrep(folder: &Path) -> Result<Option<f64>> {
    let started = Instant::now();
    let mut rg = Command::new("rg");
    rg.args(["--json", "--no-ignore", "--ignore-case", NEEDLE])
        .arg(folder);
    let Ok(mut child) = rg.stdout(Stdio::piped()).spawn() else {
        return Ok(None);
    };
    let mut entries = 0;
    for line in BufReader::new(child.stdout.take().context("its output")?).lines() {
        let message: Value = serde_json::from_str(&line?)?;
        if let Some(line) = message["data"]["lines"]["text"].as_str() {
            let _entry: Value = serde_json::from_str(line)?;
            entries += 1;
        }
    }
    child.wait()?;
    ensure!(entries == 1, "ripgrep finds {entries}");
    Ok(Some(started.elapsed().as_secs_f64()))
}

/// Measures how the index is made, its size, and a search with it in a new process.
fn indexed(bench: &Bench, table: &mut Table, world: &World, what: &str, bytes: u64) -> Result<()> {
    make_index(bench, table, world, what, bytes)?;
    let first = first_pages(bench, world, found_one)?;
    let page = Row::new(
        format!("{what}: a rare word with the index"),
        Unit::Seconds,
        first,
    );
    table.push(page.target(Target::AtMost(100e-3)));
    Ok(())
}

/// Adds the session with the rare word.
pub(super) fn add_needle(world: &World) -> Result<()> {
    fs::write(world.project().join("needle.jsonl"), SESSION)?;
    Ok(())
}

/// Makes the index of all sessions, which have `bytes` bytes. Adds rows for its speed and size.
pub(super) fn make_index(
    bench: &Bench,
    table: &mut Table,
    world: &World,
    what: &str,
    bytes: u64,
) -> Result<()> {
    let mut daemon = Daemon::start_as(bench, world, WITH_INDEX)?;
    daemon.settle()?;
    let started = Instant::now();
    daemon.timed("search", RARE)?;
    let scanned = loop {
        // Each search scans the bytes that are not in the index yet, on all cores. This slows down the making of the
        // index, so the searches are rare.
        let pause = started.elapsed() / 16;
        std::thread::sleep(pause.clamp(SHORTEST_PAUSE, LONGEST_PAUSE));
        let scanned = scanned_bytes(&mut daemon)?;
        if scanned < bytes / 1000 || started.elapsed() > PATIENCE {
            break scanned;
        }
    };
    let speed = (bytes - scanned) as f64 / started.elapsed().as_secs_f64();
    let memory = daemon::peak_memory(daemon.pid());
    daemon.stop()?;
    let made = Row::new(
        format!("{what}: making the index"),
        Unit::BytesPerSecond,
        vec![speed],
    );
    table.push(made.target(Target::AtLeast(15e6)).memory(memory));
    let size = index_bytes(&world.sessions().join(".cache"))?;
    let size = Row::new(
        format!("{what}: size of the index"),
        Unit::Bytes,
        vec![size],
    );
    table.push(size.target(Target::AtMost(bytes as f64 / 2.0)));
    Ok(())
}

/// The times of first searches with the index, each in a new process.
pub(super) fn first_pages(
    bench: &Bench,
    world: &World,
    mut search: impl FnMut(&mut Daemon) -> Result<f64>,
) -> Result<Vec<f64>> {
    let mut first = Vec::new();
    for _ in 0..bench.rounds {
        let mut daemon = Daemon::start_as(bench, world, WITH_INDEX)?;
        daemon.settle()?;
        first.push(search(&mut daemon)?);
        daemon.stop()?;
    }
    Ok(first)
}

fn scanned_bytes(daemon: &mut Daemon) -> Result<u64> {
    daemon.timed("search", RARE)?;
    let response: Value = serde_json::from_slice(daemon.response())?;
    response["result"]["totals"]["scannedBytes"]
        .as_u64()
        .context("no totals")
}

fn index_bytes(cache: &Path) -> Result<f64> {
    let mut bytes = 0;
    for file in fs::read_dir(cache)? {
        let file = file?;
        if file.file_name().to_string_lossy().starts_with("search") {
            bytes += file.metadata()?.len();
        }
    }
    Ok(bytes as f64)
}
