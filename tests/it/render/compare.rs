//! `compare_branches`, and the sums of `get_stats` for parts of a session.

use super::*;

fn answer(model: &str, input: u64, content: Json) -> Json {
    json!({
        "role": "assistant", "content": content, "provider": "p", "model": model, "stopReason": "stop",
        "usage": {"input": input, "output": 1, "cacheRead": 0, "cacheWrite": 0, "cost": {"total": 0.5}},
    })
}

/// `u1 → a1`, below it `u2 → a2` and `a3`, and another root.
fn forked() -> Log {
    let edit = json!([
        tool_call("k", "edit", json!({"path": "b.rs"})),
        tool_call("l", "read", json!({"path": "a.rs"}))
    ]);
    Log::new("s1")
        .user("u1", "", "one")
        .message("a1", "u1", answer("m", 1, json!("two")))
        .user("u2", "a1", "three")
        .message("a2", "u2", answer("m", 10, edit))
        .message("a3", "a1", answer("n", 100, json!("four")))
        .user("v1", "", "elsewhere")
}

#[test]
fn branches_are_compared_below_their_common_ancestor() {
    let mut d = opened(&forked());
    let found = d.ok("compare_branches", json!({"a": "a2", "b": "a3"}));
    assert_eq!(found["ancestorId"], "a1");
    assert_eq!(found["a"]["entryIds"], json!(["u2", "a2"]));
    assert_eq!(found["b"]["entryIds"], json!(["a3"]));
    let files = json!({"readFiles": ["a.rs"], "modifiedFiles": ["b.rs"]});
    assert_eq!(found["a"]["files"], files);
    assert_eq!(
        found["b"]["files"],
        json!({"readFiles": [], "modifiedFiles": []})
    );
    let stats = &found["a"]["stats"];
    assert_eq!(
        stats["messages"],
        json!({"assistant": 1, "user": 1}),
        "{stats}"
    );
    assert_eq!(
        (&stats["toolCalls"], &stats["cost"]),
        (&json!(2), &json!(0.5))
    );
    assert_eq!(stats["tokens"]["input"], 10);
    assert_eq!(stats["activeMs"], 1000, "{stats}");
    assert_eq!(
        (&stats["startedAt"], &stats["endedAt"]),
        (&json!(stamp(3)), &json!(stamp(4)))
    );
    assert_eq!(found["b"]["stats"]["tokens"]["input"], 100);
    let other = d.ok("compare_branches", json!({"a": "a2", "b": "v1"}));
    assert_eq!(other["ancestorId"], Json::Null);
    assert_eq!(other["a"]["entryIds"], json!(["u1", "a1", "u2", "a2"]));
    assert_eq!(other["b"]["entryIds"], json!(["v1"]));
}

#[test]
fn the_ancestor_may_be_one_of_the_two() {
    let mut d = opened(&forked());
    let found = d.ok("compare_branches", json!({"a": "u1", "b": "a2"}));
    assert_eq!(found["ancestorId"], "u1");
    assert_eq!(found["a"]["entryIds"], json!([]));
    assert_eq!(found["a"]["stats"]["messages"], json!({}));
    assert_eq!(found["a"]["stats"].get("startedAt"), None);
    assert_eq!(found["b"]["entryIds"], json!(["a1", "u2", "a2"]));
    let same = d.ok("compare_branches", json!({"a": "a2", "b": "a2"}));
    assert_eq!(same["ancestorId"], "a2");
    assert_eq!(
        (&same["a"]["entryIds"], &same["b"]["entryIds"]),
        (&json!([]), &json!([]))
    );
}

#[test]
fn unknown_ids_are_refused() {
    let mut d = opened(&forked());
    d.err_kind(
        "compare_branches",
        json!({"a": "a2", "b": "nobody"}),
        "entryNotFound",
    );
    d.err_kind(
        "compare_branches",
        json!({"a": "", "b": "a2"}),
        "entryNotFound",
    );
    d.err_kind("compare_branches", json!({"a": "a2"}), "invalidParams");
    d.err_kind("get_stats", json!({"leafId": "nobody"}), "entryNotFound");
    d.err_kind("get_stats", json!({"since": "nobody"}), "entryNotFound");
}

