//! What waits for what: no session for another one's file, no answer for a client that does not read, no
//! end of the process for what has been acknowledged; and what clients give within bounds.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::time::Duration;

use crate::faults::{Shim, quiet, skip};
use crate::harness::*;

/// A session of about so many megabytes, slow to open.
fn large(home: &Home, megabytes: usize) -> std::path::PathBuf {
    let path = home.files().join("large.jsonl");
    let mut file = std::io::BufWriter::new(File::create(&path).unwrap());
    let header = Log::new("large");
    writeln!(file, "{}", header.line(0)).unwrap();
    for n in 0..megabytes * 4096 {
        // Small entries: each takes a while.
        let members = json!({"customType": "c", "data": "x".repeat(100)});
        let line = entry_line(1, "custom", &format!("e{n}"), "", members);
        writeln!(file, "{line}").unwrap();
    }
    file.flush().unwrap();
    path
}

/// While a session was being opened, nobody could open, make or close another one, and no list came.
#[test]
fn other_sessions_do_not_wait_for_a_slow_opening() {
    let home = Home::in_memory();
    let Some(shim) = Shim::new(&home) else {
        return skip("a slow disk: there is no C compiler");
    };
    let path = large(&home, 4);
    let mut d = quiet(&home, &[], &shim.env());
    d.deadline = Duration::from_secs(60);
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
    // What names the slow one, or none, waits for it.
    let which = d.send("get_leaf", json!({}));
    d.still_waits(&behind);
    d.still_waits(&which);
    d.response(&slow).unwrap();
    assert!(d.response(&behind).unwrap()["leafId"].is_string());
    let error = d.response(&which).expect_err("three are open");
    assert_eq!(error.kind, "invalidParams");
}

/// Requests about one session keep their order, whichever of them has to wait for its file.
#[test]
fn requests_about_one_session_keep_their_order_while_it_is_opened() {
    let home = Home::in_memory();
    let path = large(&home, 4);
    let mut d = quiet(&home, &[], &[]);
    d.deadline = Duration::from_secs(60);
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

/// A question that opened while the reader waited for the client to read did not let it read on: an
/// abort in the pipe was not heard, and the navigation went on after its time.
#[test]
fn a_question_that_opens_while_the_reader_is_paused_lets_it_read_on() {
    let mut d = Daemon::start_with(&["--max-queued-bytes", "200000"], &[]);
    d.ignore_bookkeeping();
    d.ignore("event_resolved");
    d.ignore("events_lost");
    d.init(json!({"answers": {"session_before_tree": {}}}));
    d.create();
    d.chain(&["u1", "a1"]);
    let path = d.home.only_file();
    let asked = path_id(&path);
    let other = d.ok("create_session", json!({}))["session"]["sessionId"].clone();
    let big = json!({"sessionId": other, "message": user(&"y".repeat(40_000)), "entryId": "big"});
    d.ok("append_message", big);
    // The navigation stands behind an append that another process holds up.
    let holder = File::open(&path).unwrap();
    holder.lock().unwrap();
    let append = d.send(
        "append_message",
        json!({"sessionId": asked, "message": user("x"), "entryId": "u2"}),
    );
    let navigation = d.send(
        "navigate_tree",
        json!({"sessionId": asked, "targetId": "a1", "navigationId": "n", "answerTimeoutMs": 1500}),
    );
    d.stop_reading();
    let reads: Vec<Json> = (0..60)
        .map(|_| d.send("get_entry", json!({"sessionId": other, "entryId": "big"})))
        .collect();
    let abort = d.send(
        "abort_navigation",
        json!({"sessionId": asked, "navigationId": "n"}),
    );
    std::thread::sleep(Duration::from_millis(500));
    holder.unlock().unwrap();
    // Long after the answer's time.
    std::thread::sleep(Duration::from_millis(2500));
    d.read_on();
    d.response(&append).unwrap();
    assert_eq!(d.response(&abort).unwrap()["aborted"], true);
    let navigated = d.response(&navigation).unwrap();
    assert_eq!(navigated["reason"], "aborted", "{navigated}");
    for id in reads {
        let _answered_or_refused = d.response(&id);
    }
}

fn path_id(path: &std::path::Path) -> String {
    file_lines(path)[0]["id"].as_str().unwrap().to_owned()
}

/// With an open question a client that never read was refused request by request, and the refusals
/// piled up: 230 MB of requests made 914 MB of memory. Above a hard limit nothing is read, and what was
/// read is answered all the same.
#[test]
fn refusals_do_not_pile_up_for_a_client_that_never_reads() {
    let mut d = Daemon::start_with(&["--max-queued-bytes", "200000"], &[]);
    d.ignore_bookkeeping();
    d.ignore("event_resolved");
    d.ignore("events_lost");
    d.deadline = Duration::from_secs(60);
    d.init(json!({"answers": {"session_before_tree": {}}}));
    d.create();
    d.user("u1", &"y".repeat(40_000));
    d.user("u2", "x");
    let navigation = d.send("navigate_tree", json!({"targetId": "u1"}));
    let event = d.notification("session_before_tree");
    d.stop_reading();
    let before = resident(&d);
    let mut requests: Vec<Json> = (0..20)
        .map(|_| d.send("get_entry", json!({"entryId": "u1"})))
        .collect();
    requests.extend((0..60_000).map(|_| d.send("get_leaf", json!({}))));
    std::thread::sleep(Duration::from_millis(1500));
    let more = resident(&d).saturating_sub(before);
    println!("waiting: {more} bytes more");
    assert!(more < 8 << 20, "{more} bytes more");
    d.read_on();
    for id in requests {
        let _answered_or_refused = d.response(&id);
    }
    d.answer(&event, json!({"cancel": true}));
    assert_eq!(
        d.response(&navigation).unwrap()["reason"],
        "cancelledByClient"
    );
}

/// Resident memory in bytes.
fn resident(d: &Daemon) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", d.pid().as_raw_nonzero())).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib << 10
}

