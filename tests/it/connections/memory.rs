//! The memory of frames and of summaries, which all connections share.

use crate::config::{file, script};
use crate::harness::*;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

const MIB: usize = 1 << 20;

fn limited(home: &Arc<Home>, bytes: usize, more: &str) -> SharedDaemon {
    let config = file(
        home,
        &format!("[limits]\nmax_working_bytes = {bytes}\n{more}"),
    );
    SharedDaemon::start_in(home, &["--config", &config], &[])
}

fn resident(shared: &SharedDaemon) -> usize {
    let path = format!("/proc/{}/status", shared.pid().as_raw_nonzero());
    let status = std::fs::read_to_string(path).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    let kib: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib << 10
}

/// The response to the frame that was sent on a connection.
fn response(stream: &UnixStream) -> Json {
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    parse(&line).unwrap()
}

/// Forty incomplete frames once held 2.6 GB, since each connection could have a frame of 64 MiB.
#[test]
fn frames_that_do_not_end_share_memory_and_the_rest_is_refused() {
    let home = Home::new();
    let shared = limited(&home, 8 * MIB, "");
    let mut small = shared.client("small", json!({}));
    let before = resident(&shared);
    let begin = |number: usize| {
        let stream = UnixStream::connect(&shared.socket).unwrap();
        let start =
            format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"get_leaf","params":{{"x":""#);
        (&stream).write_all(start.as_bytes()).unwrap();
        (&stream).write_all(&vec![b'x'; 3 * MIB]).unwrap();
        stream
    };
    let streams: Vec<UnixStream> = (0..8).map(begin).collect();
    let grown = resident(&shared).saturating_sub(before);
    assert!(grown < 24 * MIB, "{grown}");
    // Small frames do not use the shared memory.
    small.ok("list_sessions", json!({}));
    let mut refused = 0;
    for (number, mut stream) in streams.iter().enumerate() {
        stream.write_all(b"\"}}\n").unwrap();
        let response = response(stream);
        assert_eq!(response["id"], number, "{response}");
        let kind = &response["error"]["data"]["kind"];
        if kind == "overloaded" {
            assert_eq!(response["error"]["data"]["retryable"], true, "{response}");
            refused += 1;
        } else {
            assert_eq!(kind, "invalidParams", "{response}");
        }
    }
    // There is memory for two frames of 4 MiB.
    assert_eq!(refused, 6);
    // A refused connection stays open, and its next frame gets the memory that is free again.
    let mut stream = &streams[7];
    stream
        .write_all(b"{\"jsonrpc\":\"2.0\",\"id\":99,\"method\":\"list_sessions\"}\n")
        .unwrap();
    assert_eq!(response(stream)["id"], 99);
    let last = begin(100);
    (&last).write_all(b"\"}}\n").unwrap();
    let answer = response(&last);
    assert_eq!(answer["error"]["data"]["kind"], "invalidParams", "{answer}");
}

/// A single frame may be larger than the shared limit, so that each client can send any frame that the daemon accepts.
#[test]
fn a_lone_frame_may_be_larger_than_the_memory() {
    let home = Home::new();
    let shared = limited(&home, MIB, "");
    let mut client = shared.client("one", json!({}));
    client.create();
    client.ok(
        "append_message",
        json!({"message": user(&"x".repeat(3 * MIB)), "entryId": "u1"}),
    );
    assert_eq!(client.ids(), ["u1"]);
}

/// Each summary of a branch once read the whole branch, without a limit for all summaries together.
#[test]
fn summaries_share_memory_and_the_rest_is_refused() {
    let home = Home::new();
    let (started, done) = (home.files().join("started"), home.files().join("done"));
    let body = format!(
        "cat > /dev/null; touch {}; while [ ! -e {} ]; do sleep 0.02; done; echo summary",
        started.display(),
        done.display()
    );
    let program = script(&home, "summarize", &body);
    let summarizer =
        format!("[summarizer]\nuse = \"command\"\n[summarizer.command]\nargv = [{program:?}]\n");
    let shared = limited(&home, MIB, &summarizer);
    let mut clients: Vec<Daemon> = ["one", "two"]
        .map(|name| shared.client(name, json!({})))
        .into();
    for client in &mut clients {
        client.create();
        for n in 0..10 {
            let message = user(&"word ".repeat(6_000));
            client.ok(
                "append_message",
                json!({"message": message, "entryId": format!("e{n}")}),
            );
        }
    }
    let [one, two] = &mut clients[..] else {
        panic!("two clients")
    };
    let summarize = json!({"targetId": "e0", "summarize": true});
    let running = one.send("navigate_tree", summarize.clone());
    let until = std::time::Instant::now() + Duration::from_secs(30);
    while !started.exists() {
        assert!(std::time::Instant::now() < until, "the summarizer starts");
        std::thread::sleep(Duration::from_millis(5));
    }
    for (method, params) in [
        ("navigate_tree", summarize.clone()),
        ("compact", json!({"keepRecentTokens": 1})),
    ] {
        let error = two.err_kind(method, params, "overloaded");
        assert!(error.message.contains("try again"), "{}", error.message);
    }
    two.notification("session_compact_failed");
    assert_eq!(two.leaf(), "e9", "nothing was done");
    std::fs::write(&done, "").unwrap();
    let result = one.response(&running).unwrap();
    assert!(
        result["summaryEntry"]["summary"]
            .as_str()
            .unwrap()
            .contains("summary")
    );
    let result = two.ok("navigate_tree", summarize);
    assert!(result["summaryEntry"].is_object(), "{result}");
}
