//! Limits of resources: descriptors, and the memory for a client that requests too much.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, prlimit};

use crate::harness::*;

fn descriptors(d: &Daemon) -> usize {
    let fds = format!("/proc/{}/fd", d.pid().as_raw_nonzero());
    fs::read_dir(fds).unwrap().count()
}

/// Resident memory in bytes.
fn memory(d: &Daemon) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", d.pid().as_raw_nonzero())).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib << 10
}

#[test]
fn a_thousand_sessions_are_open_under_a_limit_of_256_descriptors() {
    const SESSIONS: usize = 1_000;
    let mut d = Daemon::quiet_in(&Home::in_memory());
    let limit = Rlimit {
        current: Some(256),
        maximum: Some(256),
    };
    prlimit(Some(d.pid()), Resource::Nofile, limit).unwrap();
    let mut most = 0;
    let mut ids = Vec::new();
    for n in 0..SESSIONS {
        let cwd = format!("/project/{}", n % 300);
        let made = d.ok("create_session", json!({"cwd": cwd}));
        let id = made["session"]["sessionId"].as_str().unwrap().to_owned();
        let text = format!("first of {n}");
        d.ok(
            "append_message",
            json!({"sessionId": id, "message": user(&text), "entryId": "e0"}),
        );
        most = most.max(descriptors(&d));
        ids.push(id);
    }
    // All sessions are used again, the oldest first, each with a read and an append.
    for round in 1..3 {
        for (n, id) in ids.iter().enumerate() {
            let entry = format!("e{round}");
            let first = d.ok("get_entry", json!({"sessionId": id, "entryId": "e0"}));
            assert_eq!(
                first["entry"]["message"]["content"],
                format!("first of {n}")
            );
            let params = json!({"sessionId": id, "message": user("on"), "entryId": entry});
            assert_eq!(d.ok("append_message", params)["leafId"], entry);
            most = most.max(descriptors(&d));
        }
    }
    println!("resources: {SESSIONS} sessions, at most {most} descriptors");
    assert!(most < 200, "{most} descriptors");
    // The daemon also notices entries of other programs in sessions whose files it has closed.
    let path = d.home.session_files().swap_remove(0);
    let id = file_lines(&path)[0]["id"].as_str().unwrap().to_owned();
    foreign_append(
        &path,
        &entry_line(3, "message", "o1", "e2", json!({"message": user("x")})),
    );
    let entry = d.ok("get_entry", json!({"sessionId": id, "entryId": "o1"}));
    assert_eq!(entry["entry"]["id"], "o1");
    for id in ids {
        d.ok("close_session", json!({"sessionId": id}));
    }
    assert!(
        descriptors(&d) < 30,
        "{} descriptors after closing",
        descriptors(&d)
    );
}

/// The client sends requests and does not read.
#[test]
fn unread_answers_stay_within_bounded_memory() {
    let requests = if is_long_run() { 100_000 } else { 20_000 };
    let mut d = Daemon::quiet();
    d.create();
    // All answers together are larger than the limit below.
    d.user("u1", &"x".repeat(40_000));
    let before = memory(&d);
    d.stop_reading();
    let mut asked = Vec::with_capacity(requests);
    let mut most = 0;
    for n in 0..requests {
        asked.push(match n % 4 {
            0 => d.send("get_entries", json!({})),
            1 => d.send("get_leaf", json!({"sessionId": "nobody"})),
            2 => d.send("no_such_method", json!({})),
            _ => d.send("get_leaf", json!({})),
        });
        if n % 1_000 == 0 {
            most = most.max(memory(&d));
        }
    }
    std::thread::sleep(Duration::from_millis(500));
    most = most.max(memory(&d));
    println!("resources: {before} bytes before, at most {most}");
    assert!(
        most - before < 150 << 20,
        "{} MiB more",
        (most - before) >> 20
    );
    d.read_on();
    for (n, id) in asked.iter().enumerate() {
        let answer = d.response(id).map_err(|error| error.kind);
        match n % 4 {
            0 => assert_eq!(answer.unwrap()["entries"][0]["id"], "u1"),
            1 => assert_eq!(answer.unwrap_err(), "sessionNotFound"),
            2 => assert_eq!(answer.unwrap_err(), "methodNotFound"),
            _ => assert_eq!(answer.unwrap()["leafId"], "u1"),
        }
    }
    // After this the daemon is as fast as before.
    let mut number = 1;
    takes_at_most(Duration::from_secs(1), || {
        number += 1;
        let began = Instant::now();
        d.user(&format!("u{number}"), "x");
        began.elapsed()
    });
}

/// The client sends many requests that wait for a lock.
#[test]
fn requests_that_wait_for_a_lock_stay_within_bounded_memory() {
    let requests = if is_long_run() { 100_000 } else { 12_000 };
    let mut d = Daemon::quiet();
    d.create();
    d.user("u1", "x");
    let path = d.home.only_file();
    let holder = fs::File::open(&path).unwrap();
    holder.lock().unwrap();
    let before = memory(&d);
    let text = "x".repeat(1_000);
    let asked: Vec<Json> = (0..requests)
        .map(|_| d.send("append_message", json!({"message": user(&text)})))
        .collect();
    let mut most = 0;
    for _ in 0..15 {
        std::thread::sleep(Duration::from_millis(100));
        most = most.max(memory(&d));
    }
    println!(
        "resources: {requests} waiting appends, {} MiB more",
        (most - before) >> 20
    );
    assert!(most - before < 150 << 20);
    holder.unlock().unwrap();
    let appended = asked.iter().filter(|id| d.response(id).is_ok()).count();
    assert_eq!(
        d.ids().len(),
        1 + appended,
        "the entries of successful requests are there, and no others"
    );
}

/// Memory grows with the number of entries, not with their size: lines of 4 MB are not kept in memory.
#[test]
fn memory_grows_with_entries_and_not_with_bytes() {
    let mut d = Daemon::quiet();
    let mut log = Log::new("s1");
    for n in 0..40 {
        log = log.user(&format!("n{n}"), "", &"x".repeat(4 << 20));
    }
    let path = d.home.file("large.jsonl", log.text().as_bytes());
    drop(log);
    let before = memory(&d);
    d.open(&path);
    let after = memory(&d);
    println!(
        "resources: a file of 160 MB costs {} MiB",
        after.saturating_sub(before) >> 20
    );
    assert!(after.saturating_sub(before) < 64 << 20);
}
