//! Reading the tree: `get_tree` with every option, labels, children, paths, branches, entries and
//! their paging. protocol.md §3 and §6.

use crate::harness::*;

/// Two branches below a1; the leaf is on the later one. Sibling u3 stands after u2 in time.
///
/// ```text
/// u1 ─ a1 ┬ u2 ─ a2
///         └ u3 ─ c3 (only tool calls) ─ t3 (failed) ─ a3
/// ```
fn two_branches() -> Log {
    Log::new("s1")
        .user("u1", "", "Start here")
        .assistant("a1", "u1", "Hello")
        .user("u2", "a1", "go left")
        .assistant("a2", "u2", "left it is")
        .user("u3", "a1", "go right")
        .message(
            "c3",
            "u3",
            assistant_with(json!([tool_call("call", "read", json!({"path": "x.rs"}))])),
        )
        .message(
            "t3",
            "c3",
            tool_result("call", "read", "no such file", true),
        )
        .assistant("a3", "t3", "right it is")
}

fn opened(log: &Log) -> Daemon {
    let home = Home::new();
    let path = log.save(&home);
    let mut d = Daemon::quiet_in(&home);
    d.open(&path);
    d
}

#[track_caller]
fn tree_ids(d: &mut Daemon, params: Json) -> Vec<String> {
    ids(&d.ok("get_tree", params)["nodes"])
}

#[track_caller]
fn row(tree: &Json, id: &str) -> Json {
    let nodes = tree["nodes"].as_array().unwrap();
    nodes
        .iter()
        .find(|n| n["id"] == id)
        .unwrap_or_else(|| panic!("no row {id} in {tree}"))
        .clone()
}

