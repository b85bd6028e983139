//! `list_sessions` of a whole directory: without caches, again in the same process, and after a restart.

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
        let mut measured = ListTimes::default();
        machine::utf8_pass(sessions.iter().map(|session| session.path.as_path()))?;
        for round in 0..bench.rounds.min(3) {
            let world = World::new(bench)?;
            for session in &sessions {
                world.link(session)?;
            }
            measured.ours(bench, &world, &sessions)?;
            measured.machine(&world, &sessions)?;
            if round == 0 || count <= 2_000 {
                measured.others(bench, &world, &sessions)?;
            }
        }
        measured.show(&sessions, table);
    }
    Ok(())
}

/// The times of one directory, in seconds: one element per round.
#[derive(Default)]
struct ListTimes {
    /// The times in a home without caches.
    first: Vec<f64>,
    again: Vec<f64>,
    /// The times in a process that has just started, with the caches of the previous process.
    restarted: Vec<f64>,
    scan: Vec<f64>,
    stat: Vec<f64>,
    pi: Outcome,
    oh_my_pi: Outcome,
    /// The peak memory in bytes.
    memory: f64,
}

impl ListTimes {
    fn ours(&mut self, bench: &Bench, world: &World, sessions: &[Generated]) -> Result<()> {
        let mut daemon = Daemon::start(bench, world)?;
        daemon.settle()?;
        self.first.push(daemon.timed("list_sessions", "{}")?);
        exact(sessions, daemon.response())?;
        let repeats: Result<Vec<f64>> = (0..5)
            .map(|_| daemon.timed("list_sessions", "{}"))
            .collect();
        self.again.push(median(&repeats?).context("no times")?);
        self.memory = self.memory.max(daemon.peak_memory());
        daemon.stop()?;

        let mut daemon = Daemon::start(bench, world)?;
        daemon.settle()?;
        self.restarted.push(daemon.timed("list_sessions", "{}")?);
        exact(sessions, daemon.response())?;
        daemon.stop()
    }

    fn machine(&mut self, world: &World, sessions: &[Generated]) -> Result<()> {
        let paths = sessions.iter().map(|session| session.path.as_path());
        self.scan.push(machine::utf8_pass(paths)?);
        self.stat.push(machine::stat_all(&world.project())?);
        Ok(())
    }

    fn others(&mut self, bench: &Bench, world: &World, sessions: &[Generated]) -> Result<()> {
        let total: u64 = sessions.iter().map(|session| session.facts.messages).sum();
        let request = json!({ "op": "list", "cwd": "/bench", "folder": world.project() });
        self.pi.measure(bench.pi.as_ref(), |pi| {
            let answer = pi.ask(&request)?;
            let messages = &answer["messages"];
            ensure!(*messages == total, "pi counts {messages}");
            answer["seconds"].as_f64().context("no seconds")
        })?;
        // The numbers of messages that oh-my-pi counts are not exact.
        self.oh_my_pi.measure(bench.oh_my_pi.as_ref(), |pi| {
            let answer = pi.ask(&request)?;
            let listed = &answer["sessions"];
            ensure!(*listed == sessions.len(), "{listed} sessions");
            answer["seconds"].as_f64().context("no seconds")
        })
    }

    fn show(self, sessions: &[Generated], table: &mut Table) {
        let bytes: u64 = sessions.iter().map(|session| session.facts.bytes).sum();
        let (count, mb) = (sessions.len(), bytes / 1_000_000);
        let row = |times_of: &str, times| {
            let operation = format!("list_sessions, {count} sessions, {mb} MB: {times_of}");
            Row::new(operation, Unit::Seconds, times)
        };
        let first = row("first", self.first).pi(self.pi).oh_my_pi(self.oh_my_pi);
        let first = first.limit("read + UTF-8", self.scan).memory(self.memory);
        table.push(first.target(Target::OfLimit(2.0, 0.0)));
        let mut again = row("again", self.again)
            .limit("readdir + stat", self.stat.clone())
            .target(Target::OfLimit(2.5, 0.0));
        if count >= 10_000 {
            again = again.target(Target::AtMost(80e-3));
        }
        table.push(again);
        let restarted = row("again, new process", self.restarted);
        table.push(restarted.limit("readdir + stat", self.stat));
    }
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
