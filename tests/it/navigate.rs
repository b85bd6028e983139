//! `navigate_tree` and the questions it asks: the nine steps in their order, every kind of answer and
//! of silence, abort and cancel, what is written and what is told. protocol.md §4, §5 and §7.

use std::fs;
use std::time::Duration;

use crate::harness::*;

const CONVERSATION: [&str; 6] = ["u1", "a1", "u2", "a2", "u3", "a3"];

/// Nobody answers here, so nothing waits.
fn unasked() -> Daemon {
    let mut d = Daemon::quiet();
    d.create();
    d.chain(&CONVERSATION);
    d
}

/// A client that answers; every notification but the append's own must be claimed.
fn asked_with(args: &[&str]) -> Daemon {
    let mut d = Daemon::start_with(args, &[]);
    for name in ["session_opened", "session_closed", "entries_appended"] {
        d.ignore(name);
    }
    d.init(json!({"answers": {"session_before_tree": {}}}));
    d.create();
    d.chain(&CONVERSATION);
    d
}

fn asked() -> Daemon {
    asked_with(&[])
}

fn lines(d: &Daemon) -> Vec<Json> {
    file_lines(&d.home.only_file())
}

/// Starts a navigation and gives its request id and the question.
#[track_caller]
fn ask(d: &mut Daemon, params: Json) -> (Json, Json) {
    let id = d.send("navigate_tree", params);
    let event = d.notification("session_before_tree");
    (id, event)
}

/// The navigation ended like this and left leaf and file alone.
#[track_caller]
fn left_alone(d: &mut Daemon, id: &Json, reason: &str) {
    let result = d.response(id).expect("not an error");
    assert_eq!(
        (&result["cancelled"], &result["reason"]),
        (&json!(true), &json!(reason)),
        "{result}"
    );
    assert_eq!(d.leaf(), "a3");
    assert_eq!(lines(d).len(), 7, "header and six messages");
    d.no_notification("session_tree");
}

// --- the steps ---

#[test]
fn to_an_assistant_message_the_leaf_is_that_message() {
    let mut d = unasked();
    let result = d.ok("navigate_tree", json!({"targetId": "a1"}));
    assert_eq!(result["cancelled"], false);
    assert_eq!(
        (&result["oldLeafId"], &result["newLeafId"]),
        (&json!("a3"), &json!("a1"))
    );
    for member in ["editorText", "summaryEntry", "labelEntry", "reason"] {
        assert!(
            result.get(member).is_none_or(Json::is_null),
            "{member} of {result}"
        );
    }
    assert_eq!(d.leaf(), "a1");
    let record = lines(&d).pop().unwrap();
    assert_eq!(record["customType"], "treelined.leaf");
    assert_eq!(record["parentId"], "a1");
    assert_eq!(
        record["data"],
        json!({"from": "a3", "cause": "navigate_tree"})
    );
}

#[test]
fn to_a_user_message_the_leaf_is_its_parent_and_its_text_comes_back() {
    let mut d = unasked();
    let result = d.ok("navigate_tree", json!({"targetId": "u2"}));
    assert_eq!(result["newLeafId"], "a1");
    assert_eq!(result["editorText"], "text of u2");
    let result = d.ok("navigate_tree", json!({"targetId": "u1"}));
    assert_eq!(
        (&result["oldLeafId"], &result["newLeafId"]),
        (&json!("a1"), &Json::Null)
    );
    assert_eq!(result["editorText"], "text of u1");
    assert_eq!(d.leaf(), Json::Null);
    let result = d.ok("navigate_tree", json!({"targetId": "a3"}));
    assert_eq!(
        (&result["oldLeafId"], &result["newLeafId"]),
        (&Json::Null, &json!("a3"))
    );
}

#[test]
fn images_come_back_for_the_editor_too() {
    let mut d = unasked();
    let image = json!({"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"});
    d.ok(
        "append_message",
        json!({"entryId": "u4", "message": {
            "role": "user", "timestamp": 1, "content": [{"type": "text", "text": "look"}, image],
        }}),
    );
    d.chain(&["a4"]);
    let result = d.ok("navigate_tree", json!({"targetId": "u4"}));
    assert_eq!(result["editorText"], "look");
    assert_eq!(result["editorImages"], json!([image]));
}

#[test]
fn to_a_custom_message_goes_like_to_a_users() {
    let mut d = unasked();
    d.ok("append_entries", json!({"entries": [
        {"type": "custom_message", "id": "c1", "customType": "x", "content": "note", "display": true},
        {"type": "message", "id": "a4", "message": assistant("x")},
    ]}));
    let result = d.ok("navigate_tree", json!({"targetId": "c1"}));
    assert_eq!(
        (&result["newLeafId"], &result["editorText"]),
        (&json!("a3"), &json!("note"))
    );
}

#[test]
fn an_unknown_target_is_not_found() {
    let mut d = asked();
    let error = d.err("navigate_tree", json!({"targetId": "nobody"}));
    assert_eq!((error.code, error.kind.as_str()), (1200, "entryNotFound"));
    assert_eq!(error.details("entryId"), "nobody");
}

#[test]
fn to_where_one_is_nothing_happens() {
    let mut d = asked();
    for _ in 0..2 {
        let result = d.ok(
            "navigate_tree",
            json!({"targetId": "a3", "summarize": true}),
        );
        assert_eq!(result["cancelled"], false, "{result}");
        assert_eq!(result["reason"], "alreadyThere", "{result}");
        // Labels and names are all that lies between the second time.
        d.ignore("session_info_changed");
        d.ok(
            "append_label",
            json!({"targetId": "u1", "label": "x", "entryId": "l1"}),
        );
        d.ok("set_session_name", json!({"name": "n"}));
    }
    assert_eq!(
        lines(&d)
            .iter()
            .filter(|l| l["customType"] == "treelined.leaf")
            .count(),
        0
    );
    // No events: the harness would fail.
}

