//! `get_tree` with `fold: "left"` (protocol.md §6.8).

use super::*;

/// A tree of 5,000 entries: 27 times a branch is left, and the next branch begins beside it.
pub(crate) fn large_tree() -> Log {
    let mut log = Log::new("s1");
    let (mut fork, mut count) = (String::new(), 0);
    for branch in 0..28 {
        // In each round one part continues, and one part is left.
        let parts = if branch < 27 { 2 } else { 1 };
        let mut next = String::new();
        for part in 0..parts {
            let mut above = fork.clone();
            let length = if branch < 27 { 90 } else { 5000 - count };
            for _ in 0..length {
                count += 1;
                let id = format!("e{count}");
                log = match count % 2 {
                    0 => log.assistant(&id, &above, "An answer with some words in it."),
                    _ => log.user(&id, &above, &format!("Question {count} of round {branch}")),
                };
                above = id;
            }
            if part == parts - 1 {
                next = above;
            }
        }
        fork = next;
    }
    log
}

/// The rows with `fold: "left"`. The branch at u2 was left, and the leaf is on the other branch.
fn left(d: &mut Daemon, more: Json) -> Json {
    let mut params = json!({"fold": "left", "render": "unicode", "filter": "all"});
    let members = params.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    d.ok("get_tree", params)
}

#[test]
fn a_folded_row_says_how_much_it_holds_and_what_was_said_first() {
    let log = two_branches()
        .assistant("b1", "a1", "no person said this")
        .user("b2", "b1", "an aside <system-reminder>x</system-reminder>")
        .user("v1", "u3", "aside\n")
        .assistant("e1", "a3", "the end");
    let mut d = opened(&log);
    let tree = left(&mut d, json!({}));
    assert_eq!(
        ids(&tree["nodes"]),
        ["u1", "a1", "u2", "u3", "v1", "c3", "t3", "a3", "e1"]
    );
    let folded = row(&tree, "u2");
    assert_eq!(folded["folded"], json!({"branches": 2, "entries": 4}));
    assert_eq!(
        folded["preview"],
        "2 branches · 4 entries · go left · an aside"
    );
    assert_eq!(folded["prefix"], "└─ ");
    assert_eq!(row(&tree, "v1")["preview"], "1 entry · aside");
    assert_eq!(tree["total"], 9);
    let tree = left(&mut d, json!({"render": "ascii"}));
    let preview = &row(&tree, "u2")["preview"];
    assert_eq!(preview, "2 branches - 4 entries - go left - an aside");
    let tree = left(&mut d, json!({"each": ["b1"]}));
    assert_eq!(row(&tree, "u2")["preview"], "2 entries · go left");
    assert_eq!(row(&tree, "b1")["opened"], json!({"each": ["b1"]}));
    let tree = left(&mut d, json!({"expand": ["u2"]}));
    assert_eq!(row(&tree, "a2")["prefix"], "│  ");
    assert_eq!(row(&tree, "u2")["opened"], json!({"expand": ["u2"]}));
}

/// Only the folded row once had the name, so a person who had opened a branch did not see which branch it is.
#[test]
fn an_open_branch_says_its_name() {
    let mut d = opened(&two_branches());
    d.ignore("branches_changed");
    for (entry, name) in [("a2", "the left way"), ("a3", "here")] {
        d.ok("name_branch", json!({"entryId": entry, "name": name}));
    }
    let names = |tree: &Json| {
        let nodes = tree["nodes"].as_array().unwrap().iter();
        let named = nodes.filter(|row| !row["branchName"].is_null());
        let pair = |row: &Json| format!("{} {}", row["id"], row["branchName"]).replace('"', "");
        named.map(pair).collect::<Vec<_>>()
    };
    let folded = left(&mut d, json!({}));
    assert_eq!(names(&folded), ["u3 here"]);
    assert_eq!(row(&folded, "u2")["preview"], "2 entries · the left way");
    let open = left(&mut d, json!({"expand": ["u2"]}));
    assert_eq!(names(&open), ["u2 the left way", "u3 here"]);
    let all = d.ok("get_tree", json!({"render": "unicode"}));
    assert_eq!(names(&all), ["u2 the left way", "u3 here"]);
    // The entry with the name has no row, so the first row below it has the name.
    let found = d.ok("get_tree", json!({"query": "right it is"}));
    assert_eq!(names(&found), ["a3 here"]);
}

