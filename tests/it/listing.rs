//! `list_sessions`: rows, order, filters, search, pages. protocol.md §3, session-file.md §5.

use std::fs;

use crate::harness::*;
use crate::sessions::set_modified;

/// A user message without a time. The time of its entry is used instead.
fn unstamped(text: &str) -> Json {
    json!({"role": "user", "content": text})
}

/// Three stored sessions: `old` with a name, `mid` forked from it, `new` in another folder.
fn three(home: &Home) {
    Log::new("old")
        .user("u1", "", "apples and pears")
        .assistant("a1", "u1", "hi")
        .entry("session_info", "i1", "a1", json!({"name": "Fruit"}))
        .store(home, "2025-01-01T00-00-00-000Z_old.jsonl");
    Log::with_header(json!({
        "type": "session", "version": 3, "id": "mid", "timestamp": "2025-02-01T00:00:00.000Z", "cwd": "/project",
        "parentSession": "2025-01-01T00-00-00-000Z_old.jsonl",
    }))
    .raw(&entry_line(50, "message", "m1", "", json!({"message": unstamped("bananas")})))
    .record("r1", "m1", "")
    .store(home, "2025-02-01T00-00-00-000Z_mid.jsonl");
    Log::with_header(json!({
        "type": "session", "version": 3, "id": "new", "timestamp": "2025-03-01T00:00:00.000Z", "cwd": "/other",
    }))
    .entry("session_info", "i1", "", json!({"name": "aardvark"}))
    .raw(&entry_line(20, "message", "n1", "i1", json!({"message": unstamped("cherries")})))
    .store(home, "2025-03-01T00-00-00-000Z_new.jsonl");
    for (at, path) in home.session_files().iter().enumerate() {
        // The modification times of the files are in the same order as the messages.
        let name = path.to_str().unwrap();
        let rank = if name.contains("_mid") {
            3000
        } else if name.contains("_new") {
            2000
        } else {
            1000
        };
        set_modified(path, rank + at as u64);
    }
}

