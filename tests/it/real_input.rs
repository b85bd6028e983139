//! A real session, as its program wrote it: version 1, 1,018 entries.
//! Its file is found by TREELINED_REAL_SESSION or beside the repository, and may be absent.

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::*;

const NAME: &str = "pi-v1-large-session.jsonl";

pub fn real() -> Option<Vec<u8>> {
    let named = std::env::var_os("TREELINED_REAL_SESSION").map(PathBuf::from);
    let found = named.or_else(|| {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .map(|folder| folder.join("shared/data").join(NAME))
            .find(|path| path.is_file())
    });
    match found {
        Some(path) => Some(fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))),
        None => {
            eprintln!("skipped: {NAME} absent");
            None
        }
    }
}

/// The file's own lines, the header left out.
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
fn it_opens_reads_and_draws_untouched() {
    let Some(bytes) = real() else { return };
    let stored = lines(&bytes);
    let home = Home::new();
    let path = home.file(NAME, &bytes);
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
fn a_second_opening_gives_the_same_ids() {
    let Some(bytes) = real() else { return };
    let ids_of = || {
        let home = Home::new();
        let path = home.file(NAME, &bytes);
        let mut d = Daemon::quiet_in(&home);
        d.open(&path);
        d.ids()
    };
    let first = ids_of();
    assert_eq!(first.len(), 1018);
    assert_eq!(first, ids_of());
}

#[test]
fn a_navigation_migrates_it_and_writes_one_summary_in_the_right_place() {
    let Some(bytes) = real() else { return };
    let home = Home::new();
    let path = home.file(NAME, &bytes);
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

    let original = home.files().join(format!("{NAME}.v1.bak"));
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
