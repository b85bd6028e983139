//! `treelined status` and `treelined stop`.

use super::*;

#[test]
fn status_describes_the_daemon() {
    let background = Background::start();
    let _client = {
        let mut client = background.connect();
        client.ok("list_sessions", json!({}));
        client
    };
    let status = background.status();
    let socket = background.socket();
    assert_eq!(status["running"], true);
    assert_eq!(status["socket"], socket.to_str().unwrap());
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(status["protocolVersion"], 1);
    assert_eq!(status["webSocket"], Json::Null);
    assert_eq!(
        status["sessionDir"],
        background.home.sessions().to_str().unwrap()
    );
    assert_eq!(status["environment"]["startedBy"], "connect");
    assert_eq!(
        status["environment"]["cwd"],
        background.home.cwd().to_str().unwrap()
    );
    assert_eq!(status["options"]["durability"], "interval");
    assert_eq!(status["connections"], 1, "{status}");
    assert_eq!(status["problem"], Json::Null);
    let pid = pid_of(&status).as_raw_pid();
    let exe = fs::read_link(format!("/proc/{pid}/exe")).unwrap();
    assert_eq!(exe, binary().canonicalize().unwrap());
    let text = background.home.run(&["status"], &[], "").clean().text();
    for part in [
        &pid.to_string(),
        socket.to_str().unwrap(),
        "treelined connect",
        "durability interval",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn without_a_daemon_status_and_stop_end_with_code_3() {
    let home = Home::new();
    for command in ["status", "stop"] {
        fails(
            &home.run(&[command], &[], ""),
            3,
            &["no daemon runs", "connect --start"],
        );
    }
    let home = Background::start_in(&home, &[]).kill();
    for command in ["status", "stop"] {
        fails(&home.run(&[command], &[], ""), 3, &["no daemon runs"]);
    }
}

#[test]
fn stop_waits_for_the_end_and_leaves_nothing_but_lock_and_log() {
    let background = Background::start();
    let (pid, socket) = (background.pid(), background.socket());
    let output = background.home.run(&["stop"], &[], "").clean().text();
    assert!(output.contains(&pid.as_raw_pid().to_string()), "{output}");
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid()));
    assert!(
        stat.is_err() || stat.is_ok_and(|stat| stat.contains(") Z ")),
        "it has ended"
    );
    let folder = fs::read_dir(socket.parent().unwrap()).unwrap();
    let mut left: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    left.sort();
    assert_eq!(left, [beside(&socket, "lock"), beside(&socket, "log")]);
}

/// The process id of a killed daemon may now belong to another process of the user.
#[test]
fn stop_never_signals_a_process_that_is_not_the_daemon() {
    let background = Background::start();
    let socket = background.socket();
    let home = background.kill();
    let mut other = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .unwrap();
    let path = beside(&socket, "json");
    let mut info: Json = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    info["pid"] = json!(other.id());
    fs::write(&path, info.to_string()).unwrap();
    fails(&home.run(&["stop"], &[], ""), 3, &["no daemon runs"]);
    assert_eq!(other.try_wait().unwrap(), None, "it runs on");
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn the_daemon_of_serve_is_found_too() {
    let home = Home::new();
    let mut daemon = home
        .command(&["serve", "--listen", "unix"], &[])
        .spawn()
        .unwrap();
    within("it listens", || {
        home.run(&["status"], &[], "").code == Some(0)
    });
    let output = home.run(&["serve", "--listen", "unix"], &[], "");
    fails(
        &output,
        1,
        &["already", &daemon.id().to_string(), "treelined stop"],
    );
    let background = Background { home: home.clone() };
    assert_eq!(background.status()["environment"]["startedBy"], "serve");
    assert_eq!(
        background.status()["environment"]["pid"],
        std::process::id()
    );
    drop(background);
    assert_eq!(wait(&mut daemon, DEADLINE), Some(0));
}

/// Stops a process, and waits until it has stopped. Its threads run for a moment after the signal, and could answer.
fn stop(pid: Pid) {
    kill_process(pid, Signal::STOP).unwrap();
    let tasks = format!("/proc/{}/task", pid.as_raw_nonzero());
    let is_stopped = |task: std::io::Result<std::fs::DirEntry>| {
        let status = std::fs::read_to_string(task.unwrap().path().join("stat"));
        status.is_ok_and(|status| status.contains(") T "))
    };
    while std::fs::read_dir(&tasks).is_ok_and(|mut all| !all.all(is_stopped)) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn a_stopped_process_is_a_problem_that_status_names() {
    let background = Background::start();
    let pid = background.pid();
    stop(pid);
    let output = background.home.run(&["status", "--json"], &[], "");
    assert_eq!(output.code, Some(1), "{output:?}");
    let status: Json = serde_json::from_str(&output.text()).unwrap();
    let problem = status["problem"].as_str().unwrap();
    assert!(
        problem.contains("does not answer") && problem.contains("kill -9"),
        "{problem}"
    );
    let output = background.home.run(&["connect"], &[], "");
    fails(&output, 1, &["does not answer"]);
    kill_process(pid, Signal::CONT).unwrap();
}

/// The command once printed nothing on stdout.
#[test]
fn status_says_in_json_that_no_daemon_runs() {
    let home = Home::new();
    let output = home.run(&["status", "--json"], &[], "");
    assert_eq!(output.code, Some(3), "{output:?}");
    let status: Json = serde_json::from_str(&output.text()).unwrap();
    assert_eq!(status["running"], false);
    assert_eq!(status["sessionDir"], home.sessions().to_str().unwrap());
    assert!(
        status["socket"].as_str().unwrap().ends_with(".sock"),
        "{status}"
    );
    assert_eq!(output.stderr, "");
}
