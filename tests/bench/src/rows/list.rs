//! `list_sessions` of a whole directory: in a process and a home that have never seen it, and again.

use crate::Bench;
use crate::daemon::Daemon;
use crate::machine;
use crate::table::{Outcome, Row, Table, Target, Unit, median};
use crate::world::World;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::HashMap;
use treelined_bench::library::Generated;

pub fn list(bench: &Bench, table: &mut Table) -> Result<()> {
    for count in bench.counts.iter().copied() {
        let sessions = bench.library.many(count)?;
        let bytes: u64 = sessions.iter().map(|session| session.facts.bytes).sum();
        let (mut first, mut again, mut later) = (Vec::new(), Vec::new(), Vec::new());
        let (mut scan, mut stat) = (Vec::new(), Vec::new());
        let (mut pi, mut oh_my_pi, mut memory) = (Outcome::default(), Outcome::default(), 0f64);
        machine::utf8_pass(sessions.iter().map(|session| session.path.as_path()))?;
        for round in 0..bench.rounds.min(3) {
            let world = World::new(bench)?;
            for session in &sessions {
                world.link(session)?;
            }
            let mut daemon = Daemon::start(bench, &world)?;
            daemon.settle()?;
            first.push(daemon.timed("list_sessions", "{}")?);
            exact(&sessions, daemon.response())?;
            let mut repeats = Vec::new();
            for _ in 0..5 {
                repeats.push(daemon.timed("list_sessions", "{}")?);
            }
            again.push(median(&repeats).context("no times")?);
            memory = memory.max(daemon.peak_memory());
            daemon.stop()?;
            // A restart of the daemon, as a user does it.
            let mut daemon = Daemon::start(bench, &world)?;
            daemon.settle()?;
            later.push(daemon.timed("list_sessions", "{}")?);
            exact(&sessions, daemon.response())?;
            daemon.stop()?;
            scan.push(machine::utf8_pass(
                sessions.iter().map(|session| session.path.as_path()),
            )?);
            stat.push(machine::stat_all(&world.project())?);
            if round == 0 || count <= 2_000 {
                let total: u64 = sessions.iter().map(|session| session.facts.messages).sum();
                let request = json!({ "op": "list", "cwd": "/bench", "folder": world.project() });
                pi.measure(bench.pi.as_ref(), |pi| {
                    let answer = pi.ask(&request)?;
                    ensure!(
                        answer["messages"] == total,
                        "pi counts {}",
                        answer["messages"]
                    );
                    answer["seconds"].as_f64().context("no seconds")
                })?;
                // pi's counts are not exact.
                oh_my_pi.measure(bench.oh_my_pi.as_ref(), |pi| {
                    let answer = pi.ask(&request)?;
                    ensure!(
                        answer["sessions"] == count,
                        "{} sessions",
                        answer["sessions"]
                    );
                    answer["seconds"].as_f64().context("no seconds")
                })?;
            }
        }
        let what = format!("list_sessions, {count} sessions, {} MB", bytes / 1_000_000);
        table.push(
            Row::new(format!("{what}: first"), Unit::Seconds, first)
                .pi(pi)
                .oh_my_pi(oh_my_pi)
                .limit("read + UTF-8", scan)
                .target(Target::OfLimit(2.0, 0.0))
                .memory(memory),
        );
        let mut row = Row::new(format!("{what}: again"), Unit::Seconds, again);
        row = row
            .limit("readdir + stat", stat.clone())
            .target(Target::OfLimit(2.5, 0.0));
        if count >= 10_000 {
            row = row.target(Target::AtMost(80e-3));
        }
        table.push(row);
        table.push(
            Row::new(format!("{what}: again, new process"), Unit::Seconds, later)
                .limit("readdir + stat", stat),
        );
    }
    Ok(())
}

/// Checks that every session is listed with the number of messages it was generated with.
fn exact(sessions: &[Generated], response: &[u8]) -> Result<()> {
    let response: Value = serde_json::from_slice(response)?;
    let rows = response["result"]["sessions"]
        .as_array()
        .context("no sessions")?;
    ensure!(rows.len() == sessions.len(), "{} rows", rows.len());
    let mut counts: HashMap<&str, &Value> = HashMap::new();
    for row in rows {
        counts.insert(
            row["path"]
                .as_str()
                .and_then(file_name)
                .context("no path")?,
            &row["messageCount"],
        );
    }
    for session in sessions {
        let name = session
            .path
            .to_str()
            .and_then(file_name)
            .context("no name")?;
        let count = counts.get(name).context("a session is missing")?;
        ensure!(**count == session.facts.messages, "{name}: {count}");
    }
    Ok(())
}

fn file_name(path: &str) -> Option<&str> {
    path.rsplit('/').next()
}
