//! Versions 1 and 2: either program migrates a file, and both read the same session, except for ids. Version 1 has no
//! ids: pi chooses random ones, and the daemon derives them (session-file.md §2).

use std::collections::HashMap;
use std::fs;

use super::*;

/// Replaces each id by the number of its entry.
fn numbered(view: &View) -> View {
    let numbers: HashMap<&str, String> = (0..)
        .zip(&view.entries)
        .map(|(n, entry): (usize, _)| (entry["id"].as_str().unwrap(), format!("#{n}")))
        .collect();
    let number = |id: &Json| match id.as_str().and_then(|id| numbers.get(id)) {
        Some(number) => json!(number),
        None => id.clone(),
    };
    let mut entries = view.entries.clone();
    for (at, entry) in entries.iter_mut().enumerate() {
        // If no earlier entry has this position, the compaction keeps nothing. Then pi leaves out the required member,
        // and the daemon names the next possible entry, or the compaction itself.
        let kept = &entry["firstKeptEntryId"];
        let earlier = view.entries[..at].iter().any(|e| e["id"] == *kept);
        if entry["type"] == "compaction" && !earlier {
            entry["firstKeptEntryId"] = entry["id"].clone();
        }
        for member in ["id", "parentId", "firstKeptEntryId", "targetId", "fromId"] {
            if entry.get(member).is_some() {
                entry[member] = number(&entry[member]);
            }
        }
    }
    let mut context = view.context.clone();
    for id in context["entryIds"].as_array_mut().unwrap() {
        *id = number(id);
    }
    let order = view.order.iter().flatten();
    View {
        leaf: number(&view.leaf),
        labels: Default::default(),
        order: Some(order.map(|id| numbers[id.as_str()].clone()).collect()),
        context,
        entries,
        ..view.clone()
    }
}

/// Each program migrates its own copy, and then opens the other's.
#[track_caller]
fn both_migrate(pi: &mut Pi, name: &str, bytes: &[u8]) -> View {
    let home = Home::new();
    let path = home.file("here.jsonl", bytes);
    let mut d = daemon(&home);
    d.ignore("diagnostics");
    let opened = d.open(&path);
    let session = opened["session"]["sessionId"].as_str().unwrap().to_owned();
    let here = View::of_daemon(&mut d, &session);
    assert_eq!(
        fs::read(&path).unwrap(),
        bytes,
        "{name}: opening writes nothing"
    );

    let theirs = home.file("there.jsonl", bytes);
    let m = pi.open(&theirs);
    pi.forget(m);
    assert_ne!(
        fs::read(&theirs).unwrap(),
        bytes,
        "{name}: pi migrates on opening"
    );
    let there = pi.view(&theirs);
    let mut reader = daemon(&home);
    there.assert_same(
        &fresh(&mut reader, &theirs),
        &format!("{name}, migrated by pi"),
    );

    if bytes.windows(11).any(|w| w == b"\"version\":2") {
        here.assert_same(&there, name);
    }
    numbered(&here).assert_same(&numbered(&there), &format!("{name}, but for ids"));

    d.ok(
        "append_message",
        json!({"message": user("the first write migrates")}),
    );
    let migrated = pi.view(&path);
    migrated.assert_same(
        &View::of_daemon(&mut d, &session),
        &format!("{name}, migrated here"),
    );
    assert_eq!(
        &migrated.entries[..here.entries.len()],
        here.entries,
        "{name}: the ids delivered before are those in the file"
    );
    there
}

fn v1() -> Log {
    let mut header: Json = parse(Log::new("old").line(0)).unwrap();
    header.as_object_mut().unwrap().shift_remove("version");
    header["provider"] = json!("prov");
    header["thinkingLevel"] = json!("off");
    Log::with_header(header)
}

fn without_link(kind: &str, members: Json) -> String {
    let mut entry = json!({"type": kind, "timestamp": stamp(7)});
    for (name, value) in members.as_object().unwrap() {
        entry[name] = value.clone();
    }
    entry.to_string()
}

fn said(text: &str) -> String {
    without_link("message", json!({"message": user(text)}))
}

fn compaction(index: Json) -> String {
    without_link(
        "compaction",
        json!({"summary": format!("from {index}"), "firstKeptEntryIndex": index, "tokensBefore": 5}),
    )
}

#[test]
fn version_1_gets_the_same_chain_and_boundaries() {
    let Some(mut pi) = Pi::start() else { return };
    let hook = json!({"role": "hookMessage", "customType": "h", "content": "hook", "display": true, "timestamp": 1});
    // pi counts the header, a line that does not parse, and a line after the compaction. The daemon must do so too.
    for index in [
        json!(0),
        json!(1),
        json!(2),
        json!(3),
        json!(4),
        json!(6),
        json!(99),
        json!("2"),
        json!(null),
    ] {
        let log = v1()
            .raw(&said("one"))
            .raw("{\"type\":\"message\",\"torn")
            .raw("")
            .raw(&without_link("message", json!({"message": hook})))
            .raw(&without_link(
                "model_change",
                json!({"provider": "prov", "modelId": "m"}),
            ))
            .raw(&said("two"))
            .raw(&compaction(index.clone()))
            .raw(&said("three"))
            .raw(&without_link(
                "future_type",
                json!({"firstKeptEntryIndex": 1}),
            ))
            .raw(&without_link(
                "thinking_level_change",
                json!({"thinkingLevel": "high"}),
            ));
        let view = both_migrate(
            &mut pi,
            &format!("v1, index {index}"),
            log.text().as_bytes(),
        );
        assert_eq!(view.entries.len(), 8);
    }
}

#[test]
fn version_2_keeps_its_ids_and_tree() {
    let Some(mut pi) = Pi::start() else { return };
    let mut header: Json = parse(Log::new("old").line(0)).unwrap();
    header["version"] = json!(2);
    let hook = json!({"role": "hookMessage", "customType": "h", "content": "hook", "display": true, "timestamp": 1});
    let log = Log::with_header(header)
        .user("u1", "", "one")
        .message("h1", "u1", hook.clone())
        .assistant("a1", "h1", "answer")
        .label("l1", "a1", "u1", json!("start"))
        .user("u2", "l1", "two")
        .entry(
            "compaction",
            "c1",
            "u2",
            json!({"summary": "S", "firstKeptEntryId": "h1", "tokensBefore": 3}),
        )
        .message("h2", "a1", hook)
        .entry(
            "branch_summary",
            "b1",
            "h2",
            json!({"fromId": "c1", "summary": "left"}),
        )
        .entry("session_info", "n1", "b1", json!({"name": "old one"}));
    both_migrate(&mut pi, "v2", log.text().as_bytes());
}

#[test]
fn the_golden_files_migrate_alike() {
    let Some(mut pi) = Pi::start() else { return };
    for name in ["v1.jsonl", "v2.jsonl"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data")
            .join(name);
        both_migrate(&mut pi, name, &fs::read(path).unwrap());
    }
}

#[test]
fn a_real_version_1_session_migrates_alike() {
    let Some(mut pi) = Pi::start() else { return };
    if let Some(bytes) = real_session() {
        both_migrate(&mut pi, "the real session", &bytes);
    }
}
