//! `export_session` of 100,000 entries to a file: as a page, and as a session file.

use super::size;
use crate::Bench;
use crate::daemon::Daemon;
use crate::machine;
use crate::table::{Row, Table, Target, Unit};
use crate::world::World;
use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::fs;
use treelined_bench::library::Shape;

/// The most seconds for a page, and the largest size of the page as a share of the size of the session.
const SECONDS: f64 = 2.0;
const SIZE: f64 = 0.4;

pub fn export(bench: &Bench, table: &mut Table) -> Result<()> {
    for n in bench.sizes.iter().copied().filter(|n| *n >= 100_000) {
        let session = bench.library.session(Shape::Conversation, n)?;
        let mb = session.facts.bytes / 1_000_000;
        for format in ["html", "jsonl"] {
            let (mut ours, mut limit, mut memory) = (Vec::new(), Vec::new(), 0f64);
            for _ in 0..bench.rounds_for(n) {
                let world = World::new(bench)?;
                let path = world.link(&session)?;
                let to = world.project().join("export");
                let mut daemon = Daemon::start(bench, &world)?;
                daemon.open(&path)?;
                let params = json!({ "format": format, "path": to }).to_string();
                ours.push(daemon.timed("export_session", &params)?);
                memory = memory.max(daemon.peak_memory());
                daemon.stop()?;
                let bytes = fs::metadata(&to).context("the export")?.len();
                if format == "html" {
                    let part = bytes as f64 / session.facts.bytes as f64;
                    ensure!(
                        part <= SIZE,
                        "the page has {:.0} % of the session",
                        part * 100.0
                    );
                }
                limit.push(machine::line_pass(&path)?);
            }
            let row = Row::new(
                format!("export_session, {format}, {}, {mb} MB", size(n)),
                Unit::Seconds,
                ours,
            );
            let row = row.limit("read lines", limit).memory(memory);
            table.push(match (format, n) {
                ("html", 100_000) => row.target(Target::AtMost(SECONDS)),
                _ => row,
            });
        }
    }
    Ok(())
}
