//! Marks of sessions on a full disk, and in daemons that are killed (session-file.md §5.10).

use super::*;
use std::collections::BTreeSet;
use std::time::Duration;

/// The pinned sessions, as a new daemon reads them.
fn pinned(home: &Arc<Home>) -> BTreeSet<String> {
    let mut d = quiet(home, &[], &[]);
    let list = d.ok("list_sessions", json!({"pinned": true}));
    let rows = list["sessions"].as_array().unwrap().iter();
    rows.map(|row| row["sessionId"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_mark_that_finds_the_disk_full_changes_nothing() {
    let home = Home::new();
    let Some(_disk) = SmallDisk::mount(&home, 256) else {
        return skip(Needs::Faults, "a full disk: mounting a tmpfs needs root");
    };
    Log::new("s1")
        .user("u1", "", "hi")
        .store(&home, "x_s1.jsonl");
    let mut d = quiet(&home, &[], &[]);
    d.allow_stderr();
    d.ok("mark_session", json!({"sessionId": "s1", "pinned": true}));
    let ballast = home.sessions().join("ballast");
    fs::write(&ballast, vec![0; 512 << 10]).ok();
    let path = home.sessions().join(".marks.jsonl");
    // The last page of the file on the full disk still has space for some lines.
    let mut is_archived = false;
    let (before, error) = loop {
        let before = fs::read(&path).unwrap();
        let params = json!({"sessionId": "s1", "archived": !is_archived});
        match d.call("mark_session", params) {
            Ok(_) => is_archived = !is_archived,
            Err(error) => break (before, error),
        }
    };
    assert_eq!(error.kind, "storageFull", "{error:?}");
    assert_eq!(fs::read(&path).unwrap(), before);
    let list = d.ok("list_sessions", json!({"archived": true}));
    assert_eq!(list["sessions"][0]["pinned"], true, "{list}");
    fs::remove_file(&ballast).unwrap();
    d.ok(
        "mark_session",
        json!({"sessionId": "s1", "archived": false, "pinned": false}),
    );
    assert_eq!(pinned(&home), BTreeSet::new());
}

/// Once, only the file was synced and not its folder. A power cut could then remove the file, and with it a mark that
/// the daemon had confirmed.
#[test]
fn the_name_of_a_new_and_of_a_replaced_file_of_marks_is_synced() {
    let home = Home::new();
    let Some(shim) = Shim::new(&home) else {
        return skip(Needs::Faults, "seeing syncs: there is no C compiler");
    };
    Log::new("s1")
        .user("u1", "", "hi")
        .store(&home, "x_s1.jsonl");
    let folder = home.sessions().canonicalize().unwrap();
    let mut d = shim.start(&home, &[]);
    let mut syncs_of_a_mark = |pinned: bool| {
        let before = shim.synced().len();
        d.ok("mark_session", json!({"sessionId": "s1", "pinned": pinned}));
        shim.synced().split_off(before)
    };
    let is_synced = |syncs: &str| syncs.lines().any(|path| path == folder.to_str().unwrap());
    let syncs = syncs_of_a_mark(true);
    assert!(is_synced(&syncs), "a new file: {syncs}");
    let old = "{\"sessionId\":\"s2\",\"pinned\":true}\n".repeat(600);
    fs::write(home.sessions().join(".marks.jsonl"), old).unwrap();
    let syncs = syncs_of_a_mark(true);
    assert!(is_synced(&syncs), "a replaced file: {syncs}");
}

/// 20 kills, or 400 in the long run.
#[test]
fn a_killed_daemon_loses_no_mark_that_it_has_answered() {
    let kills = if is_long_run() { 400 } else { 20 };
    let mut random = seeded_random(20_261_128);
    let home = Home::in_memory();
    let names: Vec<String> = (0..12).map(|number| format!("s{number}")).collect();
    for name in &names {
        let session = Log::new(name).user("u1", "", "hi");
        session.store(&home, &format!("x_{name}.jsonl"));
    }
    let mut before = BTreeSet::new();
    for kill in 0..kills {
        let mut d = quiet(&home, &[], &[]);
        // Each session has only one request, so that the order of the requests does not matter.
        let asked: Vec<Json> = names
            .iter()
            .map(|name| {
                let params = json!({"sessionId": name, "pinned": !before.contains(name)});
                d.send("mark_session", params)
            })
            .collect();
        std::thread::sleep(Duration::from_micros(random.below(40_000) as u64));
        let answered = d.kill_and_hear();
        let after = pinned(&home);
        for (name, request) in names.iter().zip(asked) {
            let has_changed = after.contains(name) != before.contains(name);
            let is_answered = answered.contains(&request.to_string());
            assert!(has_changed || !is_answered, "kill {kill}: {name} is lost");
        }
        before = after;
    }
}
