//! Names of branches, and archived branches (session-file.md §4.7).

use super::super::branches;
use super::*;
use crate::entry::scan::scan_line;
use crate::entry::{Line, Parent};

/// Inserts lines in the order of a file.
fn tree_of(lines: &[(&str, &str, &str)]) -> Tree {
    let mut tree = Tree::new();
    for (number, (id, parent, rest)) in lines.iter().enumerate() {
        let parent_id = crate::json::quoted_or_null(Some(*parent).filter(|id| !id.is_empty()));
        let parent_id = String::from_utf8(parent_id).unwrap();
        let line = format!(
            r#"{{"type":"{}","id":"{id}","parentId":{parent_id},"timestamp":"2026-03-01T09:30:00.000Z"{}}}"#,
            if rest.is_empty() { "message" } else { "custom" },
            if rest.is_empty() {
                r#","message":{"role":"user","content":"x"}"#
            } else {
                rest
            },
        );
        let Ok(Line::Entry(envelope)) = scan_line(line.as_bytes()) else {
            panic!("{line}")
        };
        let place = FilePlace {
            offset: number as u64,
            len: 1,
        };
        let parent: Parent<'_> = envelope.parent.clone();
        tree.insert(
            id,
            &parent,
            &envelope,
            place,
            Flags::NONE,
            number as u64 + 1,
        );
    }
    let leaf = tree.file_leaf();
    tree.set_leaf(leaf);
    tree
}

fn record(kind: &str, entry: &str, more: &str) -> String {
    format!(r#","customType":"treelined.{kind}","data":{{"entryId":"{entry}"{more}}}"#)
}

fn names(tree: &Tree) -> Vec<(String, Option<String>)> {
    let name = |head| tree.branch_name(head).map(str::to_owned);
    let branches = branches::list(tree).into_iter();
    branches
        .map(|branch| {
            (
                tree.id(branch.tip).to_owned(),
                branch.named_by.and_then(name),
            )
        })
        .collect()
}

#[test]
fn a_name_goes_on_with_the_older_child() {
    let named = record("branch", "a", r#","name":"old""#);
    let other = record("branch", "d", r#","name":"new""#);
    let tree = tree_of(&[
        ("a", "", ""),
        ("b", "a", ""),
        ("r1", "b", &named),
        ("c", "b", ""),
        ("d", "b", ""),
        ("e", "c", ""),
        ("r2", "e", &other),
    ]);
    let expected = [("d", Some("new")), ("e", Some("old"))];
    let expected = expected.map(|(tip, name)| (tip.to_owned(), name.map(str::to_owned)));
    assert_eq!(names(&tree), expected);
}

/// The entry of a record may come later in the file, for instance after two files were merged by hand.
#[test]
fn a_mark_waits_for_its_entry() {
    let archived = record("archived", "c", "");
    let tree = tree_of(&[("a", "", ""), ("r1", "a", &archived), ("b", "a", "")]);
    assert_eq!(tree.archived().count(), 0, "it never comes");
    let archived = record("archived", "c", "");
    let tree = tree_of(&[
        ("a", "", ""),
        ("r1", "a", &archived),
        ("c", "a", ""),
        ("b", "a", ""),
    ]);
    assert_eq!(
        tree.archived().count(),
        0,
        "a step after the record brings it back"
    );
    let archived = record("archived", "c", "");
    let tree = tree_of(&[
        ("a", "", ""),
        ("c", "a", ""),
        ("b", "a", ""),
        ("r1", "b", &archived),
    ]);
    let marks = tree.archived();
    assert_eq!(
        (marks.count(), marks.hides(tree.find("c").unwrap())),
        (1, true)
    );
}

/// A long path on which each entry has a branch with a name. Each of these branches is archived.
#[test]
fn many_marks_take_linear_time() {
    let steps = |count: usize| {
        let mut lines: Vec<(String, String, String)> = Vec::new();
        for at in 0..count {
            let above = at
                .checked_sub(1)
                .map_or(String::new(), |above| format!("p{above}"));
            lines.push((format!("p{at}"), above, String::new()));
            lines.push((format!("b{at}"), format!("p{at}"), String::new()));
        }
        let last = format!("p{}", count - 1);
        for at in 0..count {
            let named = record("branch", &format!("b{at}"), r#","name":"n""#);
            lines.push((format!("n{at}"), last.clone(), named));
            let archived = record("archived", &format!("b{at}"), "");
            lines.push((format!("r{at}"), last.clone(), archived));
        }
        let lines: Vec<(&str, &str, &str)> = lines
            .iter()
            .map(|(id, parent, rest)| (id.as_str(), parent.as_str(), rest.as_str()))
            .collect();
        let tree = tree_of(&lines);
        assert_eq!(tree.archived().count(), count);
        steps::of(|| {
            let found = branches::list(&tree);
            assert_eq!(
                found
                    .iter()
                    .filter(|branch| branch.named_by.is_some())
                    .count(),
                count
            );
        })
    };
    let (few, many) = (steps(500), steps(1000));
    assert!(many <= few * 5 / 2, "{few} steps, then {many}");
}

#[test]
fn an_image_keeps_the_marks() {
    let (named, archived) = (
        record("branch", "b", r#","name":"x""#),
        record("archived", "b", ""),
    );
    let tree = tree_of(&[
        ("a", "", ""),
        ("b", "a", ""),
        ("c", "a", ""),
        ("r1", "c", &named),
        ("r2", "c", &archived),
    ]);
    let image = tree.image().unwrap();
    let table = image::IdTable::of(image.count, &image.id_lens, &image.ids).unwrap();
    let mut rows = image::ImageRows::with_capacity(image.count);
    rows.take(&image.rows, &image.id_lens, u64::MAX).unwrap();
    let mut read = rows
        .finish(image.count, image.ids.clone(), table, &image.rest)
        .unwrap();
    let leaf = read.file_leaf();
    read.set_leaf(leaf);
    assert_eq!(read.archived().count(), 1);
    assert_eq!(read.branch_name(read.find("b").unwrap()), Some("x"));
    assert_eq!(read.marks().version(), tree.marks().version());
}

/// Another program may write any text as a group, and each group is kept in memory.
#[test]
fn a_group_that_is_too_long_is_ignored() {
    for (length, counts) in [(256, true), (257, false)] {
        let group = "g".repeat(length);
        let rest = format!(r#","customType":"x","background":true,"group":"{group}""#);
        let tree = tree_of(&[("a", "", ""), ("b", "a", &rest)]);
        let at = tree.find("b").unwrap();
        assert!(tree.is_background(at));
        assert_eq!(tree.group(at).is_some(), counts, "{length}");
    }
}
