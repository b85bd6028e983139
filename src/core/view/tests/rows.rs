//! Rows: filters, order, query, fold, depth, pages, guides, members, nesting.

use super::*;
use crate::search::Excerpt;
use serde_json::json;

const CALLS: &str = r#""role":"assistant","content":[{"type":"toolCall","id":"t","name":"read","arguments":{"path":"a.rs"}}]"#;

/// One entry of every kind that the filters distinguish, in one chain.
fn every_kind() -> Session {
    let failed =
        format!(r#","message":{{{CALLS},"stopReason":"error","errorMessage":"overloaded"}}"#);
    let calls = format!(r#","message":{{{CALLS}}}"#);
    let chain: [(&str, &str, &str); 18] = [
        (
            "u1",
            "message",
            r#","message":{"role":"user","content":"first"}"#,
        ),
        ("calls", "message", &calls),
        (
            "result",
            "message",
            r#","message":{"role":"toolResult","toolName":"read","content":"x"}"#,
        ),
        (
            "said",
            "message",
            r#","message":{"role":"assistant","content":[{"type":"text","text":"done"}]}"#,
        ),
        ("failed", "message", &failed),
        (
            "note",
            "custom_message",
            r#","customType":"n","content":"note","display":true"#,
        ),
        (
            "secret",
            "custom_message",
            r#","customType":"n","content":"secret","display":false"#,
        ),
        ("custom", "custom", r#","customType":"my.state""#),
        ("model", "model_change", r#","provider":"p","modelId":"m""#),
        (
            "level",
            "thinking_level_change",
            r#","thinkingLevel":"high""#,
        ),
        (
            "edit",
            "context_edit",
            r#","targetId":"u1","replacement":null"#,
        ),
        (
            "usage",
            "usage",
            r#","kind":"k","provider":"p","model":"m""#,
        ),
        ("info", "session_info", r#","name":"n""#),
        ("label", "label", r#","targetId":"u1","label":"start""#),
        ("hush", "label", r#","targetId":"secret","label":"hush""#),
        ("pact", "compaction", r#","summary":"s","tokensBefore":7"#),
        ("other", "plan", ""),
        ("tail", "message", &calls),
    ];
    let mut parent = "";
    let lines = (1..).zip(chain).map(|(at, (id, kind, members))| {
        entry(id, std::mem::replace(&mut parent, id), at, kind, members)
    });
    Session::of(lines)
}

#[test]
fn filters() {
    let session = every_kind();
    let ids = |filter| session.view(&Ask::filter(filter)).ids();
    // The last entry has only tool calls, but it is the leaf.
    assert_eq!(
        ids(Filter::Default),
        "u1 result said failed note pact other tail"
    );
    assert_eq!(ids(Filter::NoTools), "u1 said failed note pact other tail");
    assert_eq!(ids(Filter::UserOnly), "u1 note");
    assert_eq!(ids(Filter::LabeledOnly), "u1");
    assert_eq!(
        ids(Filter::All),
        "u1 calls result said failed note secret custom model level edit usage info label hush pact other tail"
    );
    let view = session.view(&Ask::filter(Filter::UserOnly));
    assert_eq!((view.total, view.hidden), (2, 16));
}

#[test]
fn a_hidden_leaf_is_marked_above() {
    let mut session = every_kind();
    let leaf = session.node("level");
    session.tree.set_leaf(Some(leaf));
    let view = session.view(&Ask::filter(Filter::Default));
    assert_eq!(view.marked("isLeaf"), "note");
    assert_eq!(view.marked("onActivePath"), "u1 result said failed note");
    assert_eq!(view.ids(), "u1 result said failed note pact other");
    session.tree.set_leaf(None);
    assert_eq!(
        session.view(&Ask::filter(Filter::Default)).marked("isLeaf"),
        ""
    );
}

#[test]
fn members_of_rows() {
    let session = every_kind();
    let view = session.view(&Ask {
        guides: None,
        ..Ask::filter(Filter::All)
    });
    let row = |id: &str| {
        view.rows
            .iter()
            .find(|row| row["id"] == id)
            .unwrap()
            .clone()
    };
    assert_eq!(
        row("u1"),
        json!({"id":"u1","parentId":null,"type":"message","role":"user","preview":"first",
            "timestamp":"2025-01-01T00:00:01.000Z","label":"start",
            "labelTimestamp":"2025-01-01T00:00:14.000Z","childCount":1,"depth":0,"indent":0,
            "onActivePath":true,"isLeaf":false,"isBranchPoint":false})
    );
    assert_eq!(row("pact")["tokens"], 7);
    assert_eq!(row("pact").get("role"), None);
    assert_eq!(row("result")["toolName"], "read");
    assert_eq!(row("result").get("isError"), None);
    assert_eq!(row("failed")["isError"], true);
    assert_eq!(row("other")["type"], "plan");
    assert_eq!(row("tail")["parentId"], "other");
}

#[test]
fn the_order_of_members_is_the_documents() {
    let session = Session::of([
        message(
            "a",
            "gone",
            1,
            r#""role":"toolResult","toolName":"t","isError":true,"content":"y""#,
        ),
        entry("l", "a", 2, "label", r#","targetId":"a","label":"x""#),
    ]);
    let outline = Outline::new(&session.tree, Scope::default());
    let visible = Visible::new(&outline, None, &Folding::default());
    let snapshot = Snapshot::take(&session.tree, &outline, visible.items_of(0..1));
    let served = visible.served(&snapshot, 0..1).next().unwrap();
    let facts = RowFacts {
        tokens: Some(u64::MAX),
        ..session.facts(&served.entry)
    };
    let mut out = Vec::new();
    let query = Query::parse("y", Mode::Literal).unwrap().unwrap();
    let found = Excerpt::of(&query, "y");
    let look = RowLook::default();
    let parts = RowParts {
        found: Some(&found),
        ..RowParts::plain(&facts, &look, "/w")
    };
    served.push_json(&mut out, parts, Some(Guides::new(Render::Ascii, None)));
    assert_eq!(
        String::from_utf8(out).unwrap(),
        concat!(
            r#"{"id":"a","parentId":null,"type":"message","role":"toolResult","preview":"t -> x y","#,
            r#""timestamp":"2025-01-01T00:00:01.000Z","label":"x","#,
            r#""labelTimestamp":"2025-01-01T00:00:02.000Z","childCount":0,"depth":0,"indent":0,"#,
            r#""onActivePath":true,"isLeaf":true,"isBranchPoint":false,"#,
            r#""tokens":18446744073709551615,"toolName":"t","toolCall":{"name":"t"},"match":{"snippet":"y","ranges":[[0,1]]},"#,
            r#""isError":true,"prefix":"","flags":["orphan"]}"#
        )
    );
}

#[test]
fn odd_timestamps_are_shown_as_stored() {
    let odd = r#"{"type":"message","id":"a","parentId":null,"timestamp":"2025-01-01 at noon","message":{"role":"user","content":"x"}}"#;
    let none =
        r#"{"type":"message","id":"b","parentId":null,"message":{"role":"poet","content":"x"}}"#;
    let view = Session::of([odd.into(), none.into()]).view(&Ask::filter(Filter::All));
    assert_eq!(view.rows[0]["timestamp"], "2025-01-01 at noon");
    assert_eq!(view.rows[1]["timestamp"], "");
    assert_eq!(view.rows[1]["role"], "poet");
}

/// ```text
/// a ┬ b ┬ d
///   │   └ e ─ f
///   └ c ─ g
/// ```
fn branches() -> Session {
    Session::of([
        user("a", "", 1, "alpha"),
        user("b", "a", 2, "beta"),
        user("c", "a", 3, "gamma Beta"),
        user("d", "b", 4, "delta"),
        user("e", "b", 5, "epsilon"),
        user("f", "e", 6, "phi"),
        user("g", "c", 7, "GAMMA ray"),
    ])
}

#[test]
fn guides() {
    let view = branches().view(&Ask::filter(Filter::All));
    assert_eq!(
        view.drawn(),
        "a\n├─ b\n│  ├─ d\n│  └─ e\n│     f\n└─ c\n   g\n"
    );
    assert_eq!(view.marked("isBranchPoint"), "a b");
    let ascii = Ask {
        guides: Some(Guides::new(Render::Ascii, None)),
        ..Ask::filter(Filter::All)
    };
    assert_eq!(
        branches().view(&ascii).drawn(),
        "a\n|- b\n|  |- d\n|  `- e\n|     f\n`- c\n   g\n"
    );
}

#[test]
fn several_roots_are_siblings() {
    let session = Session::of([
        user("a", "", 1, "x"),
        user("b", "", 2, "x"),
        user("c", "a", 3, "x"),
    ]);
    let view = session.view(&Ask::filter(Filter::All));
    assert_eq!(view.drawn(), "├─ a\n│  c\n└─ b\n");
    assert_eq!(view.root_ids, ["a", "b"]);
    assert_eq!(view.rows[1]["depth"], 1);
}

#[test]
fn the_active_path_can_come_first() {
    let active_first = Ask {
        scope: Scope {
            filter: Filter::All,
            order: Order::ActiveFirst,
            ..Scope::default()
        },
        ..Ask::default()
    };
    let mut session = branches();
    assert_eq!(session.view(&active_first).ids(), "a c g b d e f");
    let leaf = session.node("e");
    session.tree.set_leaf(Some(leaf));
    assert_eq!(session.view(&active_first).ids(), "a b e f d c g");
}

#[test]
fn siblings_stand_by_time() {
    let session = Session::of([
        user("a", "", 5, "x"),
        user("b", "a", 9, "x"),
        user("c", "a", 3, "x"),
        user("d", "a", 9, "x"),
    ]);
    assert_eq!(session.view(&Ask::filter(Filter::All)).ids(), "a c b d");
}

#[test]
fn a_scope_has_its_own_root() {
    let session = branches();
    let mut ask = Ask::filter(Filter::All);
    ask.scope.root = Some(session.node("b"));
    let view = session.view(&ask);
    assert_eq!(view.drawn(), "b\n├─ d\n└─ e\n   f\n");
    assert_eq!(view.rows[0]["parentId"], Value::Null);
    // The leaf is elsewhere.
    assert_eq!(view.marked("isLeaf"), "");
    assert_eq!((view.total, view.hidden), (4, 0));
}

#[test]
fn folding_leaves_the_tree_as_it_is() {
    let session = branches();
    let view = session.view(&Ask {
        fold: &["b", "g"],
        ..Ask::filter(Filter::All)
    });
    assert_eq!(view.drawn(), "a\n├─ b\n└─ c\n   g\n");
    assert_eq!(view.rows[1]["childCount"], 2);
    assert_eq!((view.total, view.hidden), (4, 0));
    let view = session.view(&Ask {
        fold: &["c"],
        ..Ask::filter(Filter::All)
    });
    assert_eq!(view.marked("isLeaf"), "c");
}

#[test]
fn an_entry_that_is_not_visible_folds_nothing() {
    let session = branches();
    let ask = Ask {
        fold: &["b"],
        query: "epsilon",
        ..Ask::filter(Filter::All)
    };
    assert_eq!(session.view(&ask).ids(), "e");
}

#[test]
fn depth_counts_from_the_visible_roots() {
    let session = branches();
    let at = |max_depth| {
        session.view(&Ask {
            max_depth: Some(max_depth),
            ..Ask::filter(Filter::All)
        })
    };
    assert_eq!(at(0).ids(), "a");
    assert_eq!(at(0).rows[0]["childCount"], 2);
    assert_eq!(at(1).ids(), "a b c");
    assert_eq!(at(1).hidden, 0);
    assert_eq!(at(u64::MAX).total, 7);
}

#[test]
fn queries_ask_for_all_words() {
    let session = branches();
    let ids = |query| {
        session
            .view(&Ask {
                query,
                ..Ask::filter(Filter::All)
            })
            .ids()
    };
    assert_eq!(ids("beta"), "b c");
    assert_eq!(ids("BETA gam"), "c");
    assert_eq!(ids("  "), "a b d e f c g");
    assert_eq!(ids("user"), "a b d e f c g");
    assert_eq!(ids("nothing"), "");
    let view = session.view(&Ask {
        query: "ep",
        ..Ask::filter(Filter::All)
    });
    assert_eq!(
        (view.total, view.hidden, view.root_ids),
        (1, 6, vec!["e".to_owned()])
    );
}

#[test]
fn queries_look_at_labels_roles_and_tools() {
    let session = every_kind();
    let ids = |query| {
        session
            .view(&Ask {
                query,
                ..Ask::filter(Filter::All)
            })
            .ids()
    };
    assert_eq!(ids("START first"), "u1");
    assert_eq!(ids("toolresult read"), "result");
    // The name of the call matches; the preview shows the error.
    assert_eq!(ids("overloaded read"), "failed");
}

/// An id of a call is unique only among the calls above its result: other branches and earlier messages may use the
/// same id.
#[test]
fn a_result_shows_the_nearest_call_of_its_id_above_it() {
    let calls = |id: &str, parent: &str, at: u32, calls: &[(&str, &str)]| {
        let blocks = calls.iter().map(|(id, path)| {
            format!(
                r#"{{"type":"toolCall","id":"{id}","name":"read","arguments":{{"path":"{path}"}}}}"#
            )
        });
        let blocks = blocks.collect::<Vec<_>>().join(",");
        message(
            id,
            parent,
            at,
            &format!(r#""role":"assistant","content":[{blocks}]"#),
        )
    };
    let result = |id: &str, parent: &str, at: u32, call: &str| {
        let rest = format!(
            r#""role":"toolResult","toolCallId":"{call}","toolName":"read","content":"done""#
        );
        message(id, parent, at, &rest)
    };
    let session = Session::of([
        user("u", "", 1, "x"),
        calls("a", "u", 2, &[("1", "a1"), ("2", "a2")]),
        result("a1", "a", 3, "1"),
        result("a2", "a1", 4, "2"),
        calls("b", "a2", 5, &[("1", "b1")]),
        result("b1", "b", 6, "1"),
        // The result comes late, after another call.
        result("b2", "b1", 7, "2"),
        calls("c", "u", 8, &[("1", "c1")]),
        result("c1", "c", 9, "1"),
        result("none", "c1", 10, "2"),
    ]);
    let shown = |root: Option<&str>, id: &str| {
        let mut ask = Ask::filter(Filter::All);
        ask.scope.root = root.map(|id| session.node(id));
        let view = session.view(&ask);
        let row = view.rows.iter().find(|row| row["id"] == id).unwrap();
        row["preview"].as_str().unwrap().to_owned()
    };
    for (id, preview) in [
        ("a1", "read a1 → done"),
        ("a2", "read a2 → done"),
        ("b1", "read b1 → done"),
        ("b2", "read a2 → done"),
        ("c1", "read c1 → done"),
        ("none", "read → done"),
    ] {
        assert_eq!(shown(None, id), preview);
        // The call may be out of scope.
        assert_eq!(shown(Some(id), id), preview);
    }
}

#[test]
fn pages() {
    let page = |total, start, limit| page_range(total, start, limit);
    assert_eq!(page(10, Start::Offset(0), None), 0..10);
    assert_eq!(page(10, Start::Offset(4), Some(3)), 4..7);
    assert_eq!(page(10, Start::Offset(8), Some(3)), 8..10);
    assert_eq!(page(10, Start::Offset(99), Some(3)), 10..10);
    assert_eq!(page(10, Start::Offset(u64::MAX), Some(usize::MAX)), 10..10);
    assert_eq!(page(10, Start::Offset(3), Some(usize::MAX)), 3..10);
    assert_eq!(page(10, Start::Offset(3), Some(0)), 3..3);
    assert_eq!(page(100, Start::Around(50), Some(5)), 48..53);
    assert_eq!(page(100, Start::Around(50), Some(4)), 48..52);
    assert_eq!(page(100, Start::Around(1), Some(5)), 0..5);
    assert_eq!(page(100, Start::Around(99), Some(5)), 95..100);
    assert_eq!(page(100, Start::Around(99), None), 0..100);
    assert_eq!(page(3, Start::Around(2), Some(50)), 0..3);
    assert_eq!(page(100, Start::Around(7), Some(1)), 7..8);
    assert_eq!(page(0, Start::Around(0), Some(5)), 0..0);
}

#[test]
fn pages_together_are_the_whole() {
    let session = branches();
    let whole = session.view(&Ask::filter(Filter::All));
    for limit in 1..8 {
        let mut rows = Vec::new();
        while rows.len() < whole.total {
            let offset = rows.len() as u64;
            let page = session.view(&Ask {
                offset,
                limit: Some(limit),
                ..Ask::filter(Filter::All)
            });
            assert_eq!(page.offset as u64, offset);
            assert_eq!(page.root_ids, whole.root_ids);
            rows.extend(page.rows);
        }
        assert_eq!(rows, whole.rows);
    }
}

#[test]
fn around_an_entry_without_a_row_of_its_own() {
    let session = branches();
    let around = |id, query, fold: &[&str]| {
        let limit = Some(1);
        session
            .view(&Ask {
                around: Some(id),
                query,
                fold,
                limit,
                ..Ask::filter(Filter::All)
            })
            .ids()
    };
    assert_eq!(around("f", "", &[]), "f");
    assert_eq!(around("f", "", &["b"]), "b");
    assert_eq!(around("d", "alpha", &[]), "a");
    // If no row above is visible, the next row is used, or else the last row.
    assert_eq!(around("d", "ray", &[]), "g");
    assert_eq!(around("g", "delta", &[]), "d");
    assert_eq!(around("g", "nothing", &[]), "");
}

#[test]
fn nested_form() {
    let session = Session::of([
        user("a", "", 1, "x"),
        user("b", "a", 2, "x"),
        user("c", "a", 3, "x"),
        user("d", "b", 4, "x"),
        user("e", "", 5, "x"),
        entry("l", "", 6, "label", r#","targetId":"b","label":"here""#),
    ]);
    let outline = Outline::new(&session.tree, Scope::default());
    let visible = Visible::new(&outline, None, &Folding::default());
    let snapshot = Snapshot::take(
        &session.tree,
        &outline,
        visible.items_of(0..visible.total()),
    );
    let mut out = Vec::new();
    nested::push_json(&mut out, &visible, &snapshot, |out, item| {
        let entry = snapshot.entry(item).ok_or("not taken")?;
        crate::json::push_raw(out, session.stored(entry.place));
        Ok::<(), &str>(())
    })
    .unwrap();
    let stored = |id: &str| -> Value {
        let place = session.tree.place(session.node(id));
        serde_json::from_slice(session.stored(place)).unwrap()
    };
    let got: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(
        got,
        json!([
            {"entry": stored("a"), "children": [
                {"entry": stored("b"), "children": [{"entry": stored("d"), "children": []}],
                    "label": "here", "labelTimestamp": "2025-01-01T00:00:06.000Z"},
                {"entry": stored("c"), "children": []}
            ]},
            {"entry": stored("e"), "children": []}
        ])
    );
    let stopped = nested::push_json(&mut out, &visible, &snapshot, |_, _| Err("full"));
    assert_eq!(stopped, Err("full"));
}

#[test]
fn an_empty_tree() {
    let view = Session::of([]).view(&Ask {
        around: None,
        ..Ask::filter(Filter::All)
    });
    let nothing = View {
        rows: vec![],
        root_ids: vec![],
        total: 0,
        hidden: 0,
        offset: 0,
    };
    assert_eq!(view, nothing);
}
