//! Opening a session for the first time, and again.

use super::size;
use crate::Bench;
use crate::daemon::Daemon;
use crate::machine;
use crate::table::{Outcome, Row, Table, Target, Unit};
use crate::world::World;
use anyhow::{Result, ensure};
use std::fs::{self, OpenOptions};
use std::io::Write;
use treelined_bench::library::{Generated, Shape};

/// `open_session` in a new process, without a cache of the file.
pub fn open(bench: &Bench, table: &mut Table) -> Result<()> {
    for n in bench.sizes.iter().copied() {
        let session = bench.library.session(Shape::Conversation, n)?;
        let (mut ours, mut lines, mut utf8) = (Vec::new(), Vec::new(), Vec::new());
        let (mut pi, mut oh_my_pi, mut memory) = (Outcome::default(), Outcome::default(), 0f64);
        // The first opening is not measured, so that the file is in the page cache for all.
        machine::line_pass(&session.path)?;
        for _ in 0..bench.rounds_for(n) {
            let world = World::new(bench)?;
            let path = world.link(&session)?;
            let mut daemon = Daemon::start(bench, &world)?;
            daemon.settle()?;
            ours.push(daemon.open(&path)?);
            memory = memory.max(daemon.peak_memory());
            check(&mut daemon, &session)?;
            daemon.stop()?;
            pi.measure(bench.pi.as_ref(), |pi| pi.open(&path))?;
            oh_my_pi.measure(bench.oh_my_pi.as_ref(), |pi| pi.open(&path))?;
            lines.push(machine::line_pass(&path)?);
            utf8.push(machine::utf8_pass([path.as_path()])?);
        }
        let memory_limit = match n {
            1_000_000.. => Some(120.0 * f64::from(n) + 20e6),
            _ => None,
        };
        let mb = session.facts.bytes / 1_000_000;
        let mut row = Row::new(format!("open {}, {mb} MB", size(n)), Unit::Seconds, ours)
            .pi(pi)
            .oh_my_pi(oh_my_pi)
            .limit("line pass", lines)
            .memory(memory);
        let utf8 = crate::table::median(&utf8).unwrap_or_default();
        row = row.note(format!("read + UTF-8: {}", Unit::Seconds.show(utf8)));
        if n == 100_000 {
            row = row
                .target(Target::ThanPi(18.0))
                .target(Target::ThanOhMyPi(12.0))
                .target(Target::OfLimit(5.0, 0.0));
        }
        if n >= 1_000_000 {
            row = row.target(Target::ThanPi(25.0));
        }
        if let Some(bytes) = memory_limit {
            row = row.target(Target::Memory(bytes));
        }
        table.push(row);
    }
    Ok(())
}

fn check(daemon: &mut Daemon, session: &Generated) -> Result<()> {
    let leaf = daemon.call("get_leaf", "{}")?;
    ensure!(
        leaf["leafId"] == session.facts.leaf.as_str(),
        "another leaf: {leaf}"
    );
    Ok(())
}

/// `open_session` in a new process, after the process that had it open has ended.
pub fn reopen(bench: &Bench, table: &mut Table) -> Result<()> {
    for n in bench.sizes.iter().copied().filter(|n| *n >= 100_000) {
        let session = bench.library.session(Shape::Conversation, n)?;
        let world = World::new(bench)?;
        let path = world.copy(&session)?;
        let (mut unchanged, mut grown, mut pi) = (Vec::new(), Vec::new(), Outcome::default());
        let mut memory = 0f64;
        let mut first = Daemon::start(bench, &world)?;
        first.open(&path)?;
        first.stop()?;
        for round in 0..bench.rounds_for(n) {
            let mut daemon = Daemon::start(bench, &world)?;
            daemon.settle()?;
            unchanged.push(daemon.open(&path)?);
            memory = memory.max(daemon.peak_memory());
            daemon.stop()?;
            grow(&path, round)?;
            let mut daemon = Daemon::start(bench, &world)?;
            daemon.settle()?;
            grown.push(daemon.open(&path)?);
            daemon.stop()?;
            if round == 0 {
                pi.measure(bench.pi.as_ref(), |pi| pi.open(&path))?;
            }
        }
        let at_most = Target::AtMost(if n >= 1_000_000 { 30e-3 } else { 5e-3 });
        let unchanged = Row::new(
            format!("reopen {}, unchanged", size(n)),
            Unit::Seconds,
            unchanged,
        );
        table.push(unchanged.pi(pi).target(at_most).memory(memory));
        let grown = Row::new(
            format!("reopen {}, 100 entries more", size(n)),
            Unit::Seconds,
            grown,
        );
        table.push(grown.target(at_most));
        fs::remove_file(&path)?;
    }
    Ok(())
}

/// Appends as another program does.
fn grow(path: &std::path::Path, round: usize) -> Result<()> {
    let mut lines = String::new();
    for number in 0..100 {
        lines.push_str(&format!(
            "{{\"type\":\"message\",\"id\":\"grown-{round}-{number}\",\"parentId\":null,\"timestamp\":\"2026-02-01T00:00:00.000Z\",\"message\":{{\"role\":\"user\",\"content\":\"more\"}}}}\n"
        ));
    }
    OpenOptions::new()
        .append(true)
        .open(path)?
        .write_all(lines.as_bytes())?;
    Ok(())
}
