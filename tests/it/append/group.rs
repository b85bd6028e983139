//! Group commit: appends that arrive together are written together (session-file.md §3). The appends are checked in
//! order, and each gets its own answer.
//!
//! A fault shows that the appends were one write: one system call fails, and all of their requests fail.

use std::path::Path;
use std::time::{Duration, Instant};

use super::*;
use crate::faults::{Shim, shimmed};

/// A session with u1 → a1, and its file.
fn begun() -> (Daemon, PathBuf) {
    let mut d = Daemon::quiet();
    d.create();
    d.chain(&["u1", "a1"]);
    let path = d.home.only_file();
    (d, path)
}

fn message(id: &str) -> (&'static str, Json) {
    let params = json!({"message": user("x"), "entryId": id});
    ("append_message", params)
}

fn messages(ids: &[&str]) -> Vec<(&'static str, Json)> {
    ids.iter().map(|id| message(id)).collect()
}

/// Sends the requests in one write, which is small enough for a pipe to take at once.
#[track_caller]
fn together(d: &mut Daemon, requests: Vec<(&'static str, Json)>) -> Vec<Json> {
    let requests: Vec<(Json, &str, Json)> = requests
        .into_iter()
        .map(|(method, params)| (d.fresh_id(), method, params))
        .collect();
    let bytes: usize = requests
        .iter()
        .map(|(id, method, params)| request(id, method, params).len() + 1)
        .sum();
    assert!(bytes <= 4096, "{bytes} bytes may arrive in pieces");
    d.send_together(&requests);
    requests.into_iter().map(|(id, _, _)| id).collect()
}

/// The outcome of each request: the id of its last entry, or the kind of its error.
fn outcomes(d: &mut Daemon, requests: &[Json]) -> Vec<String> {
    requests
        .iter()
        .map(|id| match d.response(id) {
            Ok(result) => result["leafId"].as_str().unwrap().to_owned(),
            Err(error) => error.kind,
        })
        .collect()
}

fn ids_in(path: &Path) -> Vec<String> {
    let lines = file_lines(path);
    let ids = lines.iter().skip(1).map(|line| line["id"].as_str());
    ids.map(|id| id.unwrap().to_owned()).collect()
}

/// Makes a daemon and calls `attempt`, up to ten times until `attempt` returns true. On a busy machine a daemon may
/// write the first appends before it reads the next ones, and then an attempt shows nothing.
#[track_caller]
fn attempts(arguments: &[&str], attempt: impl Fn(&Shim, &mut Daemon, &Path) -> bool) {
    for _ in 0..10 {
        let Some((shim, mut d, path)) = shimmed(arguments) else {
            return skip(
                Needs::Faults,
                "a failing system call: there is no C compiler",
            );
        };
        if attempt(&shim, &mut d, &path) {
            return;
        }
    }
    panic!("appends that arrive together are not one group, in ten attempts");
}

/// Returns true if all outcomes are `failed`, and false if only the first ones are, because the others were in a later
/// group.
#[track_caller]
fn all_failed(outcomes: &[String], failed: &str) -> bool {
    assert_eq!(outcomes[0], failed);
    outcomes.iter().all(|outcome| outcome == failed)
}

#[test]
fn appends_that_arrive_together_are_one_write() {
    attempts(&[], one_write_fails);
}

fn one_write_fails(shim: &Shim, d: &mut Daemon, path: &Path) -> bool {
    shim.act("write error 28\n");
    let mut requests = messages(&["u2", "u3"]);
    requests.push((
        "append_label",
        json!({"targetId": "u2", "label": "l", "entryId": "l1"}),
    ));
    let requests = together(d, requests);
    let is_one_write = all_failed(&outcomes(d, &requests), "storageFull");
    shim.is_done();
    if !is_one_write {
        return false;
    }
    assert_eq!(
        (d.leaf(), d.ids()),
        (json!("a1"), vec!["u1".to_owned(), "a1".to_owned()])
    );
    // The ids of the failed appends are free.
    let requests = together(d, messages(&["u3", "l1"]));
    assert_eq!(outcomes(d, &requests), ["u3", "l1"]);
    assert_eq!(ids_in(path), ["u1", "a1", "u3", "l1"]);
    true
}

#[test]
fn appends_that_arrive_together_are_one_sync() {
    attempts(&["--durability", "always"], one_sync_fails);
}

fn one_sync_fails(shim: &Shim, d: &mut Daemon, path: &Path) -> bool {
    shim.act("sync error 5\n");
    let requests = together(d, messages(&["u2", "u3", "u4"]));
    let is_one_sync = all_failed(&outcomes(d, &requests), "durabilityUnknown");
    shim.is_done();
    assert_eq!(
        d.leaf(),
        "u4",
        "they are in the file, and so they are indexed"
    );
    assert_eq!(ids_in(path), ["u1", "a1", "u2", "u3", "u4"]);
    let requests = together(d, messages(&["u5", "u6"]));
    assert_eq!(outcomes(d, &requests), ["u5", "u6"]);
    is_one_sync
}

/// The write is cut short at different bytes. Requests whose lines are complete in the file succeed. Requests with only
/// a part of their lines in the file fail, and name the ids that were written. The other requests leave no trace.
#[test]
fn a_short_write_is_answered_request_by_request() {
    let Some((shim, mut d, path)) = shimmed(&[]) else {
        return skip(Needs::Faults, "short writes: there is no C compiler");
    };
    d.ignore("diagnostics");
    let entry = |id: &str| json!({"type": "custom", "customType": "c", "id": id});
    let mut expected = vec!["u1".to_owned(), "a1".to_owned()];
    let mut cut = 1;
    loop {
        // Four requests, which append one, one, two and one entries.
        let new_ids: Vec<String> = (0..5).map(|n| format!("c{cut:04}-{n}")).collect();
        let groups: [&[String]; 4] = [&new_ids[..1], &new_ids[1..2], &new_ids[2..4], &new_ids[4..]];
        let requests = groups.iter().map(|group| {
            let entries: Vec<Json> = group.iter().map(|id| entry(id)).collect();
            ("append_entries", json!({ "entries": entries }))
        });
        let before = fs::read(&path).unwrap();
        shim.act(&format!("write short {cut}\n"));
        let requests = together(&mut d, requests.collect());
        let answers: Vec<_> = requests.iter().map(|id| d.response(id)).collect();
        let after = fs::read(&path).unwrap();
        assert!(after.starts_with(&before));
        let new = String::from_utf8(after[before.len()..].to_vec()).unwrap();
        let whole = |id: &String| {
            let is = |line| parse(line).is_ok_and(|entry| entry["id"] == id.as_str());
            new.lines().any(is)
        };
        let mut leaf = expected.last().unwrap().clone();
        for (group, answer) in groups.iter().zip(answers) {
            let there: Vec<String> = group.iter().filter(|id| whole(id)).cloned().collect();
            match answer {
                Ok(result) => {
                    assert_eq!(there, *group, "cut at {cut}");
                    assert_eq!(ids(&result["entryIds"]), *group);
                    leaf = there.last().unwrap().clone();
                }
                Err(error) => {
                    assert_eq!(error.kind, "storageFull");
                    let written = error.data["details"]["writtenIds"].clone();
                    let written = if written.is_null() {
                        vec![]
                    } else {
                        ids(&written)
                    };
                    assert_eq!(written, there, "cut at {cut}");
                    assert!(
                        there.len() < group.len(),
                        "all of it is there: cut at {cut}"
                    );
                }
            }
            expected.extend(there);
        }
        assert_eq!(
            d.leaf(),
            leaf,
            "cut at {cut}: the last that was appended whole"
        );
        assert_eq!(d.ids(), expected, "cut at {cut}");
        if cut > new.len() {
            // The write was longer than the cut, so everything was written.
            shim.act("");
            break;
        }
        shim.is_done();
        d.user(&format!("ok{cut}"), "there is room again");
        expected.push(format!("ok{cut}"));
        cut += 13;
    }
    d.ok("close_session", json!({}));
    d.open(&path);
    assert_eq!(d.ids(), expected);
}

#[test]
fn each_append_of_a_group_is_checked_after_the_earlier_ones() {
    let (mut d, path) = begun();
    let expecting = |id: &str, leaf: &str| {
        let params = json!({"message": user("x"), "entryId": id, "expectedLeafId": leaf});
        ("append_message", params)
    };
    let requests = together(
        &mut d,
        vec![
            expecting("u2", "a1"),
            expecting("u3", "u2"),
            expecting("no", "a1"),
            (
                "append_label",
                json!({"targetId": "u3", "label": "l", "entryId": "l1"}),
            ),
            (
                "append_message",
                json!({"message": user("x"), "entryId": "b1", "parentId": "u2"}),
            ),
            (
                "append_message",
                json!({"message": user("x"), "entryId": "no", "parentId": "nobody"}),
            ),
            message("u4"),
            // The first of these is a retry of u4, and the second is another entry with the same id.
            message("u4"),
            (
                "append_message",
                json!({"message": user("other"), "entryId": "u4"}),
            ),
            expecting("u5", "u4"),
        ],
    );
    let moved = d.response(&requests[2]).expect_err("the leaf has moved");
    assert_eq!(ids(moved.details("entries")), ["u2", "u3"]);
    assert_eq!(moved.details("leafId"), "u3");
    let others: Vec<Json> = requests
        .iter()
        .filter(|id| **id != requests[2])
        .cloned()
        .collect();
    assert_eq!(
        outcomes(&mut d, &others),
        [
            "u2",
            "u3",
            "l1",
            "b1",
            "entryNotFound",
            "u4",
            "u4",
            "duplicateEntryId",
            "u5"
        ]
    );
    assert_eq!(
        ids_in(&path),
        ["u1", "a1", "u2", "u3", "l1", "b1", "u4", "u5"]
    );
    let parent = |d: &mut Daemon, id: &str| d.entry(id)["parentId"].clone();
    assert_eq!(
        (parent(&mut d, "b1"), parent(&mut d, "u4")),
        (json!("u2"), json!("b1"))
    );
    assert_eq!(d.ok("get_label", json!({"entryId": "u3"}))["label"], "l");
}

#[test]
fn each_append_of_a_group_is_announced_on_its_own() {
    let mut d = Daemon::start();
    for name in ["session_opened", "session_closed"] {
        d.ignore(name);
    }
    d.create();
    d.user("u1", "x");
    d.notification("entries_appended");
    let requests = together(
        &mut d,
        vec![
            message("u2"),
            ("set_session_name", json!({"name": "first"})),
            message("u3"),
            ("set_session_name", json!({"name": "second"})),
            (
                "append_message",
                json!({"message": user("x"), "entryId": "b1", "parentId": null}),
            ),
        ],
    );
    for id in &requests {
        d.response(id).expect("appended");
    }
    let announced = d.received("entries_appended");
    let seen: Vec<_> = announced
        .iter()
        .map(|announced| ids(&announced["entryIds"]))
        .collect();
    assert_eq!(seen.len(), requests.len(), "{announced:?}");
    for (announced, seen) in announced.iter().zip(&seen) {
        assert_eq!(
            (&announced["leafId"], &announced["fileLeafId"]),
            (&json!(seen[0]), &json!(seen[0]))
        );
    }
    assert_eq!(
        (&seen[0][0], &seen[2][0], &seen[4][0]),
        (&"u2".into(), &"u3".into(), &"b1".into())
    );
    let names = d.received("session_info_changed");
    let names: Vec<&Json> = names.iter().map(|announced| &announced["name"]).collect();
    assert_eq!(names, ["first", "second"]);
}

#[test]
fn reads_and_moves_between_appends_keep_their_order() {
    let (mut d, path) = begun();
    let requests = together(
        &mut d,
        vec![
            message("u2"),
            ("get_leaf", json!({})),
            message("u3"),
            message("u4"),
            ("set_leaf", json!({"leafId": "u1"})),
            message("b1"),
            ("get_leaf", json!({})),
        ],
    );
    let answers: Vec<Json> = requests
        .iter()
        .map(|id| d.response(id).expect("it works"))
        .collect();
    assert_eq!(answers[1]["leafId"], "u2", "no later append is seen");
    assert_eq!(answers[4]["oldLeafId"], "u4");
    assert_eq!(answers[6]["leafId"], "b1");
    assert_eq!(d.entry("b1")["parentId"], "u1");
    assert_eq!(file_lines(&path).len(), 1 + 7);
}

/// The first append starts its own write. While another process holds the lock, later appends wait for that write.
#[test]
fn appends_that_wait_for_a_lock_together_are_one_write() {
    let Some((shim, mut d, path)) = shimmed(&[]) else {
        return skip(Needs::Faults, "a failing write: there is no C compiler");
    };
    // An append waits 2 s for the lock. On a busy machine the daemon may not have read all appends when the lock is
    // released. Then the test tries again.
    let waited = (0..10).any(|attempt| wait_together(&shim, &mut d, &path, attempt));
    assert!(
        waited,
        "appends that wait for a lock are not one write, in ten attempts"
    );
}

/// Returns false if the attempt proves nothing: sending took too long, or the waiting appends became several writes.
fn wait_together(shim: &Shim, d: &mut Daemon, path: &Path, attempt: usize) -> bool {
    let before = ids_in(path);
    let id = |name: &str| format!("{name}-{attempt}");
    let holder = fs::File::open(path).unwrap();
    holder.lock().unwrap();
    let began = Instant::now();
    let first = d.send("append_message", message(&id("first")).1);
    // The daemon answers this request at once, after it has started the first append.
    d.err_kind(
        "get_leaf",
        json!({"sessionId": "nobody"}),
        "sessionNotFound",
    );
    let waiting = (0..12).map(|n| message(&id(&format!("w{n}"))));
    let waiting: Vec<Json> = together(d, waiting.collect());
    let seen = d.send("get_leaf", json!({}));
    let after = d.send("append_message", message(&id("after")).1);
    let cancelled = &waiting[7];
    d.ok("$/cancel_request", json!({"requestId": cancelled}));
    let answer = d.response(cancelled).expect_err("cancelled");
    let others = waiting.iter().filter(|id| *id != cancelled);
    if began.elapsed() > Duration::from_secs(1) {
        holder.unlock().unwrap();
        for id in others.chain([&first, &seen, &after]) {
            let _whatever = d.response(id);
        }
        return false;
    }
    assert_eq!(answer.kind, "cancelled");
    // The first append is one write, and the waiting appends are a second one, which fails.
    shim.act("write pass 0\nwrite error 28\n");
    holder.unlock().unwrap();
    d.response(&first).expect("the lock is free");
    let mut expected = vec![id("first")];
    for answer in others {
        match d.response(answer) {
            Ok(appended) => expected.push(appended["entryId"].as_str().unwrap().to_owned()),
            Err(error) => assert_eq!(error.kind, "storageFull"),
        }
    }
    let is_one_write = expected.len() == 1;
    let seen = d.response(&seen).expect("read");
    assert_eq!(seen["leafId"], *expected.last().unwrap());
    d.response(&after).expect("its own write");
    expected.push(id("after"));
    shim.is_done();
    assert_eq!(ids_in(path).split_off(before.len()), expected);
    is_one_write
}

/// More appends wait than fit into one write.
#[test]
fn a_group_larger_than_one_write_is_written_whole() {
    let (mut d, path) = begun();
    let holder = fs::File::open(&path).unwrap();
    holder.lock().unwrap();
    let text = "x".repeat(700 << 10);
    let params = |n: usize| json!({"message": user(&text), "entryId": format!("w{n}")});
    let send = |d: &mut Daemon, n: usize| d.send("append_message", params(n));
    let waiting: Vec<Json> = (0..8).map(|n| send(&mut d, n)).collect();
    holder.unlock().unwrap();
    for (n, id) in waiting.iter().enumerate() {
        // On a slow machine sending may take longer than the 2 s for which an append waits.
        if let Err(error) = d.response(id) {
            assert_eq!(error.kind, "sessionLocked");
            d.ok("append_message", params(n));
        }
    }
    let mut written = ids_in(&path).split_off(2);
    written.sort();
    let all: Vec<String> = (0..8).map(|n| format!("w{n}")).collect();
    assert_eq!(written, all);
}
