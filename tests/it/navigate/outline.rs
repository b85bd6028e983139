//! Summaries of the built-in `outline` summarizer: where they are appended, what they contain, and when none is
//! written.

use super::*;

#[test]
fn outline_writes_a_summary_at_the_new_leaf() {
    let mut d = Daemon::start_with(&["--summarizer", "outline"], &[]);
    d.ignore_bookkeeping();
    d.create();
    d.chain(&["u1", "a1"]);
    d.ok("append_entries", json!({"entries": [
        {"type": "message", "id": "u2", "message": user("please change the parser")},
        {"type": "message", "id": "c1", "message": assistant_with(json!([
            tool_call("k1", "read", json!({"path": "src/z.rs"})), tool_call("k2", "edit", json!({"path": "src/b.rs"})),
            tool_call("k3", "write", json!({"path": "src/a.rs"})), tool_call("k4", "read", json!({"path": "src/b.rs"})),
            tool_call("k5", "read", json!({"path": "src/c.rs"})),
        ]))},
        {"type": "message", "id": "t1", "message": tool_result("k1", "read", "content", false)},
        {"type": "message", "id": "a2", "message": assistant("the parser is changed")},
    ]}));
    let result = d.ok(
        "navigate_tree",
        json!({"targetId": "a1", "summarize": true}),
    );
    let summary = &result["summaryEntry"];
    assert_eq!(
        (&summary["parentId"], &summary["fromId"]),
        (&json!("a1"), &json!("a2"))
    );
    assert_eq!(result["newLeafId"], summary["id"]);
    assert_eq!(
        (
            &summary["details"]["readFiles"],
            &summary["details"]["modifiedFiles"]
        ),
        (
            &json!(["src/c.rs", "src/z.rs"]),
            &json!(["src/a.rs", "src/b.rs"])
        ),
        "modified = written or edited, read = the rest, sorted"
    );
    assert!(summary.get("fromHook").is_none(), "{summary}");
    let text = summary["summary"].as_str().unwrap();
    assert!(
        text.contains("please change the parser"),
        "the first request: {text}"
    );
    assert!(
        text.contains("<read-files>") && text.contains("<modified-files>"),
        "{text}"
    );
    assert!(
        text.contains("src/a.rs") && text.contains("src/z.rs"),
        "{text}"
    );
    assert_eq!(d.entry(summary["id"].as_str().unwrap()), *summary);
}

#[test]
fn a_client_without_summary_deltas_receives_progress() {
    let mut d = Daemon::start_with(&["--summarizer", "outline"], &[]);
    d.ignore_bookkeeping();
    d.init(json!({"progress": {}}));
    d.create();
    d.chain(&CONVERSATION);
    let params = json!({"targetId": "a1", "summarize": true, "navigationId": "n1"});
    let summary = d.ok("navigate_tree", params)["summaryEntry"]["summary"].clone();
    let progress = d.received("progress");
    let last = progress.last().expect("progress");
    assert_eq!(last["token"], "n1");
    let characters = summary.as_str().unwrap().chars().count();
    assert_eq!(last["progress"].as_f64(), Some(characters as f64));
}

#[test]
fn outline_is_deterministic() {
    let once = || {
        let mut d = Daemon::start_with(&["--summarizer", "outline"], &[]);
        d.ignore_bookkeeping();
        d.create();
        d.chain(&CONVERSATION);
        d.ok(
            "navigate_tree",
            json!({"targetId": "a1", "summarize": true}),
        )["summaryEntry"]["summary"]
            .clone()
    };
    let first = once();
    assert!(first.is_string(), "{first}");
    assert_eq!(first, once());
}

#[test]
fn labels_and_settings_alone_get_no_summary() {
    let mut d = Daemon::start_with(&["--summarizer", "outline"], &[]);
    d.ignore_bookkeeping();
    d.create();
    d.chain(&CONVERSATION);
    d.ok(
        "append_entries",
        json!({"entries": [
            {"type": "thinking_level_change", "id": "t1", "thinkingLevel": "high"},
            {"type": "label", "id": "l1", "targetId": "u1", "label": "x"},
            {"type": "model_change", "id": "m1", "provider": "p", "modelId": "m"},
        ]}),
    );
    let result = d.ok(
        "navigate_tree",
        json!({"targetId": "a3", "summarize": true}),
    );
    assert_eq!(result["cancelled"], false);
    assert_eq!(result["reason"], "nothingToSummarize");
    assert!(result.get("summaryEntry").is_none(), "{result}");
    assert_eq!(result["newLeafId"], "a3", "the move happens");
    assert_eq!(d.leaf(), "a3");
}

#[test]
fn an_abandoned_compaction_alone_gets_a_summary() {
    let mut d = Daemon::start_with(&["--summarizer", "outline"], &[]);
    d.ignore_bookkeeping();
    d.create();
    d.chain(&CONVERSATION);
    let compaction = json!({"type": "compaction", "id": "k1", "summary": "WHAT CAME BEFORE", "firstKeptEntryId": "u3", "tokensBefore": 1});
    d.ok("append_entries", json!({"entries": [compaction]}));
    let result = d.ok(
        "navigate_tree",
        json!({"targetId": "a1", "summarize": true}),
    );
    assert!(result.get("reason").is_none(), "{result}");
    let summary = result["summaryEntry"]["summary"].as_str().unwrap();
    assert!(summary.contains("WHAT CAME BEFORE"), "{summary}");
}

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
fn the_summary_is_a_child_of_the_new_leaf() {
    let mut d = outlined();
    d.below(Some("u1"), "b1");
    d.below(Some("b1"), "b2");
    d.set_leaf(Some("a2"));
    let summary = left_with_summary(&mut d, "b2");
    assert_eq!(summary["parentId"], "b2");
    assert_eq!(d.path_ids(None)[..3], ["u1", "b1", "b2"]);
}