/// With `interval`, an append that had been answered was not synced if the client stopped listening
/// within the next 50 ms.
#[test]
fn what_was_acknowledged_is_synced_when_nobody_listens_any_more() {
    let home = Home::new();
    let Some(shim) = Shim::new(&home) else {
        return skip("slow syncs: there is no C compiler");
    };
    // Whoever is slow may find that the 50 ms are over: then nothing is learnt.
    let mut child = home
        .command(&["--durability", "interval"], &shim.env())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut ask = |stdin: &mut std::process::ChildStdin, id: u32, method: &str, params: Json| {
        writeln!(stdin, "{}", request(&json!(id), method, &params)).unwrap();
        let mut line = String::new();
        loop {
            line.clear();
            stdout.read_line(&mut line).unwrap();
            if parse(&line).unwrap()["id"] == id {
                return parse(&line).unwrap();
            }
        }
    };
    ask(&mut stdin, 1, "create_session", json!({}));
    ask(
        &mut stdin,
        2,
        "append_message",
        json!({"message": user("x")}),
    );
    std::thread::sleep(Duration::from_millis(200));
    shim.act("sync pause 1\n");
    let last = ask(
        &mut stdin,
        3,
        "append_message",
        json!({"message": user("y")}),
    );
    assert_eq!(last["result"]["durability"], "interval");
    drop(stdout);
    writeln!(stdin, "{}", request(&json!(4), "get_leaf", &json!({}))).unwrap();
    wait(&mut child, Duration::from_secs(5));
    shim.is_done();
    drop(stdin);
}

