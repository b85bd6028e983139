//! Tags, pins, archived sessions, the branch and commit of git, and families (protocol.md §3.21, §3.22, session-file.md
//! §4.8, §5.10). Once all sessions were in one list by time, and only the trash removed one from it.

use std::fs;

use crate::harness::*;
use crate::listing::listed;

fn session(id: &str) -> Log {
    Log::new(id)
        .user("u1", "", "Why?")
        .assistant("a1", "u1", "So.")
}

/// A daemon with the sessions `s1` and `s2`, of which `s1` is open.
fn two() -> (Daemon, std::path::PathBuf) {
    let home = Home::new();
    let path = session("s1").store(&home, "x_s1.jsonl");
    session("s2").store(&home, "x_s2.jsonl");
    let mut d = Daemon::quiet_in(&home);
    d.open(&path);
    (d, path)
}

#[track_caller]
fn row(d: &mut Daemon, id: &str) -> Json {
    let listed = d.ok("list_sessions", json!({"archived": true}));
    let rows = listed["sessions"].as_array().unwrap();
    let row = rows.iter().find(|row| row["sessionId"] == id);
    row.cloned()
        .unwrap_or_else(|| panic!("no {id} in {listed}"))
}

/// Makes the inverse call that `result` names.
#[track_caller]
fn take_back(d: &mut Daemon, result: &Json) -> Json {
    let inverse = &result["inverse"];
    let method = inverse["method"].as_str().unwrap().to_owned();
    let mut params = inverse["params"].clone();
    if method == "tag_session" {
        params["sessionId"] = json!("s1");
    }
    d.ok(&method, params)
}

#[test]
fn tags_are_in_the_file_and_move_nobody() {
    let (mut d, path) = two();
    let on = |params: Json| {
        let mut params = params;
        params["sessionId"] = json!("s1");
        params
    };
    let before = fs::read(&path).unwrap();
    let done = d.ok("tag_session", on(json!({"add": ["#Build", "ui"]})));
    assert_eq!(done["tags"], json!(["build", "ui"]));
    assert_eq!(done["durability"], "interval");
    let after = fs::read(&path).unwrap();
    assert_eq!(after[..before.len()], before[..]);
    assert_eq!(d.ok("get_leaf", on(json!({})))["leafId"], "a1");
    assert_eq!(row(&mut d, "s1")["tags"], json!(["build", "ui"]));
    assert_eq!(listed(&mut d, json!({"tags": ["build"]})), ["s1"]);
    assert_eq!(listed(&mut d, json!({"tags": ["#BUILD", "ui"]})), ["s1"]);
    assert_eq!(listed(&mut d, json!({"tags": ["build", "no"]})), [""; 0]);
    assert_eq!(listed(&mut d, json!({"query": "#build"})), ["s1"]);

    let same = d.ok(
        "tag_session",
        on(json!({"add": ["ui"], "remove": ["never"]})),
    );
    assert_eq!(
        (&same["durability"], &same["inverse"]),
        (&json!("none"), &Json::Null)
    );
    assert_eq!(fs::read(&path).unwrap(), after, "nothing is written");
    let changed = d.ok(
        "tag_session",
        on(json!({"add": ["new"], "remove": ["build"]})),
    );
    assert_eq!(changed["tags"], json!(["new", "ui"]));
    assert_eq!(take_back(&mut d, &changed)["tags"], json!(["build", "ui"]));
    let tree = d.ok("get_tree", on(json!({"filter": "all"})));
    assert_eq!(tree["nodes"].as_array().unwrap().len(), 2);

    let home = d.stop();
    let mut d = Daemon::quiet_in(&home);
    let opened = d.open(&path);
    assert_eq!(opened["diagnostics"], json!([]));
    assert_eq!(opened["session"]["leafId"], "a1");
    assert_eq!(row(&mut d, "s1")["tags"], json!(["build", "ui"]));
    assert!(!home.sessions().join(".marks.jsonl").exists());
    for bad in ["two words", "", "a,b", &"x".repeat(65)] {
        d.err_kind("tag_session", on(json!({"add": [bad]})), "invalidParams");
    }
    d.err_kind(
        "tag_session",
        on(json!({"add": ["a"], "remove": ["#a"]})),
        "invalidParams",
    );
}

