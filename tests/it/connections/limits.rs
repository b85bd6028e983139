//! The number of connections, and the working directory of a socket's client.

use crate::harness::*;
use std::io::Read;
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
    // The daemon has accepted the earlier ones when it closes the last.
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
        std::io::Write::write_all(
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

fn raise_descriptor_limit() {
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
