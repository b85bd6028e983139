//! Clients that do not read. The daemon stops reading requests, keeps within its limits, and still accepts answers to
//! its questions.

use std::fs::{self, File};
use std::time::Duration;

use crate::harness::*;

/// Makes a session with one large entry, so that a few answers fill any pipe.
fn with_a_large_entry(d: &mut Daemon) {
    d.create();
    d.user("big", &"y".repeat(40_000));
}

#[test]
fn a_client_that_stops_reading_receives_every_answer_later() {
    let mut d = Daemon::start_with(&["--max-queued-bytes", "1000000"], &[]);
    d.ignore_bookkeeping();
    with_a_large_entry(&mut d);
    d.stop_reading();
    let asked: Vec<_> = (0..500)
        .map(|_| d.send("get_entry", json!({"entryId": "big"})))
        .collect();
    d.until_idle();
    d.read_on();
    for id in asked {
        let entry = d
            .response(&id)
            .expect("without an open question nothing is refused");
        assert_eq!(entry["entry"]["id"], "big");
    }
}

/// On a busy machine the daemon may read all requests before it runs the first. Then no limit is reached, and no
/// request is refused. So the later requests are sent after the answers to the first ones fill the queue.
#[test]
fn a_stalled_client_can_answer_an_open_question() {
    let mut d = Daemon::start_with(&["--max-queued-bytes", "200000"], &[]);
    d.ignore_bookkeeping();
    d.ignore("event_resolved");
    d.ignore("events_lost");
    d.init(json!({"answers": {"session_before_tree": {}}}));
    with_a_large_entry(&mut d);
    d.chain(&["u1"]);
    let navigation = d.send("navigate_tree", json!({"targetId": "big", "rewind": true}));
    let event = d.notification("session_before_tree");
    d.stop_reading();
    let mut asked: Vec<_> = (0..100)
        .map(|_| d.send("get_entry", json!({"entryId": "big"})))
        .collect();
    d.until_idle();
    asked.extend((0..200).map(|_| d.send("get_entry", json!({"entryId": "big"}))));
    let append = d.send(
        "append_message",
        json!({"message": user("too much"), "entryId": "refused"}),
    );
    let answer = d.send(
        "answer_event",
        json!({"eventId": event["eventId"], "result": {"cancel": true}}),
    );
    d.until_idle();
    d.read_on();
    let mut overloaded = 0;
    for id in asked {
        match d.response(&id) {
            Ok(result) => assert_eq!(result["entry"]["id"], "big"),
            Err(error) => {
                assert_eq!((error.code, error.kind.as_str()), (-32009, "overloaded"));
                overloaded += 1;
            }
        }
    }
    assert!(overloaded > 0, "12 MB of answers do not fit 200 kB");
    assert_eq!(
        d.response(&append)
            .expect_err("refused like all others")
            .kind,
        "overloaded"
    );
    assert_eq!(
        d.response(&answer).expect("answers get through")["accepted"],
        true
    );
    assert_eq!(
        d.response(&navigation).unwrap()["reason"],
        "cancelledByClient"
    );
    assert_eq!(
        d.ids(),
        ["big", "u1"],
        "what was answered overloaded was not executed"
    );
}

/// A question that opened while the reader was paused once did not resume the reader. An abort in the pipe was not
/// read, and the navigation proceeded after its timeout.
#[test]
fn a_question_that_opens_while_the_reader_is_paused_resumes_it() {
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
    // The navigation waits for an append, which another process blocks.
    let holder = File::open(&path).unwrap();
    holder.lock().unwrap();
    let append = d.send(
        "append_message",
        json!({"sessionId": asked, "message": user("x"), "entryId": "u2"}),
    );
    let navigation = d.send(
        "navigate_tree",
        json!({"sessionId": asked, "targetId": "a1", "navigationId": "n", "answerTimeoutMs": 6000}),
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
    // This is long after the timeout of the question.
    std::thread::sleep(Duration::from_millis(7000));
    d.read_on();
    d.response(&append).unwrap();
    assert_eq!(d.response(&abort).unwrap()["aborted"], true);
    let navigated = d.response(&navigation).unwrap();
    assert_eq!(navigated["reason"], "aborted", "{navigated}");
    for id in reads {
        answered_or_overloaded(&mut d, &id);
    }
}

/// Checks that a request succeeded, or was refused with the error for overload.
#[track_caller]
fn answered_or_overloaded(d: &mut Daemon, id: &Json) {
    if let Err(error) = d.response(id) {
        assert_eq!(error.kind, "overloaded");
    }
}

fn path_id(path: &std::path::Path) -> String {
    file_lines(path)[0]["id"].as_str().unwrap().to_owned()
}

/// With an open question, requests of a client that did not read were once refused one by one, and the refusals stayed
/// in memory: 230 MB of requests took 914 MB. Above a hard limit the daemon stops reading, and answers every request it
/// has read.
#[test]
fn refusals_for_a_client_that_never_reads_stay_within_the_limit() {
    let mut d = Daemon::start_with(&["--max-queued-bytes", "200000"], &[]);
    d.ignore_bookkeeping();
    d.ignore("event_resolved");
    d.ignore("events_lost");
    d.init(json!({"answers": {"session_before_tree": {}}}));
    d.create();
    d.user("u1", &"y".repeat(40_000));
    d.user("u2", "x");
    let navigation = d.send(
        "navigate_tree",
        json!({"targetId": "u1", "answerTimeoutMs": 300_000}),
    );
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
        answered_or_overloaded(&mut d, &id);
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

/// Output and input once shared a thread. A client that was writing could not get answers, and both sides waited for
/// each other.
#[test]
fn a_navigation_is_answered_and_committed_while_the_client_does_not_read() {
    let mut d = Daemon::start_with(&["--max-queued-bytes", "50000000"], &[]);
    d.ignore_bookkeeping();
    d.ignore("event_resolved");
    d.init(json!({"answers": {"session_before_tree": {}}}));
    d.create();
    d.user("u1", &"x".repeat(30_000));
    d.chain(&["a1"]);
    let navigation = d.send("navigate_tree", json!({"targetId": "u1"}));
    let event = d.notification("session_before_tree");
    d.stop_reading();
    // The answers are far more than both pipes hold, and less than the daemon may queue.
    let asked: Vec<_> = (0..30)
        .map(|_| d.send("get_entry", json!({"entryId": "u1"})))
        .collect();
    let answer = d.send(
        "answer_event",
        json!({"eventId": event["eventId"], "result": {}}),
    );
    let path = d.home.only_file();
    eventually("the navigation commits while nobody reads", || {
        fs::read_to_string(&path)
            .unwrap()
            .contains("treelined.leaf")
    });
    d.read_on();
    for id in asked.iter().chain([&answer, &navigation]) {
        d.response(id).expect("answered");
    }
}
