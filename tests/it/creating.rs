//! Creating sessions: when the file is written, and which daemon gets an id. session-file.md §5.

use std::fs;
use std::sync::Arc;

use crate::faults::{Shim, quiet};
use crate::harness::*;

fn introduced(home: &Arc<Home>) -> Daemon {
    let mut d = Daemon::quiet_in(home);
    d.init(json!({}));
    d
}

/// A script that created a session once left no file, so the next script did not find the session. Now, without
/// `initialize`, `create_session` writes the file; with it, the first entry does. `write` overrides this.
#[test]
fn a_script_finds_the_session_it_made() {
    for (introduces, write, is_written) in [
        (false, None, true),
        (true, None, false),
        (false, Some("first-entry"), false),
        (true, Some("now"), true),
    ] {
        let home = Home::new();
        let mut d = match introduces {
            true => introduced(&home),
            false => Daemon::quiet_in(&home),
        };
        let mut params = json!({"sessionId": "mine"});
        if let Some(write) = write {
            params["write"] = json!(write);
        }
        let made = d.ok("create_session", params);
        let case = format!("{introduces} {write:?}");
        let durability = if is_written { "interval" } else { "none" };
        assert_eq!(made["durability"], durability, "{case}");
        assert_eq!(made["session"]["entryCount"], 0, "{case}");
        assert_eq!(
            home.session_files().len(),
            usize::from(is_written),
            "{case}"
        );
        if is_written {
            let lines = file_lines(&home.only_file());
            assert_eq!(lines, [made["session"]["header"].clone()], "{case}");
            let rows = d.ok("list_sessions", json!({}))["sessions"].clone();
            assert_eq!(rows[0]["sessionId"], "mine");
            assert_eq!(rows[0]["messageCount"], 0);
        }
        d.user("u1", "hello");
        d.stop();
        let mut d = Daemon::quiet_in(&home);
        d.ok("open_session", json!({"sessionId": "mine"}));
        assert_eq!(d.ids(), ["u1"], "{case}");
    }
}

#[test]
fn a_name_is_written_with_the_header() {
    let home = Home::new();
    let mut d = introduced(&home);
    let made = d.ok("create_session", json!({"name": "n", "write": "now"}));
    assert_eq!(made["durability"], "interval");
    let lines = file_lines(&home.only_file());
    assert_eq!((lines.len(), &lines[1]["name"]), (2, &json!("n")));
}

#[test]
fn an_ephemeral_session_takes_no_write_option() {
    let mut d = Daemon::quiet();
    for write in ["now", "first-entry"] {
        let error = d.err("create_session", json!({"ephemeral": true, "write": write}));
        assert_eq!(error.kind, "invalidParams");
        assert_eq!(error.details("field"), "write");
    }
    let made = d.ok("create_session", json!({"ephemeral": true}));
    assert_eq!(made["durability"], "none");
    assert!(d.home.session_files().is_empty());
}

/// Two daemons that were given the same id once wrote two files, one of which was never listed. Now the second daemon
/// is refused and writes nothing: `create_session` with `write: "now"` fails, otherwise the first append.
#[test]
fn two_daemons_with_one_session_id_create_one_file() {
    let home = Home::new();
    let mut daemons: Vec<Daemon> = (0..2).map(|_| introduced(&home)).collect();
    for (number, d) in daemons.iter_mut().enumerate() {
        // Each daemon has another folder, so that the names of the files differ.
        let params = json!({"sessionId": "same", "cwd": format!("/place{number}")});
        d.ok("create_session", params);
    }
    daemons[0].user("u1", "first");
    for _ in 0..2 {
        let refused = daemons[1].err("append_message", json!({"message": user("second")}));
        assert_eq!(
            (refused.code, refused.kind.as_str()),
            (1109, "sessionExists")
        );
    }
    assert_eq!(daemons[1].leaf(), Json::Null, "the session stays open");
    assert_eq!(file_lines(&home.only_file()).len(), 2);
    let mut third = Daemon::quiet_in(&home);
    third.err_kind(
        "create_session",
        json!({"sessionId": "same"}),
        "sessionExists",
    );
    // The id is also taken if the file was renamed.
    let path = home.only_file();
    fs::rename(&path, path.with_file_name("renamed.jsonl")).unwrap();
    third.err_kind(
        "create_session",
        json!({"sessionId": "same", "cwd": "/x"}),
        "sessionExists",
    );
    assert_eq!(home.session_files().len(), 1);
}

