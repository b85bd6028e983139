//! Where a file opens, and branches that are in the background or archived (session-file.md §4.2, §4.7, §4.9). The
//! tests of the daemon also cover these cases; these tests have each case once.

use super::*;

/// A tree of entries: an id, the id of the parent or `-`, and the other members.
fn tree(entries: &[(&str, &str, &str)]) -> Tree {
    let mut tree = Tree::new();
    for (number, (id, parent, rest)) in entries.iter().enumerate() {
        let parent = match *parent {
            "-" => "null".to_owned(),
            parent => format!("{parent:?}"),
        };
        let text = format!(
            r#"{{"id":"{id}","parentId":{parent},"timestamp":"2025-01-01T00:00:00.000Z",{rest}}}"#
        );
        let Ok(Line::Entry(envelope)) = scan::scan_line(text.as_bytes()) else {
            panic!("{text}");
        };
        let place = FilePlace {
            offset: number as u64,
            len: 1,
        };
        let line = number as u64 + 1;
        let added = tree.insert(id, &envelope.parent, &envelope, place, Flags::NONE, line);
        assert_eq!(added.unwrap().refused, Flags::NONE);
    }
    tree
}

const SAID: &str = r#""type":"message","message":{"role":"user","content":"x"}"#;
const BEHIND: &str =
    r#""type":"message","background":true,"message":{"role":"user","content":"x"}"#;
const LABEL: &str = r#""type":"label","targetId":"u1","label":"x""#;
const MOVED: &str =
    r#""type":"custom","customType":"treelined.leaf","data":{"from":null,"cause":"set_leaf"}"#;
const KEPT: &str =
    r#""type":"custom","customType":"treelined.leaf","data":{"from":null,"cause":"keep"}"#;

fn at(tree: &Tree, id: &str) -> Node {
    tree.find(id).unwrap()
}

fn ids<'t>(tree: &'t Tree, nodes: &[Node]) -> Vec<&'t str> {
    nodes.iter().map(|node| tree.id(*node)).collect()
}

#[test]
fn a_file_opens_beside_its_newest_step_after_bookkeeping_elsewhere() {
    let with = |more: &[(&str, &str, &str)]| {
        let first = [("u1", "-", SAID), ("a1", "u1", SAID), ("a2", "a1", SAID)];
        tree(&[&first, more].concat())
    };
    for (more, expected) in [
        (&[][..], None),
        (&[("l", "u1", LABEL)], Some(("a2", "l", 2))),
        (&[("l", "a1", LABEL)], Some(("a2", "l", 1))),
        (&[("l", "a2", LABEL)], None),
        (&[("k", "u1", KEPT)], Some(("a2", "u1", 2))),
        (&[("k", "a2", KEPT)], None),
        (&[("r", "u1", MOVED)], None),
        (&[("r", "u1", MOVED), ("l", "u1", LABEL)], None),
    ] {
        let tree = with(more);
        let found = tree.beside_newest();
        let found = found.map(|it| (tree.id(it.newest), tree.id(it.opens_at), it.turns));
        assert_eq!(found, expected, "{more:?}");
    }
    assert_eq!(tree(&[]).beside_newest(), None);
    assert_eq!(tree(&[("l", "-", LABEL)]).beside_newest(), None);
}

#[test]
fn background_entries_keep_the_place_where_a_file_opens() {
    let first = [("u1", "-", SAID), ("b1", "u1", BEHIND)];
    for (more, opens_at, cut) in [
        (&[][..], "u1", Some("b1")),
        (&[("k", "u1", KEPT)], "u1", None),
        (&[("b2", "b1", BEHIND)], "u1", Some("b2")),
        (&[("x", "u1", SAID)], "x", None),
        // Another program has written before the record.
        (&[("x", "u1", SAID), ("k", "u1", KEPT)], "u1", None),
    ] {
        let tree = tree(&[&first, more].concat());
        assert_eq!(tree.file_leaf(), Some(at(&tree, opens_at)), "{more:?}");
        assert_eq!(tree.cut_background(), cut.map(|id| at(&tree, id)));
    }
    let tree = tree(&first);
    assert_eq!(tree.last_line(), Some(at(&tree, "b1")));
    assert_eq!(Tree::new().last_line(), None);
    assert_eq!(Tree::new().cut_background(), None);
}