#[test]
fn rewind_treats_the_leaf_like_any_other_target() {
    let mut d = unasked();
    d.chain(&["u4"]);
    let result = d.ok("navigate_tree", json!({"targetId": "u4"}));
    assert_eq!(result["reason"], "alreadyThere");
    let result = d.ok("navigate_tree", json!({"targetId": "u4", "rewind": true}));
    assert_eq!(
        (&result["newLeafId"], &result["editorText"]),
        (&json!("a3"), &json!("text of u4"))
    );
    assert_eq!(d.leaf(), "a3");
}

#[test]
fn a_new_leaf_equal_to_the_old_needs_no_record() {
    let mut d = unasked();
    d.set_leaf(Some("a1"));
    let before = lines(&d);
    let result = d.ok("navigate_tree", json!({"targetId": "u2"}));
    assert_eq!(
        (&result["oldLeafId"], &result["newLeafId"]),
        (&json!("a1"), &json!("a1"))
    );
    assert_eq!(result["editorText"], "text of u2");
    assert_eq!(lines(&d), before);
}

#[test]
fn a_summary_that_nobody_can_give_is_refused_at_once() {
    let mut d = Daemon::start();
    for name in ["session_opened", "session_closed", "entries_appended"] {
        d.ignore(name);
    }
    d.create();
    d.chain(&CONVERSATION);
    let error = d.err(
        "navigate_tree",
        json!({"targetId": "a1", "summarize": true}),
    );
    assert_eq!(
        (error.code, error.kind.as_str()),
        (1300, "summarizerUnavailable")
    );
    assert_eq!(d.leaf(), "a3");
    assert_eq!(lines(&d).len(), 7);
    // No `session_before_tree`: the harness would fail.
}

#[test]
fn the_preparation_tells_what_is_left_behind() {
    let mut d = asked();
    d.below(Some("a1"), "u9");
    let (id, event) = ask(
        &mut d,
        json!({
            "targetId": "a3", "summarize": true, "customInstructions": "be brief", "replaceInstructions": true,
            "label": "back", "navigationId": "nav-1", "answerTimeoutMs": 20000,
        }),
    );
    assert_eq!(event["navigationId"], "nav-1");
    assert!(event["eventId"].is_string());
    let left = event["timeoutMs"].as_u64().unwrap();
    assert!((1..=20_000).contains(&left), "{left}");
    let preparation = &event["preparation"];
    assert_eq!(preparation["targetId"], "a3");
    assert_eq!(preparation["oldLeafId"], "u9");
    assert_eq!(preparation["commonAncestorId"], "a1");
    assert_eq!(
        preparation["entriesToSummarize"],
        json!([d.entry("u9")]),
        "full entries"
    );
    assert_eq!(preparation["userWantsSummary"], true);
    assert_eq!(preparation["customInstructions"], "be brief");
    assert_eq!(preparation["replaceInstructions"], true);
    assert_eq!(preparation["label"], "back");
    assert_eq!(
        preparation["model"],
        json!({"provider": "prov", "modelId": "mod"})
    );
    d.answer(&event, json!({"cancel": true}));
    d.notification("event_resolved");
    assert_eq!(d.response(&id).unwrap()["reason"], "cancelledByClient");
}

#[test]
fn entries_to_summarize_run_from_the_ancestor_to_the_leaf_in_file_order() {
    let mut d = asked();
    for (target, ancestor, left) in [
        ("a1", json!("a1"), &["u2", "a2", "u3", "a3"][..]),
        ("u2", json!("u2"), &["a2", "u3", "a3"]),
        ("u1", json!("u1"), &["a1", "u2", "a2", "u3", "a3"]),
    ] {
        let result = d.ok("navigate_tree", json!({"targetId": target, "dryRun": true}));
        let preparation = &result["preparation"];
        assert_eq!(preparation["commonAncestorId"], ancestor, "to {target}");
        assert_eq!(ids(&preparation["entriesToSummarize"]), left, "to {target}");
        assert_eq!(preparation["userWantsSummary"], false);
    }
    d.below(None, "u9");
    let preparation =
        d.ok("navigate_tree", json!({"targetId": "a3", "dryRun": true}))["preparation"].clone();
    assert_eq!(
        preparation["commonAncestorId"],
        Json::Null,
        "no common ancestor"
    );
    assert_eq!(ids(&preparation["entriesToSummarize"]), ["u9"]);
    assert_eq!(lines(&d).len(), 8, "a dry run writes nothing");
    assert_eq!(d.leaf(), "u9");
}

#[test]
fn collection_stops_at_a_compaction_whose_summary_is_passed_on() {
    let mut d = unasked();
    d.ok("append_entries", json!({"entries": [
        {"type": "compaction", "id": "k1", "summary": "EARLIER", "firstKeptEntryId": "u3", "tokensBefore": 1},
        {"type": "message", "id": "u4", "message": user("x")},
        {"type": "message", "id": "a4", "message": assistant("x")},
    ]}));
    let preparation =
        d.ok("navigate_tree", json!({"targetId": "a1", "dryRun": true}))["preparation"].clone();
    assert_eq!(
        ids(&preparation["entriesToSummarize"]),
        ["u4", "a4"],
        "exclusive"
    );
    assert_eq!(preparation["previousSummary"], "EARLIER");
    assert_eq!(preparation["commonAncestorId"], "a1");
    let preparation =
        d.ok("navigate_tree", json!({"targetId": "k1", "dryRun": true}))["preparation"].clone();
    assert_eq!(ids(&preparation["entriesToSummarize"]), ["u4", "a4"]);
    assert!(
        preparation.get("previousSummary").is_none_or(Json::is_null),
        "the ancestor came first: {preparation}"
    );
}

