//! `fork_session` at the leaf.

use super::size;
use crate::Bench;
use crate::daemon::Daemon;
use crate::machine;
use crate::table::{Outcome, Row, Table, Target, Unit};
use crate::world::World;
use anyhow::{Context, Result};
use serde_json::json;
use treelined_bench::library::{Generated, Shape};
use treelined_files::log::Log;
use treelined_files::os::file::Location;

pub fn fork(bench: &Bench, table: &mut Table) -> Result<()> {
    for n in bench.sizes.iter().copied().filter(|n| *n >= 100_000) {
        let session = bench.library.session(Shape::Conversation, n)?;
        let parts = path_of_leaf(&session)?;
        let bytes: u64 = parts.iter().map(|(_, len)| len).sum();
        let (mut ours, mut pi, mut limit) = (Vec::new(), Outcome::default(), Vec::new());
        let mut memory = 0f64;
        for _ in 0..bench.rounds_for(n) {
            let world = World::new(bench)?;
            let path = world.link(&session)?;
            let mut daemon = Daemon::start(bench, &world)?;
            daemon.open(&path)?;
            let params = json!({ "entryId": session.facts.leaf, "position": "at" }).to_string();
            ours.push(daemon.timed("fork_session", &params)?);
            memory = memory.max(daemon.peak_memory());
            daemon.stop()?;
            pi.measure(bench.pi.as_ref(), |pi| {
                pi.open(&path)?;
                pi.timed(&json!({ "op": "fork", "id": session.facts.leaf }))
            })?;
            limit.push(machine::copy_parts(
                &path,
                &parts,
                &world.project().join("copy"),
            )?);
        }
        let (than_pi, mb) = (if n >= 1_000_000 { 30.0 } else { 12.0 }, bytes / 1_000_000);
        table.push(
            Row::new(
                format!("fork_session, {}, {mb} MB", size(n)),
                Unit::Seconds,
                ours,
            )
            .pi(pi)
            .limit("copy of the lines", limit)
            .target(Target::ThanPi(than_pi))
            .target(Target::OfLimit(2.0, 0.0))
            .memory(memory),
        );
    }
    Ok(())
}

/// Offset and length of each line of the path, with adjacent lines joined.
fn path_of_leaf(session: &Generated) -> Result<Vec<(u64, u64)>> {
    let opened = Log::open(Location::of_path(&session.path)?)?;
    let tree = &opened.tree;
    let leaf = tree.find(&session.facts.leaf).context("the leaf")?;
    let mut parts: Vec<(u64, u64)> = Vec::new();
    for node in tree.path(Some(leaf)) {
        let place = tree.place(node);
        let len = u64::from(place.len) + 1;
        match parts.last_mut() {
            Some((offset, joined)) if *offset + *joined == place.offset => *joined += len,
            _ => parts.push((place.offset, len)),
        }
    }
    Ok(parts)
}
