//! `query` and `mode` of `get_tree`: which entries match, at which positions, and after later appends.

use super::*;

#[test]
fn a_query_finds_entries_that_hold_all_words() {
    let mut d = opened(&with_bookkeeping());
    for (query, expected) in [
        ("GO", &["u2", "u3"][..]),
        ("go LEFT", &["u2"]),
        ("left go", &["u2"]),
        ("turn", &["u2"]),
        ("toolresult", &["t3"]),
        ("read", &["t3"]),
        ("x.rs", &["t3"]),
        ("go nowhere", &[]),
    ] {
        let tree = d.ok("get_tree", json!({"query": query}));
        assert_eq!(ids(&tree["nodes"]), expected, "{query:?}");
        assert_eq!(tree["total"], expected.len(), "{query:?}");
        assert_eq!(tree["hidden"], 19 - expected.len(), "{query:?}");
    }
    assert_eq!(
        tree_ids(&mut d, json!({"query": "read", "filter": "all"})),
        ["c3", "t3"]
    );
    let unicode = Log::new("s1").user("u1", "", "GRÜSSE aus Köln");
    assert_eq!(
        tree_ids(&mut opened(&unicode), json!({"query": "grüsse KÖLN"})),
        ["u1"]
    );
}

/// A query once searched only the previews of rows, which are the first 200 characters of a text.
#[test]
fn a_query_searches_the_whole_text_of_entries() {
    let far = format!(
        "{} Nadel im Heu {}",
        "stroh ".repeat(2000),
        "x".repeat(5000)
    );
    let log = with_tools()
        .user("u2", "a2", &far)
        .message(
            "thinks",
            "u2",
            assistant_with(json!([{"type": "thinking", "thinking": "deep thought"}, {"type": "text", "text": "so"}])),
        )
        .entry("compaction", "k1", "thinks", json!({"summary": "all of it", "firstKeptEntryId": "u2", "tokensBefore": 1}))
        .entry("label", "l1", "k1", json!({"targetId": "u1", "label": "Here"}));
    let mut d = opened(&log);
    let mut found = |params: Json| {
        let mut all = json!({"filter": "all"});
        all.as_object_mut()
            .unwrap()
            .extend(params.as_object().unwrap().clone());
        tree_ids(&mut d, all)
    };
    for (query, expected) in [
        ("NADEL", &["u2"][..]),
        ("\"im heu\" stroh", &["u2"]),
        ("\"heu im\"", &[]),
        ("thought", &["thinks"]),
        ("\"old_string\"", &[]),
        ("compaction", &["k1"]),
        ("all of it", &["k1"]),
        ("here", &["u1", "l1"]),
        ("here fix", &["u1"]),
        ("rain", &["other"]),
        ("/nadel/", &[]),
        // The row of a result shows its call, so the arguments of the call match too.
        ("cargo", &["calls", "failed", "bare"]),
        ("cargo above", &["failed"]),
    ] {
        assert_eq!(found(json!({"query": query})), expected, "{query}");
    }
    for (query, mode, expected) in [
        ("Nadel im", "literal", &["u2"][..]),
        ("nadel", "literal", &[]),
        ("n.del", "regex", &[]),
        ("N.d(e|x)l", "regex", &["u2"]),
        ("^Rain$", "regex", &["other"]),
        ("(?i)DEEP", "regex", &["thinks"]),
        ("rain", "words", &["other"]),
    ] {
        assert_eq!(
            found(json!({"query": query, "mode": mode})),
            expected,
            "{query}"
        );
    }
}