// --- answers ---

#[test]
fn a_cancel_changes_nothing() {
    let mut d = asked();
    let (id, event) = ask(&mut d, json!({"targetId": "a1", "navigationId": "n1"}));
    assert_eq!(d.answer(&event, json!({"cancel": true}))["accepted"], true);
    let resolved = d.notification("event_resolved");
    assert_eq!(resolved["eventId"], event["eventId"]);
    assert_eq!(resolved["event"], "session_before_tree");
    assert_eq!(resolved["navigationId"], "n1");
    assert_eq!(resolved["outcome"], "cancelled");
    left_alone(&mut d, &id, "cancelledByClient");
}

#[test]
fn no_opinion_lets_it_proceed() {
    let mut d = asked();
    let (id, event) = ask(&mut d, json!({"targetId": "a1"}));
    d.still_waits(&id);
    assert_eq!(d.leaf(), "a3", "reads never wait for a question");
    d.answer(&event, json!({}));
    assert_eq!(d.notification("event_resolved")["outcome"], "proceed");
    assert_eq!(d.response(&id).unwrap()["newLeafId"], "a1");
    assert_eq!(d.notification("session_tree")["newLeafId"], "a1");
    assert_eq!(d.leaf(), "a1");
}

#[test]
fn a_clients_summary_is_stored_as_given() {
    let mut d = asked();
    let (id, event) = ask(&mut d, json!({"targetId": "a1", "summarize": true}));
    let given = json!({"summary": "  as given\n", "details": {"z": 1.0, "a": [1, {"n": null}]}});
    d.answer(&event, json!({"summary": given}));
    assert_eq!(d.notification("event_resolved")["outcome"], "summary");
    let result = d.response(&id).unwrap();
    let summary = &result["summaryEntry"];
    assert_eq!(summary["type"], "branch_summary");
    assert_eq!(
        summary["parentId"], "a1",
        "it hangs at the new leaf position"
    );
    assert_eq!(
        summary["fromId"], "a3",
        "the abandoned leaf, not the destination"
    );
    assert_eq!(summary["summary"], "  as given\n");
    assert_eq!(summary["details"], given["details"]);
    assert_eq!(summary["fromHook"], true);
    assert_eq!(result["fromHook"], true);
    assert_eq!(
        (&result["oldLeafId"], &result["newLeafId"]),
        (&json!("a3"), &summary["id"])
    );
    let told = d.notification("session_tree");
    assert_eq!(
        (&told["newLeafId"], &told["oldLeafId"]),
        (&summary["id"], &json!("a3"))
    );
    assert_eq!(told["cause"], "navigate_tree");
    assert_eq!(told["summaryEntry"], *summary);
    assert_eq!(told["fromHook"], true);
    assert_eq!(
        lines(&d).last(),
        Some(summary),
        "one entry, and no leaf record besides"
    );
    assert_eq!(lines(&d).len(), 8);
    assert_eq!(d.leaf(), summary["id"]);
}

#[test]
fn a_summary_of_the_way_from_or_to_nowhere() {
    let mut d = asked();
    let (id, event) = ask(&mut d, json!({"targetId": "u1", "summarize": true}));
    d.answer(&event, json!({"summary": {"summary": "S"}}));
    d.notification("event_resolved");
    d.notification("session_tree");
    let summary = d.response(&id).unwrap()["summaryEntry"].clone();
    assert_eq!(
        (&summary["parentId"], &summary["fromId"]),
        (&Json::Null, &json!("a3")),
        "a root, beside u1"
    );
    assert_eq!(d.path_ids(None).len(), 1);
}

#[test]
fn a_summary_counts_only_if_one_was_wanted() {
    let mut d = asked();
    let (id, event) = ask(&mut d, json!({"targetId": "a1"}));
    d.answer(&event, json!({"summary": {"summary": "unasked for"}}));
    d.notification("event_resolved");
    d.notification("session_tree");
    let result = d.response(&id).unwrap();
    assert!(
        result.get("summaryEntry").is_none_or(Json::is_null),
        "{result}"
    );
    assert_eq!(result["newLeafId"], "a1");
    assert!(lines(&d).iter().all(|l| l["type"] != "branch_summary"));
}

#[test]
fn a_wanted_summary_that_no_client_gives_needs_a_summarizer() {
    let mut d = asked();
    let (id, event) = ask(&mut d, json!({"targetId": "a1", "summarize": true}));
    d.answer(&event, json!({}));
    d.notification("event_resolved");
    assert_eq!(
        d.response(&id).expect_err("nobody gave one").kind,
        "summarizerUnavailable"
    );
    assert_eq!(d.leaf(), "a3");
    assert_eq!(lines(&d).len(), 7);
}

#[test]
fn a_label_goes_on_the_summary_or_else_on_the_target() {
    let mut d = asked();
    let (id, event) = ask(&mut d, json!({"targetId": "a2", "label": "here"}));
    d.answer(&event, json!({}));
    d.notification("event_resolved");
    let result = d.response(&id).unwrap();
    let label = &result["labelEntry"];
    assert_eq!(
        (&label["type"], &label["targetId"], &label["label"]),
        (&json!("label"), &json!("a2"), &json!("here"))
    );
    assert_eq!(
        result["newLeafId"], label["id"],
        "the leaf is the last entry of these"
    );
    assert_eq!(d.notification("session_tree")["labelEntry"], *label);
    assert_eq!(d.leaf(), label["id"]);
    assert_eq!(label["parentId"], "a2");

    let (id, event) = ask(
        &mut d,
        json!({"targetId": "a1", "summarize": true, "label": "asked"}),
    );
    d.answer(
        &event,
        json!({"summary": {"summary": "S"}, "label": "overridden"}),
    );
    d.notification("event_resolved");
    d.notification("session_tree");
    let result = d.response(&id).unwrap();
    assert_eq!(
        result["labelEntry"]["targetId"],
        result["summaryEntry"]["id"]
    );
    assert_eq!(result["labelEntry"]["label"], "overridden");
    assert_eq!(result["newLeafId"], result["labelEntry"]["id"]);
    assert_eq!(
        result["labelEntry"]["parentId"],
        result["summaryEntry"]["id"]
    );
}