/// A hit must be visible, so its branch is not folded.
#[test]
fn queries_and_bookmarks_are_not_folded() {
    let log = two_branches().label("l1", "a3", "a2", json!("here"));
    let mut d = opened(&log);
    let whole = |d: &mut Daemon, params: Json| {
        let tree = left(d, params);
        assert!(!tree.to_string().contains("\"folded\""), "{tree}");
        ids(&tree["nodes"])
    };
    assert_eq!(whole(&mut d, json!({"query": "left"})), ["u2", "a2"]);
    assert_eq!(whole(&mut d, json!({"filter": "labeled-only"})), ["a2"]);
    let tree = left(&mut d, json!({"filter": "user-only"}));
    assert_eq!(row(&tree, "u2")["folded"]["entries"], 1);
}

#[test]
fn around_a_folded_entry_is_its_line_and_expand_shows_it() {
    let mut d = opened(&two_branches());
    let tree = left(&mut d, json!({"around": "a2", "limit": 1}));
    assert_eq!(ids(&tree["nodes"]), ["u2"]);
    let tree = left(
        &mut d,
        json!({"around": "a2", "limit": 1, "expand": ["a2"]}),
    );
    assert_eq!(ids(&tree["nodes"]), ["a2"]);
    assert_eq!(tree["offset"], 3);
}

#[test]
fn what_cannot_be_folded_is_refused_and_what_opens_nothing_is_ignored() {
    let mut d = opened(&two_branches());
    for params in [
        json!({"fold": "left", "format": "nested"}),
        json!({"fold": "right"}),
    ] {
        let error = d.err_kind("get_tree", params, "invalidParams");
        assert_eq!(error.details("field"), "fold");
    }
    for member in ["expand", "each"] {
        let params = json!({"fold": "left", member: ["gone"]});
        d.err_kind("get_tree", params, "entryNotFound");
    }
    let as_ever = left(&mut d, json!({}));
    let same = left(&mut d, json!({"expand": ["a3", "u1"], "each": ["a1"]}));
    assert_eq!(same["nodes"], as_ever["nodes"]);
}

/// A navigation folds the branch that it leaves, and opens the branch to which it goes.
#[test]
fn a_move_folds_what_it_leaves() {
    let mut d = opened(&two_branches());
    let before = left(&mut d, json!({"limit": 2}));
    d.ok("navigate_tree", json!({"targetId": "a2"}));
    let tree = left(&mut d, json!({}));
    assert_eq!(ids(&tree["nodes"]), ["u1", "a1", "u3", "u2", "a2"]);
    assert_eq!(
        row(&tree, "u3")["folded"],
        json!({"branches": 1, "entries": 4})
    );
    let cursor = before["nextCursor"].clone();
    d.err_kind(
        "get_tree",
        json!({"fold": "left", "cursor": cursor}),
        "treeChanged",
    );
}

/// A tree of 5,000 entries with 27 branches once used 40 of 110 columns for guides.
#[test]
fn a_tree_of_5000_entries_has_at_most_12_columns_of_guides() {
    let mut d = opened(&large_tree());
    let widest = |tree: &Json| {
        let nodes = tree["nodes"].as_array().unwrap();
        let prefix = |row: &Json| row["prefix"].as_str().unwrap().chars().count();
        nodes.iter().map(prefix).max().unwrap()
    };
    let tree = left(&mut d, json!({"prefixColumns": 80 / 6}));
    assert_eq!(widest(&tree), 3, "at opening");
    let folded = tree["nodes"].as_array().unwrap().iter();
    let folded = folded.filter(|row| !row["folded"].is_null());
    let counts = folded.map(|row| row["folded"]["branches"].as_u64().unwrap());
    assert_eq!(counts.sum::<u64>(), 27);
    let all = d.ok(
        "get_tree",
        json!({"render": "unicode", "prefixColumns": 80 / 6}),
    );
    assert_eq!(all["total"], 5000);
    assert_eq!(widest(&all), 12, "with all open");
    let uncut = d.ok("get_tree", json!({"render": "unicode"}));
    assert!(widest(&uncut) > 60);
}
