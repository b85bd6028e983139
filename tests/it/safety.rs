//! Ids, paths and permissions: nothing leads out of the session directory, nothing that is no regular
//! file is touched, nobody else can read what is written. storage.md §1, §5.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::harness::*;

const SAFE: &[u8] = b"not to be touched";

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

/// Ids nobody may use, as a client could send them.
fn bad_ids() -> Vec<String> {
    let mut ids: Vec<String> = [
        "",
        ".",
        "..",
        "../x",
        "..\\x",
        "/etc/passwd",
        "a/b",
        "a\\b",
        "a b",
        "-a",
        "a-",
        ".a",
        "a.",
        "_a",
        "a\0b",
        "a\nb",
        "a\u{202e}b",
        "ä",
        "a:b",
        "~",
        "*",
        "%2e%2e",
        "\u{1b}[2J",
    ]
    .map(str::to_owned)
    .to_vec();
    ids.push("x".repeat(129));
    ids.push("x".repeat(1 << 20));
    ids
}

#[test]
fn ids_lead_nowhere() {
    let home = Home::new();
    let outside = home.file("outside.jsonl", SAFE);
    let mut d = Daemon::quiet_in(&home);
    for id in bad_ids() {
        d.err_kind("create_session", json!({"sessionId": id}), "invalidParams");
        d.err_kind("open_session", json!({"sessionId": id}), "sessionNotFound");
        d.err_kind(
            "delete_session",
            json!({"sessionId": id}),
            "sessionNotFound",
        );
    }
    d.create();
    for id in bad_ids() {
        let params = json!({"message": user("x"), "entryId": id});
        assert!(
            ["invalidParams", "entryInvalid"]
                .contains(&d.err("append_message", params).kind.as_str())
        );
    }
    for id in ["x".repeat(128), "a..b".to_owned(), "A-1_2.z".to_owned()] {
        d.ok("create_session", json!({"sessionId": id}));
        d.ok(
            "append_message",
            json!({"sessionId": id, "message": user("x"), "entryId": id}),
        );
    }
    assert_eq!(fs::read(&outside).unwrap(), SAFE);
    let root = home.sessions();
    assert!(
        home.session_files()
            .iter()
            .all(|path| path.starts_with(&root))
    );
    assert_eq!(home.session_files().len(), 3);
}

/// `cwd` and `parentSession` are data: they name a folder, and open nothing.
#[test]
fn a_working_directory_names_a_folder_and_leads_nowhere() {
    let home = Home::new();
    let mut d = Daemon::quiet_in(&home);
    for (n, cwd) in [
        "../../../etc",
        "/",
        "..",
        "",
        "a\0b",
        "/tmp/../..",
        "C:\\x",
        "\u{202e}",
        &"/x".repeat(5_000),
    ]
    .iter()
    .enumerate()
    {
        let id = format!("s{n}");
        let parent = "/etc/passwd";
        d.ok(
            "create_session",
            json!({"sessionId": id, "cwd": cwd, "parentSession": parent}),
        );
        d.ok(
            "append_message",
            json!({"sessionId": id, "message": user("x")}),
        );
    }
    let root = home.sessions();
    for path in home.session_files() {
        assert_eq!(
            path.parent().unwrap().parent().unwrap(),
            root,
            "{}",
            path.display()
        );
    }
    assert_eq!(home.session_files().len(), 9);
}