/// The label of a navigation to where the leaf stood already was lost without a word.
#[test]
fn a_label_at_the_target_itself_is_appended_at_the_leaf() {
    let mut d = Daemon::start();
    d.ignore("session_opened");
    d.ignore("session_closed");
    d.init(json!({"answers": {"session_before_tree": {}}}));
    d.create();
    d.chain(&CONVERSATION);
    for _ in CONVERSATION {
        d.notification("entries_appended");
    }
    for (params, target) in [
        (json!({"targetId": "a3", "label": " here\r\n"}), "a3"),
        // A label lies between now.
        (
            json!({"targetId": "a3", "label": "here", "summarize": true}),
            "a3",
        ),
    ] {
        let old = d.leaf();
        let result = d.ok("navigate_tree", params);
        assert_eq!(
            (&result["cancelled"], &result["reason"]),
            (&json!(false), &json!("alreadyThere"))
        );
        let label = &result["labelEntry"];
        assert_eq!(
            (&label["type"], &label["targetId"], &label["label"]),
            (&json!("label"), &json!(target), &json!("here"))
        );
        assert_eq!(label["parentId"], old, "at the leaf");
        assert_eq!(
            (&result["oldLeafId"], &result["newLeafId"]),
            (&old, &label["id"])
        );
        assert_eq!(result["durability"], "interval");
        assert_eq!(
            d.notification("entries_appended")["entryIds"],
            json!([label["id"]])
        );
        assert_eq!(lines(&d).last(), Some(label));
    }
    let before = lines(&d);
    for params in [
        json!({"targetId": "a3", "label": " \n"}),
        json!({"targetId": "a3", "label": "x", "dryRun": true}),
    ] {
        let result = d.ok("navigate_tree", params);
        assert_eq!(result["reason"], "alreadyThere");
        assert!(result.get("labelEntry").is_none(), "{result}");
    }
    d.err_kind(
        "navigate_tree",
        json!({"targetId": "a3", "label": "x", "expectedLeafId": "a1"}),
        "leafMoved",
    );
    assert_eq!(lines(&d), before);
    let result = d.ok("pop", json!({"entryId": "a3", "label": "x"}));
    assert_eq!(result["labelEntry"]["targetId"], "a3");
    d.notification("entries_appended");
    // No question and no `session_tree`: the harness would fail.
}

/// A label went into the file as it was typed, and `get_tree` drew its line breaks as they came.
#[test]
fn a_label_of_a_navigation_is_one_trimmed_line_and_blank_is_none() {
    let mut d = asked();
    let (id, event) = ask(&mut d, json!({"targetId": "a1", "label": " \u{7}a\nb "}));
    assert_eq!(event["preparation"]["label"], "a b");
    d.answer(&event, json!({"label": "c\r\nd\t"}));
    d.notification("event_resolved");
    d.notification("session_tree");
    let result = d.response(&id).unwrap();
    assert_eq!(result["labelEntry"]["label"], "c d");
    let (id, event) = ask(&mut d, json!({"targetId": "a3", "label": "x"}));
    d.answer(&event, json!({"label": " \n"}));
    d.notification("event_resolved");
    d.notification("session_tree");
    let result = d.response(&id).unwrap();
    assert!(
        result.get("labelEntry").is_none(),
        "an answer clears: {result}"
    );
    let (id, event) = ask(&mut d, json!({"targetId": "a1", "label": "\t"}));
    assert!(event["preparation"].get("label").is_none(), "{event}");
    d.answer(&event, json!({}));
    d.notification("event_resolved");
    d.notification("session_tree");
    assert!(d.response(&id).unwrap().get("labelEntry").is_none());
}

/// `branch` could not leave a summary before the first entry, and it was not said whether one that it
/// left at the present leaf is written.
#[test]
fn branch_leaves_a_summary_at_the_root_and_at_the_leaf() {
    let mut d = unasked();
    let result = d.ok(
        "branch",
        json!({"entryId": null, "summary": {"summary": "R"}}),
    );
    let summary = &result["summaryEntry"];
    assert_eq!(
        (&summary["parentId"], &summary["fromId"]),
        (&Json::Null, &json!("a3")),
        "{summary}"
    );
    assert_eq!(result["fromHook"], true);
    assert_eq!(
        (&result["oldLeafId"], &result["newLeafId"]),
        (&json!("a3"), &summary["id"])
    );
    let told = d.notification("session_tree");
    assert_eq!(
        (&told["cause"], &told["fromHook"]),
        (&json!("branch"), &json!(true))
    );
    assert_eq!(d.path_ids(None).len(), 1);

    let leaf = d.leaf();
    let result = d.ok(
        "branch",
        json!({"entryId": leaf, "summary": {"summary": "S"}}),
    );
    let summary = &result["summaryEntry"];
    assert_eq!((&summary["parentId"], &summary["fromId"]), (&leaf, &leaf));
    assert_eq!(d.leaf(), summary["id"]);
    assert_eq!(d.notification("session_tree")["newLeafId"], summary["id"]);

    d.set_leaf(None);
    let told = d.notification("session_tree");
    assert!(told.get("fromHook").is_none(), "no summary: {told}");
    let result = d.ok(
        "branch",
        json!({"entryId": null, "summary": {"summary": "S"}}),
    );
    assert_eq!(
        result["summaryEntry"]["fromId"], "root",
        "there was no leaf"
    );
    let result = d.ok("branch", json!({"entryId": "a1"}));
    assert!(result.get("fromHook").is_none(), "{result}");
    d.ignore("session_tree");
}

