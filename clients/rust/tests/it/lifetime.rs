//! Tests the start and the end: versions, deadlines, the death of the daemon, the end of its stdin.

use crate::fake_daemon::{FakeDaemon, initialize_result};
use crate::fixture::{Fixture, conversation, gone, is_alive, kill, program, soon};
use serde_json::json;
use std::future::{IntoFuture, pending};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::sync::mpsc;
use treelined_client::{Builder, Client, Error, EventAnswer, Json, Message, NavigationReason};

#[tokio::test]
async fn close_answers_open_calls_and_leaves_no_process() {
    let fixture = Fixture::new();
    let client = fixture.spawn().await;
    let pid = client.pid().unwrap();
    assert!(is_alive(pid) && !client.is_closed());
    let request = tokio::spawn(client.create_session().name("a trip").into_future());
    tokio::task::yield_now().await;
    client.close().await.unwrap();
    let answered = soon(request).await.unwrap().unwrap();
    assert_eq!(answered.session.name.as_deref(), Some("a trip"));
    assert!(!is_alive(pid) && client.is_closed());
    assert!(client.closed().await.status.unwrap().success());
    let error = client.get_leaf().await.unwrap_err();
    assert!(matches!(error, Error::Disconnected(_)), "{error}");
    client.close().await.expect("a second close does nothing");
}

#[tokio::test]
async fn close_aborts_open_questions() {
    let fixture = Fixture::new();
    let (sender, mut questions) = mpsc::unbounded_channel();
    let builder = fixture.builder().answer_tree(move |_, question| {
        let _ = sender.send(question);
        pending()
    });
    let client = builder.spawn().await.unwrap();
    conversation(&client).await;
    let moving = tokio::spawn(client.navigate_tree("a1").into_future());
    let question = soon(questions.recv()).await.unwrap();
    client.close().await.unwrap();
    let moved = soon(moving).await.unwrap().unwrap();
    assert_eq!(moved.reason, Some(NavigationReason::Aborted));
    soon(question.over()).await;
}

#[tokio::test]
async fn the_death_of_the_daemon_fails_every_open_call() {
    let fixture = Fixture::new();
    let (sender, mut questions) = mpsc::unbounded_channel();
    let builder = fixture.builder().answer_tree(move |_, question| {
        let _ = sender.send(question);
        pending()
    });
    let client = builder.spawn().await.unwrap();
    let mut notifications = client.notifications();
    let mut calls = Vec::new();
    for _ in 0..2 {
        let session_id = conversation(&client).await;
        let moving = client.navigate_tree("a1").session_id(session_id);
        calls.push(tokio::spawn(moving.into_future()));
    }
    let first = soon(questions.recv()).await.unwrap();
    soon(questions.recv()).await.unwrap();
    kill(client.pid().unwrap());
    for call in calls {
        let error = soon(call).await.unwrap().unwrap_err();
        let Error::Disconnected(why) = error else {
            panic!("{error}");
        };
        assert!(!why.status.unwrap().success());
        assert!(why.to_string().contains("signal: 9"), "{why}");
    }
    soon(first.over()).await;
    while soon(notifications.next()).await.is_some() {}
    assert!(client.get_leaf().await.is_err());
    assert!(client.close().await.is_err());

    // The same builder starts a new daemon, which finds the session in its file.
    let again = builder.spawn().await.unwrap();
    let session_id = again.list_sessions().await.unwrap().sessions[0]
        .session_id
        .clone();
    let opened = again.open_session().session_id(session_id).await.unwrap();
    assert_eq!(opened.session.leaf_id.as_deref(), Some("a2"));
    again.close().await.unwrap();
}

#[tokio::test]
async fn calls_made_while_the_daemon_dies_do_not_hang() {
    let fixture = Fixture::new();
    let client = fixture.spawn().await;
    client.create_session().await.unwrap();
    let calls: Vec<_> = (0..300)
        .map(|n| {
            let call = client.append_message(Message::user(format!("{n}")));
            tokio::spawn(call.into_future())
        })
        .collect();
    kill(client.pid().unwrap());
    for call in calls {
        if let Err(error) = soon(call).await.unwrap() {
            assert!(matches!(error, Error::Disconnected(_)), "{error}");
        }
    }
}

#[tokio::test]
async fn shutdown_ends_the_daemon_with_status_0() {
    let fixture = Fixture::new();
    let client = fixture.spawn().await;
    client.shutdown().await.unwrap();
    assert!(soon(client.closed()).await.status.unwrap().success());
}

#[tokio::test]
async fn dropping_the_client_leaves_no_process() {
    let fixture = Fixture::new();
    let client = fixture.spawn().await;
    let pid = client.pid().unwrap();
    let clone = client.clone();
    drop(client);
    clone.list_sessions().await.expect("a clone keeps it");
    drop(clone);
    gone(pid).await;
}