/// When several daemons create a session with the same id at the same moment, one succeeds.
#[test]
fn of_several_daemons_with_one_session_id_one_creates_it() {
    let home = Home::new();
    let mut daemons: Vec<Daemon> = (0..4).map(|_| Daemon::quiet_in(&home)).collect();
    for round in 0..5 {
        let asked: Vec<Json> = daemons
            .iter_mut()
            .enumerate()
            .map(|(number, d)| {
                let cwd = format!("/c{number}");
                d.send(
                    "create_session",
                    json!({"sessionId": format!("r{round}"), "cwd": cwd}),
                )
            })
            .collect();
        let answered = daemons.iter_mut().zip(&asked).map(|(d, id)| d.response(id));
        let kinds: Vec<String> = answered
            .map(|made| made.map_or_else(|error| error.kind, |_| "made".to_owned()))
            .collect();
        let made = kinds.iter().filter(|kind| *kind == "made").count();
        let refused = kinds.iter().filter(|kind| *kind == "sessionExists").count();
        assert_eq!((made, refused), (1, 3), "{kinds:?}");
        assert_eq!(home.session_files().len(), round + 1);
    }
}

/// The file of an empty fork is written when the file of a new session would be: at once, or with the first entry.
#[test]
fn an_empty_fork_is_written_when_a_new_session_is() {
    for introduces in [false, true] {
        let home = Home::new();
        let path = Log::new("s1").user("u1", "", "hello").save(&home);
        let mut d = match introduces {
            true => introduced(&home),
            false => Daemon::quiet_in(&home),
        };
        d.ignore("session_before_fork");
        d.ignore("session_fork");
        d.open(&path);
        let fork = d.ok("fork_session", json!({"entryId": "u1"}));
        assert_eq!(fork["editorText"], "hello");
        let durability = if introduces { "none" } else { "interval" };
        assert_eq!(fork["durability"], durability);
        assert_eq!(home.session_files().len(), usize::from(!introduces));
        let id = fork["session"]["sessionId"].clone();
        d.ok(
            "append_message",
            json!({"sessionId": id, "message": user("on")}),
        );
        assert_eq!(fork["session"]["entryCount"], 0);
    }
}

/// The images of a forked user message were once not returned.
#[test]
fn a_fork_returns_images_for_the_editor() {
    let home = Home::new();
    let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
    let content = json!([{"type": "text", "text": "look"}, image]);
    let path = Log::new("s1")
        .message("u1", "", json!({"role": "user", "content": content}))
        .save(&home);
    let mut d = Daemon::quiet_in(&home);
    d.ignore("session_before_fork");
    d.ignore("session_fork");
    d.open(&path);
    let fork = d.ok("fork_session", json!({"entryId": "u1"}));
    assert_eq!(fork["editorText"], "look");
    assert_eq!(fork["editorImages"], json!([image]));
    let fork = d.ok(
        "fork_session",
        json!({"sessionId": "s1", "entryId": "u1", "position": "at"}),
    );
    assert!(fork.get("editorImages").is_none(), "{fork}");
}

