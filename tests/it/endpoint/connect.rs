//! `treelined connect`: it copies bytes in both directions until an end, and refuses daemons of another version.

use std::io::{BufRead, BufReader, Write};

use super::*;

#[test]
fn a_client_speaks_through_connect_as_over_stdio() {
    let background = Background::start();
    let mut client = background.connect();
    client.init(json!({"answers": {}}));
    let cwd = background.home.cwd();
    let session = client.ok("create_session", json!({"cwd": cwd}));
    let big = "x".repeat(3 << 20);
    client.user("u1", &big);
    let entry = client.ok("get_entry", json!({"entryId": "u1"}));
    assert_eq!(
        entry["entry"]["message"]["content"].as_str().map(str::len),
        Some(3 << 20)
    );
    let mut other = background.connect();
    let listed = other.ok("list_sessions", json!({}));
    assert_eq!(
        listed["sessions"][0]["id"], session["sessionId"],
        "{listed}"
    );
}

#[test]
fn content_length_frames_pass_unchanged() {
    let background = Background::start();
    let body = request(&json!(1), "list_sessions", &json!({}));
    let input = format!("Content-Length: {}\r\n\r\n{body}", body.len());
    let output = background.home.run(&["connect"], &[], input).clean().text();
    assert!(output.starts_with("Content-Length: "), "{output}");
    assert!(output.ends_with(r#""result":{"sessions":[]}}"#), "{output}");
}

#[test]
fn answers_are_read_to_the_end_after_stdin_has_ended() {
    let background = Background::start();
    let lines: Vec<String> = (0..500)
        .map(|id| request(&json!(id), "list_sessions", &json!({})))
        .collect();
    let input = format!("{}\n", lines.join("\n"));
    let output = background.home.run(&["connect"], &[], input).clean();
    assert_eq!(output.responses().len(), 500);
}

#[test]
fn shutdown_ends_the_connection_with_success_and_the_daemon_stays() {
    let background = Background::start();
    let pid = background.pid();
    let mut client = background.connect();
    client.ok("shutdown", json!({}));
    assert_eq!(client.exited(), Some(0), "stdin is still open");
    assert_eq!(background.pid(), pid);
}

#[test]
fn the_end_of_the_daemon_ends_connect_with_a_message() {
    for signal in [Signal::KILL, Signal::TERM] {
        let background = Background::start();
        let mut client = background.home.command(&["connect"], &[]).spawn().unwrap();
        let mut stdin = client.stdin.take().unwrap();
        writeln!(stdin, "{}", request(&json!(1), "list_sessions", &json!({}))).unwrap();
        let mut stdout = BufReader::new(client.stdout.take().unwrap());
        stdout.read_line(&mut String::new()).unwrap();
        kill_process(background.pid(), signal).unwrap();
        let output = Output {
            stdout: Vec::new(),
            code: wait(&mut client, DEADLINE),
            stderr: std::io::read_to_string(client.stderr.take().unwrap()).unwrap(),
        };
        fails(&output, 1, &["has ended", "connect --start"]);
        drop(stdin);
    }
}

#[test]
fn without_a_daemon_connect_fails_and_starts_none() {
    let home = Home::new();
    let output = home.run(&["connect"], &[], introduction());
    fails(
        &output,
        3,
        &["no daemon runs for", "treelined connect --start"],
    );
    assert!(!socket_of(&home).exists());
}

#[test]
fn an_option_that_differs_from_the_daemons_is_refused_with_both_values() {
    let background = Background::start();
    let home = &background.home;
    let connect = |args: &[&str]| home.run(&[args, &["connect"]].concat(), &[], introduction());
    let output = connect(&["--durability", "always"]);
    fails(
        &output,
        1,
        &["--durability interval", "always", "treelined stop"],
    );
    let output = connect(&["--max-frame-bytes", "4096"]);
    fails(&output, 1, &["--max-frame-bytes 67108864", "4096"]);
    connect(&["--durability", "interval", "--max-frame-bytes", "67108864"]).clean();
    let config = home.file("config.toml", b"");
    let config = config.to_str().unwrap();
    fails(
        &connect(&["--config", config]),
        1,
        &["was started without --config", config, "treelined stop"],
    );
    let socket = background.socket();
    let other = home.files().join("elsewhere");
    let args = [
        "--session-dir",
        other.to_str().unwrap(),
        "connect",
        "--socket",
    ];
    let output = home.run(&[&args[..], &[socket.to_str().unwrap()]].concat(), &[], "");
    let sessions = home.sessions();
    fails(
        &output,
        1,
        &[other.to_str().unwrap(), sessions.to_str().unwrap()],
    );
}

/// Changes the runtime file so that it looks like the file of another version.
#[track_caller]
fn pretend(background: &Background, from: &str, to: &str) {
    let path = beside(&background.socket(), "json");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{from} in {text}");
    // The file is written in place, since the daemon holds its lock.
    fs::write(&path, text.replace(from, to)).unwrap();
}

#[test]
fn a_daemon_with_another_protocol_is_refused_with_the_remedy() {
    let background = Background::start();
    pretend(
        &background,
        "\"protocolVersion\": 1",
        "\"protocolVersion\": 2",
    );
    let output = background
        .home
        .run(&["connect", "--start"], &[], introduction());
    fails(
        &output,
        1,
        &["version 2 of the protocol", "version 1", "treelined stop"],
    );
}

#[test]
fn an_older_program_with_the_same_protocol_is_served_with_a_warning() {
    let background = Background::start();
    let own = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    pretend(&background, &own, "\"version\": \"0.0.1\"");
    let output = background.home.run(&["connect"], &[], introduction());
    fails(&output, 0, &["0.0.1", "treelined stop"]);
    assert_eq!(output.responses().len(), 2);
}

#[test]
fn the_socket_is_named_by_option_environment_and_file() {
    let home = Home::new();
    let path = |name: &str| home.files().join(name).to_str().unwrap().to_owned();
    let config = home.file("config.toml", b"socket = \"in-file.sock\"\n");
    let config = config.to_str().unwrap();
    let (option, variable) = (path("option.sock"), path("variable.sock"));
    let env = [("TREELINED_SOCKET", &*variable)];
    let start = |args: &[&str], env: &[(&str, &str)], socket: &str| {
        let args = [&["--config", config, "connect", "--start"], args].concat();
        home.run(&args, env, "").clean();
        assert!(Path::new(socket).exists(), "{socket}");
        home.run(&["stop", "--socket", socket], &[], "").clean();
        assert!(!Path::new(socket).exists(), "{socket}");
    };
    start(&["--socket", &option], &env, &option);
    start(&[], &env, &variable);
    start(&[], &[], &path("in-file.sock"));
    assert!(!socket_of(&home).exists());
    let output = home.run(&["serve", "--socket", &option], &[], "");
    fails(&output, 2, &["--listen unix"]);
}
