//! Sessions: how they are created, opened, closed, named and read. protocol.md §3, session-file.md §1, §2 and §5.

use std::fs;
use std::time::{Duration, SystemTime};

use crate::harness::*;

#[track_caller]
fn uuid_v7(id: &str) {
    assert_eq!(id.len(), 36, "{id}");
    assert_eq!(id.as_bytes()[14], b'7', "{id}");
}

#[test]
fn a_new_session_is_described_and_writes_nothing_yet() {
    let mut d = Daemon::quiet();
    let made = d.ok("create_session", json!({"write": "first-entry"}))["session"].clone();
    uuid_v7(made["sessionId"].as_str().unwrap());
    assert_eq!(
        made["cwd"],
        json!(d.home.cwd()),
        "the daemon's own by default"
    );
    assert_eq!(made["leafId"], Json::Null);
    assert_eq!(made["entryCount"], 0);
    assert_eq!(made["readOnly"], false);
    assert!(made["multiWriter"].is_boolean(), "{made}");
    assert!(made["seq"].is_u64(), "{made}");
    assert!(made.get("name").is_none(), "{made}");
    assert!(
        d.home.session_files().is_empty(),
        "nothing on disk before the first entry"
    );
}

#[test]
fn the_first_entry_writes_the_file_with_its_header() {
    let mut d = Daemon::quiet();
    let made = d.ok("create_session", json!({"cwd": "/some/where:else"}))["session"].clone();
    d.user("u1", "hello");
    let id = made["sessionId"].as_str().unwrap();
    let path = d.home.only_file();
    let folder = path
        .parent()
        .unwrap()
        .file_name()
        .unwrap()
        .to_str()
        .unwrap();
    assert_eq!(folder, "--some-where-else--");
    let name = path.file_name().unwrap().to_str().unwrap();
    let stamp = name
        .strip_suffix(&format!("_{id}.jsonl"))
        .unwrap_or_else(|| panic!("{name} ends with the id"));
    assert!(!stamp.contains([':', '.']), "{name}");

    let lines = file_lines(&path);
    assert_eq!(lines.len(), 2);
    let header = &lines[0];
    let members: Vec<_> = header
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(members, ["type", "version", "id", "timestamp", "cwd"]);
    assert_eq!(
        (&header["type"], &header["version"]),
        (&json!("session"), &json!(3))
    );
    assert_eq!(header["id"], id);
    assert_eq!(header["cwd"], "/some/where:else");
    let time = header["timestamp"].as_str().unwrap();
    assert_eq!(
        time.replace([':', '.'], "-"),
        stamp,
        "the time of the header is in the file's name"
    );
    assert_eq!(
        time.len(),
        "2025-01-01T00:00:00.000Z".len(),
        "milliseconds, UTC"
    );
    assert!(time.ends_with('Z'));

    let opened = d.ok("open_session", json!({"sessionId": id}))["session"].clone();
    assert_eq!(opened["path"], json!(path));
    assert_eq!(opened["entryCount"], 1, "entries, not the header");
}

#[test]
fn a_name_is_written_at_once_as_the_first_entry() {
    let mut d = Daemon::quiet();
    let made = d.ok(
        "create_session",
        json!({"name": " first\nname ", "sessionId": "named"}),
    )["session"]
        .clone();
    assert_eq!(made["name"], "first name");
    let lines = file_lines(&d.home.only_file());
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[1]["type"], "session_info");
    assert_eq!(lines[1]["name"], "first name");
    assert_eq!(lines[1]["parentId"], Json::Null);
    assert_eq!(made["leafId"], lines[1]["id"]);
    assert_eq!(made["entryCount"], 1);
}

#[test]
fn session_ids_follow_their_pattern() {
    let mut d = Daemon::quiet();
    for id in ["a", "A-1_b.c", &"x".repeat(128)] {
        let made = d.ok(
            "create_session",
            json!({"sessionId": id, "ephemeral": true}),
        );
        assert_eq!(made["session"]["sessionId"], id);
    }
    for id in [
        "",
        "../x",
        "a/b",
        "-a",
        "a-",
        ".a",
        "a b",
        "ä",
        "a\n",
        &"x".repeat(129),
    ] {
        let error = d.err("create_session", json!({"sessionId": id}));
        assert_eq!(error.kind, "invalidParams", "{id:?}");
        assert_eq!(error.details("field"), "sessionId", "{id:?}");
    }
}

