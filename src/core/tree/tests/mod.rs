//! Compares the tree with a naive tree, which reads the whole file before it links anything.

mod linear;
mod marks;
mod places;

use super::*;
use crate::entry::{Line, scan};
use proptest::prelude::*;
use std::collections::HashMap as Map;

/// Reads lines: `id parent` is an entry, `id parent !` is a leaf record, and `id parent +` is the leaf record of an
/// import. `-` is null.
fn tree(lines: &[&str]) -> Tree {
    let mut tree = Tree::new();
    for (number, line) in lines.iter().enumerate() {
        insert(&mut tree, number, line);
    }
    tree
}

fn insert(tree: &mut Tree, number: usize, line: &str) -> Flags {
    let words: Vec<&str> = line.split(' ').collect();
    let parent = match words[1] {
        "-" => "null".to_owned(),
        id => format!("{id:?}"),
    };
    let rest = match words.get(2) {
        Some(&"!") => {
            r#","customType":"treelined.leaf","data":{"from":null,"cause":"set_leaf"}}"#.to_owned()
        }
        Some(&"+") => {
            r#","customType":"treelined.leaf","data":{"from":null,"cause":"import"}}"#.to_owned()
        }
        Some(label) => format!(r#","targetId":{label:?},"label":"of {}"}}"#, words[0]),
        None => r#","message":{"role":"user","content":"x"}}"#.to_owned(),
    };
    let kind = match words.get(2) {
        Some(&"!" | &"+") => "custom",
        Some(_) => "label",
        None => "message",
    };
    let id = words[0];
    let text = format!(
        r#"{{"type":"{kind}","id":"{id}","parentId":{parent},"timestamp":"2025-01-01T00:00:00.000Z"{rest}"#
    );
    let Ok(Line::Entry(envelope)) = scan::scan_line(text.as_bytes()) else {
        panic!("{text}");
    };
    let place = FilePlace {
        offset: number as u64,
        len: 1,
    };
    let inserted = tree.insert(
        id,
        &envelope.parent,
        &envelope,
        place,
        Flags::NONE,
        number as u64 + 1,
    );
    inserted.unwrap().refused
}

fn ids(tree: &Tree, nodes: Vec<Node>) -> String {
    let ids: Vec<&str> = nodes.into_iter().map(|node| tree.id(node)).collect();
    ids.join(" ")
}

#[track_caller]
fn check_path(lines: &[&str], of: &str, path: &str) {
    let tree = tree(lines);
    assert_eq!(ids(&tree, tree.path(tree.find(of))), path);
}

#[test]
fn paths_lead_from_the_root() {
    check_path(&["a -", "b a", "c b", "d a"], "c", "a b c");
    check_path(&["a -", "b a", "c b", "d a"], "d", "a d");
}

#[test]
fn the_deepest_common_ancestor() {
    let tree = tree(&["a -", "b a", "c b", "d b", "e d", "x -"]);
    let common = |a: &str, b: &str| {
        let common = tree.common_ancestor(tree.find(a), tree.find(b));
        common.map(|node| tree.id(node).to_owned())
    };
    assert_eq!(common("c", "e").as_deref(), Some("b"));
    assert_eq!(common("e", "b").as_deref(), Some("b"));
    assert_eq!(common("e", "e").as_deref(), Some("e"));
    assert_eq!(common("e", "x"), None);
    assert_eq!(tree.common_ancestor(None, tree.find("e")), None);
}

#[test]
fn a_reference_to_a_leaf_record_means_the_position_it_records() {
    let lines = ["a -", "b a", "r a !", "s r !", "c s", "n - !", "d n"];
    check_path(&lines, "c", "a c");
    check_path(&lines, "d", "d");
    let tree = tree(&lines);
    assert_eq!(tree.find("r"), None);
    assert_eq!(tree.entry_count(), 4);
    assert!(tree.flags(tree.find("c").unwrap()).has(Flags::REPARENTED));
}

#[test]
fn the_leaf_record_of_an_import_is_not_a_move() {
    let mut tree = tree(&["a -", "b a", "r a !", "c b", "i b +"]);
    assert_eq!(tree.file_leaf(), tree.find("b"));
    tree.set_leaf(tree.find("b"));
    let moves = tree.moves().log().iter();
    let moved: Vec<&str> = moves.map(|made| tree.id(made.at)).collect();
    assert_eq!(moved, ["r"]);
    assert_eq!(tree.moves().undo_target(&tree), Some(None));
}

#[test]
fn a_late_parent_is_linked_through_records_too() {
    let lines = ["c r", "r p !", "p -"];
    check_path(&lines, "c", "p c");
    let tree = tree(&lines);
    let flags = tree.flags(tree.find("c").unwrap());
    assert!(flags.has(Flags::FORWARD_PARENT) && flags.has(Flags::REPARENTED));
    assert!(!flags.has(Flags::ORPHAN));
}

#[test]
fn a_cycle_is_cut_at_the_line_that_closes_it() {
    let mut tree = Tree::new();
    assert_eq!(insert(&mut tree, 0, "a c"), Flags::NONE);
    assert_eq!(insert(&mut tree, 1, "b a"), Flags::NONE);
    assert_eq!(insert(&mut tree, 2, "c b"), Flags::CYCLE);
    assert_eq!(ids(&tree, tree.children(None)), "c");
    assert_eq!(ids(&tree, tree.path(tree.find("b"))), "c a b");
}

#[test]
fn a_record_cannot_close_a_cycle_either() {
    let tree = tree(&["x r", "r x !", "y x"]);
    assert_eq!(ids(&tree, tree.path(tree.find("y"))), "x y");
    assert!(tree.flags(tree.find("x").unwrap()).has(Flags::CYCLE));
}

#[test]
fn an_entry_that_is_its_own_parent_is_a_root() {
    let mut tree = Tree::new();
    assert_eq!(insert(&mut tree, 0, "a a"), Flags::SELF_PARENT);
    assert_eq!(ids(&tree, tree.children(None)), "a");
}

#[test]
fn the_last_label_in_the_file_counts_on_any_branch() {
    let tree = tree(&["l - a", "a -", "b a", "m b b", "n a b"]);
    let label = |id: &str| {
        tree.label(tree.find(id).unwrap())
            .map(|label| label.text.to_string())
    };
    assert_eq!(label("a").as_deref(), Some("of l"));
    assert_eq!(label("b").as_deref(), Some("of n"));
}

/// The parent of every entry comes late, and is at the end of a long chain. In quadratic time this would take hours.
#[test]
fn late_parents_below_a_long_chain_are_linked_in_time() {
    let mut tree = Tree::new();
    let n = 20_000;
    let id = |i: usize| format!("e{i}");
    insert(&mut tree, 0, "e0 -");
    for i in 1..n {
        insert(&mut tree, i, &format!("{} {}", id(i), id(i - 1)));
    }
    for i in 0..n {
        insert(&mut tree, n + 2 * i, &format!("w{i} b{i}"));
        insert(
            &mut tree,
            n + 2 * i + 1,
            &format!("b{i} {}", id(n - 1 - i % 100)),
        );
    }
    assert_eq!(tree.path(tree.find("w0")).len(), n + 2);
    assert_eq!(ids(&tree, tree.children(None)), "e0");
}

/// A tree by the rules of session-file.md §2 and §4, read from all lines at once.
struct Naive<'a> {
    lines: Map<&'a str, (usize, &'a str, bool)>,
    parents: Map<&'a str, Option<&'a str>>,
}

