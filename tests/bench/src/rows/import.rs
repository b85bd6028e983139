//! `import_sessions` of the conversations that Claude Code writes in a year: a first import, and one that finds nothing
//! new.

use crate::Bench;
use crate::daemon::Daemon;
use crate::machine;
use crate::table::{Row, Table, Target, Unit};
use crate::world::World;
use anyhow::{Result, ensure};
use serde_json::json;
use std::time::Instant;

/// The least speed in bytes per second, and the most resident memory in bytes.
const SPEED: f64 = 250e6;
const MEMORY: f64 = 150e6;

pub fn import(bench: &Bench, table: &mut Table) -> Result<()> {
    let (home, files) = bench.library.claude_code()?;
    let bytes: u64 = files.iter().map(|file| file.facts.bytes).sum();
    let paths = || files.iter().map(|file| file.path.as_path());
    let params = json!({ "from": "claude-code", "paths": [home] }).to_string();
    let (mut speed, mut processor, mut memory) = (Vec::new(), Vec::new(), 0f64);
    let (mut again, mut stat, mut read) = (Vec::new(), Vec::new(), Vec::new());
    machine::utf8_pass(paths())?;
    for _ in 0..bench.rounds.min(3) {
        let world = World::new(bench)?;
        let mut daemon = Daemon::start(bench, &world)?;
        daemon.settle()?;
        let before = daemon.processor_seconds();
        let began = Instant::now();
        let result = daemon.call("import_sessions", &params)?;
        speed.push(bytes as f64 / began.elapsed().as_secs_f64());
        processor.push(daemon.processor_seconds() - before);
        let sessions = result["sessions"].as_array().map_or(0, Vec::len);
        ensure!(sessions == files.len(), "{sessions} sessions");
        memory = memory.max(daemon.peak_memory());
        daemon.stop()?;
        read.push(bytes as f64 / machine::utf8_pass(paths())?);

        let mut daemon = Daemon::start(bench, &world)?;
        daemon.settle()?;
        for _ in 0..5 {
            again.push(daemon.timed("import_sessions", &params)?);
            stat.push(machine::stat_tree(&home.join("projects"))?);
        }
        daemon.stop()?;
    }
    let what = format!("import, {} files, {} MB", files.len(), bytes / 1_000_000);
    let whole = Row::new(format!("{what}: all"), Unit::BytesPerSecond, speed);
    let whole = whole.limit("read + UTF-8", read).memory(memory);
    table.push(
        whole
            .target(Target::AtLeast(SPEED))
            .target(Target::Memory(MEMORY)),
    );
    let name = format!("{what}: processor time of all");
    table.push(Row::new(name, Unit::Seconds, processor));
    let nothing = Row::new(format!("{what}: nothing new"), Unit::Seconds, again);
    let nothing = nothing.limit("readdir + stat", stat);
    table.push(nothing.target(Target::OfLimit(1.5, 0.0)));
    Ok(())
}
