//! Several programs write one file: daemons, and a program without a lock, like pi. session-file.md §3.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::harness::*;

const DAEMONS: usize = 8;

/// The number of appends of each daemon, and of the program without a lock.
fn counts() -> (usize, usize) {
    if is_long_run() {
        (2_000, 4_000)
    } else {
        (120, 400)
    }
}

/// A session with one entry, u1, in the session directory.
fn shared() -> (Arc<Home>, PathBuf) {
    let home = Home::new();
    let folder = home.sessions().join("--project--");
    fs::create_dir(&folder).unwrap();
    let path = folder.join("2025-01-01T00-00-00-000Z_shared.jsonl");
    fs::write(&path, Log::new("shared").user("u1", "", "x").text()).unwrap();
    (home, path)
}

fn joined(home: &Arc<Home>) -> Daemon {
    let mut d = Daemon::start_in(home, &[], &[]);
    d.ok("open_session", json!({"sessionId": "shared"}));
    d.ignore_bookkeeping();
    d
}

/// On a slow machine with many writers, an append may not get the lock within 2 s. Then nothing is written.
fn is_locked(error: RpcError) -> bool {
    assert_eq!(error.kind, "sessionLocked", "{error:?}");
    true
}

/// Retries a request, as a client does for an error with `retryable`.
#[track_caller]
fn patiently(d: &mut Daemon, method: &str, params: &Json) {
    let appended = (0..30).any(|_| !d.call(method, params.clone()).is_err_and(is_locked));
    assert!(appended, "the lock cannot be had for a minute");
}

/// The ids of entries that were announced as entries of other programs.
fn announced(d: &mut Daemon) -> Vec<String> {
    let announced = d.received("entries_appended");
    let others = announced
        .iter()
        .filter(|params| params["origin"] == "other");
    others.flat_map(|params| ids(&params["entryIds"])).collect()
}

#[test]
fn eight_daemons_and_a_writer_without_a_lock_lose_nothing() {
    let (each, lock_free) = counts();
    let (home, path) = shared();
    let start = Arc::new(Barrier::new(DAEMONS + 1));
    let daemons: Vec<_> = (0..DAEMONS)
        .map(|number| append_in_thread(&home, &start, number, each))
        .collect();
    let done = Arc::new(AtomicBool::new(false));
    let watching = watch_prefix(&path, &done);
    start.wait();
    for n in 0..lock_free {
        let id = format!("pi-{n}");
        let message = json!({"message": user(&"y".repeat(n % 5 * 400))});
        foreign_append(
            &path,
            &entry_line(n % 80_000, "message", &id, "u1", message),
        );
        thread::sleep(Duration::from_micros(500));
    }
    let mut daemons: Vec<Daemon> = daemons.into_iter().map(|d| d.join().unwrap()).collect();
    done.store(true, Ordering::Release);
    watching.join().unwrap();

    let lines = file_lines_of_many(&path);
    let by_id: HashMap<&str, &Json> = lines
        .iter()
        .map(|line| (line["id"].as_str().unwrap(), line))
        .collect();
    assert_eq!(
        lines.len(),
        2 + DAEMONS * each + lock_free,
        "each line once, none glued"
    );
    assert_eq!(by_id.len(), lines.len(), "ids are unique");
    let all: BTreeSet<&str> = by_id.keys().copied().filter(|id| *id != "shared").collect();
    for (number, d) in daemons.iter_mut().enumerate() {
        // The entries of one daemon form a chain. Entries that were sent again may come later in it.
        let own = format!("d{number}-");
        let parents: HashMap<&str, &str> = by_id
            .iter()
            .filter(|(id, _)| id.starts_with(&own))
            .map(|(id, line)| (line["parentId"].as_str().unwrap(), *id))
            .collect();
        let chain: Vec<&str> =
            std::iter::successors(Some("u1"), |at| parents.get(at).copied()).collect();
        assert_eq!(chain.len(), 1 + each, "the chain of daemon {number}");
        let tip = *chain.last().unwrap();
        assert_eq!(d.leaf(), tip, "others do not move the leaf");
        assert_others_announced_once(d, &own, &all);
    }
}

