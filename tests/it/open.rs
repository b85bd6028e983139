//! Opening files as they are found: a golden file in `tests/data` per diagnostic kind and per version,
//! links between entries that make no tree, migration in memory and at the first write, and that
//! opening itself never writes. storage.md §2.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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

/// Offset and length of a line; the first is line 1, as everywhere in the documents.
fn place(bytes: &[u8], line: usize) -> (usize, usize) {
    let lines: Vec<_> = bytes.split(|&b| b == b'\n').collect();
    let offset = lines[..line - 1].iter().map(|l| l.len() + 1).sum();
    (offset, lines[line - 1].len())
}

/// Opens the file, expects exactly these diagnostics and entries, then shows that nothing was written
/// and that the session can be appended to, which leaves every old byte in place.
#[track_caller]
fn check(bytes: &[u8], expected: &[(&str, usize)], entries: &[&str]) -> Daemon {
    let (mut d, result, path) = opened(bytes);
    let diagnostics = result["diagnostics"].as_array().expect("diagnostics");
    let told: Vec<_> = diagnostics
        .iter()
        .map(|d| {
            (
                d["kind"].as_str().unwrap(),
                d["line"].as_u64().unwrap() as usize,
            )
        })
        .collect();
    assert_eq!(told, expected, "kind and line");
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
        "a line of its own"
    );
    d
}

#[test]
fn a_sound_file_has_nothing_to_report() {
    let mut d = check(V3, &[], &["u1", "a1", "u2", "l1"]);
    assert_eq!(
        d.entry("added")["parentId"],
        "a1",
        "it stood where the leaf record said"
    );
    assert_eq!(
        d.ok("get_label", json!({"entryId": "u1"}))["label"],
        "start"
    );
}

#[test]
fn torn_tail() {
    let mut d = check(
        include_bytes!("../data/torn-tail.jsonl"),
        &[("tornTail", 4)],
        &["u1", "a1"],
    );
    assert_eq!(d.entry("added")["parentId"], "a1");
}

