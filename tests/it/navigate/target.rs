//! The new leaf for each kind of target, and the preparation.

use super::*;

#[test]
fn to_an_assistant_message_the_new_leaf_is_that_message() {
    let mut d = unasked();
    let result = d.ok("navigate_tree", json!({"targetId": "a1"}));
    assert_eq!(result["cancelled"], false);
    assert_eq!(
        (&result["oldLeafId"], &result["newLeafId"]),
        (&json!("a3"), &json!("a1"))
    );
    for member in ["editorText", "summaryEntry", "labelEntry", "reason"] {
        assert!(result.get(member).is_none(), "{member} of {result}");
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
fn to_a_user_message_the_new_leaf_is_its_parent_and_its_text_is_returned() {
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
fn images_of_the_target_are_returned_for_the_editor() {
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
fn a_custom_message_is_a_target_like_a_user_message() {
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
fn a_navigation_to_the_leaf_changes_nothing() {
    let mut d = asked();
    for _ in 0..2 {
        let result = d.ok(
            "navigate_tree",
            json!({"targetId": "a3", "summarize": true}),
        );
        assert_eq!(result["cancelled"], false, "{result}");
        assert_eq!(result["reason"], "alreadyThere", "{result}");
        // In the second round a label and a name are between the target and the leaf.
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
    // No events are sent. The harness fails at an unclaimed notification.
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
fn a_new_leaf_equal_to_the_old_one_writes_no_record() {
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
fn a_summary_without_summarizer_and_client_is_refused_at_once() {
    let mut d = Daemon::start_with(&["--summarizer", "none"], &[]);
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
    // No `session_before_tree` is sent. The harness fails at an unclaimed notification.
}

#[test]
fn the_preparation_describes_the_abandoned_branch() {
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

// Clients once offered "Summarize" where no summarizer was configured, and the person got an error.
#[test]
fn a_dry_run_says_whether_a_summary_can_be_had() {
    let none = ["--summarizer", "none"];
    let can = |mut d: Daemon| {
        let dry = d.ok("navigate_tree", json!({"targetId": "a1", "dryRun": true}));
        dry["canSummarize"].clone()
    };
    assert_eq!(can(unasked()), true);
    assert_eq!(can(asked_with(&none)), true, "the client may write one");
    let mut d = Daemon::start_with(&none, &[]);
    d.ignore_bookkeeping();
    d.create();
    d.chain(&CONVERSATION);
    let dry = d.ok("pop", json!({"dryRun": true}));
    assert_eq!(dry["canSummarize"], false);
    assert_eq!(can(d), false);
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
fn entries_to_summarize_begin_after_the_nearest_compaction_and_its_summary_is_passed_on() {
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
        preparation.get("previousSummary").is_none(),
        "the ancestor came first: {preparation}"
    );
}

#[test]
fn a_large_preparation_holds_ids_only() {
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
fn a_preparation_larger_than_the_client_reads_holds_ids_only() {
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
fn set_leaf_and_branch_ask_no_question() {
    let mut d = asked();
    let result = d.set_leaf(Some("a1"));
    assert_eq!(
        (&result["oldLeafId"], &result["newLeafId"]),
        (&json!("a3"), &json!("a1"))
    );
    let announced = d.notification("session_tree");
    assert_eq!(
        (
            &announced["oldLeafId"],
            &announced["newLeafId"],
            &announced["cause"]
        ),
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
        "a move to the leaf writes and announces nothing"
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
