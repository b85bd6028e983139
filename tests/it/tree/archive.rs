//! Names and archive of branches (protocol.md §3.20, session-file.md §4.7). Without these, a branch that was given up
//! would stay in every tree, list and search, and a branch would have no name that stays while it grows.

use super::*;

fn with_branches() -> (Daemon, std::path::PathBuf) {
    let home = Home::new();
    let path = two_branches().store(&home, "x_s1.jsonl");
    let mut d = Daemon::quiet_in(&home);
    d.open(&path);
    d.ignore("branches_changed");
    d.ignore("session_tree");
    d.ignore("entries_appended");
    (d, path)
}

/// The tip, name and archived mark of each row of `list_branches`, with or without archived branches.
fn tips(d: &mut Daemon, archived: bool) -> Vec<String> {
    let listed = d.ok("list_branches", json!({"archived": archived}));
    let rows = listed["branches"].as_array().unwrap().iter();
    rows.map(|row| {
        let mark = if row["archived"] == true { "!" } else { "" };
        format!("{mark}{}", row["tipId"].as_str().unwrap())
    })
    .collect()
}

fn tree_ids(d: &mut Daemon, archived: bool) -> Vec<String> {
    let tree = d.ok("get_tree", json!({"filter": "all", "archived": archived}));
    ids(&tree["nodes"])
}

fn reopened(d: Daemon, path: &std::path::Path) -> Daemon {
    let home = d.stop();
    let mut d = Daemon::quiet_in(&home);
    d.ignore("branches_changed");
    let opened = d.open(path);
    assert_eq!(opened["diagnostics"], json!([]));
    d
}

#[test]
fn an_archived_branch_is_gone_until_it_is_asked_for() {
    let (mut d, path) = with_branches();
    d.ok("archive_branch", json!({"entryId": "a2"}));
    for round in 0..2 {
        assert_eq!(tips(&mut d, false), ["a3"], "round {round}");
        assert_eq!(tips(&mut d, true), ["!a2", "a3"]);
        assert_eq!(
            tree_ids(&mut d, false),
            ["u1", "a1", "u3", "c3", "t3", "a3"]
        );
        let tree = d.ok("get_tree", json!({}));
        assert_eq!(tree["archivedBranches"], 1);
        assert_eq!((&tree["total"], &tree["hidden"]), (&json!(5), &json!(1)));
        assert_eq!(tree["nodes"][1]["childCount"], 1, "no branch point: {tree}");
        let whole = d.ok("get_tree", json!({"archived": true}));
        let marked = whole["nodes"].as_array().unwrap().iter();
        let marked: Vec<&Json> = marked.filter(|row| row["archived"] == true).collect();
        assert_eq!(ids(&json!(marked)), ["u2", "a2"]);
        // The cursor of a client was in the branch. The cursor once moved to the first row.
        let near = d.ok("get_tree", json!({"around": "a2", "limit": 1}));
        assert_eq!(
            (ids(&near["nodes"]), &near["offset"]),
            (vec!["a1".to_owned()], &json!(1))
        );
        let there = d.ok("get_tree", json!({"rootId": "u2"}));
        assert_eq!(ids(&there["nodes"]), ["u2", "a2"], "it was named");
        let said = d.ok("get_fork_messages", json!({}))["messages"].clone();
        assert_eq!(said.as_array().unwrap().len(), 2);
        let said = d.ok("get_fork_messages", json!({"archived": true}));
        assert_eq!(said["messages"].as_array().unwrap().len(), 3);
        let found = d.ok("search", json!({"query": "left"}));
        assert_eq!(found["totals"]["entries"], 0, "{found}");
        let found = d.ok("search", json!({"query": "left", "archived": true}));
        assert_eq!(found["totals"]["entries"], 2);
        assert_eq!(d.entry("a2")["id"], "a2", "entries by id stay");
        d = reopened(d, &path);
    }
    d.ok("unarchive_branch", json!({"entryId": "u2"}));
    assert_eq!(tips(&mut d, false), ["a2", "a3"]);
    assert_eq!(d.ok("get_tree", json!({}))["archivedBranches"], Json::Null);
}

