//! Rows of `get_tree`: their order, their members, previews, and the drawn prefix.

use super::*;

#[test]
fn rows_come_in_depth_first_pre_order_with_all_members() {
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
    assert!(tree.get("nextCursor").is_none(), "{tree}");
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
        u1.get("label").is_none() && u1.get("prefix").is_none(),
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
fn siblings_are_ordered_by_time_then_by_file() {
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

#[test]
fn prefixes_draw_the_lines_of_the_tree() {
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

/// Deep prefixes were once cut with a mark that did not show how much was missing, and each client cut them again.
#[test]
fn deep_prefixes_are_cut_from_the_left_with_a_count() {
    // Each level has a branch, so each level is indented.
    let mut log = Log::new("s1").user("n0", "", "x");
    for n in 1..130 {
        log = log
            .user(&format!("s{n}"), &format!("n{}", n - 1), "x")
            .user(&format!("n{n}"), &format!("n{}", n - 1), "x");
    }
    let mut d = opened(&log);
    for (columns, most) in [(None, 64), (Some(64), 64), (Some(12), 12), (Some(1), 6)] {
        for (render, mark) in [("unicode", '…'), ("ascii", '<')] {
            let tree = d.ok(
                "get_tree",
                json!({"render": render, "prefixColumns": columns}),
            );
            for row in tree["nodes"].as_array().unwrap() {
                let prefix = row["prefix"].as_str().unwrap();
                let indent = row["indent"].as_u64().unwrap() as usize;
                assert!(prefix.chars().count() <= most, "{row}");
                let Some(rest) = prefix.strip_prefix(mark) else {
                    assert_eq!(prefix.chars().count(), indent * 3, "{row}");
                    continue;
                };
                let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
                let left_out: usize = digits.parse().unwrap();
                // The mark has the width of one level if fewer than 100 levels are left out, and otherwise the width of
                // two levels.
                let mark = if left_out < 100 { 3 } else { 6 };
                assert_eq!(
                    prefix.chars().count() - mark,
                    (indent - left_out) * 3,
                    "{row}"
                );
            }
        }
    }
    let tree = d.ok(
        "get_tree",
        json!({"render": "unicode", "prefixColumns": 12}),
    );
    assert_eq!(row(&tree, "n5")["prefix"], "…2       └─ ");
    assert_eq!(
        row(&tree, "s129")["prefix"],
        "…127  │  ├─ ".replace("│  ├─", "   ├─")
    );
}
