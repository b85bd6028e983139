//! `get_tree` over the pipe.

use super::size;
use crate::Bench;
use crate::daemon::Daemon;
use crate::machine;
use crate::table::{Outcome, Row, Table, Target, Unit, median};
use crate::world::World;
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use treelined_bench::library::{Generated, Shape};

/// Two words of the generated text that are in many previews, and one that is in few.
const QUERY: &str = "naïve parser";

pub fn tree(bench: &Bench, table: &mut Table) -> Result<()> {
    all_rows(bench, table)?;
    filtered(bench, table)?;
    pages(bench, table)?;
    wide(bench, table)
}

fn all_rows(bench: &Bench, table: &mut Table) -> Result<()> {
    let n = bench.main_size();
    let session = bench.library.session(Shape::Conversation, n)?;
    let call = Call {
        pi: Some("tree"),
        ..Call::new(bench, &session, json!({ "filter": "all" }))
    };
    let all = call.measure(|result| {
        let total = result["total"].as_u64().unwrap_or_default();
        let rows = result["nodes"].as_array().map_or(0, Vec::len) as u64;
        ensure!(total == session.facts.entries, "{total} rows in all");
        ensure!(
            rows == total || result["nextCursor"].is_string(),
            "{rows} of {total}"
        );
        Ok(())
    })?;
    let (size, mb) = (size(n), all.megabytes());
    let row = all.row(format!("get_tree flat, all rows of {size}, {mb:.0} MB"));
    let row = row.pi(all.pi).limit("a pipe", all.pipe);
    table.push(row.target(Target::AtMost(80e-3)));
    Ok(())
}

fn filtered(bench: &Bench, table: &mut Table) -> Result<()> {
    let n = bench.main_size();
    let session = bench.library.session(Shape::Conversation, n)?;
    for (what, params) in [
        ("filtered (default)", json!({})),
        ("filtered (user-only)", json!({ "filter": "user-only" })),
        ("searched", json!({ "query": QUERY })),
    ] {
        let measured = Call::new(bench, &session, params).measure(has_rows)?;
        let (size, mb) = (size(n), measured.megabytes());
        let row = measured.row(format!("get_tree {what}, {size}, {mb:.0} MB"));
        let row = row.limit("a pipe", measured.pipe);
        table.push(row.target(Target::AtMost(100e-3)));
    }
    Ok(())
}

fn pages(bench: &Bench, table: &mut Table) -> Result<()> {
    for n in bench.sizes.iter().copied() {
        let session = bench.library.session(Shape::Conversation, n)?;
        for (what, params) in [
            ("first page of 200", json!({ "limit": 200 })),
            (
                "page of 200 around the leaf",
                json!({ "limit": 200, "around": session.facts.leaf }),
            ),
        ] {
            let page = Call::new(bench, &session, params).measure(has_rows)?;
            let row = page.row(format!("get_tree {what}, {}", size(n)));
            table.push(row.target(Target::AtMost(3e-3)));
        }
    }
    Ok(())
}

fn wide(bench: &Bench, table: &mut Table) -> Result<()> {
    let n = bench.main_size();
    let session = bench.library.session(Shape::Wide, n)?;
    for (what, params, at_most) in [
        ("all rows", json!({ "filter": "all" }), 80e-3),
        ("first page of 200", json!({ "limit": 200 }), 3e-3),
    ] {
        let measured = Call::new(bench, &session, params).measure(has_rows)?;
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

/// A call of `get_tree` to measure.
struct Call<'a> {
    bench: &'a Bench,
    session: &'a Generated,
    params: Value,
    /// The operation of pi that does the same work, in its own process and without an answer.
    pi: Option<&'static str>,
}

/// Times in seconds, in a process that has just opened the session. The first call has its own column, since users
/// seldom wait for it.
#[derive(Default)]
struct CallTimes {
    first: Vec<f64>,
    again: Vec<f64>,
    bytes: usize,
    memory: f64,
    pi: Outcome,
    /// The times for sending the same number of bytes through a pipe.
    pipe: Vec<f64>,
}

impl CallTimes {
    /// The size of the response.
    fn megabytes(&self) -> f64 {
        self.bytes as f64 / 1e6
    }

    fn row(&self, operation: String) -> Row {
        let first = median(&self.first).unwrap_or_default();
        Row::new(operation, Unit::Seconds, self.again.clone())
            .memory(self.memory)
            .note(format!("first time {}", Unit::Seconds.show(first)))
    }
}

impl<'a> Call<'a> {
    fn new(bench: &'a Bench, session: &'a Generated, params: Value) -> Self {
        Self {
            bench,
            session,
            params,
            pi: None,
        }
    }

    fn measure(&self, check: impl Fn(&Value) -> Result<()>) -> Result<CallTimes> {
        let Self { bench, session, .. } = *self;
        let (mut measured, params) = (CallTimes::default(), self.params.to_string());
        for _ in 0..bench.rounds_for(session.facts.entries as u32) {
            let world = World::new(bench)?;
            let mut daemon = Daemon::start(bench, &world)?;
            daemon.open(&world.link(session)?)?;
            measured.first.push(daemon.timed("get_tree", &params)?);
            let response: Value = serde_json::from_slice(daemon.response())?;
            check(&response["result"])?;
            measured.bytes = daemon.response().len();
            let times: Result<Vec<f64>> =
                (0..3).map(|_| daemon.timed("get_tree", &params)).collect();
            measured.again.extend(median(&times?));
            measured.memory = measured.memory.max(daemon.peak_memory());
            daemon.stop()?;
            measured.pipe.push(machine::through_a_pipe(measured.bytes)?);
            if let Some(op) = self.pi {
                measured.pi.measure(bench.pi.as_ref(), |pi| {
                    pi.open(&session.path)?;
                    pi.timed(&json!({ "op": op }))
                })?;
            }
        }
        Ok(measured)
    }
}
