//! Many branches grow in the background at the same time: 8 writers in two daemons, beside a program that takes no lock
//! (session-file.md §4.9). No leaf moves, and the file opens at the entry at which that program continues.

use std::path::Path;

use crate::harness::*;

/// The number of branches of each daemon.
const BRANCHES: usize = 4;

/// The number of rounds of the test.
fn rounds() -> usize {
    if is_long_run() { 1_000 } else { 40 }
}

/// The leaf in a program that takes the last line of the file for the leaf.
fn last_line(path: &Path) -> Json {
    let bytes = std::fs::read(path).unwrap();
    let last = bytes.trim_ascii_end().rsplit(|byte| *byte == b'\n').next();
    let last = parse(std::str::from_utf8(last.unwrap()).unwrap()).unwrap();
    match last["customType"] == "treelined.leaf" {
        true => last["parentId"].clone(),
        false => last["id"].clone(),
    }
}

/// A daemon and the last entries of its branches.
struct Grower {
    d: Daemon,
    name: char,
    tips: [String; BRANCHES],
    leaf: Json,
}

impl Grower {
    fn new(mut d: Daemon, name: char, path: &Path) -> Grower {
        d.ignore_bookkeeping();
        d.open(path);
        let leaf = d.leaf();
        let at = leaf.as_str().unwrap().to_owned();
        Grower {
            d,
            name,
            tips: std::array::from_fn(|_| at.clone()),
            leaf,
        }
    }

    /// Sends one append for each branch, and returns the ids of the requests and their params.
    fn send(&mut self, round: usize) -> Vec<(Json, Json)> {
        let asked = (0..BRANCHES).map(|branch| {
            let id = format!("{}{branch}-{round}", self.name);
            let tip = &self.tips[branch];
            let mut params = json!({
                "message": user(&"x".repeat(round % 7 * 40)), "entryId": id, "parentId": tip, "keepLeaf": true,
            });
            if round > 0 {
                params["expectedLeafId"] = json!(tip);
            }
            self.tips[branch] = id;
            params
        });
        let asked: Vec<Json> = asked.collect();
        let send = |params: Json| (self.d.send("append_message", params.clone()), params);
        asked.into_iter().map(send).collect()
    }

    fn receive(&mut self, sent: Vec<(Json, Json)>) {
        for (id, params) in sent {
            let mut answered = self.d.response(&id);
            // On a slow machine the daemon may not get the lock within 2 s. Then nothing is written, and the append is
            // sent again.
            while let Err(error) = answered {
                assert_eq!(error.kind, "sessionLocked", "{error:?}");
                answered = self.d.call("append_message", params.clone());
            }
        }
    }
}

/// Grows all branches round by round while `say` appends to its own conversation. `say` gets the id of the
/// parent, and returns the id of its message. The first parent is the leaf of the file.
pub(crate) fn grow_beside(
    home: &std::sync::Arc<Home>,
    path: &Path,
    mut say: impl FnMut() -> String,
) {
    let mut growers =
        ['a', 'b'].map(|name| Grower::new(Daemon::start_in(home, &[], &[]), name, path));
    let mut said = Vec::new();
    for round in 0..rounds() {
        let sent = growers.each_mut().map(|grower| grower.send(round));
        said.push(say());
        for (grower, sent) in growers.iter_mut().zip(sent) {
            grower.receive(sent);
            assert_eq!(grower.d.leaf(), grower.leaf, "round {round}");
        }
        assert_eq!(last_line(path), *said.last().unwrap(), "round {round}");
    }
    let mut fresh = Daemon::quiet_in(home);
    let opened = fresh.open(path);
    assert_eq!(opened["session"]["leafId"], *said.last().unwrap());
    assert_eq!(opened["diagnostics"], json!([]));
    let own = fresh.path_ids(None);
    assert!(own.ends_with(&said), "its conversation is whole");
    for grower in &mut growers {
        for tip in &grower.tips {
            let branch = fresh.path_ids(Some(tip));
            let grown = branch.iter().filter(|id| id.starts_with(&tip[..3]));
            assert_eq!(grown.count(), rounds(), "the branch of {tip}");
        }
        grower.d.received("entries_appended");
    }
}

#[test]
fn eight_background_writers_and_a_writer_without_a_lock_move_nobody() {
    let home = Home::new();
    let path = Log::new("born")
        .user("u1", "", "x")
        .store(&home, "x_born.jsonl");
    let (mut parent, mut number) = ("u1".to_owned(), 0);
    let at = path.clone();
    grow_beside(&home, &path, || {
        let id = format!("pi-{number}");
        let message = json!({"message": user("on")});
        foreign_append(
            &at,
            &entry_line(number % 80_000, "message", &id, &parent, message),
        );
        (parent, number) = (id.clone(), number + 1);
        id
    });
}