#[test]
fn the_records_move_nobody() {
    let (mut d, path) = with_branches();
    d.ok(
        "name_branch",
        json!({"entryId": "a2", "name": " the\nleft "}),
    );
    d.ok("archive_branch", json!({"entryId": "a2"}));
    d.ok("unarchive_branch", json!({"entryId": "a2"}));
    let lines = file_lines(&path);
    let records: Vec<&Json> = lines.iter().rev().take(3).collect();
    for (record, kind) in records
        .iter()
        .rev()
        .zip(["branch", "archived", "unarchived"])
    {
        assert_eq!(record["type"], "custom");
        assert_eq!(record["customType"], format!("treelined.{kind}"));
        assert_eq!(record["parentId"], "a3", "pi goes on there");
        assert_eq!(record["data"]["entryId"], "u2");
        let id = record["id"].as_str().unwrap();
        d.err_kind("get_entry", json!({"entryId": id}), "entryNotFound");
    }
    assert_eq!(records[2]["data"]["name"], "the left");
    assert_eq!(d.leaf(), "a3");
    assert_eq!(d.ok("get_navigation_log", json!({}))["moves"], json!([]));
    assert_eq!(
        d.ok("get_entries", json!({}))["entries"]
            .as_array()
            .unwrap()
            .len(),
        8
    );
    let mut d = reopened(d, &path);
    assert_eq!(d.leaf(), "a3");
    let on = json!({"type": "message", "id": "u9", "message": user("on")});
    d.ok(
        "append_entries",
        json!({"entries": [on], "expectedLeafId": "a3"}),
    );
    assert_eq!(d.entry("u9")["parentId"], "a3");
}

/// Archiving once moved the position at which the file opens, without a question to clients, and added a step for undo.
#[test]
fn a_branch_in_which_another_program_works_stays() {
    let (mut d, path) = with_branches();
    assert_eq!(d.leaf(), "a3");
    let on = entry_line(9, "label", "f1", "a2", json!({"targetId": "a2"}));
    foreign_append(&path, &on);
    let before = std::fs::read(&path).unwrap();
    let refused = d.err("archive_branch", json!({"entryId": "a2"}));
    assert_eq!(refused.kind, "leafMoved");
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(d.leaf(), "a3");
}

/// A change of a session, made by its daemon or in its file.
type Change = fn(&mut Daemon, &std::path::Path);

#[test]
fn what_goes_on_is_not_archived() {
    // The branch continues in four ways: by a step of another program, by a move of this daemon, by an undo, or by a
    // label of another program, at which the file then opens.
    let ways: [(&str, Change); 4] = [
        ("step", |_, path| {
            let members = json!({"message": user("and left again")});
            foreign_append(path, &entry_line(9, "message", "f1", "a2", members));
        }),
        ("move", |d, _| {
            d.ok("set_leaf", json!({"leafId": "a2"}));
            d.ok("set_leaf", json!({"leafId": "a3"}));
        }),
        ("navigation", |d, _| {
            d.ok("navigate_tree", json!({"targetId": "a2"}));
            d.ok("undo_navigation", json!({}));
        }),
        ("opening", |_, path| {
            foreign_append(
                path,
                &entry_line(9, "label", "f1", "a2", json!({"targetId": "a2"})),
            );
        }),
    ];
    for (way, goes_on) in ways {
        let (mut d, path) = with_branches();
        d.ok("archive_branch", json!({"entryId": "a2"}));
        assert_eq!(tips(&mut d, false), ["a3"]);
        goes_on(&mut d, &path);
        let expected = if way == "step" {
            ["a3", "f1"]
        } else {
            ["a2", "a3"]
        };
        assert_eq!(tips(&mut d, false), expected, "{way}");
        d.allow_stderr();
    }
}