/// What a summary of a client had cost was refused, so that nobody could count it.
#[test]
fn a_clients_summary_carries_what_it_cost() {
    let mut d = asked();
    let before = d.ok("get_stats", json!({}));
    let usage =
        json!({"input": 10, "output": 5, "cacheRead": 2, "cacheWrite": 1, "cost": {"total": 0.25}});
    let (id, event) = ask(&mut d, json!({"targetId": "a1", "summarize": true}));
    let wrong =
        json!({"eventId": event["eventId"], "result": {"summary": {"summary": "S", "usage": 5}}});
    d.err_kind("answer_event", wrong, "invalidParams");
    d.answer(&event, json!({"summary": {"summary": "S", "usage": usage}}));
    d.notification("event_resolved");
    let told = d.notification("session_tree");
    let result = d.response(&id).unwrap();
    assert_eq!(result["summaryEntry"]["usage"], usage);
    assert_eq!(told["summaryEntry"]["usage"], usage);
    let params = json!({"entryId": "a2", "summary": {"summary": "S", "usage": usage}});
    let result = d.ok("branch", params);
    assert_eq!(result["summaryEntry"]["usage"], usage);
    d.notification("session_tree");
    assert_eq!(lines(&d).last().unwrap()["usage"], usage);
    let params = json!({"entryId": "a2", "summary": {"summary": "S", "usage": null}});
    assert!(
        d.ok("branch", params)["summaryEntry"]
            .get("usage")
            .is_none()
    );
    d.notification("session_tree");
    let stats = d.ok("get_stats", json!({}));
    for (name, more) in [
        ("input", 20),
        ("output", 10),
        ("cacheRead", 4),
        ("cacheWrite", 2),
    ] {
        let count = |stats: &Json| stats["tokens"][name].as_u64().unwrap();
        assert_eq!(count(&stats), count(&before) + more, "{name}");
    }
    let cost = |stats: &Json| stats["cost"].as_f64().unwrap();
    assert!((cost(&stats) - cost(&before) - 0.5).abs() < 1e-9);
    let most = json!({"input": 1e300, "cost": {"total": 1e308}});
    for _ in 0..2 {
        let params = json!({"entryId": "a2", "summary": {"summary": "S", "usage": most}});
        d.ok("branch", params);
        d.notification("session_tree");
    }
    let stats = d.ok("get_stats", json!({}));
    assert!(
        stats["cost"].is_number(),
        "what cannot be written is cut: {stats}"
    );
}

#[test]
fn a_label_on_a_user_message_stands_on_the_target() {
    let mut d = unasked();
    let result = d.ok(
        "navigate_tree",
        json!({"targetId": "u2", "label": "redo this"}),
    );
    assert_eq!(result["labelEntry"]["targetId"], "u2");
    assert_eq!(result["labelEntry"]["parentId"], "a1");
    assert_eq!(
        d.ok("get_label", json!({"entryId": "u2"}))["label"],
        "redo this"
    );
}

// --- time ---

#[test]
fn silence_proceeds_unless_told_otherwise() {
    let mut d = asked();
    let (id, event) = ask(
        &mut d,
        json!({"targetId": "a1", "answerTimeoutMs": 100, "onNoAnswer": "cancel"}),
    );
    assert_eq!(d.notification("event_resolved")["outcome"], "timeout");
    left_alone(&mut d, &id, "noAnswer");
    let error = d.err(
        "answer_event",
        json!({"eventId": event["eventId"], "result": {}}),
    );
    assert_eq!(
        (error.code, error.kind.as_str()),
        (1400, "eventNotPending"),
        "too late"
    );

    let (id, _) = ask(&mut d, json!({"targetId": "a1", "answerTimeoutMs": 100}));
    assert_eq!(d.notification("event_resolved")["outcome"], "timeout");
    assert_eq!(d.response(&id).unwrap()["newLeafId"], "a1");
    d.notification("session_tree");
}

#[test]
fn an_answer_to_nothing_is_refused() {
    let mut d = asked();
    let error = d.err(
        "answer_event",
        json!({"eventId": "no-such-event", "result": {}}),
    );
    assert_eq!((error.code, error.kind.as_str()), (1400, "eventNotPending"));
}

#[test]
fn the_same_answer_twice_gets_the_same_acknowledgement() {
    let mut d = asked();
    let (id, event) = ask(&mut d, json!({"targetId": "a1"}));
    let first = d.answer(&event, json!({"label": "x"}));
    let second = d.answer(&event, json!({"label": "x"}));
    assert_eq!(first["accepted"], true);
    assert_eq!(second["accepted"], true);
    d.response(&id).unwrap();
    d.notification("event_resolved");
    d.notification("session_tree");
    assert_eq!(lines(&d).iter().filter(|l| l["type"] == "label").count(), 1);
}

