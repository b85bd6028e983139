//! Archived branches in the cold file (protocol.md §3.24, session-file.md §4.10). Without it, archived branches would cost
//! as much as living ones at each opening.

use super::*;
use std::fs;
use std::path::{Path, PathBuf};

/// A session with the archived branch u2, and the bytes of its file.
fn archived() -> (Daemon, PathBuf, Vec<u8>) {
    let home = Home::new();
    let path = two_branches().store(&home, "x_s1.jsonl");
    let mut d = begun(&home, &path);
    d.ok("archive_branch", json!({"entryId": "a2"}));
    let bytes = fs::read(&path).unwrap();
    (d, path, bytes)
}

fn begun(home: &std::sync::Arc<Home>, path: &Path) -> Daemon {
    let mut d = Daemon::quiet_in(home);
    let opened = d.open(path);
    assert_eq!(opened["diagnostics"], json!([]));
    ignore(&mut d);
    d
}

fn ignore(d: &mut Daemon) {
    for name in [
        "branches_changed",
        "session_tree",
        "session_reordered",
        "entries_appended",
    ] {
        d.ignore(name);
    }
}

fn cold(path: &Path) -> PathBuf {
    path.with_file_name(format!(
        "{}.cold",
        path.file_name().unwrap().to_str().unwrap()
    ))
}

fn heads(rows: &Json) -> Vec<&str> {
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| row["entryId"].as_str().unwrap()).collect()
}

fn shed_ids(d: &mut Daemon) -> Vec<String> {
    let listed = d.ok("list_branches", json!({"archived": true}));
    let Some(rows) = listed.get("shed") else {
        return Vec::new();
    };
    heads(rows).into_iter().map(str::to_owned).collect()
}

#[test]
fn a_shed_branch_is_gone_and_comes_back_byte_for_byte() {
    let (mut d, path, before) = archived();
    let shed = d.ok("shed_branches", json!({}));
    assert_eq!(shed["staying"], json!([]));
    let row = &shed["shed"][0];
    assert_eq!(
        (
            &row["entryId"],
            &row["forkId"],
            &row["entries"],
            &row["firstPrompt"]
        ),
        (&json!("u2"), &json!("a1"), &json!(2), &json!("go left"))
    );
    let inverse = json!({"method": "unshed_branches", "params": {"entryIds": ["u2"]}});
    assert_eq!(shed["inverse"], inverse);
    let text = fs::read_to_string(&path).unwrap();
    assert!(
        !text.contains("go left") || text.matches("go left").count() == 1,
        "{text}"
    );
    assert!(!text.contains("left it is"), "{text}");
    let kept = fs::read_to_string(cold(&path)).unwrap();
    assert!(kept.contains("left it is"), "{kept}");
    let record = file_lines(&path).pop().unwrap();
    assert_eq!(
        (&record["customType"], &record["parentId"]),
        (&json!("treelined.shed"), &json!("a3"))
    );
    for round in 0..2 {
        assert_eq!(d.leaf(), "a3", "round {round}");
        assert_eq!(d.ids(), ["u1", "a1", "u3", "c3", "t3", "a3"]);
        let listed = d.ok("list_branches", json!({"archived": true}));
        assert_eq!(listed["branches"].as_array().unwrap().len(), 1, "{listed}");
        assert_eq!(listed["shedBranches"], 1);
        assert_eq!(listed["shed"], shed["shed"]);
        let tree = d.ok("get_tree", json!({"archived": true}));
        assert_eq!(
            (&tree["total"], &tree["shedBranches"]),
            (&json!(5), &json!(1))
        );
        for method in ["get_entry", "set_leaf"] {
            let id = if method == "set_leaf" {
                "leafId"
            } else {
                "entryId"
            };
            let error = d.err_kind(method, json!({id: "a2"}), "entryNotFound");
            assert_eq!(error.details("shedBranchId"), "u2");
        }
        let home = d.stop();
        d = begun(&home, &path);
    }
    let back = d.ok("unshed_branches", json!({}));
    assert_eq!(back["entryIds"], json!(["u2"]));
    assert_eq!(fs::read(&path).unwrap(), before);
    assert!(!cold(&path).exists());
    assert_eq!(d.entry("a2")["parentId"], "u2");
    assert_eq!(
        d.ok("get_tree", json!({}))["archivedBranches"],
        1,
        "as before"
    );
    let nothing = d.ok("unshed_branches", json!({}));
    assert_eq!(
        (&nothing["entryIds"], &nothing["durability"]),
        (&json!([]), &json!("none"))
    );
}

