//! Two daemons and a program without a lock write in every combination and order. Some daemons are killed.

use std::collections::HashMap;
use std::path::Path;

use super::*;

/// One operation of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Nothing,
    Step,
    Label,
    State,
    Back,
}

const BOOKKEEPING: [&str; 4] = ["label", "session_info", "custom", "usage"];

/// The lines of a file as the rules read them, without leaf records.
struct Naive {
    lines: Vec<Json>,
    by_id: HashMap<String, usize>,
}

impl Naive {
    fn read(path: &Path) -> Naive {
        let lines = file_lines(path).split_off(1);
        let by_id = lines.iter().enumerate();
        let by_id = by_id
            .map(|(at, line)| (line["id"].as_str().unwrap().to_owned(), at))
            .collect();
        Naive { lines, by_id }
    }

    fn is_record(&self, at: usize) -> bool {
        self.lines[at]["customType"] == "treelined.leaf"
    }

    fn is_move(&self, at: usize) -> bool {
        self.is_record(at) && self.lines[at]["data"]["cause"] != "keep"
    }

    fn is_step(&self, at: usize) -> bool {
        !BOOKKEEPING.contains(&self.lines[at]["type"].as_str().unwrap())
    }

    fn parent(&self, at: usize) -> Option<usize> {
        self.lines[at]["parentId"].as_str().map(|id| self.by_id[id])
    }

    fn path(&self, at: Option<usize>) -> Vec<usize> {
        std::iter::successors(at, |at| self.parent(*at)).collect()
    }

    fn step(&self, at: Option<usize>) -> Option<usize> {
        self.path(at).into_iter().find(|at| self.is_step(*at))
    }

    /// The line at which the file opens.
    fn opens_at(&self) -> Option<usize> {
        let last = self.lines.len() - 1;
        match self.is_record(last) {
            true => self.parent(last),
            false => Some(last),
        }
    }

    /// The id of the newest step, if the file opens elsewhere.
    fn beside(&self) -> Option<&str> {
        let newest = (0..self.lines.len())
            .rev()
            .find(|at| self.is_step(*at))
            .unwrap();
        let has_move = (newest..self.lines.len()).any(|at| self.is_move(at));
        let is_at_or_above = self.path(self.opens_at()).contains(&newest);
        (!has_move && !is_at_or_above).then(|| self.lines[newest]["id"].as_str().unwrap())
    }
}

/// A daemon, and the leaf that it must have.
struct Client {
    d: Daemon,
    name: &'static str,
    /// The number of lines in the file when the leaf moved to its present step.
    since: usize,
    own: Vec<std::ops::Range<usize>>,
}

impl Client {
    fn new(home: &std::sync::Arc<Home>, name: &'static str) -> Client {
        Client {
            d: Daemon::quiet_in(home),
            name,
            since: 0,
            own: Vec::new(),
        }
    }

    fn open(&mut self, path: &Path) {
        self.d.open(path);
        self.since = file_lines(path).len() - 1;
        self.own.clear();
    }

    fn act(&mut self, act: Act, path: &Path) {
        let before = file_lines(path).len() - 1;
        let id = format!("{}{before}", self.name);
        match act {
            Act::Nothing => return,
            Act::Step => drop(self.d.user(&id, "x")),
            Act::Label => drop(
                self.d
                    .ok("append_label", json!({"targetId": "u1", "label": id})),
            ),
            Act::State => state(&mut self.d, &id),
            Act::Back => drop(self.d.ok("navigate_tree", json!({"targetId": "a1"}))),
        }
        let after = file_lines(path).len() - 1;
        self.own.push(before..after);
        if matches!(act, Act::Step | Act::Back) {
            self.since = after;
        }
    }

    /// Whether `expectedLeafId` fails for the known leaf, since others have appended below its step.
    fn expects_conflict(&self, naive: &Naive, leaf: Option<usize>) -> bool {
        let step = naive.step(leaf).unwrap();
        let is_own = |at: usize| self.own.iter().any(|own| own.contains(&at));
        let mut others = (self.since..naive.lines.len()).filter(|at| !is_own(*at));
        others.any(|at| naive.is_step(at) && naive.path(Some(at)).contains(&step))
    }

    fn check(&mut self, path: &Path, context: &str) {
        let leaf = self.d.leaf();
        let naive = Naive::read(path);
        let at = leaf.as_str().map(|id| naive.by_id[id]);
        let expects_conflict = self.expects_conflict(&naive, at);
        let params = json!({"targetId": "u1", "label": "z", "expectedLeafId": naive.step(at).map(|at| naive.lines[at]["id"].clone())});
        let before = naive.opens_at().map(|at| naive.lines[at]["id"].clone());
        match self.d.call("append_label", params) {
            Err(error) => {
                assert_eq!(
                    (error.kind.as_str(), expects_conflict),
                    ("leafMoved", true),
                    "{context}"
                );
            }
            Ok(_) => {
                assert!(!expects_conflict, "{context}");
                let after = Naive::read(path);
                let keeps = before.as_ref() != Some(&leaf);
                assert_eq!(after.is_record(after.lines.len() - 1), keeps, "{context}");
                if keeps {
                    let opens_at = after.opens_at().map(|at| after.lines[at]["id"].clone());
                    assert_eq!(opens_at, before, "{context}");
                }
            }
        }
    }
}

