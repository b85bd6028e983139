//! Points on which programs that handle this format disagree: one test for each line of semantics.md §6, in its
//! order.

use std::fs;

use crate::harness::*;

fn outlined() -> Daemon {
    let mut d = Daemon::start_with(&["--summarizer", "outline"], &[]);
    d.ignore_bookkeeping();
    d.create();
    d.chain(&["u1", "a1", "u2", "a2"]);
    d
}

fn left_with_summary(d: &mut Daemon, target: &str) -> Json {
    let params = json!({"targetId": target, "summarize": true});
    d.ok("navigate_tree", params)["summaryEntry"].clone()
}

#[test]
fn from_id_is_the_abandoned_leaf_and_root_only_if_there_was_none() {
    let mut d = outlined();
    assert_eq!(left_with_summary(&mut d, "a1")["fromId"], "a2");
    d.set_leaf(None);
    let summary = json!({"entryId": "a2", "summary": {"summary": "S"}});
    assert_eq!(d.ok("branch", summary)["summaryEntry"]["fromId"], "root");
}

#[test]
fn the_summary_hangs_at_the_new_leaf_and_neither_at_the_ancestor_nor_at_the_abandoned_tip() {
    let mut d = outlined();
    d.below(Some("u1"), "b1");
    d.below(Some("b1"), "b2");
    d.set_leaf(Some("a2"));
    let summary = left_with_summary(&mut d, "b2");
    assert_eq!(summary["parentId"], "b2");
    assert_eq!(d.path_ids(None)[..3], ["u1", "b1", "b2"]);
}

#[test]
fn collection_stops_at_a_compaction() {
    let mut d = outlined();
    d.ok("append_entries", json!({"entries": [
        {"type": "compaction", "id": "k1", "summary": "EARLIER", "firstKeptEntryId": "u2", "tokensBefore": 1},
        {"type": "message", "id": "u3", "message": user("x")},
    ]}));
    let dry = json!({"targetId": "a1", "dryRun": true});
    let preparation = d.ok("navigate_tree", dry)["preparation"].clone();
    assert_eq!(ids(&preparation["entriesToSummarize"]), ["u3"]);
    assert_eq!(preparation["previousSummary"], "EARLIER");
}

#[test]
fn a_session_reopens_where_it_was_left_or_where_another_writer_appended_since() {
    let mut d = outlined();
    d.ok("navigate_tree", json!({"targetId": "a1"}));
    let home = d.stop();
    let path = home.only_file();
    let mut d = Daemon::quiet_in(&home);
    assert_eq!(d.open(&path)["session"]["leafId"], "a1");
    let home = d.stop();
    foreign_append(
        &path,
        &entry_line(1, "message", "x1", "a2", json!({"message": user("x")})),
    );
    let mut d = Daemon::quiet_in(&home);
    assert_eq!(d.open(&path)["session"]["leafId"], "x1");
}

#[test]
fn migration_is_in_memory_and_the_file_is_rewritten_at_the_first_write() {
    let old = concat!(
        r#"{"type":"session","version":2,"id":"old","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/p"}"#,
        "\n",
        r#"{"type":"message","id":"h1","parentId":null,"timestamp":"2025-01-01T00:00:01.000Z","message":{"role":"hookMessage","content":"x"}}"#,
        "\n"
    );
    let mut d = Daemon::quiet();
    let path = d.home.file("old.jsonl", old.as_bytes());
    d.open(&path);
    assert_eq!(d.entry("h1")["message"]["role"], "custom");
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        old,
        "opening never writes"
    );
    d.user("u1", "x");
    let lines = file_lines(&path);
    assert_eq!(lines[0]["version"], 3);
    assert_eq!(lines[1]["message"]["role"], "custom");
}

#[test]
fn a_daemon_holds_many_sessions_and_says_which_open_and_close() {
    let mut d = Daemon::start();
    let (one, two) = (d.create(), d.create());
    for id in [&one, &two] {
        assert_eq!(d.notification("session_opened")["sessionId"], **id);
    }
    d.ok("close_session", json!({"sessionId": one}));
    assert_eq!(d.notification("session_closed")["sessionId"], one);
    assert_eq!(d.leaf(), Json::Null, "the other is the only one now");
    // Nothing says "switched": the harness would fail.
    d.ok("close_session", json!({"sessionId": two}));
    d.notification("session_closed");
}

#[test]
fn the_default_view_hides_settings_and_bookkeeping_besides_labels_and_custom_entries() {
    let mut d = outlined();
    d.ok(
        "append_entries",
        json!({"entries": [
            {"type": "thinking_level_change", "thinkingLevel": "high"},
            {"type": "model_change", "provider": "p", "modelId": "m"},
            {"type": "session_info", "name": "n"},
            {"type": "usage", "kind": "k", "provider": "p", "model": "m", "usage": {}},
            {"type": "context_edit", "targetId": "u1", "replacement": null},
            {"type": "custom", "customType": "c"},
            {"type": "label", "targetId": "u1", "label": "l"},
            {"type": "message", "id": "u3", "message": user("x")},
        ]}),
    );
    let rows = d.ok("get_tree", json!({}));
    assert_eq!(ids(&rows["nodes"]), ["u1", "a1", "u2", "a2", "u3"]);
    assert_eq!(rows["hidden"], 7);
    assert_eq!(d.ok("get_tree", json!({"filter": "all"}))["total"], 12);
}

#[test]
fn uuid_and_parent_uuid_are_not_this_format() {
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

#[test]
fn fork_makes_a_new_file_branch_moves_the_leaf_in_this_one_and_events_say_fork() {
    let mut d = outlined();
    d.ok("branch", json!({"entryId": "a1"}));
    assert_eq!(d.home.session_files().len(), 1);
    d.ok("fork_session", json!({"entryId": "a2"}));
    assert_eq!(d.home.session_files().len(), 2);
    assert_eq!(d.notification("session_before_fork")["entryId"], "a2");
    assert_eq!(d.notification("session_fork")["entryId"], "a2");
}

#[test]
fn from_hook_is_the_name_on_disk_and_on_the_wire() {
    let mut d = Daemon::quiet();
    d.init(json!({"answers": {"session_before_tree": {}, "session_before_compact": {}}}));
    d.create();
    d.chain(&["u1", "a1", "u2", "a2"]);
    let id = d.send("compact", json!({"keepRecentTokens": 1}));
    let event = d.notification("session_before_compact");
    d.answer(&event, json!({"compaction": {"summary": "S"}}));
    d.notification("event_resolved");
    assert_eq!(
        d.response(&id).unwrap()["compactionEntry"]["fromHook"],
        true
    );
    assert_eq!(d.notification("session_compact")["fromHook"], true);
    let id = d.send(
        "navigate_tree",
        json!({"targetId": "a1", "summarize": true}),
    );
    let event = d.notification("session_before_tree");
    d.answer(&event, json!({"summary": {"summary": "S"}}));
    d.notification("event_resolved");
    let result = d.response(&id).unwrap();
    assert_eq!(result["fromHook"], true);
    assert_eq!(result["summaryEntry"]["fromHook"], true);
    let lines = file_lines(&d.home.only_file());
    let hooked = lines.iter().filter(|line| line["fromHook"] == true);
    assert_eq!(hooked.count(), 2);
}
