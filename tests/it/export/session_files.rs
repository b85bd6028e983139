//! Exports as session files: of a whole session, a branch, or a subtree.

use super::*;

fn lines(text: &str) -> Vec<Json> {
    text.lines().map(|line| parse(line).unwrap()).collect()
}

#[test]
fn a_tree_has_every_readable_line_byte_for_byte() {
    let home = Home::new();
    let odd = r#"{ "x":1E+2, "parentId" : "a2","id":"u9","type":"message","timestamp":"2025-01-01T00:00:59.000Z","message":{"content":[],"role":"assistant"}}"#;
    let (mut d, _) = opened(&home, &branched().raw(odd));
    assert_eq!(
        content(&mut d, json!({"format": "jsonl"})),
        branched().raw(odd).text()
    );
}

#[test]
fn lines_without_anything_readable_are_left_out() {
    let home = Home::new();
    let glued = format!(
        "{{\"type\":\"mess{}",
        entry_line(9, "message", "g1", "a2", json!({"message": user("kept")}))
    );
    let log = branched()
        .raw("{\"type\":\"mess")
        .raw("")
        .raw(&glued)
        .raw("\0\0\0");
    let path = home.file("s.jsonl", format!("{}{{\"torn\":", log.text()).as_bytes());
    let mut d = daemon(&home);
    d.ignore("diagnostics");
    d.open(&path);
    let exported = content(&mut d, json!({"format": "jsonl", "sessionId": "s1"}));
    assert_eq!(exported, branched().raw(&glued).text());
}

#[test]
fn a_session_that_has_no_file_yet_is_exported() {
    let home = Home::new();
    let mut d = daemon(&home);
    d.create();
    d.user("u1", "x");
    let all = lines(&content(&mut d, json!({"format": "jsonl"})));
    assert_eq!(all.len(), 2);
    assert_eq!(
        (&all[0]["type"], &all[1]["id"]),
        (&json!("session"), &json!("u1"))
    );
    let made = d.ok("create_session", json!({"ephemeral": true}));
    let id = made["session"]["sessionId"].clone();
    let all = lines(&content(
        &mut d,
        json!({"format": "jsonl", "sessionId": id}),
    ));
    assert_eq!(all[0]["id"], id);
}

#[test]
fn a_branch_has_the_lines_of_a_fork_at_the_entry() {
    let home = Home::new();
    let (mut d, path) = opened(&home, &branched());
    d.ignore("session_before_fork");
    d.ignore("session_fork");
    for entry in ["u1", "r1", "a2", "a3"] {
        let params =
            json!({"sessionId": "s1", "format": "jsonl", "scope": "branch", "entryId": entry});
        let exported = content(&mut d, params);
        let fork = json!({"sessionId": "s1", "entryId": entry, "position": "at"});
        let fork = d.ok("fork_session", fork)["session"].clone();
        let forked = std::fs::read_to_string(fork["path"].as_str().unwrap()).unwrap();
        let (header, rest) = exported.split_once('\n').unwrap();
        assert_eq!(rest, forked.split_once('\n').unwrap().1, "{entry}");
        let header = parse(header).unwrap();
        assert_eq!(header["parentSession"], json!(path));
        assert_eq!(header["cwd"], "/project");
        assert_ne!(header["id"], "s1");
    }
    // A fork that ends in a call without a result is refused. An export keeps the call.
    let params = json!({"sessionId": "s1", "format": "jsonl", "scope": "branch", "entryId": "a1"});
    let all = lines(&content(&mut d, params));
    assert_eq!(all.last().unwrap()["id"], "a1");
}

/// Three compactions: one keeps from an entry above the subtree, one from a label, and one from an entry inside the
/// subtree.
fn compacted() -> Log {
    let keep = |from: &str| json!({"summary": "S", "firstKeptEntryId": from, "tokensBefore": 1});
    Log::new("s1")
        .user("u1", "", "one")
        .label("l0", "u1", "u1", json!("above"))
        .user("u2", "l0", "two")
        .label("l1", "u2", "u2", json!("top"))
        .user("u3", "l1", "three")
        .entry("compaction", "c1", "u3", keep("u1"))
        .entry("compaction", "c2", "c1", keep("l1"))
        .entry("compaction", "c3", "c2", keep("u3"))
        .user("u4", "c3", "four")
        .user("v1", "u2", "other branch")
        .label("l2", "v1", "v1", json!("tip"))
        .record("x1", "u4", "l2")
        .user("w1", "u1", "not below u2")
        .record("x2", "u4", "w1")
}

