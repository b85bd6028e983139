//! `treelined tree` folds the branches that were left.

use super::*;
use crate::tree::left::large_tree;

fn drawn(home: &Home, path: &std::path::Path, columns: &str, options: &[&str]) -> String {
    let args = [&["tree", path.to_str().unwrap()], options].concat();
    home.run(&args, &[("COLUMNS", columns)], "").clean().text()
}

/// Branches that were left once stood between a message and its answer.
#[test]
fn a_branch_that_was_left_is_one_line() {
    let home = Home::new();
    let path = Log::new("s1")
        .user("u1", "", "Why does it fail?")
        .assistant("a1", "u1", "Two ideas.")
        .user("u2", "a1", "Clear the cache.")
        .assistant("a2", "u2", "Cleared.")
        .user("u3", "a1", "Try sed.")
        .user("u4", "a1", "Add the import.")
        .save(&home);
    let rows = |options: &[&str]| {
        let text = drawn(&home, &path, "80", options);
        let rows = text.split("\n\n").nth(1).unwrap().to_owned();
        (rows, text)
    };
    let (folded, text) = rows(&[]);
    assert_eq!(
        folded,
        "• user       Why does it fail?\n\
         • assistant  Two ideas.\n  \
           └─ ⊞ 2 branches · 3 entries · Clear the cache. · Try sed.\n\
         • user       Add the import. ← active"
    );
    assert!(
        text.contains("2 branches folded with 3 entries; --all shows them, --expand ENTRY"),
        "{text}"
    );
    let (expanded, _) = rows(&["--expand", "a2", "--ascii"]);
    assert_eq!(
        expanded,
        "* user       Why does it fail?\n\
         * assistant  Two ideas.\n  \
           |- - user       Clear the cache.\n  \
           |  assistant  Cleared.\n  \
           `- + 1 entry - Try sed.\n\
         * user       Add the import. <- active"
    );
    let (all, text) = rows(&["--all"]);
    assert!(all.contains("│  assistant  Cleared."), "{all}");
    assert!(!text.contains("folded"), "{text}");
    let json = drawn(&home, &path, "80", &["--json"]);
    assert_eq!(json.lines().count(), 6, "a script gets all rows");
}

/// The lines that draw the tree once took half of the screen, and the text had only the rest.
#[test]
fn a_tree_of_5000_entries_leaves_the_screen_to_the_text() {
    let home = Home::new();
    let path = large_tree().save(&home);
    for (columns, most) in [("40", 6), ("80", 12), ("200", 33)] {
        for options in [&["--all"][..], &[]] {
            let text = drawn(&home, &path, columns, options);
            let rows = text.split("\n\n").nth(1).unwrap();
            for row in rows.lines().map(|row| row.chars().skip(2)) {
                let is_guide = |c: &char| "│├└─… ".contains(*c) || c.is_ascii_digit();
                let guides = row.take_while(is_guide).count();
                assert!(guides <= most, "{columns} {options:?}: {guides}");
            }
        }
    }
}