#[test]
fn more_time_can_be_asked_for() {
    let mut d = asked();
    let (id, event) = ask(
        &mut d,
        json!({"targetId": "a1", "answerTimeoutMs": 700, "onNoAnswer": "cancel"}),
    );
    let extended = d.ok(
        "answer_event",
        json!({"eventId": event["eventId"], "extendMs": 60000}),
    );
    assert_eq!(extended["accepted"], true);
    let left = extended["timeoutMs"].as_u64().expect("what is left");
    assert!((50_000..=61_000).contains(&left), "{left}");
    let extended = d.ok(
        "answer_event",
        json!({"eventId": event["eventId"], "extendMs": 86_400_000_u64}),
    );
    assert!(
        extended["timeoutMs"].as_u64().unwrap() <= 600_000,
        "at most limits.maxAnswerMs: {extended}"
    );
    std::thread::sleep(Duration::from_millis(900));
    d.still_waits(&id);
    d.answer(&event, json!({}));
    assert_eq!(d.response(&id).unwrap()["newLeafId"], "a1");
    d.notification("event_resolved");
    d.notification("session_tree");
}

// --- abort and cancel ---

#[test]
fn a_waiting_navigation_can_be_aborted() {
    for params in [json!({}), json!({"navigationId": "n1"})] {
        let mut d = asked();
        let (id, event) = ask(&mut d, json!({"targetId": "a1", "navigationId": "n1"}));
        assert_eq!(
            d.ok("abort_navigation", json!({"navigationId": "another"}))["aborted"],
            false
        );
        assert_eq!(d.ok("abort_navigation", params)["aborted"], true);
        assert_eq!(d.notification("event_resolved")["outcome"], "aborted");
        left_alone(&mut d, &id, "aborted");
        d.err_kind(
            "answer_event",
            json!({"eventId": event["eventId"], "result": {}}),
            "eventNotPending",
        );
        assert_eq!(
            d.ok("abort_navigation", json!({}))["aborted"],
            false,
            "nothing runs any more"
        );
    }
}

#[test]
fn cancel_request_in_both_spellings_and_both_forms() {
    for (method, member, as_request) in [
        ("$/cancel_request", "requestId", false),
        ("$/cancel_request", "requestId", true),
        ("$/cancelRequest", "id", false),
        ("$/cancelRequest", "id", true),
    ] {
        let mut d = asked();
        let (id, _) = ask(&mut d, json!({"targetId": "a1"}));
        let mut params = json!({});
        params[member] = id.clone();
        if as_request {
            assert_eq!(d.ok(method, params), json!({}), "{method}");
        } else {
            d.notify(method, params);
        }
        assert_eq!(
            d.notification("event_resolved")["outcome"],
            "aborted",
            "{method}"
        );
        left_alone(&mut d, &id, "aborted");
    }
}

#[test]
fn cancelling_what_does_not_run_is_ignored() {
    let mut d = unasked();
    d.notify("$/cancel_request", json!({"requestId": 424242}));
    d.notify("$/cancelRequest", json!({"id": "nobody"}));
    assert_eq!(
        d.ok("$/cancel_request", json!({"requestId": "nobody"})),
        json!({})
    );
    let id = d.send("navigate_tree", json!({"targetId": "a1"}));
    assert_eq!(d.response(&id).unwrap()["newLeafId"], "a1");
    d.notify("$/cancel_request", json!({"requestId": id}));
    assert_eq!(
        d.leaf(),
        "a1",
        "already committed: the normal result has won"
    );
}

/// A cancel or abort that came before a navigation had its session's turn was answered with an error,
/// or missed it.
#[test]
fn a_navigation_that_waits_for_its_turn_can_be_cancelled_and_aborted() {
    for (method, params) in [
        (
            "navigate_tree",
            json!({"targetId": "a1", "navigationId": "n1"}),
        ),
        ("pop", json!({})),
        ("merge_branch", json!({"tipId": "b1"})),
    ] {
        for how in ["cancel", "abort", "abort by name"] {
            let mut d = asked();
            d.ignore_bookkeeping();
            d.below(Some("a1"), "b1");
            d.set_leaf(Some("a3"));
            let file = std::fs::File::open(d.home.only_file()).unwrap();
            file.lock().unwrap();
            let waiting = d.send("append_label", json!({"targetId": "u1", "label": "x"}));
            let navigation = d.send(method, params.clone());
            let other = json!({"navigationId": "another"});
            assert_eq!(d.ok("abort_navigation", other)["aborted"], false);
            match how {
                "cancel" => {
                    d.ok("$/cancel_request", json!({"requestId": navigation}));
                }
                "abort by name" if method == "navigate_tree" => {
                    let named = json!({"navigationId": "n1"});
                    assert_eq!(d.ok("abort_navigation", named)["aborted"], true);
                }
                _ => assert_eq!(d.ok("abort_navigation", json!({}))["aborted"], true),
            }
            file.unlock().unwrap();
            d.response(&waiting).unwrap();
            let result = d.response(&navigation).unwrap();
            assert_eq!(
                (&result["cancelled"], &result["reason"]),
                (&json!(true), &json!("aborted")),
                "{method}, {how}"
            );
            assert_eq!(result["oldLeafId"], result["newLeafId"]);
        }
    }
}

#[test]
fn closing_the_session_aborts_its_navigation() {
    for method in ["close_session", "delete_session"] {
        let mut d = asked();
        let opened = d.ok("list_sessions", json!({}))["sessions"][0]["sessionId"].clone();
        let (id, _) = ask(&mut d, json!({"targetId": "a1"}));
        d.ok(method, json!({"sessionId": opened}));
        let result = d.response(&id).expect("an aborted navigation is no error");
        assert_eq!(
            (&result["cancelled"], &result["reason"]),
            (&json!(true), &json!("aborted")),
            "{method}"
        );
        assert_eq!(
            d.notification("event_resolved")["outcome"],
            "aborted",
            "{method}"
        );
    }
}

// --- two at once ---

