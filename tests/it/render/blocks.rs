//! The blocks of entries, and the members that the tree adds to them.

use super::*;

#[test]
fn entries_come_in_the_order_asked_and_unknown_ids_are_listed() {
    let log =
        Log::new("s1")
            .user("u1", "", "*one*")
            .assistant("a1", "u1", "two\n\n```rs\nthree\n```");
    let mut d = opened(&log);
    let result = d.ok(
        "render_entries",
        json!({"entryIds": ["a1", "nobody", "u1", "a1", "no<b>ody"]}),
    );
    let found: Vec<_> = result["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["entryId"])
        .collect();
    assert_eq!(found, ["a1", "u1", "a1"]);
    assert_eq!(result["missing"], json!(["nobody", "no<b>ody"]));
    assert_eq!(result.get("nextIndex"), None);
    assert_eq!(
        result["entries"][0]["blocks"],
        json!([
            {"kind": "html", "html": "<p>two</p>"},
            {"kind": "code", "language": "rs", "text": "three\n"},
        ])
    );
    assert_eq!(
        result["entries"][1]["blocks"],
        json!([{"kind": "html", "html": "<p><em>one</em></p>"}])
    );
    let nothing = d.ok("render_entries", json!({"entryIds": []}));
    assert_eq!(nothing, json!({"entries": []}));
}

#[test]
fn summaries_name_the_entries_that_they_replace() {
    let kept = json!({"summary": "K", "firstKeptEntryId": "a1", "tokensBefore": 9});
    let later = json!({"summary": "L", "firstKeptEntryId": "nobody", "tokensBefore": 9});
    let log = Log::new("s1")
        .user("u1", "", "one")
        .user("u2", "u1", "two")
        .assistant("a1", "u2", "three")
        .user("b1", "u2", "other")
        .assistant("b2", "b1", "way")
        .entry(
            "branch_summary",
            "s1",
            "a1",
            json!({"fromId": "b2", "summary": "*S*"}),
        )
        .entry("compaction", "k1", "s1", kept)
        .entry("compaction", "k2", "k1", later)
        .entry(
            "branch_summary",
            "s2",
            "k2",
            json!({"fromId": "root", "summary": "S"}),
        );
    let mut d = opened(&log);
    let ends = |first: &str, last: &str| json!({"firstId": first, "lastId": last});
    let summary = blocks(&mut d, "s1");
    assert_eq!(summary[0]["replaced"], ends("b1", "b2"), "{summary}");
    assert_eq!(summary[0]["html"], "<p><em>S</em></p>");
    assert_eq!(blocks(&mut d, "k1")[0]["replaced"], ends("u1", "u2"));
    // If a compaction keeps no entry, it replaces all entries above it.
    assert_eq!(blocks(&mut d, "k2")[0]["replaced"], ends("u1", "k1"));
    assert_eq!(blocks(&mut d, "s2")[0].get("replaced"), None);
}

#[test]
fn a_custom_message_begins_with_the_text_of_its_renderer() {
    let members =
        json!({"customType": "todo", "content": "*all*", "display": true, "details": {"done": 2}});
    let log = Log::new("s1").entry("custom_message", "c1", "", members);
    let mut d = opened(&log);
    let html = json!({"kind": "html", "html": "<p><em>all</em></p>"});
    assert_eq!(blocks(&mut d, "c1"), json!([html]));
    let renderer = json!({"customType": "todo", "preview": "{details.done} <done>"});
    d.ok("register_renderer", renderer);
    assert_eq!(
        blocks(&mut d, "c1"),
        json!([{"kind": "text", "text": "2 <done>"}, html])
    );
}

/// An entry with damage that the tree reports stays readable, and rendering it must not make the others fail.
#[test]
fn damaged_and_unknown_entries_are_rendered() {
    let log = Log::new("s1")
        .user("u1", "", "one")
        .raw(r#"{"type":"unheard","id":"x1","parentId":"u1","timestamp":"2026-11-22T05:40:35.831Z","a":"<b>"}"#)
        .raw(r#"{"type":"message","id":"x2","parentId":"nobody","message":{"role":"toolResult","content":7}}"#)
        .raw(r#"{"type":"message","id":"x3","parentId":"x1","message":null}"#);
    let mut d = opened(&log);
    let result = d.ok(
        "render_entries",
        json!({"entryIds": ["x1", "x2", "x3", "u1"]}),
    );
    assert_eq!(result["entries"].as_array().unwrap().len(), 4, "{result}");
    assert_eq!(result["entries"][0]["blocks"][0]["kind"], "code");
    assert_eq!(result["entries"][3]["blocks"][0]["html"], "<p>one</p>");
}
