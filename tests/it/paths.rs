//! Ids and paths: no id leads out of the session directory, and only regular files are opened. session-file.md §1, §5.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::harness::*;

const SAFE: &[u8] = b"not to be touched";

/// Ids that are not allowed, as a client could send them.
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
fn ids_do_not_lead_out_of_the_session_directory() {
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
        d.err_kind("append_message", params, "invalidParams");
    }
    for id in ["x".repeat(128), "a..b".to_owned(), "A-1_2.z".to_owned()] {
        d.ok("create_session", json!({"sessionId": id}));
        d.ok(
            "append_message",
            json!({"sessionId": id, "message": user("x"), "entryId": id}),
        );
    }
    assert_eq!(fs::read(&outside).unwrap(), SAFE);
    assert_eq!(home.session_files().len(), 3);
    assert_nothing_outside(&home, &["outside.jsonl"]);
}

/// Checks that the daemon created no file outside the session directory.
#[track_caller]
fn assert_nothing_outside(home: &Home, files: &[&str]) {
    let names = |folder: PathBuf| -> Vec<String> {
        let items = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = items
            .map(|item| item.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(home.files()), files);
    assert_eq!(names(home.cwd()), [""; 0]);
    let root = home.files().parent().unwrap().to_owned();
    assert_eq!(names(root), ["files", "run", "sessions", "work"]);
}

/// `cwd` and `parentSession` are data: they name a folder, and the daemon opens no file by them.
#[test]
fn a_working_directory_does_not_lead_out_of_the_session_directory() {
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
    assert_nothing_outside(&home, &[]);
}

#[test]
fn only_regular_files_are_opened() {
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
    for (path, kind) in [
        ("", "pathDenied"),
        ("/nowhere/at/all.jsonl", "storageIo"),
        ("a\0b", "storageIo"),
        (&"x".repeat(300), "storageIo"),
        (&"/x".repeat(5_000), "storageIo"),
    ] {
        d.err_kind("open_session", json!({"path": path}), kind);
    }
    assert!(
        began.elapsed() < Duration::from_secs(60),
        "nothing was waited for"
    );
    d.open(&real);
}

/// Files in the session directory that are not session files are not changed, and opening them never blocks.
#[test]
fn links_pipes_and_folders_in_the_session_directory_are_ignored() {
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