/// Such an append was refused, so a client had to know of shed branches to go on below an entry that it knew.
#[test]
fn an_append_below_a_shed_entry_brings_its_branch_back() {
    let home = Home::new();
    let log = two_branches().user("u4", "a1", "a third way");
    let path = log.record("r1", "a3", "u4").store(&home, "x_s1.jsonl");
    for keeps_leaf in [false, true] {
        let mut d = begun(&home, &path);
        d.ok("archive_branch", json!({"entryId": "a2"}));
        d.ok("archive_branch", json!({"entryId": "u4"}));
        assert_eq!(
            heads(&d.ok("shed_branches", json!({}))["shed"]),
            ["u2", "u4"]
        );
        let leaf = d.leaf();
        let mut below = json!({"message": user("on"), "parentId": "a2"});
        if keeps_leaf {
            below["keepLeaf"] = json!(true);
        }
        if !keeps_leaf {
            let mut moved = below.clone();
            moved["expectedLeafId"] = json!("u1");
            d.err_kind("append_message", moved, "leafMoved");
        }
        let held = fs::File::open(&path).unwrap();
        let error = d.err_kind("append_message", below.clone(), "sessionLocked");
        assert_eq!(error.details("shedBranchId"), "u2");
        drop(held);
        assert_eq!(
            shed_ids(&mut d),
            ["u2", "u4"],
            "nothing was moved for a refused append"
        );
        let appended = d.ok("append_message", below)["entryId"].clone();
        assert_eq!(shed_ids(&mut d), ["u4"], "only this branch");
        assert_eq!(d.entry(appended.as_str().unwrap())["parentId"], "a2");
        assert_eq!(d.leaf() == leaf, keeps_leaf);
        let tree = d.ok("get_tree", json!({}));
        assert_eq!(
            tree.get("archivedBranches"),
            None,
            "it has grown, so it is archived no more"
        );
        if !keeps_leaf {
            d.set_leaf(leaf.as_str());
        }
        d.ok("unshed_branches", json!({}));
        d.ok("unarchive_branch", json!({"entryId": "u4"}));
        d.stop();
    }
}

/// Once, the branch was moved back before the append was checked, so an append in the background with a wrong
/// `expectedLeafId`, or with an id that is taken, failed and left the branch in the session file.
#[test]
fn a_refused_append_below_a_shed_entry_changes_nothing() {
    let home = Home::new();
    let log = two_branches().user("u4", "a1", "a third way");
    let path = log.record("r1", "a3", "u4").store(&home, "x_s1.jsonl");
    let mut d = begun(&home, &path);
    d.ok("archive_branch", json!({"entryId": "a2"}));
    d.ok("archive_branch", json!({"entryId": "u4"}));
    d.ok("shed_branches", json!({}));
    let files = || [fs::read(&path).unwrap(), fs::read(cold(&path)).unwrap()];
    let before = files();
    let message = |members: Json| {
        let mut message = json!({"message": user("on"), "parentId": "a2"});
        let members = members.as_object().unwrap().clone();
        message.as_object_mut().unwrap().extend(members);
        message
    };
    let wrong = json!({"keepLeaf": true, "expectedLeafId": "u1"});
    let error = d.err_kind("append_message", message(wrong), "leafMoved");
    assert_eq!(error.details("leafId"), "a2");
    let above = json!({"keepLeaf": true, "expectedLeafId": "u2", "parentId": "u2"});
    d.err_kind("append_message", message(above), "leafMoved");
    let taken = json!({"entryId": "u1"});
    d.err_kind("append_message", message(taken), "duplicateEntryId");
    let shed = json!({"entryId": "u2"});
    d.err_kind("append_message", message(shed), "duplicateEntryId");
    let entries = |second: &str| {
        json!({"entries": [
            {"type": "custom", "customType": "x", "parentId": "a2"},
            {"type": "custom", "customType": "x", "parentId": second},
        ]})
    };
    let error = d.err_kind("append_entries", entries("none"), "entryNotFound");
    assert_eq!(error.details("entryId"), "none");
    assert!(files() == before, "a refused append changes nothing");
    assert_eq!(shed_ids(&mut d), ["u2", "u4"]);
    let names: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
    let names = names.into_iter().map(|entry| entry.unwrap().file_name());
    let left = names.filter(|name| name.to_string_lossy().ends_with(".treelined.tmp"));
    assert_eq!(left.count(), 0);
    d.ok("append_entries", entries("u4"));
    assert!(shed_ids(&mut d).is_empty(), "it needs both branches");
    let right = json!({"keepLeaf": true, "expectedLeafId": "a2"});
    d.ok("append_message", message(right));
}

