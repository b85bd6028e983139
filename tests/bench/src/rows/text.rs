//! The two parts of an export that read all text, in this process and on one core: the search for secrets, and entries
//! as blocks.

use super::size;
use crate::Bench;
use crate::table::{Row, Table, Target, Unit};
use anyhow::{Result, ensure};
use std::fs;
use std::hint::black_box;
use std::time::Instant;
use treelined_bench::library::Shape;
use treelined_pages::render::EntryContext;
use treelined_pages::render::push_entry;
use treelined_redact::Redactor;

/// The least speeds of the search for secrets and of the blocks, in bytes per second.
const REDACT: f64 = 500e6;
const RENDER: f64 = 200e6;
/// The most bytes of the blocks of an entry.
const ENTRY_BYTES: usize = 32 << 20;

pub fn text(bench: &Bench, table: &mut Table) -> Result<()> {
    let n = bench.main_size();
    let session = bench.library.session(Shape::Conversation, n)?;
    let stored = fs::read_to_string(&session.path)?;
    let (mut redacted, mut rendered) = (Vec::new(), Vec::new());
    let redactor = Redactor::new(true, None)?;
    let mut blocks = Vec::new();
    for _ in 0..bench.rounds_for(n) {
        let (start, mut found) = (Instant::now(), 0);
        for line in stored.lines() {
            black_box(redactor.text(line, &mut |_, _| found += 1));
        }
        redacted.push(stored.len() as f64 / start.elapsed().as_secs_f64());
        ensure!(found == 0, "the generated text has {found} secrets");
        let start = Instant::now();
        for line in stored.lines().skip(1) {
            blocks.clear();
            push_entry(
                &mut blocks,
                line.as_bytes(),
                &EntryContext::default(),
                ENTRY_BYTES,
            );
            black_box(&blocks);
        }
        rendered.push(stored.len() as f64 / start.elapsed().as_secs_f64());
    }
    for (name, speeds, target) in [
        ("secrets, none found", redacted, REDACT),
        ("entries as blocks", rendered, RENDER),
    ] {
        let name = format!("{name}, {}, one core", size(n));
        let row = Row::new(name, Unit::BytesPerSecond, speeds);
        table.push(row.target(Target::AtLeast(target)));
    }
    Ok(())
}