/// Writes like a stale program, which has read the file long ago and continues at `a1`.
fn write_stale(act: Act, path: &Path) {
    match act {
        Act::Step => foreign_append(
            path,
            &entry_line(7, "message", "f1", "a1", json!({"message": user("x")})),
        ),
        Act::Label => foreign_append(
            path,
            &entry_line(
                7,
                "label",
                "f1",
                "a1",
                json!({"targetId": "u1", "label": "x"}),
            ),
        ),
        Act::State => foreign_state(path, "f1", "a1"),
        Act::Nothing | Act::Back => {}
    }
}

const ORDERS: [[usize; 3]; 6] = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
];

#[test]
fn two_clients_and_a_stale_writer_agree_with_the_rules_in_every_combination() {
    let home = Home::new();
    let (mut one, mut two) = (Client::new(&home, "m"), Client::new(&home, "n"));
    let mut reader = Daemon::quiet_in(&home);
    let acts = [Act::Nothing, Act::Step, Act::Label, Act::State, Act::Back];
    let mut number = 0;
    let mut reported = 0;
    for stale in [Act::Nothing, Act::Step, Act::Label, Act::State] {
        for first in acts {
            for second in acts {
                for order in ORDERS {
                    number += 1;
                    let context =
                        format!("{first:?} {second:?} stale {stale:?} in order {order:?}");
                    let log = Log::new(&format!("s{number}"))
                        .user("u1", "", "x")
                        .assistant("a1", "u1", "x");
                    let log = log.user("u2", "a1", "x").assistant("a2", "u2", "x");
                    let path = home.file(&format!("s{number}.jsonl"), log.text().as_bytes());
                    one.open(&path);
                    two.open(&path);
                    for actor in order {
                        match actor {
                            0 => one.act(first, &path),
                            1 => two.act(second, &path),
                            _ => write_stale(stale, &path),
                        }
                    }
                    let naive = Naive::read(&path);
                    let expected = naive.beside();
                    let opened = reader.ok("open_session", json!({"path": path, "mode": "read"}));
                    let found = opened["diagnostics"][0]["newestTipId"].as_str();
                    assert_eq!(found, expected, "{context}");
                    let is_stale_bookkeeping = matches!(stale, Act::Label | Act::State);
                    assert!(expected.is_none() || is_stale_bookkeeping, "{context}");
                    reported += usize::from(expected.is_some());
                    one.check(&path, &context);
                    two.check(&path, &context);
                    for d in [&mut one.d, &mut two.d, &mut reader] {
                        d.ok("close_session", json!({}));
                    }
                }
            }
        }
    }
    assert!(reported > 50, "{reported} of {number}");
}

/// A daemon that was killed after it wrote bookkeeping once left a file that opened at the daemon's old branch.
#[test]
fn a_kill_between_two_calls_leaves_the_file_at_its_newest_step() {
    let mut random = seeded_random(26);
    let home = Home::new();
    let log = Log::new("s").user("u1", "", "x").assistant("a1", "u1", "x");
    let path = log.save(&home);
    let open = || {
        let mut d = Daemon::quiet_in(&home);
        d.open(&path);
        d
    };
    let mut daemons = [Some(open()), Some(open())];
    let mut reader = Daemon::quiet_in(&home);
    let rounds = if is_long_run() { 2000 } else { 120 };
    for round in 0..rounds {
        let which = random.below(2);
        let d = daemons[which].get_or_insert_with(&open);
        let id = format!("x{round}");
        match random.below(8) {
            0 | 1 => drop(d.user(&id, "x")),
            2 => drop(d.ok("append_label", json!({"targetId": "u1", "label": id}))),
            3 => state(d, &id),
            4 => drop(d.ok("set_session_name", json!({"name": id}))),
            5 => {
                let all = d.ids();
                let target = &all[random.below(all.len())];
                d.ok("navigate_tree", json!({"targetId": target, "label": id}));
            }
            6 => drop(d.call("undo_navigation", json!({}))),
            _ => drop(d.call("redo_navigation", json!({}))),
        }
        if random.below(6) == 0
            && let Some(killed) = daemons[which].take()
        {
            killed.kill();
        }
        let opened = reader.ok("open_session", json!({"path": path, "mode": "read"}));
        assert_eq!(opened["diagnostics"], json!([]), "round {round}");
        reader.ok("close_session", json!({}));
    }
}
