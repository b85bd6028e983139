//! Background appends (protocol.md §3.5, session-file.md §4.9): a branch grows, and no leaf moves.

use super::*;

fn grow(d: &mut Daemon, parent: &str, id: &str) -> Json {
    d.ok(
        "append_message",
        json!({"message": user(id), "entryId": id, "parentId": parent, "keepLeaf": true}),
    )
}

/// Another daemon that has the session open.
fn other(d: &Daemon, path: &std::path::Path) -> Daemon {
    let mut other = Daemon::quiet_in(&d.home);
    other.ignore_bookkeeping();
    other.open(path);
    other
}

/// The leaf at which a new process opens the file, and the diagnostics of the file.
fn opens(d: &Daemon, path: &std::path::Path) -> (Json, Json) {
    let opened = Daemon::quiet_in(&d.home).open(path);
    (
        opened["session"]["leafId"].clone(),
        opened["diagnostics"].clone(),
    )
}

#[test]
fn nobody_moves() {
    let mut d = Daemon::quiet();
    d.create();
    d.chain(&["u1", "a1", "u2"]);
    let path = d.home.only_file();
    let mut second = other(&d, &path);
    d.received("entries_appended");

    // The parents are the leaf, the entry above it, and an entry that was just written.
    for (parent, id) in [("u2", "b1"), ("u1", "c1"), ("b1", "b2")] {
        let grown = grow(&mut d, parent, id);
        assert_eq!(
            (&grown["entryId"], &grown["leafId"]),
            (&json!(id), &json!(id)),
            "the end of the branch"
        );
        let lines = file_lines(&path);
        let [entry, record] = &lines[lines.len() - 2..] else {
            panic!()
        };
        assert_eq!(
            (&entry["id"], &entry["parentId"], &entry["background"]),
            (&json!(id), &json!(parent), &json!(true))
        );
        assert_eq!(record["customType"], "treelined.leaf");
        assert_eq!(
            (&record["parentId"], &record["data"]),
            (&json!("u2"), &json!({"from": "u2", "cause": "keep"}))
        );
        let said = d.notification("entries_appended");
        assert_eq!(
            (&said["entryIds"], &said["leafId"], &said["fileLeafId"]),
            (&json!([id]), &json!("u2"), &json!("u2"))
        );
        assert_eq!((d.leaf(), second.leaf()), (json!("u2"), json!("u2")));
        assert_eq!(opens(&d, &path), (json!("u2"), json!([])));
    }
    let batch = json!([{"type": "message", "message": user("x"), "id": "e1"},
        {"type": "model_change", "provider": "p", "modelId": "m", "id": "e2"}]);
    let grown = d.ok(
        "append_entries",
        json!({"entries": batch, "parentId": "a1", "keepLeaf": true, "group": " which\none "}),
    );
    assert_eq!(grown["leafId"], "e2");
    assert_eq!(d.path_ids(Some("e2")), ["u1", "a1", "e1", "e2"]);
    assert_eq!(d.entry("e1")["group"], "which one");
    assert_eq!(d.entry("e2").get("group"), None, "the first one has it");
    assert_eq!(d.leaf(), "u2");
    // In both daemons the conversation continues where it was, and there is no move to undo.
    let on = json!({"message": user("x"), "entryId": "u3", "expectedLeafId": "u2"});
    second.ok("append_message", on);
    d.err_kind("undo_navigation", json!({}), "nothingToUndo");
    assert_eq!(d.ok("get_navigation_log", json!({}))["moves"], json!([]));
    assert_eq!(opens(&d, &path), (json!("u3"), json!([])));
    let ids = d.ok("get_context", json!({}))["messages"].clone();
    assert_eq!(ids.as_array().unwrap().len(), 3, "only the path: {ids}");
}

#[test]
fn the_first_entries_of_a_session_may_be_in_the_background() {
    let mut d = Daemon::quiet();
    d.create();
    let params = json!({"message": user("x"), "entryId": "b1", "parentId": null, "keepLeaf": true});
    d.ok("append_message", params);
    let path = d.home.only_file();
    assert_eq!(d.leaf(), Json::Null);
    assert_eq!(opens(&d, &path), (Json::Null, json!([])));
}