#[test]
fn a_place_that_others_have_left_is_found() {
    let tree = tree(&[("u1", "-", SAID), ("a1", "u1", SAID), ("c1", "u1", SAID)]);
    for (end, left) in [(0, None), (1, None), (2, Some("a1")), (3, None)] {
        assert_eq!(
            tree.left_at(end),
            left.map(|id| at(&tree, id)),
            "up to {end}"
        );
    }
}

#[test]
fn a_background_branch_ends_where_another_begins() {
    let grouped = format!(r#""group":"g",{BEHIND}"#);
    let tree = tree(&[
        ("u1", "-", SAID),
        ("b1", "u1", &grouped),
        ("l", "b1", LABEL),
        ("b2", "l", BEHIND),
        ("c1", "b2", &grouped),
        ("d1", "u1", &grouped),
    ]);
    let [u1, b1, b2, c1, d1] = ["u1", "b1", "b2", "c1", "d1"].map(|id| at(&tree, id));
    let begins = [(b1, u1), (b2, b1), (c1, b2)];
    let begins = begins.map(|(step, above)| tree.begins_background(step, above));
    assert_eq!(begins, [true, false, true]);
    assert!(!tree.begins_background(u1, u1));
    assert_eq!(
        ids(&tree, &tree.background_messages(at(&tree, "l"))),
        ["b1", "b2"]
    );
    assert_eq!(ids(&tree, &tree.background_messages(c1)), ["c1"]);
    assert!(tree.background_messages(u1).is_empty());
    assert_eq!(tree.group(b2), Some((b1, "g")));
    assert_eq!(tree.group(u1), None);
    assert_eq!(Tree::new().candidates(None, "g"), []);
    assert_eq!(tree.candidates(Some(u1), "g"), [b1, d1]);
    assert_eq!(tree.candidates(Some(b2), "g"), [c1]);
    assert!(tree.names_group(d1) && !tree.names_group(b2));
    let archived = tree.archived();
    assert_eq!(tree.newest_step_below(u1, &archived), u1);
    assert_eq!(tree.newest_step_below(b1, &archived), b2);
    assert_eq!(tree.step_below(Some(b1)), Some(b2));
    assert_eq!(tree.step_below(Some(d1)), None);
}

#[test]
fn an_archived_branch_comes_back_with_its_next_step() {
    let mark = |kind: &str, of: &str| {
        format!(r#""type":"custom","customType":"treelined.{kind}","data":{{"entryId":"{of}"}}"#)
    };
    let (outer, inner) = (mark("archived", "u2"), mark("archived", "a2"));
    let back = mark("unarchived", "u2");
    let first = [
        ("u1", "-", SAID),
        ("u2", "u1", SAID),
        ("a2", "u2", SAID),
        ("u3", "u1", SAID),
    ];
    for (more, expected) in [
        (&[][..], &[][..]),
        (&[("r1", "u3", &*outer)], &["u2"]),
        (&[("r1", "u3", &*inner), ("r2", "u3", &outer)], &["u2"]),
        (&[("r1", "u3", &*inner)], &["a2"]),
        // The path of the position where the file opens is never archived.
        (&[("r1", "u3", &*outer), ("l", "a2", LABEL)], &[]),
        (
            &[
                ("r1", "u3", &*outer),
                ("l", "a2", LABEL),
                ("m", "u3", LABEL),
            ],
            &["u2"],
        ),
        (&[("r1", "u3", &*outer), ("x", "a2", SAID)], &[]),
        (&[("r1", "u3", &*outer), ("r2", "u3", &back)], &[]),
    ] {
        let tree = tree(&[&first, more].concat());
        assert_eq!(ids(&tree, &tree.outermost_archived()), expected, "{more:?}");
    }
}

#[test]
fn copies_of_an_entry_of_another_session_are_found() {
    let copied = format!(r#""copiedFrom":{{"sessionId":"s","entryId":"e"}},{SAID}"#);
    let tree = tree(&[
        ("u1", "-", SAID),
        ("c1", "u1", &copied),
        ("c2", "u1", &copied),
    ]);
    let [u1, c1, c2] = ["u1", "c1", "c2"].map(|id| at(&tree, id));
    assert_eq!(tree.copies_of("s", "e"), [c1, c2]);
    assert!(tree.copies_of("s", "other").is_empty() && tree.copies_of("t", "e").is_empty());
    assert!(tree.is_copy_of(c2, "s", "e") && !tree.is_copy_of(c2, "t", "e"));
    assert!(!tree.is_copy_of(c2, "s", "f") && !tree.is_copy_of(u1, "s", "e"));
}

fn mark(kind: &str, entry: &str, more: &str) -> String {
    format!(
        r#""type":"custom","customType":"treelined.{kind}","data":{{"entryId":"{entry}"{more}}}"#
    )
}

#[test]
fn a_branch_begins_below_a_fork_or_where_it_leaves_the_path_in_the_background() {
    let tree = tree(&[
        ("u1", "-", SAID),
        ("a1", "u1", SAID),
        ("l", "a1", LABEL),
        ("u2", "l", SAID),
        ("d1", "a1", SAID),
        ("d2", "d1", SAID),
        ("b1", "d2", BEHIND),
        ("b2", "b1", BEHIND),
        ("k", "d2", KEPT),
    ]);
    let head = |id: Option<&str>| {
        let head = tree.branch_head(id.map(|id| at(&tree, id)));
        head.map(|head| tree.id(head))
    };
    for (id, expected) in [
        ("u1", "u1"),
        ("a1", "u1"),
        ("l", "u1"),
        ("u2", "u2"),
        ("d2", "d1"),
        ("b2", "b1"),
    ] {
        assert_eq!(head(Some(id)), Some(expected), "{id}");
    }
    assert_eq!(head(None), None);
}

#[test]
fn a_name_reaches_the_steps_that_the_oldest_children_continue() {
    let first = [
        ("u1", "-", SAID),
        ("a1", "u1", SAID),
        ("l", "a1", LABEL),
        ("u2", "l", SAID),
        ("d1", "a1", SAID),
    ];
    let unnamed = tree(&first);
    assert_eq!(unnamed.named_by(at(&unnamed, "u2")), None);
    let named = mark("branch", "u1", r#","name":"first""#);
    let tree = tree(&[&first[..], &[("n", "d1", &named)]].concat());
    for (id, expected) in [
        ("u1", Some("u1")),
        ("a1", Some("u1")),
        ("u2", Some("u1")),
        ("d1", None),
    ] {
        let found = tree.named_by(at(&tree, id)).map(|found| tree.id(found));
        assert_eq!(found, expected, "{id}");
    }
    let other = mark("branch", "d1", r#","name":"other""#);
    let only = self::tree(&[&first[..], &[("n", "d1", &other)]].concat());
    assert_eq!(
        only.named_by(at(&only, "u2")),
        None,
        "no name above the root"
    );
    assert_eq!(only.branch_name(at(&only, "u2")), None);
}

/// An undo moves the leaf into an archived branch, and the redo moves the leaf out of it again. The branch stays open
/// if a step was added to it in the meantime, or if another move led into it.
#[test]
fn a_redo_archives_the_branches_that_only_its_undo_has_opened() {
    let moved = |cause: &str| MOVED.replace("set_leaf", cause);
    let archived = mark("archived", "d1", "");
    let first = [
        ("u1", "-", SAID),
        ("d1", "u1", SAID),
        ("c1", "u1", SAID),
        ("r1", "c1", &archived),
    ];
    let undo = moved("undo");
    for (more, expected) in [
        (&[("r2", "d1", &*undo)][..], &["d1"][..]),
        (&[("r2", "d1", MOVED)], &[]),
        (&[("r2", "d1", &undo), ("x", "d1", SAID)], &[]),
    ] {
        let mut tree = tree(&[&first[..], more].concat());
        tree.set_leaf(tree.file_leaf());
        let found = tree.archived_by_redo(Some(at(&tree, "c1")));
        assert_eq!(ids(&tree, &found), expected, "{more:?}");
        let stays = tree.archived_by_redo(Some(at(&tree, "d1")));
        assert_eq!(stays, [], "the redo stays in the branch");
    }
    let mut unmarked = tree(&first[..3]);
    unmarked.set_leaf(Some(at(&unmarked, "d1")));
    assert_eq!(unmarked.archived_by_redo(None), []);
}