#[test]
fn a_second_navigation_finds_the_session_busy() {
    let mut d = asked();
    let (id, event) = ask(&mut d, json!({"targetId": "a1", "navigationId": "n1"}));
    let error = d.err(
        "navigate_tree",
        json!({"targetId": "a2", "navigationId": "n2"}),
    );
    assert_eq!((error.code, error.kind.as_str()), (1101, "sessionBusy"));
    assert_eq!(
        (error.details("by"), error.details("navigationId")),
        (&json!("navigation"), &json!("n1"))
    );
    assert_eq!(
        d.err("navigate_tree", json!({"targetId": "nobody"})).kind,
        "sessionBusy",
        "the first step comes before the second"
    );
    d.answer(&event, json!({}));
    assert_eq!(d.response(&id).unwrap()["newLeafId"], "a1");
    d.notification("event_resolved");
    d.notification("session_tree");
    let (id, event) = ask(&mut d, json!({"targetId": "a2"}));
    d.answer(&event, json!({}));
    assert_eq!(d.response(&id).unwrap()["newLeafId"], "a2", "free again");
    d.notification("event_resolved");
    d.notification("session_tree");
}

#[test]
fn what_moves_the_leaf_meanwhile_lets_the_navigation_fail() {
    for (method, params, leaf) in [
        (
            "append_message",
            json!({"message": user("meanwhile"), "entryId": "u4"}),
            "u4",
        ),
        ("set_leaf", json!({"leafId": "u2"}), "u2"),
        ("branch", json!({"entryId": "u2"}), "u2"),
    ] {
        let mut d = asked();
        d.ignore("session_tree");
        let (id, event) = ask(&mut d, json!({"targetId": "a1", "summarize": true}));
        d.ok(method, params);
        assert_eq!(d.leaf(), leaf, "{method} does not wait");
        let before = lines(&d);
        d.answer(&event, json!({"summary": {"summary": "S"}}));
        let error = d.response(&id).expect_err("the leaf moved");
        assert_eq!(
            (error.code, error.kind.as_str()),
            (1201, "leafMoved"),
            "{method}"
        );
        assert_eq!(error.details("leafId"), leaf, "{method}");
        d.notification("event_resolved");
        assert_eq!(lines(&d), before, "nothing written");
        assert_eq!(d.leaf(), leaf);
    }
}

#[test]
fn labels_and_names_meanwhile_do_not_matter() {
    let mut d = asked();
    d.ignore("session_info_changed");
    let (id, event) = ask(&mut d, json!({"targetId": "a1"}));
    d.ok("append_label", json!({"targetId": "u1", "label": "x"}));
    let left = d.ok("set_session_name", json!({"name": "n"}))["leafId"].clone();
    d.answer(&event, json!({}));
    let result = d.response(&id).unwrap();
    d.notification("event_resolved");
    let told = d.notification("session_tree");
    for moved in [&result, &told] {
        assert_eq!(
            (&moved["oldLeafId"], &moved["newLeafId"]),
            (&left, &json!("a1")),
            "{moved}"
        );
    }
    assert_eq!(d.leaf(), "a1");
    d.ok("undo_navigation", json!({}));
    d.notification("session_tree");
    assert_eq!(d.leaf(), left);
}

#[test]
fn other_sessions_are_not_held_up() {
    let mut d = asked();
    let first = d.ok("list_sessions", json!({}))["sessions"][0]["sessionId"].clone();
    let (id, event) = ask(&mut d, json!({"targetId": "a1"}));
    let second = d.create();
    d.ok(
        "append_message",
        json!({"sessionId": second, "message": user("x"), "entryId": "x1"}),
    );
    assert_eq!(
        d.ok("get_leaf", json!({"sessionId": second}))["leafId"],
        "x1"
    );
    d.answer(&event, json!({}));
    d.response(&id).unwrap();
    d.notification("event_resolved");
    assert_eq!(d.notification("session_tree")["sessionId"], first);
}

// --- outline ---

