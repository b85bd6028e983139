//! `treelined mv`: sessions of a moved project. session-file.md §5.11.

use super::*;
use std::path::Path;
use std::sync::Arc;

/// A project with two sessions, one of them a fork of the other; a session of a folder below the project, and a session
/// of a project beside it.
fn projects() -> (Arc<Home>, [String; 2]) {
    let mut d = Daemon::quiet();
    d.ignore("session_before_fork");
    d.ignore("session_fork");
    let [old, new] = ["shop", "work/shop"].map(|name| home_of(&d).join("files").join(name));
    let old = old.to_str().unwrap().to_owned();
    for (id, cwd) in [
        ("shop0001", old.clone()),
        ("deep0001", format!("{old}/deep")),
        ("other001", format!("{old}-other")),
    ] {
        let session = json!({"sessionId": id, "cwd": cwd});
        d.ok("create_session", session);
        let said = json!({"role": "user", "content": format!("in {id}")});
        d.ok("append_message", json!({"sessionId": id, "message": said}));
    }
    let fork = json!({"sessionId": "shop0001", "newSessionId": "fork0001"});
    d.ok("fork_session", fork);
    let home = d.stop();
    fs::create_dir_all(&new).unwrap();
    (home, [old, new.to_str().unwrap().to_owned()])
}

fn listed(home: &Home, cwd: &str) -> Vec<String> {
    let params = json!({"cwd": cwd}).to_string();
    let answer = home.run(&["call", "list_sessions", &params], &[], "");
    let answer = parse(&answer.clean().text()).unwrap();
    let rows = answer["sessions"].as_array().unwrap().iter();
    let mut ids: Vec<String> = rows
        .map(|row| row["sessionId"].as_str().unwrap().to_owned())
        .collect();
    ids.sort();
    ids
}

fn file_of(home: &Home, id: &str) -> PathBuf {
    let files = home.session_files();
    let end = format!("_{id}.jsonl");
    let found = files
        .iter()
        .find(|path| path.to_str().unwrap().ends_with(&end));
    found.unwrap().clone()
}

#[test]
fn sessions_of_a_moved_project_are_found_in_its_new_directory() {
    let (home, [old, new]) = projects();
    let before = file_of(&home, "shop0001");
    let text = fs::read_to_string(&before).unwrap();
    let dry = home.run(&["mv", &old, &new, "--dry-run"], &[], "").clean();
    assert!(
        dry.text().starts_with("would move 3 sessions to "),
        "{}",
        dry.text()
    );
    assert_eq!(fs::read_to_string(&before).unwrap(), text);
    let said = home.run(&["mv", &old, &new], &[], "").clean().text();
    assert!(said.starts_with("moved 3 sessions to "), "{said}");
    assert!(said.contains("  shop0001  in shop0001\n"), "{said}");
    assert_eq!(listed(&home, &new), ["fork0001", "shop0001"]);
    assert_eq!(listed(&home, &format!("{new}/deep")), ["deep0001"]);
    assert_eq!(listed(&home, &old), Vec::<String>::new());
    assert_eq!(listed(&home, &format!("{old}-other")), ["other001"]);

    // Only the directory has changed, and the file is where pi looks for it.
    let now = file_of(&home, "shop0001");
    assert_eq!(fs::read_to_string(&now).unwrap(), text.replace(&old, &new));
    let folder = now.parent().unwrap().file_name().unwrap().to_str().unwrap();
    let encoded = new.trim_start_matches('/').replace('/', "-");
    assert_eq!(folder, format!("--{encoded}--"));
    assert!(!before.parent().unwrap().exists(), "its folder is gone");

    // The fork names the session that it comes from by the path of its file.
    let mut d = Daemon::quiet_in(&home);
    let family = d.ok("get_family", json!({"sessionId": "fork0001"}));
    let family = family.to_string();
    assert!(family.contains("shop0001"), "{family}");
    let fork = fs::read_to_string(file_of(&home, "fork0001")).unwrap();
    assert!(fork.contains(now.to_str().unwrap()), "{fork}");
}

#[test]
fn what_cannot_move_is_named_and_moves_later() {
    let (home, [old, new]) = projects();
    let held = file_of(&home, "deep0001");
    let holder = fs::File::open(&held).unwrap();
    holder.lock().unwrap();
    let said = home.run(&["mv", &old, &new, "--json"], &[], "");
    assert_eq!(said.code, Some(1), "{said:?}");
    let result = parse(&said.text()).unwrap();
    assert_eq!(result["moved"].as_array().unwrap().len(), 2);
    assert_eq!(result["left"][0]["path"], held.to_str().unwrap());
    assert_eq!(result["left"][0]["kind"], "sessionLocked");
    drop(holder);
    // A move that was killed after it wrote the header and before it moved the file is completed.
    let text = fs::read_to_string(&held).unwrap();
    fs::write(&held, text.replace(&old, &new)).unwrap();
    let said = home.run(&["mv", &old, &new], &[], "").clean().text();
    assert!(said.starts_with("moved 1 session to "), "{said}");
    assert!(!held.exists());
    assert_eq!(listed(&home, &format!("{new}/deep")), ["deep0001"]);
    let done = home.run(&["mv", &old, &new], &[], "");
    assert_eq!(done.code, Some(3), "{done:?}");
}

#[test]
fn a_move_that_is_not_meant_is_refused() {
    let (home, [old, new]) = projects();
    let deep = format!("{old}/deep");
    fs::create_dir_all(&deep).unwrap();
    for (args, code, says) in [
        (&[&*old, "/nowhere/at/all"][..], 1, "is not a directory"),
        (&[&*old, &*new], 1, "still exists"),
        (&[&*old, &*deep], 2, "would be moved twice"),
        (
            &["/never/was", &*new],
            3,
            "no session has the directory /never/was",
        ),
    ] {
        let refused = home.run(&[&["mv"], args].concat(), &[], "");
        assert_eq!(refused.code, Some(code), "{refused:?}");
        assert!(refused.stderr.contains(says), "{refused:?}");
    }
    assert_eq!(listed(&home, &old), ["fork0001", "shop0001"]);
    home.run(&["mv", &old, &new, "--force"], &[], "").clean();
    assert_eq!(listed(&home, &new), ["fork0001", "shop0001"]);
    assert!(Path::new(&old).is_dir(), "the project itself stays");
}
