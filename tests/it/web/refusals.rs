//! Clients without the token.

use super::*;
use std::io::{Read, Write};

/// The first frame with this text.
fn first(text: &str) -> Vec<u8> {
    frame(TEXT, text.as_bytes())
}

#[test]
fn every_client_without_the_token_gets_the_same_close_code() {
    let daemon = WebDaemon::that_refuses();
    let token = &daemon.token;
    let right = format!("{{\"token\":\"{token}\"}}");
    let wrong = format!("{{\"token\":\"{}\"}}", "0".repeat(64));
    let list = String::from_utf8(LIST.to_vec()).unwrap();
    let padded = format!("{right}{}", " ".repeat(4097 - right.len()));
    let huge = [TEXT, 0xff, 0, 0, 0, 0, 0x10, 0, 0, 0, 1, 2, 3, 4];
    for (name, bytes) in [
        ("wrong", first(&wrong)),
        ("empty", first("")),
        ("no member", first("{}")),
        ("shorter", first(&right.replacen(&token[..1], "", 1))),
        ("longer", first(&right.replacen('}', "0}", 1))),
        ("bare", first(token)),
        ("in an array", first(&format!("[\"{token}\"]"))),
        ("the protocol", first(&list)),
        (
            "with more members",
            first(&right.replacen('}', ",\"id\":1}", 1)),
        ),
        ("more than 4 KiB", first(&padded)),
        ("an announced GiB", huge.to_vec()),
        ("binary", frame(BINARY, right.as_bytes())),
        ("ping first", frame(PING, b"x")),
        ("close first", frame(CLOSE, &1000_u16.to_be_bytes())),
        ("a fragment", frame(0x01, right.as_bytes())),
        (
            "unmasked",
            [&[TEXT, right.len() as u8][..], right.as_bytes()].concat(),
        ),
        ("no WebSocket", list.clone().into_bytes()),
        ("deep", first(&"[".repeat(4000))),
    ] {
        let mut socket = WebSocket::open(daemon.port);
        // The correct token and a request come after the refusal, so they have no effect.
        let bytes = [bytes, first(&right), first(&list)].concat();
        socket.stream.write_all(&bytes).unwrap();
        let mut answer = Vec::new();
        socket.stream.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, [CLOSE, 2, 0x03, 0xf0], "{name}");
    }
    daemon.check_serves();
    let padded = format!("{right}{}", " ".repeat(4096 - right.len()));
    let mut socket = WebSocket::open(daemon.port);
    socket.stream.write_all(&first(&padded)).unwrap();
    socket.frame(TEXT, LIST);
    assert_eq!(socket.message()["id"], 1, "4 KiB are read");
}

#[test]
fn slow_clients_are_closed_after_five_seconds() {
    let daemon = WebDaemon::that_refuses();
    let begun = Instant::now();
    let silent = connect(daemon.port);
    let mut slow = connect(daemon.port);
    slow.write_all(b"GET / HTTP/1.1\r\nHost: ").unwrap();
    let mut late = WebSocket::open(daemon.port);
    let mut half = WebSocket::open(daemon.port);
    half.stream
        .write_all(&first("{\"token\":\"0\"}")[..9])
        .unwrap();
    for (name, stream) in [("silent", silent), ("slow", slow)] {
        let mut answer = Vec::new();
        let _ = { stream }.read_to_end(&mut answer);
        assert_eq!(String::from_utf8_lossy(&answer), "", "{name}");
    }
    assert_eq!(late.close_code(), Some(1008));
    assert_eq!(half.close_code(), Some(1008));
    let taken = begun.elapsed();
    assert!(taken > Duration::from_millis(4_900), "{taken:?}");
    assert!(taken < Duration::from_secs(60), "{taken:?}");
    daemon.check_serves();
}

/// The memory that the process uses, in bytes, and the number of its open descriptors.
fn resources(daemon: &WebDaemon) -> (u64, usize) {
    let process = format!("/proc/{}", daemon.shared.pid().as_raw_pid());
    let status = fs::read_to_string(format!("{process}/status")).unwrap();
    let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let memory: u64 = memory
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    let descriptors = fs::read_dir(format!("{process}/fd")).unwrap().count();
    (memory << 10, descriptors)
}

#[test]
fn ten_thousand_refused_connections_leave_nothing_behind() {
    let daemon = WebDaemon::that_refuses();
    let page = daemon.client("page", json!({}));
    let before = resources(&daemon);
    let port = daemon.port;
    let threads: Vec<_> = (0..4)
        .map(|worker| {
            thread::spawn(move || {
                for n in 0..2_500 {
                    match (worker + n) % 4 {
                        0 => drop(http(port, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")),
                        1 => drop(connect(port)),
                        2 => drop(connect(port).write_all(upgrade(port, "").as_bytes())),
                        _ => {
                            let mut stream = connect(port);
                            let wrong = [upgrade(port, "").as_bytes(), &first("{\"token\":\"x\"}")]
                                .concat();
                            let _ = stream.write_all(&wrong);
                            let _ = stream.read_to_end(&mut Vec::new());
                        }
                    }
                }
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    eventually("no descriptor is left", || {
        let (memory, descriptors) = resources(&daemon);
        let is_as_before = descriptors <= before.1;
        assert!(
            !is_as_before || memory < before.0 + (32 << 20),
            "{before:?} {memory}"
        );
        is_as_before
    });
    let mut page = page;
    page.ok("list_sessions", json!({}));
    daemon.check_serves();
}