#[test]
fn a_subtree_is_a_session_of_its_own() {
    let home = Home::new();
    let (mut d, path) = opened(&home, &compacted());
    let params = json!({"format": "jsonl", "scope": "subtree", "entryId": "u2"});
    let exported = content(&mut d, params);
    let all = lines(&exported);
    assert_eq!(all[0]["parentSession"], json!(path));
    assert_ne!(all[0]["id"], "s1");
    let shown: Vec<_> = all[1..]
        .iter()
        .map(|entry| {
            (
                entry["id"].as_str().unwrap(),
                entry["parentId"].as_str().unwrap_or(""),
            )
        })
        .collect();
    let expected = [
        ("u2", ""),
        ("u3", "u2"),
        ("c1", "u3"),
        ("c2", "c1"),
        ("c3", "c2"),
        ("u4", "c3"),
        ("v1", "u2"),
        ("l1", "u4"),
        ("l2", "l1"),
    ];
    assert_eq!(shown[..expected.len()], expected);
    let record = &all[1 + expected.len()..];
    assert_eq!(record.len(), 1, "the leaf is not below the newest step, v1");
    assert_eq!(
        (&record[0]["parentId"], &record[0]["data"]),
        (&json!("l2"), &json!({"from": "v1", "cause": "set_leaf"}))
    );
    let boundary =
        |id: &str| all.iter().find(|entry| entry["id"] == id).unwrap()["firstKeptEntryId"].clone();
    assert_eq!(
        boundary("c1"),
        "u2",
        "the first entry behind one above the subtree"
    );
    assert_eq!(boundary("c2"), "u3", "the first entry behind a label");
    assert_eq!(boundary("c3"), "u3", "as stored");
    // The copy opens at the leaf of the source, with its labels.
    let copy = home.file("copy.jsonl", exported.as_bytes());
    let mut other = daemon(&home);
    let opened = other.open(&copy);
    assert_eq!(opened["diagnostics"], json!([]));
    let rows = other.ok("get_tree", json!({"filter": "all"}))["nodes"].clone();
    let labels: Vec<_> = rows
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|row| row["label"].as_str())
        .collect();
    assert_eq!(labels, ["top", "tip"]);
    assert_eq!(other.path_ids(None).iter().rev().nth(2).unwrap(), "u4");
}

#[test]
fn a_subtree_without_labels_opens_at_the_leaf_of_the_source() {
    let home = Home::new();
    let (mut d, _) = opened(
        &home,
        &Log::new("s1")
            .user("u1", "", "1")
            .user("u2", "u1", "2")
            .user("u3", "u1", "3")
            .record("x", "u2", "u3"),
    );
    let exported = content(
        &mut d,
        json!({"format": "jsonl", "scope": "subtree", "entryId": "u1"}),
    );
    let mut other = daemon(&home);
    other.open(&home.file("copy.jsonl", exported.as_bytes()));
    assert_eq!(other.leaf(), "u2");
}

/// A copy once ended with the labels, or with a state entry without a record. If the leaf was not below the newest
/// step, the copy then opened with a false `leafBesideNewest`.
#[test]
fn a_subtree_does_not_open_beside_its_newest_step() {
    let home = Home::new();
    let log = Log::new("s1")
        .user("u1", "", "1")
        .user("u2", "u1", "2")
        .user("u3", "u1", "3")
        .record("x", "u2", "u3");
    let state = json!({"customType": "todo.state", "data": {}});
    let labelled = log.clone().label("l1", "u2", "u2", json!("here"));
    let with_state = log.entry("custom", "s2", "u2", state);
    for (log, leaf) in [(labelled, "l1"), (with_state, "s2")] {
        let (mut d, _) = opened(&home, &log);
        let exported = content(
            &mut d,
            json!({"format": "jsonl", "scope": "subtree", "entryId": "u1"}),
        );
        let mut other = daemon(&home);
        let opened = other.open(&home.file("copy.jsonl", exported.as_bytes()));
        assert_eq!(opened["diagnostics"], json!([]), "{leaf}");
        assert_eq!(opened["session"]["leafId"], leaf);
        assert_eq!(other.path_ids(None), ["u1", "u2", leaf]);
        assert_eq!(
            lines(&exported).pop().unwrap()["data"],
            json!({"from": "u3", "cause": "set_leaf"})
        );
    }
}

/// Each compaction once searched the whole path for the first entry that it keeps.
#[test]
fn a_subtree_with_many_compactions_takes_linear_time() {
    let home = Home::new();
    let mut log = Log::new("s1")
        .user("u0", "", "x")
        .label("l", "u0", "u0", json!("x"));
    let count = 6000;
    for number in 1..count {
        let parent = if number == 1 {
            "l".to_owned()
        } else {
            format!("u{}", number - 1)
        };
        let keep = json!({"summary": "S", "firstKeptEntryId": "l", "tokensBefore": 1});
        log = log.entry("compaction", &format!("u{number}"), &parent, keep);
    }
    let (mut d, _) = opened(&home, &log);
    takes_at_most(std::time::Duration::from_secs(8), || {
        let began = std::time::Instant::now();
        let exported = content(
            &mut d,
            json!({"format": "jsonl", "scope": "subtree", "entryId": "u0"}),
        );
        assert_eq!(exported.lines().count(), 1 + count + 1);
        began.elapsed()
    });
}
