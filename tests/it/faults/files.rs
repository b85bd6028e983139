//! Session files and folders that are deleted, replaced, rewritten, truncated, linked or not writable.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;

use super::*;

#[test]
fn a_deleted_file_is_not_created_again() {
    let mut d = Daemon::quiet();
    let path = begun(&mut d);
    let away = d.home.files().join("away");
    fs::rename(&path, &away).unwrap();
    fails_then_recovers(&mut d, &path.clone(), "sessionDeleted", || {
        assert!(!path.exists(), "never recreated silently");
        fs::rename(&away, &path).unwrap();
    });
}

#[test]
fn a_file_replaced_by_another_session_is_refused() {
    let mut d = Daemon::quiet();
    let path = begun(&mut d);
    let away = d.home.files().join("away");
    fs::rename(&path, &away).unwrap();
    let other = Log::new("other").user("o1", "", "x").text();
    fs::write(&path, &other).unwrap();
    fails_then_recovers(&mut d, &path.clone(), "sessionReplaced", || {
        assert_eq!(fs::read_to_string(&path).unwrap(), other, "untouched");
        fs::rename(&away, &path).unwrap();
    });
}

#[test]
fn a_file_replaced_by_the_same_session_is_followed() {
    let mut d = Daemon::quiet();
    let path = begun(&mut d);
    let copy = d.home.files().join("copy");
    let mut text = fs::read_to_string(&path).unwrap();
    text.push_str(&entry_line(
        9,
        "message",
        "o1",
        "a1",
        json!({"message": user("other")}),
    ));
    fs::write(&copy, text + "\n").unwrap();
    fs::rename(&copy, &path).unwrap();
    d.user("u2", "x");
    assert_eq!(d.ids(), ["u1", "a1", "o1", "u2"]);
    assert_eq!(
        d.entry("u2")["parentId"],
        "a1",
        "this daemon's leaf did not follow"
    );
    agrees(&mut d, &path, &["u1", "a1", "o1", "u2"]);
}

/// Editors that write in place keep the inode, but every offset may change.
#[test]
fn a_file_rewritten_in_place_is_read_again() {
    let mut d = Daemon::quiet();
    let path = begun(&mut d);
    let text = fs::read_to_string(&path).unwrap();
    let longer = text.replacen("text of u1", "text of u1, and then some more", 1);
    fs::write(&path, &longer).unwrap();
    assert_eq!(
        d.entry("u1")["message"]["content"],
        "text of u1, and then some more"
    );
    assert_eq!(d.entry("a1")["id"], "a1");
    d.user("u2", "x");
    agrees(&mut d, &path, &["u1", "a1", "u2"]);
}

/// An entry is replaced in place by another of the same length, so only the line itself shows the change.
#[test]
fn a_line_replaced_in_place_by_another_entry_is_noticed() {
    let mut d = Daemon::quiet();
    d.create();
    d.user("u1", "first");
    d.user("u2", "other");
    d.user("u3", "third");
    let path = d.home.only_file();
    let text = fs::read_to_string(&path).unwrap();
    let swapped = text
        .replace("\"id\":\"u1\"", "\"id\":\"uX\"")
        .replace("\"parentId\":\"u1\"", "\"parentId\":\"uX\"");
    // The file is not truncated first, since the daemon would notice that.
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, swapped.as_bytes(), 0).unwrap();
    let error = d.err_kind("get_entry", json!({"entryId": "u1"}), "sessionReplaced");
    assert!(!error.message.is_empty());
    assert_eq!(d.ids(), ["uX", "u2", "u3"], "it has been read again");
    assert_eq!(d.leaf(), "u3");
}

#[test]
fn a_truncated_file_is_read_again() {
    let mut d = Daemon::quiet();
    let path = begun(&mut d);
    d.user("u2", "x");
    let text = fs::read_to_string(&path).unwrap();
    let shorter = text.rfind("{\"type\"").unwrap();
    fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(shorter as u64)
        .unwrap();
    assert_eq!(d.ids(), ["u1", "a1"]);
    d.user("u3", "x");
    agrees(&mut d, &path, &["u1", "a1", "u3"]);
    // The file is truncated to nothing, so the session is lost.
    fs::write(&path, "").unwrap();
    d.err_kind(
        "append_message",
        json!({"message": user("x")}),
        "sessionReplaced",
    );
    assert_eq!(fs::read(&path).unwrap(), b"");
}

