//! Searches through many gigabytes of prose with the index. Measured with `--index-gigabytes N`, since the sessions
//! take as much space on the disk.

use super::search;
use crate::Bench;
use crate::table::{Row, Table, Target, Unit};
use crate::world::World;
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use treelined_bench::generate::push_word;

/// The first page of any search.
const MOST: f64 = 100e-3;

pub fn index(bench: &Bench, table: &mut Table) -> Result<()> {
    let Some(wanted) = bench.index_bytes else {
        return Ok(());
    };
    let sessions = bench.library.prose(wanted)?;
    let bytes: u64 = sessions.iter().map(|session| session.facts.bytes).sum();
    let what = format!("search, prose, {} MB", bytes / 1_000_000);
    let world = World::new(bench)?;
    for session in &sessions {
        world.link(session)?;
    }
    search::add_needle(&world)?;
    search::make_index(bench, table, &world, &what, bytes)?;
    let page = |name: &str, times| {
        Row::new(format!("{what}: {name}"), Unit::Seconds, times).target(Target::AtMost(MOST))
    };
    let rare = search::first_pages(bench, &world, search::found_one)?;
    table.push(page("a word of one entry", rare));
    for (name, ranks) in [
        ("a rare word", &[700_001][..]),
        ("a word of a thousandth", &[1_000]),
        ("a common word", &[20]),
        ("two words of a thousandth", &[1_001, 1_003]),
        ("two common words", &[20, 30]),
    ] {
        let query = json!({ "query": words(ranks) }).to_string();
        let times = search::first_pages(bench, &world, |daemon| {
            let time = daemon.timed("search", &query)?;
            let response: Value = serde_json::from_slice(daemon.response())?;
            ensure!(response["result"]["hits"][0].is_object(), "{response}");
            Ok(time)
        })?;
        table.push(page(name, times));
    }
    let phrase = json!({ "query": words(&[300, 301]), "mode": "literal" }).to_string();
    let times = search::first_pages(bench, &world, |daemon| daemon.timed("search", &phrase))?;
    table.push(page("a phrase that may not occur", times));
    Ok(())
}

/// Words by how frequent they are, with blanks between them.
fn words(ranks: &[u32]) -> String {
    let mut words = String::new();
    for rank in ranks {
        if !words.is_empty() {
            words.push(' ');
        }
        push_word(&mut words, *rank);
    }
    words
}
