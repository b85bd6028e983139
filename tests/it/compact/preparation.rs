//! Which entries are summarized, which are kept, and which entry is written.

use super::*;

#[test]
fn the_preparation_lists_summarized_and_kept_entries() {
    let mut d = unasked();
    d.create();
    talk(&mut d);
    let preparation = prepare(&mut d, 200);
    assert_eq!(preparation["firstKeptEntryId"], "u4");
    assert_eq!(
        ids(&preparation["entriesToSummarize"]),
        ["u1", "a1", "u2", "a2", "u3", "a3"]
    );
    assert_eq!(preparation["entriesToSummarize"][0], d.entry("u1"));
    assert_eq!(preparation["isSplitTurn"], false);
    assert!(preparation.get("turnPrefix").is_none());
    assert!(preparation.get("previousSummary").is_none());
    assert_eq!(preparation["previousCompactions"], json!([]));
    assert_eq!(
        preparation["fileOps"],
        json!({"readFiles": [], "modifiedFiles": []})
    );
    // The provider reported these tokens with the last answer: 1 + 2 + 3 + 4.
    assert_eq!(preparation["tokensBefore"], 10);
}

#[test]
fn a_turn_that_is_cut_has_its_prefix_summarized_apart() {
    let mut d = unasked();
    d.create();
    talk(&mut d);
    let preparation = prepare(&mut d, 100);
    assert_eq!(preparation["firstKeptEntryId"], "a4");
    assert_eq!(preparation["isSplitTurn"], true);
    assert_eq!(ids(&preparation["turnPrefix"]), ["u4"]);
    assert_eq!(
        ids(&preparation["entriesToSummarize"]),
        ["u1", "a1", "u2", "a2", "u3", "a3"]
    );
    d.ok("compact", json!({"keepRecentTokens": 100}));
    let entry = d.notification("session_compact")["compactionEntry"].clone();
    let summary = entry["summary"].as_str().unwrap();
    let (history, turn) = summary.split_once("\n---\n").expect("two summaries");
    assert!(history.contains("Asked since"), "{history}");
    assert!(turn.contains("The turn in progress"), "{turn}");
}

#[test]
fn the_cut_never_separates_a_call_from_its_result() {
    let mut d = unasked();
    d.create();
    talk(&mut d);
    calling(&mut d, "c1", &["k1", "k2"]);
    answered(&mut d, "r1", "k1", 4000);
    d.user("u5", "meanwhile");
    answered(&mut d, "r2", "k2", 4000);
    d.assistant("a5", "done");
    for (keep, kept) in [
        (1, "a5"),
        (10, "a5"),
        (1003, "a5"),
        (2010, "c1"),
        (2100, "a4"),
    ] {
        assert_eq!(
            prepare(&mut d, keep)["firstKeptEntryId"],
            kept,
            "keeping {keep}"
        );
    }
    let preparation = prepare(&mut d, 10);
    assert_eq!(
        preparation["fileOps"]["readFiles"],
        json!(["k1.rs", "k2.rs"])
    );
}

#[test]
fn a_short_context_is_nothing_to_compact() {
    let mut d = unasked();
    d.create();
    d.err_kind("prepare_compaction", json!({}), "nothingToCompact");
    talk(&mut d);
    d.err_kind("prepare_compaction", json!({}), "nothingToCompact");
    d.err_kind("compact", json!({}), "nothingToCompact");
    let failed = d.notification("session_compact_failed");
    assert_eq!(failed["reason"], "manual");
    assert_eq!(failed["error"]["data"]["kind"], "nothingToCompact");
    assert_eq!(failed["error"]["code"], 1302);
}

#[test]
fn compacting_appends_one_entry_and_the_context_is_its_summary_and_the_kept_entries() {
    let mut d = unasked();
    d.create();
    talk(&mut d);
    let before = std::fs::read(d.home.only_file()).unwrap();
    let result = d.ok(
        "compact",
        json!({"keepRecentTokens": 200, "customInstructions": "mind the names"}),
    );
    let entry = &result["compactionEntry"];
    assert_eq!(d.notification("session_compact")["compactionEntry"], *entry);
    assert_eq!(entry["type"], "compaction");
    assert_eq!(entry["parentId"], "a4");
    assert_eq!(entry["firstKeptEntryId"], "u4");
    assert_eq!(entry["tokensBefore"], 10);
    assert_eq!(
        entry["details"],
        json!({"readFiles": [], "modifiedFiles": []})
    );
    assert!(entry.get("fromHook").is_none(), "{entry}");
    let summary = entry["summary"].as_str().unwrap();
    assert!(summary.contains("mind the names"), "{summary}");
    assert!(
        summary.starts_with("## Goal"),
        "no sentence of a branch: {summary}"
    );
    assert_eq!(d.leaf(), entry["id"]);

    let after = std::fs::read(d.home.only_file()).unwrap();
    assert!(after.starts_with(&before), "no line is ever rewritten");
    assert_eq!(file_lines(&d.home.only_file()).len(), 10);

    let id = entry["id"].as_str().unwrap();
    assert_eq!(context_ids(&mut d), [id, "u4", "a4"]);
    let context = d.ok("get_context", json!({}));
    assert_eq!(context["messages"][0]["role"], "compactionSummary");
    assert_eq!(context["messages"][0]["summary"], entry["summary"]);
    // The provider's count in a4 is about the context before the compaction.
    let stats = d.ok("get_stats", json!({}));
    let estimated = summary.chars().count().div_ceil(4) + 200;
    assert_eq!(stats["contextTokens"], estimated);
}