#[test]
fn the_end_of_the_runtime_leaves_no_process() {
    let fixture = Fixture::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = runtime.block_on(fixture.spawn());
    let pid = client.pid().unwrap();
    drop(runtime);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(gone(pid));
    assert!(runtime.block_on(soon(client.get_leaf())).is_err());
}

/// The program starts a daemon, prints its process id, and is killed.
#[tokio::test]
async fn the_death_of_the_program_leaves_no_process() {
    let fixture = Fixture::new();
    let mut program = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "lifetime::start_a_daemon_and_wait", "--ignored"])
        .arg("--nocapture")
        .env(
            "TREELINED_SESSION_DIR",
            fixture.folder.path().join("sessions"),
        )
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
    let pid = loop {
        let line = soon(lines.next_line()).await.unwrap().unwrap();
        if let Some(pid) = line.strip_prefix("daemon: ") {
            break pid.parse().unwrap();
        }
    };
    assert!(is_alive(pid));
    program.kill().await.unwrap();
    gone(pid).await;
}

#[tokio::test]
#[ignore = "run by the_death_of_the_program_leaves_no_process"]
async fn start_a_daemon_and_wait() {
    let client = Client::builder().program(program()).spawn().await.unwrap();
    println!("\ndaemon: {}", client.pid().unwrap());
    pending::<()>().await;
}

#[tokio::test]
async fn a_missing_program_fails_with_cannot_start() {
    let builder = Client::builder().program("/nowhere/treelined");
    let error = builder.spawn().await.unwrap_err();
    let Error::CannotStart { source, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(source.kind(), std::io::ErrorKind::NotFound);
    let text = error.to_string();
    assert!(
        text.starts_with("cannot start /nowhere/treelined: "),
        "{text}"
    );
}

/// The error was once only "no such file".
#[tokio::test]
async fn the_error_for_a_missing_program_names_the_path_and_a_remedy() {
    let builder = Client::builder().program("no-such-treelined");
    let text = builder.spawn().await.unwrap_err().to_string();
    let path = std::env::var("PATH").unwrap();
    for part in [&path, "cargo install --path .", "program(…)"] {
        assert!(text.contains(part), "{text}");
    }
    let builder = Client::builder().program("/nowhere/treelined");
    let text = builder.spawn().await.unwrap_err().to_string();
    assert!(!text.contains("PATH"), "{text}");
}

#[tokio::test]
async fn the_error_of_a_failed_start_quotes_stderr() {
    let builder = Client::builder().program(program()).arg("--no-such-option");
    let Error::Disconnected(why) = soon(builder.spawn()).await.unwrap_err() else {
        panic!("started");
    };
    assert_eq!(why.status.unwrap().code(), Some(2));
    assert!(why.last_words.contains("--no-such-option"), "{why}");
}

#[tokio::test]
async fn a_program_that_is_not_a_daemon_is_recognized() {
    let builder = Client::builder().program("echo").arg("hello");
    let error = soon(builder.spawn()).await.unwrap_err().to_string();
    let expected = r#"the program is not a treelined daemon: it wrote "hello""#;
    assert!(error.contains(expected), "{error}");
}

/// A program that writes a line without end must not fill the memory.
#[tokio::test]
async fn a_first_line_without_end_is_cut_off() {
    let builder = Client::builder().program("cat").arg("/dev/zero");
    let error = soon(builder.spawn()).await.unwrap_err().to_string();
    assert!(
        error.starts_with("the program is not a treelined daemon"),
        "{error}"
    );
}

#[tokio::test]
async fn a_daemon_of_another_protocol_version_is_refused() {
    let (client, mut daemon) = FakeDaemon::connecting(Client::builder());
    let request = daemon.receive().await;
    assert_eq!(request["params"]["protocolVersion"], 1);
    assert!(
        request["params"]["processId"].is_null(),
        "the daemon may run on another machine"
    );
    let result = json!({ "protocolVersion": 2, "everything": "else differs" });
    daemon.answer(&request, result).await;
    daemon.close_output().await;
    let error = soon(client).await.unwrap().unwrap_err();
    let Error::VersionMismatch { expected, spoken } = error else {
        panic!("{error}");
    };
    assert_eq!((expected, spoken), (1, 2));
    let text = error.to_string();
    assert_eq!(
        text,
        "the daemon speaks protocol version 2, this client speaks 1"
    );
}

#[tokio::test]
async fn builder_settings_reach_the_daemon() {
    let builder = Client::builder()
        .client_info("a test", "2")
        .answer_tree(|_, _| async { EventAnswer::none() })
        .opt_out(["diagnostics", "event_resolved", "session_before_tree"])
        .summary_deltas()
        .progress()
        .max_frame_bytes(1_000_000);
    let (client, mut daemon) = FakeDaemon::connecting(builder.clone());
    let request = daemon.receive().await;
    let capabilities = json!({
        "answers": { "session_before_tree": { "onFailure": "cancel" } },
        "optOut": ["diagnostics"],
        "summaryDeltas": {},
        "progress": {},
        "maxFrameBytes": 1_000_000,
    });
    assert_eq!(request["params"]["capabilities"], capabilities);
    let info = json!({ "name": "a test", "version": "2" });
    assert_eq!(request["params"]["clientInfo"], info);
    daemon.answer(&request, initialize_result(1)).await;
    soon(client).await.unwrap().unwrap();

    // A daemon that the client starts also gets the process id, its arguments and its environment.
    let log = Arc::new(Mutex::new(String::new()));
    let lines = Arc::clone(&log);
    let folder = tempfile::tempdir().unwrap();
    let script = "read -r line; echo \"$line$0$1$FAVOURITE$(pwd)\" >&2";
    let error = builder
        .program("sh")
        .args(["-c", script, "zero"])
        .arg("one")
        .env("FAVOURITE", "blue")
        .current_dir(folder.path())
        .on_log(move |line| lines.lock().unwrap().push_str(line))
        .spawn()
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Disconnected(_)), "{error}");
    let log = log.lock().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let told = format!("zerooneblue{}", folder.display());
    assert!(log.ends_with(&told), "{log} {told}");
    let process = format!("\"processId\":{}", std::process::id());
    assert!(log.contains(&process), "{log}");
}

