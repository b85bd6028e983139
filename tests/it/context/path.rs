//! Which entries are in the context: the path, settings, compactions.

use super::*;

#[test]
fn the_context_is_the_path() {
    check(
        &plain(),
        "",
        &[
            "user: one",
            "assistant: two",
            "user: three",
            "assistant: four",
        ],
    );
    check(&plain(), "a1", &["user: one", "assistant: two"]);
    let mut d = opened(&plain().user("u3", "a1", "aside"));
    let context = d.ok("get_context", json!({}));
    assert_eq!(context["entryIds"], json!(["u1", "a1", "u3"]));
    assert_eq!(
        context["messages"][1],
        assistant("two"),
        "messages as stored"
    );
    d.err_kind("get_context", json!({"leafId": "nobody"}), "entryNotFound");
}

#[test]
fn the_context_of_no_leaf_is_empty() {
    let mut d = opened(&plain());
    d.set_leaf(None);
    let context = d.ok("get_context", json!({}));
    assert_eq!(
        (&context["messages"], &context["entryIds"]),
        (&json!([]), &json!([]))
    );
    assert_eq!(
        (&context["thinkingLevel"], &context["model"]),
        (&json!("off"), &Json::Null)
    );
}

#[test]
fn settings_are_the_last_on_the_path() {
    let log = Log::new("s1")
        .user("u1", "", "one")
        .entry(
            "model_change",
            "m1",
            "u1",
            json!({"provider": "p1", "modelId": "m1"}),
        )
        .entry(
            "thinking_level_change",
            "t1",
            "m1",
            json!({"thinkingLevel": "low"}),
        )
        .assistant("a1", "t1", "two")
        .entry(
            "thinking_level_change",
            "t2",
            "a1",
            json!({"thinkingLevel": "high"}),
        )
        .entry(
            "model_change",
            "m2",
            "t2",
            json!({"provider": "p2", "modelId": "m2"}),
        );
    let mut d = opened(&log);
    for (leaf, level, model) in [
        ("u1", "off", Json::Null),
        ("m1", "off", json!({"provider": "p1", "modelId": "m1"})),
        ("t1", "low", json!({"provider": "p1", "modelId": "m1"})),
        ("a1", "low", json!({"provider": "prov", "modelId": "mod"})),
        ("t2", "high", json!({"provider": "prov", "modelId": "mod"})),
        ("m2", "high", json!({"provider": "p2", "modelId": "m2"})),
    ] {
        let context = d.ok("get_context", json!({"leafId": leaf}));
        assert_eq!(
            (&context["thinkingLevel"], &context["model"]),
            (&json!(level), &model),
            "at {leaf}"
        );
    }
}

#[test]
fn bookkeeping_is_not_a_message() {
    let log = plain()
        .label("l1", "a2", "u1", json!("x"))
        .entry("custom", "c1", "l1", json!({"customType": "x", "data": {}}))
        .entry("session_info", "i1", "c1", json!({"name": "x"}))
        .entry(
            "usage",
            "g1",
            "i1",
            json!({"kind": "k", "provider": "p", "model": "m", "usage": {}}),
        )
        .entry("never_heard_of", "n1", "g1", json!({"content": "x"}));
    check(
        &log,
        "",
        &[
            "user: one",
            "assistant: two",
            "user: three",
            "assistant: four",
        ],
    );
}

#[test]
fn a_compaction_comes_first_then_kept_entries_then_later_ones() {
    check(
        &compacted("u2"),
        "",
        &[
            "compactionSummary: SUM",
            "user: three",
            "assistant: four",
            "user: five",
        ],
    );
    check(
        &compacted("u2"),
        "a2",
        &[
            "user: one",
            "assistant: two",
            "user: three",
            "assistant: four",
        ],
    );
    let mut d = opened(&compacted("u2"));
    let context = d.ok("get_context", json!({}));
    let summary = &context["messages"][0];
    assert_eq!(
        (&summary["tokensBefore"], &summary["timestamp"]),
        (&json!(99), &json!(stamp_ms(5)))
    );
    assert_eq!(context["entryIds"], json!(["k1", "u2", "a2", "u3"]));
}

#[test]
fn a_compaction_keeps_nothing_from_its_own_id_or_off_the_path() {
    check(
        &compacted("k1"),
        "",
        &["compactionSummary: SUM", "user: five"],
    );
    check(
        &compacted("nobody"),
        "",
        &["compactionSummary: SUM", "user: five"],
    );
    let off_path = Log::new("s1")
        .user("u1", "", "one")
        .user("side", "u1", "aside")
        .assistant("a1", "u1", "two")
        .entry(
            "compaction",
            "k1",
            "a1",
            json!({"summary": "SUM", "firstKeptEntryId": "side", "tokensBefore": 1}),
        );
    check(&off_path, "", &["compactionSummary: SUM"]);
}

#[test]
fn only_the_latest_compaction_counts() {
    let log = compacted("u2")
        .assistant("a3", "u3", "six")
        .entry(
            "compaction",
            "k2",
            "a3",
            json!({"summary": "SUM2", "firstKeptEntryId": "a2", "tokensBefore": 1}),
        )
        .user("u4", "k2", "seven");
    check(
        &log,
        "",
        &[
            "compactionSummary: SUM2",
            "assistant: four",
            "user: five",
            "assistant: six",
            "user: seven",
        ],
    );
}

#[test]
fn a_compaction_brings_its_system_message_and_leaves_kept_ones_out() {
    let log = Log::new("s1")
        .message(
            "s0",
            "",
            json!({"role": "system", "content": "old system", "timestamp": 1}),
        )
        .user("u1", "s0", "one")
        .message(
            "s2",
            "u1",
            json!({"role": "system", "content": "kept system", "timestamp": 1}),
        )
        .assistant("a1", "s2", "two")
        .entry(
            "compaction",
            "k1",
            "a1",
            json!({
                "summary": "SUM", "firstKeptEntryId": "u1", "tokensBefore": 1,
                "systemMessage": {"role": "system", "content": "checkpoint", "timestamp": 2},
            }),
        )
        .user("u2", "k1", "three");
    check(
        &log,
        "",
        &[
            "system: checkpoint",
            "compactionSummary: SUM",
            "user: one",
            "assistant: two",
            "user: three",
        ],
    );
    check(
        &log,
        "a1",
        &[
            "system: old system",
            "user: one",
            "system: kept system",
            "assistant: two",
        ],
    );
    let mut d = opened(&log);
    let llm = messages(&mut d, json!({"format": "llm"}));
    assert_eq!(
        (&llm[0]["role"], &llm[1]["role"]),
        (&json!("system"), &json!("user"))
    );
}
