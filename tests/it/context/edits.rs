//! `context_edit` entries.

use super::*;

#[test]
fn an_edit_replaces_or_leaves_out_and_the_latest_wins() {
    let log = plain()
        .entry("context_edit", "e1", "a2", json!({"targetId": "u1", "replacement": null}))
        .entry("context_edit", "e2", "e1", json!({"targetId": "a1", "replacement": {"content": [{"type": "text", "text": "edited"}]}}))
        .entry("context_edit", "e3", "e2", json!({"targetId": "u1", "replacement": {"content": "back, changed"}}));
    check(
        &log,
        "e1",
        &["assistant: two", "user: three", "assistant: four"],
    );
    check(
        &log,
        "e2",
        &["assistant: edited", "user: three", "assistant: four"],
    );
    check(
        &log,
        "e3",
        &[
            "user: back, changed",
            "assistant: edited",
            "user: three",
            "assistant: four",
        ],
    );
    check(
        &log,
        "a2",
        &[
            "user: one",
            "assistant: two",
            "user: three",
            "assistant: four",
        ],
    );
    let mut d = opened(&log);
    let edited = &messages(&mut d, json!({}))[1];
    assert_eq!(
        (&edited["model"], &edited["role"]),
        (&json!("mod"), &json!("assistant")),
        "only the content changes"
    );
}

#[test]
fn an_edit_on_another_branch_does_not_count() {
    let log = plain()
        .entry(
            "context_edit",
            "e1",
            "a1",
            json!({"targetId": "u1", "replacement": null}),
        )
        .user("u9", "a2", "five");
    check(
        &log,
        "",
        &[
            "user: one",
            "assistant: two",
            "user: three",
            "assistant: four",
            "user: five",
        ],
    );
}

/// An edit of an entry that is not a message of the context once changed nothing and still succeeded.
#[test]
fn an_edit_must_name_a_message_of_its_own_context() {
    let log = plain()
        .entry(
            "thinking_level_change",
            "t1",
            "a2",
            json!({"thinkingLevel": "high"}),
        )
        .entry(
            "branch_summary",
            "b0",
            "t1",
            json!({"fromId": "gone", "summary": ""}),
        )
        .entry(
            "compaction",
            "k1",
            "b0",
            json!({"summary": "K", "firstKeptEntryId": "a1", "tokensBefore": 9}),
        )
        .user("u3", "k1", "five")
        .user("u9", "a1", "aside")
        .user("u4", "u3", "six");
    let mut d = opened(&log);
    let edit = |target: &str, parent: &str| json!({"entries": [{"type": "context_edit", "targetId": target, "parentId": parent, "replacement": null}]});
    for (target, parent) in [
        ("t1", "u4"),
        ("b0", "t1"),
        ("b0", "b0"),
        // The compaction does not keep this entry.
        ("u1", "u4"),
        // These two entries are on another branch and below the compaction.
        ("u9", "u4"),
        ("u4", "u3"),
    ] {
        let error = d.err_kind("append_entries", edit(target, parent), "entryInvalid");
        assert_eq!(error.details("index"), 0, "{target} below {parent}");
        assert_eq!(
            error.details("field"),
            "targetId",
            "{target} below {parent}"
        );
    }
    d.err_kind("append_entries", edit("nobody", "u4"), "entryNotFound");
    for (target, parent) in [
        ("u4", "u4"),
        ("a1", "u4"),
        ("k1", "u3"),
        ("u1", "a2"),
        ("u9", "u9"),
    ] {
        d.ok("append_entries", edit(target, parent));
    }
}

#[test]
fn an_edit_may_name_an_entry_of_its_own_batch_that_is_on_its_path() {
    let mut d = opened(&plain());
    let message = |id: &str| json!({"type": "message", "id": id, "message": user(id)});
    let edit = |target: &str| json!({"type": "context_edit", "targetId": target, "replacement": {"content": "edited"}});
    let compaction = |first: Json| json!({"type": "compaction", "summary": "s", "firstKeptEntryId": first, "tokensBefore": 1});
    d.ok(
        "append_entries",
        json!({"entries": [message("n1"), message("n2"), compaction(json!("n2")), edit("n2")]}),
    );
    let refused = json!([
        message("n3"),
        message("n4"),
        compaction(json!("n4")),
        edit("n3")
    ]);
    let error = d.err_kind(
        "append_entries",
        json!({"entries": refused}),
        "entryInvalid",
    );
    assert_eq!(error.details("index"), 3);
    let refused = json!([message("n3"), compaction(Json::Null), edit("n3")]);
    d.err_kind(
        "append_entries",
        json!({"entries": refused}),
        "entryInvalid",
    );
    // The requests are written together, and each one sees the entries of the earlier ones.
    let sent: Vec<_> = ["n5", "n6"]
        .iter()
        .map(|id| d.send("append_entries", json!({"entries": [message(id)]})))
        .collect();
    let edited = d.send("append_entries", json!({"entries": [edit("n5")]}));
    for id in sent.iter().chain([&edited]) {
        d.response(id).unwrap();
    }
}