/// A clock before 1970 made `create_session` panic.
#[test]
fn a_clock_before_1970_is_no_reason_to_fail() {
    let home = Home::new();
    let Some(shim) = Shim::new(&home) else {
        return skip("another clock: there is no C compiler");
    };
    for clock in ["-1", "-86400000000"] {
        let [library, actions, synced] = shim.env();
        let mut d = quiet(
            &home,
            &[],
            &[library, actions, synced, ("SHIM_CLOCK", clock)],
        );
        d.let_complain();
        for name in ["session_before_fork", "session_fork"] {
            d.ignore(name);
        }
        let id = d.create();
        d.chain(&["u1", "a1"]);
        assert_eq!(d.leaf(), "a1");
        d.ok("get_tree", json!({}));
        d.ok("get_navigation_log", json!({}));
        let fork = d.ok("fork_session", json!({"sessionId": id, "position": "at"}));
        let fork = fork["session"]["sessionId"].as_str().unwrap().to_owned();
        assert_ne!(fork, id);
        d.ok("list_sessions", json!({}));
        for id in [id, fork] {
            d.ok("close_session", json!({"sessionId": id}));
            d.ok("delete_session", json!({"sessionId": id}));
        }
    }
}

/// The `details` of a client's summary were stored however deep: five million levels, which no parser
/// reads back.
#[test]
fn nesting_over_256_is_refused_wherever_a_client_gives_what_is_stored() {
    let mut d = Daemon::start();
    d.ignore_bookkeeping();
    for name in [
        "event_resolved",
        "session_before_compact",
        "session_compact",
    ] {
        d.ignore(name);
    }
    let answers = json!({"session_before_tree": {}, "session_before_compact": {}});
    d.init(json!({ "answers": answers }));
    d.create();
    d.chain(&["u1", "a1", "u2", "a2"]);
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let refused = |d: &mut Daemon, method: &str, params: &str, field: &str| {
        let id = d.send_text(method, params);
        let error = d.response(&id).expect_err(method);
        assert_eq!(error.kind, "entryInvalid", "{method}: {error:?}");
        assert_eq!(error.details("field"), field, "{method}");
    };
    let usage = json!({"entryId": "a1", "summary": {"summary": "s", "usage": {"input": "many"}}});
    refused(&mut d, "branch", &usage.to_string(), "summary.usage.input");
    for (levels, is_refused) in [(257, true), (5_000_000, true), (256, false)] {
        let details = nested(levels);
        let leaf = d.leaf();
        let branch =
            format!(r#"{{"entryId":"a1","summary":{{"summary":"s","details":{details}}}}}"#);
        if is_refused {
            refused(&mut d, "branch", &branch, "summary.details");
            let message =
                format!(r#"{{"customType":"c","content":"x","display":true,"details":{details}}}"#);
            refused(&mut d, "send_message", &message, "");
            assert_eq!(d.leaf(), leaf, "nothing was written");
        }
        let wanted = json!({"targetId": "u1", "summarize": true});
        let navigation = d.send("navigate_tree", wanted);
        let event = d.notification("session_before_tree");
        let event_id = event["eventId"].as_str().unwrap();
        let answer = format!(
            r#"{{"eventId":"{event_id}","result":{{"summary":{{"summary":"s","details":{details}}}}}}}"#
        );
        if is_refused {
            refused(&mut d, "answer_event", &answer, "result.summary.details");
            d.still_waits(&navigation);
            d.answer(&event, json!({"cancel": true}));
            assert_eq!(d.response(&navigation).unwrap()["cancelled"], true);
        } else {
            let id = d.send_text("answer_event", &answer);
            assert_eq!(d.response(&id).unwrap()["accepted"], true);
            assert_eq!(d.response(&navigation).unwrap()["cancelled"], false);
        }
    }
    d.set_leaf(Some("a2"));
    let compaction = d.send("compact", json!({"keepRecentTokens": 1}));
    let event = d.notification("session_before_compact");
    let event_id = event["eventId"].as_str().unwrap();
    let details = nested(257);
    let answer = format!(
        r#"{{"eventId":"{event_id}","result":{{"compaction":{{"summary":"s","details":{details}}}}}}}"#
    );
    refused(&mut d, "answer_event", &answer, "result.compaction.details");
    d.answer(&event, json!({"compaction": {"summary": "s"}}));
    d.response(&compaction).unwrap();
}