#[test]
fn stats_count_the_session_a_path_or_a_part_of_it() {
    let mut d = opened(&forked());
    let mut input = |params: Json| {
        let stats = d.ok("get_stats", params);
        (
            stats["tokens"]["input"].as_u64().unwrap(),
            stats["messages"]["user"].as_u64().unwrap_or(0),
        )
    };
    assert_eq!(input(json!({})), (111, 3));
    assert_eq!(input(json!({"leafId": "a2"})), (11, 2));
    assert_eq!(input(json!({"leafId": "a3"})), (101, 1));
    assert_eq!(input(json!({"leafId": "a2", "since": "a1"})), (10, 1));
    assert_eq!(input(json!({"leafId": "a2", "since": "a2"})), (0, 0));
    assert_eq!(input(json!({"leafId": null})), (0, 0));
    // The sums of the session are cached, and the sums of a path do not change them.
    assert_eq!(input(json!({})), (111, 3));
    d.err_kind(
        "get_stats",
        json!({"leafId": "a2", "since": "a3"}),
        "invalidParams",
    );
    d.set_leaf(Some("a3"));
    let since = d.ok("get_stats", json!({"since": "a1"}));
    assert_eq!(since["tokens"]["input"], 100);
    let here = d.ok("get_context", json!({}));
    assert_eq!(here["entryIds"], json!(["u1", "a1", "a3"]));
}

#[test]
fn stats_have_the_use_of_each_model() {
    let usage = json!({
        "kind": "title", "provider": "q", "model": "m", "usage": {"input": 7, "output": 0, "cost": {"total": 0.25}},
    });
    let summary = json!({"fromId": "a2", "summary": "S", "usage": {"input": 3}});
    let log =
        forked()
            .entry("usage", "x1", "a3", usage)
            .entry("branch_summary", "x2", "x1", summary);
    let mut d = opened(&log);
    let stats = d.ok("get_stats", json!({}));
    let of = |provider: &str, model: &str, messages: u64, input: u64, output: u64, cost: f64| {
        let costs = json!({"recorded": (cost > 0.0).then_some(cost), "estimated": null,
            "unknownAnswers": u64::from(cost == 0.0)});
        json!({"provider": provider, "modelId": model, "messages": messages, "cost": cost, "costs": costs,
            "tokens": {"input": input, "output": output, "cacheRead": 0, "cacheWrite": 0}})
    };
    assert_eq!(
        stats["models"],
        json!([
            of("", "", 0, 3, 0, 0.0),
            of("p", "m", 2, 11, 2, 1.0),
            of("p", "n", 1, 100, 1, 0.5),
            of("q", "m", 0, 7, 0, 0.25),
        ])
    );
}

#[test]
fn more_than_two_are_compared() {
    let mut d = opened(&forked());
    let found = d.ok(
        "compare_branches",
        json!({"a": "a2", "b": "a3", "more": ["a1", "u2"]}),
    );
    assert_eq!(found["ancestorId"], "a1");
    let ids = |at: &Json| at["entryIds"].clone();
    assert_eq!(ids(&found["a"]), json!(["u2", "a2"]));
    assert_eq!(
        [&found["more"][0], &found["more"][1]].map(ids),
        [json!([]), json!(["u2"])]
    );
    let apart = d.ok(
        "compare_branches",
        json!({"a": "a2", "b": "a3", "more": ["v1"]}),
    );
    assert_eq!(apart["ancestorId"], Json::Null);
    assert_eq!(ids(&apart["b"]), json!(["u1", "a1", "a3"]));
    assert_eq!(ids(&apart["more"][0]), json!(["v1"]));
    let many = json!({"a": "a2", "b": "a3", "more": vec!["v1"; 31]});
    assert_eq!(d.err("compare_branches", many).details("field"), "more");
}

#[test]
fn the_outcome_is_one_line() {
    let mut d = opened(&forked());
    d.ok(
        "append_label",
        json!({"targetId": "u2", "label": "by hand"}),
    );
    let about = |reason: &str| json!({"type": "custom", "customType": "note", "data": {"targetId": "a2", "reason": reason}});
    d.ok(
        "append_entries",
        json!({"entries": [about("first"), about("too\nslow")]}),
    );
    let found = d.ok("compare_branches", json!({"a": "a2", "b": "a3"}));
    let outcome = found["a"]["outcome"].as_str().unwrap();
    assert!(outcome.starts_with("[by hand] · too slow · "), "{outcome}");
    assert!(outcome.ends_with(" · 1 file: b.rs"), "{outcome}");
    assert_eq!(found["b"]["outcome"], "four");
    let long = "é".repeat(400);
    d.ok(
        "append_message",
        json!({"message": user(&long), "entryId": "z1", "parentId": "a3"}),
    );
    let found = d.ok("compare_branches", json!({"a": "z1", "b": "a2"}));
    let outcome = found["a"]["outcome"].as_str().unwrap();
    assert!(
        outcome.chars().count() <= 300 && outcome.ends_with('…'),
        "{outcome}"
    );
}