#[track_caller]
pub(crate) fn listed(d: &mut Daemon, params: Json) -> Vec<String> {
    d.ok("list_sessions", params)["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["sessionId"].as_str().unwrap().to_owned())
        .collect()
}

/// One client once named a session `<command-name>/exit</command-name> <command-message>exit…`, and another one by the
/// first prompt.
#[test]
fn a_session_is_named_by_what_a_person_said_first() {
    let home = Home::new();
    let command = "<command-name>/exit</command-name>\n<command-message>exit</command-message>";
    Log::new("s1")
        .user("u1", "", command)
        .user(
            "u2",
            "u1",
            "<ide_opened_file>a.rs</ide_opened_file>\n## Fix the **build**",
        )
        .store(&home, "2025-01-01T00-00-00-000Z_s1.jsonl");
    let mut d = Daemon::quiet_in(&home);
    let rows = d.ok("list_sessions", json!({}));
    assert_eq!(rows["sessions"][0]["firstMessage"], "Fix the build");
    let session = json!({"sessionId": "s1"});
    d.ok("open_session", session.clone());
    let tree = d.ok("get_tree", session);
    let row = |at: usize| (&tree["nodes"][at]["preview"], &tree["nodes"][at]["style"]);
    assert_eq!(row(0), (&json!("/exit"), &json!("dim")));
    assert_eq!(row(1), (&json!("Fix the build"), &Json::Null));
    let drawn = home.run(&["tree", "s1"], &[], "").clean().text();
    assert!(drawn.starts_with("Fix the build\n"), "{drawn}");
}

/// Clients once named an open session by its first row, `/exit`, and the list named it by its first message, `Fix the
/// build`.
#[test]
fn an_open_session_has_the_first_message_of_its_row() {
    let home = Home::new();
    let path = Log::new("s1")
        .user("u1", "", "<command-name>/exit</command-name>")
        .user("u2", "u1", "Fix the **build**")
        .store(&home, "2025-01-01T00-00-00-000Z_s1.jsonl");
    let mut d = Daemon::quiet_in(&home);
    let row = d.ok("list_sessions", json!({}))["sessions"][0].clone();
    assert_eq!(row["firstMessage"], "Fix the build");
    // The first round reads the file, the second one uses the open session.
    for _ in 0..2 {
        let opened = d.ok("open_session", json!({"path": path}));
        assert_eq!(opened["session"]["firstMessage"], row["firstMessage"]);
    }
    let forked = d.ok("fork_session", json!({"entryId": "u2", "position": "at"}));
    assert_eq!(forked["session"]["firstMessage"], row["firstMessage"]);
    d.notification("session_before_fork");
    d.notification("session_fork");
    let made = d.ok("create_session", json!({}));
    assert_eq!(made["session"]["firstMessage"], "");
}

#[test]
fn rows_have_exact_counts_and_names() {
    let home = Home::new();
    three(&home);
    let mut d = Daemon::start_in(&home, &[], &[]);
    let rows = d.ok("list_sessions", json!({}))["sessions"].clone();
    let row = |id: &str| {
        rows.as_array()
            .unwrap()
            .iter()
            .find(|r| r["sessionId"] == id)
            .unwrap()
            .clone()
    };
    let old = row("old");
    assert_eq!(old["name"], "Fruit");
    assert_eq!(old["cwd"], "/project");
    assert_eq!(old["messageCount"], 2);
    assert_eq!(old["firstMessage"], "apples and pears");
    assert_eq!(old["created"], "2025-01-01T00:00:00.000Z");
    assert!(old["modified"].is_string(), "{old}");
    assert!(
        old["path"].as_str().unwrap().ends_with("_old.jsonl"),
        "{old}"
    );
    assert!(old.get("parentSession").is_none(), "{old}");
    let mid = row("mid");
    assert_eq!(mid["messageCount"], 1, "leaf records are not messages");
    assert!(mid.get("name").is_none(), "{mid}");
    assert_eq!(mid["parentSession"], "2025-01-01T00-00-00-000Z_old.jsonl");
}

#[test]
fn listing_sorts_filters_and_searches() {
    let home = Home::new();
    three(&home);
    let mut d = Daemon::start_in(&home, &[], &[]);
    assert_eq!(
        listed(&mut d, json!({})),
        ["mid", "new", "old"],
        "last activity first"
    );
    assert_eq!(
        listed(&mut d, json!({"sort": "recent"})),
        ["mid", "new", "old"]
    );
    assert_eq!(
        listed(&mut d, json!({"sort": "created"})),
        ["new", "mid", "old"]
    );
    assert_eq!(
        listed(&mut d, json!({"sort": "threaded"})),
        ["old", "mid", "new"],
        "the family of the fork that was used last comes first"
    );
    assert_eq!(
        listed(&mut d, json!({"sort": "name", "named": true})),
        ["new", "old"],
        "aardvark before Fruit"
    );
    assert_eq!(listed(&mut d, json!({"cwd": "/other"})), ["new"]);
    assert_eq!(listed(&mut d, json!({"cwd": "/nowhere"})), [""; 0]);
    assert_eq!(listed(&mut d, json!({"query": "PEARS"})), ["old"]);
    assert_eq!(listed(&mut d, json!({"query": "fruit"})), ["old"]);
    assert_eq!(listed(&mut d, json!({"query": "no such words"})), [""; 0]);
}

/// A new name once moved an old session to the top. Sessions are ordered by the time of the last message of the user or
/// the assistant.
#[test]
fn sessions_of_subagents_are_found_by_their_spawner() {
    let home = Home::new();
    let spawner = json!({"sessionId": "main", "entryId": "a1", "toolCallId": "call_1"});
    for (id, spawned_by) in [
        ("main", json!(null)),
        ("agent", spawner.clone()),
        ("other", json!({"sessionId": "elsewhere"})),
        ("odd", json!("main")),
    ] {
        Log::with_header(json!({
            "type": "session", "version": 3, "id": id, "timestamp": "2025-02-01T00:00:00.000Z",
            "cwd": "/project", "spawnedBy": spawned_by,
        }))
        .user("u1", "", "hi")
        .store(&home, &format!("{id}.jsonl"));
    }
    let mut d = Daemon::quiet_in(&home);
    // The first round builds the rows of the list, and the second one uses them.
    for _ in 0..2 {
        let list = d.ok("list_sessions", json!({"spawnedBy": "main"}));
        let rows = list["sessions"].as_array().unwrap();
        assert_eq!(rows.len(), 1, "{list}");
        assert_eq!(rows[0]["sessionId"], "agent");
        assert_eq!(rows[0]["spawnedBy"], spawner);
        let mut d = Daemon::quiet_in(&home);
        assert_eq!(listed(&mut d, json!({"spawnedBy": "elsewhere"})), ["other"]);
    }
    assert_eq!(listed(&mut d, json!({})).len(), 4);
    let fork = d.open(
        &home
            .session_files()
            .into_iter()
            .find(|path| path.ends_with("agent.jsonl"))
            .unwrap(),
    );
    assert_eq!(fork["session"]["header"]["spawnedBy"], spawner);
}

#[test]
fn sessions_are_ordered_by_their_last_message() {
    let home = Home::new();
    let said = |text: &str, role: &str, time: u64| json!({"message": {"role": role, "content": text, "timestamp": time}});
    let day = 86_400_000;
    for (id, said) in [
        (
            "first",
            vec![said("a", "user", 5 * day), said("b", "assistant", 9 * day)],
        ),
        (
            "second",
            vec![
                said("a", "user", 8 * day),
                said("b", "toolResult", 20 * day),
            ],
        ),
        // A message without a time has the time of its entry.
        ("third", vec![json!({"message": user("a")})]),
        ("empty", vec![said("b", "custom", 20 * day)]),
    ] {
        let mut log = Log::with_header(json!({"type": "session", "version": 3, "id": id,
            "timestamp": "1970-01-03T00:00:00.000Z", "cwd": "/p"}));
        for (number, said) in said.into_iter().enumerate() {
            log = log.raw(&entry_line(
                number,
                "message",
                &format!("m{number}"),
                "",
                said,
            ));
        }
        log.raw(&entry_line(
            70_000,
            "session_info",
            "i",
            "",
            json!({"name": " renamed\u{1b} "}),
        ))
        .store(&home, &format!("1_{id}.jsonl"));
    }
    let mut d = Daemon::quiet_in(&home);
    let rows = d.ok("list_sessions", json!({}))["sessions"].clone();
    let rows: Vec<(&str, &str)> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            (
                row["sessionId"].as_str().unwrap(),
                row["modified"].as_str().unwrap(),
            )
        })
        .collect();
    let third = stamp(0);
    let expected = [
        ("third", third.as_str()),
        ("first", "1970-01-10T00:00:00.000Z"),
        ("second", "1970-01-09T00:00:00.000Z"),
        ("empty", "1970-01-03T00:00:00.000Z"),
    ];
    assert_eq!(rows, expected);
}

