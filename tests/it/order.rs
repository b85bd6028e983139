//! The order of requests: requests to one session stay in order, and no request waits for another session.

use std::fs::File;
use std::io::Write;

use crate::faults::{Shim, quiet};
use crate::harness::*;

/// A session file of about `megabytes` MB, which is slow to open.
fn large(home: &Home, megabytes: usize) -> std::path::PathBuf {
    let path = home.files().join("large.jsonl");
    let mut file = std::io::BufWriter::new(File::create(&path).unwrap());
    let header = Log::new("large");
    writeln!(file, "{}", header.line(0)).unwrap();
    for n in 0..megabytes * 4096 {
        // There are many small entries, and each takes time to read.
        let members = json!({"customType": "c", "data": "x".repeat(100)});
        let line = entry_line(1, "custom", &format!("e{n}"), "", members);
        writeln!(file, "{line}").unwrap();
    }
    file.flush().unwrap();
    path
}

/// While a session was being opened, no other session could once be opened, created or closed, and no list was
/// answered.
#[test]
fn other_sessions_do_not_wait_for_a_slow_opening() {
    let home = Home::in_memory();
    let Some(shim) = Shim::new(&home) else {
        return skip(Needs::Faults, "a slow disk: there is no C compiler");
    };
    let path = large(&home, 4);
    let mut d = quiet(&home, &[], &shim.env());
    let small = Log::new("small").user("u1", "", "x").save(&home);
    let open_already = d.create();
    d.user("u1", "x");
    shim.act("read pause 3000");
    let slow = d.send("open_session", json!({"path": path}));
    let behind = d.send("get_leaf", json!({"sessionId": "large"}));
    let by_path = d.send("open_session", json!({"path": small}));
    let made = d.send("create_session", json!({"sessionId": "made"}));
    let closed = d.send("close_session", json!({"sessionId": open_already}));
    let listed = d.send("list_sessions", json!({}));
    for id in [by_path, made, closed, listed] {
        d.response(&id).unwrap();
    }
    let appended = json!({"sessionId": "small", "message": user("y"), "entryId": "u2"});
    assert_eq!(d.ok("append_message", appended)["leafId"], "u2");
    d.still_waits(&slow);
    // Requests that name this session, or no session, wait until it is open.
    let which = d.send("get_leaf", json!({}));
    d.still_waits(&behind);
    d.still_waits(&which);
    d.response(&slow).unwrap();
    assert!(d.response(&behind).unwrap()["leafId"].is_string());
    let error = d.response(&which).expect_err("three are open");
    assert_eq!(error.kind, "invalidParams");
}

/// The requests of one session stay in order even if some of them wait for the file.
#[test]
fn requests_for_a_session_keep_their_order_while_it_is_opened() {
    let home = Home::in_memory();
    let path = large(&home, 4);
    let mut d = quiet(&home, &[], &[]);
    let message = |id: &str| json!({"sessionId": "large", "message": user("x"), "entryId": id});
    let requests = [
        d.send("open_session", json!({"path": path})),
        d.send("append_message", message("a1")),
        d.send("append_message", message("a2")),
        d.send("close_session", json!({"sessionId": "large"})),
        d.send("open_session", json!({"path": path})),
        d.send("open_session", json!({"path": path})),
        d.send("get_leaf", json!({"sessionId": "large"})),
    ];
    let results: Vec<Json> = requests.iter().map(|id| d.response(id).unwrap()).collect();
    assert_eq!(results[1]["leafId"], "a1");
    assert_eq!(results[2]["leafId"], "a2");
    assert_eq!(results[4]["session"]["leafId"], "a2");
    assert_eq!(results[5]["session"]["leafId"], "a2", "the same session");
    assert_eq!(results[6]["leafId"], "a2");
}

/// The first requests of a script once waited for `create_session` and were then started together on two threads. An
/// append then overtook the `branch` after it, or a `branch` overtook a delayed append before it.
#[test]
fn requests_that_wait_for_create_session_keep_their_order() {
    for _ in 0..20 {
        let home = Home::new();
        let step = |id: u32, method: &str, params: Json| {
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
        };
        let mut lines = vec![step(0, "create_session", json!({"sessionId": "s"}))];
        let first = json!({"message": user("u"), "entryId": "e1"});
        lines.push(step(1, "append_message", first));
        for n in 2..12 {
            let id = format!("e{n}");
            let message = json!({"message": user("u"), "entryId": id, "sessionId": "s"});
            lines.push(step(2 * n, "append_message", message));
            lines.push(step(2 * n + 1, "branch", json!({"entryId": "e1"})));
        }
        script_in(&home, &[], &lines);
        let lines = file_lines(&home.only_file());
        let entries: Vec<_> = lines.iter().filter(|l| l["type"] == "message").collect();
        assert_eq!(entries.len(), 11);
        for entry in &entries[1..] {
            assert_eq!(entry["parentId"], "e1");
        }
    }
}

/// A fork once held the session and waited for the list of sessions, while `close_session` held the list and waited for
/// the session. Neither was answered, and the end of stdin did not end the daemon.
#[test]
fn a_close_behind_a_fork_does_not_deadlock() {
    for handshake in [true, false] {
        for second in ["close_session", "delete_session"] {
            let mut d = Daemon::quiet();
            d.ignore("session_before_fork");
            d.ignore("session_fork");
            if handshake {
                d.init(json!({}));
            }
            let session = d.create();
            d.chain(&["a", "b", "c"]);
            let fork = json!({"sessionId": session, "entryId": "b", "position": "at"});
            let fork = d.send("fork_session", fork);
            let second = d.send(second, json!({"sessionId": session}));
            assert_eq!(d.response(&fork).expect("forked")["cancelled"], false);
            d.response(&second).expect("closed");
        }
    }
}

