//! Runs histories (README.md). `TREELINED_HISTORIES` is their number; `SEED` runs the history of one seed and prints its
//! calls.

mod stories;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use treelined_files::os::simulated::LeftOut;
use treelined_simulation::history::{Outcome, run, run_with_defect};

fn number(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().expect("a number"))
}

/// The result of a history. A panic of the engine is a failure too.
fn outcome(seed: u64, left_out: LeftOut, is_traced: bool) -> Result<Outcome, String> {
    let run = || run(seed, left_out, is_traced);
    let done = std::panic::catch_unwind(run);
    done.unwrap_or_else(|_| Err("a writer panicked".to_owned()))
}

#[test]
fn nothing_acknowledged_is_lost_doubled_or_reordered() {
    if let Some(seed) = number("SEED") {
        let done = run(seed, LeftOut::Nothing, true);
        match done {
            Ok(done) => println!(
                "{}\n{} calls, {} states",
                done.trace.join("\n"),
                done.calls,
                done.states
            ),
            Err(error) => panic!("SEED={seed}: {error}"),
        }
        return;
    }
    let histories = number("TREELINED_HISTORIES").unwrap_or(300);
    let first = number("TREELINED_FIRST_SEED").unwrap_or(0);
    let next = AtomicU64::new(first);
    // The writers of a history wait for each other most of the time.
    let threads = 4 * std::thread::available_parallelism().map_or(1, usize::from);
    let [states, acked, calls] = [const { AtomicU64::new(0) }; 3];
    let failed = Mutex::new(Vec::new());
    let verbs = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + histories {
                        return;
                    }
                    match outcome(seed, LeftOut::Nothing, false) {
                        Ok(done) => {
                            states.fetch_add(done.states as u64, Ordering::Relaxed);
                            acked.fetch_add(done.acked as u64, Ordering::Relaxed);
                            calls.fetch_add(done.calls, Ordering::Relaxed);
                            for (verb, count) in done.verbs {
                                *verbs.lock().unwrap().entry(verb).or_insert(0) += count;
                            }
                        }
                        Err(error) => failed.lock().unwrap().push(format!("SEED={seed}: {error}")),
                    }
                }
            });
        }
    });
    println!(
        "{histories} histories, {calls:?} calls, {acked:?} acknowledged entries, {states:?} states of the disk"
    );
    println!("{:?}", verbs.lock().unwrap());
    let failed = failed.into_inner().unwrap();
    assert!(
        failed.is_empty(),
        "{} failed:\n{}",
        failed.len(),
        failed.join("\n\n")
    );
}

#[test]
fn a_seed_makes_the_same_history() {
    for seed in 0..8 {
        let [first, second] = [(); 2].map(|()| outcome(seed, LeftOut::Nothing, true));
        if first != second {
            let [first, second] = [first, second]
                .map(|done| done.map_or_else(|error| vec![error], |done| done.trace));
            let same = first
                .iter()
                .zip(&second)
                .take_while(|(a, b)| a == b)
                .count();
            panic!(
                "SEED={seed}, call {same}: {:?} {:?}",
                first.get(same),
                second.get(same)
            );
        }
    }
}

/// A check that finds nothing in an engine without these calls would prove nothing.
#[test]
fn each_call_that_is_left_out_is_found() {
    let all = [
        LeftOut::AppendSync,
        LeftOut::NewFileSync,
        LeftOut::FolderSync,
        LeftOut::Lock,
        LeftOut::AppendFlag,
    ];
    for left_out in all {
        let found = (0..60).find_map(|seed| Some((seed, outcome(seed, left_out, false).err()?)));
        let (seed, error) = found.unwrap_or_else(|| panic!("without {left_out:?} nothing is lost"));
        println!(
            "without {left_out:?}, seed {seed}: {}",
            error.lines().next().unwrap_or_default()
        );
    }
}

/// The facts that the contract lists (session-file.md §3.7).
fn facts() -> impl Iterator<Item = &'static str> {
    let contract = include_str!("../../schema/session-file.md");
    let (_, section) = contract.split_once("### 3.7 ").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let items = section.lines().filter_map(|line| line.strip_prefix("- "));
    items.map(|item| item.strip_suffix('.').unwrap())
}

/// A check of a fact that no defect can break would prove nothing.
#[test]
fn the_failure_of_each_fact_in_the_contract_is_found() {
    let mut wrong = Vec::new();
    for fact in facts() {
        let found = (0..300).find_map(|seed| {
            let violated = run_with_defect(seed, fact);
            (!violated.is_empty()).then_some((seed, violated))
        });
        match found {
            Some((seed, violated)) if violated == BTreeSet::from([fact]) => {
                println!("seed {seed}: {fact}");
            }
            other => wrong.push((fact, other)),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(facts().count() >= 40);
}

/// A model that nobody can check by reading would prove nothing.
#[test]
fn the_file_system_is_small() {
    let parts = [
        include_str!("../../src/files/os/simulated/calls.rs"),
        include_str!("../../src/files/os/simulated/disk.rs"),
        include_str!("../../src/files/os/simulated/file.rs"),
    ];
    let lines: usize = parts.iter().map(|part| part.lines().count()).sum();
    assert!(lines <= 1000, "{lines} lines");
}