/// If a session file cannot be written, its tags are marks until it can be. Setting a tag does not migrate a file of
/// version 1 or 2, and does not write to a session that is open for reading.
#[test]
fn tags_of_what_cannot_be_written_are_marks_until_it_can() {
    let (d, path) = two();
    let home = d.stop();
    let mut d = Daemon::quiet_in(&home);
    d.ok(
        "open_session",
        json!({"path": path.to_str().unwrap(), "mode": "read"}),
    );
    let before = fs::read(&path).unwrap();
    let tag = |d: &mut Daemon, add: Json, remove: Json| {
        d.ok(
            "tag_session",
            json!({"sessionId": "s1", "add": add, "remove": remove}),
        )
    };
    let done = tag(&mut d, json!(["later"]), json!([]));
    assert_eq!(done["durability"], "always");
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(row(&mut d, "s1")["tags"], json!(["later"]));
    let home = d.stop();
    let mut d = Daemon::quiet_in(&home);
    d.open(&path);
    let done = tag(&mut d, json!(["now"]), json!([]));
    assert_eq!(done["tags"], json!(["later", "now"]));
    let marks = fs::read_to_string(home.sessions().join(".marks.jsonl")).unwrap();
    let last = marks.lines().last().unwrap();
    assert_eq!(last, r#"{"sessionId":"s1"}"#, "the file has them now");
    assert_eq!(row(&mut d, "s1")["tags"], json!(["later", "now"]));

    let old = json!({"type": "session", "version": 2, "id": "old", "timestamp": "2025-01-01T00:00:00.000Z", "cwd": "/c"});
    let old = Log::with_header(old)
        .user("u1", "", "hi")
        .store(&home, "x_old.jsonl");
    let before = fs::read(&old).unwrap();
    d.open(&old);
    d.ok("tag_session", json!({"sessionId": "old", "add": ["kept"]}));
    assert_eq!(fs::read(&old).unwrap(), before);
    assert_eq!(listed(&mut d, json!({"tags": ["kept"]})), ["old"]);
}

#[test]
fn pins_and_archived_sessions_are_marks_of_this_machine() {
    let (mut d, path) = two();
    let before = fs::read(&path).unwrap();
    let pinned = d.ok("mark_session", json!({"sessionId": "s1", "pinned": true}));
    assert_eq!(
        (&pinned["pinned"], &pinned["archived"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(listed(&mut d, json!({"pinned": true})), ["s1"]);
    assert_eq!(listed(&mut d, json!({"pinned": false})), ["s2"]);
    assert_eq!(listed(&mut d, json!({"sort": "pinned"}))[0], "s1");
    let archived = d.ok("mark_session", json!({"sessionId": "s1", "archived": true}));
    assert_eq!(
        archived["inverse"]["params"],
        json!({"sessionId": "s1", "archived": false})
    );
    let list = d.ok("list_sessions", json!({}));
    assert_eq!(list["archivedCount"], 1);
    assert_eq!(listed(&mut d, json!({})), ["s2"]);
    assert_eq!(row(&mut d, "s1")["archived"], true);
    let again = d.ok("mark_session", json!({"sessionId": "s1", "archived": true}));
    assert_eq!(again["inverse"], Json::Null);
    take_back(&mut d, &archived);
    take_back(&mut d, &pinned);
    assert_eq!(listed(&mut d, json!({})).len(), 2);
    assert_eq!(row(&mut d, "s1")["pinned"], Json::Null);
    assert_eq!(fs::read(&path).unwrap(), before);
    d.err_kind(
        "mark_session",
        json!({"sessionId": "nobody", "pinned": true}),
        "sessionNotFound",
    );
}

/// Waits for a notification with a row of this session for which `holds` returns true, or one that names the session as
/// removed.
#[track_caller]
fn heard(d: &mut Daemon, id: &str, holds: impl Fn(&Json) -> bool) {
    loop {
        let told = d.notification("sessions_changed");
        let rows = told["changed"].as_array().unwrap();
        let is_removed = told["removed"].as_array().unwrap().contains(&json!(id));
        let row = rows.iter().find(|row| row["sessionId"] == id);
        if row.is_some_and(&holds) || (is_removed && holds(&Json::Null)) {
            return;
        }
    }
}

#[test]
fn a_watcher_hears_of_marks_and_tags_of_any_daemon() {
    let (other, path) = two();
    let home = other.stop();
    let mut d = Daemon::quiet_in(&home);
    let mut other = Daemon::quiet_in(&home);
    d.ok("watch_sessions", json!({}));
    let mut mark = |params: Json| other.ok("mark_session", params);
    mark(json!({"sessionId": "s2", "pinned": true}));
    heard(&mut d, "s2", |row| row["pinned"] == true);
    mark(json!({"sessionId": "s2", "archived": true}));
    heard(&mut d, "s2", Json::is_null);
    mark(json!({"sessionId": "s2", "archived": false}));
    heard(&mut d, "s2", |row| row["pinned"] == true);
    d.ok("watch_sessions", json!({"archived": true}));
    mark(json!({"sessionId": "s2", "archived": true}));
    heard(&mut d, "s2", |row| row["archived"] == true);
    other.open(&path);
    other.ok("tag_session", json!({"add": ["x"]}));
    heard(&mut d, "s1", |row| row["tags"] == json!(["x"]));
    d.ignore("sessions_changed");
}

#[test]
fn a_hostile_file_of_marks_hides_no_session() {
    let (mut d, _) = two();
    let at = d.home.sessions().join(".marks.jsonl");
    fs::write(
        &at,
        "\u{0}\n{\"sessionId\":\"s1\",\"pinned\":true}\n{\"sessionId\":\"s1\",\"tags\":{\"a\":1},\"pinned\":true}\n{\"sess",
    )
    .unwrap();
    assert_eq!(row(&mut d, "s1")["pinned"], true);
    d.ok("mark_session", json!({"sessionId": "s2", "archived": true}));
    assert_eq!(listed(&mut d, json!({})), ["s1"]);
    fs::remove_file(&at).unwrap();
    assert_eq!(listed(&mut d, json!({})).len(), 2);
}

#[test]
fn the_place_in_git_is_in_rows_and_filters() {
    let (mut d, _) = two();
    let git = json!({"branch": "fix/build", "commit": "0123abcd", "worktree": "/home/ada/project"});
    let made = d.ok(
        "create_session",
        json!({"sessionId": "s3", "cwd": "/c", "git": git, "name": "On a branch"}),
    );
    assert_eq!(made["session"]["entryCount"], 1);
    assert_eq!(row(&mut d, "s3")["git"], git);
    assert_eq!(listed(&mut d, json!({"branch": "fix/build"})), ["s3"]);
    assert_eq!(listed(&mut d, json!({"branch": "fix"})), [""; 0]);
    assert_eq!(listed(&mut d, json!({"query": "FIX/build"})), ["s3"]);
    let plain =
        json!({"sessionId": "s4", "cwd": "/c", "write": "first-entry", "git": {"commit": "9"}});
    d.ok("create_session", plain);
    assert_eq!(row(&mut d, "s4")["git"], json!({"commit": "9"}));
    d.err_kind(
        "create_session",
        json!({"cwd": "/c", "git": {"branch": ""}}),
        "invalidParams",
    );
    let home = d.stop();
    let mut d = Daemon::quiet_in(&home);
    let opened = d.ok("open_session", json!({"sessionId": "s3"}));
    assert_eq!(opened["diagnostics"], json!([]));
    assert_eq!(opened["session"]["name"], "On a branch");
}

#[test]
fn a_family_is_one_tree_of_sessions() {
    let (mut d, _) = two();
    d.ignore("session_before_fork");
    d.ignore("session_fork");
    let fork =
        json!({"sessionId": "s1", "entryId": "a1", "newSessionId": "f1", "name": "The fork"});
    let forked = d.ok("fork_session", fork.clone());
    assert_eq!(forked["session"]["name"], "The fork");
    assert_eq!(forked["session"]["header"]["parentEntryId"], "a1");
    let spawner = json!({"sessionId": "f1", "entryId": "u1", "toolCallId": "call_1"});
    d.ok(
        "create_session",
        json!({"sessionId": "sub", "cwd": "/c", "spawnedBy": spawner, "write": "now"}),
    );
    for id in ["s1", "f1", "sub"] {
        let family = d.ok("get_family", json!({"sessionId": id}));
        let rows = family["sessions"].as_array().unwrap();
        let of = |member: &str| {
            rows.iter()
                .map(|row| row[member].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(of("sessionId"), [json!("s1"), json!("f1"), json!("sub")]);
        assert_eq!(of("depth"), [json!(0), json!(1), json!(2)]);
        let from = of("comesFrom");
        assert_eq!(
            from[1],
            json!({"sessionId": "s1", "kind": "fork", "entryId": "a1"})
        );
        let subagent =
            json!({"sessionId": "f1", "kind": "subagent", "entryId": "u1", "toolCallId": "call_1"});
        assert_eq!(from[2], subagent);
    }
    assert_eq!(row(&mut d, "s1")["children"], 1);
    assert_eq!(row(&mut d, "sub")["children"], Json::Null);
    let page = d.ok("get_family", json!({"sessionId": "s1", "limit": 2}));
    let cursor = &page["nextCursor"];
    let rest = d.ok("get_family", json!({"sessionId": "s1", "cursor": cursor}));
    assert_eq!(rest["sessions"][0]["sessionId"], "sub");
    assert_eq!(rest["nextCursor"], Json::Null);
    d.err_kind(
        "get_family",
        json!({"sessionId": "nobody"}),
        "sessionNotFound",
    );

    // The same request for a fork is sent again, to this daemon and to another one.
    let again = d.ok("fork_session", fork.clone());
    assert_eq!(again["session"]["sessionId"], "f1");
    assert_eq!(again["durability"], "none");
    let home = d.stop();
    let mut d = Daemon::quiet_in(&home);
    d.ignore("session_before_fork");
    d.ignore("session_fork");
    d.ok("open_session", json!({"sessionId": "s1"}));
    let again = d.ok("fork_session", fork);
    assert_eq!(again["session"]["name"], "The fork");
    assert_eq!(home.session_files().len(), 4);
    let taken = json!({"sessionId": "s1", "newSessionId": "s2"});
    d.err_kind("fork_session", taken, "sessionExists");
}

/// A client that has lost its connection sends the same request for a fork again, after the source has got more
/// entries.
#[test]
fn a_fork_that_is_made_is_answered_whatever_its_source_does_since() {
    let (mut d, _) = two();
    d.ignore("session_before_fork");
    d.ignore("session_fork");
    let fork = json!({"sessionId": "s1", "newSessionId": "f1"});
    d.ok("fork_session", fork.clone());
    let on = |mut params: Json| {
        params["sessionId"] = json!("s1");
        params
    };
    let call = json!({"type": "toolCall", "id": "c1", "name": "bash", "arguments": {}});
    let message = json!({
        "role": "assistant", "content": [call], "api": "x", "provider": "x", "model": "x", "usage": {},
        "stopReason": "toolUse", "timestamp": 1,
    });
    d.ok("append_message", on(json!({"message": message})));
    let again = d.ok("fork_session", fork.clone());
    assert_eq!(again["session"]["sessionId"], "f1");
    d.ok("begin_turn", on(json!({})));
    let again = d.ok("fork_session", fork);
    assert_eq!(again["session"]["sessionId"], "f1");
    let other = json!({"sessionId": "s1", "newSessionId": "f2"});
    d.err("fork_session", other);
}

/// The line with the name was once after the newest entry, so that the file opened beside this entry.
#[test]
fn a_named_fork_of_a_whole_tree_opens_at_its_leaf() {
    let home = Home::new();
    let path = session("s1")
        .user("u2", "a1", "on")
        .store(&home, "x_s1.jsonl");
    let mut d = Daemon::quiet_in(&home);
    for event in [
        "session_before_fork",
        "session_fork",
        "session_before_tree",
        "session_tree",
    ] {
        d.ignore(event);
    }
    d.open(&path);
    d.ok("set_leaf", json!({"leafId": "a1"}));
    let forked = d.ok(
        "fork_session",
        json!({"newSessionId": "f1", "name": "The fork"}),
    );
    assert_eq!(forked["session"]["name"], "The fork");
    let leaf = forked["session"]["leafId"].clone();
    let home = d.stop();
    let mut d = Daemon::quiet_in(&home);
    let opened = d.ok("open_session", json!({"sessionId": "f1"}));
    assert_eq!(opened["diagnostics"], json!([]));
    assert_eq!(opened["session"]["leafId"], leaf);
    assert_eq!(opened["session"]["name"], "The fork");
}

/// A page once had a thousand rows. Since each row may be as large as a message, such a page was too large to send.
#[test]
fn a_page_of_a_family_fits_into_a_message() {
    let home = Home::new();
    session("s1").store(&home, "x_s1.jsonl");
    for number in 0..40 {
        let header = json!({
            "type": "session", "version": 3, "id": format!("f{number}"), "cwd": "/c".repeat(number * 150),
            "timestamp": "2025-01-01T00:00:00.000Z", "parentSession": "s1",
        });
        let fork = Log::with_header(header).user("u1", "", "hi");
        fork.store(&home, &format!("x_f{number}.jsonl"));
    }
    let mut d = Daemon::start_in(&home, &[], &[]);
    d.init(json!({"maxFrameBytes": 8192}));
    let (mut ids, mut cursor) = (Vec::new(), Json::Null);
    loop {
        let mut params = json!({"sessionId": "s1"});
        if !cursor.is_null() {
            params["cursor"] = cursor;
        }
        let page = d.ok("get_family", params);
        assert!(page.to_string().len() <= 8192, "{}", page.to_string().len());
        let rows = page["sessions"].as_array().unwrap();
        ids.extend(rows.iter().map(|row| row["sessionId"].to_string()));
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    let different: std::collections::BTreeSet<&String> = ids.iter().collect();
    assert_eq!((ids.len(), different.len()), (41, 41));
}

/// Two daemons change the tags of a session at the same time, each in the session file or in the file of marks.
#[test]
fn tags_of_two_daemons_lose_nothing() {
    for (modes, rounds) in [
        (["write", "write"], 60),
        (["read", "read"], 60),
        (["write", "read"], 60),
    ] {
        let (d, path) = two();
        let home = d.stop();
        let path = path.to_str().unwrap();
        let start = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            for (writer, mode) in modes.iter().enumerate() {
                let (home, start) = (&home, &start);
                scope.spawn(move || {
                    let mut d = Daemon::quiet_in(home);
                    d.ok("open_session", json!({"path": path, "mode": mode}));
                    for round in 0..rounds {
                        start.wait();
                        let (new, old) = (round % 20, (round + 10) % 20);
                        let (add, remove) =
                            ([format!("t{writer}-{new}")], [format!("t{writer}-{old}")]);
                        let change = json!({"sessionId": "s1", "add": add, "remove": remove});
                        let done = d.ok("tag_session", change);
                        let tags = done["tags"].as_array().unwrap();
                        assert!(tags.contains(&json!(add[0])), "{done}");
                        start.wait();
                        let tags = &row(&mut d, "s1")["tags"];
                        for writer in 0..2 {
                            let has = |number| {
                                tags.as_array()
                                    .unwrap()
                                    .contains(&json!(format!("t{writer}-{number}")))
                            };
                            assert!(has(new) && !has(old), "{modes:?} round {round}: {tags}");
                        }
                    }
                });
            }
        });
    }
}

/// The shell has a command for each of these methods.
#[test]
fn sessions_are_sorted_from_the_shell() {
    let (d, _) = two();
    let home = d.stop();
    let run = |arguments: &[&str]| home.run(arguments, &[], "").clean().text();
    assert_eq!(
        run(&["tag", "s1", "build,UI"]).trim(),
        "\"Why?\" has now #build #ui"
    );
    assert_eq!(run(&["pin", "s1"]).trim(), "\"Why?\" is pinned now");
    let list = run(&["list", "--all", "--tag", "ui", "--pinned"]);
    assert!(list.contains("#build  #ui  pinned"), "{list}");
    assert!(!list.contains("s2"), "{list}");
    run(&["archive-session", "s1"]);
    let list = run(&["list", "--all"]);
    assert!(
        list.contains("1 archived session; --archived shows them"),
        "{list}"
    );
    assert!(run(&["list", "--all", "--archived"]).contains("archived"));
    run(&["archive-session", "s1", "--remove"]);
    run(&["tag", "s1", "build", "--remove"]);
    let json = run(&["list", "--all", "--json", "--tag", "ui"]);
    assert!(json.contains(r#""tags":["ui"]"#), "{json}");
}

#[test]
fn a_tag_selects_sessions() {
    let home = Home::new();
    for id in ["s1", "s2"] {
        let log = Log::new(id).user("u1", "", "the build fails");
        log.store(&home, &format!("x_{id}.jsonl"));
    }
    let mut d = Daemon::quiet_in(&home);
    d.ok("open_session", json!({"sessionId": "s2"}));
    d.ok("tag_session", json!({"add": ["ci"]}));
    let found = |d: &mut Daemon, query: &str| {
        let found = d.ok("search", json!({"query": query, "syntax": "filters"}));
        let sessions = found["hits"].as_array().unwrap().iter();
        let ids: Vec<String> = sessions.map(|hit| hit["sessionId"].to_string()).collect();
        ids
    };
    assert_eq!(found(&mut d, "build").len(), 2);
    assert_eq!(found(&mut d, "build tag:#CI"), [r#""s2""#]);
    assert_eq!(found(&mut d, "build tag:no"), [""; 0]);
    assert_eq!(found(&mut d, "tag:ci"), [r#""s2""#]);
}

#[test]
fn a_git_branch_selects_sessions() {
    let home = Home::new();
    for (id, branch) in [("s1", "main"), ("s2", "fix/cache")] {
        let log = Log::new(id).user("u1", "", "the build fails");
        let record = json!({"customType": "treelined.git", "data": {"branch": branch}});
        let log = log.entry("custom", "g1", "u1", record);
        log.store(&home, &format!("x_{id}.jsonl"));
    }
    let mut d = Daemon::quiet_in(&home);
    let found = |d: &mut Daemon, query: &str| {
        let found = d.ok("search", json!({"query": query, "syntax": "filters"}));
        let hits = found["hits"].as_array().unwrap().iter();
        let ids: Vec<String> = hits.map(|hit| hit["sessionId"].to_string()).collect();
        ids
    };
    assert_eq!(found(&mut d, "build git:fix/cache"), [r#""s2""#]);
    assert_eq!(found(&mut d, "git:main"), [r#""s1""#]);
    assert_eq!(found(&mut d, "build git:fix"), [""; 0]);
    assert_eq!(found(&mut d, "build git:main tag:x"), [""; 0]);
}

/// The tree once did not show that a call had started a session, or that a session was forked there.
#[test]
fn rows_name_the_sessions_that_come_from_their_entries() {
    let home = Home::new();
    let call = json!({"type": "toolCall", "id": "call_1", "name": "task", "arguments": {}});
    let calls = json!({
        "role": "assistant", "content": [{"type": "text", "text": "Two at once."}, call], "api": "x", "provider": "x",
        "model": "x", "usage": {}, "stopReason": "toolUse", "timestamp": 1,
    });
    let result = json!({
        "role": "toolResult", "toolCallId": "call_1", "toolName": "task", "isError": false, "timestamp": 2,
        "content": [{"type": "text", "text": "done"}],
    });
    let log = session("s1")
        .message("a2", "a1", calls)
        .message("r1", "a2", result);
    let path = log.user("u3", "r1", "on").store(&home, "x_s1.jsonl");
    let mut d = Daemon::quiet_in(&home);
    d.ignore("session_before_fork");
    d.ignore("session_fork");
    d.open(&path);
    for (fork, entry) in [("f1", "a1"), ("f2", "a1")] {
        let fork = json!({"sessionId": "s1", "entryId": entry, "newSessionId": fork});
        d.ok("fork_session", fork);
    }
    for (id, call) in [("sub", json!("call_1")), ("other", json!("call_9"))] {
        let spawner = json!({"sessionId": "s1", "entryId": "a2", "toolCallId": call});
        let made = json!({"sessionId": id, "cwd": "/c", "spawnedBy": spawner, "write": "now"});
        d.ok("create_session", made);
    }
    let mut rows = |params: Json| {
        let tree = d.ok("get_tree", params);
        let rows = tree["nodes"].as_array().unwrap().iter();
        let rows = rows.filter_map(|row| {
            let born = row["sessions"].as_array()?.iter();
            let born: Vec<String> = born
                .map(|it| {
                    format!(
                        "{} {}",
                        it["sessionId"].as_str().unwrap(),
                        it["kind"].as_str().unwrap()
                    )
                })
                .collect();
            Some(format!(
                "{}: {}",
                row["id"].as_str().unwrap(),
                born.join(", ")
            ))
        });
        rows.collect::<Vec<_>>()
    };
    let all = [
        "a1: f1 fork, f2 fork",
        "a2: sub subagent, other subagent",
        "r1: sub subagent",
    ];
    assert_eq!(rows(json!({"sessionId": "s1", "sessions": true})), all);
    let found = json!({"sessionId": "s1", "sessions": true, "query": "done"});
    assert_eq!(rows(found), all[2..]);
    assert_eq!(rows(json!({"sessionId": "s1"})), [""; 0]);
    assert_eq!(rows(json!({"sessionId": "f1", "sessions": true})), [""; 0]);
}
