//! Candidates are several answers to one question, of which one is chosen (protocol.md §3.23).

use super::*;

fn candidate(d: &mut Daemon, group: &str, ids: [&str; 2]) {
    let entries = json!([{"type": "message", "message": user("why?"), "id": ids[0]},
        {"type": "message", "message": assistant(&format!("answer {}", ids[1])), "id": ids[1]}]);
    d.ok(
        "append_entries",
        json!({"entries": entries, "parentId": "a1", "keepLeaf": true, "group": group}),
    );
}

fn with_candidates(d: &mut Daemon) {
    d.create();
    d.chain(&["u1", "a1", "u2"]);
    for ids in [["b1", "b2"], ["c1", "c2"], ["e1", "e2"]] {
        candidate(d, "why", ids);
    }
    candidate(d, "another", ["f1", "f2"]);
}

fn begun() -> Daemon {
    let mut d = Daemon::quiet();
    d.ignore("session_tree");
    d.ignore("entries_appended");
    d.ignore("event_resolved");
    with_candidates(&mut d);
    d
}

fn notes(d: &mut Daemon) -> Vec<Json> {
    let found = d.ok(
        "get_entries",
        json!({"types": ["custom"], "customType": "note"}),
    );
    let found = found["entries"].as_array().unwrap().iter();
    found.map(|entry| entry["data"].clone()).collect()
}

#[test]
fn a_choice_goes_there_and_is_noted_on_the_others() {
    let mut d = begun();
    let listed = d.ok("list_branches", json!({}))["branches"].clone();
    let groups: Vec<(&Json, &Json)> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (&row["tipId"], &row["group"]))
        .collect();
    let why = json!("why");
    assert_eq!(
        groups,
        [
            (&json!("u2"), &Json::Null),
            (&json!("b2"), &why),
            (&json!("c2"), &why),
            (&json!("e2"), &why),
            (&json!("f2"), &json!("another"))
        ]
    );
    let chosen = d.ok(
        "choose",
        json!({"tipId": "c1", "reason": " the\nshortest "}),
    );
    assert_eq!(
        (&chosen["group"], &chosen["tipId"], &chosen["others"]),
        (&why, &json!("c2"), &json!(["b2", "e2"]))
    );
    assert_eq!(d.path_ids(None)[..4], ["u1", "a1", "c1", "c2"]);
    assert_eq!(chosen["newLeafId"], d.leaf());
    let noted = notes(&mut d);
    let note = |tip: &str| json!({"targetId": tip, "reason": "the shortest", "outcome": "notChosen", "by": noted[0]["by"]});
    assert_eq!(noted, [note("b2"), note("e2")]);
    assert!(noted[0]["by"].is_string());
    let back = d.ok("undo_navigation", json!({}));
    assert_eq!(back["newLeafId"], "u2");
    let path = d.home.only_file();
    let home = d.stop();
    let mut d = Daemon::quiet_in(&home);
    let opened = d.open(&path);
    assert_eq!(
        (&opened["session"]["leafId"], &opened["diagnostics"]),
        (&json!("u2"), &json!([]))
    );
    let refused = d.err("choose", json!({"tipId": "u2"}));
    assert_eq!(refused.details("field"), "tipId");
    d.ignore("session_tree");
    // The groups are stored in the file.
    assert_eq!(
        d.ok("choose", json!({"tipId": "b2"}))["others"],
        json!(["c2", "e2"])
    );
}

#[test]
fn a_second_choice_judges_again() {
    let mut d = begun();
    d.ok("choose", json!({"tipId": "b2"}));
    let again = d.ok("choose", json!({"tipId": "b2", "reason": "it passes"}));
    assert_eq!(
        (&again["reason"], &again["cancelled"]),
        (&json!("alreadyThere"), &json!(false))
    );
    assert_eq!(d.path_ids(None)[..4], ["u1", "a1", "b1", "b2"]);
    let reasons: Vec<Json> = notes(&mut d)
        .iter()
        .map(|note| note["reason"].clone())
        .collect();
    assert_eq!(
        reasons,
        [
            Json::Null,
            Json::Null,
            json!("it passes"),
            json!("it passes")
        ]
    );
}

#[test]
fn a_veto_holds_the_judgement_back() {
    let mut d = Daemon::start();
    d.init(json!({"answers": {"session_before_tree": {}}}));
    for name in ["session_opened", "entries_appended", "event_resolved"] {
        d.ignore(name);
    }
    with_candidates(&mut d);
    let id = d.send("choose", json!({"tipId": "b2"}));
    let event = d.notification("session_before_tree");
    assert_eq!(event["preparation"]["targetId"], "b2");
    d.answer(&event, json!({"cancel": true, "reason": "not yet"}));
    let held = d.response(&id).unwrap();
    assert_eq!(why_cancelled(&held)[0], "cancelledByClient");
    assert_eq!((notes(&mut d), d.leaf()), (vec![], json!("u2")));
}

