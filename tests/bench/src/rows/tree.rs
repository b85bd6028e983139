//! `get_tree` over the pipe.

use super::size;
use crate::Bench;
use crate::daemon::Daemon;
use crate::machine;
use crate::table::{Outcome, Row, Table, Target, Unit};
use crate::world::World;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use treelined_bench::library::{Generated, Shape};

/// Two words of the generated text that stand in many previews, and one that is in few.
const QUERY: &str = "naïve parser";

pub fn tree(bench: &Bench, table: &mut Table) -> Result<()> {
    let n = bench.main_size();
    let session = bench.library.session(Shape::Conversation, n)?;
    let pi = |op: &'static str| -> Result<Outcome> { pi_tree(bench, &session, op) };

    let all = measured(bench, &session, &json!({ "filter": "all" }), |result| {
        let total = result["total"].as_u64().unwrap_or_default();
        let rows = result["nodes"].as_array().map_or(0, Vec::len) as u64;
        ensure!(total == session.facts.entries, "{total} rows in all");
        ensure!(
            rows == total || result["nextCursor"].is_string(),
            "{rows} of {total}"
        );
        Ok(())
    })?;
    let mut row = all.row(format!("get_tree flat, all rows of {}", size(n)));
    row = row.pi(pi("tree")?).limit("a pipe", pipe(bench, all.bytes)?);
    table.push(
        row.note(format!("{:.0} MB", all.bytes as f64 / 1e6))
            .target(Target::AtMost(80e-3)),
    );

    let default = measured(bench, &session, &json!({}), has_rows)?;
    let row = default.row(format!("get_tree filtered (default), {}", size(n)));
    table.push(row.target(Target::AtMost(100e-3)));
    let users = measured(bench, &session, &json!({ "filter": "user-only" }), has_rows)?;
    let row = users.row(format!("get_tree filtered (user-only), {}", size(n)));
    table.push(row.target(Target::AtMost(100e-3)));
    let found = measured(bench, &session, &json!({ "query": QUERY }), has_rows)?;
    let row = found.row(format!("get_tree searched, {}", size(n)));
    table.push(row.pi(pi("search")?).target(Target::AtMost(100e-3)));

    for n in bench.sizes.iter().copied() {
        let session = bench.library.session(Shape::Conversation, n)?;
        for (what, params) in [
            ("first page of 200", json!({ "limit": 200 })),
            (
                "page of 200 around the leaf",
                json!({ "limit": 200, "around": session.facts.leaf }),
            ),
        ] {
            let page = measured(bench, &session, &params, has_rows)?;
            let row = page.row(format!("get_tree {what}, {}", size(n)));
            table.push(row.target(Target::AtMost(3e-3)));
        }
    }

    let wide = bench.library.session(Shape::Wide, n)?;
    for (what, params, at_most) in [
        ("all rows", json!({ "filter": "all" }), 80e-3),
        ("first page of 200", json!({ "limit": 200 }), 3e-3),
    ] {
        let measured = measured(bench, &wide, &params, has_rows)?;
        let row = measured.row(format!("get_tree {what}, {} below one entry", size(n)));
        table.push(row.target(Target::AtMost(at_most)));
    }
    Ok(())
}

fn has_rows(result: &Value) -> Result<()> {
    ensure!(
        result["nodes"]
            .as_array()
            .is_some_and(|rows| !rows.is_empty()),
        "no rows"
    );
    Ok(())
}

/// Of one call in a process that has just opened the session: asked once before, since the first of
/// its kind is not what a user waits for most often.
struct Measured {
    first: Vec<f64>,
    again: Vec<f64>,
    bytes: usize,
    memory: f64,
}

impl Measured {
    fn row(&self, operation: String) -> Row {
        let first = crate::table::median(&self.first).unwrap_or_default();
        Row::new(operation, Unit::Seconds, self.again.clone())
            .memory(self.memory)
            .note(format!("first time {}", Unit::Seconds.show(first)))
    }
}

fn measured(
    bench: &Bench,
    session: &Generated,
    params: &Value,
    check: impl Fn(&Value) -> Result<()>,
) -> Result<Measured> {
    let mut measured = Measured {
        first: Vec::new(),
        again: Vec::new(),
        bytes: 0,
        memory: 0.0,
    };
    let params = params.to_string();
    for _ in 0..bench.rounds_for(session.facts.entries as u32) {
        let world = World::new(bench)?;
        let mut daemon = Daemon::start(bench, &world)?;
        daemon.open(&world.link(session)?)?;
        measured.first.push(daemon.timed("get_tree", &params)?);
        let response: Value = serde_json::from_slice(daemon.response())?;
        check(&response["result"])?;
        measured.bytes = daemon.response().len();
        let mut again = Vec::new();
        for _ in 0..3 {
            again.push(daemon.timed("get_tree", &params)?);
        }
        measured
            .again
            .push(crate::table::median(&again).context("no times")?);
        measured.memory = measured.memory.max(daemon.peak_memory());
    }
    Ok(measured)
}

/// In its own process, without making an answer of it.
fn pi_tree(bench: &Bench, session: &Generated, op: &str) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let words: Vec<&str> = QUERY.split(' ').collect();
    for _ in 0..bench.rounds {
        outcome.measure(bench.pi.as_ref(), |pi| {
            pi.open(&session.path)?;
            pi.timed(&json!({ "op": op, "words": words }))
        })?;
    }
    Ok(outcome)
}

fn pipe(bench: &Bench, bytes: usize) -> Result<Vec<f64>> {
    (0..bench.rounds)
        .map(|_| machine::through_a_pipe(bytes))
        .collect()
}
