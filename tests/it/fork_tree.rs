//! `fork_session {scope:"tree"}`: all lines under a new header, at the same leaf.

use std::fs;
use std::path::Path;

use crate::harness::*;

fn daemon(home: &std::sync::Arc<Home>) -> Daemon {
    let mut d = Daemon::quiet_in(home);
    d.ignore("session_before_fork");
    d.ignore("session_fork");
    d
}

/// Two branches, a label, and a move back to the first branch.
fn branched() -> Log {
    Log::new("s1")
        .user("u1", "", "one")
        .raw(r#"{ "x":1E+2, "parentId" : "u1","id":"a1","type":"message","timestamp":"2025-01-01T00:00:04.000Z","message":{"content":[],"role":"assistant"}}"#)
        .user("u2", "u1", "another way")
        .label("l1", "u2", "a1", json!("here"))
        .record("r1", "a1", "l1")
}

/// The lines after the header.
#[track_caller]
fn behind_the_header(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    text.split_once('\n').unwrap().1.to_owned()
}

#[track_caller]
fn copy(d: &mut Daemon, params: Json) -> Json {
    let mut params = params;
    params["sessionId"] = json!("s1");
    params["scope"] = json!("tree");
    let result = d.ok("fork_session", params);
    assert_eq!(result["cancelled"], false, "{result}");
    result["session"].clone()
}

fn path_of(session: &Json) -> std::path::PathBuf {
    session["path"].as_str().expect("a path").into()
}

/// Forks could once copy one path only. Users who wanted all branches copied the file by hand, and both files had the
/// same id.
#[test]
fn a_copy_of_the_tree_has_every_line_and_the_same_leaf() {
    let home = Home::new();
    let source = branched().save(&home);
    let mut d = daemon(&home);
    d.open(&source);
    let session = copy(&mut d, json!({"cwd": "/elsewhere"}));
    assert_ne!(session["sessionId"], "s1");
    assert_eq!(session["leafId"], "a1");
    assert_eq!(session["cwd"], "/elsewhere");
    assert_eq!(session["parentSession"], json!(source));
    let path = path_of(&session);
    assert!(path.to_string_lossy().contains("--elsewhere--"));
    assert_eq!(behind_the_header(&path), behind_the_header(&source));
    let id = json!({"sessionId": session["sessionId"]});
    let moves = d.ok("get_navigation_log", id.clone())["moves"].clone();
    assert_eq!(moves[0]["to"], "a1");
    // The copy has its own leaf.
    d.ok("undo_navigation", id);
    assert_eq!(d.ok("get_leaf", json!({"sessionId": "s1"}))["leafId"], "a1");
}

/// The header of a session that the same daemon had created was once copied after the new header.
#[test]
fn a_copy_of_a_session_created_by_the_same_daemon_has_one_header() {
    let home = Home::new();
    for (write, ids) in [
        ("now", vec!["u1", "u2"]),
        ("first-entry", vec!["u1"]),
        ("now", vec![]),
    ] {
        let mut d = daemon(&home);
        let id = d.fresh_id().to_string().replace('"', "");
        let id = format!("made-{write}-{}-{id}", ids.len());
        let params = json!({"sessionId": id, "write": write});
        let made = d.ok("create_session", params)["session"].clone();
        d.chain(&ids);
        let session =
            d.ok("fork_session", json!({"sessionId": id, "scope": "tree"}))["session"].clone();
        assert_eq!(session["entryCount"], ids.len());
        let (path, source) = (path_of(&session), path_of(&made));
        assert_eq!(behind_the_header(&path), behind_the_header(&source));
        let mut other = Daemon::quiet_in(&home);
        assert_eq!(other.open(&path)["diagnostics"], json!([]));
    }
}

#[test]
fn an_empty_copy_of_the_tree_is_written_when_a_new_session_is() {
    let lines = [
        r#"{"jsonrpc":"2.0","id":1,"method":"create_session","params":{"sessionId":"s1"}}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"fork_session","params":{"sessionId":"s1","scope":"tree"}}"#,
    ];
    let answers = Daemon::script(&lines.map(str::to_owned));
    let fork = answers.iter().find(|answer| answer["id"] == 2).unwrap();
    assert_eq!(fork["result"]["durability"], "interval", "{fork}");
}

#[test]
fn a_copy_of_the_tree_takes_no_entry_position_or_closing_of_calls() {
    let home = Home::new();
    let mut d = daemon(&home);
    d.open(&branched().save(&home));
    for (field, value) in [
        ("entryId", json!("u1")),
        ("position", json!("at")),
        ("closeToolCalls", json!(true)),
    ] {
        let error = d.err_kind(
            "fork_session",
            json!({"scope": "tree", field: value}),
            "invalidParams",
        );
        assert_eq!(error.details("field"), field);
    }
}

/// The entries of other programs do not move the leaf of this daemon, so without a record the last line of the copy
/// would give another leaf.
#[test]
fn a_copy_of_the_tree_opens_at_the_leaf_of_the_session_not_at_the_last_line() {
    let home = Home::new();
    let source = branched().save(&home);
    let mut d = daemon(&home);
    d.ignore("entries_appended");
    d.open(&source);
    let theirs = r#"{"type":"message","id":"x1","parentId":"u2","timestamp":"2025-01-01T00:01:00.000Z","message":{"role":"user","content":"theirs"}}"#;
    foreign_append(&source, theirs);
    let session = copy(&mut d, json!({}));
    assert_eq!(session["leafId"], "a1");
    assert!(behind_the_header(&path_of(&session)).starts_with(&behind_the_header(&source)));
    let mut other = Daemon::quiet_in(&home);
    let reopened = other.open(&path_of(&session));
    assert_eq!(reopened["session"]["leafId"], "a1");
}

#[test]
fn a_copy_of_the_tree_keeps_damaged_lines_and_leaves_out_an_unfinished_one() {
    let home = Home::new();
    let damaged = branched()
        .raw("{\"type\":\"mess")
        .user("u3", "a1", "three")
        .text();
    let source = home.file("s1.jsonl", format!("{damaged}{{\"type\":\"me").as_bytes());
    let mut d = daemon(&home);
    d.open(&source);
    let session = copy(&mut d, json!({}));
    let expected = damaged.split_once('\n').unwrap().1;
    assert_eq!(behind_the_header(&path_of(&session)), expected);
}

#[test]
fn a_copy_of_an_old_file_is_migrated_and_the_old_file_stays() {
    let home = Home::new();
    let old = include_bytes!("../data/v1.jsonl");
    let source = home.file("old.jsonl", old);
    let mut d = daemon(&home);
    let opened = d.open(&source);
    let id = opened["session"]["sessionId"].clone();
    let result = d.ok("fork_session", json!({"sessionId": id, "scope": "tree"}));
    let session = &result["session"];
    assert_eq!(session["entryCount"], opened["session"]["entryCount"]);
    assert_eq!(session["leafId"], opened["session"]["leafId"]);
    let copied = json!({"sessionId": session["sessionId"]});
    let entries = d.ok("get_entries", copied)["entries"].clone();
    assert_eq!(
        entries,
        d.ok("get_entries", json!({"sessionId": id}))["entries"]
    );
    assert_eq!(fs::read(&source).unwrap(), old);
    let header = file_lines(&path_of(session))[0].clone();
    assert_eq!(header["version"], 3);
}

#[test]
fn a_copy_of_an_ephemeral_session_is_ephemeral() {
    let home = Home::new();
    let mut d = daemon(&home);
    d.ok(
        "create_session",
        json!({"sessionId": "s1", "ephemeral": true}),
    );
    d.chain(&["u1", "u2"]);
    d.set_leaf(Some("u1"));
    let session = copy(&mut d, json!({}));
    assert_eq!(
        (&session["leafId"], &session["entryCount"]),
        (&json!("u1"), &json!(2))
    );
    assert!(session.get("path").is_none(), "{session}");
    assert!(home.session_files().is_empty());
}
