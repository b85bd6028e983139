//! Deleting sessions, and restoring them from the trash. session-file.md §5.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::harness::*;
use crate::listing::listed;

fn names(folder: &Path) -> Vec<String> {
    let items = fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<String> = items
        .map(|item| item.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn trash(home: &Home) -> PathBuf {
    home.sessions().join(".trash")
}

/// Writes a session file with this id and one message.
fn stored(home: &Home, id: &str) -> PathBuf {
    Log::new(id)
        .user("u1", "", &format!("about {id}"))
        .store(home, &format!("2025-01-01T00-00-00-000Z_{id}.jsonl"))
}

/// A delete that failed once closed the session.
#[test]
fn a_session_that_cannot_be_deleted_stays_open() {
    let home = Home::new();
    let elsewhere = home.files().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, trash(&home)).unwrap();
    let path = stored(&home, "s1");
    let backup = path.with_file_name(format!(
        "{}.v1.bak",
        path.file_name().unwrap().to_str().unwrap()
    ));
    fs::write(&backup, "original").unwrap();
    let mut d = Daemon::quiet_in(&home);
    d.open(&path);
    d.call("delete_session", json!({"sessionId": "s1"}))
        .unwrap_err();
    assert!(path.exists() && backup.exists());
    assert_eq!(names(&elsewhere), [""; 0]);
    d.user("u2", "goes on");
    assert_eq!(d.ids(), ["u1", "u2"]);
    fs::remove_file(trash(&home)).unwrap();
    d.ok("delete_session", json!({"sessionId": "s1"}));
    assert!(!path.exists() && !backup.exists());
    d.err_kind("get_leaf", json!({"sessionId": "s1"}), "sessionNotFound");
}

/// The backup `.v1.bak`, with the whole conversation, was once left when the session was deleted. Now the files of a
/// session go to the trash and come back together. The files of its fork and of other programs stay.
#[test]
fn files_that_belong_to_a_session_are_deleted_and_restored_with_it() {
    let home = Home::new();
    let (path, fork) = (stored(&home, "s1"), stored(&home, "fork"));
    let beside = |path: &Path, suffix: &str| {
        let mut name = path.file_name().unwrap().to_owned();
        name.push(suffix);
        path.with_file_name(name)
    };
    let mine = [".v1.bak", ".v2.bak.2"];
    for suffix in mine {
        fs::write(beside(&path, suffix), suffix).unwrap();
    }
    fs::create_dir(beside(&path, ".quarantine")).unwrap();
    fs::write(beside(&path, ".quarantine").join("1.damaged"), "{").unwrap();
    let others = [
        beside(&path, ".mine"),
        beside(&fork, ".v1.bak"),
        beside(&path, ".v1.bak~"),
    ];
    for other in &others {
        fs::write(other, "other").unwrap();
    }
    let before = names(path.parent().unwrap());
    let mut d = Daemon::quiet_in(&home);
    let trashed = d.ok("delete_session", json!({"sessionId": "s1"}))["trashedPath"].clone();
    let trashed = PathBuf::from(trashed.as_str().unwrap());
    assert_eq!(names(&trash(&home)).len(), 4, "{:?}", names(&trash(&home)));
    assert!(beside(&trashed, ".quarantine").join("1.damaged").exists());
    let left = names(path.parent().unwrap());
    assert_eq!(left.len(), before.len() - 4, "{left:?}");
    assert!(others.iter().all(|other| other.exists()));

    let restored = d.ok("restore_session", json!({"sessionId": "s1"}));
    assert_eq!(restored, json!({"sessionId": "s1", "path": path}));
    assert_eq!(names(path.parent().unwrap()), before);
    assert_eq!(names(&trash(&home)), [""; 0]);
    d.open(&path);
    assert_eq!(d.ids(), ["u1"]);
}

#[test]
fn deleted_sessions_are_listed_and_restored() {
    let home = Home::new();
    let mut d = Daemon::quiet_in(&home);
    assert_eq!(d.ok("list_trash", json!({})), json!({"sessions": []}));
    d.err_kind(
        "restore_session",
        json!({"sessionId": "s1"}),
        "sessionNotFound",
    );
    let mut deleted = Vec::new();
    for id in ["s1", "s2", "s1"] {
        let path = stored(&home, id);
        std::thread::sleep(std::time::Duration::from_millis(20));
        let gone = d.ok("delete_session", json!({"sessionId": id}));
        deleted.push((path, gone["trashedPath"].clone()));
    }
    let listed = d.ok("list_trash", json!({}));
    let rows = listed["sessions"].as_array().unwrap();
    let ids: Vec<&str> = rows
        .iter()
        .map(|row| row["sessionId"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["s1", "s2", "s1"]);
    for (row, (path, trashed)) in rows.iter().zip(deleted.iter().rev()) {
        assert_eq!(row["trashedPath"], *trashed);
        assert_eq!(row["path"], json!(path));
        assert_eq!(row["cwd"], "/project");
        assert_eq!(row["messageCount"], 1);
        assert!(row["firstMessage"].as_str().unwrap().starts_with("about s"));
        assert_eq!(row["deletedAt"].as_str().unwrap().len(), stamp(0).len());
    }
    assert!(rows[0]["deletedAt"].as_str() >= rows[1]["deletedAt"].as_str());
    // Pages and working directories work as in `list_sessions`.
    let first = d.ok("list_trash", json!({"limit": 2, "cwd": "/project/"}));
    assert_eq!(first["sessions"].as_array().unwrap().len(), 2);
    let rest = d.ok(
        "list_trash",
        json!({"limit": 2, "cursor": first["nextCursor"]}),
    );
    assert_eq!(rest["sessions"], json!([rows[2]]));
    assert_eq!(
        d.ok("list_trash", json!({"cwd": "/other"}))["sessions"],
        json!([])
    );

    // The named file is restored, and not another file with the same id.
    let (path, oldest) = &deleted[0];
    let wrong = json!({"sessionId": "s2", "trashedPath": oldest});
    d.err_kind("restore_session", wrong, "sessionNotFound");
    let named = json!({"sessionId": "s1", "trashedPath": oldest});
    assert_eq!(d.ok("restore_session", named)["path"], json!(path));
    // The restored session already exists, open or not.
    d.err_kind(
        "restore_session",
        json!({"sessionId": "s1"}),
        "sessionExists",
    );
    d.open(path);
    d.err_kind(
        "restore_session",
        json!({"sessionId": "s1"}),
        "sessionExists",
    );
    let left = d.ok("list_trash", json!({}))["sessions"].clone();
    assert_eq!(left.as_array().unwrap().len(), 2);
}

#[test]
fn the_restore_command_lists_the_trash_and_restores() {
    let home = Home::new();
    let args = |more: &[&str]| -> Vec<String> {
        let mut all = vec!["restore".to_owned()];
        all.extend(more.iter().map(|arg| (*arg).to_owned()));
        all
    };
    let run = |more: &[&str]| {
        let args = args(more);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        home.run(&args, &[], "")
    };
    assert_eq!(run(&[]).clean().text(), "the trash is empty\n");
    let path = stored(&home, "s1");
    let mut d = Daemon::quiet_in(&home);
    d.ok("delete_session", json!({"sessionId": "s1"}));
    let listed = run(&[]).clean().text();
    assert!(listed.starts_with("about s1\n"), "{listed}");
    assert!(listed.contains("treelined restore s1"), "{listed}");
    let trashed = d.ok("list_trash", json!({}))["sessions"][0]["trashedPath"].clone();
    let restored = run(&[trashed.as_str().unwrap()]).clean().text();
    assert_eq!(restored, format!("restored: {}\n", path.display()));
    assert!(path.exists());
    assert_eq!(run(&["s1"]).code, Some(1));
}

/// The file was once copied by its path and kept its permissions of 0644.
#[test]
fn a_session_of_another_file_system_is_copied_with_private_permissions() {
    let (home, other) = (Home::new(), Home::in_memory());
    let path = Log::new("far").user("u1", "", "hello").save(&other);
    let device = |path: &Path| std::os::unix::fs::MetadataExt::dev(&fs::metadata(path).unwrap());
    if device(&home.sessions()) == device(&path) {
        return skip(Needs::Faults, "there is one file system only");
    }
    let backup = path.with_file_name(format!(
        "{}.v2.bak",
        path.file_name().unwrap().to_str().unwrap()
    ));
    for file in [&path, &backup] {
        fs::write(file, fs::read(&path).unwrap()).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
    }
    let bytes = fs::read(&path).unwrap();
    let mut d = Daemon::quiet_in(&home);
    d.open(&path);
    let trashed = d.ok("delete_session", json!({"sessionId": "far"}))["trashedPath"].clone();
    let trashed = PathBuf::from(trashed.as_str().unwrap());
    assert_eq!(fs::read(&trashed).unwrap(), bytes);
    assert_eq!(names(&trash(&home)).len(), 2);
    for name in names(&trash(&home)) {
        let mode = fs::metadata(trash(&home).join(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert!(!path.exists() && !backup.exists());
}

/// Incomplete files of killed processes are removed later. Files of the user stay.
#[test]
fn temporary_files_of_killed_processes_are_removed_later() {
    let home = Home::new();
    let folder = stored(&home, "s1").parent().unwrap().to_owned();
    let dead = folder.join(".s1.jsonl.0123456789abcdef.treelined.tmp");
    let users = folder.join(".notes.2024.tmp");
    fs::write(&dead, "half").unwrap();
    fs::write(&users, "mine").unwrap();
    let alive = folder.join(".s2.jsonl.0123456789abcdef.treelined.tmp");
    let writer = fs::File::create(&alive).unwrap();
    writer.lock().unwrap();
    let mut d = Daemon::quiet_in(&home);
    d.ok("list_sessions", json!({}));
    eventually("it is removed", || !dead.exists());
    d.stop();
    assert!(alive.exists() && users.exists());
}

#[test]
fn a_deleted_session_is_moved_to_the_trash() {
    let mut d = Daemon::quiet();
    let id = d.create();
    d.chain(&["u1", "a1"]);
    let path = d.home.only_file();
    let bytes = fs::read(&path).unwrap();
    let trashed = d.ok("delete_session", json!({"sessionId": id}))["trashedPath"].clone();
    let trashed = std::path::PathBuf::from(trashed.as_str().unwrap());
    assert!(!path.exists());
    assert!(trashed.starts_with(d.home.sessions()), "{trashed:?}");
    assert_eq!(fs::read(&trashed).unwrap(), bytes);
    assert_eq!(
        listed(&mut d, json!({})),
        [""; 0],
        "the trash is not listed"
    );
    d.err_kind("get_leaf", json!({"sessionId": id}), "sessionNotFound");
    d.err_kind("open_session", json!({"sessionId": id}), "sessionNotFound");
}

/// The answers about a session, without the numbers that differ for each opening.
fn shown(d: &mut Daemon) -> Vec<Json> {
    let mut answers = vec![
        d.ok("get_entries", json!({}))["entries"].take(),
        d.ok("get_tree", json!({"filter": "all"}))["nodes"].take(),
        d.ok("get_context", json!({}))["messages"].take(),
        d.ok("get_leaf", json!({}))["leafId"].take(),
        d.ok("get_navigation_log", json!({})),
        d.ok("get_stats", json!({})),
    ];
    let session = d.home.session_files().pop().unwrap();
    let text = d
        .home
        .run(&["export", session.to_str().unwrap(), "--text"], &[], "");
    answers.push(text.clean().text().into());
    answers
}

/// A build without support for teams reads records that a machine with this support has written (fleet.md). The build
/// hides the records, does not move the leaf, and reports no problem.
#[test]
fn records_of_a_deletion_in_a_log_say_nothing_about_the_conversation() {
    let home = Home::new();
    let log = Log::new("s1")
        .user("u1", "", "one")
        .user("u2", "u1", "two")
        .user("u3", "u1", "three");
    let path = log.store(&home, "2025-01-01T00-00-00-000Z_s1.jsonl");
    let mut d = Daemon::quiet_in(&home);
    d.open(&path);
    d.set_leaf(Some("u2"));
    d.ok("undo_navigation", json!({}));
    let before = shown(&mut d);
    let home = d.stop();
    let mut text = fs::read_to_string(&path).unwrap();
    for (custom_type, id) in [("trashed", "d1"), ("restored", "d2"), ("trashed", "d3")] {
        text += &format!(
            "{{\"type\":\"custom\",\"customType\":\"treelined.{custom_type}\",\"id\":\"{id}\",\"parentId\":\"u3\",\"timestamp\":\"2025-01-02T00:00:00.000Z\",\"data\":{{\"sessionId\":\"s1\"}}}}\n"
        );
    }
    fs::write(&path, &text).unwrap();
    let mut d = Daemon::quiet_in(&home);
    let opened = d.open(&path);
    assert_eq!(opened["diagnostics"], json!([]));
    assert_eq!(shown(&mut d), before);
    assert_eq!(d.ok("redo_navigation", json!({}))["newLeafId"], "u2");
    d.err_kind("get_entry", json!({"entryId": "d1"}), "entryNotFound");
    let found = d.ok("search", json!({"query": "trashed"}));
    assert_eq!(found["hits"], json!([]), "{found}");
    let home = d.stop();
    let checked = home.run(&["doctor", path.to_str().unwrap()], &[], "");
    assert_eq!(checked.code, Some(0));
    // A program that takes the last line for the leaf continues below it.
    let last = "{\"type\":\"custom\",\"customType\":\"x\",\"id\":\"p1\",\"parentId\":\"d3\",\"timestamp\":\"2025-01-02T00:00:00.000Z\"}\n";
    fs::write(&path, text + last).unwrap();
    let mut d = Daemon::quiet_in(&home);
    d.open(&path);
    assert_eq!(d.path_ids(None), ["u1", "u3", "p1"]);
}