/// A search that found nothing, and sums that were smaller than before, once did not say that branches were shed.
#[test]
fn searches_and_sums_say_what_they_leave_out() {
    let (mut d, path, _) = archived();
    let without = d.ok("get_stats", json!({}));
    assert_eq!(without.get("shedBranches"), None);
    let search = |d: &mut Daemon, members: Json| {
        let mut params = json!({"query": "left it is", "archived": true});
        let members = members.as_object().unwrap().clone();
        params.as_object_mut().unwrap().extend(members);
        d.ok("search", params)["totals"].clone()
    };
    let found = search(&mut d, json!({}));
    assert_eq!(
        (&found["entries"], found.get("shedSessions")),
        (&json!(1), None)
    );
    d.ok("shed_branches", json!({}));
    let stats = d.ok("get_stats", json!({}));
    assert_eq!(stats["shedBranches"], 1);
    assert!(stats["messages"]["user"].as_u64() < without["messages"]["user"].as_u64());
    let path_alone = d.ok("get_stats", json!({"leafId": "a3"}));
    assert_eq!(path_alone.get("shedBranches"), None);
    for (members, shed) in [
        (json!({}), Some(1)),
        (json!({"sessionId": "s1"}), Some(1)),
        (json!({"mode": "ask"}), Some(1)),
        (json!({"cwd": "/elsewhere"}), None),
    ] {
        let totals = search(&mut d, members.clone());
        let expected = shed.map(|shed: u64| json!(shed));
        assert_eq!(totals.get("shedSessions").cloned(), expected, "{members}");
    }
    let home = d.stop();
    for (command, line) in [
        (
            ["search", "left it is"],
            "not searched: the shed branches of 1 session; treelined unshed brings them back",
        ),
        (
            ["stats", "s1"],
            "1 shed branch, treelined unshed brings it back",
        ),
    ] {
        let said = home.run(&command, &[], "").text();
        assert!(said.contains(line), "{said}");
    }
    assert!(cold(&path).exists());
}

/// The appends of one write keep their order around the move.
#[test]
fn appends_around_one_below_a_shed_entry_keep_their_order() {
    let (mut d, path, _) = archived();
    d.ok("shed_branches", json!({}));
    let texts = ["before", "below", "after"];
    let requests = texts.map(|text| match text {
        "below" => json!({"message": user(text), "parentId": "a2"}),
        _ => json!({"message": user(text)}),
    });
    let ids = requests.map(|params| d.send("append_message", params));
    let entries = ids.map(|id| d.response(&id).unwrap()["entryId"].clone());
    let parents = entries
        .each_ref()
        .map(|id| d.entry(id.as_str().unwrap())["parentId"].clone());
    assert_eq!(parents, [json!("a3"), json!("a2"), entries[1].clone()]);
    assert!(!cold(&path).exists());
}

#[test]
fn later_appends_follow_the_old_bytes() {
    let (mut d, path, mut expected) = archived();
    d.ok("shed_branches", json!({}));
    let shed = fs::read(&path).unwrap().len();
    d.user("u9", "on");
    d.assistant("a9", "and on");
    let label = d.ok("append_label", json!({"targetId": "u9", "label": "here"}));
    // An id of 8 digits could be one in the cold file.
    assert_eq!(label["entryId"].as_str().unwrap().len(), 16);
    expected.extend_from_slice(&fs::read(&path).unwrap()[shed..]);
    d.ok("unshed_branches", json!({}));
    assert_eq!(fs::read(&path).unwrap(), expected);
}