#[test]
fn a_link_in_place_of_the_file_is_not_followed() {
    let mut d = Daemon::quiet();
    let path = begun(&mut d);
    let away = d.home.files().join("away.jsonl");
    fs::rename(&path, &away).unwrap();
    symlink(&away, &path).unwrap();
    let before = fs::read(&away).unwrap();
    fails_then_recovers(&mut d, &path.clone(), "pathDenied", || {
        assert_eq!(
            fs::read(&away).unwrap(),
            before,
            "not written through the link"
        );
        fs::remove_file(&path).unwrap();
        fs::rename(&away, &path).unwrap();
    });
}

#[test]
fn a_link_in_place_of_the_folder_is_not_followed() {
    let mut d = Daemon::quiet();
    let path = begun(&mut d);
    let folder = path.parent().unwrap().to_owned();
    let away = d.home.files().join("away");
    fs::rename(&folder, &away).unwrap();
    symlink(&away, &folder).unwrap();
    // The daemon holds the folder open, so the open session follows the folder, not the link.
    d.user("u2", "x");
    assert_eq!(file_lines(&away.join(path.file_name().unwrap())).len(), 4);
    // Listing does not follow the link.
    let session = d.ok("get_leaf", json!({}))["leafId"].clone();
    assert_eq!(session, "u2");
    assert_eq!(d.ok("list_sessions", json!({}))["sessions"], json!([]));
    fs::remove_file(&folder).unwrap();
    fs::rename(&away, &folder).unwrap();
    agrees(&mut d, &path, &["u1", "a1", "u2"]);
}

#[test]
fn a_folder_that_was_deleted_and_restored_is_found_again() {
    let mut d = Daemon::quiet();
    let path = begun(&mut d);
    let folder = path.parent().unwrap().to_owned();
    let text = fs::read(&path).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    fails_then_recovers(&mut d, &path.clone(), "sessionDeleted", || {
        assert!(!folder.exists());
        fs::create_dir(&folder).unwrap();
        fs::write(&path, text).unwrap();
    });
}

#[test]
fn a_deleted_session_directory_is_created_again_for_new_sessions() {
    let mut d = Daemon::quiet();
    begun(&mut d);
    let unwritten = d.create();
    fs::remove_dir_all(d.home.sessions()).unwrap();
    assert_eq!(d.ok("list_sessions", json!({}))["sessions"], json!([]));
    d.ok(
        "append_message",
        json!({"sessionId": unwritten, "message": user("x")}),
    );
    assert_eq!(d.home.session_files().len(), 1);
    let new = d.create();
    d.ok(
        "append_message",
        json!({"sessionId": new, "message": user("x")}),
    );
    assert_eq!(d.home.session_files().len(), 2);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&d.home.sessions()), 0o700);
}

#[test]
fn a_file_and_a_folder_without_write_permission_are_reported() {
    let home = Home::new();
    let nobody = 65_534;
    let mut command = home.command(&["--session-dir", home.sessions().to_str().unwrap()], &[]);
    if rustix::process::getuid().is_root() {
        // Permissions do not stop root, so the daemon runs as another user.
        command.uid(nobody);
        for folder in [
            home.sessions(),
            home.cwd(),
            home.files(),
            home.sessions().join(".."),
        ] {
            std::os::unix::fs::chown(folder, Some(nobody), None).unwrap();
        }
    }
    let mut d = Daemon::spawned(&home, command);
    d.ignore_bookkeeping();
    let path = begun(&mut d);
    let set =
        |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    d.ok("close_session", json!({}));
    set(&path, 0o400);
    d.open(&path);
    fails_then_recovers(&mut d, &path.clone(), "pathDenied", || set(&path, 0o600));

    let folder = path.parent().unwrap();
    set(folder, 0o500);
    d.user("u3", "an existing file can be appended to");
    let new = d.create();
    let params = json!({"sessionId": new, "message": user("x"), "entryId": "n1"});
    d.err_kind("append_message", params.clone(), "pathDenied");
    set(folder, 0o700);
    d.ok("append_message", params);
}

/// The leaf was once moved before the summary was written. If the write failed, the leaf was at another entry without a
/// summary.
#[test]
fn a_summary_that_cannot_be_written_leaves_the_leaf_in_place() {
    let mut d = Daemon::start_with(&["--summarizer", "outline"], &[]);
    d.ignore_bookkeeping();
    d.create();
    d.chain(&["u1", "a1", "u2", "a2"]);
    let path = d.home.only_file();
    let aside = path.with_extension("aside");
    fs::rename(&path, &aside).unwrap();
    d.err(
        "navigate_tree",
        json!({"targetId": "a1", "summarize": true}),
    );
    fs::rename(&aside, &path).unwrap();
    assert_eq!(d.leaf(), "a2");
    assert_eq!(file_lines(&path).len(), 5, "header and four messages");
}