#[test]
fn the_leaf_leaves_a_branch_first() {
    let (mut d, path) = with_branches();
    let archived = d.ok("archive_branch", json!({"entryId": "a3"}));
    assert_eq!(archived["cancelled"], false);
    assert_eq!(archived["entryId"], "u3");
    assert_eq!(
        (&archived["oldLeafId"], &archived["newLeafId"]),
        (&json!("a3"), &json!("a1"))
    );
    assert_eq!(tips(&mut d, false), ["a2"]);
    let lines = file_lines(&path);
    let [moved, record] = &lines[lines.len() - 2..] else {
        panic!()
    };
    assert_eq!(
        (&moved["parentId"], &moved["data"]["from"]),
        (&json!("a1"), &json!("a3"))
    );
    assert_eq!(
        (&record["customType"], &record["parentId"]),
        (&json!("treelined.archived"), &json!("a1"))
    );
    d = reopened(d, &path);
    d.ignore("session_tree");
    assert_eq!(d.leaf(), "a1");
    assert_eq!(tips(&mut d, false), ["a2"]);
    // Undo moves the leaf into the archived branch, which is then no longer archived.
    d.ok("undo_navigation", json!({}));
    assert_eq!(d.leaf(), "a3");
    assert_eq!(tips(&mut d, false), ["a2", "a3"]);
    // The whole conversation is archived here, so the leaf is the empty position.
    let archived = d.ok("archive_branch", json!({"entryId": "u1"}));
    assert_eq!(archived["newLeafId"], Json::Null);
    assert_eq!(tree_ids(&mut d, false), Vec::<String>::new());
}

/// A redo once went back to the fork, and left the branch that the move had archived in the tree.
#[test]
fn a_redo_archives_again_what_the_undo_has_brought_back() {
    let (mut d, path) = with_branches();
    d.ok("archive_branch", json!({"entryId": "a3"}));
    d.ok("undo_navigation", json!({}));
    assert_eq!(tips(&mut d, false), ["a2", "a3"]);
    d = reopened(d, &path);
    d.ignore("session_tree");
    d.ok("redo_navigation", json!({}));
    assert_eq!(
        (d.leaf(), tips(&mut d, false)),
        (json!("a1"), vec!["a2".to_owned()])
    );
    d.ok("undo_navigation", json!({}));
    d.ok("redo_navigation", json!({}));
    assert_eq!(tips(&mut d, false), ["a2"], "a redo can be repeated");
    // The entries that were appended after the archiving stay in the tree.
    d.ok("undo_navigation", json!({}));
    d.ignore("entries_appended");
    d.chain(&["u4"]);
    d.ok("redo_navigation", json!({}));
    assert_eq!(tips(&mut d, false), ["a2", "u4"]);
    // A branch that another move has brought back stays.
    d.ok("archive_branch", json!({"entryId": "u4"}));
    d.ok("set_leaf", json!({"leafId": "u4"}));
    d.ok("set_leaf", json!({"leafId": "a1"}));
    d.ok("undo_navigation", json!({}));
    d.ok("redo_navigation", json!({}));
    assert_eq!(tips(&mut d, false), ["a2", "u4"]);
}

#[test]
fn a_client_can_hold_the_leaf_there() {
    let home = Home::new();
    let path = two_branches().save(&home);
    let mut d = Daemon::start_in(&home, &[], &[]);
    d.init(json!({"answers": {"session_before_tree": {}}}));
    d.ok("open_session", json!({"path": path}));
    d.notification("session_opened");
    let before = file_lines(&path);
    // If the leaf is not in the branch, no client is asked.
    let id = d.send("archive_branch", json!({"entryId": "a3"}));
    let event = d.notification("session_before_tree");
    assert_eq!(event["preparation"]["targetId"], "u3");
    assert_eq!(event["preparation"]["abandonedCount"], 4);
    d.answer(&event, json!({"cancel": true, "reason": "in use"}));
    d.notification("event_resolved");
    let held = d.response(&id).unwrap();
    assert_eq!(why_cancelled(&held)[0], "cancelledByClient");
    assert_eq!(held["inverse"], Json::Null);
    assert_eq!(file_lines(&path), before, "nothing was written");
    assert_eq!(d.leaf(), "a3");
    assert_eq!(tips(&mut d, false), ["a2", "a3"]);
    let id = d.send("archive_branch", json!({"entryId": "a2"}));
    assert_eq!(d.response(&id).unwrap()["cancelled"], false);
    d.notification("branches_changed");
}