#[test]
fn an_id_that_exists_is_refused() {
    let mut d = Daemon::quiet();
    d.ok(
        "create_session",
        json!({"sessionId": "taken", "name": "one"}),
    );
    let error = d.err(
        "create_session",
        json!({"sessionId": "taken", "name": "two", "cwd": "/elsewhere"}),
    );
    assert_eq!((error.code, error.kind.as_str()), (1109, "sessionExists"));
    assert_eq!(d.home.session_files().len(), 1);
}

#[test]
fn a_parent_session_is_stored_as_given() {
    let mut d = Daemon::quiet();
    let made = d.ok(
        "create_session",
        json!({"parentSession": "/not/../opened.jsonl"}),
    )["session"]
        .clone();
    assert_eq!(made["parentSession"], "/not/../opened.jsonl");
    d.user("u1", "hello");
    assert_eq!(
        file_lines(&d.home.only_file())[0]["parentSession"],
        "/not/../opened.jsonl"
    );
}

#[test]
fn ephemeral_sessions_and_their_forks_never_write() {
    let mut d = Daemon::quiet();
    d.ignore("session_before_fork");
    d.ignore("session_fork");
    let made = d.ok(
        "create_session",
        json!({"ephemeral": true, "name": "thin air"}),
    )["session"]
        .clone();
    assert!(made.get("path").is_none(), "{made}");
    let said = d.user("u1", "hello");
    assert_eq!(said["durability"], "none");
    d.chain(&["a1", "u2"]);
    d.set_leaf(Some("a1"));
    assert_eq!(d.leaf(), "a1");
    assert_eq!(d.ok("undo_navigation", json!({}))["newLeafId"], "u2");
    assert_eq!(d.entry("u1")["message"]["content"], "hello");
    let fork = d.ok("fork_session", json!({"entryId": "a1"}))["session"].clone();
    d.ok(
        "append_message",
        json!({"sessionId": fork["sessionId"], "message": user("more")}),
    );
    assert!(d.home.session_files().is_empty());
}

// --- opening and closing ---

#[test]
fn opening_by_id_and_by_path_finds_the_same() {
    let mut d = Daemon::quiet();
    let id = d.create();
    d.chain(&["u1", "a1"]);
    let path = d.home.only_file();
    assert_eq!(d.ok("close_session", json!({})), json!({}));

    let by_id = d.ok("open_session", json!({"sessionId": id}));
    assert_eq!(by_id["diagnostics"], json!([]));
    assert_eq!(by_id["session"]["leafId"], "a1");
    assert_eq!(by_id["session"]["entryCount"], 2);
    assert_eq!(by_id["session"]["path"], json!(path));
    let by_path = d.ok("open_session", json!({"path": path}))["session"].clone();
    assert_eq!(by_path["sessionId"], id, "already open: the same session");
    assert_eq!(by_path["leafId"], "a1");
    // Only one session is open, so the id can be left out.
    assert_eq!(d.leaf(), "a1");
}

#[test]
fn open_session_needs_an_id_or_a_path() {
    let mut d = Daemon::start();
    d.err_kind("open_session", json!({}), "invalidParams");
    let error = d.err("open_session", json!({"sessionId": "nobody-made-this"}));
    assert_eq!((error.code, error.kind.as_str()), (1100, "sessionNotFound"));
}

#[test]
fn a_closed_session_is_not_found() {
    let mut d = Daemon::quiet();
    let id = d.create();
    d.user("u1", "hello");
    d.ok("close_session", json!({"sessionId": id}));
    d.err_kind("get_leaf", json!({"sessionId": id}), "sessionNotFound");
    d.err_kind("close_session", json!({"sessionId": id}), "sessionNotFound");
}