/// Starts a daemon that appends `each` messages, with four requests in flight.
fn append_in_thread(
    home: &Arc<Home>,
    start: &Arc<Barrier>,
    number: usize,
    each: usize,
) -> JoinHandle<Daemon> {
    let (home, start) = (home.clone(), start.clone());
    thread::spawn(move || {
        let mut d = joined(&home);
        start.wait();
        let mut pending = Vec::new();
        for n in 0..each {
            let text = "x".repeat(1 + n % 7 * 300);
            let params = json!({"message": user(&text), "entryId": format!("d{number}-{n}")});
            let id = d.send("append_message", params.clone());
            pending.push((params, id));
            if pending.len() == 4 || n + 1 == each {
                for (params, id) in pending.drain(..) {
                    if d.response(&id).is_err_and(is_locked) {
                        patiently(&mut d, "append_message", &params);
                    }
                }
            }
        }
        d
    })
}

/// Checks until `done`, again and again, that the old bytes of the file are a prefix of the new ones.
fn watch_prefix(path: &Path, done: &Arc<AtomicBool>) -> JoinHandle<()> {
    let (path, done) = (path.to_owned(), done.clone());
    thread::spawn(move || {
        let mut before = Vec::new();
        while !done.load(Ordering::Acquire) {
            let now = fs::read(&path).unwrap();
            assert!(
                now.starts_with(&before),
                "old bytes are a prefix of the new ones"
            );
            before = now;
            thread::sleep(Duration::from_millis(50));
        }
    })
}

/// Checks that a daemon has announced each entry of the others exactly once, and lists all entries.
#[track_caller]
fn assert_others_announced_once(d: &mut Daemon, own: &str, all: &BTreeSet<&str>) {
    let mut counts: BTreeMap<&str, usize> = all
        .iter()
        .filter(|id| !id.starts_with(own) && **id != "u1")
        .map(|id| (*id, 0))
        .collect();
    for id in announced(d) {
        *counts
            .get_mut(id.as_str())
            .expect("an entry of another program") += 1;
    }
    let wrong: Vec<_> = counts
        .iter()
        .filter(|(_, count)| **count != 1)
        .take(5)
        .collect();
    assert!(
        wrong.is_empty(),
        "not announced exactly once to {own}: {wrong:?}"
    );
    let known: BTreeSet<String> = d.ids().into_iter().collect();
    assert!(known.iter().map(String::as_str).eq(all.iter().copied()));
}

#[test]
fn appends_of_others_are_announced_to_an_idle_client() {
    let (home, path) = shared();
    let (mut first, mut second) = (joined(&home), joined(&home));
    second.user("s1", "from the other window");
    let notified = first.notification("entries_appended");
    assert_eq!(
        (&notified["origin"], &notified["entryIds"]),
        (&json!("other"), &json!(["s1"]))
    );
    assert_eq!(
        notified["entries"][0]["message"]["content"],
        "from the other window"
    );
    assert_eq!(
        (&notified["leafId"], &notified["fileLeafId"]),
        (&json!("u1"), &json!("s1"))
    );
    // An append by a program without a lock is announced too, and so is its move.
    foreign_append(
        &path,
        &entry_line(3, "message", "p1", "s1", json!({"message": user("pi")})),
    );
    assert_eq!(
        first.notification("entries_appended")["entryIds"],
        json!(["p1"])
    );
    second.set_leaf(Some("u1"));
    let notified = first.notification("entries_appended");
    assert_eq!(
        (&notified["entryIds"], &notified["fileLeafId"]),
        (&json!([]), &json!("u1"))
    );
    // A new name is announced too.
    second.ok("set_session_name", json!({"name": "theirs"}));
    let named = first.notification("session_info_changed");
    assert_eq!(named["name"], "theirs");
    first.notification("entries_appended");
    // An incomplete line is not announced.
    fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .and_then(|mut file| std::io::Write::write_all(&mut file, b"{\"type\":\"mess"))
        .unwrap();
    thread::sleep(Duration::from_millis(200));
    first.no_notification("entries_appended");
    first.no_notification("diagnostics");
    // The file of a closed session is not watched.
    first.ok("close_session", json!({}));
    second.ignore("diagnostics");
    second.user("s2", "x");
    thread::sleep(Duration::from_millis(200));
    first.no_notification("entries_appended");
}