#[test]
fn a_branch_is_meant_by_any_of_its_entries() {
    let (mut d, _) = with_branches();
    d.ok("append_label", json!({"targetId": "a2", "label": "x"}));
    let label = d.leaf().as_str().unwrap().to_owned();
    for entry in ["u3", "c3", "t3", "a3", &label] {
        let named = d.ok("name_branch", json!({"entryId": entry, "name": entry}));
        assert_eq!(named["entryId"], "u3", "{entry}");
    }
    let whole = d.ok("name_branch", json!({"entryId": "a1", "name": "main"}));
    assert_eq!(whole["entryId"], "u1");
    d.err_kind("name_branch", json!({"entryId": "gone"}), "entryNotFound");
    d.err_kind(
        "archive_branch",
        json!({"entryId": "gone"}),
        "entryNotFound",
    );
    d.err_kind(
        "unarchive_branch",
        json!({"entryId": "gone"}),
        "entryNotFound",
    );
    let (mut d, _) = Daemon::opened(
        Log::new("s1")
            .label("l1", "", "l1", json!("x"))
            .text()
            .as_bytes(),
    );
    d.err_kind("name_branch", json!({"entryId": "l1"}), "entryNotFound");
}

#[test]
fn a_branch_keeps_its_name_while_it_grows() {
    let (mut d, path) = with_branches();
    d.ok(
        "name_branch",
        json!({"entryId": "a3", "name": "to the right"}),
    );
    let name = |d: &mut Daemon, tip: &str| {
        let listed = d.ok("list_branches", json!({}))["branches"].clone();
        let row = listed
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["tipId"] == tip);
        row.unwrap()["name"].clone()
    };
    assert_eq!(name(&mut d, "a3"), "to the right");
    d.chain(&["u4", "a4"]);
    assert_eq!(name(&mut d, "a4"), "to the right");
    // At a fork the branch continues with the older child.
    d.below(Some("a3"), "u5");
    assert_eq!(name(&mut d, "a4"), "to the right");
    assert_eq!(name(&mut d, "u5"), "text of u5");
    d = reopened(d, &path);
    assert_eq!(name(&mut d, "a4"), "to the right");
    // A row that stands for the branch has the name too.
    d.ignore("session_tree");
    d.ok("set_leaf", json!({"leafId": "a2"}));
    let tree = d.ok("get_tree", json!({"fold": "left"}));
    let rows = tree["nodes"].as_array().unwrap().iter();
    let folded = rows
        .filter(|row| row["folded"].is_object())
        .map(|row| &row["preview"]);
    let folded: Vec<&str> = folded.filter_map(Json::as_str).collect();
    assert!(
        folded.len() == 1 && folded[0].ends_with("to the right"),
        "{folded:?}"
    );
}

#[test]
fn a_branch_within_an_archived_one_has_its_own_record() {
    let (mut d, _) = with_branches();
    d.below(Some("a3"), "u4");
    d.below(Some("a3"), "u5");
    d.ok("set_leaf", json!({"leafId": "a2"}));
    d.ok("archive_branch", json!({"entryId": "u4"}));
    d.ok("archive_branch", json!({"entryId": "u3"}));
    assert_eq!(d.ok("get_tree", json!({}))["archivedBranches"], 1);
    assert_eq!(tips(&mut d, true), ["a2", "!u4", "!u5"]);
    let back = d.ok("unarchive_branch", json!({"entryId": "u5"}));
    assert_eq!(back["entryIds"], json!(["u3"]));
    assert_eq!(tips(&mut d, true), ["a2", "!u4", "u5"]);
    d.ok("archive_branch", json!({"entryId": "c3"}));
    let back = d.ok("unarchive_branch", json!({"entryId": "u4"}));
    assert_eq!(
        back["entryIds"],
        json!(["u4", "u3"]),
        "what is asked for is there"
    );
    assert_eq!(tips(&mut d, true), ["a2", "u4", "u5"]);
}

