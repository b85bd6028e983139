//! Reads that are cut off, and followers.

use crate::single::Single;
use crate::support::{Fleet, append};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use treelined_fleet::backend::AppendOutcome;
use treelined_fleet::backend::LogBackend;
use treelined_fleet::backend::Position;
use treelined_fleet::stream::NatsLog;

/// Passes connections to a server. Cuts the first connection after `after` bytes from the server.
fn cutting_proxy(server: u16, after: usize) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        // Later connections are closed at once. The port stays taken, so that no other program answers on it.
        thread::spawn(move || listener.incoming().for_each(drop));
        let mut server = TcpStream::connect(("127.0.0.1", server)).unwrap();
        let (mut from_client, mut to_server) =
            (client.try_clone().unwrap(), server.try_clone().unwrap());
        thread::spawn(move || std::io::copy(&mut from_client, &mut to_server));
        let (mut bytes, mut passed) = (vec![0; 1 << 16], 0);
        while passed < after {
            let Ok(read @ 1..) = server.read(&mut bytes) else {
                break;
            };
            passed += read;
            client.write_all(&bytes[..read]).unwrap();
        }
        let _closed = client.shutdown(Shutdown::Both);
        let _closed = server.shutdown(Shutdown::Both);
    });
    port
}

#[test]
fn a_server_that_dies_in_the_middle_of_a_read_is_unavailable_in_time() {
    let Some(server) = Single::start(|_| String::new()) else {
        return;
    };
    let laptop = server.machine("");
    laptop.until_sound(&["doctor", "--cluster", "--create"]);
    laptop.make("s", 200, 50_000);
    laptop.done(&["push", "s", "--json"]);

    let reader = server.machine("");
    let port = cutting_proxy(server.port, 4_000_000);
    let log = format!("nats://127.0.0.1:{port}");
    let began = Instant::now();
    assert_eq!(
        reader.kind(&["pull", "s", "--json", "--log", &log]),
        "logUnavailable"
    );
    assert!(began.elapsed() < Duration::from_secs(120));
    // This pull brings the rest, and no line twice.
    reader.done(&["pull", "s", "--json"]);
    assert_eq!(reader.text("s"), laptop.text("s"));
}

/// The server is away for longer than a command waits, and comes back with its data.
#[test]
fn a_server_that_was_away_goes_on_where_it_ended() {
    let Some(mut server) = Single::start(|_| String::new()) else {
        return;
    };
    let laptop = server.machine("");
    laptop.until_sound(&["doctor", "--cluster", "--create"]);
    let path = laptop.make("s", 20, 100);
    laptop.done(&["push", "s", "--json"]);
    server.kill();
    append(&path, 20..22, 100);
    assert_eq!(laptop.kind(&["push", "s", "--json"]), "logUnavailable");
    server.restart();
    assert_eq!(laptop.done(&["push", "s", "--json"])[0]["lines"], 2);
}

fn appended(log: &NatsLog, at: Position, line: &str) -> Position {
    match log.append("s", at, line.as_bytes()).unwrap() {
        AppendOutcome::Appended(end) => end,
        AppendOutcome::Conflict => panic!("a conflict at {at:?}"),
    }
}

/// The servers send each append to the followers as a hint, but not to the connection that made the append, and a dead
/// server sends nothing. So a follower also reads without a hint.
#[test]
fn a_follower_gets_appends_with_and_without_a_hint() {
    let Some(fleet) = Fleet::get(18) else { return };
    let fleet = fleet.with_stream();
    let (log, following) = (fleet.open(), Arc::new(fleet.open()));
    let mut end = Position::START;
    for number in 0..3 {
        end = appended(&log, end, &format!("{{\"id\":\"{number}\"}}\n"));
    }
    let (sender, arrived) = mpsc::channel();
    let followed = Arc::clone(&following);
    thread::spawn(move || {
        for part in followed.follow("s", end).unwrap() {
            let part = part.unwrap();
            sender.send((text(part.lines), part.end)).unwrap();
        }
    });
    for number in 3..60 {
        let line = format!("{{\"id\":\"{number}\"}}\n");
        // The last append is made by the follower's own connection.
        let from = if number == 59 { &*following } else { &log };
        end = appended(from, end, &line);
        // After some of the appends, the test waits for the follower.
        if number % 10 == 9 {
            let last = loop {
                let got = arrived.recv_timeout(Duration::from_secs(60)).unwrap();
                if got.1 >= end {
                    break got;
                }
            };
            assert_eq!(last, (line, end));
        }
    }
}

fn text(lines: Vec<u8>) -> String {
    String::from_utf8(lines).unwrap()
}

/// The stream refuses an append, but the servers send it to the followers as a hint.
#[test]
fn a_refused_append_does_not_reach_a_follower() {
    let Some(fleet) = Fleet::get(29) else { return };
    let fleet = fleet.with_stream();
    let (log, following) = (fleet.open(), fleet.open());
    let first = appended(&log, Position::START, "{\"id\":\"0\"}\n");
    let (sender, arrived) = mpsc::channel();
    thread::spawn(move || {
        for part in following.follow("s", Position::START).unwrap() {
            sender.send(text(part.unwrap().lines)).unwrap();
        }
    });
    let wait = || arrived.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(wait(), "{\"id\":\"0\"}\n");
    for wrong in [Position(first.0 + 1000), Position::START] {
        let refused = log.append("s", wrong, b"{\"id\":\"refused\"}\n");
        assert!(
            matches!(refused, Ok(AppendOutcome::Conflict)),
            "{refused:?}"
        );
    }
    let mut end = first;
    for number in 1..4 {
        let line = format!("{{\"id\":\"{number}\"}}\n");
        end = appended(&log, end, &line);
        assert_eq!(wait(), line);
    }
}

/// A single message is read with one request, a few messages with one request each, and many messages through a
/// consumer.
#[test]
fn a_read_has_every_message_whatever_their_number() {
    let Some(fleet) = Fleet::get(19) else { return };
    let fleet = fleet.with_stream();
    let log = fleet.open();
    let mut ends = vec![Position::START];
    for number in 0..30 {
        let end = appended(&log, ends[number], &format!("{{\"id\":\"{number}\"}}\n"));
        ends.push(end);
    }
    for from in [0, 1, 20, 21, 22, 25, 29, 30] {
        let parts = log.read("s", ends[from]).unwrap();
        let found: Vec<_> = parts.map(|part| part.unwrap().end).collect();
        assert_eq!(found, ends[from + 1..], "from {from}");
    }
}