/// A name that the daemon noticed by watching the file was once not announced.
#[test]
fn a_name_given_by_another_program_is_announced() {
    let (home, _) = shared();
    let mut first = Daemon::start_in(&home, &[], &[]);
    for name in ["session_opened", "session_closed", "entries_appended"] {
        first.ignore(name);
    }
    first.ok("open_session", json!({"sessionId": "shared"}));
    let mut second = joined(&home);
    second.ok("set_session_name", json!({"name": "theirs"}));
    let announced = first.notification("session_info_changed");
    assert_eq!(announced["name"], "theirs");
}

/// Entries of others can get a position before entries that a client knows. A client that read from its last entry on
/// once missed them.
#[test]
fn a_file_with_another_order_is_announced() {
    let (home, path) = shared();
    let mut d = joined(&home);
    d.user("b1", "mine");
    d.user("b2", "mine too");
    d.received("entries_appended");
    let known = json!({"since": "b2", "known": 3});
    assert_eq!(d.ok("get_entries", known.clone())["entries"], json!([]));
    d.forget_order();
    let mut lines: Vec<String> = fs::read_to_string(&path)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    let theirs = entry_line(3, "message", "a1", "u1", json!({"message": user("theirs")}));
    lines.insert(2, theirs.trim_end().to_owned());
    let next = home.files().join("next");
    fs::write(&next, lines.join("\n") + "\n").unwrap();
    fs::rename(&next, &path).unwrap();

    assert_eq!(d.notification("session_reordered")["since"], "u1");
    let told = d.notification("entries_appended");
    assert_eq!(
        (&told["origin"], &told["entryIds"]),
        (&json!("other"), &json!(["a1"]))
    );
    let order = d.order().to_owned();
    let at = |name: &str| order.iter().position(|one| one == name).unwrap();
    assert!(
        at("session_reordered") < at("entries_appended"),
        "{order:?}"
    );

    d.err_kind("get_entries", known, "treeChanged");
    let behind = d.ok("get_entries", json!({"since": "u1", "known": 1}));
    assert_eq!(ids(&behind["entries"]), ["a1", "b1", "b2"]);
    let behind = d.ok("get_entries", json!({"since": "b2", "known": 4}));
    assert_eq!(behind["entries"], json!([]));
    d.err_kind("get_entries", json!({"known": 1}), "treeChanged");
    d.ok("get_entries", json!({"known": 0}));
    let filtered = json!({"since": "u1", "known": 1, "types": ["message"]});
    d.err_kind("get_entries", filtered, "invalidParams");
}

#[test]
fn no_thread_wakes_up_while_idle() {
    let (home, _) = shared();
    let mut d = joined(&home);
    d.user("s1", "x");
    d.leaf();
    // On a busy machine the last work in the background may take longer.
    let mut seen = vec![context_switches(&d)];
    eventually("two seconds without a wake-up", || {
        thread::sleep(Duration::from_secs(2));
        seen.push(context_switches(&d));
        let is_idle = seen.iter().rev().take(2).collect::<BTreeSet<_>>().len() == 1;
        assert!(is_idle || seen.len() < 20, "threads that woke up: {seen:?}");
        is_idle
    });
}