#[test]
fn the_id_may_be_left_out_only_while_one_is_open() {
    let mut d = Daemon::quiet();
    let error = d.err_kind("get_leaf", json!({}), "invalidParams");
    assert_eq!(error.code, -32602);
    let one = d.create();
    d.user("u1", "hello");
    assert_eq!(d.leaf(), "u1");
    let two = d.create();
    let error = d.err_kind("get_leaf", json!({}), "invalidParams");
    assert_eq!(error.details("field"), "sessionId");
    assert_eq!(d.ok("get_leaf", json!({"sessionId": one}))["leafId"], "u1");
    assert_eq!(
        d.ok("get_leaf", json!({"sessionId": two}))["leafId"],
        Json::Null
    );
    d.ok("close_session", json!({"sessionId": two}));
    assert_eq!(d.leaf(), "u1");
}

#[test]
fn opening_and_closing_are_announced_after_the_response() {
    let home = Home::new();
    let path = Log::new("s1").user("u1", "", "hello").save(&home);
    let mut d = Daemon::start_in(&home, &[], &[]);
    d.open(&path);
    assert_eq!(d.notification("session_opened")["sessionId"], "s1");
    assert_eq!(d.order(), ["=open_session", "session_opened"]);
    d.ok("close_session", json!({}));
    assert_eq!(d.notification("session_closed")["sessionId"], "s1");
}

#[test]
fn sessions_and_reads_have_the_current_seq() {
    let home = Home::new();
    let path = Log::new("s1").user("u1", "", "hello").save(&home);
    let mut d = Daemon::start_in(&home, &[], &[]);
    d.open(&path);
    d.ignore("session_opened");
    d.ignore("session_closed");
    d.assistant("a1", "hi");
    let last = d.notification("entries_appended")["seq"].clone();
    for method in ["get_leaf", "get_tree", "get_entries"] {
        assert_eq!(
            d.ok(method, json!({}))["seq"],
            last,
            "{method} returns the current one"
        );
    }
    assert_eq!(d.open(&path)["session"]["seq"], last);
}

#[test]
fn a_file_without_header_is_refused_and_left_alone() {
    for (what, bytes) in [
        ("empty", String::new()),
        (
            "an entry first",
            format!(
                "{}\n",
                entry_line(1, "message", "u1", "", json!({"message": user("x")}))
            ),
        ),
        (
            "another format",
            "{\"uuid\":\"1\",\"parentUuid\":null}\n".to_owned(),
        ),
    ] {
        let home = Home::new();
        let path = home.file("s.jsonl", bytes.as_bytes());
        let mut d = Daemon::start_in(&home, &[], &[]);
        let error = d.err("open_session", json!({"path": path}));
        assert_eq!(
            (error.code, error.kind.as_str()),
            (1104, "headerMissing"),
            "{what}"
        );
        d.stop();
        assert_eq!(fs::read_to_string(&path).unwrap(), bytes, "{what}");
    }
}