#[test]
fn invalid_json() {
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
fn not_an_object() {
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
fn invalid_utf8() {
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
fn nul_bytes() {
    check(
        include_bytes!("../data/nul-bytes.jsonl"),
        &[("nulBytes", 3)],
        &["u1", "a1", "u2"],
    );
}

#[test]
fn glued_lines() {
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
fn duplicate_ids() {
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
fn orphans_are_roots_until_their_parent_turns_up() {
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
        "it turned up"
    );
}

#[test]
fn forward_parents_are_linked() {
    let bytes = include_bytes!("../data/forward-parent.jsonl");
    let mut d = check(bytes, &[("forwardParent", 3)], &["u1", "u2", "a1"]);
    assert_eq!(d.path_ids(Some("u2")), ["u1", "a1", "u2"]);
    assert_eq!(d.ok("get_tree", json!({}))["rootIds"], json!(["u1"]));
}

#[test]
fn self_parents_are_roots() {
    let bytes = include_bytes!("../data/self-parent.jsonl");
    let mut d = check(bytes, &[("selfParent", 3)], &["u1", "a1", "u2"]);
    assert_eq!(d.path_ids(Some("u2")), ["a1", "u2"]);
}

#[test]
fn cycles_are_cut_at_one_place() {
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
fn second_headers() {
    let mut d = check(
        include_bytes!("../data/second-header.jsonl"),
        &[("secondHeader", 3)],
        &["u1", "a1", "u2"],
    );
    assert_eq!(d.path_ids(None), ["u1", "a1", "u2", "added"]);
}

#[test]
fn missing_trailing_newline() {
    let bytes = include_bytes!("../data/missing-trailing-newline.jsonl");
    let mut d = check(bytes, &[("missingTrailingNewline", 4)], &["u1", "a1", "u2"]);
    assert_eq!(
        d.path_ids(None),
        ["u1", "a1", "u2", "added"],
        "the last line counts, and stays whole"
    );
}

#[test]
fn oversized_lines() {
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
fn several_kinds_in_one_file_are_all_told() {
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
    let told: Vec<_> = result["diagnostics"]
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
        told,
        [
            ("invalidJson".to_owned(), 4),
            ("notAnObject".to_owned(), 5),
            ("tornTail".to_owned(), 9)
        ]
    );
    assert_eq!(d.leaf(), "a1");
}

// --- opening never writes ---

/// Bytes and modification time of everything in the folder.
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
fn opening_reading_and_closing_leave_no_trace() {
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

#[test]
fn version_1_gets_ids_a_chain_and_a_kept_id() {
    let (mut d, result, path) = opened(V1);
    assert_eq!(result["diagnostics"], json!([]));
    assert_eq!(result["session"]["entryCount"], 10);
    assert_eq!(result["session"]["sessionId"], "v1");
    let entries = d.ok("get_entries", json!({}))["entries"]
        .as_array()
        .unwrap()
        .clone();
    let mut parent = Json::Null;
    for entry in &entries {
        assert_eq!(entry["parentId"], parent, "a chain");
        parent = entry["id"].clone();
    }
    let mut distinct = ids(&json!(entries));
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 10, "equal lines have different ids");
    let compaction = &entries[7];
    assert_eq!(compaction["type"], "compaction");
    assert_eq!(
        compaction["firstKeptEntryId"], entries[2]["id"],
        "index 3 of the parsed lines, the header counted"
    );
    assert!(
        compaction.get("firstKeptEntryIndex").is_none(),
        "{compaction}"
    );
    assert_eq!(entries[8]["message"]["role"], "custom");
    assert_eq!(entries[8]["message"]["customType"], "note");
    assert_eq!(entries[8]["message"]["content"], "from a hook");
    let roles: Vec<_> = d.ok("get_context", json!({}))["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["role"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        roles,
        [
            "compactionSummary",
            "user",
            "assistant",
            "user",
            "user",
            "user",
            "custom",
            "user"
        ]
    );
    assert_eq!(fs::read(&path).unwrap(), V1, "in memory only");
}

#[test]
fn version_2_renames_a_role() {
    let (mut d, result, path) = opened(V2);
    assert_eq!(result["session"]["readOnly"], false);
    assert_eq!(d.ids(), ["u1", "a1", "h1", "u2"]);
    let id = d.send("get_entry", json!({"entryId": "h1"}));
    let text = d.response_text(&id);
    assert!(text.contains(r#"{"role":"custom","customType":"note","content":"from a hook","display":true,"details":{"n":1.0}"#), "{text}");
    assert_eq!(fs::read(&path).unwrap(), V2, "in memory only");
}

#[test]
fn two_openings_give_version_1_the_same_ids() {
    let (mut d, _, path) = opened(V1);
    let first = d.ids();
    let home: Arc<Home> = d.stop();
    let mut d = Daemon::quiet_in(&home);
    d.open(&path);
    assert_eq!(d.ids(), first);
    let (mut d, _, _) = opened(V1);
    assert_eq!(d.ids(), first, "wherever the file lies");
}

/// Other programs derive the same ids from what session-file.md §2.5 says. The ids here come from such a
/// program.
#[test]
fn derived_ids_are_those_that_other_programs_derive() {
    let header = r#"{"type":"session","id":"s1","cwd":"/p"}"#;
    let entry = r#"{"type":"message","timestamp":"2025-01-01T00:00:00.000Z","message":{"role":"user","content":"hi"}}"#;
    let file = format!("{header}\n  {entry} \n{entry}{entry}\n");
    let (mut d, _, _) = opened(file.as_bytes());
    assert_eq!(d.ids(), ["8769d97f", "3f6a0bc9", "98c7a3f5"]);
}

#[test]
fn an_index_of_version_1_counts_parsed_lines() {
    let mut lines: Vec<_> = V1.split_inclusive(|&b| b == b'\n').collect();
    lines.insert(2, b"not parsed, so not counted\n");
    let (mut d, result, path) = opened(&lines.concat());
    assert_eq!(result["diagnostics"][0]["kind"], "invalidJson");
    let entries = d.ok("get_entries", json!({}))["entries"].clone();
    assert_eq!(entries[2]["message"]["content"], "three");
    assert_eq!(entries[7]["firstKeptEntryId"], entries[2]["id"]);
    d.user("added", "x");
    let text = fs::read_to_string(&path).unwrap();
    assert!(
        text.contains("not parsed, so not counted\n"),
        "unparseable lines are copied"
    );
}

#[test]
fn the_first_write_migrates_and_keeps_the_original() {
    type Write = fn(&mut Daemon);
    let writes: [(&str, Write); 3] = [
        ("an append", |d| {
            d.user("added", "x");
        }),
        ("a move", |d| {
            let first = d.ids()[0].clone();
            d.set_leaf(Some(&first));
        }),
        ("a label", |d| {
            let first = d.ids()[0].clone();
            d.ok("append_label", json!({"targetId": first, "label": "x"}));
        }),
    ];
    for (what, write) in writes {
        let (mut d, _, path) = opened(V1);
        let before = d.ok("get_entries", json!({}))["entries"]
            .as_array()
            .unwrap()
            .clone();
        write(&mut d);
        let backup = path.with_file_name("s.jsonl.v1.bak");
        assert_eq!(
            fs::read(&backup).unwrap(),
            V1,
            "{what} keeps the original beside it"
        );
        let lines = file_lines(&path);
        assert_eq!(
            (&lines[0]["version"], &lines[0]["id"]),
            (&json!(3), &json!("v1")),
            "{what}"
        );
        for (name, value) in [
            ("provider", "anthropic"),
            ("modelId", "claude-sonnet-4-5"),
            ("thinkingLevel", "off"),
            ("cwd", "/project"),
        ] {
            assert_eq!(lines[0][name], value, "the header keeps its other members");
        }
        assert_eq!(
            lines[1..=10],
            before,
            "{what}: the file says what was served"
        );
        assert_eq!(lines.len(), 12, "{what} and nothing else");
        let leaf = d.leaf();
        let home = d.stop();
        let mut d = Daemon::quiet_in(&home);
        assert_eq!(d.open(&path)["diagnostics"], json!([]));
        assert_eq!(d.leaf(), leaf, "{what}");
        d.user("second", "y");
        assert_eq!(fs::read(&backup).unwrap(), V1, "migrated once");
    }
}

#[test]
fn version_2_migrates_at_the_first_write_too() {
    let (mut d, _, path) = opened(V2);
    d.user("added", "x");
    let lines = file_lines(&path);
    assert_eq!(lines[0]["version"], 3);
    assert_eq!(lines[3]["message"]["role"], "custom");
    assert_eq!(lines.len(), 6);
    let untouched: Vec<_> = V2.split(|&b| b == b'\n').collect();
    let text = fs::read(&path).unwrap();
    let now: Vec<_> = text.split(|&b| b == b'\n').collect();
    for at in [1, 2, 4] {
        assert_eq!(now[at], untouched[at], "line {at} had nothing to migrate");
    }
    let kept = fs::read_dir(path.parent().unwrap())
        .unwrap()
        .map(|item| item.unwrap().path())
        .any(|p| p.extension().is_some_and(|e| e == "bak") && fs::read(&p).unwrap() == V2);
    assert!(kept, "a copy of the original lies beside it");
}
