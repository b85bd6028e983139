//! Sources that are damaged, locked or unreadable. The report has a line for each, with tool, file and reason. Other
//! sources are imported.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{conversation, params, record};
use crate::harness::*;
use rusqlite::Connection;

fn data(path: &str) -> PathBuf {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/import");
    data.join(path)
}

/// The failures of an import: the tool, the end of the path, and the kind of each.
fn failures(result: &Json) -> Vec<(String, String, String)> {
    let files = result["files"].as_array().unwrap().iter();
    let failures = files.filter_map(|file| {
        let error = file.get("error")?;
        assert!(!error["message"].as_str().unwrap().is_empty(), "{file}");
        let path = Path::new(file["path"].as_str().unwrap());
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = |value: &Json| value.as_str().unwrap_or("none").to_owned();
        Some((text(&file["tool"]), name, text(&error["kind"])))
    });
    failures.collect()
}

fn failure(tool: &str, name: &str, kind: &str) -> (String, String, String) {
    (tool.to_owned(), name.to_owned(), kind.to_owned())
}

/// An intact database beside one that cannot be read. `change` makes the second one unreadable; the value that it
/// returns lives until the end of the check.
fn check_database<T>(
    tool: &str,
    of: &str,
    name: &str,
    kind: &str,
    change: impl FnOnce(&Path) -> T,
) {
    let home = Home::new();
    let bad = home.file(name, &fs::read(data(of)).unwrap());
    let guard = change(&bad);
    home.file("s.jsonl", conversation("s", 2).as_bytes());
    let good = home.files().join("good");
    fs::create_dir(&good).unwrap();
    fs::copy(data(of), good.join(Path::new(of).file_name().unwrap())).unwrap();
    let mut d = Daemon::quiet_in(&home);
    let paths = json!([bad, good, home.files().join("s.jsonl")]);
    let wanted = json!({"from": tool, "paths": [bad, good], "final": true});
    let result = d.ok("import_sessions", wanted);
    assert_eq!(failures(&result), [failure(tool, name, kind)], "{result}");
    assert_eq!(result["totals"]["failed"], 1);
    assert!(!result["sessions"].as_array().unwrap().is_empty());
    let every = d.ok("import_sessions", json!({"paths": paths, "final": true}));
    assert_eq!(every["totals"]["failed"], 1, "{every}");
    let rows = every["sessions"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["tool"] == "claude-code"));
    drop(guard);
}

#[test]
fn a_database_of_an_unknown_version_is_reported() {
    check_database(
        "goose",
        "goose/sessions.db",
        "sessions.db",
        "unknownSchema",
        |path| {
            let database = Connection::open(path).unwrap();
            let row = "INSERT INTO schema_version (version) VALUES (99)";
            database.execute(row, []).unwrap();
        },
    );
    check_database(
        "opencode",
        "opencode/opencode.db",
        "opencode.db",
        "unknownSchema",
        |path| {
            let database = Connection::open(path).unwrap();
            database
                .execute_batch("ALTER TABLE message RENAME COLUMN data TO body")
                .unwrap();
        },
    );
}

#[test]
fn a_damaged_database_is_reported() {
    check_database(
        "goose",
        "goose/sessions.db",
        "sessions.db",
        "damaged",
        |path| {
            let mut bytes = fs::read(path).unwrap();
            let len = bytes.len();
            bytes[1024..len].fill(0xa5);
            fs::write(path, bytes).unwrap();
        },
    );
    check_database(
        "opencode",
        "opencode/opencode.db",
        "opencode.db",
        "notDatabase",
        |path| {
            fs::write(path, b"no database, but long enough to have a header of one: 0123456789 0123456789 0123456789 0123456789").unwrap();
        },
    );
}

#[test]
fn a_locked_database_is_reported_and_imported_later() {
    check_database(
        "goose",
        "goose/sessions.db",
        "sessions.db",
        "locked",
        |path| {
            let database = Connection::open(path).unwrap();
            let lock =
                "PRAGMA journal_mode = delete; BEGIN EXCLUSIVE; UPDATE sessions SET name = name";
            database.execute_batch(lock).unwrap();
            database
        },
    );
    let home = Home::new();
    let path = home.file("sessions.db", &fs::read(data("goose/sessions.db")).unwrap());
    let database = Connection::open(&path).unwrap();
    let lock = "PRAGMA journal_mode = delete; BEGIN EXCLUSIVE; UPDATE sessions SET name = name";
    database.execute_batch(lock).unwrap();
    let mut d = Daemon::quiet_in(&home);
    let wanted = json!({"from": "goose", "paths": [path], "final": true});
    let result = d.ok("import_sessions", wanted.clone());
    assert_eq!(
        (&result["totals"]["failed"], &result["totals"]["sessions"]),
        (&json!(1), &json!(0))
    );
    database.execute_batch("COMMIT").unwrap();
    drop(database);
    let result = d.ok("import_sessions", wanted);
    assert_eq!(result["totals"]["failed"], 0);
    assert!(result["totals"]["entriesAdded"].as_u64().unwrap() > 10);
}

