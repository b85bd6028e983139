//! Context, paths, navigation, and reading everything.

use super::size;
use crate::Bench;
use crate::daemon::Daemon;
use crate::machine;
use crate::table::{Outcome, Row, Table, Target, Unit, median};
use crate::world::World;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use treelined_bench::generate::entry_id;
use treelined_bench::library::{Generated, Shape};

/// `maxBytes` of one page of `get_entries`.
const PAGE_BYTES: u64 = 1 << 20;

pub fn read(bench: &Bench, table: &mut Table) -> Result<()> {
    let n = bench.main_size();
    let talk = bench.library.session(Shape::Conversation, n)?;
    context(bench, table, &talk, n)?;
    on_a_chain(bench, table, n)?;
    entries(bench, table, &talk, n)
}

fn context(bench: &Bench, table: &mut Table, talk: &Generated, n: u32) -> Result<()> {
    let (mut ours, mut pi, mut memory, mut messages) = (Vec::new(), Outcome::default(), 0f64, 0);
    for _ in 0..bench.rounds {
        let world = World::new(bench)?;
        let mut daemon = Daemon::start(bench, &world)?;
        daemon.open(&world.link(talk)?)?;
        ours.push(repeated(&mut daemon, "get_context", "{}")?);
        let context = daemon.call("get_context", "{}")?;
        messages = context["messages"].as_array().map_or(0, Vec::len);
        let role = &context["messages"][0]["role"];
        ensure!(role == "compactionSummary", "begins with {role}");
        memory = memory.max(daemon.peak_memory());
        pi.measure(bench.pi.as_ref(), |pi| {
            pi.open(&talk.path)?;
            pi.timed(&json!({ "op": "context" }))
        })?;
    }
    table.push(
        Row::new(
            format!("get_context, {} with compactions", size(n)),
            Unit::Seconds,
            ours,
        )
        .pi(pi)
        .target(Target::AtMost(10e-3))
        .memory(memory)
        .note(format!("{messages} messages")),
    );
    Ok(())
}

/// This is the worst case for all programs, since each answer covers the whole chain.
fn on_a_chain(bench: &Bench, table: &mut Table, n: u32) -> Result<()> {
    let chain = bench.library.session(Shape::Chain, n)?;
    let (first, last) = (entry_id(1), entry_id(n - 1));
    let (mut path, mut ancestor, mut there, mut back) = (vec![], vec![], vec![], vec![]);
    let (mut pi_path, mut pi_branch, mut memory) = (Outcome::default(), Outcome::default(), 0f64);
    let (mut answer, mut pipe) = (0, Vec::new());
    for _ in 0..bench.rounds {
        let world = World::new(bench)?;
        let mut daemon = Daemon::start(bench, &world)?;
        daemon.open(&world.copy(&chain)?)?;
        path.push(repeated(&mut daemon, "get_path", "{}")?);
        answer = daemon.response().len();
        pipe.push(machine::through_a_pipe(answer)?);
        // The preparation of this navigation has few entries, since the target is just above the leaf.
        let near = json!({ "targetId": entry_id(n - 4), "dryRun": true }).to_string();
        ancestor.push(repeated(&mut daemon, "navigate_tree", &near)?);
        let to = |target: &str| json!({ "targetId": target }).to_string();
        let (mut theres, mut backs) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            theres.push(daemon.timed("navigate_tree", &to(&first))?);
            backs.push(daemon.timed("navigate_tree", &to(&last))?);
        }
        there.extend(median(&theres));
        back.extend(median(&backs));
        memory = memory.max(daemon.peak_memory());
        pi_path.measure(bench.pi.as_ref(), |pi| {
            pi.open(&chain.path)?;
            pi.timed(&json!({ "op": "path", "id": last }))
        })?;
        pi_branch.measure(bench.pi.as_ref(), |pi| {
            pi.open(&chain.path)?;
            pi.timed(&json!({ "op": "branch", "id": first }))
        })?;
    }
    let size = size(n);
    let five = Target::AtMost(5e-3);
    let mb = answer as f64 / 1e6;
    table.push(
        Row::new(
            format!("get_path, chain of {size}, {mb:.0} MB over the pipe"),
            Unit::Seconds,
            path,
        )
        .pi(pi_path)
        .limit("a pipe", pipe)
        .target(five)
        .memory(memory),
    );
    table.push(
        Row::new(
            format!("common ancestor (dry run), chain of {size}"),
            Unit::Seconds,
            ancestor,
        )
        .target(five),
    );
    table.push(
        Row::new(
            format!("navigate_tree to the beginning, chain of {size}"),
            Unit::Seconds,
            there,
        )
        .pi(pi_branch)
        .target(five),
    );
    table.push(
        Row::new(
            format!("navigate_tree back to the end, chain of {size}"),
            Unit::Seconds,
            back,
        )
        .target(five),
    );
    Ok(())
}

/// All entries, page by page. Each page is requested after the previous page has arrived.
fn entries(bench: &Bench, table: &mut Table, talk: &Generated, n: u32) -> Result<()> {
    let (mut ours, mut pi, mut memory) = (Vec::new(), Outcome::default(), 0f64);
    let mut limit = Vec::new();
    for _ in 0..bench.rounds {
        let world = World::new(bench)?;
        let mut daemon = Daemon::start(bench, &world)?;
        daemon.open(&world.link(talk)?)?;
        let (mut took, mut bytes, mut since) = (0.0, 0, Value::Null);
        loop {
            let mut params = json!({ "maxBytes": PAGE_BYTES });
            if !since.is_null() {
                params["since"] = since;
            }
            took += daemon.timed("get_entries", &params.to_string())?;
            bytes += daemon.response().len();
            since = next_cursor(daemon.response());
            if since.is_null() {
                break;
            }
        }
        ensure!(bytes as u64 >= talk.facts.bytes, "{bytes} bytes in all");
        ours.push(bytes as f64 / took);
        memory = memory.max(daemon.peak_memory());
        limit.push(bytes as f64 / machine::through_a_pipe(bytes)?);
        pi.measure(bench.pi.as_ref(), |pi| {
            pi.open(&talk.path)?;
            Ok(bytes as f64 / pi.timed(&json!({ "op": "answerEntries" }))?)
        })?;
    }
    table.push(
        Row::new(
            format!("get_entries, {} in pages of 1 MiB", size(n)),
            Unit::BytesPerSecond,
            ours,
        )
        .pi(pi)
        .limit("a pipe", limit)
        .target(Target::AtLeast(1e9))
        .memory(memory),
    );
    Ok(())
}

/// Finds the cursor at the end of the answer. The answer is too large to be parsed as a whole.
fn next_cursor(response: &[u8]) -> Value {
    const NAME: &[u8] = b",\"nextCursor\":\"";
    let tail = response
        .get(response.len().saturating_sub(512)..)
        .unwrap_or_default();
    let Some(at) = memchr::memmem::rfind(tail, NAME) else {
        return Value::Null;
    };
    let value = tail.get(at + NAME.len()..).unwrap_or_default();
    let end = memchr::memchr(b'"', value).unwrap_or_default();
    Value::from(String::from_utf8_lossy(
        value.get(..end).unwrap_or_default(),
    ))
}

/// The median of some calls. A first call is not counted.
fn repeated(daemon: &mut Daemon, method: &str, params: &str) -> Result<f64> {
    daemon.timed(method, params)?;
    let times: Result<Vec<f64>> = (0..5).map(|_| daemon.timed(method, params)).collect();
    median(&times?).context("no times")
}
