//! The label that a navigation adds: which entry it names, where it is appended, and how it is normalized. Also the
//! summaries that `branch` appends.

use super::*;

#[test]
fn a_label_is_set_on_the_summary_or_else_on_the_target() {
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

/// The label of a navigation to the leaf itself was once lost without an error.
#[test]
fn a_label_for_a_navigation_to_the_leaf_is_appended_at_the_leaf() {
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
        // The label of the first round is an entry between the target and the leaf.
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
    // No question and no `session_tree` is sent. The harness fails at an unclaimed notification.
}

/// A label was once stored as it was typed, and `get_tree` drew its line breaks.
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

#[test]
fn a_label_of_a_navigation_to_a_user_message_names_that_message() {
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

/// `branch` could once not append a summary before the first entry, and no document said whether it appends one at the
/// leaf itself.
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
    let announced = d.notification("session_tree");
    assert_eq!(
        (&announced["cause"], &announced["fromHook"]),
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
    let announced = d.notification("session_tree");
    assert!(
        announced.get("fromHook").is_none(),
        "no summary: {announced}"
    );
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
