//! `push` and `pull`.

use crate::support::{Fleet, Machine, append};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

#[test]
fn a_session_goes_from_one_machine_to_another_byte_for_byte() {
    let Some(fleet) = Fleet::get(1) else { return };
    let fleet = fleet.with_stream();
    let (laptop, server) = (Machine::new(&fleet), Machine::new(&fleet));
    let path = laptop.make("a.b", 50, 300);
    laptop.make("s2", 1, 10);
    let pushed = laptop.done(&["push", "--all", "--json"]);
    assert_eq!(
        pushed
            .iter()
            .map(|row| row["lines"].as_u64().unwrap())
            .sum::<u64>(),
        53
    );
    let listed = server.done(&["pull", "--list", "--json"]);
    let mut ids: Vec<&str> = listed
        .iter()
        .map(|row| row["sessionId"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, ["a.b", "s2"]);
    let pulled = server.done(&["pull", "--all", "--json"]);
    assert_eq!(
        pulled[0]["hash"],
        pushed.iter().find(|row| row["sessionId"] == "a.b").unwrap()["hash"]
    );
    assert_eq!(server.text("a.b"), laptop.text("a.b"));
    assert_eq!(server.text("s2"), laptop.text("s2"));

    // Only new lines are copied, and no line twice.
    append(&path, 50..55, 300);
    assert_eq!(laptop.done(&["push", "a.b", "--json"])[0]["lines"], 5);
    assert_eq!(laptop.done(&["push", "a.b", "--json"])[0]["lines"], 0);
    assert_eq!(server.done(&["push", "a.b", "--json"])[0]["behind"], true);
    assert_eq!(server.done(&["pull", "a.b", "--json"])[0]["lines"], 5);
    assert_eq!(server.text("a.b"), laptop.text("a.b"));
    server.until_sound(&["doctor", "--cluster"]);
}

/// A session that is larger than a message, with lines near the limit and with damaged lines, is copied byte for byte.
#[test]
fn a_large_session_is_cut_into_messages_between_lines() {
    let Some(fleet) = Fleet::get(2) else { return };
    let fleet = fleet.with_stream();
    let (laptop, server) = (Machine::new(&fleet), Machine::new(&fleet));
    let path = laptop.make("large", 60, 90_000);
    append(&path, 60..62, 900_000);
    let text = [std::fs::read(&path).unwrap(), b"\n{\"torn\n\xff\n".to_vec()].concat();
    std::fs::write(&path, &text).unwrap();
    assert_eq!(laptop.done(&["push", "large", "--json"])[0]["lines"], 66);
    assert_eq!(server.done(&["pull", "large", "--json"])[0]["lines"], 66);
    assert_eq!(server.text("large"), text);
}

/// Both machines push the same file at the same time. Every line is in the stream once.
#[test]
fn pushes_of_several_machines_at_once_append_each_line_once() {
    let Some(fleet) = Fleet::get(3) else { return };
    let fleet = fleet.with_stream();
    let machines: Vec<Machine> = (0..4).map(|_| Machine::new(&fleet)).collect();
    thread::scope(|scope| {
        for machine in &machines {
            machine.make("same", 40, 60_000);
            scope.spawn(|| machine.done(&["push", "same", "--json"]));
        }
    });
    let reader = Machine::new(&fleet);
    assert_eq!(reader.done(&["pull", "same", "--json"])[0]["lines"], 41);
    assert_eq!(reader.text("same"), machines[0].text("same"));
}

#[test]
fn a_push_that_is_killed_is_continued_by_the_next_one() {
    let Some(fleet) = Fleet::get(4) else { return };
    let fleet = fleet.with_stream();
    let laptop = Machine::new(&fleet);
    laptop.make("long", 400, 100_000);
    let mut cut_off = 0;
    for delay in [150, 200, 300, 500] {
        let mut child = laptop
            .command(&["push", "--all"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_millis(delay));
        child.kill().unwrap();
        cut_off += usize::from(!child.wait().unwrap().success());
    }
    laptop.done(&["push", "long", "--json"]);
    assert!(cut_off > 0, "the kills came too late");
    let server = Machine::new(&fleet);
    // A pull that is killed leaves a file that the next one continues.
    let mut child = server
        .command(&["pull", "long"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    thread::sleep(Duration::from_millis(80));
    child.kill().unwrap();
    child.wait().unwrap();
    server.done(&["pull", "long", "--json"]);
    assert_eq!(server.text("long"), laptop.text("long"));
}

#[test]
fn a_follower_writes_what_another_machine_pushes() {
    let Some(fleet) = Fleet::get(6) else { return };
    let fleet = fleet.with_stream();
    let (laptop, server) = (Machine::new(&fleet), Machine::new(&fleet));
    let path = laptop.make("live", 2, 100);
    laptop.done(&["push", "live", "--json"]);
    let mut following = server
        .command(&["pull", "live", "--follow", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let first: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(first["lines"], 3);
    append(&path, 2..5, 100);
    laptop.done(&["push", "live", "--json"]);
    let next: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    following.kill().unwrap();
    following.wait().unwrap();
    assert_eq!(next["lines"], 3);
    assert_eq!(server.text("live"), laptop.text("live"));
}

/// The stream has the lines of the migrated file, and the original stays beside the file.
#[test]
fn a_file_of_an_older_version_is_migrated_and_pushed() {
    let Some(fleet) = Fleet::get(41) else { return };
    let fleet = fleet.with_stream();
    let (laptop, server) = (Machine::new(&fleet), Machine::new(&fleet));
    for name in ["v1", "v2"] {
        let path = laptop.make(name, 0, 0);
        let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
        let old = std::fs::read(data.join(format!("{name}.jsonl"))).unwrap();
        std::fs::write(&path, &old).unwrap();
        let file = path.to_str().unwrap();
        let pushed = laptop.done(&["push", file, "--json"]);
        let id = pushed[0]["sessionId"].as_str().unwrap();
        let migrated = std::fs::read(&path).unwrap();
        assert_ne!(migrated, old);
        let pulled = server.done(&["pull", id, "--json"]);
        assert_eq!(pulled[0]["bytes"], migrated.len());
        assert_eq!(pulled[0]["hash"], pushed[0]["hash"]);
        let kept = std::fs::read_dir(path.parent().unwrap()).unwrap();
        let kept = kept.map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
        assert!(kept.into_iter().any(|bytes| bytes == old));
        assert_eq!(laptop.done(&["push", file, "--json"])[0]["lines"], 0);
    }
}

#[test]
fn a_session_that_nobody_has_is_not_found() {
    let Some(fleet) = Fleet::get(42) else { return };
    let machine = Machine::new(&fleet.with_stream());
    assert_eq!(machine.run(&["pull", "nowhere"]).status.code(), Some(3));
    machine.make("here", 1, 10);
    machine.done(&["push", "--all", "--json"]);
    let some = machine.run(&["pull", "nowhere", "here", "--json"]);
    assert_eq!(some.status.code(), Some(3), "{some:?}");
}