/// pi takes the last line for the leaf, also the record of a shed branch. What it had written below the record lost its parent
/// when the branch came back, so the conversation began with it.
#[test]
fn a_branch_comes_back_in_front_of_lines_below_its_record() {
    let home = Home::new();
    let log = two_branches().user("u4", "a1", "a third way");
    let path = log.record("r1", "a3", "u4").store(&home, "x_s1.jsonl");
    let mut d = begun(&home, &path);
    d.ok("archive_branch", json!({"entryId": "a2"}));
    let mut expected = fs::read_to_string(&path).unwrap();
    for (branch, below) in [("u2", "p1"), ("u4", "p2")] {
        if branch == "u4" {
            let before = fs::read_to_string(&path).unwrap();
            d.ok("archive_branch", json!({"entryId": branch}));
            expected += fs::read_to_string(&path)
                .unwrap()
                .strip_prefix(&before)
                .unwrap();
        }
        d.ok("shed_branches", json!({"entryIds": [branch]}));
        let record = file_lines(&path).pop().unwrap();
        assert_eq!(record["customType"], "treelined.shed");
        let at = &record["parentId"];
        let left = format!(
            r#"{{"type":"custom","customType":"treelined.leaf","id":{},"parentId":{at},"timestamp":{},"data":{{"from":{at},"cause":"keep"}}}}"#,
            record["id"], record["timestamp"]
        );
        let line = json!({
            "type": "message", "id": below, "parentId": record["id"],
            "timestamp": "2026-03-01T09:30:00.000Z", "message": user("on"),
        });
        let mut file = fs::File::options().append(true).open(&path).unwrap();
        std::io::Write::write_all(&mut file, format!("{line}\n").as_bytes()).unwrap();
        expected += &format!("{left}\n{line}\n");
    }
    d.ok("get_leaf", json!({}));
    let exported = home.files().join("whole.jsonl");
    d.ok(
        "export_session",
        json!({"format": "jsonl", "path": exported}),
    );
    for branch in ["u2", "u4"] {
        d.ok("unshed_branches", json!({"entryIds": [branch]}));
        let home = d.stop();
        d = begun(&home, &path);
        assert_eq!(d.entry("p1")["parentId"], "a3");
        assert_eq!(d.entry("p2")["parentId"], "p1");
        assert_eq!(d.leaf(), "p2");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    let lines = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    let exported = fs::read_to_string(exported).unwrap();
    assert_eq!(lines(&exported), lines(&expected), "the export is whole");
}

/// Each branch comes back on its own, in any order, and the last one gives the old bytes.
#[test]
fn branches_that_were_shed_one_after_the_other_come_back_in_any_order() {
    for order in [["u2", "u4", "u5"], ["u5", "u2", "u4"], ["u4", "u5", "u2"]] {
        let home = Home::new();
        let log = two_branches()
            .user("u4", "a1", "a third way")
            .user("u5", "", "another beginning")
            .assistant("a4", "u4", "the third")
            .assistant("a5", "u5", "begun")
            .record("r1", "a3", "a5");
        let path = log.store(&home, "x_s1.jsonl");
        let mut d = begun(&home, &path);
        let mut expected = Vec::new();
        for (number, branch) in ["u2", "u4", "u5"].iter().enumerate() {
            d.ok("archive_branch", json!({"entryId": branch}));
            let before = fs::read(&path).unwrap();
            if number == 0 {
                expected.clone_from(&before);
            }
            let shed = d.ok("shed_branches", json!({"entryIds": [branch]}));
            assert_eq!(heads(&shed["shed"]), [*branch]);
            // The record of the next archive is written after the record of this move.
            let after = fs::read(&path).unwrap();
            if let Some(next) = ["u4", "u5"].get(number) {
                d.ok("archive_branch", json!({"entryId": next}));
                let grown = fs::read(&path).unwrap();
                expected.extend_from_slice(&grown[after.len()..]);
            }
        }
        assert_eq!(shed_ids(&mut d), ["u2", "u4", "u5"]);
        for (number, branch) in order.iter().enumerate() {
            let entry = format!("a{}", &branch[1..]);
            let back = d.ok("unshed_branches", json!({"entryIds": [entry]}));
            assert_eq!(back["entryIds"], json!([branch]));
            assert_eq!(shed_ids(&mut d).len(), 2 - number);
            assert_eq!(d.entry(&entry)["parentId"], *branch);
        }
        assert_eq!(fs::read(&path).unwrap(), expected, "{order:?}");
        assert!(!cold(&path).exists());
    }
}

#[test]
fn what_others_name_stays() {
    let home = Home::new();
    let log = two_branches()
        .user("u4", "a1", "named by a label")
        .user("u5", "a1", "has a label")
        .label("l5", "u5", "u1", json!("start"))
        .user("u6", "a1", "named by a branch that stays")
        .entry(
            "context_edit",
            "e5",
            "l5",
            json!({"targetId": "u6", "replacement": null}),
        )
        .user("u7", "a1", "merged")
        .label("l4", "a3", "u4", json!("fourth"))
        .entry(
            "branch_summary",
            "m7",
            "l4",
            json!({"fromId": "u7", "summary": "merged", "merge": true}),
        );
    let path = log.store(&home, "x_s1.jsonl");
    let mut d = begun(&home, &path);
    for branch in ["u2", "u4", "u5", "u6", "u7"] {
        d.ok("archive_branch", json!({"entryId": branch}));
    }
    let shed = d.ok("shed_branches", json!({}));
    assert_eq!(heads(&shed["shed"]), ["u2"]);
    let staying = shed["staying"].as_array().unwrap().iter();
    let staying: Vec<[&Json; 3]> = staying
        .map(|row| [&row["entryId"], &row["reason"], &row["by"]])
        .collect();
    assert_eq!(
        json!(staying),
        json!([
            ["u4", "named", "l4"],
            ["u5", "names", "l5"],
            ["u6", "named", "e5"],
            ["u7", "named", "m7"]
        ])
    );
    assert_eq!(d.ok("get_tree", json!({}))["archivedBranches"], 4);
    let error = d.err_kind(
        "shed_branches",
        json!({"entryIds": ["u1"]}),
        "invalidParams",
    );
    assert_eq!(error.details("field"), "entryIds");
}

/// The records of moves into a branch stay, so undo passes over the branch to the position before.
#[test]
fn undo_passes_over_a_shed_position() {
    let home = Home::new();
    let path = two_branches().store(&home, "x_s1.jsonl");
    let mut d = begun(&home, &path);
    d.set_leaf(Some("u1"));
    d.set_leaf(Some("a2"));
    d.set_leaf(Some("a3"));
    d.ok("archive_branch", json!({"entryId": "a2"}));
    let before = fs::read(&path).unwrap();
    d.ok("shed_branches", json!({}));
    let home = d.stop();
    let mut d = begun(&home, &path);
    assert_eq!(d.ok("undo_navigation", json!({}))["newLeafId"], "u1");
    d.ok("unshed_branches", json!({}));
    assert!(fs::read(&path).unwrap().starts_with(&before));
}

#[test]
fn what_cannot_be_moved_is_refused_with_the_reason() {
    let (mut d, path, before) = archived();
    d.ok("begin_turn", json!({}));
    for method in ["shed_branches", "unshed_branches"] {
        d.err_kind(method, json!({}), "sessionBusy");
    }
    d.ok("end_turn", json!({}));
    let turn = d.ok("begin_turn", json!({"entryId": "a3"}));
    d.err_kind("shed_branches", json!({}), "sessionBusy");
    d.ok("end_turn", json!({"turnId": turn["turnId"]}));
    let held = fs::File::open(&path).unwrap();
    let error = d.err_kind("shed_branches", json!({}), "sessionLocked");
    assert!(error.message.contains("process"), "{error:?}");
    drop(held);
    fs::write(path.with_file_name("x_s1.jsonl.replica"), "").unwrap();
    let error = d.err_kind("shed_branches", json!({}), "invalidParams");
    assert!(error.message.contains("team"), "{error:?}");
    fs::remove_file(path.with_file_name("x_s1.jsonl.replica")).unwrap();
    d.ok("close_session", json!({}));
    d.ok("open_session", json!({"path": path, "mode": "read"}));
    d.err_kind("shed_branches", json!({}), "readOnly");
    d.ok("close_session", json!({}));
    let memory = d.ok("create_session", json!({"ephemeral": true}));
    let of = json!({"sessionId": memory["session"]["sessionId"]});
    d.err_kind("shed_branches", of, "invalidParams");
    assert_eq!(fs::read(&path).unwrap(), before);
    assert!(!cold(&path).exists());
}

/// A damaged cold file costs nothing in the session file, and nothing is restored by halves.
#[test]
fn a_damaged_cold_file_is_named() {
    let (mut d, path, _) = archived();
    d.ok("shed_branches", json!({}));
    let (whole, shed) = (fs::read(cold(&path)).unwrap(), fs::read(&path).unwrap());
    let second = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for damaged in [&whole[..second], &whole[..whole.len() - 3], b""] {
        fs::write(cold(&path), damaged).unwrap();
        let error = d.err_kind("unshed_branches", json!({}), "storageIo");
        assert!(error.message.contains(".cold"), "{error:?}");
        assert_eq!(fs::read(&path).unwrap(), shed);
    }
    fs::write(cold(&path), &whole).unwrap();
    d.ok("unshed_branches", json!({}));
}

#[test]
fn the_cold_file_goes_with_the_session() {
    let (mut d, path, before) = archived();
    let whole = exported(&mut d);
    d.ok("shed_branches", json!({}));
    assert_eq!(exported(&mut d), whole, "an export is whole");
    for name in ["session_before_fork", "session_fork"] {
        d.ignore(name);
    }
    let fork = d.ok("fork_session", json!({"scope": "tree"}))["session"].clone();
    let copy = PathBuf::from(fork["path"].as_str().unwrap());
    assert_eq!(
        fs::read(cold(&copy)).unwrap(),
        fs::read(cold(&path)).unwrap()
    );
    let back = d.ok("unshed_branches", json!({"sessionId": fork["sessionId"]}));
    assert_eq!(back["entryIds"], json!(["u2"]));
    let lines = |bytes: &[u8]| {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        text.split_once('\n').unwrap().1.to_owned()
    };
    assert_eq!(lines(&fs::read(&copy).unwrap()), lines(&before));
    d.ok("close_session", json!({"sessionId": fork["sessionId"]}));

    let deleted = d.ok("delete_session", json!({"sessionId": "s1"}));
    let trashed = PathBuf::from(deleted["trashedPath"].as_str().unwrap());
    assert!(cold(&trashed).exists() && !cold(&path).exists());
    let restored = d.ok("restore_session", json!({"sessionId": "s1"}));
    let path = PathBuf::from(restored["path"].as_str().unwrap());
    assert!(cold(&path).exists() && !cold(&trashed).exists());
    d.open(&path);
    d.ok("unshed_branches", json!({"sessionId": "s1"}));
    assert_eq!(fs::read(&path).unwrap(), before);
}

fn exported(d: &mut Daemon) -> Vec<u8> {
    let to = d.home.files().join("exported.jsonl");
    d.ok(
        "export_session",
        json!({"format": "jsonl", "path": to, "overwrite": true}),
    );
    fs::read(to).unwrap()
}

#[test]
fn the_shell_sheds_and_brings_back() {
    let (d, path, before) = archived();
    let home = d.stop();
    let run = |args: &[&str]| home.run(args, &[], "").clean().text();
    let said = run(&["shed", "s1"]);
    assert!(said.starts_with("shed u2  2 entries, "), "{said}");
    assert!(said.trim_end().ends_with("go left"), "{said}");
    let said = run(&["du"]);
    assert!(said.contains("beside"), "{said}");
    let listed = run(&["branches", "s1", "--archived"]);
    for shown in [
        ", 1 shed\n",
        "\nshed ",
        "\ntreelined unshed s1 --branch ID brings one back\n",
    ] {
        assert!(listed.contains(shown), "{shown}: {listed}");
    }
    let drawn = run(&["tree", "s1"]);
    let note = "1 shed branch; treelined branches --archived lists them\n";
    assert!(drawn.contains(note), "{drawn}");
    assert_eq!(run(&["shed", "s1"]), "no archived branch\n");
    assert_eq!(
        run(&["unshed", "s1", "--branch", "a2"]),
        "brought back u2\n"
    );
    assert_eq!(run(&["unshed", "s1"]), "no shed branch\n");
    assert_eq!(fs::read(&path).unwrap(), before);
}