/// One member of every row.
#[track_caller]
fn column(tree: &Json, member: &str) -> Vec<Json> {
    tree["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| n[member].clone())
        .collect()
}

#[test]
fn rows_come_in_depth_first_pre_order_with_all_their_facts() {
    let mut d = opened(&two_branches());
    let tree = d.ok("get_tree", json!({"filter": "all"}));
    assert_eq!(
        ids(&tree["nodes"]),
        ["u1", "a1", "u2", "a2", "u3", "c3", "t3", "a3"]
    );
    assert_eq!(tree["leafId"], "a3");
    assert_eq!(tree["rootIds"], json!(["u1"]));
    assert_eq!(
        (&tree["total"], &tree["hidden"], &tree["offset"]),
        (&json!(8), &json!(0), &json!(0))
    );
    assert!(
        tree["revision"].is_string() && tree["seq"].is_u64(),
        "{tree}"
    );
    assert!(tree.get("nextCursor").is_none_or(Json::is_null), "{tree}");
    let null = Json::Null;
    assert_eq!(
        column(&tree, "parentId"),
        [
            null,
            json!("u1"),
            json!("a1"),
            json!("u2"),
            json!("a1"),
            json!("u3"),
            json!("c3"),
            json!("t3")
        ]
    );
    assert_eq!(column(&tree, "depth"), [0, 1, 2, 3, 2, 3, 4, 5]);
    assert_eq!(
        column(&tree, "indent"),
        [0, 0, 1, 1, 1, 1, 1, 1],
        "grows only where the tree branches"
    );
    assert_eq!(column(&tree, "childCount"), [1, 2, 1, 0, 1, 1, 1, 0]);
    assert_eq!(
        column(&tree, "onActivePath"),
        [true, true, false, false, true, true, true, true]
    );
    assert_eq!(
        column(&tree, "isLeaf"),
        [false, false, false, false, false, false, false, true]
    );
    assert_eq!(
        column(&tree, "isBranchPoint"),
        [false, true, false, false, false, false, false, false]
    );
    let u1 = row(&tree, "u1");
    assert_eq!(
        (&u1["type"], &u1["role"]),
        (&json!("message"), &json!("user"))
    );
    assert_eq!(u1["preview"], "Start here");
    assert_eq!(u1["timestamp"], stamp(1));
    assert!(
        u1.get("label").is_none_or(Json::is_null) && u1.get("prefix").is_none_or(Json::is_null),
        "{u1}"
    );
    let t3 = row(&tree, "t3");
    assert_eq!(
        (&t3["role"], &t3["toolName"], &t3["isError"]),
        (&json!("toolResult"), &json!("read"), &json!(true))
    );
}

#[test]
fn previews_are_one_short_clean_line() {
    let text = format!(
        "one\ntwo\r\nthree\t\u{1b}[31mred\u{7}\u{9b}x {}",
        "é".repeat(500)
    );
    let mut d = opened(&Log::new("s1").user("u1", "", &text));
    let preview = d.ok("get_tree", json!({}))["nodes"][0]["preview"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        preview.chars().count() <= 200,
        "{} characters",
        preview.chars().count()
    );
    assert!(!preview.chars().any(char::is_control), "{preview:?}");
    assert!(preview.starts_with("one"), "{preview:?}");
    assert!(
        preview.contains("two") && preview.contains("three"),
        "{preview:?}"
    );
}

#[test]
fn siblings_stand_by_time_then_file_order() {
    let log = Log::new("s1")
        .user("root", "", "r")
        .raw(&entry_line(
            30,
            "message",
            "late",
            "root",
            json!({"message": user("late")}),
        ))
        .raw(&entry_line(
            10,
            "message",
            "early",
            "root",
            json!({"message": user("early")}),
        ))
        .raw(&entry_line(
            20,
            "message",
            "tie1",
            "root",
            json!({"message": user("tie")}),
        ))
        .raw(&entry_line(
            20,
            "message",
            "tie0",
            "root",
            json!({"message": user("tie")}),
        ));
    let mut d = opened(&log);
    assert_eq!(
        tree_ids(&mut d, json!({})),
        ["root", "early", "tie1", "tie0", "late"]
    );
    let children = d.ok("get_children", json!({"entryId": "root"}))["entries"].clone();
    assert_eq!(ids(&children), ["early", "tie1", "tie0", "late"]);
    assert_eq!(
        d.ids(),
        ["root", "late", "early", "tie1", "tie0"],
        "entries stay in file order"
    );
}

#[test]
fn active_first_puts_the_active_path_first() {
    let mut d = opened(&two_branches());
    assert_eq!(
        tree_ids(&mut d, json!({"filter": "all", "order": "active-first"})),
        ["u1", "a1", "u3", "c3", "t3", "a3", "u2", "a2"]
    );
    d.set_leaf(Some("u2"));
    assert_eq!(
        tree_ids(&mut d, json!({"filter": "all", "order": "active-first"})),
        ["u1", "a1", "u2", "a2", "u3", "c3", "t3", "a3"]
    );
}

// --- filters ---

fn with_bookkeeping() -> Log {
    two_branches()
        .label("l1", "a3", "u2", json!("Left turn"))
        .entry("session_info", "i1", "l1", json!({"name": "N"}))
        .entry(
            "thinking_level_change",
            "h1",
            "i1",
            json!({"thinkingLevel": "high"}),
        )
        .entry(
            "model_change",
            "m1",
            "h1",
            json!({"provider": "p", "modelId": "m"}),
        )
        .entry(
            "custom",
            "x1",
            "m1",
            json!({"customType": "state", "data": 1}),
        )
        .entry(
            "context_edit",
            "e1",
            "x1",
            json!({"targetId": "u2", "replacement": null}),
        )
        .entry(
            "usage",
            "g1",
            "e1",
            json!({"kind": "k", "provider": "p", "model": "m", "usage": {}}),
        )
        .entry(
            "custom_message",
            "v1",
            "g1",
            json!({"customType": "c", "content": "visible", "display": true}),
        )
        .entry(
            "custom_message",
            "n1",
            "v1",
            json!({"customType": "c", "content": "invisible", "display": false}),
        )
        .entry(
            "compaction",
            "k1",
            "n1",
            json!({"summary": "S", "firstKeptEntryId": "u3", "tokensBefore": 1234}),
        )
        .entry(
            "branch_summary",
            "b1",
            "k1",
            json!({"fromId": "a2", "summary": "B"}),
        )
}

#[test]
fn each_filter_shows_what_it_says() {
    let mut d = opened(&with_bookkeeping());
    for (filter, expected) in [
        (
            "default",
            &["u1", "a1", "u2", "a2", "u3", "t3", "a3", "v1", "k1", "b1"][..],
        ),
        (
            "no-tools",
            &["u1", "a1", "u2", "a2", "u3", "a3", "v1", "k1", "b1"],
        ),
        ("user-only", &["u1", "u2", "u3", "v1"]),
        ("labeled-only", &["u2"]),
        (
            "all",
            &[
                "u1", "a1", "u2", "a2", "u3", "c3", "t3", "a3", "l1", "i1", "h1", "m1", "x1", "e1",
                "g1", "v1", "n1", "k1", "b1",
            ],
        ),
    ] {
        let tree = d.ok("get_tree", json!({"filter": filter}));
        assert_eq!(ids(&tree["nodes"]), expected, "{filter}");
        assert_eq!(tree["total"], expected.len(), "{filter}");
        assert_eq!(tree["hidden"], 19 - expected.len(), "{filter}");
    }
    assert_eq!(
        tree_ids(&mut d, json!({})).len(),
        10,
        "default is the default"
    );
    let tree = d.ok("get_tree", json!({}));
    assert_eq!(row(&tree, "k1")["tokens"], 1234);
    assert_eq!(
        row(&tree, "v1")["parentId"],
        "a3",
        "the nearest visible ancestor"
    );
    assert_eq!(row(&tree, "u2")["label"], "Left turn");
    assert_eq!(row(&tree, "u2")["labelTimestamp"], stamp(9));
}

#[test]
fn places_are_those_of_the_visible_tree() {
    let mut d = opened(&two_branches());
    let tree = d.ok("get_tree", json!({"filter": "user-only"}));
    assert_eq!(ids(&tree["nodes"]), ["u1", "u2", "u3"]);
    assert_eq!(
        column(&tree, "parentId"),
        [Json::Null, json!("u1"), json!("u1")]
    );
    assert_eq!(column(&tree, "depth"), [0, 1, 1]);
    assert_eq!(column(&tree, "childCount"), [2, 0, 0]);
    assert_eq!(
        column(&tree, "isLeaf"),
        [false, false, true],
        "the nearest visible ancestor of the leaf"
    );
    assert_eq!(column(&tree, "isBranchPoint"), [true, false, false]);

    let tree = d.ok("get_tree", json!({"filter": "labeled-only"}));
    assert_eq!(
        (&tree["nodes"], &tree["rootIds"], &tree["total"]),
        (&json!([]), &json!([]), &json!(0))
    );
}

#[test]
fn only_tool_calls_are_hidden_unless_an_error_or_the_leaf() {
    let mut failed = assistant_with(json!([tool_call("k", "read", json!({}))]));
    failed["stopReason"] = json!("error");
    failed["errorMessage"] = json!("overloaded");
    let log = Log::new("s1")
        .user("u1", "", "x")
        .message(
            "c1",
            "u1",
            assistant_with(json!([tool_call("a", "read", json!({}))])),
        )
        .message("c2", "c1", failed)
        .message(
            "c3",
            "c2",
            assistant_with(json!([tool_call("b", "read", json!({}))])),
        );
    let mut d = opened(&log);
    assert_eq!(tree_ids(&mut d, json!({})), ["u1", "c2", "c3"]);
    d.set_leaf(Some("u1"));
    assert_eq!(tree_ids(&mut d, json!({})), ["u1", "c2"]);
}

/// An assistant message that only thought, or said nothing at all, was a row without a text. It is
/// hidden as one with only tool calls is, and as pi hides it: by its lack of text, unless it ended
/// early or is the leaf.
#[test]
fn an_assistant_message_without_text_is_hidden_unless_it_ended_early_or_is_the_leaf() {
    let stopped = |content: Json, stop_reason: &str| {
        let mut message = assistant_with(content);
        message["stopReason"] = json!(stop_reason);
        message
    };
    let thought = || json!([{"type": "thinking", "thinking": "hm"}]);
    let log = Log::new("s1")
        .user("u1", "", "x")
        .message("thinks", "u1", stopped(thought(), "stop"))
        .message("empty", "thinks", stopped(json!([]), "stop"))
        .message(
            "blank",
            "empty",
            stopped(json!([{"type": "text", "text": " \n"}]), "toolUse"),
        )
        .message("cut", "blank", stopped(thought(), "length"))
        .message("aborted", "cut", stopped(json!([]), "aborted"))
        .message("failed", "aborted", stopped(thought(), "error"))
        .message("leaf", "failed", stopped(thought(), "stop"));
    let mut d = opened(&log);
    let shown = ["u1", "cut", "aborted", "failed", "leaf"];
    for filter in ["default", "no-tools"] {
        assert_eq!(tree_ids(&mut d, json!({"filter": filter})), shown);
    }
    assert_eq!(tree_ids(&mut d, json!({"filter": "all"})).len(), 8);
    d.set_leaf(Some("blank"));
    let shown = ["u1", "blank", "cut", "aborted", "failed"];
    assert_eq!(tree_ids(&mut d, json!({})), shown);
}

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

// --- scope ---

#[test]
fn a_root_can_be_chosen() {
    let mut d = opened(&two_branches());
    let tree = d.ok("get_tree", json!({"rootId": "u3", "filter": "all"}));
    assert_eq!(ids(&tree["nodes"]), ["u3", "c3", "t3", "a3"]);
    assert_eq!(tree["total"], 4);
    assert_eq!(tree["hidden"], 0, "entries out of scope are not hidden");
    d.err_kind("get_tree", json!({"rootId": "nobody"}), "entryNotFound");
}

#[test]
fn depth_can_be_bounded() {
    let mut d = opened(&two_branches());
    let whole = d.ok("get_tree", json!({"filter": "all"}));
    for max in 0..7_u64 {
        let tree = d.ok("get_tree", json!({"filter": "all", "maxDepth": max}));
        let expected: Vec<_> = whole["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|n| n["depth"].as_u64().unwrap() <= max)
            .map(|n| n["id"].clone())
            .collect();
        assert_eq!(
            json!(ids(&tree["nodes"])),
            json!(expected),
            "maxDepth {max}"
        );
        assert_eq!(tree["total"], expected.len(), "maxDepth {max}");
        assert_eq!(
            tree["hidden"], 0,
            "depth hides nothing in the sense of `hidden`"
        );
    }
}

#[test]
fn folded_rows_keep_their_count_and_lose_their_children() {
    let mut d = opened(&two_branches());
    let tree = d.ok("get_tree", json!({"filter": "all", "fold": ["u3"]}));
    assert_eq!(ids(&tree["nodes"]), ["u1", "a1", "u2", "a2", "u3"]);
    assert_eq!(tree["total"], 5);
    assert_eq!(row(&tree, "u3")["childCount"], 1, "as if unfolded");
    let tree = d.ok("get_tree", json!({"filter": "all", "fold": ["a1", "u3"]}));
    assert_eq!(ids(&tree["nodes"]), ["u1", "a1"]);
    assert_eq!(row(&tree, "a1")["childCount"], 2);
}

// --- drawing ---

#[test]
fn prefixes_are_ready_drawn() {
    let mut d = opened(&two_branches());
    let tree = d.ok("get_tree", json!({"filter": "all", "render": "unicode"}));
    let prefix = |id: &str| {
        row(&tree, id)["prefix"]
            .as_str()
            .unwrap_or_else(|| panic!("{id} has a prefix"))
            .to_owned()
    };
    assert_eq!(
        (prefix("u1").trim_end(), prefix("a1").trim_end()),
        ("", ""),
        "no lines where nothing branches"
    );
    assert!(prefix("u2").ends_with("├─ "), "{:?}", prefix("u2"));
    assert!(
        prefix("a2").starts_with('│'),
        "the line to u3 goes on: {:?}",
        prefix("a2")
    );
    assert!(prefix("u3").ends_with("└─ "), "{:?}", prefix("u3"));
    assert!(
        !prefix("a3").contains(['│', '├']),
        "nothing follows below u3: {:?}",
        prefix("a3")
    );

    let ascii = d.ok("get_tree", json!({"filter": "all", "render": "ascii"}));
    for prefix in column(&ascii, "prefix") {
        assert!(prefix.as_str().expect("drawn").is_ascii(), "{prefix}");
    }
    assert!(
        !row(&ascii, "u2")["prefix"]
            .as_str()
            .unwrap()
            .trim()
            .is_empty()
    );
}

#[test]
fn drawings_stay_within_64_columns() {
    // Each level branches, so that each level indents.
    let mut log = Log::new("s1").user("n0", "", "x");
    for n in 1..60 {
        log = log
            .user(&format!("s{n}"), &format!("n{}", n - 1), "x")
            .user(&format!("n{n}"), &format!("n{}", n - 1), "x");
    }
    let mut d = opened(&log);
    let tree = d.ok("get_tree", json!({"render": "unicode"}));
    assert_eq!(row(&tree, "n59")["indent"], 59);
    for row in tree["nodes"].as_array().unwrap() {
        let prefix = row["prefix"].as_str().unwrap();
        assert!(prefix.chars().count() <= 64, "{row}");
    }
    assert!(
        row(&tree, "n59")["prefix"]
            .as_str()
            .unwrap()
            .starts_with('…')
    );
    assert!(!row(&tree, "n5")["prefix"].as_str().unwrap().contains('…'));
}

// --- pages ---

#[test]
fn pages_put_together_are_the_whole() {
    let mut d = opened(&two_branches());
    let whole = d.ok("get_tree", json!({"filter": "all"}));
    for limit in [1, 3, 7, 8] {
        let mut seen = Vec::new();
        let mut cursor = None;
        loop {
            let mut params = json!({"filter": "all", "limit": limit});
            if let Some(cursor) = cursor {
                params["cursor"] = cursor;
            }
            let page = d.ok("get_tree", params);
            assert_eq!(page["offset"], seen.len(), "limit {limit}");
            assert_eq!(page["total"], 8, "over all pages");
            assert!(page["nodes"].as_array().unwrap().len() <= limit);
            seen.extend(page["nodes"].as_array().unwrap().clone());
            assert!(seen.len() <= 8, "pages make progress");
            match page.get("nextCursor") {
                Some(next) if !next.is_null() => cursor = Some(next.clone()),
                _ => break,
            }
        }
        assert_eq!(json!(seen), whole["nodes"], "limit {limit}");
    }
}

#[test]
fn bytes_bound_a_page_too() {
    let mut log = Log::new("s1");
    for n in 0..50 {
        log = log.user(&format!("u{n}"), "", &"w".repeat(150));
    }
    let mut d = opened(&log);
    let page = d.ok("get_tree", json!({"maxBytes": 5000}));
    let rows = page["nodes"].as_array().unwrap().len();
    assert!((1..50).contains(&rows), "{rows} rows");
    assert!(page["nodes"].to_string().len() <= 5000);
    let next = d.ok(
        "get_tree",
        json!({"maxBytes": 5000, "cursor": page["nextCursor"]}),
    );
    assert_eq!(next["nodes"][0]["id"], format!("u{rows}"));
}

#[test]
fn a_cursor_is_bound_to_the_tree_it_was_made_for() {
    let mut d = opened(&two_branches());
    let changes: [(&str, Json); 3] = [
        ("append_message", json!({"message": user("more")})),
        ("append_label", json!({"targetId": "u1", "label": "l"})),
        ("set_leaf", json!({"leafId": "a1"})),
    ];
    for (method, params) in changes {
        let page = d.ok("get_tree", json!({"limit": 2}));
        let again = d.ok("get_tree", json!({"limit": 2}));
        assert_eq!(
            page["revision"], again["revision"],
            "reading changes nothing"
        );
        d.ok(method, params);
        let error = d.err(
            "get_tree",
            json!({"limit": 2, "cursor": page["nextCursor"]}),
        );
        assert_eq!(
            (error.code, error.kind.as_str()),
            (1203, "treeChanged"),
            "{method}"
        );
        let now = d.ok("get_tree", json!({"limit": 2}))["revision"].clone();
        assert_eq!(error.details("revision"), &now, "{method}");
        assert_ne!(now, page["revision"], "{method}");
    }
}

#[test]
fn others_appends_change_the_revision() {
    let home = Home::new();
    let path = two_branches().save(&home);
    let mut d = Daemon::quiet_in(&home);
    d.open(&path);
    let before = d.ok("get_tree", json!({}))["revision"].clone();
    foreign_append(
        &path,
        &entry_line(
            40,
            "message",
            "f1",
            "a3",
            json!({"message": user("foreign")}),
        ),
    );
    d.user("u9", "own");
    assert_eq!(d.ids().len(), 10, "the append took notice");
    assert_ne!(d.ok("get_tree", json!({}))["revision"], before);
}

#[test]
fn offsets_and_surroundings_need_no_cursor() {
    let mut d = opened(&two_branches());
    let page = d.ok(
        "get_tree",
        json!({"filter": "all", "offset": 3, "limit": 2}),
    );
    assert_eq!(ids(&page["nodes"]), ["a2", "u3"]);
    assert_eq!(page["offset"], 3);
    let page = d.ok(
        "get_tree",
        json!({"filter": "all", "offset": 8, "limit": 2}),
    );
    assert_eq!((&page["nodes"], &page["total"]), (&json!([]), &json!(8)));
    for id in ["u1", "u3", "a3"] {
        let page = d.ok(
            "get_tree",
            json!({"filter": "all", "around": id, "limit": 3}),
        );
        let shown = ids(&page["nodes"]);
        assert!(shown.iter().any(|s| s == id), "{shown:?} around {id}");
        assert!(shown.len() <= 3);
        let whole = tree_ids(&mut d, json!({"filter": "all"}));
        let offset = page["offset"].as_u64().unwrap() as usize;
        assert_eq!(
            shown,
            whole[offset..offset + shown.len()],
            "offset tells where the page stands"
        );
    }
    d.err_kind("get_tree", json!({"around": "nobody"}), "entryNotFound");
}

// --- nested ---

#[test]
fn nested_trees_hold_whole_entries() {
    let log = two_branches().label("l1", "a3", "u2", json!("Left"));
    let mut d = opened(&log);
    let tree = d.ok("get_tree", json!({"format": "nested", "filter": "all"}));
    let u1 = &tree["nodes"][0];
    assert_eq!(u1["entry"], parse(log.line(1)).unwrap());
    let a1 = &u1["children"][0];
    assert_eq!(a1["entry"]["id"], "a1");
    let children: Vec<_> = a1["children"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| n["entry"]["id"].clone())
        .collect();
    assert_eq!(children, ["u2", "u3"]);
    assert_eq!(a1["children"][0]["label"], "Left");
    assert_eq!(a1["children"][0]["labelTimestamp"], stamp(9));
    assert_eq!(a1["children"][0]["children"][0]["children"], json!([]));
}

#[test]
fn nested_trees_refuse_great_depth_unless_asked_for_it() {
    on_a_big_stack(|| {
        let chain = |n: usize| {
            let mut log = Log::new("s1").user("n0", "", "x");
            for i in 1..n {
                log = log.user(&format!("n{i}"), &format!("n{}", i - 1), "x");
            }
            log
        };
        let depth = |tree: &Json| {
            let mut level = &tree["nodes"];
            let mut depth = 0;
            while let Some(node) = level.get(0) {
                depth += 1;
                level = &node["children"];
            }
            depth
        };
        let tree = opened(&chain(250)).ok("get_tree", json!({"format": "nested"}));
        assert_eq!(depth(&tree), 250);
        let mut d = opened(&chain(400));
        let error = d.err("get_tree", json!({"format": "nested"}));
        assert_eq!((error.code, error.kind.as_str()), (1204, "nestingTooDeep"));
        assert!(
            error.message.contains("flat"),
            "names the flat form: {}",
            error.message
        );
        let tree = d.ok("get_tree", json!({"format": "nested", "maxDepth": 1000}));
        assert_eq!(depth(&tree), 400);
        assert_eq!(tree_ids(&mut d, json!({"format": "flat"})).len(), 400);
    });
}

// --- labels ---

#[test]
fn the_last_label_in_the_file_wins_and_null_or_empty_clears() {
    let mut d = opened(
        &two_branches()
            .label("l1", "a3", "u1", json!("one"))
            .label("l2", "a2", "u1", json!("two"))
            .label("l3", "a2", "u2", json!("gone"))
            .label("l4", "a2", "u2", Json::Null)
            .label("l5", "a2", "u3", json!("gone"))
            .label("l6", "a2", "u3", json!("")),
    );
    let label = d.ok("get_label", json!({"entryId": "u1"}));
    assert_eq!(
        (&label["label"], &label["labelTimestamp"]),
        (&json!("two"), &json!(stamp(10)))
    );
    for id in ["u2", "u3", "a1"] {
        let label = d.ok("get_label", json!({"entryId": id}));
        assert!(
            label.get("label").is_none_or(Json::is_null),
            "{id}: {label}"
        );
        assert!(
            label.get("labelTimestamp").is_none_or(Json::is_null),
            "{id}: {label}"
        );
    }
    assert_eq!(
        tree_ids(&mut d, json!({"filter": "labeled-only"})),
        ["u1"],
        "across branches"
    );
    d.ok("append_label", json!({"targetId": "u1", "label": null}));
    assert_eq!(tree_ids(&mut d, json!({"filter": "labeled-only"})), [""; 0]);
    d.ok("append_label", json!({"targetId": "u1", "label": "back"}));
    assert_eq!(d.ok("get_label", json!({"entryId": "u1"}))["label"], "back");
    d.err_kind("get_label", json!({"entryId": "nobody"}), "entryNotFound");
}

// --- entries, children, paths, branches ---

#[test]
fn entries_are_found_by_id() {
    let log = two_branches();
    let mut d = opened(&log);
    assert_eq!(d.entry("t3"), parse(log.line(7)).unwrap());
    for method in ["get_entry", "get_children", "get_path", "get_label"] {
        let error = d.err(method, json!({"entryId": "nobody"}));
        assert_eq!(
            (error.code, error.kind.as_str()),
            (1200, "entryNotFound"),
            "{method}"
        );
        assert_eq!(error.details("entryId"), "nobody", "{method}");
    }
    let leaf = d.ok("get_leaf", json!({}));
    assert_eq!(
        (&leaf["leafId"], &leaf["entry"]["id"]),
        (&json!("a3"), &json!("a3"))
    );
    d.set_leaf(None);
    let leaf = d.ok("get_leaf", json!({}));
    assert_eq!(leaf["leafId"], Json::Null);
    assert!(leaf.get("entry").is_none_or(Json::is_null), "{leaf}");
}

#[test]
fn children_and_roots() {
    let mut d = opened(&two_branches().user("r2", "", "another root"));
    let mut children = |id: Json| ids(&d.ok("get_children", json!({"entryId": id}))["entries"]);
    assert_eq!(children(json!("a1")), ["u2", "u3"]);
    assert_eq!(children(json!("a2")), [""; 0]);
    assert_eq!(children(Json::Null), ["u1", "r2"]);
    assert_eq!(d.ok("get_tree", json!({}))["rootIds"], json!(["u1", "r2"]));
}

#[test]
fn paths_run_from_the_root_to_the_node() {
    let mut d = opened(&two_branches());
    assert_eq!(d.path_ids(None), ["u1", "a1", "u3", "c3", "t3", "a3"]);
    assert_eq!(d.path_ids(Some("a2")), ["u1", "a1", "u2", "a2"]);
    assert_eq!(d.path_ids(Some("u1")), ["u1"]);
    d.set_leaf(None);
    assert_eq!(d.path_ids(None), [""; 0]);
}

#[test]
fn branches_are_told_by_tip_and_fork() {
    let mut d = opened(&two_branches());
    let branches = d.ok("list_branches", json!({}))["branches"].clone();
    let branches = branches.as_array().unwrap();
    assert_eq!(branches.len(), 2, "{branches:?}");
    for (tip, active) in [("a2", false), ("a3", true)] {
        let branch = branches
            .iter()
            .find(|b| b["tipId"] == tip)
            .unwrap_or_else(|| panic!("{tip} in {branches:?}"));
        assert_eq!(branch["forkId"], "a1", "{branch}");
        assert_eq!(branch["isActive"], active, "{branch}");
        assert!(branch["messageCount"].as_u64() > Some(0), "{branch}");
        assert!(
            branch["preview"].as_str().is_some_and(|p| !p.is_empty()),
            "{branch}"
        );
        assert!(branch["lastActivity"].is_string(), "{branch}");
    }
}

#[test]
fn entries_page_by_since() {
    let mut d = opened(&two_branches());
    let all = d.ok("get_entries", json!({}));
    assert_eq!(
        ids(&all["entries"]),
        ["u1", "a1", "u2", "a2", "u3", "c3", "t3", "a3"]
    );
    assert_eq!(all["leafId"], "a3");
    assert!(all.get("nextCursor").is_none_or(Json::is_null), "{all}");
    let page = d.ok("get_entries", json!({"limit": 3}));
    assert_eq!(ids(&page["entries"]), ["u1", "a1", "u2"]);
    let page = d.ok(
        "get_entries",
        json!({"limit": 3, "since": page["nextCursor"]}),
    );
    assert_eq!(ids(&page["entries"]), ["a2", "u3", "c3"]);
    let page = d.ok("get_entries", json!({"since": "c3"}));
    assert_eq!(ids(&page["entries"]), ["t3", "a3"], "exclusive");
    let page = d.ok("get_entries", json!({"since": "a3"}));
    assert_eq!(page["entries"], json!([]));
    d.err_kind("get_entries", json!({"since": "nobody"}), "entryNotFound");
}

/// A conversation with the tools of several agents.
fn with_tools() -> Log {
    let call = |id: &str, name: &str, arguments: Json| tool_call(id, name, arguments);
    Log::new("s1")
        .user("u1", "", "Fix it")
        .message(
            "calls",
            "u1",
            assistant_with(json!([
                call(
                    "c1",
                    "bash",
                    json!({"timeout": 9, "command": "cargo\ttest\n"})
                ),
                call(
                    "c2",
                    "Edit",
                    json!({"old_string": "a", "file_path": "src/lib.rs"})
                ),
                call("c3", "weather", json!({"days": 2, "town": "Ulm"})),
            ])),
        )
        .message(
            "failed",
            "calls",
            tool_result("c1", "bash", "--\n3 failed\nsee above", true),
        )
        .message(
            "edited",
            "failed",
            tool_result("c2", "Edit", "Done.", false),
        )
        .message(
            "other",
            "edited",
            tool_result("c3", "weather", "Sun\nRain\n\n", false),
        )
        .message(
            "lost",
            "other",
            tool_result("gone", "grep", "a.rs:1\n", false),
        )
        .message("bare", "lost", tool_result("c1", "bash", "", false))
        .assistant("a2", "bare", "Done")
}

/// Rows of tool results showed the beginning of what came, often a line that all of them share, and
/// not what was asked; rows of calls showed all arguments as they stood.
#[test]
fn a_tools_row_shows_what_was_asked_then_what_came() {
    let mut d = opened(&with_tools());
    let tree = d.ok("get_tree", json!({"filter": "all"}));
    let preview = |tree: &Json, id: &str| row(tree, id)["preview"].as_str().unwrap().to_owned();
    for (id, expected) in [
        ("calls", "bash cargo test, Edit src/lib.rs, weather Ulm"),
        ("failed", "bash cargo test → ✗ 3 failed"),
        ("edited", "Edit src/lib.rs → 1 file changed"),
        ("other", "weather Ulm → Rain"),
        ("lost", "grep → a.rs:1"),
        ("bare", "bash cargo test"),
    ] {
        assert_eq!(preview(&tree, id), expected);
    }
    let ascii = d.ok("get_tree", json!({"render": "ascii"}));
    assert_eq!(preview(&ascii, "failed"), "bash cargo test -> x 3 failed");
    assert_eq!(preview(&ascii, "other"), "weather Ulm -> Rain");
    let call = |id: &str| row(&tree, id)["toolCall"].clone();
    assert_eq!(
        call("failed"),
        json!({"name": "bash", "summary": "cargo test"})
    );
    assert_eq!(call("lost"), json!({"name": "grep"}));
    assert_eq!(call("calls"), Json::Null);
    // A page of its own, and a tree of its own, show the same.
    let page = d.ok("get_tree", json!({"around": "edited", "limit": 1}));
    assert_eq!(page["nodes"][0]["preview"], preview(&tree, "edited"));
    let below = d.ok("get_tree", json!({"rootId": "edited"}));
    assert_eq!(preview(&below, "edited"), preview(&tree, "edited"));
}

/// Where the whole does not fit, what came is worth more than the end of what was asked.
#[test]
fn a_long_command_does_not_hide_its_result() {
    let command = "very long ".repeat(50);
    let log = Log::new("s1")
        .message(
            "c",
            "",
            assistant_with(json!([
                tool_call("c", &"n".repeat(70), json!({"x": "y"})),
                tool_call("d", "bash", json!({"command": command}))
            ])),
        )
        .message("r", "c", tool_result("d", "bash", &"z".repeat(500), true));
    let mut d = opened(&log);
    let tree = d.ok("get_tree", json!({"filter": "all"}));
    let shown = row(&tree, "r");
    let preview = shown["preview"].as_str().unwrap();
    assert!(
        preview.chars().count() <= 200 && preview.starts_with("bash very long"),
        "{preview}"
    );
    assert!(
        preview.ends_with(&format!(" → ✗ {}", "z".repeat(80))),
        "{preview}"
    );
    assert!(
        shown["toolCall"]["summary"]
            .as_str()
            .unwrap()
            .chars()
            .count()
            <= 120
    );
}

#[test]
fn the_tip_of_a_branch_that_is_a_result_is_shown_as_in_the_tree() {
    let log = Log::new("s1")
        .message(
            "c",
            "",
            assistant_with(json!([tool_call("c", "ls", json!({"path": "src"}))])),
        )
        .message("r", "c", tool_result("c", "ls", "a\nb", false));
    let mut d = opened(&log);
    let branches = d.ok("list_branches", json!({}));
    assert_eq!(branches["branches"][0]["preview"], "ls src → b");
}

/// A view that has been taken is extended by what is appended: rows of results must find their calls
/// there, too.
#[test]
fn results_appended_after_a_view_are_shown_as_in_a_fresh_one() {
    let mut d = opened(&with_tools());
    let all = json!({"filter": "all"});
    d.ok("get_tree", all.clone());
    let message = |message: Json| json!({ "message": message });
    let calls = assistant_with(json!([tool_call("c9", "read", json!({"path": "late.rs"}))]));
    d.ok("append_message", message(calls));
    d.ok("get_tree", all.clone());
    d.ok(
        "append_message",
        message(tool_result("c9", "read", "fn late() {}", false)),
    );
    d.ok(
        "append_message",
        message(tool_result("c2", "Edit", "ok", false)),
    );
    let extended = d.ok("get_tree", all.clone());
    let last: Vec<_> = column(&extended, "preview")
        .into_iter()
        .rev()
        .take(2)
        .collect();
    assert_eq!(
        last,
        [
            "Edit src/lib.rs → 1 file changed",
            "read late.rs → fn late() {}"
        ]
    );
    d.ok("get_tree", json!({"filter": "user-only"}));
    assert_eq!(d.ok("get_tree", all)["nodes"], extended["nodes"]);
}

/// A query looked at what rows show only: of a long text its first 200 characters.
#[test]
fn a_query_looks_through_the_whole_text_of_entries() {
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
        // A row shows what was asked, so it is found by it.
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
fn a_row_that_a_query_found_says_where() {
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
fn a_bad_pattern_is_invalid_and_says_why() {
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
    let error = d.err("get_tree", json!({"query": "x", "mode": "fuzzy"}));
    assert_eq!(error.code, -32602);
}

/// What was found is kept for the next view with the same query, which must not miss what came since.
#[test]
fn what_comes_after_a_query_is_found_by_the_next() {
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