#[test]
fn a_background_append_names_its_parent() {
    let (mut d, path) = begun();
    let before = fs::read(&path).unwrap();
    for (method, params, field) in [
        (
            "append_message",
            json!({"message": user("x"), "keepLeaf": true}),
            "parentId",
        ),
        (
            "append_entries",
            json!({"entries": [{"type": "custom", "customType": "x"}], "keepLeaf": true}),
            "parentId",
        ),
        (
            "append_message",
            json!({"message": user("x"), "parentId": "u1", "group": "x"}),
            "group",
        ),
        (
            "append_message",
            json!({"message": user("x"), "parentId": "u1", "keepLeaf": true, "group": " "}),
            "group",
        ),
    ] {
        let refused = d.err(method, params);
        assert_eq!(
            (refused.kind.as_str(), refused.details("field")),
            ("invalidParams", &json!(field))
        );
    }
    let own = json!([{"type": "custom", "customType": "x", "parentId": "u1", "background": true}]);
    let refused = d.err("append_entries", json!({"entries": own}));
    assert_eq!(refused.details("field"), "background");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_compaction_and_a_summary_are_refused() {
    let (mut d, path) = begun();
    let before = fs::read(&path).unwrap();
    for entry in [
        json!({"type": "compaction", "summary": "x", "firstKeptEntryId": null, "tokensBefore": 1}),
        json!({"type": "branch_summary", "fromId": "a1", "summary": "x"}),
    ] {
        let entries = json!([{"type": "custom", "customType": "x"}, entry]);
        let params = json!({"entries": entries, "parentId": "u1", "keepLeaf": true});
        let refused = d.err("append_entries", params);
        assert_eq!(
            (refused.kind.as_str(), refused.details("field")),
            ("entryInvalid", &json!("type"))
        );
        assert_eq!(refused.details("index"), 1);
    }
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn the_expected_leaf_is_the_end_of_the_branch() {
    let (mut d, _) = begun();
    grow(&mut d, "a1", "b1");
    let on = |parent: &str, expected: Json, id: &str| json!({"message": user("x"), "entryId": id, "parentId": parent, "keepLeaf": true, "expectedLeafId": expected});
    // The leaf is not compared, in this daemon or in another one.
    d.ok("append_message", on("b1", json!("b1"), "b2"));
    for (parent, expected) in [
        ("b1", json!("b1")),
        ("b2", json!("a1")),
        ("a1", json!("a1")),
    ] {
        let moved = d.err("append_message", on(parent, expected, "no"));
        assert_eq!(moved.kind, "leafMoved");
        assert_eq!(moved.details("leafId"), "b2");
    }
    let retry = d.ok("append_message", on("b1", json!("b1"), "b2"));
    assert_eq!(retry["leafId"], "b2", "a retry succeeds");
    // Of two appends that arrive together, the second one expects the entry of the first one.
    let requests = [("b2", "b2", "b3"), ("b3", "b3", "b4"), ("b3", "b3", "b5")];
    let requests = requests.map(|(parent, expected, id)| {
        (
            d.fresh_id(),
            "append_message",
            on(parent, json!(expected), id),
        )
    });
    d.send_together(&requests);
    let answers = requests.map(|(id, ..)| d.response(&id).map_err(|error| error.kind));
    assert!(answers[0].is_ok() && answers[1].is_ok());
    assert_eq!(answers[2].as_ref().unwrap_err(), "leafMoved");
    assert_eq!(d.leaf(), "a1");
}

/// Background and ordinary appends that arrive together are checked one after the other.
#[test]
fn appends_of_both_kinds_may_arrive_together() {
    let (mut d, path) = begun();
    d.received("entries_appended");
    let params = |n: usize| match n % 3 {
        0 => json!({"message": user("x"), "entryId": format!("m{n}")}),
        _ => {
            json!({"message": user("x"), "entryId": format!("b{n}"), "parentId": "u1", "keepLeaf": true})
        }
    };
    let requests: Vec<(Json, &str, Json)> = (0..30)
        .map(|n| (d.fresh_id(), "append_message", params(n)))
        .collect();
    d.send_together(&requests);
    for (id, ..) in &requests {
        d.response(id).unwrap();
    }
    assert_eq!(d.leaf(), "m27");
    let own: Vec<String> = (0..30).step_by(3).map(|n| format!("m{n}")).collect();
    assert_eq!(d.path_ids(None)[2..], own);
    assert_eq!(opens(&d, &path), (json!("m27"), json!([])));
    for said in d.received("entries_appended") {
        let leaf = said["leafId"].as_str().unwrap();
        assert!(leaf == "a1" || leaf.starts_with('m'), "{said}");
    }
}

#[test]
fn a_branch_below_the_leaf_is_not_a_conflict() {
    let (mut d, path) = begun();
    let mut second = other(&d, &path);
    grow(&mut second, "a1", "b1");
    let on = json!({"message": user("x"), "entryId": "u2", "expectedLeafId": "a1"});
    d.ok("append_message", on);
    assert_eq!(d.leaf(), "u2");
}

/// A side question below the leaf was once in the branch of the conversation, so archiving the question archived the
/// conversation.
#[test]
fn the_conversation_ends_where_only_background_branches_go_on() {
    let (mut d, _) = begun();
    d.ignore("branches_changed");
    d.ok("name_branch", json!({"entryId": "a1", "name": "main"}));
    grow(&mut d, "a1", "b1");
    grow(&mut d, "b1", "b2");
    let rows = d.ok("list_branches", json!({}))["branches"].clone();
    let rows = rows.as_array().unwrap().iter();
    let rows: Vec<[Json; 5]> = rows
        .map(|row| {
            ["tipId", "forkId", "messageCount", "isActive", "givenName"]
                .map(|name| row[name].clone())
        })
        .collect();
    let main = [
        json!("a1"),
        Json::Null,
        json!(2),
        json!(true),
        json!("main"),
    ];
    let other = [json!("b2"), json!("a1"), json!(2), json!(false), Json::Null];
    assert_eq!(rows, [main, other]);
    let archived = d.ok("archive_branch", json!({"entryId": "b2"}));
    assert_eq!(
        (&archived["entryId"], d.leaf()),
        (&json!("b1"), json!("a1"))
    );
    let rows = d.ok("list_branches", json!({}))["branches"].clone();
    assert_eq!(rows[0]["tipId"], "a1");
    d.user("u2", "on");
    let rows = d.ok("list_branches", json!({}))["branches"].clone();
    assert_eq!(
        (&rows[0]["tipId"], &rows[0]["givenName"]),
        (&json!("u2"), &json!("main"))
    );
    assert_eq!(rows.as_array().unwrap().len(), 1);
}

/// A write is cut off after each of its lines and inside each line, as happens when a process is killed or a disk is
/// full.
#[test]
fn a_write_that_was_cut_off_opens_where_the_file_did() {
    let (mut d, path) = begun();
    d.ok(
        "append_label",
        json!({"targetId": "u1", "label": "x", "entryId": "l1"}),
    );
    let before = fs::read(&path).unwrap().len();
    let batch = json!([{"type": "message", "message": user("x"), "id": "b1"},
        {"type": "message", "message": assistant("y"), "id": "b2"}]);
    d.ok(
        "append_entries",
        json!({"entries": batch, "parentId": "u1", "keepLeaf": true}),
    );
    let whole = fs::read(&path).unwrap();
    drop(d);
    // The cuts are after each line, just before its line break, and in its middle.
    let breaks = (before..whole.len()).filter(|at| whole[*at] == b'\n');
    let ends = breaks.flat_map(|at| [at - 60, at - 1, at, at + 1]);
    for end in [before, before + 20].into_iter().chain(ends) {
        let home = Home::new();
        let cut = home.file("cut.jsonl", &whole[..end]);
        let mut d = Daemon::quiet_in(&home);
        let opened = d.open(&cut);
        assert_eq!(opened["session"]["leafId"], "l1", "cut at {end}");
        let found = opened["diagnostics"].as_array().unwrap().iter();
        let cut_at: Vec<&Json> = found
            .filter(|found| found["kind"] == "backgroundCut")
            .map(|found| &found["newestTipId"])
            .collect();
        let mut has_entry = |id: &str| d.call("get_entry", json!({"entryId": id})).is_ok();
        // The record ends the report, with or without its line break.
        let expected = match (has_entry("b1"), has_entry("b2")) {
            _ if end + 1 >= whole.len() => None,
            (_, true) => Some("b2"),
            (true, _) => Some("b1"),
            _ => None,
        };
        assert_eq!(cut_at, expected.as_slice(), "cut at {end}");
        let again = d.ok("get_leaf", json!({}));
        assert_eq!(again["diagnostics"].is_array(), expected.is_some());
        if expected.is_some() {
            d.ok(
                "append_message",
                json!({"message": user("x"), "entryId": "u9"}),
            );
            assert_eq!(d.path_ids(None).last().unwrap(), "u9");
            assert_eq!(d.ok("get_leaf", json!({})).get("diagnostics"), None);
        }
        d.allow_stderr();
    }
}

#[test]
fn copies_are_not_in_the_background() {
    let (mut d, _) = begun();
    for name in ["session_opened", "session_before_fork", "session_fork"] {
        d.ignore(name);
    }
    d.ok(
        "append_message",
        json!({"message": user("x"), "entryId": "b1", "parentId": "a1", "keepLeaf": true, "group": "why"}),
    );
    let copied = d.ok("cherry_pick", json!({"entryIds": ["b1"]}));
    let copy = copied["leafId"].as_str().unwrap().to_owned();
    let entry = d.entry(&copy);
    assert_eq!(
        (entry.get("background"), &entry["copiedFrom"]),
        (None, &json!("b1"))
    );
    assert_eq!(d.leaf(), copy);
    for scope in ["branch", "tree"] {
        let params = json!({"entryId": "b1", "position": "at", "scope": scope});
        let params = match scope {
            "tree" => json!({"scope": scope}),
            _ => params,
        };
        let forked = d.ok("fork_session", json!(params));
        let id = forked["session"]["sessionId"].clone();
        let expected = if scope == "branch" {
            json!("b1")
        } else {
            json!(copy)
        };
        assert_eq!(forked["session"]["leafId"], expected, "{scope}");
        let path = forked["session"]["path"].as_str().unwrap().to_owned();
        let lines = file_lines(std::path::Path::new(&path));
        let copy = lines.iter().find(|line| line["id"] == "b1").unwrap();
        // A copy of the whole tree has the same lines.
        let has = [copy.get("background"), copy.get("group")].map(|member| member.is_some());
        assert_eq!(has, [scope == "tree"; 2]);
        d.ok("close_session", json!({"sessionId": id}));
        d.received("session_closed");
        let opened = d.open(std::path::Path::new(&path));
        assert_eq!(opened["session"]["leafId"], expected, "{scope}");
        assert_eq!(opened["diagnostics"], json!([]));
        d.ok("close_session", json!({"sessionId": id}));
        d.received("session_closed");
    }
}

/// An entry that already had a `group` once got a second member of that name in its line.
#[test]
fn a_clients_entry_does_not_name_the_group() {
    let (mut d, path) = begun();
    let before = fs::read(&path).unwrap();
    let entries = json!([{"type": "message", "message": user("x")},
        {"type": "message", "message": user("y"), "group": "own"}]);
    for group in [Json::Null, json!("why")] {
        let mut params = json!({"entries": entries, "parentId": "a1", "keepLeaf": true});
        if !group.is_null() {
            params["group"] = group;
        }
        let refused = d.err("append_entries", params);
        assert_eq!(
            (
                refused.kind.as_str(),
                refused.details("field"),
                refused.details("index")
            ),
            ("entryInvalid", &json!("group"), &json!(1))
        );
    }
    assert_eq!(fs::read(&path).unwrap(), before);
    d.ok("append_entries", json!({"entries": entries}));
}