/// Builds a daemon that is a shell script: it answers `initialize`, then runs `then`.
fn script(then: &str) -> Builder {
    let initialize_result = initialize_result(1);
    let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": initialize_result });
    let script = format!("read -r line; echo '{answer}'; {then}");
    Client::builder().program("sh").args(["-c", &script])
}

#[tokio::test]
async fn a_daemon_that_does_not_end_is_killed() {
    let builder = script("while :; do sleep 1; done").grace(Duration::from_millis(200));
    let client = builder.spawn().await.unwrap();
    let error = soon(client.close()).await.unwrap_err().to_string();
    assert!(
        error.contains("did not end and was killed (signal: 9"),
        "{error}"
    );
    assert!(!is_alive(client.pid().unwrap()));
}

/// The process that is left behind holds the daemon's pipes open.
#[tokio::test]
async fn a_process_left_behind_does_not_delay_the_end_of_the_daemon() {
    let client = script("sleep 600 & echo $! >&2; exit 3")
        .spawn()
        .await
        .unwrap();
    let error = soon(client.get_leaf()).await.unwrap_err();
    let Error::Disconnected(why) = error else {
        panic!("{error}");
    };
    assert_eq!(why.status.unwrap().code(), Some(3));
    kill(why.last_words.parse().unwrap());
}

#[tokio::test]
async fn the_end_of_output_is_the_end_of_the_daemon() {
    let builder = script("exec >&-; exec sleep 600").grace(Duration::from_millis(200));
    let client = builder.spawn().await.unwrap();
    let error = soon(client.get_leaf()).await.unwrap_err();
    assert!(matches!(error, Error::Disconnected(_)), "{error}");
    assert!(!is_alive(client.pid().unwrap()));
}

#[tokio::test]
async fn on_log_gets_each_line_and_the_error_quotes_the_last() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let lines = Arc::clone(&log);
    let builder = script("echo one >&2; echo 'two and out' >&2; exit 4")
        .on_log(move |line| lines.lock().unwrap().push(line.to_owned()));
    let client = builder.spawn().await.unwrap();
    let why = soon(client.closed()).await;
    assert_eq!(*log.lock().unwrap(), ["one", "two and out"]);
    assert_eq!(why.last_words, "one\ntwo and out");
    let text = why.to_string();
    let expected = "the daemon has ended (exit status: 4): one\ntwo and out";
    assert_eq!(text, expected);
}

#[tokio::test]
async fn a_flood_of_log_output_blocks_nothing() {
    let flood = "head -c 1000000 /dev/zero | tr '\\0' 'x' >&2; echo end >&2; exit 5";
    let client = script(flood).spawn().await.unwrap();
    let why = soon(client.closed()).await;
    assert!(why.last_words.ends_with("xend"), "{why}");
    assert!(why.last_words.len() <= 4096);
}

#[tokio::test]
async fn attach_connects_to_a_running_daemon() {
    let fixture = Fixture::new();
    let mut child = Command::new(program())
        .arg("--session-dir")
        .arg(fixture.folder.path().join("sessions"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let client = Client::builder().attach(stdout, stdin).await.unwrap();
    assert_eq!(client.pid(), None);
    conversation(&client).await;
    soon(client.close()).await.unwrap();
    assert!(soon(child.wait()).await.unwrap().success());
}

#[tokio::test]
async fn the_end_of_an_attached_daemon_fails_open_calls() {
    let (client, mut daemon) = FakeDaemon::connect(Client::builder()).await;
    let call = tokio::spawn(client.call::<_, Json>("get_leaf", json!({})).into_future());
    daemon.receive().await;
    drop(daemon);
    let error = soon(call).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Disconnected(_)), "{error}");
    assert_eq!(error.to_string(), "the connection was closed");
}