/// A file of Claude Code after a header was once an empty session, or a session of unreadable entries. Without a header
/// no message said which tool wrote it.
#[test]
fn a_file_of_another_tool_is_named_and_not_opened_as_an_empty_session() {
    let envelope = r#""parentUuid":null,"sessionId":"s","timestamp":"2026-01-01T00:00:00.000Z""#;
    let claude = format!(
        r#"{{"type":"user","uuid":"1",{envelope},"message":{{"role":"user","content":"x"}}}}"#
    );
    let qwen = format!(
        r#"{{"type":"user","uuid":"1",{envelope},"message":{{"role":"user","parts":[]}}}}"#
    );
    let summary = r#"{"type":"summary","summary":"x","leafUuid":"1"}"#;
    let header = |version: &str| {
        format!(
            r#"{{"type":"session"{version},"id":"a","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}}"#
        )
    };
    let home = Home::new();
    let path = home.files().join("s.jsonl");
    let import = format!("`treelined import {}`", path.display());
    let cases = [
        (format!("{claude}\n"), "Claude Code", &*import),
        (format!("{summary}\n{claude}\n"), "Claude Code", &import),
        (
            format!("{}\n{claude}\n", header(r#","version":3"#)),
            "Claude Code",
            &import,
        ),
        (
            format!("{}\n{claude}\n", header("")),
            "Claude Code",
            &import,
        ),
        (format!("{qwen}\n"), "Qwen Code", &import),
    ];
    let mut d = Daemon::quiet_in(&home);
    for (bytes, tool, remedy) in cases {
        home.file("s.jsonl", bytes.as_bytes());
        let error = d.err("open_session", json!({"path": path}));
        assert_eq!(error.kind, "headerMissing", "{bytes}");
        for part in [tool, remedy] {
            assert!(error.message.contains(part), "{}", error.message);
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), bytes);
    }
    let entry = entry_line(
        1,
        "message",
        "u1",
        "",
        json!({"message": user("x"), "uuid": "1", "parentUuid": null}),
    );
    let session = format!("{}\n{entry}\n{claude}\n", header(r#","version":3"#));
    home.file("s.jsonl", session.as_bytes());
    d.open(&path);
    assert_eq!(d.ids(), ["u1"]);
}

#[test]
fn a_newer_version_opens_for_reading_only() {
    let home = Home::new();
    let path = Log::with_header(json!({
        "type": "session", "version": 4, "id": "later", "timestamp": "2025-01-01T00:00:00.000Z", "cwd": "/project",
    }))
    .user("u1", "", "hello")
    .save(&home);
    let before = fs::read(&path).unwrap();
    let mut d = Daemon::quiet_in(&home);
    assert_eq!(d.open(&path)["session"]["readOnly"], true);
    assert_eq!(d.entry("u1")["message"]["content"], "hello");
    for (method, params) in [
        ("append_message", json!({"message": user("x")})),
        ("append_label", json!({"targetId": "u1", "label": "x"})),
        ("set_leaf", json!({"leafId": null})),
        ("set_session_name", json!({"name": "x"})),
    ] {
        let error = d.err(method, params);
        assert_eq!(
            (error.code, error.kind.as_str()),
            (1105, "versionUnsupported"),
            "{method}"
        );
    }
    d.stop();
    assert_eq!(fs::read(&path).unwrap(), before);
}

/// Inside the daemon a number stands for a version that is not a whole number. This number, 18446744073709551615, was
/// once shown to clients.
#[test]
fn a_version_that_is_not_a_number_is_null() {
    let home = Home::new();
    for (i, version) in [json!("1"), json!(2.5), json!(-1), json!(1e300)]
        .into_iter()
        .enumerate()
    {
        let path = Log::with_header(json!({
            "type": "session", "version": version, "id": format!("odd{i}"),
            "timestamp": "2025-01-01T00:00:00.000Z", "cwd": "/project",
        }))
        .user("u1", "", "hello")
        .save(&home);
        let mut d = Daemon::quiet_in(&home);
        let session = d.open(&path)["session"].clone();
        assert_eq!(session["version"], Json::Null, "{version}");
        assert_eq!(session["readOnly"], true);
        assert_eq!(session["header"]["version"], version);
        assert_eq!(
            d.err("append_message", json!({"message": user("x")})).code,
            1105
        );
        d.stop();
        let named = path.to_str().unwrap();
        let doctor = home.run(&["doctor", "--json", named], &[], "");
        let report: Json = serde_json::from_str(&doctor.text()).unwrap();
        assert_eq!(report["version"], Json::Null);
        for args in [["doctor", named], ["migrate", named]] {
            let output = home.run(&args, &[], "");
            let said = output.text() + &output.stderr;
            assert!(said.contains("not a whole number"), "{said}");
            assert!(!said.contains("18446744073709551615"), "{said}");
        }
    }
}

#[test]
fn of_two_files_with_one_id_the_last_modified_is_opened() {
    let home = Home::new();
    let old = Log::new("twin")
        .user("u1", "", "old")
        .store(&home, "2025-01-02T00-00-00-000Z_twin.jsonl");
    let new = Log::new("twin")
        .user("u1", "", "new")
        .store(&home, "2025-01-01T00-00-00-000Z_twin.jsonl");
    set_modified(&old, 1_000);
    set_modified(&new, 2_000);
    let mut d = Daemon::quiet_in(&home);
    let opened = d.ok("open_session", json!({"sessionId": "twin"}));
    assert_eq!(opened["session"]["path"], json!(new));
    assert_eq!(d.entry("u1")["message"]["content"], "new");
    let error = d.err("open_session", json!({"path": old}));
    assert_eq!(
        (error.code, error.kind.as_str()),
        (1109, "sessionExists"),
        "another file with an open id"
    );
}

// --- read mode ---

#[test]
fn in_read_mode_every_mutation_is_refused() {
    let home = Home::new();
    let path = Log::new("s1")
        .user("u1", "", "hello")
        .assistant("a1", "u1", "hi")
        .save(&home);
    let before = fs::read(&path).unwrap();
    let mut d = Daemon::quiet_in(&home);
    let opened = d.ok("open_session", json!({"path": path, "mode": "read"}));
    assert_eq!(opened["session"]["readOnly"], true);
    for (method, params) in [
        ("append_message", json!({"message": user("x")})),
        (
            "append_entries",
            json!({"entries": [{"type": "custom", "customType": "x"}]}),
        ),
        ("append_label", json!({"targetId": "u1", "label": "x"})),
        ("set_session_name", json!({"name": "x"})),
        ("set_leaf", json!({"leafId": "u1"})),
        ("branch", json!({"entryId": "u1"})),
        ("navigate_tree", json!({"targetId": "u1"})),
    ] {
        let error = d.err(method, params);
        assert_eq!(
            (error.code, error.kind.as_str()),
            (1106, "readOnly"),
            "{method}"
        );
    }
    d.stop();
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn in_read_mode_the_leaf_follows_the_file() {
    let home = Home::new();
    let path = Log::new("s1").user("u1", "", "hello").save(&home);
    let mut d = Daemon::quiet_in(&home);
    d.ok("open_session", json!({"path": path, "mode": "read"}));
    assert_eq!(d.leaf(), "u1");
    foreign_append(
        &path,
        &entry_line(
            2,
            "message",
            "a1",
            "u1",
            json!({"message": assistant("hi")}),
        ),
    );
    eventually("the leaf follows an append", || d.leaf() == "a1");
    foreign_append(&path, &record_line(3, "r1", "u1", "a1"));
    eventually("the leaf follows a move", || d.leaf() == "u1");
    assert_eq!(d.entry("a1")["parentId"], "u1");
}

// --- names ---

#[test]
fn names_are_trimmed_announced_and_cleared() {
    let home = Home::new();
    let path = Log::new("s1").user("u1", "", "hello").save(&home);
    let mut d = Daemon::start_in(&home, &[], &[]);
    for name in ["session_opened", "session_closed", "entries_appended"] {
        d.ignore(name);
    }
    d.open(&path);
    for (given, kept) in [
        ("  a\r\nb  ", json!("a b")),
        ("c", json!("c")),
        ("", Json::Null),
    ] {
        let result = d.ok("set_session_name", json!({"name": given}));
        assert_eq!(
            result["leafId"], result["entryId"],
            "session_info advances the leaf"
        );
        assert_eq!(d.leaf(), result["entryId"]);
        let announced = d.notification("session_info_changed");
        let told_name = announced["name"]
            .as_str()
            .map(|n| n.split_whitespace().collect::<Vec<_>>().join(" "));
        assert_eq!(json!(told_name), kept, "{given:?}: {announced}");
        let session = d.open(&path)["session"].clone();
        assert_eq!(
            session.get("name").is_none(),
            kept.is_null(),
            "{given:?}: {session}"
        );
        assert_eq!(
            d.entry(result["entryId"].as_str().unwrap())["type"],
            "session_info"
        );
    }
    d.ok("set_session_name", json!({"name": "last"}));
    assert_eq!(d.notification("session_info_changed")["name"], "last");
    d.stop();
    let mut d = Daemon::quiet_in(&home);
    assert_eq!(
        d.open(&path)["session"]["name"],
        "last",
        "read back from the file"
    );
}

#[test]
fn a_daemon_holds_many_sessions_and_announces_each_opening_and_closing() {
    let mut d = Daemon::start();
    let (one, two) = (d.create(), d.create());
    for id in [&one, &two] {
        assert_eq!(d.notification("session_opened")["sessionId"], **id);
    }
    d.ok("close_session", json!({"sessionId": one}));
    assert_eq!(d.notification("session_closed")["sessionId"], one);
    assert_eq!(d.leaf(), Json::Null, "the other is the only one now");
    // No notification is sent when a client uses another session. The harness fails at an unclaimed notification.
    d.ok("close_session", json!({"sessionId": two}));
    d.notification("session_closed");
}

pub(crate) fn set_modified(path: &std::path::Path, seconds: u64) {
    let file = fs::File::options().append(true).open(path).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seconds))
        .unwrap();
}
