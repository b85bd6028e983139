//! `connect --start`: it starts one daemon, which is independent of the terminal and of the process that starts it.

use std::collections::BTreeSet;
use std::thread;

use super::*;
use crate::permissions::mode;

#[test]
fn fifty_starters_at_once_start_exactly_one_daemon() {
    let home = Home::new();
    let starters: Vec<_> = (0..50)
        .map(|_| {
            let home = home.clone();
            thread::spawn(move || {
                home.run(&["connect", "--start"], &[], introduction())
                    .clean()
            })
        })
        .collect();
    let instances: BTreeSet<String> = starters
        .into_iter()
        .map(|starter| {
            let answers = starter.join().unwrap().responses();
            assert_eq!(answers["2"]["result"]["sessions"], json!([]));
            answers["1"]["result"]["instanceId"].to_string()
        })
        .collect();
    assert_eq!(instances.len(), 1, "{instances:?}");
    let background = Background { home: home.clone() };
    let pid = background.pid();
    let log = fs::read_to_string(beside(&background.socket(), "log")).unwrap();
    assert_eq!(log, "", "no second daemon has tried");
    drop(background);
    wait_until_dead(pid);
}

#[test]
fn the_daemon_is_detached_from_the_terminal_and_from_its_starter() {
    let background = Background::start();
    let pid = background.pid().as_raw_pid();
    let (parent, session) = parent_and_session(&pid.to_string());
    let starter = background.status()["environment"]["pid"].to_string();
    assert_ne!(
        parent, starter,
        "it does not end with the process tree of its starter"
    );
    let (_, own) = parent_and_session("self");
    assert_ne!(session, own);
    let link = |name: &str| fs::read_link(format!("/proc/{pid}/{name}")).unwrap();
    assert_eq!(link("fd/0"), Path::new("/dev/null"));
    assert_eq!(link("fd/1"), Path::new("/dev/null"));
    assert_eq!(link("fd/2"), beside(&background.socket(), "log"));
    assert_eq!(link("cwd"), Path::new("/"));
}

/// The parent and the session of a process, as text. Both are 0 if they are outside of its PID namespace.
/// `rustix::process::getsid` panics there, so this reads `/proc`.
fn parent_and_session(pid: &str) -> (String, String) {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let fields: Vec<&str> = fields.split(' ').collect();
    (fields[1].to_owned(), fields[3].to_owned())
}

/// A child that inherited the descriptor of the lock and outlived the daemon would hold the lock, and no other daemon
/// could start.
#[test]
fn programs_that_the_daemon_runs_inherit_no_descriptor() {
    let background = Background::start();
    let pid = background.pid().as_raw_pid();
    let mut count = 0;
    for entry in fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap() {
        let entry = entry.unwrap();
        let descriptor: i32 = entry.file_name().to_str().unwrap().parse().unwrap();
        if descriptor > 2 {
            let info = fs::read_to_string(entry.path()).unwrap();
            let flags = info
                .lines()
                .find_map(|line| line.strip_prefix("flags:"))
                .unwrap();
            let flags = u32::from_str_radix(flags.trim(), 8).unwrap();
            assert_ne!(
                flags & 0o2_000_000,
                0,
                "{descriptor} is closed in children: {info}"
            );
            count += 1;
        }
    }
    assert!(count >= 2, "the socket and the runtime file: {count}");
}

#[test]
fn the_files_of_a_daemon_are_private_whatever_the_umask() {
    let home = Home::new();
    let connect = home.command(&["connect", "--start"], &[]);
    let mut command = through_shell("umask 000; exec \"$0\" \"$@\"", &connect);
    let status = command.stdin(std::process::Stdio::null()).status().unwrap();
    assert!(status.success());
    let background = Background { home };
    let socket = background.socket();
    assert_eq!(mode(socket.parent().unwrap()), 0o700);
    for path in [
        socket.clone(),
        beside(&socket, "json"),
        beside(&socket, "lock"),
        beside(&socket, "log"),
    ] {
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[test]
fn a_killed_daemon_makes_room_for_another() {
    let background = Background::start();
    let socket = background.socket();
    let first = background.pid();
    let home = background.kill();
    assert!(
        socket.exists() && beside(&socket, "json").exists(),
        "nobody has tidied up"
    );
    let output = home.run(&["connect"], &[], introduction());
    fails(&output, 3, &["no daemon runs"]);
    let background = Background::start_in(&home, &[]);
    assert_ne!(background.pid(), first);
}

#[test]
fn two_session_directories_have_two_daemons() {
    let home = Home::new();
    let other = home.files().join("other");
    let other = other.to_str().unwrap();
    let instance = |args: &[&str]| {
        let args = [args, &["connect", "--start"]].concat();
        let output = home.run(&args, &[], introduction()).clean();
        output.responses()["1"]["result"]["instanceId"].to_string()
    };
    let first = instance(&[]);
    let second = instance(&["--session-dir", other]);
    assert_ne!(first, second);
    assert_eq!(instance(&[]), first);
    assert_eq!(instance(&["--session-dir", other]), second);
    for args in [&["stop"][..], &["--session-dir", other, "stop"]] {
        home.run(args, &[], "").clean();
    }
}

#[test]
fn a_daemon_with_an_idle_time_ends_by_itself_and_leaves_no_socket() {
    let home = Home::new();
    let args = |time| ["connect", "--start", "--idle-exit", time];
    // While this client is connected, the daemon does not end.
    let mut client = Daemon::spawned(&home, home.command(&args("1s"), &[]));
    client.ok("list_sessions", json!({}));
    let other = home.run(&args("1m"), &[], introduction());
    fails(&other, 1, &["--idle-exit 1s", "60s"]);
    drop(client);
    within("it ends", || !socket_of(&home).exists());
    fails(&home.run(&["status"], &[], ""), 3, &["no daemon runs"]);
}

/// The log once grew without a limit while the daemon ran.
#[test]
fn the_log_of_a_daemon_stays_small() {
    let home = Home::new();
    let env = [("TREELINED_LOG", "trace")];
    home.run(&["connect", "--start"], &env, "").clean();
    let background = Background { home };
    let log = beside(&background.socket(), "log");
    fs::write(&log, "x\n".repeat(1 << 20)).unwrap();
    let list = request(&json!(1), "list_sessions", &json!({}));
    background.home.run(&["connect"], &[], list).clean();
    within("the log is cut", || {
        fs::metadata(&log).unwrap().len() < 1 << 20
    });
    let text = fs::read_to_string(&log).unwrap();
    assert!(
        text.starts_with("x\n") && text.contains("list_sessions"),
        "its end is kept"
    );
}

/// The daemon once inherited a pipe from its starter and kept it open, so the reader of the pipe waited as long as the
/// daemon ran.
#[test]
fn a_pipe_of_the_starter_is_not_kept_open() {
    let home = Home::new();
    let connect = home.command(&["connect", "--start"], &[]);
    let script = "exec 3>&1; exec \"$0\" \"$@\" >/dev/null </dev/null";
    // The shell waits for the end of the pipe.
    let output = through_shell(script, &connect).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    Background { home }.pid();
}