#[test]
fn each_change_names_its_inverse() {
    let (mut d, path) = with_branches();
    let states = |d: &mut Daemon| d.ok("list_branches", json!({"archived": true}));
    let before = states(&mut d);
    let calls = [
        ("name_branch", json!({"entryId": "a2", "name": "one"})),
        ("name_branch", json!({"entryId": "a2", "name": "two"})),
        ("archive_branch", json!({"entryId": "a2"})),
    ];
    let mut inverses = Vec::new();
    for (method, params) in &calls {
        let done = d.ok(method, params.clone());
        assert_ne!(done["durability"], "none");
        inverses.push(done["inverse"].clone());
        let lines = file_lines(&path).len();
        let again = d.ok(method, params.clone());
        assert_eq!(
            (&again["durability"], &again["inverse"]),
            (&json!("none"), &Json::Null)
        );
        assert_eq!(
            file_lines(&path).len(),
            lines,
            "{method} again writes nothing"
        );
    }
    for inverse in inverses.iter().rev() {
        let method = inverse["method"].as_str().unwrap();
        d.ok(method, inverse["params"].clone());
    }
    assert_eq!(states(&mut d), before);
    let again = d.ok("unarchive_branch", json!({"entryId": "a2"}));
    assert_eq!(again, json!({"entryIds": [], "durability": "none"}));
    let moved = json!({"entryId": "a2", "name": "x", "expectedLeafId": "u1"});
    d.err_kind("name_branch", moved, "leafMoved");
}

#[test]
fn clients_hear_of_changes_whoever_makes_them() {
    let (mut d, path) = Daemon::opened(two_branches().text().as_bytes());
    d.ok("name_branch", json!({"entryId": "a2", "name": "left"}));
    assert_eq!(d.notification("branches_changed")["archivedBranches"], 0);
    d.ok("archive_branch", json!({"entryId": "a2"}));
    assert_eq!(d.notification("branches_changed")["archivedBranches"], 1);
    let mut other = Daemon::quiet_in(&d.home);
    other.ignore("branches_changed");
    other.open(&path);
    other.ok("unarchive_branch", json!({"entryId": "a2"}));
    assert_eq!(d.notification("branches_changed")["archivedBranches"], 0);
    d.ignore("entries_appended");
    assert_eq!(tips(&mut d, false), ["a2", "a3"]);
}

/// A session without a file writes nothing. So `archive_branch` once answered there that nothing had changed.
#[test]
fn each_change_in_memory_names_its_inverse() {
    let home = Home::new();
    let mut d = Daemon::quiet_in(&home);
    d.ignore("branches_changed");
    d.ignore("session_tree");
    d.ignore("entries_appended");
    d.ok(
        "create_session",
        json!({"sessionId": "memory", "ephemeral": true}),
    );
    d.chain(&["u1", "a1"]);
    d.below(Some("u1"), "a2");
    let named = d.ok("name_branch", json!({"entryId": "a1", "name": "x"}));
    assert_eq!(
        (&named["durability"], &named["inverse"]["method"]),
        (&json!("none"), &json!("name_branch"))
    );
    for (entry, moves) in [("a1", false), ("a2", true)] {
        let done = d.ok("archive_branch", json!({"entryId": entry}));
        assert_eq!(done["oldLeafId"] != done["newLeafId"], moves, "{done}");
        let inverse = json!({"method": "unarchive_branch", "params": {"entryId": entry}});
        assert_eq!(done["inverse"], inverse);
        let again = d.ok("archive_branch", json!({"entryId": entry}));
        assert_eq!(again["inverse"], Json::Null);
        let back = d.ok("unarchive_branch", json!({"entryId": entry}));
        assert_eq!(back["inverse"]["method"], "archive_branch");
    }
}

/// A name of several megabytes was once accepted, and was then in each row and list.
#[test]
fn a_name_of_a_branch_has_a_limit() {
    let (mut d, path) = with_branches();
    let before = file_lines(&path);
    let long = "é".repeat(513);
    let refused = d.err("name_branch", json!({"entryId": "a2", "name": long}));
    assert_eq!(refused.kind, "invalidParams");
    assert_eq!(refused.details("field"), "name");
    assert!(
        refused.message.contains("1,024 bytes"),
        "{}",
        refused.message
    );
    assert_eq!(file_lines(&path), before);
    let most = "é".repeat(512);
    let named = d.ok(
        "name_branch",
        json!({"entryId": "a2", "name": format!(" {most}\n")}),
    );
    assert_eq!(named["name"], most);
    // The name in a record of another program is shown only up to the limit.
    let record = json!({"customType": "treelined.branch", "data": {"entryId": "u2", "name": long}});
    foreign_append(&path, &entry_line(9, "custom", "n1", "a3", record));
    let listed = d.ok("list_branches", json!({}));
    assert_eq!(listed["branches"][0]["name"], most);
}

