//! The memory of frames, of unread output and of summaries, which all connections share.

use crate::config::{file, script};
use crate::harness::*;
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

const MIB: usize = 1 << 20;

fn limited(home: &Arc<Home>, bytes: usize, more: &str) -> SharedDaemon {
    let config = file(
        home,
        &format!("[limits]\nmax_working_bytes = {bytes}\n{more}"),
    );
    SharedDaemon::start_in(home, &["--config", &config], &[])
}

fn resident(shared: &SharedDaemon) -> usize {
    status(shared, "VmRSS")
}

fn status(shared: &SharedDaemon, field: &str) -> usize {
    let path = format!("/proc/{}/status", shared.pid().as_raw_nonzero());
    let status = std::fs::read_to_string(path).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    let kib: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib << 10
}

/// The response to the frame that was sent on a connection.
fn response(stream: &UnixStream) -> Json {
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    parse(&line).unwrap()
}

/// Forty incomplete frames once held 2.6 GB, since each connection could have a frame of 64 MiB. A frame that was refused
/// was once answered only at its end, which may never come.
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
    // A frame without memory is refused before its end has arrived.
    let mut lines: Vec<Vec<u8>> = vec![Vec::new(); streams.len()];
    eventually("the frames without memory are refused", || {
        for (mut stream, line) in streams.iter().zip(&mut lines) {
            stream.set_nonblocking(true).unwrap();
            let mut block = [0; 1024];
            if let Ok(read) = stream.read(&mut block) {
                line.extend(&block[..read]);
            }
            stream.set_nonblocking(false).unwrap();
        }
        lines.iter().filter(|line| line.ends_with(b"\n")).count() == 6
    });
    let mut refused = 0;
    for (number, (mut stream, line)) in streams.iter().zip(&lines).enumerate() {
        stream.write_all(b"\"}}\n").unwrap();
        let response = match &line[..] {
            [] => response(stream),
            line => parse(str::from_utf8(line).unwrap()).unwrap(),
        };
        assert_eq!(response["id"], number, "{response}");
        let kind = &response["error"]["data"]["kind"];
        if kind == "memoryExhausted" {
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

/// Forty clients that ask for large answers and do not read them once had each a separate queue.
#[test]
fn answers_that_nobody_reads_share_memory_and_the_rest_is_refused() {
    const CLIENTS: usize = 40;
    const ANSWERS: usize = 4;
    let home = Home::new();
    let mut log = Log::new("large").user("e0", "", "first");
    for n in 1..40 {
        let (id, parent) = (format!("e{n}"), format!("e{}", n - 1));
        log = log.user(&id, &parent, &"x".repeat(64 << 10));
    }
    log.store(&home, "large.jsonl");
    let shared = limited(&home, 16 * MIB, "");
    let mut first = shared.client("first", json!({}));
    first.ok("open_session", json!({"sessionId": "large"}));
    first.ok("get_leaf", json!({}));
    let before = resident(&shared);
    let ask = |number: usize| {
        let stream = UnixStream::connect(&shared.socket).unwrap();
        let mut text = request(0, "open_session", json!({"sessionId": "large"}));
        for n in 1..=ANSWERS {
            text += &request(
                n,
                "get_entries",
                json!({"sessionId": "large", "limit": 40 + number}),
            );
        }
        (&stream).write_all(text.as_bytes()).unwrap();
        BufReader::new(stream)
    };
    let mut streams: Vec<_> = (0..CLIENTS).map(ask).collect();
    // A client that reads gets its answers meanwhile.
    for _ in 0..20 {
        first.ok("list_sessions", json!({}));
        first.ok("get_entry", json!({"entryId": "e1"}));
    }
    let (mut refused, mut answered) = (0, 0);
    for stream in &mut streams {
        let count = answered_of(stream, ANSWERS);
        answered += count;
        refused += ANSWERS - count;
    }
    let grown = status(&shared, "VmHWM").saturating_sub(before);
    println!("memory: {grown} more, {answered} answered, {refused} refused");
    assert!(
        answered >= 6,
        "there is memory for six answers of 2.5 MiB: {answered}"
    );
    assert!(refused >= CLIENTS, "{refused}");
    assert!(grown < (16 + 30) * MIB, "{grown}");
    let again = request(10, "get_entries", json!({"sessionId": "large"}));
    let last = streams.last_mut().unwrap();
    last.get_ref().write_all(again.as_bytes()).unwrap();
    assert!(read_response(last)["result"]["entries"].is_array());
}

/// Reads what a client has asked for: the response of `open_session`, and of this many `get_entries`. Returns how many
/// were answered.
fn answered_of(stream: &mut BufReader<UnixStream>, count: usize) -> usize {
    stream.get_ref().set_read_timeout(Some(DEADLINE)).unwrap();
    let opened = read_response(stream);
    assert_eq!(opened["id"], 0, "{opened}");
    // A read that is refused overtakes one that is answered.
    let mut open: HashSet<u64> = (1..=count as u64).collect();
    let mut answered = 0;
    for _ in 0..count {
        let response = read_response(stream);
        assert!(open.remove(&response["id"].as_u64().unwrap()), "{response}");
        let error = &response["error"]["data"];
        if error["kind"].is_string() {
            assert_eq!(error["kind"], "memoryExhausted", "{error}");
            assert_eq!(error["retryable"], true, "{error}");
        } else {
            assert_eq!(response["result"]["entries"].as_array().unwrap().len(), 40);
            answered += 1;
        }
    }
    // Who has read everything may ask again.
    let again = json!({"sessionId": "large", "entryId": "e1"});
    let again = request(9, "get_entry", again);
    stream.get_ref().write_all(again.as_bytes()).unwrap();
    assert_eq!(read_response(stream)["result"]["entry"]["id"], "e1");
    answered
}

fn request(id: usize, method: &str, params: Json) -> String {
    format!(
        "{}\n",
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    )
}

/// The next response; notifications before it are skipped.
fn read_response(stream: &mut BufReader<UnixStream>) -> Json {
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        let message = parse(&line).unwrap();
        if message.get("id").is_some() {
            return message;
        }
    }
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

/// Each summary of a branch once read the whole branch, without a limit for all summaries together. Exports and imports had
/// no limit either.
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
    eventually("the summarizer starts", || started.exists());
    let empty = home.files().join("empty");
    std::fs::create_dir(&empty).unwrap();
    for (method, params) in [
        ("navigate_tree", summarize.clone()),
        ("compact", json!({"keepRecentTokens": 1})),
        ("export_session", json!({"format": "markdown"})),
        (
            "import_sessions",
            json!({"from": "codex", "paths": [empty]}),
        ),
    ] {
        let error = two.err_kind(method, params, "memoryExhausted");
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