/// Root can read every file, so under root the import runs as another user.
#[test]
fn an_unreadable_file_and_folder_are_reported() {
    let home = Home::in_memory();
    let projects = home.files().join("projects");
    for folder in ["open", "closed"] {
        fs::create_dir_all(projects.join(folder)).unwrap();
        let text = conversation(folder, 2);
        fs::write(projects.join(folder).join("s.jsonl"), text).unwrap();
    }
    let hidden = projects.join("open/hidden.jsonl");
    fs::write(&hidden, conversation("hidden", 2)).unwrap();
    let files = home.files();
    let args = [
        "import",
        "--from",
        "claude-code",
        "--final",
        "--json",
        files.to_str().unwrap(),
    ];
    let mut command = home.command(&args, &[]);
    if rustix::process::geteuid().is_root() {
        let root = home.files();
        let root = root.parent().unwrap();
        let owned = Command::new("chown")
            .args(["-R", "65534:65534"])
            .arg(root)
            .status();
        let is_ready = owned.is_ok_and(|status| status.success());
        let can_switch = Command::new("setpriv").arg("--version").output().is_ok();
        if !is_ready || !can_switch {
            return skip(Needs::Faults, "setpriv");
        }
        let mut other = Command::new("setpriv");
        other.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        other.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => other.env(name, value),
                None => other.env_remove(name),
            };
        }
        other.current_dir(home.cwd());
        command = other;
    }
    let closed = [projects.join("closed"), hidden.clone()];
    let allow = |mode: u32| {
        for path in &closed {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    allow(0o000);
    let output = command.output().unwrap();
    allow(0o700);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    let result: Json = serde_json::from_slice(&output.stdout).unwrap();
    let mut found = failures(&result);
    found.sort();
    let expected = [
        failure("claude-code", "closed", "pathDenied"),
        failure("claude-code", "hidden.jsonl", "pathDenied"),
    ];
    assert_eq!(found, expected, "{result}");
    assert_eq!(result["totals"]["sessions"], 1, "the readable one");
}

/// A named pipe without a writer would block the import for ever.
#[test]
fn a_pipe_among_the_sources_is_skipped() {
    let home = Home::new();
    let pipe = home.files().join("p.jsonl");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    fs::create_dir(home.files().join("folder.jsonl")).unwrap();
    home.file("s.jsonl", conversation("s", 2).as_bytes());
    let mut d = Daemon::quiet_in(&home);
    let result = d.ok("import_sessions", params(&home));
    assert_eq!(result["totals"]["sessions"], 1, "{result}");
    assert_eq!(result["totals"]["entriesAdded"], 4);
    let result = d.ok(
        "import_sessions",
        json!({"paths": [pipe], "from": "claude-code"}),
    );
    assert_eq!(result["totals"]["failed"], 1, "{result}");
}

/// The damage is on a separate line, before or after a record, and inside a string.
#[test]
fn nul_bytes_glued_records_and_lone_surrogates_lose_no_record() {
    let home = Home::new();
    let text = conversation("s", 3);
    let lines: Vec<&str> = text.lines().collect();
    let odd = record(
        "s",
        "user",
        6,
        &json!({"role": "user", "content": "SURROGATE"}),
    );
    let odd = odd.replace("SURROGATE", "a\\ud83d b\\u0000 c\\u2028 \\u001b[31m");
    let damaged = [
        format!("\0\0\0{}\n", lines[0]),
        format!("{}{}\n", lines[1], lines[2]),
        "\0\0\0\0\0\0\n".to_owned(),
        format!("{}\0\0\n", lines[3]),
        format!("{}\r\n{}\n", lines[4], lines[5]),
        odd,
    ];
    home.file("s.jsonl", damaged.concat().as_bytes());
    let mut d = Daemon::quiet_in(&home);
    let result = d.ok("import_sessions", params(&home));
    assert_eq!(result["totals"]["entriesAdded"], 7, "{result}");
    assert_eq!(result["totals"]["gaps"], 0);
    let path = result["sessions"][0]["path"].as_str().unwrap();
    let written = fs::read_to_string(path).unwrap();
    assert!(written.contains("a\\ud83d b\\u0000 c\\u2028 \\u001b[31m"));
    let output = home.run(&["doctor", "--origin", path], &[], "");
    assert_eq!(output.code, Some(0), "{output:?}");
    // The result is an ordinary session: a client can read and continue it.
    d.open(Path::new(path));
    let context = d.ok("get_context", json!({"format": "llm"}));
    assert_eq!(context["messages"].as_array().unwrap().len(), 7);
    d.assistant("mine", "on");
    assert_eq!(
        d.ok("import_sessions", params(&home))["totals"]["entriesAdded"],
        0
    );
}