/// An opened session has the version of its file, its time of creation, and the members of its header.
#[test]
fn an_opened_session_describes_its_header() {
    let home = Home::new();
    let header = json!({"type": "session", "id": "old", "timestamp": "2025-01-02T03:04:05Z", "cwd": "/p",
        "parentSession": "x", "more": [1.0]});
    let path = Log::with_header(header.clone())
        .raw(r#"{"type":"message","timestamp":"2025-01-02T03:04:06.000Z","message":{"role":"user","content":"hi"}}"#)
        .save(&home);
    let mut d = Daemon::quiet_in(&home);
    let session = d.open(&path)["session"].clone();
    assert_eq!(session["version"], 1);
    assert_eq!(session["created"], "2025-01-02T03:04:05.000Z");
    assert_eq!(session["header"], header);
    d.user("new", "x");
    let session = d.open(&path)["session"].clone();
    assert_eq!(session["version"], 3, "after the migration");
    assert_eq!(session["header"]["more"].to_string(), "[1.0]");
    let made = d.ok("create_session", json!({"ephemeral": true, "cwd": "/e"}))["session"].clone();
    assert_eq!(
        (&made["version"], &made["header"]["cwd"]),
        (&json!(3), &json!("/e"))
    );
    assert_eq!(made["created"], made["header"]["timestamp"]);
}

/// A working directory with an escape sequence once became a folder with this sequence in its name. A terminal that
/// listed the folder got another title.
#[test]
fn a_folder_is_named_without_control_characters() {
    let mut d = Daemon::quiet();
    let cwd = "/a\u{1b}]0;x\u{7}\nb\u{9b}c\u{202e}";
    let made = d.ok("create_session", json!({"cwd": cwd}))["session"].clone();
    assert_eq!(made["cwd"], cwd, "as it was given");
    let path = d.home.only_file();
    let folder = path.parent().unwrap().file_name().unwrap();
    assert_eq!(folder, "--a-]0;x--b-c---");
}

/// The name of the session directory was once not synced, so a crash could lose every session in it.
#[test]
fn the_name_of_the_session_directory_is_synced() {
    let home = Home::new();
    let Some(shim) = Shim::new(&home) else {
        return skip(Needs::Faults, "there is no C compiler");
    };
    fs::remove_dir(home.sessions()).unwrap();
    let mut d = shim.start(&home, &[]);
    d.create();
    let synced = shim.synced();
    let parent = home.sessions().parent().unwrap().canonicalize().unwrap();
    let is_synced =
        |folder: &std::path::Path| synced.lines().any(|line| line == folder.to_str().unwrap());
    assert!(is_synced(&parent), "{synced}");
    assert!(
        is_synced(&home.sessions().canonicalize().unwrap()),
        "{synced}"
    );
}

/// A clock before 1970 once made `create_session` panic.
#[test]
fn a_clock_before_1970_fails_no_call() {
    let home = Home::new();
    let Some(shim) = Shim::new(&home) else {
        return skip(Needs::Faults, "another clock: there is no C compiler");
    };
    for clock in ["-1", "-86400000000"] {
        let [library, actions, synced] = shim.env();
        let mut d = quiet(
            &home,
            &[],
            &[library, actions, synced, ("SHIM_CLOCK", clock)],
        );
        d.allow_stderr();
        for name in ["session_before_fork", "session_fork"] {
            d.ignore(name);
        }
        let id = d.create();
        d.chain(&["u1", "a1"]);
        assert_eq!(d.leaf(), "a1");
        d.ok("get_tree", json!({}));
        d.ok("get_navigation_log", json!({}));
        let fork = d.ok("fork_session", json!({"sessionId": id, "position": "at"}));
        let fork = fork["session"]["sessionId"].as_str().unwrap().to_owned();
        assert_ne!(fork, id);
        d.ok("list_sessions", json!({}));
        for id in [id, fork] {
            d.ok("close_session", json!({"sessionId": id}));
            d.ok("delete_session", json!({"sessionId": id}));
        }
    }
}

/// The mark of a session without a file once stayed in the file of marks for ever. For an unknown session, `get_family`
/// once answered that it is not open.
#[test]
fn a_session_in_memory_has_no_marks() {
    let home = Home::new();
    Log::new("s1")
        .user("u1", "", "hello")
        .store(&home, "x_s1.jsonl");
    let mut d = Daemon::quiet_in(&home);
    d.ok(
        "create_session",
        json!({"sessionId": "memory", "ephemeral": true}),
    );
    for (method, params) in [
        (
            "mark_session",
            json!({"sessionId": "memory", "pinned": true}),
        ),
        ("get_family", json!({"sessionId": "memory"})),
        ("get_family", json!({"sessionId": "nosuch"})),
    ] {
        let refused = d.err(method, params);
        assert_eq!(refused.kind, "sessionNotFound");
        assert!(refused.message.contains("list_sessions"), "{refused:?}");
    }
    let marked = d.ok("mark_session", json!({"sessionId": "s1", "pinned": true}));
    assert_eq!(marked["pinned"], true);
}
