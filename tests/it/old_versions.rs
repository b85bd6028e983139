//! Files of version 1 and 2. The daemon reads them in memory, and the first write rewrites them as version 3.
//! session-file.md §2.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use crate::harness::*;

const V1: &[u8] = include_bytes!("../data/v1.jsonl");

const V2: &[u8] = include_bytes!("../data/v2.jsonl");

fn opened(bytes: &[u8]) -> (Daemon, Json, PathBuf) {
    let home = Home::new();
    let path = home.file("s.jsonl", bytes);
    let mut d = Daemon::quiet_in(&home);
    let result = d.open(&path);
    (d, result, path)
}

#[test]
fn version_1_entries_get_ids_a_chain_and_a_kept_id() {
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
fn version_2_hook_messages_become_custom_messages() {
    let (mut d, result, path) = opened(V2);
    assert_eq!(result["session"]["readOnly"], false);
    assert_eq!(d.ids(), ["u1", "a1", "h1", "u2"]);
    let id = d.send("get_entry", json!({"entryId": "h1"}));
    let text = d.response_text(&id);
    assert!(text.contains(r#"{"role":"custom","customType":"note","content":"from a hook","display":true,"details":{"n":1.0}"#), "{text}");
    assert_eq!(fs::read(&path).unwrap(), V2, "in memory only");
}

#[test]
fn two_openings_derive_the_same_ids_for_version_1() {
    let (mut d, _, path) = opened(V1);
    let first = d.ids();
    assert_eq!(first.len(), 10);
    let home: Arc<Home> = d.stop();
    let mut d = Daemon::quiet_in(&home);
    d.open(&path);
    assert_eq!(d.ids(), first);
    let (mut d, _, _) = opened(V1);
    assert_eq!(d.ids(), first, "wherever the file lies");
}

/// By session-file.md §2.5, other programs can compute the same ids. The ids below come from such a program.
#[test]
fn derived_ids_are_those_that_other_programs_derive() {
    let header = r#"{"type":"session","id":"s1","cwd":"/p"}"#;
    let entry = r#"{"type":"message","timestamp":"2025-01-01T00:00:00.000Z","message":{"role":"user","content":"hi"}}"#;
    let file = format!("{header}\n  {entry} \n{entry}{entry}\n");
    let (mut d, _, _) = opened(file.as_bytes());
    assert_eq!(d.ids(), ["8769d97f", "3f6a0bc9", "98c7a3f5"]);
}

#[test]
fn a_compaction_index_of_version_1_counts_parsed_lines() {
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
fn any_first_write_migrates_and_keeps_the_original() {
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
            "{what}: the file has the delivered entries"
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
fn version_2_migrates_at_the_first_write() {
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

/// The entries of the file as JSON.
fn lines(bytes: &[u8]) -> Vec<Json> {
    let text = std::str::from_utf8(bytes).unwrap();
    text.lines()
        .skip(1)
        .map(|line| parse(line).unwrap())
        .collect()
}

fn without_links(entry: &Json) -> Json {
    let mut entry = entry.clone();
    let members = entry.as_object_mut().unwrap();
    members.shift_remove("id");
    members.shift_remove("parentId");
    entry
}

#[test]
fn a_real_session_opens_reads_and_draws_without_a_write() {
    let Some(bytes) = real_session() else {
        return;
    };
    let stored = lines(&bytes);
    let home = Home::new();
    let path = home.file(REAL_SESSION, &bytes);
    let mut d = Daemon::quiet_in(&home);
    let opened = d.open(&path);
    assert_eq!(opened["diagnostics"], json!([]));
    assert_eq!(opened["session"]["entryCount"], 1018);
    assert_eq!(
        opened["session"]["cwd"],
        "/Users/badlogic/workspaces/pi-mono"
    );

    let entries = d.ok("get_entries", json!({}))["entries"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(entries.len(), stored.len());
    let mut parent = Json::Null;
    for (entry, stored) in entries.iter().zip(&stored) {
        assert_eq!(without_links(entry), *stored);
        assert_eq!(entry["parentId"], parent);
        parent = entry["id"].clone();
    }

    let tree = d.ok("get_tree", json!({"render": "unicode"}));
    assert_eq!(
        tree["total"].as_u64().unwrap() + tree["hidden"].as_u64().unwrap(),
        1018
    );
    for row in tree["nodes"].as_array().unwrap() {
        let preview = row["preview"].as_str().unwrap();
        assert!(
            preview.chars().count() <= 200 && !preview.chars().any(char::is_control),
            "{row}"
        );
    }
    assert_eq!(
        d.ok("get_tree", json!({"filter": "user-only"}))["total"],
        88
    );

    let messages: Vec<_> = stored
        .iter()
        .filter(|e| e["type"] == "message")
        .map(|e| e["message"].clone())
        .collect();
    let context = d.ok("get_context", json!({}));
    assert_eq!(
        context["messages"].as_array().unwrap().len(),
        messages.len()
    );
    assert_eq!(context["messages"], json!(messages));
    let level = stored
        .iter()
        .rev()
        .find(|e| e["type"] == "thinking_level_change")
        .unwrap();
    assert_eq!(context["thinkingLevel"], level["thinkingLevel"]);

    let drawn = d
        .stop()
        .run(&["tree", path.to_str().unwrap()], &[], "")
        .clean()
        .text();
    assert!(
        drawn.contains("read packages/coding-agent/docs/theme.md"),
        "{}",
        shorten(&drawn)
    );
    assert_eq!(fs::read(&path).unwrap(), bytes, "its file untouched");
}

#[test]
fn two_openings_derive_the_same_ids_for_a_real_session() {
    let Some(bytes) = real_session() else {
        return;
    };
    let ids_of = || {
        let home = Home::new();
        let path = home.file(REAL_SESSION, &bytes);
        let mut d = Daemon::quiet_in(&home);
        d.open(&path);
        d.ids()
    };
    let first = ids_of();
    assert_eq!(first.len(), 1018);
    assert_eq!(first, ids_of());
}

#[test]
fn a_navigation_migrates_a_real_session_and_writes_one_summary_at_the_new_leaf() {
    let Some(bytes) = real_session() else {
        return;
    };
    let home = Home::new();
    let path = home.file(REAL_SESSION, &bytes);
    let mut d = Daemon::start_in(&home, &["--summarizer", "outline"], &[]);
    d.ignore_bookkeeping();
    d.open(&path);
    let before = d.ids();
    let third = d.ok("get_fork_messages", json!({}))["messages"][2].clone();
    let target = third["entryId"].as_str().unwrap();
    let entry = d.entry(target);
    let old = d.leaf();
    let result = d.ok(
        "navigate_tree",
        json!({"targetId": target, "summarize": true}),
    );
    assert_eq!(result["cancelled"], false, "{result}");
    assert_eq!(result["editorText"], third["text"]);
    let summary = &result["summaryEntry"];
    assert_eq!(
        (&summary["parentId"], &summary["fromId"]),
        (&entry["parentId"], &old)
    );
    assert!(
        summary["summary"].as_str().is_some_and(|s| s.len() > 100),
        "{summary}"
    );
    let files = |name: &str| {
        summary["details"][name]
            .as_array()
            .unwrap_or_else(|| panic!("{name}"))
            .clone()
    };
    assert!(
        !files("readFiles").is_empty() && !files("modifiedFiles").is_empty(),
        "{}",
        summary["details"]
    );

    let original = home.files().join(format!("{REAL_SESSION}.v1.bak"));
    assert_eq!(
        fs::read(original).unwrap(),
        bytes,
        "the original kept beside it"
    );
    let lines = file_lines(&path);
    assert_eq!(lines.len(), 1 + 1018 + 1);
    assert_eq!(lines[0]["version"], 3);
    assert_eq!(
        lines[0]["provider"], "anthropic",
        "the header keeps its other members"
    );
    assert_eq!(
        lines
            .iter()
            .filter(|l| l["type"] == "branch_summary")
            .count(),
        1
    );
    assert_eq!(lines.last(), Some(summary));

    let home = d.stop();
    let mut d = Daemon::quiet_in(&home);
    assert_eq!(d.open(&path)["diagnostics"], json!([]));
    let mut after = before;
    after.push(summary["id"].as_str().unwrap().to_owned());
    assert_eq!(
        d.ids(),
        after,
        "the ids served before are the ids in the file"
    );
    assert_eq!(d.leaf(), summary["id"]);
}