#[test]
fn paths_lead_to_regular_files_only() {
    let home = Home::new();
    let real = home.file(
        "real.jsonl",
        Log::new("s1").user("u1", "", "x").text().as_bytes(),
    );
    let link = home.files().join("link.jsonl");
    symlink(&real, &link).unwrap();
    let fifo = home.files().join("fifo.jsonl");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let folder = home.files().join("folder.jsonl");
    fs::create_dir(&folder).unwrap();
    let mut d = Daemon::quiet_in(&home);
    let denied: [PathBuf; 7] = [
        link,
        fifo,
        folder,
        "/dev/null".into(),
        "/dev/zero".into(),
        "/dev/tty".into(),
        "/".into(),
    ];
    let began = Instant::now();
    for path in denied {
        d.err_kind("open_session", json!({"path": path}), "pathDenied");
    }
    for path in [
        "",
        "/nowhere/at/all.jsonl",
        "a\0b",
        &"x".repeat(300),
        &"/x".repeat(5_000),
    ] {
        let error = d.err("open_session", json!({"path": path}));
        assert!(
            [
                "storageIo",
                "pathDenied",
                "sessionNotFound",
                "invalidParams"
            ]
            .contains(&error.kind.as_str()),
            "{path:.20}: {error:?}"
        );
    }
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "nothing was waited for"
    );
    d.open(&real);
}

/// What lies in the session directory and is no session file is left alone, and nobody waits for it.
#[test]
fn strange_things_in_the_session_directory_are_passed_over() {
    let home = Home::new();
    let folder = home.sessions().join("--project--");
    fs::create_dir(&folder).unwrap();
    let outside = home.file(
        "outside.jsonl",
        Log::new("out").user("u1", "", "x").text().as_bytes(),
    );
    symlink(&outside, folder.join("2025_link.jsonl")).unwrap();
    symlink(home.files(), home.sessions().join("--linked--")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        folder.join("2025_fifo.jsonl"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    fs::create_dir(folder.join("2025_folder.jsonl")).unwrap();
    fs::write(
        folder.join("2025_good.jsonl"),
        Log::new("good").user("u1", "", "x").text(),
    )
    .unwrap();
    let mut d = Daemon::quiet_in(&home);
    let rows = d.ok("list_sessions", json!({}))["sessions"].clone();
    assert_eq!(rows.as_array().unwrap().len(), 1);
    assert_eq!(rows[0]["sessionId"], "good");
    for id in ["link", "out", "fifo", "folder"] {
        d.err_kind("open_session", json!({"sessionId": id}), "sessionNotFound");
    }
    d.ok("open_session", json!({"sessionId": "good"}));
}

#[test]
fn everything_that_is_written_is_the_owners_alone() {
    let home = Home::new();
    fs::remove_dir(home.sessions()).unwrap();
    let mut command = std::process::Command::new("sh");
    let args = ["-c", "umask 000; exec \"$0\" \"$@\""];
    let daemon = home.command(&["--session-dir", home.sessions().to_str().unwrap()], &[]);
    command
        .args(args)
        .arg(daemon.get_program())
        .args(daemon.get_args());
    command.current_dir(home.cwd()).env("HOME", home.files());
    for stream in [
        std::process::Command::stdin,
        std::process::Command::stdout,
        std::process::Command::stderr,
    ] {
        stream(&mut command, std::process::Stdio::piped());
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
fn doctor_repairs_only_on_request_and_keeps_what_it_takes_out() {
    let home = Home::new();
    let text = Log::new("s1")
        .user("u1", "", "x")
        .raw("{\"type\":\"mess")
        .user("u2", "u1", "y")
        .text();
    let path = home.file("s.jsonl", text.as_bytes());
    let file = path.to_str().unwrap();
    for args in [
        vec!["doctor", file],
        vec!["doctor", "--repair", "--dry-run", file],
    ] {
        let output = home.run(&args, &[], "");
        assert_eq!(
            (output.code, &*output.stderr),
            (Some(1), ""),
            "{}",
            output.text()
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "{args:?}");
    }
    let output = home.run(&["doctor", "--repair", file], &[], "").clean();
    assert!(
        output.text().contains("repaired: 1 line mended"),
        "{}",
        output.text()
    );
    let lines = file_lines(&path);
    assert_eq!(lines.len(), 3);
    let kept = home.files().join("s.jsonl.quarantine/1.damaged");
    assert_eq!(fs::read_to_string(&kept).unwrap(), "{\"type\":\"mess\n");
    assert_eq!((mode(&kept), mode(kept.parent().unwrap())), (0o600, 0o700));
}