/// A side question below a chosen candidate was once in the same branch. Archiving the question archived the
/// conversation too, and a later choice went to the answer of the question.
#[test]
fn a_question_below_a_chosen_candidate_is_a_branch_of_its_own() {
    let mut d = begun();
    d.ignore("branches_changed");
    d.ok("choose", json!({"tipId": "b1"}));
    let (leaf, path) = (d.leaf(), d.path_ids(None));
    let asked = json!([{"type": "message", "message": user("by the way?"), "id": "q1"},
        {"type": "message", "message": assistant("aside"), "id": "q2"}]);
    d.ok(
        "append_entries",
        json!({"entries": asked, "parentId": leaf, "keepLeaf": true, "group": "btw"}),
    );
    let row = |d: &mut Daemon, tip: &str| {
        let rows = d.ok("list_branches", json!({}))["branches"].clone();
        let mut rows = rows.as_array().unwrap().iter();
        rows.find(|row| row["tipId"] == tip).cloned().unwrap()
    };
    assert_eq!(row(&mut d, "b2")["isActive"], true);
    assert_eq!(
        (&row(&mut d, "q2")["forkId"], &row(&mut d, "q2")["group"]),
        (&json!("b2"), &json!("btw"))
    );
    let again = d.ok("choose", json!({"tipId": "b1"}));
    assert_eq!(
        (&again["tipId"], &again["reason"]),
        (&json!("b2"), &json!("alreadyThere"))
    );
    let leaf = d.leaf();
    let archived = d.ok("archive_branch", json!({"entryId": "q2"}));
    assert_eq!((&archived["entryId"], d.leaf()), (&json!("q1"), leaf));
    assert!(d.path_ids(None).starts_with(&path));
    assert_eq!(d.ok("choose", json!({"tipId": "c1"}))["others"][0], "b2");
    assert_eq!(d.ok("choose", json!({"tipId": "b1"}))["tipId"], "b2");
}

/// Without a group, the path of the leaf shows where a branch begins.
#[test]
fn a_branch_without_a_group_begins_below_the_path_of_the_leaf() {
    let mut d = begun();
    d.ignore("branches_changed");
    d.ok("choose", json!({"tipId": "b1"}));
    let leaf = d.leaf();
    d.ok(
        "append_message",
        json!({"message": user("aside"), "entryId": "q1", "parentId": leaf, "keepLeaf": true}),
    );
    let archived = d.ok("archive_branch", json!({"entryId": "q1"}));
    assert_eq!((&archived["entryId"], d.leaf()), (&json!("q1"), leaf));
}

#[test]
fn a_branch_has_the_group_that_its_first_entry_names() {
    let mut d = begun();
    d.ok("choose", json!({"tipId": "b1"}));
    d.user("n1", "on");
    d.set_leaf(Some("b2"));
    d.user("n2", "or so");
    let rows = d.ok("list_branches", json!({}))["branches"].clone();
    let rows = rows.as_array().unwrap().iter();
    let found: Vec<(&str, Option<&str>)> = rows
        .map(|row| (row["tipId"].as_str().unwrap(), row["group"].as_str()))
        .collect();
    assert_eq!(
        found,
        [
            ("u2", None),
            ("c2", Some("why")),
            ("e2", Some("why")),
            ("f2", Some("another")),
            ("n1", None),
            ("n2", None)
        ]
    );
}

/// A side question that was kept twice was once copied twice.
#[test]
fn a_branch_is_kept_once() {
    let mut d = begun();
    d.ignore("branches_changed");
    candidate(&mut d, "btw", ["q1", "q2"]);
    d.ok("archive_branch", json!({"entryId": "q1"}));
    let first = d.ok(
        "keep_branch",
        json!({"entryId": "q1", "expectedLeafId": "u2"}),
    );
    let copies = first["entryIds"].as_array().unwrap().clone();
    assert_eq!((copies.len(), &first["leafId"]), (2, &copies[1]));
    assert_eq!(d.entry(copies[0].as_str().unwrap())["copiedFrom"], "q1");
    for entry in ["q2", "q1"] {
        // A retry expects the leaf from before the first attempt.
        let again = d.ok(
            "keep_branch",
            json!({"entryId": entry, "expectedLeafId": "u2"}),
        );
        assert_eq!(again["entryIds"], first["entryIds"]);
        assert_eq!(
            (&again["leafId"], &again["durability"]),
            (&first["leafId"], &json!("none"))
        );
    }
    d.chain(&["u8"]);
    let more = json!({"message": assistant("and more"), "entryId": "q3", "parentId": "q2", "keepLeaf": true});
    d.ok("append_message", more);
    let below = json!({"message": user("aside"), "entryId": "r1", "parentId": "q3", "keepLeaf": true, "group": "btw"});
    d.ok("append_message", below);
    let moved = json!({"entryId": "q1", "expectedLeafId": "u2"});
    d.err_kind("keep_branch", moved, "leafMoved");
    let grown = d.ok("keep_branch", json!({"entryId": "q1"}));
    assert_eq!(grown["entryIds"][0], copies[0]);
    assert_eq!(grown["entryIds"].as_array().unwrap().len(), 3);
    assert_eq!(
        d.entry(grown["entryIds"][2].as_str().unwrap())["parentId"],
        "u8"
    );
    // If the leaf is on another path, the question is copied to that path. On its own path, nothing is missing and
    // nothing is copied.
    d.set_leaf(Some("a1"));
    let there = d.ok("keep_branch", json!({"entryId": "q3"}));
    assert_ne!(there["entryIds"][0], copies[0]);
    d.set_leaf(Some("q2"));
    let own = d.ok("keep_branch", json!({"entryId": "q1"}));
    assert_eq!(
        own["entryIds"].as_array().unwrap()[..2],
        [json!("q1"), json!("q2")]
    );
    let other = d.err("keep_branch", json!({"entryId": "u2"}));
    assert_eq!(
        (other.kind.as_str(), other.details("field")),
        ("invalidParams", &json!("entryId"))
    );
    d.err_kind("keep_branch", json!({"entryId": "nosuch"}), "entryNotFound");
}