#[test]
fn a_previous_compaction_is_updated_with_what_it_kept() {
    let mut d = unasked();
    d.create();
    talk(&mut d);
    calling(&mut d, "c1", &["early"]);
    answered(&mut d, "r1", "early", 40);
    let first = d.ok("compact", json!({"keepRecentTokens": 1}))["compactionEntry"].clone();
    d.notification("session_compact");
    assert_eq!(first["firstKeptEntryId"], "c1");
    d.err_kind(
        "compact",
        json!({"keepRecentTokens": 1}),
        "nothingToCompact",
    );
    d.notification("session_compact_failed");

    d.user("u5", &"x".repeat(400));
    d.assistant("a5", &"y".repeat(400));
    let preparation = prepare(&mut d, 100);
    assert_eq!(preparation["previousSummary"], first["summary"]);
    assert_eq!(preparation["previousCompactions"], json!([first["id"]]));
    assert_eq!(ids(&preparation["entriesToSummarize"]), ["c1", "r1"]);
    assert_eq!(ids(&preparation["turnPrefix"]), ["u5"]);
    assert_eq!(preparation["fileOps"]["readFiles"], json!(["early.rs"]));

    let second = d.ok("compact", json!({"keepRecentTokens": 100}))["compactionEntry"].clone();
    d.notification("session_compact");
    assert_eq!(second["details"]["readFiles"], json!(["early.rs"]));
    let summary = second["summary"].as_str().unwrap();
    assert_eq!(summary.matches("<read-files>").count(), 1, "{summary}");
    let id = second["id"].as_str().unwrap();
    assert_eq!(context_ids(&mut d), [id, "a5"]);
    let preparation_of_third = {
        d.user("u6", &"x".repeat(400));
        prepare(&mut d, 100)
    };
    assert_eq!(
        preparation_of_third["previousCompactions"],
        json!([second["id"], first["id"]]),
        "newest first"
    );
    assert_eq!(
        preparation_of_third["fileOps"]["readFiles"],
        json!(["early.rs"]),
        "from the details of the compaction before"
    );
}

#[test]
fn entries_are_summarized_as_edited_and_left_out_ones_are_not() {
    let mut d = unasked();
    d.create();
    talk(&mut d);
    d.ok(
        "append_entries",
        json!({"entries": [
            {"type": "context_edit", "targetId": "u1", "replacement": null},
            {"type": "context_edit", "targetId": "a1", "replacement": {"content": "edited"}},
        ]}),
    );
    let preparation = prepare(&mut d, 200);
    assert_eq!(
        ids(&preparation["entriesToSummarize"]),
        ["a1", "u2", "a2", "u3", "a3"]
    );
    assert_eq!(
        preparation["entriesToSummarize"][0]["message"]["content"],
        json!([{"type": "text", "text": "edited"}])
    );
    // Counts from before an edit are not used. The estimate is 6 × 100, and 2 for "edited".
    assert_eq!(preparation["tokensBefore"], 602);
}

#[test]
fn the_system_message_in_force_is_kept() {
    let mut d = unasked();
    d.create();
    let system = json!({"role": "system", "content": "be kind", "timestamp": 1});
    d.ok(
        "append_message",
        json!({"message": system, "entryId": "s1"}),
    );
    talk(&mut d);
    let entry = d.ok("compact", json!({"keepRecentTokens": 200}))["compactionEntry"].clone();
    d.notification("session_compact");
    assert_eq!(entry["systemMessage"], system);
    let context = d.ok("get_context", json!({}));
    assert_eq!(context["messages"][0], system);
    assert_eq!(context["messages"][1]["role"], "compactionSummary");
}
