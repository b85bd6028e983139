//! The search index: searches while it is built, damaged or after a kill. session-file.md §5.7.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::search::two;
use crate::harness::*;

/// Writes sessions with a few megabytes of text and eleven hits of `apples`.
fn many(home: &Home) {
    two(home);
    for number in 0..40 {
        let id = format!("s{number:02}");
        let mut log = Log::new(&id);
        let mut above = String::new();
        for entry in 0..40 {
            let words = (0..300).map(|word| format!("w{}", (word * word + entry * number) % 5003));
            let text = words.collect::<Vec<_>>().join(" ");
            let text = match (entry, number % 4) {
                (20, 0) => format!("{text} apples"),
                _ => text,
            };
            let id = format!("e{entry}");
            log = log.user(&id, &above, &text);
            above = id;
        }
        log.store(home, &format!("2025-02-01T00-00-00-000Z_{id}.jsonl"));
    }
}

/// A daemon that builds an index, however few sessions there are.
fn indexing(home: &Arc<Home>) -> Daemon {
    let mut d = Daemon::start_in(home, &[], &[("TREELINED_SEARCH_INDEX_FROM", "0")]);
    d.init(json!({}));
    d
}

/// The ids and the totals of a search.
fn outcome(d: &mut Daemon, query: &str) -> Json {
    let mut result = d.ok("search", json!({"query": query, "limit": 1000}));
    result["totals"]
        .as_object_mut()
        .unwrap()
        .remove("scannedBytes");
    result
}

fn scanned(d: &mut Daemon) -> u64 {
    d.ok("search", json!({"query": "apples"}))["totals"]["scannedBytes"]
        .as_u64()
        .unwrap()
}

/// Waits until a search reads less than half of the bytes of all sessions.
fn await_index(d: &mut Daemon, bytes: u64) {
    let started = Instant::now();
    while scanned(d) > bytes / 2 {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "there is no index"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_daemon_killed_while_it_makes_the_index_leaves_searches_exact() {
    let home = Home::new();
    many(&home);
    let mut plain = Daemon::quiet_in(&home);
    let queries = ["apples", "w17 w1200", "w50", "nothing"];
    let expected = queries.map(|query| outcome(&mut plain, query));
    assert_eq!(expected[0]["totals"]["entries"], 14);
    let bytes = scanned(&mut plain);
    let pauses: &[u64] = match is_long_run() {
        true => &[0, 1, 3, 10, 30, 60, 100, 200, 400],
        false => &[0, 10, 60, 200],
    };
    for pause in pauses.iter().copied() {
        let mut d = indexing(&home);
        let first = outcome(&mut d, "apples");
        assert_eq!(first, expected[0], "{pause}");
        std::thread::sleep(Duration::from_millis(pause));
        d.kill();
        let mut d = indexing(&home);
        for (query, expected) in queries.iter().zip(&expected) {
            assert_eq!(
                outcome(&mut d, query),
                *expected,
                "{query} after {pause} ms"
            );
        }
        d.kill();
    }
    let mut d = indexing(&home);
    await_index(&mut d, bytes);
    for (query, expected) in queries.iter().zip(&expected) {
        assert_eq!(outcome(&mut d, query), *expected, "{query}");
    }
}

#[test]
fn a_damaged_index_changes_no_result_and_is_made_again() {
    let home = Home::new();
    many(&home);
    let mut d = indexing(&home);
    let expected = ["apples", "w17 w1200"].map(|query| outcome(&mut d, query));
    let bytes = scanned(&mut Daemon::quiet_in(&home));
    let mut random = 7u64;
    let mut below = |limit: usize| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) as usize % limit
    };
    let rounds = if is_long_run() { 6 } else { 3 };
    for round in 0..rounds {
        await_index(&mut d, bytes);
        let files = fs::read_dir(home.sessions().join(".cache")).unwrap();
        let files = files.map(|file| file.unwrap().path());
        let is_search = |path: &std::path::PathBuf| {
            path.file_name()
                .unwrap()
                .to_string_lossy()
                .starts_with("search")
        };
        for path in files.filter(is_search) {
            let mut content = fs::read(&path).unwrap();
            for _ in 0..=round {
                let at = below(content.len());
                content[at] ^= 1 << below(8);
            }
            fs::write(path, content).unwrap();
        }
        for (query, expected) in ["apples", "w17 w1200"].iter().zip(&expected) {
            assert_eq!(
                outcome(&mut d, query),
                *expected,
                "{query} in round {round}"
            );
        }
    }
    await_index(&mut d, bytes);
}
