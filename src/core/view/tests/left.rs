//! Tests of `fold: "left"`: the active path is flat, and each fork has one row for the branches
//! that the leaf has left.

use super::*;
use crate::test_support::time::{check_linear, processor_time};

/// The leaf is e2. The leaf has left two branches at a1, one branch at e1, and one root.
///
/// ```text
/// z1
/// u1 ─ a1 ┬ b1 ─ b2 ┬ x1
///         │         └ y1 ─ y2
///         ├ c1
///         └ d1 ─ e1 ┬ f1
///                   └ e2
/// ```
fn session() -> Session {
    let edges = "z1 / u1 / a1 u1 / b1 a1 / b2 b1 / x1 b2 / y1 b2 / y2 y1 / c1 a1 / d1 a1 / e1 d1 / f1 e1 / e2 e1";
    let lines = edges.split(" / ").enumerate().map(|(at, edge)| {
        let (id, parent) = edge.split_once(' ').unwrap_or((edge, ""));
        user(id, parent, at as u32, id)
    });
    Session::of(lines)
}

fn folded<'a>(expand: &'a [&'a str], each: &'a [&'a str]) -> Ask<'a> {
    Ask {
        scope: Scope {
            active_last: true,
            ..Scope::default()
        },
        left: Some([expand, each]),
        guides: Some(Guides::new(Render::Unicode, None)),
        ..Ask::default()
    }
}

/// The rows as a terminal shows them: their ids, and for a folded row its preview.
fn drawn(session: &Session, expand: &[&str], each: &[&str]) -> String {
    let view = session.view(&folded(expand, each));
    let lines = view.rows.iter().map(|row| {
        let prefix = row["prefix"].as_str().unwrap();
        let member = if row["folded"].is_null() {
            "id"
        } else {
            "preview"
        };
        format!("{prefix}{}\n", row[member].as_str().unwrap())
    });
    lines.collect()
}

/// All branches of a tree were once drawn, and each step of the conversation was further to the right.
#[test]
fn the_active_path_is_flat_and_each_fork_has_one_line() {
    assert_eq!(
        drawn(&session(), &[], &[]),
        "\
└─ 1 entry · z1
u1
a1
└─ 2 branches · 6 entries · b1
d1
e1
└─ 1 entry · f1
e2
"
    );
    let view = session().view(&folded(&[], &[]));
    assert_eq!((view.total, view.hidden), (8, 0));
    assert_eq!(view.rows[3]["folded"]["branches"], 2);
    assert_eq!(view.rows[3]["depth"], 2, "as in the whole tree");
    assert_eq!(view.rows[3]["parentId"], "a1");
    assert_eq!(view.marked("isLeaf"), "e2");
}

#[test]
fn other_roots_are_one_line() {
    let mut session = session();
    session.append(user("w1", "", 20, "w1"));
    let rows = "└─ 2 branches · 13 entries · z1\nw1\n";
    assert_eq!(drawn(&session, &[], &[]), rows);
    // Before the first message no branch has the leaf, so the newest branch continues the path.
    session.tree.set_leaf(None);
    assert_eq!(drawn(&session, &[], &[]), rows);
}

#[test]
fn below_the_leaf_nothing_goes_on() {
    let mut session = session();
    session.tree.set_leaf(Some(session.node("a1")));
    let rows = "└─ 1 entry · z1\nu1\na1\n└─ 3 branches · 10 entries · b1\n";
    assert_eq!(drawn(&session, &[], &[]), rows);
}

#[test]
fn a_fork_is_listed_then_a_branch_is_opened() {
    let all = drawn(&session(), &["b1"], &["b1"]);
    let head = "└─ 1 entry · z1\nu1\na1\n";
    let tail = "d1\ne1\n└─ 1 entry · f1\ne2\n";
    let with = |rows: &str| format!("{head}{rows}{tail}");
    assert_eq!(
        drawn(&session(), &[], &["c1"]),
        with("├─ 5 entries · b1\n└─ 1 entry · c1\n")
    );
    // Inside an open branch, the newest branch continues the path, and the other branches are folded again.
    let open = "├─ b1\n│  b2\n│  └─ 1 entry · x1\n│  y1\n│  y2\n└─ 1 entry · c1\n";
    assert_eq!(all, with(open));
    // A branch that was not opened remains one row.
    assert_eq!(drawn(&session(), &["b1"], &[]), with(open));
}

#[test]
fn an_entry_opens_all_branches_that_hold_it() {
    let rows = drawn(&session(), &["x1"], &[]);
    let open = "├─ b1\n│  b2\n│  ├─ x1\n│  y1\n│  y2\n└─ 1 entry · c1\n";
    assert!(rows.contains(&open.replace("├─ x1", "└─ x1")), "{rows}");
}

#[test]
fn a_row_names_the_ids_that_opened_it() {
    let view = session().view(&folded(&["y2", "x1", "e2"], &["c1"]));
    let opened = |id: &str| {
        let row = view.rows.iter().find(|row| row["id"] == id);
        row.unwrap()["opened"].clone()
    };
    let listed = serde_json::json!({"each": ["c1"]});
    assert_eq!(
        opened("b1"),
        serde_json::json!({"expand": ["x1", "y2"], "each": ["c1"]})
    );
    assert_eq!(opened("c1"), listed);
    assert_eq!(opened("x1"), serde_json::json!({"expand": ["x1"]}));
    assert_eq!(opened("y1"), Value::Null, "it goes on");
    assert_eq!(opened("e2"), Value::Null, "it is on the active path");
}

#[test]
fn the_row_of_a_folded_entry_is_its_line() {
    for (around, at) in [("y2", "b1"), ("c1", "b1"), ("z1", "z1"), ("e1", "e1")] {
        let ask = Ask {
            around: Some(around),
            limit: Some(1),
            ..folded(&[], &[])
        };
        assert_eq!(session().view(&ask).ids(), at, "{around}");
    }
}

#[test]
fn a_depth_and_a_root_work_as_ever() {
    let ask = Ask {
        max_depth: Some(2),
        ..folded(&["y2"], &[])
    };
    assert_eq!(session().view(&ask).ids(), "z1 u1 a1 b1 c1 d1");
    let session = session();
    let mut ask = folded(&[], &[]);
    ask.scope.root = Some(session.node("b1"));
    assert_eq!(session.view(&ask).ids(), "b1 b2 x1 y1 y2");
}

#[test]
fn appends_at_the_leaf_extend_the_view() {
    let mut session = session();
    let folding = || Folding {
        left: Some(Left::default()),
        ..Folding::default()
    };
    let scope = folded(&[], &[]).scope;
    let mut outline = Outline::new(&session.tree, scope);
    let mut visible = Visible::new(&outline, None, &folding());
    session.append(user("e3", "e2", 20, "e3"));
    session.append(user("e4", "e3", 21, "e4"));
    assert!(outline.extend(&session.tree, scope) && visible.extend(&outline));
    let outline = Outline::new(&session.tree, scope);
    let anew = Visible::new(&outline, None, &folding());
    assert_eq!(visible.rows(), anew.rows());
    assert_eq!(visible.total(), 10);
}

/// Every other entry begins a branch that is opened. Each of these branches is walked once.
#[test]
fn many_branches_are_folded_and_opened_in_linear_time() {
    let left: [fn(Vec<Node>) -> Left; 3] = [
        |_| Left::default(),
        |expand| Left {
            expand: expand.into_iter().collect(),
            ..Left::default()
        },
        |each| Left {
            each: each.into_iter().collect(),
            ..Left::default()
        },
    ];
    for (number, left) in left.iter().enumerate() {
        check_linear(&format!("branches {number}"), [1_000, 32_000], |count| {
            let tree = super::shape::large(count, |at| at.checked_sub(1 + (at + 1) % 2));
            let outline = Outline::new(&tree, folded(&[], &[]).scope);
            let nodes = outline.items().iter().map(|item| item.node);
            let folding = Folding {
                left: Some(left(nodes.collect())),
                ..Folding::default()
            };
            processor_time(|| {
                let visible = Visible::new(&outline, None, &folding);
                assert!(visible.total() > 2);
            })
        });
    }
}
