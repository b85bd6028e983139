//! The beginning and the end of connections and of the daemon that they share.

use crate::harness::*;
use std::os::unix::fs::PermissionsExt;

#[test]
fn clients_of_one_socket_share_a_daemon() {
    let shared = SharedDaemon::start();
    let mut clients = [shared.connect(), shared.connect()];
    let [first, second] = clients.each_mut().map(|client| {
        let result = client.initialize(json!({"protocolVersion": 1}));
        result["instanceId"].clone()
    });
    assert_eq!(first, second);
    let mode = std::fs::metadata(&shared.socket).unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
}

#[test]
fn the_end_of_a_connection_leaves_the_daemon_to_the_others() {
    let shared = SharedDaemon::start();
    let mut left = shared.connect();
    let mut stays = shared.connect();
    left.ok("shutdown", json!({}));
    assert_eq!(left.exited(), Some(0));
    drop(shared.connect());
    stays.ok("list_sessions", json!({}));
}

#[test]
fn the_end_of_stdin_ends_a_daemon_that_listens_only_for_stdio() {
    let home = Home::new();
    let socket = home.files().join("both.sock");
    let address = format!("unix:{}", socket.display());
    let args = ["serve", "--listen", "stdio", "--listen", &address];
    let mut stdio = Daemon::spawned(&home, home.command(&args, &[]));
    stdio.ignore_bookkeeping();
    let id = stdio.create();
    stdio.user("u1", "by stdio");
    let mut client = Daemon::connected(&home, &socket);
    client.ignore_bookkeeping();
    client.ok("open_session", json!({"sessionId": id}));
    stdio.close_stdin();
    client.user("u2", "after the end of stdin");
    client.ok("shutdown", json!({}));
    assert_eq!(client.exited(), Some(0));
    let mut late = Daemon::connected(&home, &socket);
    late.ok("list_sessions", json!({}));
    late.ok("shutdown", json!({}));
    late.exited();
    stdio.signal(rustix::process::Signal::TERM);
    assert_eq!(stdio.exited(), Some(0));
}

#[test]
fn a_signal_ends_all_connections_and_the_daemon() {
    let mut shared = SharedDaemon::start();
    let mut clients = [shared.client("a", json!({})), shared.client("b", json!({}))];
    let id = clients[0].create();
    clients[0].user("u1", "x");
    clients[1].ok("open_session", json!({"sessionId": id}));
    clients[0].ok("begin_turn", json!({}));
    clients[1].ok(
        "send_message",
        json!({"customType": "n", "content": "queued", "display": true}),
    );
    shared.signal(rustix::process::Signal::TERM);
    for client in &mut clients {
        assert_eq!(client.exited(), Some(0));
    }
    assert_eq!(shared.exited(), Some(0));
    let file = std::fs::read_to_string(shared.home.only_file()).unwrap();
    assert!(file.contains("queued"));
}

#[test]
fn the_death_of_a_clients_process_ends_its_connection_only() {
    let shared = SharedDaemon::start();
    let mut parent = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .unwrap();
    let mut client = shared.connect();
    client.initialize(json!({"protocolVersion": 1, "processId": parent.id()}));
    let mut stays = shared.client("stays", json!({}));
    parent.kill().unwrap();
    parent.wait().unwrap();
    assert_eq!(client.exited(), Some(0));
    stays.ok("list_sessions", json!({}));
}

#[test]
fn requests_sent_before_a_half_close_are_answered() {
    let shared = SharedDaemon::start();
    let mut client = shared.client("client", json!({}));
    let id = client.create();
    for n in 0..100 {
        client.send(
            "append_message",
            json!({"message": user("x"), "entryId": format!("e{n}")}),
        );
    }
    client.close_stdin();
    client.claim_responses();
    let mut stays = shared.client("stays", json!({}));
    assert_eq!(client.exited(), Some(0));
    stays.ok("open_session", json!({"sessionId": id}));
    assert_eq!(stays.ids().len(), 100);
}

