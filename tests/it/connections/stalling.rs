//! A connection that stalls or dies holds up nobody.

use crate::harness::*;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

#[test]
fn a_stalled_client_among_200_holds_up_nobody() {
    let shared = SharedDaemon::start_with(&["--max-queued-bytes", "65536"], &[]);
    let mut writer = shared.client("writer", json!({}));
    let id = writer.create();
    let mut others: Vec<Daemon> = (0..199)
        .map(|_| shared.client("other", json!({})))
        .collect();
    let (stalled, others) = others.split_first_mut().unwrap();
    for client in others.iter_mut().chain([&mut *stalled]) {
        client.ok("open_session", json!({"sessionId": id}));
        client.ignore("events_lost");
    }
    stalled.stop_reading();
    let text = "x".repeat(1 << 10);
    for n in 0..2_000 {
        let append = json!({"message": user(&text), "entryId": format!("e{n}")});
        writer.send("append_message", append);
        if n % 100 == 0 {
            stalled.send("get_entries", json!({}));
        }
    }
    let begun = Instant::now();
    for client in others.iter_mut() {
        client.ok("get_leaf", json!({}));
    }
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "{:?}",
        begun.elapsed()
    );
    writer.ok("get_leaf", json!({}));
    assert_eq!(writer.ok("get_leaf", json!({}))["leafId"], "e1999");
    stalled.read_on();
    assert_eq!(stalled.ok("get_leaf", json!({}))["leafId"], "e1999");
    // Numbers that were not delivered are reported lost: the harness checks them.
    writer.ok("list_sessions", json!({}));
    ignore_pending(&mut writer);
    ignore_pending(stalled);
}

/// Claims the responses that a test does not look at.
fn ignore_pending(client: &mut Daemon) {
    client.claim_responses();
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

/// The questions of a client that reads nothing pile up only to the hard limit.
#[test]
fn notifications_for_a_client_that_never_reads_are_bounded() {
    let shared = SharedDaemon::start_with(&["--max-queued-bytes", "65536"], &[]);
    let mut mover = shared.client("mover", json!({}));
    let id = mover.create();
    mover.chain(&["u1", "a1"]);
    let mut deaf = shared.client("deaf", json!({}));
    deaf.ok("open_session", json!({"sessionId": id}));
    deaf.stop_reading();
    let label = "l".repeat(200);
    for n in 0..12_000 {
        let target = ["u1", "a1"][n % 2];
        let params = json!({"leafId": target, "label": label});
        let _ = params;
        mover.send("set_leaf", json!({"leafId": target}));
    }
    mover.ok("get_leaf", json!({}));
    mover.claim_responses();
    deaf.read_on();
    deaf.ignore("events_lost");
    deaf.ok("get_leaf", json!({}));
    let before = deaf.received("events_lost").len();
    assert!(before <= 2, "one gap: {before}");
}