#[test]
fn names_in_files_are_trimmed_and_blank_ones_clear() {
    let home = Home::new();
    for (id, stored, shown) in [
        ("a", " one\n two\u{7}", json!("one  two")),
        ("b", " \t\n ", Json::Null),
    ] {
        Log::new(id)
            .user("u1", "", "hi")
            .entry("session_info", "i1", "u1", json!({"name": "before"}))
            .entry("session_info", "i2", "i1", json!({"name": stored}))
            .store(&home, &format!("1_{id}.jsonl"));
        let mut d = Daemon::quiet_in(&home);
        let rows = d.ok("list_sessions", json!({"query": id}))["sessions"].clone();
        assert_eq!(rows[0].get("name").cloned().unwrap_or_default(), shown);
        let opened = d.ok("open_session", json!({"sessionId": id}))["session"].clone();
        assert_eq!(opened.get("name").cloned().unwrap_or_default(), shown);
        assert_eq!(d.entry("i2")["name"], stored, "in entries as stored");
    }
}

/// A family is ordered by its newest message, also if this message is in a fork of a fork. The forks in a family are
/// ordered in the same way.
#[test]
fn threaded_lists_order_families_by_their_newest_message() {
    let home = Home::new();
    for (id, parent, second) in [
        ("a", None, 10),
        ("b", None, 70),
        ("a1", Some("a"), 20),
        ("a2", Some("a"), 65),
        ("a11", Some("a1"), 60),
        ("loop1", Some("loop2"), 40),
        ("loop2", Some("loop1"), 5),
    ] {
        let mut header =
            json!({"type": "session", "version": 3, "id": id, "timestamp": stamp(0), "cwd": "/p"});
        if let Some(parent) = parent {
            header["parentSession"] = json!(parent);
        }
        Log::with_header(header)
            .raw(&entry_line(
                second,
                "message",
                "m",
                "",
                json!({"message": unstamped("x")}),
            ))
            .store(&home, &format!("1_{id}.jsonl"));
    }
    let mut d = Daemon::quiet_in(&home);
    assert_eq!(
        listed(&mut d, json!({"sort": "threaded"})),
        ["b", "a", "a2", "a1", "a11", "loop1", "loop2"]
    );
}

