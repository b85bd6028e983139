//! Opens files without changing them: a file in `tests/data` for each kind of diagnostic and each version, and links
//! between entries that do not make a tree. session-file.md §2.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::harness::*;

const V1: &[u8] = include_bytes!("../data/v1.jsonl");
const V2: &[u8] = include_bytes!("../data/v2.jsonl");
const V3: &[u8] = include_bytes!("../data/v3.jsonl");

fn opened(bytes: &[u8]) -> (Daemon, Json, PathBuf) {
    let home = Home::new();
    let path = home.file("s.jsonl", bytes);
    let mut d = Daemon::quiet_in(&home);
    let result = d.open(&path);
    (d, result, path)
}

/// The offset and the length of a line. The first line has the number 1, as in the documents.
fn place(bytes: &[u8], line: usize) -> (usize, usize) {
    let lines: Vec<_> = bytes.split(|&b| b == b'\n').collect();
    let offset = lines[..line - 1].iter().map(|l| l.len() + 1).sum();
    (offset, lines[line - 1].len())
}

/// Opens the file, compares diagnostics and entries, and checks that opening wrote nothing and that an append keeps
/// every old byte in its place.
#[track_caller]
fn check(bytes: &[u8], expected: &[(&str, usize)], entries: &[&str]) -> Daemon {
    let (mut d, result, path) = opened(bytes);
    let diagnostics = result["diagnostics"].as_array().expect("diagnostics");
    let found: Vec<_> = diagnostics
        .iter()
        .map(|d| {
            (
                d["kind"].as_str().unwrap(),
                d["line"].as_u64().unwrap() as usize,
            )
        })
        .collect();
    assert_eq!(found, expected, "kind and line");
    for (diagnostic, &(kind, line)) in diagnostics.iter().zip(expected) {
        let (offset, length) = place(bytes, line);
        if kind == "missingTrailingNewline" {
            continue;
        }
        assert_eq!(
            (&diagnostic["offset"], &diagnostic["length"]),
            (&json!(offset), &json!(length)),
            "{diagnostic}"
        );
    }
    assert_eq!(d.ids(), entries);
    assert_eq!(result["session"]["entryCount"], entries.len());
    assert_eq!(fs::read(&path).unwrap(), bytes, "opening never writes");
    d.user("added", "appended");
    let after = fs::read(&path).unwrap();
    assert!(
        after.starts_with(bytes),
        "a bad line is never dropped from the file"
    );
    let last = after
        .strip_suffix(b"\n")
        .unwrap()
        .rsplit(|&b| b == b'\n')
        .next()
        .unwrap();
    assert_eq!(
        parse(std::str::from_utf8(last).unwrap()).unwrap()["id"],
        "added",
        "a separate line"
    );
    d
}

#[test]
fn a_sound_file_has_nothing_to_report() {
    let mut d = check(V3, &[], &["u1", "a1", "u2", "l1"]);
    assert_eq!(
        d.entry("added")["parentId"],
        "a1",
        "the leaf is that of the leaf record"
    );
    assert_eq!(
        d.ok("get_label", json!({"entryId": "u1"}))["label"],
        "start"
    );
}

#[test]
fn a_torn_tail_is_reported() {
    let mut d = check(
        include_bytes!("../data/torn-tail.jsonl"),
        &[("tornTail", 4)],
        &["u1", "a1"],
    );
    assert_eq!(d.entry("added")["parentId"], "a1");
}

#[test]
fn an_invalid_line_is_reported_and_hides_no_later_entry() {
    let mut d = check(
        include_bytes!("../data/invalid-json.jsonl"),
        &[("invalidJson", 3)],
        &["u1", "a1", "u2"],
    );
    assert_eq!(
        d.path_ids(None),
        ["u1", "a1", "u2", "added"],
        "a bad line never hides a later one"
    );
}

#[test]
fn lines_that_are_not_objects_are_reported() {
    let kind = "notAnObject";
    let bytes = include_bytes!("../data/not-an-object.jsonl");
    let mut d = check(
        bytes,
        &[(kind, 3), (kind, 5), (kind, 6), (kind, 7)],
        &["u1", "a1", "u2"],
    );
    assert_eq!(d.path_ids(None), ["u1", "a1", "u2", "added"]);
}