/// Two branches were archived, one inside the other. When one call brought both back, its undo once archived only the
/// outer one again.
#[test]
fn the_inverse_of_nested_archives_is_whole() {
    let (mut d, _) = with_branches();
    d.below(Some("u2"), "x1");
    d.set_leaf(Some("a3"));
    d.ok("archive_branch", json!({"entryId": "a2"}));
    d.ok("archive_branch", json!({"entryId": "u2"}));
    let back = d.ok("unarchive_branch", json!({"entryId": "a2"}));
    assert_eq!(back["entryIds"], json!(["a2", "u2"]));
    assert_eq!(tips(&mut d, false), ["a2", "a3", "x1"]);
    let inverse = &back["inverse"];
    assert_eq!(
        (&inverse["method"], &inverse["params"]),
        (
            &json!("archive_branch"),
            &json!({"entryId": "u2", "within": ["a2"]})
        )
    );
    d.ok("archive_branch", inverse["params"].clone());
    assert_eq!(tips(&mut d, false), ["a3"]);
    d.ok("unarchive_branch", json!({"entryId": "x1"}));
    assert_eq!(tips(&mut d, false), ["a3", "x1"], "the inner one stays");
    let elsewhere = json!({"entryId": "u2", "within": ["a3"]});
    assert_eq!(
        d.err("archive_branch", elsewhere).details("field"),
        "within"
    );
}

/// If a named branch forked later, its name could once be removed only with the entry that had got the name.
#[test]
fn a_name_is_removed_from_any_entry_that_has_it() {
    let (mut d, _) = with_branches();
    d.ok("name_branch", json!({"entryId": "u2", "name": "left"}));
    d.below(Some("u2"), "x1");
    d.below(Some("a2"), "x2");
    let named = |d: &mut Daemon| -> Vec<String> {
        let listed = d.ok("list_branches", json!({}));
        let rows = listed["branches"].as_array().unwrap().iter();
        let named = rows.filter(|row| row.get("givenName").is_some());
        named
            .map(|row| row["tipId"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(named(&mut d), ["x2"], "the older child of the fork");
    let other = d.ok("name_branch", json!({"entryId": "x1"}));
    assert_eq!(
        (&other["entryId"], &other["durability"]),
        (&json!("x1"), &json!("none"))
    );
    let removed = d.ok("name_branch", json!({"entryId": "x2"}));
    assert_eq!(
        (&removed["entryId"], &removed["inverse"]["params"]["name"]),
        (&json!("u2"), &json!("left"))
    );
    assert_eq!(named(&mut d), Vec::<String>::new());
}

/// A hit above a fork once named a tip that no row shows.
#[test]
fn hits_name_tips_that_are_shown() {
    let (mut d, _) = with_branches();
    d.ok("set_leaf", json!({"leafId": null}));
    d.below(Some("a1"), "x1");
    d.ok("set_leaf", json!({"leafId": null}));
    d.ok("archive_branch", json!({"entryId": "x1"}));
    let found = d.ok("search", json!({"query": "Hello"}));
    let hit = &found["hits"][0];
    assert_eq!(
        (&hit["entryId"], &hit["branch"]["tipId"]),
        (&json!("a1"), &json!("a3")),
        "{found}"
    );
}

/// An archive record about another record once archived the position that the other record names, and no call could
/// bring this back.
#[test]
fn an_archive_record_about_a_record_says_nothing() {
    let (mut d, path) = with_branches();
    d.ok("set_leaf", json!({"leafId": "a2"}));
    let record = file_lines(&path).pop().unwrap()["id"].clone();
    d.ok("set_leaf", json!({"leafId": "a3"}));
    let members = json!({"customType": "treelined.archived", "data": {"entryId": record}});
    foreign_append(&path, &entry_line(9, "custom", "r9", "a3", members));
    assert_eq!(tips(&mut d, false), ["a2", "a3"]);
}