#[test]
fn an_idle_daemon_ends_once_nobody_is_connected() {
    let mut shared = SharedDaemon::start_with(&["--idle-exit", "5s"], &[]);
    let mut client = shared.client("client", json!({}));
    std::thread::sleep(std::time::Duration::from_millis(6000));
    client.ok("list_sessions", json!({}));
    drop(client);
    assert_eq!(shared.exited(), Some(0));
}

#[test]
fn the_idle_time_is_given_by_option_environment_and_file() {
    let home = Home::new();
    let path = home.file("config.toml", b"idle_exit = \"1s\"\n");
    let config = ["--config", path.to_str().unwrap()];
    let mut by_file = SharedDaemon::start_in(&home, &config, &[]);
    assert_eq!(by_file.exited(), Some(0));
    let described = |env: &[(&str, &str)]| {
        let output = home.run(&[&config[..], &["config"]].concat(), env, "");
        (output.code, output.clean().text())
    };
    assert!(described(&[]).1.contains("idle_exit = \"1s\" # file\n"));
    let environment = [("TREELINED_IDLE_EXIT", "90m")];
    let (_, text) = described(&environment);
    assert!(
        text.contains("idle_exit = \"5400s\" # environment\n"),
        "{text}"
    );
    let home = Home::new();
    let options = [&config[..], &["--idle-exit", "1s"]].concat();
    let mut by_option = SharedDaemon::start_in(&home, &options, &environment);
    assert_eq!(by_option.exited(), Some(0));
}

#[test]
fn a_daemon_without_requests_never_wakes_up() {
    let shared = SharedDaemon::start_with(&["--idle-exit", "10m"], &[]);
    let mut clients: Vec<Daemon> = (0..5).map(|_| shared.client("idle", json!({}))).collect();
    let id = clients[0].create();
    clients[0].user("u1", "x");
    for client in &mut clients {
        client.ok("open_session", json!({"sessionId": id}));
        client.ok("watch_sessions", json!({}));
        client.ignore("sessions_changed");
    }
    let mut before = None;
    // The daemon looks at the files for the first time a little later.
    for _ in 0..20 {
        std::thread::sleep(std::time::Duration::from_millis(500));
        let now = switches(&shared);
        if before.replace(now) == Some(now) {
            return;
        }
    }
    panic!("the daemon keeps waking up");
}

/// How often the threads of the daemon have been scheduled.
fn switches(shared: &SharedDaemon) -> u64 {
    let tasks = format!("/proc/{}/task", shared.pid().as_raw_nonzero());
    let of_task = |task: std::fs::DirEntry| -> u64 {
        let status = std::fs::read_to_string(task.path().join("status")).unwrap();
        let counts = status.lines().filter_map(|line| {
            line.split_once("ctxt_switches:")?
                .1
                .trim()
                .parse::<u64>()
                .ok()
        });
        counts.sum()
    };
    std::fs::read_dir(tasks)
        .unwrap()
        .map(|task| of_task(task.unwrap()))
        .sum()
}

#[test]
fn unknown_addresses_and_times_are_usage_errors() {
    let home = Home::new();
    for args in [
        &["serve", "--listen", "ws:"][..],
        &["serve", "--listen", "ws:localhost:1"],
        &["serve", "--listen", "unix:"],
        &["serve", "--listen", "tcp:1"],
        &["serve", "--idle-exit", "10"],
        &["serve", "--idle-exit", "m"],
    ] {
        let output = home.run(args, &[], "");
        assert_eq!(output.code, Some(2), "{args:?}: {}", output.stderr);
    }
    let output = home.run(&["config"], &[("TREELINED_IDLE_EXIT", "10")], "");
    assert_eq!(output.code, Some(1));
    assert!(
        output.stderr.contains("TREELINED_IDLE_EXIT: must be"),
        "{}",
        output.stderr
    );
}