#[test]
fn invalid_utf8_is_reported_and_replaced() {
    let mut d = check(
        include_bytes!("../data/invalid-utf8.jsonl"),
        &[("invalidUtf8", 3)],
        &["u1", "a1", "u2"],
    );
    let text = d.entry("a1")["message"]["content"][0]["text"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        text.starts_with("caf\u{fffd}") && text.ends_with(" au lait"),
        "{text:?}"
    );
    assert_eq!(d.path_ids(None), ["u1", "a1", "u2", "added"]);
}

#[test]
fn a_line_with_nul_bytes_is_reported() {
    check(
        include_bytes!("../data/nul-bytes.jsonl"),
        &[("nulBytes", 3)],
        &["u1", "a1", "u2"],
    );
}

#[test]
fn entries_glued_on_one_line_are_both_read() {
    let mut d = check(
        include_bytes!("../data/glued-lines.jsonl"),
        &[("gluedLines", 3)],
        &["u1", "a1", "g1", "u2"],
    );
    assert_eq!(d.entry("a1")["message"]["content"][0]["text"], "two");
    assert_eq!(d.entry("g1")["message"]["content"], "glued");
    assert_eq!(
        d.path_ids(None),
        ["u1", "a1", "g1", "u2", "added"],
        "both are recovered"
    );
}

#[test]
fn the_last_entry_with_an_id_gives_the_body_and_the_first_the_place() {
    let bytes = include_bytes!("../data/duplicate-id.jsonl");
    let mut d = check(bytes, &[("duplicateId", 5)], &["u1", "a1", "u2", "u3"]);
    assert_eq!(d.entry("a1")["message"]["content"][0]["text"], "last body");
    assert_eq!(
        d.path_ids(Some("u3")),
        ["u1", "a1", "u2", "u3"],
        "the first one's place and parent"
    );
    let flags = d.ok("get_entry", json!({"entryId": "a1"}))["flags"].clone();
    assert!(flags.to_string().contains("duplicateId"), "{flags}");
}

#[test]
fn identical_duplicates_are_ignored() {
    let (mut d, _, _) = opened(include_bytes!("../data/duplicate-id-identical.jsonl"));
    assert_eq!(d.ids(), ["u1", "a1", "u2"]);
    assert_eq!(d.path_ids(None), ["u1", "a1", "u2"]);
}

