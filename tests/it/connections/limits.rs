//! The number of connections, and the working directory of a client on a socket.

use crate::harness::*;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

/// The most connections at a time.
const MAX: usize = 1024;

#[test]
fn connections_over_the_limit_are_closed_at_once_and_the_others_work() {
    let mut shared = SharedDaemon::start();
    shared.may_warn = true;
    raise_descriptor_limit();
    let mut first = shared.client("first", json!({}));
    let more = if is_long_run() { 10_000 } else { 1_300 };
    let mut streams: Vec<UnixStream> = (0..more)
        .map(|_| UnixStream::connect(&shared.socket).unwrap())
        .collect();
    // When the daemon closes the last connection, it has accepted all earlier ones.
    let mut last = streams.pop().unwrap();
    assert_eq!(last.read(&mut [0; 16]).unwrap(), 0);
    let refused = |stream: &mut UnixStream| {
        stream.set_nonblocking(true).unwrap();
        matches!(stream.read(&mut [0; 16]), Ok(0))
    };
    let refused = streams
        .iter_mut()
        .filter_map(|stream| refused(stream).then_some(()))
        .count();
    assert_eq!(more - 1 - refused, MAX - 1);
    first.create();
    first.user("u1", "still served");
    drop(streams);
    let mut late = loop {
        let mut stream = UnixStream::connect(&shared.socket).unwrap();
        Write::write_all(
            &mut stream,
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"list_sessions\"}\n",
        )
        .ok();
        let mut answer = [0; 16];
        if stream.read(&mut answer).unwrap_or(0) > 0 {
            break shared.client("late", json!({}));
        }
    };
    late.ok("list_sessions", json!({}));
}

pub(crate) fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let current = limit.maximum;
    setrlimit(Resource::Nofile, Rlimit { current, ..limit }).unwrap();
}

#[test]
fn a_client_of_a_socket_names_the_working_directory() {
    let shared = SharedDaemon::start();
    let mut client = shared.connect();
    let error = client.err_kind("create_session", json!({}), "invalidParams");
    assert_eq!(error.details("field"), "cwd");
    client.initialize(json!({"protocolVersion": 1, "cwd": "/of/initialize"}));
    client.ignore_bookkeeping();
    let cwd = |client: &mut Daemon, params: Json| {
        let made = client.ok("create_session", params);
        made["session"]["cwd"].clone()
    };
    assert_eq!(cwd(&mut client, json!({})), "/of/initialize");
    assert_eq!(cwd(&mut client, json!({"cwd": "/own"})), "/own");
}

fn connect_all(shared: &SharedDaemon, session_id: &str, count: usize) -> Vec<UnixStream> {
    let open = json!({"sessionId": session_id});
    let lines = [
        request(&json!(1), "initialize", &json!({"protocolVersion": 1})),
        request(&json!(2), "open_session", &open),
    ];
    let connect = |_| {
        let mut stream = UnixStream::connect(&shared.socket).unwrap();
        stream
            .write_all((lines.join("\n") + "\n").as_bytes())
            .unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut line = String::new();
        while !line.contains("session_opened") {
            line.clear();
            assert!(
                reader.read_line(&mut line).unwrap() > 0,
                "the connection ended"
            );
        }
        stream
    };
    (0..count).map(connect).collect()
}

/// A value of the daemon's status in `/proc`, in kB.
fn resident_kb(shared: &SharedDaemon) -> usize {
    let path = format!("/proc/{}/status", shared.pid().as_raw_nonzero());
    let status = std::fs::read_to_string(path).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.unwrap()
        .split_whitespace()
        .next()
        .unwrap()
        .parse()
        .unwrap()
}

/// The numbers of the daemon's threads and descriptors.
fn threads_and_descriptors(shared: &SharedDaemon) -> [usize; 2] {
    ["task", "fd"].map(|folder| {
        let path = format!("/proc/{}/{folder}", shared.pid().as_raw_nonzero());
        std::fs::read_dir(path).unwrap().count()
    })
}

#[test]
fn idle_connections_take_little_memory_and_leave_nothing() {
    const COUNT: usize = 500;
    raise_descriptor_limit();
    let shared = SharedDaemon::start();
    let mut keeper = shared.client("keeper", json!({}));
    let id = keeper.create();
    keeper.user("u1", "x");
    // The first connections create the objects that all connections share.
    drop(connect_all(&shared, &id, 10));
    let few = || {
        threads_and_descriptors(&shared)
            .iter()
            .all(|count| *count < 40)
    };
    eventually("the first connections are closed", few);
    let before = resident_kb(&shared);
    let connections = connect_all(&shared, &id, COUNT);
    let each = resident_kb(&shared).saturating_sub(before) / COUNT;
    assert!(each <= 100, "{each} kB for each connection");
    drop(connections);
    eventually("nothing is left", few);
    keeper.user("u2", "y");
}