/// The voluntary context switches of each thread.
fn context_switches(d: &Daemon) -> BTreeMap<String, String> {
    let tasks = format!("/proc/{}/task", d.pid().as_raw_nonzero());
    let tasks = fs::read_dir(tasks)
        .unwrap()
        .map(|task| task.unwrap().path());
    let count = |task: PathBuf| {
        let name = fs::read_to_string(task.join("comm")).unwrap();
        let status = fs::read_to_string(task.join("status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("voluntary"));
        let task = task.file_name().unwrap().to_string_lossy().into_owned();
        (format!("{task} {}", name.trim()), line.unwrap().to_owned())
    };
    tasks.map(count).collect()
}

#[test]
fn entries_of_two_daemons_become_branches() {
    let (home, _) = shared();
    let (mut first, mut second) = (joined(&home), joined(&home));
    second.user("s1", "second's");
    let error = first.err_kind(
        "append_message",
        json!({"message": user("x"), "entryId": "f1", "expectedLeafId": "u1"}),
        "leafMoved",
    );
    assert_eq!(ids(error.details("entries")), ["s1"]);
    // Without `expectedLeafId` the entry becomes a branch.
    first.user("f1", "first's");
    assert_eq!(first.entry("f1")["parentId"], "u1");
    assert_eq!(second.ids(), ["u1", "s1", "f1"]);
    assert_eq!((first.leaf(), second.leaf()), (json!("f1"), json!("s1")));
    // A navigation starts at the leaf of its own daemon.
    second.user("s2", "on");
    assert_eq!(
        first.ok("navigate_tree", json!({"targetId": "s1"}))["newLeafId"],
        "u1"
    );
    // An id that another daemon has used is refused if the content differs.
    let taken = json!({"message": user("x"), "entryId": "s2"});
    first.err_kind("append_message", taken, "duplicateEntryId");
    for d in [&mut first, &mut second] {
        d.ignore("session_before_tree");
    }
}

/// Each daemon chooses its own ids. All ids must differ, and no entries of others are inside a batch.
#[test]
fn batches_of_several_daemons_are_not_interleaved() {
    let (home, path) = shared();
    let rounds = if is_long_run() { 500 } else { 40 };
    let batches = |number: usize| {
        let home = home.clone();
        thread::spawn(move || {
            let mut d = joined(&home);
            let entry =
                json!({"type": "custom", "customType": format!("w{number}"), "data": number});
            for _ in 0..rounds {
                let params = json!({"entries": [entry, entry, entry]});
                patiently(&mut d, "append_entries", &params);
            }
        })
    };
    let writers: Vec<_> = (0..4).map(batches).collect();
    for writer in writers {
        writer.join().unwrap();
    }
    let mut lines = file_lines(&path);
    let ids: BTreeSet<&str> = lines
        .iter()
        .map(|line| line["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), lines.len());
    // After a batch that is not at the leaf of the file, a record keeps this leaf.
    lines.retain(|line| line["customType"] != "treelined.leaf");
    assert_eq!(lines.len(), 2 + 4 * 3 * rounds);
    for batch in lines[2..].chunks(3) {
        assert!(
            batch
                .iter()
                .all(|line| line["customType"] == batch[0]["customType"])
        );
        assert_eq!(batch[1]["parentId"], batch[0]["id"]);
        assert_eq!(batch[2]["parentId"], batch[1]["id"]);
    }
}

/// Opening a file for reading never writes to it.
#[test]
fn a_session_open_for_reading_is_never_written() {
    let (home, path) = shared();
    let mut reader = Daemon::start_in(&home, &[], &[]);
    reader.ok(
        "open_session",
        json!({"sessionId": "shared", "mode": "read"}),
    );
    reader.ignore_bookkeeping();
    let before = stamp_of(&path);
    reader.ids();
    reader.ok("get_tree", json!({}));
    assert_eq!(stamp_of(&path), before);
    let mut writer = joined(&home);
    writer.user("w1", "x");
    eventually("the leaf follows the file", || reader.leaf() == "w1");
}

fn stamp_of(path: &Path) -> (u64, std::time::SystemTime) {
    let metadata = fs::metadata(path).unwrap();
    (metadata.len(), metadata.modified().unwrap())
}

/// Opening once appended a line end to a file while another program was still writing its last line.
#[test]
fn opening_leaves_a_line_alone_that_another_program_is_writing() {
    let log = Log::new("s1").user("u1", "", "x");
    let line = entry_line(
        2,
        "message",
        "slow",
        "u1",
        json!({"message": user("written in two halves")}),
    );
    let (first, second) = line.split_at(50);
    let (mut d, path) = Daemon::opened(format!("{}{first}", log.text()).as_bytes());
    foreign_append(&path, second);
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        format!("{}{line}\n", log.text())
    );
    d.ok(
        "append_message",
        json!({"message": assistant("y"), "entryId": "a1"}),
    );
    assert_eq!(d.ids(), ["u1", "slow", "a1"], "the other's line is whole");
}
