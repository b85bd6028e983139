//! Candidates: several answers to one question, and the choice of one (protocol.md §3.23).

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
    // The groups are in the file.
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