#[test]
fn outline_writes_a_summary_in_the_right_place() {
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
    assert!(
        summary.get("fromHook").is_none_or(|v| v == &json!(false)),
        "{summary}"
    );
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
fn who_wants_no_deltas_hears_how_far_the_summary_is() {
    let mut d = Daemon::start_with(&["--summarizer", "outline"], &[]);
    d.ignore_bookkeeping();
    d.init(json!({"progress": {}}));
    d.create();
    d.chain(&CONVERSATION);
    let params = json!({"targetId": "a1", "summarize": true, "navigationId": "n1"});
    let summary = d.ok("navigate_tree", params)["summaryEntry"]["summary"].clone();
    let progress = d.heard("progress");
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
    assert_eq!(once(), once());
}

#[test]
fn a_clients_answer_comes_before_the_summarizer() {
    let mut d = asked_with(&["--summarizer", "outline"]);
    let (id, event) = ask(&mut d, json!({"targetId": "a1", "summarize": true}));
    d.answer(&event, json!({"summary": {"summary": "mine"}}));
    assert_eq!(d.response(&id).unwrap()["summaryEntry"]["summary"], "mine");
    d.notification("event_resolved");
    d.notification("session_tree");
    let (id, event) = ask(&mut d, json!({"targetId": "a3", "summarize": true}));
    d.answer(&event, json!({"customInstructions": "about the end"}));
    d.notification("event_resolved");
    d.notification("session_tree");
    let summary = d.response(&id).unwrap()["summaryEntry"].clone();
    assert_ne!(summary["summary"], "mine");
    assert!(
        summary.get("fromHook").is_none_or(|v| v == &json!(false)),
        "an override is not a summary: {summary}"
    );
}

#[test]
fn labels_and_settings_alone_are_not_worth_a_summary() {
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
    assert!(
        result.get("summaryEntry").is_none_or(Json::is_null),
        "{result}"
    );
    assert_eq!(result["newLeafId"], "a3", "the move happens");
    assert_eq!(d.leaf(), "a3");
}

#[test]
fn a_compaction_that_is_left_alone_is_worth_a_summary_of_its_own() {
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

// --- what is told, and when ---

#[test]
fn messages_come_in_the_documented_order() {
    let mut d = Daemon::start_with(&["--summarizer", "outline"], &[]);
    d.ignore("session_opened");
    d.ignore("session_closed");
    d.ignore("summary_delta");
    d.ignore("progress");
    d.init(json!({"answers": {"session_before_tree": {}}, "summaryDeltas": {}, "progress": {}}));
    d.create();
    d.chain(&CONVERSATION);
    for _ in CONVERSATION {
        d.notification("entries_appended");
    }
    d.forget_order();
    let (id, event) = ask(
        &mut d,
        json!({"targetId": "a1", "summarize": true, "label": "x", "navigationId": "n1"}),
    );
    d.answer(&event, json!({}));
    let result = d.response(&id).unwrap();
    assert_eq!(d.notification("event_resolved")["navigationId"], "n1");
    let appended = d.notification("entries_appended");
    assert_eq!(
        appended["entryIds"],
        json!([result["summaryEntry"]["id"], result["labelEntry"]["id"]]),
        "both in one announcement, as in one write"
    );
    let told = d.notification("session_tree");
    assert_eq!(
        (&told["navigationId"], &told["cause"]),
        (&json!("n1"), &json!("navigate_tree"))
    );
    let order: Vec<_> = d
        .order()
        .iter()
        .map(String::as_str)
        .filter(|name| !["=answer_event", "summary_delta", "progress"].contains(name))
        .collect();
    assert_eq!(
        order,
        [
            "session_before_tree",
            "event_resolved",
            "entries_appended",
            "session_tree",
            "=navigate_tree"
        ]
    );
}

#[test]
fn what_is_told_is_on_disk_already() {
    let mut d = unasked();
    d.forget_order();
    let path = d.home.only_file();
    d.send_as(json!("n"), "navigate_tree", json!({"targetId": "a1"}));
    d.notification("session_tree");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("treelined.leaf"), "persist, then notify");
    d.response(&json!("n")).unwrap();
}

#[test]
fn a_question_too_large_for_the_client_names_ids_only() {
    let mut d = Daemon::start();
    d.ignore_bookkeeping();
    d.ignore("event_resolved");
    d.init(json!({"answers": {"session_before_tree": {}}, "maxFrameBytes": 65536}));
    d.create();
    d.chain(&["u1", "a1"]);
    d.user("u2", &"w".repeat(50_000));
    d.user("u3", &"w".repeat(50_000));
    let (id, event) = ask(&mut d, json!({"targetId": "a1", "summarize": true}));
    let preparation = &event["preparation"];
    assert_eq!(preparation["truncated"], true);
    assert_eq!(preparation["entryIds"], json!(["u2", "u3"]));
    assert!(
        preparation.get("entriesToSummarize").is_none(),
        "{}",
        shorten(&preparation.to_string())
    );
    d.answer(&event, json!({"cancel": true}));
    d.response(&id).unwrap();
}

#[test]
fn a_large_question_without_a_summary_names_ids_only() {
    let mut d = unasked();
    d.user("u4", &"w".repeat(1_200_000));
    d.ok("navigate_tree", json!({"targetId": "a1"}));
    let event = d.notification("session_before_tree");
    assert_eq!(event["preparation"]["truncated"], true);
    assert_eq!(
        event["preparation"]["entryIds"],
        json!(["u2", "a2", "u3", "a3", "u4"])
    );
}

#[test]
fn the_primitives_move_without_asking() {
    let mut d = asked();
    let result = d.set_leaf(Some("a1"));
    assert_eq!(
        (&result["oldLeafId"], &result["newLeafId"]),
        (&json!("a3"), &json!("a1"))
    );
    let told = d.notification("session_tree");
    assert_eq!(
        (&told["oldLeafId"], &told["newLeafId"], &told["cause"]),
        (&json!("a3"), &json!("a1"), &json!("set_leaf"))
    );
    let result = d.ok("branch", json!({"entryId": "a2"}));
    assert_eq!(
        (&result["oldLeafId"], &result["newLeafId"]),
        (&json!("a1"), &json!("a2"))
    );
    assert_eq!(d.notification("session_tree")["cause"], "branch");

    let result = d.ok(
        "branch",
        json!({"entryId": "u1", "summary": {"summary": "S", "details": {"k": 1}}}),
    );
    let summary = &result["summaryEntry"];
    assert_eq!(
        (&summary["parentId"], &summary["fromId"]),
        (&json!("u1"), &json!("a2"))
    );
    assert_eq!(
        (&summary["summary"], &summary["details"]),
        (&json!("S"), &json!({"k": 1}))
    );
    assert_eq!(result["newLeafId"], summary["id"]);
    assert_eq!(d.notification("session_tree")["newLeafId"], summary["id"]);

    let before = lines(&d);
    let leaf = d.leaf();
    let result = d.set_leaf(leaf.as_str());
    assert_eq!(result["oldLeafId"], result["newLeafId"]);
    d.ok("branch", json!({"entryId": leaf}));
    assert_eq!(
        lines(&d),
        before,
        "to where the leaf stands: nothing written, nothing said"
    );

    let error = d.err_kind("branch", json!({"entryId": null}), "invalidParams");
    assert_eq!(error.details("field"), "entryId");
    d.err_kind(
        "branch",
        json!({"summary": {"summary": "S"}}),
        "invalidParams",
    );
    d.err_kind("branch", json!({"entryId": "nobody"}), "entryNotFound");
    d.err_kind("set_leaf", json!({"leafId": "nobody"}), "entryNotFound");
    d.set_leaf(None);
    assert_eq!(d.notification("session_tree")["newLeafId"], Json::Null);
}