#[test]
fn a_matching_row_says_where_it_matches() {
    let mut d = opened(&with_tools().user(
        "u2",
        "a2",
        &format!("{}\n\t\u{1b}é Nadel, nadel", "stroh ".repeat(2000)),
    ));
    let found =
        |d: &mut Daemon, params: Json| d.ok("get_tree", params)["nodes"][0]["match"].clone();
    let nadel = found(&mut d, json!({"query": "NADEL"}));
    let snippet = nadel["snippet"].as_str().unwrap();
    assert!(snippet.ends_with("stroh é Nadel, nadel"), "{snippet}");
    let end = snippet.chars().count();
    assert_eq!(
        nadel["ranges"],
        json!([[end - 12, end - 7], [end - 5, end]])
    );
    let asked = found(&mut d, json!({"query": "cargo"}));
    assert_eq!(
        asked,
        json!({"snippet": "bash cargo test", "ranges": [[5, 10]]})
    );
    let role = found(&mut d, json!({"query": "toolresult failed"}));
    assert_eq!(
        role,
        json!({"snippet": "-- 3 failed see above", "ranges": [[5, 11]]})
    );
    let many = found(
        &mut d,
        json!({"query": "s", "mode": "literal", "rootId": "u2"}),
    );
    assert_eq!(many["ranges"].as_array().unwrap().len(), 16);
    assert_eq!(found(&mut d, json!({})), Json::Null);
}

#[test]
fn a_bad_pattern_is_refused_with_a_reason() {
    let mut d = opened(&with_tools());
    for pattern in [
        "(",
        "a{2",
        "[z-a]",
        r"\p{Nope}",
        r"(?:\pL{100}){1000}",
        "(?<=a)b",
    ] {
        let error = d.err("get_tree", json!({"query": pattern, "mode": "regex"}));
        assert_eq!(error.code, -32602, "{pattern}");
        assert_eq!(error.data["details"]["field"], "query", "{pattern}");
        let reason = error.data["details"]["reason"].as_str().unwrap();
        assert!(!reason.is_empty() && !reason.contains('\n'), "{reason}");
        assert_eq!(
            tree_ids(&mut d, json!({"query": pattern, "mode": "literal"})),
            [""; 0]
        );
    }
    // A question is asked of sessions: `search` ranks entries, a tree has its own order.
    for mode in ["fuzzy", "ask"] {
        let error = d.err("get_tree", json!({"query": "x", "mode": mode}));
        assert_eq!(error.code, -32602, "{mode}");
    }
}

/// A pattern of 900 kB was once compiled for seconds before it was refused as too large.
#[test]
fn a_pattern_is_refused_by_its_length_before_it_is_compiled() {
    let mut d = opened(&with_tools());
    let longest = format!("a|{}", "b".repeat((64 << 10) - 2));
    tree_ids(
        &mut d,
        json!({"query": &longest[..10_000], "mode": "regex"}),
    );
    let error = d.err(
        "get_tree",
        json!({"query": longest.clone(), "mode": "regex"}),
    );
    assert!(error.message.contains("when compiled"), "{}", error.message);
    for method in ["get_tree", "search"] {
        let error = d.err(
            method,
            json!({"query": longest.clone() + "b", "mode": "regex"}),
        );
        assert_eq!(error.code, -32602, "{method}");
        assert_eq!(error.data["details"]["field"], "query", "{method}");
        let reason = error.data["details"]["reason"].as_str().unwrap();
        assert_eq!(reason, "has more than 65536 bytes", "{method}");
    }
}

/// Matches are cached for the next request with the same query. This request must also find later entries.
#[test]
fn entries_appended_after_a_query_are_found_by_the_next_one() {
    let mut d = opened(&with_tools());
    let query = || json!({"query": "cargo", "filter": "all"});
    assert_eq!(tree_ids(&mut d, query()), ["calls", "failed", "bare"]);
    let said = json!({"entryId": "late", "message": {"role": "user", "content": "CARGO build"}});
    d.ok("append_message", said);
    d.ok(
        "append_message",
        json!({"entryId": "not", "message": {"role": "user", "content": "car"}}),
    );
    let found = ["calls", "failed", "bare", "late"];
    assert_eq!(tree_ids(&mut d, query()), found);
    d.ok(
        "append_label",
        json!({"targetId": "not", "label": "cargo, too", "entryId": "l"}),
    );
    let found = ["calls", "failed", "bare", "late", "not", "l"];
    assert_eq!(tree_ids(&mut d, query()), found);
    d.ok("append_label", json!({"targetId": "not", "label": null}));
    let found = ["calls", "failed", "bare", "late", "l"];
    assert_eq!(tree_ids(&mut d, query()), found);
    assert_eq!(
        tree_ids(&mut d, json!({"query": "cargo"})),
        ["failed", "bare", "late"]
    );
}