#[test]
fn working_directories_are_compared_lexically() {
    let home = Home::new();
    three(&home);
    let mut d = Daemon::quiet_in(&home);
    for cwd in ["/other/", "//other", "/./other/.", "/other"] {
        assert_eq!(listed(&mut d, json!({"cwd": cwd})), ["new"], "{cwd}");
    }
    for cwd in ["other", "/x/../other", "/Other", "/"] {
        assert_eq!(listed(&mut d, json!({"cwd": cwd})), [""; 0], "{cwd}");
    }
}

#[test]
fn a_cursor_continues_the_list() {
    let home = Home::new();
    three(&home);
    let mut d = Daemon::start_in(&home, &[], &[]);
    let first = d.ok("list_sessions", json!({"limit": 2}));
    assert_eq!(first["sessions"].as_array().unwrap().len(), 2);
    let rest = d.ok(
        "list_sessions",
        json!({"limit": 2, "cursor": first["nextCursor"]}),
    );
    assert_eq!(rest["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(rest["sessions"][0]["sessionId"], "old");
    assert!(rest.get("nextCursor").is_none(), "{rest}");
}

#[test]
fn a_list_is_current_after_files_have_grown() {
    let home = Home::new();
    three(&home);
    let mut d = Daemon::start_in(&home, &[], &[]);
    listed(&mut d, json!({}));
    let path = home
        .session_files()
        .into_iter()
        .find(|p| p.to_str().unwrap().contains("_old"))
        .unwrap();
    foreign_append(
        &path,
        &entry_line(9, "message", "u2", "i1", json!({"message": user("more")})),
    );
    let rows = d.ok("list_sessions", json!({}))["sessions"].clone();
    let old = rows
        .as_array()
        .unwrap()
        .iter()
        .find(|r| r["sessionId"] == "old")
        .unwrap();
    assert_eq!(old["messageCount"], 3);
}

#[test]
fn a_file_without_header_is_a_row_with_a_diagnostic() {
    let home = Home::new();
    three(&home);
    let bad = home
        .sessions()
        .join("--project--")
        .join("2025-04-01T00-00-00-000Z_bad.jsonl");
    fs::write(&bad, "not a header\n").unwrap();
    let mut d = Daemon::start_in(&home, &[], &[]);
    let rows = d.ok("list_sessions", json!({}))["sessions"].clone();
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 4, "{rows:?}");
    let row = rows
        .iter()
        .find(|r| r["path"] == json!(bad))
        .expect("it has a row");
    assert!(
        row.to_string().contains("headerMissing"),
        "with its diagnostic: {row}"
    );
    assert_eq!(fs::read_to_string(&bad).unwrap(), "not a header\n");
}

#[test]
fn listing_changes_no_file() {
    let home = Home::new();
    three(&home);
    let state = || -> Vec<_> {
        home.session_files()
            .into_iter()
            .map(|p| {
                (
                    fs::read(&p).unwrap(),
                    fs::metadata(&p).unwrap().modified().unwrap(),
                )
            })
            .collect()
    };
    let before = state();
    let mut d = Daemon::start_in(&home, &[], &[]);
    listed(&mut d, json!({"query": "apples"}));
    d.stop();
    assert_eq!(state(), before);
}
