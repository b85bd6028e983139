//! A connection that stalls or dies does not delay the others.

use crate::harness::*;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// A client that only reads, and keeps the responses.
struct Listener {
    stream: UnixStream,
    responses: Receiver<String>,
}

impl Listener {
    fn new(shared: &SharedDaemon, session_id: &str) -> Listener {
        let stream = UnixStream::connect(&shared.socket).unwrap();
        let reader = BufReader::new(stream.try_clone().unwrap());
        let (sender, responses) = channel();
        thread::spawn(move || {
            let lines = reader.lines().map_while(Result::ok);
            for line in lines.filter(|line| line.contains("\"id\":")) {
                let _ = sender.send(line);
            }
        });
        let listener = Listener { stream, responses };
        listener.send("open_session", json!({"sessionId": session_id}));
        listener.response();
        listener
    }

    fn send(&self, method: &str, params: Json) {
        let line = request(&json!(1), method, &params) + "\n";
        (&self.stream).write_all(line.as_bytes()).unwrap();
    }

    fn response(&self) -> String {
        self.responses.recv_timeout(DEADLINE).unwrap()
    }
}

#[test]
fn a_stalled_client_among_200_holds_up_nobody() {
    let shared = SharedDaemon::start_with(&["--max-queued-bytes", "65536"], &[]);
    let mut writer = shared.client("writer", json!({}));
    let id = writer.create();
    let mut stalled = shared.client("stalled", json!({}));
    stalled.ok("open_session", json!({"sessionId": id}));
    stalled.ignore("events_lost");
    let others: Vec<Listener> = (0..198).map(|_| Listener::new(&shared, &id)).collect();
    stalled.stop_reading();
    let text = "x".repeat(1 << 10);
    for n in 0..1_000 {
        let append = json!({"message": user(&text), "entryId": format!("e{n}")});
        writer.send("append_message", append);
        if n % 100 == 0 {
            stalled.send("get_entries", json!({}));
        }
    }
    // The stalled client reads again only after this loop. A daemon that waited for it would wait for ever.
    for other in &others {
        other.send("get_leaf", json!({}));
        assert!(other.response().contains("\"leafId\""));
    }
    assert_eq!(writer.ok("get_leaf", json!({}))["leafId"], "e999");
    stalled.read_on();
    // The daemon must report the numbers of lost notifications: the harness checks this.
    assert_eq!(stalled.ok("get_leaf", json!({}))["leafId"], "e999");
    writer.claim_responses();
    stalled.claim_responses();
}

#[test]
fn a_client_that_is_killed_in_the_middle_of_a_frame_harms_nobody() {
    let shared = SharedDaemon::start();
    let mut stays = shared.client("stays", json!({}));
    let id = stays.create();
    stays.user("u1", "x");
    for bytes in [
        &b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"append_mes"[..],
        b"Content-Length: 4000\r\n\r\n{\"jsonrpc\":",
        b"Content-Le",
        b"",
    ] {
        let mut stream = UnixStream::connect(&shared.socket).unwrap();
        stream.write_all(bytes).unwrap();
        drop(stream);
    }
    let mut both = shared.client("late", json!({}));
    both.ok("open_session", json!({"sessionId": id}));
    assert_eq!(both.ids(), ["u1"]);
}

/// If a client reads nothing, the notifications that must not be dropped wait for it in the memory of the daemon. The
/// other clients are not delayed.
#[test]
fn notifications_for_a_client_that_never_reads_are_bounded() {
    let shared = SharedDaemon::start_with(&["--max-queued-bytes", "65536"], &[]);
    let mut mover = shared.client("mover", json!({}));
    let id = mover.create();
    mover.chain(&["u1", "a1"]);
    let mut deaf = shared.client("deaf", json!({}));
    deaf.ok("open_session", json!({"sessionId": id}));
    deaf.stop_reading();
    for n in 0..12_000 {
        mover.send(
            "set_leaf",
            json!({"leafId": (if n % 2 == 0 { "u1" } else { "a1" })}),
        );
    }
    mover.ok("get_leaf", json!({}));
    mover.claim_responses();
    deaf.read_on();
    deaf.ok("get_leaf", json!({}));
    let gaps = deaf.received("events_lost").len();
    assert!(
        (1..=2).contains(&gaps),
        "one gap, or one in each of two writes: {gaps}"
    );
}

/// The daemon once waited 8 s for the thread that writes to such a client.
#[test]
fn a_client_that_reads_nothing_does_not_hold_up_the_end_of_the_daemon() {
    takes_at_most(Duration::from_secs(5), || {
        let mut shared = SharedDaemon::start();
        let mut writer = shared.client("writer", json!({}));
        let id = writer.create();
        let mut deaf = shared.client("deaf", json!({}));
        deaf.ok("open_session", json!({"sessionId": id}));
        deaf.stop_reading();
        for n in 0..4_000 {
            let append = json!({"message": user("x"), "entryId": format!("e{n}")});
            writer.send("append_message", append);
        }
        writer.ok("get_leaf", json!({}));
        writer.claim_responses();
        let begun = Instant::now();
        shared.signal(rustix::process::Signal::TERM);
        assert_eq!(shared.exited(), Some(0));
        let took = begun.elapsed();
        deaf.read_on();
        deaf.kill();
        took
    });
}