impl<'a> Naive<'a> {
    fn new(lines: &'a [(String, String, bool)]) -> Self {
        let by_id: Map<&str, (usize, &str, bool)> = lines
            .iter()
            .enumerate()
            .map(|(at, (id, parent, record))| (id.as_str(), (at, parent.as_str(), *record)))
            .collect();
        let mut naive = Self {
            lines: by_id,
            parents: Map::new(),
        };
        for (id, parent, record) in lines {
            if !record {
                let parent = naive.resolve(parent);
                let closes =
                    parent.is_some_and(|parent| naive.ancestors(parent).contains(&id.as_str()));
                naive.parents.insert(id, parent.filter(|_| !closes));
            }
        }
        naive
    }

    /// The first entry up a chain of records.
    fn resolve(&self, mut id: &'a str) -> Option<&'a str> {
        for _ in 0..=self.lines.len() {
            let (_, parent, record) = self.lines.get(id)?;
            if !record {
                return Some(id);
            }
            id = parent;
        }
        None
    }

    fn ancestors(&self, id: &'a str) -> Vec<&'a str> {
        std::iter::successors(Some(id), |id| self.parents.get(id).copied().flatten()).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn agrees_with_a_naive_tree(
        links in prop::collection::vec((0usize..14, any::<prop::sample::Index>(), prop::bool::weighted(0.2)), 1..14),
        asked in 0..20usize,
    ) {
        let n = links.len();
        let lines: Vec<(String, String, bool)> = links
            .iter()
            .enumerate()
            .map(|(at, (kind, parent, record))| {
                let parent = match kind {
                    0 => "-".to_owned(),
                    1 => "gone".to_owned(),
                    // Every writer of records lets a record name an earlier entry.
                    _ if *record => format!("e{}", parent.index(at.max(1))),
                    // If a record is after the entry that names it, no single line closes the cycle.
                    _ => match parent.index(n) {
                        later if later > at && links[later].2 => "gone".to_owned(),
                        parent => format!("e{parent}"),
                    },
                };
                (format!("e{at}"), parent, *record && at > 0)
            })
            .collect();
        let naive = Naive::new(&lines);
        let mut tree = Tree::new();
        for (at, (id, parent, record)) in lines.iter().enumerate() {
            // If the tree is queried early, it keeps the ancestry up to date from then on; otherwise it computes the
            // ancestry at the end.
            if asked == at && at > 0 {
                tree.has_children(Node(0));
            }
            insert(&mut tree, at, &format!("{id} {parent}{}", if *record { " !" } else { "" }));
        }
        for (id, _, record) in &lines {
            if *record {
                continue;
            }
            let node = tree.find(id).unwrap();
            let parent = tree.parent(node).map(|parent| tree.id(parent));
            prop_assert_eq!(parent, naive.parents[id.as_str()], "{} in {:?}", id, lines);
            let below: Vec<Node> = tree.entries().filter(|below| tree.parent(*below) == Some(node)).collect();
            prop_assert_eq!(tree.has_children(node), !below.is_empty());
            prop_assert_eq!(tree.children(Some(node)), below);
        }
        // The walk that counts depths also works with parents that come after their children.
        let positions: Vec<Option<Node>> = std::iter::once(None).chain(tree.entries().map(Some)).collect();
        for a in &positions {
            for b in &positions {
                prop_assert_eq!(tree.common_ancestor(*a, *b), tree.common_ancestor_by_depth(*a, *b));
                if let Some(near) = tree.nearby_ancestor(*a, *b) {
                    prop_assert_eq!(near, tree.common_ancestor_by_depth(*a, *b));
                }
                let (ancestor, branch) = tree.branch(*a, *b);
                prop_assert_eq!(ancestor, tree.common_ancestor_by_depth(*a, *b));
                let path = tree.path(*a).into_iter();
                let below = path.skip(tree.ancestors(ancestor).count());
                prop_assert_eq!(branch, below.collect::<Vec<_>>());
            }
        }
        let mut reached = 0;
        let mut open = tree.children(None);
        while let Some(node) = open.pop() {
            reached += 1;
            open.extend(tree.children(Some(node)));
        }
        prop_assert_eq!(reached, tree.entry_count());
    }
}