/// The question before a fork once blocked the session, so that reads waited for the answer.
#[test]
fn reads_do_not_wait_for_the_question_before_a_fork() {
    let mut d = Daemon::quiet();
    d.ignore("event_resolved");
    d.init(json!({"answers": {"session_before_fork": {}}}));
    d.create();
    d.chain(&["a", "b"]);
    let fork = d.send("fork_session", json!({"entryId": "b", "position": "at"}));
    let event = d.notification("session_before_fork");
    assert_eq!(d.ok("get_leaf", json!({}))["leafId"], "b");
    d.ok(
        "answer_event",
        json!({"eventId": event["eventId"], "result": {"cancel": true}}),
    );
    assert_eq!(d.response(&fork).expect("answered")["cancelled"], true);
}

/// Sends requests to a daemon in one write, and returns the lines of its stdout.
fn in_one_write(durability: &str, requests: &[(String, &str, Json)]) -> Vec<Json> {
    let new = request(&json!("new"), "create_session", &json!({"sessionId": "s1"}));
    let lines = requests
        .iter()
        .map(|(id, method, params)| request(&json!(id), method, params));
    let lines: Vec<String> = [new].into_iter().chain(lines).collect();
    let args = ["--durability", durability];
    let output = Home::new().run(&args, &[], lines.join("\n") + "\n");
    output.clean().lines()
}

/// The ids of the responses that begin with `e`, in the order of the responses.
fn answered(lines: &[Json]) -> Vec<&str> {
    let ids = lines.iter().filter_map(|line| line["id"].as_str());
    ids.filter(|id| id.starts_with('e')).collect()
}

/// Appends with `durability: always` were once synced and answered by separate tasks, so that a response could overtake
/// its notification.
#[test]
fn commits_are_announced_and_answered_in_their_order() {
    let ids: Vec<String> = (0..60).map(|n| format!("e{n}")).collect();
    let append = |id: &String| {
        let message = json!({"message": user("x"), "entryId": id});
        // A request between two appends puts them into two commits.
        let between = (format!("leaf-{id}"), "get_leaf", json!({}));
        [(id.clone(), "append_message", message), between]
    };
    let requests: Vec<_> = ids.iter().flat_map(append).collect();
    for durability in ["always", "os"] {
        let lines = in_one_write(durability, &requests);
        let mut announced = Vec::new();
        for line in &lines {
            if line["method"] == "entries_appended" {
                announced.push(line["params"]["entryIds"][0].as_str().unwrap());
            } else if let Some(id) = line["result"]["entryId"].as_str() {
                assert!(announced.contains(&id), "{id} is answered first");
            }
        }
        assert_eq!(announced, ids, "{durability}");
        assert_eq!(answered(&lines), ids, "{durability}");
    }
}

/// Moves of the leaf and appends keep one common order, although different code runs them.
#[test]
fn moves_and_appends_are_answered_in_the_order_of_their_commits() {
    let ids: Vec<String> = (0..40).map(|n| format!("e{n}")).collect();
    let requests: Vec<_> = ids
        .iter()
        .enumerate()
        .map(|(n, id)| match n % 2 {
            0 => (
                id.clone(),
                "append_message",
                json!({"message": user("x"), "entryId": id}),
            ),
            _ => (id.clone(), "set_leaf", json!({"leafId": null})),
        })
        .collect();
    let lines = in_one_write("always", &requests);
    assert_eq!(answered(&lines), ids);
}

/// A session was once open only some microseconds after the client had the response. A request that takes no place in
/// the queue of the session then found no open session, in 14 of 3,000 rounds.
#[test]
fn a_session_is_open_when_the_response_is_read() {
    let mut d = Daemon::quiet();
    let id = d.create();
    d.user("u1", "x");
    d.ok("close_session", json!({"sessionId": id}));
    let notice = json!({"sessionId": id, "message": "x", "level": "info"});
    for _ in 0..1000 {
        d.ok("open_session", json!({"sessionId": id}));
        d.ok("notify_user", notice.clone());
        d.ok("close_session", json!({"sessionId": id}));
    }
}

#[test]
fn what_takes_no_place_waits_for_the_opening_of_its_session() {
    let mut d = Daemon::quiet();
    let id = d.create();
    d.user("u1", "x");
    d.ok("close_session", json!({"sessionId": id}));
    let about = |mut params: Json| {
        params["sessionId"] = json!(id);
        params
    };
    let notice = about(json!({"message": "x", "level": "info"}));
    let question = about(json!({"kind": "confirm", "title": "x"}));
    for (method, params, expect) in [
        ("notify_user", notice, None),
        ("ask_user", question, Some("noUser")),
        (
            "run_command",
            about(json!({"name": "x"})),
            Some("commandNotFound"),
        ),
    ] {
        let opening = d.send("open_session", json!({"sessionId": id}));
        let asked = d.send(method, params.clone());
        d.response(&opening).unwrap();
        let error = d.response(&asked).err();
        let kind = error.map(|error| error.kind);
        assert_eq!(kind, expect.map(str::to_owned), "{method}");
        d.ok("close_session", json!({"sessionId": id}));
        d.err_kind(method, params, "sessionNotFound");
    }
}