#[test]
fn an_orphan_is_a_root_until_its_parent_is_appended() {
    let bytes = include_bytes!("../data/orphan-parent.jsonl");
    let mut d = check(bytes, &[("orphanParent", 3)], &["u1", "a1", "u2"]);
    assert_eq!(d.path_ids(Some("u2")), ["a1", "u2"]);
    let tree = d.ok("get_tree", json!({}));
    assert_eq!(tree["rootIds"], json!(["u1", "a1"]));
    let row = tree["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|n| n["id"] == "a1")
        .unwrap()
        .clone();
    assert_eq!(row["parentId"], Json::Null);
    assert!(row["flags"].to_string().contains("orphan"), "{row}");
    assert!(
        d.ok("get_entry", json!({"entryId": "a1"}))["flags"]
            .to_string()
            .contains("orphan")
    );
    d.ok(
        "append_message",
        json!({"message": user("the lost one"), "entryId": "vanished", "parentId": "u1"}),
    );
    assert_eq!(
        d.path_ids(Some("u2")),
        ["u1", "vanished", "a1", "u2"],
        "the parent appeared"
    );
}

#[test]
fn a_parent_later_in_the_file_is_linked() {
    let bytes = include_bytes!("../data/forward-parent.jsonl");
    let mut d = check(bytes, &[("forwardParent", 3)], &["u1", "u2", "a1"]);
    assert_eq!(d.path_ids(Some("u2")), ["u1", "a1", "u2"]);
    assert_eq!(d.ok("get_tree", json!({}))["rootIds"], json!(["u1"]));
}

#[test]
fn an_entry_that_is_its_own_parent_becomes_a_root() {
    let bytes = include_bytes!("../data/self-parent.jsonl");
    let mut d = check(bytes, &[("selfParent", 3)], &["u1", "a1", "u2"]);
    assert_eq!(d.path_ids(Some("u2")), ["a1", "u2"]);
}

#[test]
fn a_cycle_becomes_a_flagged_root() {
    let (mut d, result, path) = opened(include_bytes!("../data/cycle.jsonl"));
    let kinds: Vec<_> = result["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| d["kind"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds.iter().filter(|k| **k == "cycle").count(),
        1,
        "{kinds:?}"
    );
    assert!(
        kinds.iter().all(|k| ["cycle", "forwardParent"].contains(k)),
        "{kinds:?}"
    );
    assert_eq!(d.ids(), ["u1", "c1", "c2", "c3", "u2"]);
    let tree = d.ok("get_tree", json!({}));
    assert_eq!(
        tree["total"], 5,
        "no walk meets an entry twice, none is lost"
    );
    let roots = ids(&tree["rootIds"]);
    assert_eq!(roots.len(), 2, "{roots:?}");
    assert_eq!(roots[0], "u1");
    let row = tree["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|n| n["id"] == roots[1].as_str());
    let flags = row.unwrap()["flags"].to_string();
    assert!(flags.contains("cycle"), "{flags}");
    let path_of_u2 = d.path_ids(Some("u2"));
    assert_eq!(path_of_u2[0], roots[1]);
    assert_eq!(path_of_u2.last().unwrap(), "u2");
    d.ok("navigate_tree", json!({"targetId": "c2"}));
    assert!(d.ok("get_context", json!({}))["messages"].is_array());
    assert!(
        fs::read(&path)
            .unwrap()
            .starts_with(include_bytes!("../data/cycle.jsonl"))
    );
}

#[test]
fn a_second_header_is_reported_and_is_not_an_entry() {
    let mut d = check(
        include_bytes!("../data/second-header.jsonl"),
        &[("secondHeader", 3)],
        &["u1", "a1", "u2"],
    );
    assert_eq!(d.path_ids(None), ["u1", "a1", "u2", "added"]);
}

#[test]
fn a_last_line_without_newline_is_an_entry_and_stays_whole() {
    let bytes = include_bytes!("../data/missing-trailing-newline.jsonl");
    let mut d = check(bytes, &[("missingTrailingNewline", 4)], &["u1", "a1", "u2"]);
    assert_eq!(
        d.path_ids(None),
        ["u1", "a1", "u2", "added"],
        "the last line counts, and stays whole"
    );
}

#[test]
fn an_oversized_line_is_reported_and_hides_no_later_entry() {
    let home = Home::new();
    let path = home.files().join("s.jsonl");
    let log = Log::new("s1").user("u1", "", "one");
    let mut file = fs::File::create(&path).unwrap();
    file.write_all(log.text().as_bytes()).unwrap();
    let line = entry_line(2, "message", "big", "u1", json!({"message": user("@")}));
    let (before, after) = line.split_once('@').unwrap();
    file.write_all(before.as_bytes()).unwrap();
    let block = vec![b'x'; 1 << 20];
    for _ in 0..66 {
        file.write_all(&block).unwrap();
    }
    file.write_all(
        format!(
            "{after}\n{}\n",
            entry_line(3, "message", "u2", "u1", json!({"message": user("two")}))
        )
        .as_bytes(),
    )
    .unwrap();
    drop(file);
    let mut d = Daemon::quiet_in(&home);
    let result = d.open(&path);
    let diagnostics = result["diagnostics"].as_array().unwrap();
    assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
    assert_eq!(
        (&diagnostics[0]["kind"], &diagnostics[0]["line"]),
        (&json!("oversizedLine"), &json!(3))
    );
    assert_eq!(diagnostics[0]["offset"], log.text().len());
    assert_eq!(
        d.path_ids(Some("u2")),
        ["u1", "u2"],
        "never hides a later one"
    );
}

#[test]
fn several_kinds_of_damage_in_one_file_are_all_reported() {
    let bytes = [
        V3.split_inclusive(|&b| b == b'\n')
            .take(3)
            .collect::<Vec<_>>()
            .concat(),
        b"garbage\n17\n".to_vec(),
        V3.split_inclusive(|&b| b == b'\n')
            .skip(3)
            .collect::<Vec<_>>()
            .concat(),
        b"{\"type\":\"mess".to_vec(),
    ]
    .concat();
    let (mut d, result, _) = opened(&bytes);
    let found: Vec<_> = result["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| {
            (
                d["kind"].as_str().unwrap().to_owned(),
                d["line"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("invalidJson".to_owned(), 4),
            ("notAnObject".to_owned(), 5),
            ("tornTail".to_owned(), 9)
        ]
    );
    assert_eq!(d.leaf(), "a1");
}

// --- opening never writes ---

/// The bytes and modification times of all files in the folder.
fn state(folder: &Path) -> Vec<(PathBuf, Vec<u8>, std::time::SystemTime)> {
    let mut found: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|item| item.unwrap().path())
        .map(|path| {
            (
                path.clone(),
                fs::read(&path).unwrap(),
                fs::metadata(&path).unwrap().modified().unwrap(),
            )
        })
        .collect();
    found.sort();
    found
}

#[test]
fn opening_reading_and_closing_write_nothing() {
    for bytes in [
        V1,
        V2,
        V3,
        include_bytes!("../data/torn-tail.jsonl"),
        include_bytes!("../data/glued-lines.jsonl"),
    ] {
        let home = Home::new();
        let path = home.file("s.jsonl", bytes);
        let before = state(&home.files());
        for mode in ["read", "write"] {
            let mut d = Daemon::quiet_in(&home);
            d.ok("open_session", json!({"path": path, "mode": mode}));
            d.ids();
            d.ok("get_tree", json!({}));
            d.ok("get_context", json!({}));
            d.ok("close_session", json!({}));
            d.stop();
            assert_eq!(
                state(&home.files()),
                before,
                "bytes, times and neighbours in mode {mode}"
            );
        }
    }
}

// --- versions ---

/// Calls every method that walks the tree.
#[track_caller]
fn walk(d: &mut Daemon) {
    for id in d.ids() {
        d.path_ids(Some(&id));
    }
    for params in [
        json!({"filter": "all"}),
        json!({"format": "nested"}),
        json!({"render": "unicode", "order": "active-first"}),
    ] {
        d.ok("get_tree", params);
    }
    for method in [
        "get_context",
        "list_branches",
        "get_stats",
        "get_fork_messages",
        "get_navigation_log",
    ] {
        d.ok(method, json!({}));
    }
}

/// With a cycle of parents, or an id that occurs twice, walks of the tree once never ended, or visited exponentially
/// many entries.
#[test]
fn every_walk_ends_on_cycles_and_duplicate_ids() {
    let (mut d, _) = Daemon::opened(include_bytes!("../data/cycle.jsonl"));
    walk(&mut d);
    let (mut d, _) = Daemon::opened(include_bytes!("../data/duplicate-id.jsonl"));
    walk(&mut d);
    // There are twenty layers. Each has two entries with the same id, below both entries of the layer above. A walk
    // that takes both for nodes makes 2^20 visits.
    let mut log = Log::new("s1").user("n0", "", "x");
    for n in 1..=20 {
        for copy in 0..2 {
            log = log.user(
                &format!("n{n}"),
                &format!("n{}", n - 1),
                &format!("copy {copy}"),
            );
        }
    }
    let (mut d, _) = Daemon::opened(log.text().as_bytes());
    assert_eq!(d.ids().len(), 21);
    assert_eq!(d.ok("get_tree", json!({}))["total"], 21);
    walk(&mut d);
}

/// A line with only a number was once taken for an entry and became the leaf.
#[test]
fn a_scalar_line_is_not_an_entry_and_not_the_leaf() {
    let text = format!(
        "{}42\n",
        Log::new("s1")
            .user("u1", "", "x")
            .assistant("a1", "u1", "y")
            .text()
    );
    let (mut d, _) = Daemon::opened(text.as_bytes());
    assert_eq!(d.leaf(), "a1");
    d.user("u2", "on");
    assert_eq!(d.entry("u2")["parentId"], "a1");
}

/// Reading once stopped at the first bad line, and every later entry was missing without a diagnostic.
#[test]
fn entries_after_a_torn_line_are_read_and_the_line_is_reported() {
    let log = Log::new("s1")
        .user("u1", "", "x")
        .raw(r#"{"type":"message","id":"torn","par"#)
        .assistant("a1", "u1", "y");
    let home = Home::new();
    let path = log.save(&home);
    let mut d = Daemon::quiet_in(&home);
    let found = d.open(&path)["diagnostics"].clone();
    assert_eq!(
        found.as_array().unwrap().len(),
        1,
        "one diagnostic: {found}"
    );
    assert_eq!(d.ids(), ["u1", "a1"]);
}

#[test]
fn uuid_and_parent_uuid_link_no_entries() {
    let mut d = Daemon::quiet();
    let lines = "{\"uuid\":\"a\",\"parentUuid\":null,\"type\":\"user\"}\n";
    let path = d.home.file("other.jsonl", lines.as_bytes());
    d.err_kind("open_session", json!({"path": path}), "headerMissing");
    let with_header = Log::new("s").user("a", "", "one").entry(
        "message",
        "b",
        "",
        json!({"message": user("two"), "uuid": "x", "parentUuid": "a"}),
    );
    let path = with_header.save(&d.home);
    d.open(&path);
    assert_eq!(d.path_ids(Some("b")), ["b"], "it links nothing");
}
