//! Only their owner can read the files and folders that the daemon creates. session-file.md §5.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::harness::*;

pub(crate) fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn every_file_and_folder_is_private_to_its_owner() {
    let home = Home::new();
    fs::remove_dir(home.sessions()).unwrap();
    let mut command = Command::new("sh");
    let args = ["-c", "umask 000; exec \"$0\" \"$@\""];
    let daemon = home.command(&["--session-dir", home.sessions().to_str().unwrap()], &[]);
    command
        .args(args)
        .arg(daemon.get_program())
        .args(daemon.get_args());
    command.current_dir(home.cwd()).env("HOME", home.files());
    for stream in [Command::stdin, Command::stdout, Command::stderr] {
        stream(&mut command, Stdio::piped());
    }
    let mut d = Daemon::spawned(&home, command);
    for name in ["session_fork", "session_before_fork"] {
        d.ignore(name);
    }
    d.ignore_bookkeeping();
    let session = d.create();
    d.user("u1", "x");
    d.ok(
        "fork_session",
        json!({"sessionId": session, "entryId": "u1", "position": "at"}),
    );
    d.ok("delete_session", json!({"sessionId": session}));
    let old = home.file("old.jsonl", br#"{"type":"session","version":2,"id":"old","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/"}
"#);
    d.open(&old);
    d.ok(
        "append_message",
        json!({"sessionId": "old", "message": user("x")}),
    );
    assert_eq!(mode(&home.files().join("old.jsonl.v2.bak")), 0o600);
    assert_eq!(mode(&old), 0o600);
    let mut waiting = vec![home.sessions()];
    let mut seen = 0;
    while let Some(path) = waiting.pop() {
        seen += 1;
        if path.is_dir() {
            assert_eq!(mode(&path), 0o700, "{}", path.display());
            waiting.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|item| item.unwrap().path()),
            );
        } else {
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
    }
    assert!(
        seen >= 5,
        "directory, folder, fork, trash, trashed file: {seen}"
    );
}

#[test]
fn loose_permissions_of_the_session_directory_are_warned_about_once() {
    for made_before in [true, false] {
        let home = Home::new();
        let loose = fs::Permissions::from_mode(0o755);
        fs::set_permissions(home.sessions(), loose).unwrap();
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "list_sessions"}).to_string();
        let create = json!({"jsonrpc": "2.0", "id": 2, "method": "create_session"}).to_string();
        let script = if made_before {
            format!("{list}\n{create}\n{list}\n")
        } else {
            format!("{create}\n{list}\n{create}\n")
        };
        let output = home.run(&[], &[], script);
        let warnings = output
            .stderr
            .lines()
            .filter(|line| line.contains("can be read"))
            .count();
        assert_eq!(warnings, 1, "{}", output.stderr);
        assert_eq!(
            mode(&home.sessions()),
            0o755,
            "not changed behind the user's back"
        );
    }
}

#[test]
fn a_session_file_and_its_folder_are_private() {
    let mut d = Daemon::quiet();
    d.create();
    d.user("u1", "hello");
    let path = d.home.only_file();
    let mode = |p: &std::path::Path| fs::metadata(p).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
}
