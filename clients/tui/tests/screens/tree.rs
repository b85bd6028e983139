//! The tree: rows, filters, search, folds, keys and the mouse.

use crate::harness::{Screen, row};
use crossterm::event::MouseEventKind;
use treelined_tui::config::DoubleEscape;
use treelined_tui::keys::{KeySet, Keymap};
use treelined_tui::marked::MarkedText;
use treelined_tui::message::{Effect, Filter, PagePosition, TreeQuery};
use treelined_tui::message::{Kind, Row};
use treelined_tui::model::picker::PickerKind;

/// Returns a conversation with all kinds of rows, in the order in which the daemon gives them: that of time.
pub fn tour() -> Vec<Row> {
    let active = |row: Row| Row {
        on_active_path: true,
        ..row
    };
    let mut rows = vec![
        active(Row {
            children: 1,
            ..row("q1", "", "Why does the build fail?")
        }),
        active(Row {
            kind: Kind::Compaction,
            tokens: Some(12_345),
            parent: Some("q1".into()),
            children: 1,
            ..row("c1", "", "Goal: make it build")
        }),
        active(Row {
            kind: Kind::Assistant,
            parent: Some("c1".into()),
            children: 3,
            is_branch_point: true,
            label: Some("start".into()),
            label_time: Some("2026-11-21 19:07".into()),
            ..row("a1", "", "A stale cache, or a missing import.")
        }),
    ];
    rows.extend(abandoned());
    rows.extend([
        active(Row {
            kind: Kind::Summary,
            parent: Some("a1".into()),
            children: 1,
            ..row("s1", "└─ ", "Clearing the cache did not help")
        }),
        active(Row {
            parent: Some("s1".into()),
            is_leaf: true,
            ..row("q3", "   ", "Add the import.")
        }),
    ]);
    rows
}

/// Returns the rows of the two branches that the leaf has left.
fn abandoned() -> Vec<Row> {
    vec![
        Row {
            parent: Some("a1".into()),
            children: 1,
            ..row("q2", "├─ ", "Clear the cache.")
        },
        Row {
            kind: Kind::Assistant,
            parent: Some("q2".into()),
            children: 1,
            ..row("a2", "│  ", "I clear it now")
        },
        Row {
            kind: Kind::Tool,
            tool: Some("bash".into()),
            is_call: true,
            parent: Some("a2".into()),
            children: 1,
            ..row("t1", "│  ", "rm -r target")
        },
        Row {
            kind: Kind::Tool,
            tool: Some("bash".into()),
            is_call: true,
            is_error: true,
            parent: Some("t1".into()),
            children: 1,
            ..row(
                "t2",
                "│  ",
                "cargo build → ✗ error[E0432]: unresolved import",
            )
        },
        Row {
            kind: Kind::Bash,
            parent: Some("t2".into()),
            ..row("b1", "│  ", "$ git status")
        },
        Row {
            kind: Kind::Plugin,
            parent: Some("a1".into()),
            children: 1,
            ..row("p1", "├─ ", "CI: 3 tests failed")
        },
        Row {
            kind: Kind::Other("model".into()),
            flags: vec!["recovered".into()],
            parent: Some("p1".into()),
            ..row("m1", "│  ", "anthropic/opus")
        },
    ]
}

fn last_query(screen: &Screen) -> &TreeQuery {
    let found = screen.asked.iter().rev().find_map(|effect| match effect {
        Effect::GetTree(query) => Some(query),
        _ => None,
    });
    found.expect("the tree was asked for")
}

#[test]
fn every_kind_of_row_has_a_style() {
    let mut screen = Screen::tree(80, 24, tour());
    screen.hidden = 7;
    screen.keys("home end home");
    screen.check("tree");
}

#[test]
fn wide_screens_show_the_preview_beside_the_tree() {
    Screen::tree(140, 16, tour()).check("tree-wide");
}

#[test]
fn tiny_screens_show_the_essentials() {
    let mut screen = Screen::tree(40, 10, tour());
    screen.check("tree-tiny");
    screen.keys("tab");
    screen.check("tree-tiny-preview");
    for (columns, rows) in [(1, 1), (3, 2), (10, 4), (20, 3), (300, 2)] {
        screen.send(treelined_tui::message::Message::Resize(columns, rows));
        for keys in [
            "down", "tab", "?", "esc", "I", "esc", "L", "esc", "enter", "esc", "tab",
        ] {
            screen.keys(keys);
            screen.text();
        }
    }
}

#[test]
fn full_screen_has_no_preview() {
    Screen::tree(80, 16, tour()).keys("F").check("tree-full");
}

#[test]
fn a_key_shows_the_times_of_labels() {
    Screen::tree(80, 10, tour())
        .keys("T")
        .check("tree-label-times");
}

/// The tree of a session that was just opened: one row for the branches that were left at a1.
pub fn folded() -> Vec<Row> {
    let mut rows = tour();
    rows.retain(|row| row.on_active_path);
    for row in &mut rows {
        row.prefix.clear();
    }
    let left = Row {
        branches: 2,
        ..left_row(
            "q2",
            "└─ ",
            "2 branches · 5 entries · Clear the cache. · CI: 3 tests failed",
        )
    };
    rows.insert(3, left);
    rows
}

fn left_row(id: &str, prefix: &str, preview: &str) -> Row {
    Row {
        indent: 1,
        parent: Some("a1".into()),
        ..row(id, prefix, preview)
    }
}

/// Each branch was once drawn one step further to the right, so that a large tree had almost only guides.
#[test]
fn branches_that_were_left_are_one_row_that_keys_open_and_close() {
    let mut screen = Screen::tree(80, 16, folded());
    screen.check("tree-folded");
    screen.keys("home down down down");
    let change = |screen: &mut Screen, keys: &str, rows: Vec<Row>| {
        screen.silent = true;
        screen.keys(keys);
        screen.silent = false;
        let folds = last_query(screen).folds.clone();
        screen.rows = rows;
        screen.revision += 1;
        answer_all(screen);
        folds
    };
    let with = |rows: Vec<Row>| {
        let mut all = folded();
        all.splice(3..4, rows);
        all
    };
    let listed = |id: &str, prefix: &str, preview: &str| Row {
        branches: 1,
        listed_by: vec!["q2".into()],
        ..left_row(id, prefix, preview)
    };
    let rows = || {
        vec![
            listed("q2", "├─ ", "4 entries · Clear the cache."),
            listed("p1", "└─ ", "1 entry · CI: 3 tests failed"),
        ]
    };
    // Enter opens the row. It does not move the leaf to an entry that is not shown.
    let folds = change(&mut screen, "enter", with(rows()));
    assert_eq!((folds.each, folds.expand.len()), (vec!["q2".to_owned()], 0));
    screen.check("tree-listed");
    let open = Row {
        branches: 0,
        expanded_by: vec!["q2".into()],
        ..listed("q2", "├─ ", "Clear the cache.")
    };
    let inside = left_row("x2", "│  ", "And now?");
    let opened = || {
        let mut opened = vec![open.clone(), inside.clone()];
        opened.extend(rows().pop());
        with(opened)
    };
    let folds = change(&mut screen, "space", opened());
    assert_eq!(folds.expand, ["q2"]);
    screen.check("tree-opened");
    let folds = change(&mut screen, "down space", with(rows()));
    assert!(folds.expand.is_empty(), "closed from inside");
    let folds = change(&mut screen, "l", opened());
    assert_eq!(folds.expand, ["q2"]);
    let folds = change(&mut screen, "h", with(rows()));
    assert!(folds.expand.is_empty());
    let folds = change(&mut screen, "h", folded());
    assert!(folds.each.is_empty(), "one row again");
    let folds = change(&mut screen, "*", tour());
    assert!(folds.open_all);
    screen.keys("home space");
    assert!(screen.text().contains("Nothing is folded here. * opens"));
}

#[test]
fn keys_go_from_prompt_to_prompt() {
    let mut screen = Screen::tree(80, 16, folded());
    let mut at = |keys: &str| {
        screen.keys(keys);
        screen
            .model
            .tree
            .selected()
            .map(|row| row.id.clone())
            .unwrap()
    };
    assert_eq!(at("end ["), "q1", "a folded row is not a prompt");
    assert_eq!(at("]"), "q3");
    assert_eq!(at("]"), "q3");
    assert!(screen.text().contains("This is the last user message."));
}

/// An entry that a search has found was once shown only if it was in no folded branch.
#[test]
fn a_folded_entry_that_is_gone_to_is_opened() {
    let mut screen = Screen::tree(80, 16, folded());
    screen.silent = true;
    let effects = screen.model.tree.open_at("x2".to_owned());
    screen.asked.extend(effects);
    for expected in [&[][..], &["x2".to_owned()]] {
        let query = last_query(&screen).clone();
        assert_eq!(query.folds.expand, expected);
        let page = treelined_tui::message::TreePage {
            offset: 0,
            rows: screen.rows.clone(),
            total: screen.rows.len(),
            hidden: 0,
            archived_branches: 0,
            shed_branches: 0,
            revision: screen.revision.to_string(),
            leaf: screen.leaf.clone(),
            at: Some(3),
            others: None,
        };
        screen.daemon(treelined_tui::message::Daemon::Tree {
            query,
            result: Ok(Box::new(page)),
        });
    }
}

/// The client once cut the guides of a narrow screen a second time.
#[test]
fn guides_are_asked_for_by_the_width_of_the_tree() {
    let mut screen = Screen::tree(80, 16, folded());
    for (columns, guides) in [(80, 13), (40, 6), (200, 15)] {
        screen.silent = true;
        screen.send(treelined_tui::message::Message::Resize(columns, 16));
        screen.keys("ctrl+o");
        assert_eq!(last_query(&screen).guide_columns, guides, "{columns}");
        screen.silent = false;
        answer_all(&mut screen);
    }
}

fn answer_all(screen: &mut Screen) {
    for effect in std::mem::take(&mut screen.asked) {
        if let Effect::GetTree(query) = effect {
            let at = match &query.place {
                PagePosition::Around(id) => screen.rows.iter().position(|row| row.id == *id),
                _ => None,
            };
            let page = treelined_tui::message::TreePage {
                offset: 0,
                rows: screen.rows.clone(),
                total: screen.rows.len(),
                hidden: screen.hidden,
                archived_branches: 0,
                shed_branches: 0,
                revision: screen.revision.to_string(),
                leaf: screen.leaf.clone(),
                at: at.or(Some(0)),
                others: None,
            };
            screen.daemon(treelined_tui::message::Daemon::Tree {
                query,
                result: Ok(Box::new(page)),
            });
        }
    }
}

/// Ctrl+← goes to the start of the branch, then to its branch point; Ctrl+→ to the next branch point.
#[test]
fn keys_jump_between_branch_points() {
    let mut screen = Screen::tree(80, 24, tour());
    let mut at = |keys: &str| {
        screen.keys(keys);
        screen
            .model
            .tree
            .selected()
            .map(|row| row.id.clone())
            .unwrap()
    };
    assert_eq!(at("end"), "q3");
    assert_eq!(at("ctrl+left"), "s1");
    assert_eq!(at("home ctrl+right"), "q2");
    assert_eq!(at("alt+right"), "b1");
    assert_eq!(at("alt+left"), "q2");
}

#[test]
fn filters_have_keys_and_a_cycle() {
    let mut screen = Screen::tree(80, 16, tour());
    for (keys, filter) in [
        ("ctrl+u", Filter::UserOnly),
        ("ctrl+u", Filter::Default),
        ("ctrl+t", Filter::NoTools),
        ("ctrl+l", Filter::Labeled),
        ("ctrl+a", Filter::All),
        ("ctrl+d", Filter::Default),
        ("ctrl+o", Filter::NoTools),
        ("ctrl+o", Filter::UserOnly),
        ("ctrl+o", Filter::Labeled),
        ("ctrl+o", Filter::All),
        ("ctrl+o", Filter::Default),
    ] {
        screen.keys(keys);
        assert_eq!(screen.model.tree.filter, filter, "{keys}");
    }
}

#[test]
fn an_empty_view_shows_the_reason() {
    let mut screen = Screen::tree(60, 12, Vec::new());
    screen.check("tree-empty");
    screen.hidden = 12;
    screen.keys("ctrl+l");
    screen.check("tree-empty-labels");
    screen.keys("ctrl+d").typed("/zebra");
    screen.check("tree-empty-search");
    screen.keys("esc");
    assert!(!screen.text().contains("zebra"));
}

#[test]
fn typing_searches_and_esc_clears_but_never_quits() {
    let mut screen = Screen::tree(80, 16, tour());
    screen.silent = true;
    screen.typed("/b");
    screen.typed("uild j");
    screen.check("tree-search");
    assert_eq!(screen.model.tree.search.text(), "build j");
    // After a movement, letters are commands again.
    screen.keys("down j").keys("esc");
    assert!(screen.model.tree.search.is_empty());
    // A second Esc ended the program.
    screen.keys("esc esc");
    assert!(!screen.asked.contains(&Effect::Quit));
    assert!(screen.text().contains("q quits, S shows the sessions."));
    screen.keys("q");
    assert!(screen.asked.contains(&Effect::Quit));
}

/// Enter at the end of a search once moved the leaf.
#[test]
fn enter_ends_a_search_and_n_goes_to_the_next_hit() {
    let mut screen = Screen::tree(80, 16, tour());
    screen.typed("n");
    assert!(screen.text().contains("Nothing is searched."));
    screen.silent = true;
    screen.typed("/b").keys("enter");
    assert!(!screen.model.tree.typing);
    assert!(screen.model.dialog.is_none());
    screen.silent = false;
    let asked = std::mem::take(&mut screen.asked);
    asked.into_iter().for_each(|effect| screen.ask(effect));
    assert_eq!(screen.model.tree.search.text(), "b");
    screen.keys("home n n N");
    assert_eq!(screen.model.tree.cursor, 1);
    screen.keys("N N");
    assert!(screen.text().contains("This is the first hit."));
    // Without a query, the hits of the search over all sessions count.
    screen.keys("esc home");
    let hit = MarkedText::new("Clear", [(0, 5)]);
    screen
        .model
        .tree
        .mark_found([("q2".to_owned(), hit)].into());
    screen.keys("n");
    assert_eq!(screen.model.tree.selected().map(|row| &*row.id), Some("q2"));
    screen.keys("n");
    assert_eq!(screen.model.tree.selected().map(|row| &*row.id), Some("q2"));
    assert!(!screen.model.tree.is_seeking());
    screen.keys("enter");
    assert!(matches!(screen.asked.last(), Some(Effect::Prepare { .. })));
}

/// In the key set `typing`, letters search at once. In the other key set, a message names the key that searches.
#[test]
fn letters_without_an_action_search_or_say_which_key_does() {
    let mut screen = Screen::tree(80, 16, tour());
    screen.typed("U");
    assert!(
        screen
            .text()
            .contains("U has no action. / searches, ? lists the keys.")
    );
    assert!(!screen.model.tree.typing);
    screen.model.settings.keymap = Keymap::of(KeySet::Typing);
    screen.typed("quiz");
    assert_eq!(screen.model.tree.search.text(), "quiz");
    assert!(!screen.asked.contains(&Effect::Quit));
}

#[test]
fn esc_twice_has_the_configured_action() {
    let mut screen = Screen::tree(80, 16, tour());
    screen.model.settings.double_escape = DoubleEscape::Fork;
    screen.tick(1_000);
    screen.keys("esc");
    assert!(screen.text().contains("esc again forks."));
    // The second one came too late.
    screen.tick(5_000);
    screen.keys("esc");
    assert!(screen.asked.is_empty());
    screen.tick(5_200);
    screen.keys("esc");
    assert_eq!(screen.asked, [Effect::ListItems(PickerKind::Fork)]);
}

#[test]
fn a_search_has_at_most_one_open_request() {
    let mut screen = Screen::tree(80, 16, tour());
    screen.silent = true;
    screen.typed("/bild");
    let asked = screen
        .asked
        .iter()
        .filter(|effect| matches!(effect, Effect::GetTree(_)))
        .count();
    assert_eq!(asked, 1);
    answer_all(&mut screen);
    assert_eq!(last_query(&screen).query, "bild");
}

#[test]
fn the_status_line_shows_position_filter_and_hidden_count() {
    let mut screen = Screen::tree(80, 16, tour());
    screen.hidden = 7;
    screen.keys("ctrl+t home down");
    let text = screen.text();
    let status = text.lines().last().unwrap();
    assert!(
        status.starts_with("2/12 ↓ · no-tools · 7 hidden"),
        "{status}"
    );
}

#[test]
fn the_mouse_selects_scrolls_folds_and_navigates() {
    let mut screen = Screen::tree(80, 24, tour());
    screen.click(30, 1);
    assert_eq!(screen.model.tree.cursor, 0);
    screen.click(30, 1);
    assert!(screen.model.dialog.is_some(), "a double click goes there");
    screen.keys("esc");
    let mut screen = Screen::tree(80, 24, folded());
    screen.click(6, 4);
    assert_eq!(screen.model.tree.folds.each, ["q2"]);
    let mut low = Screen::tree(80, 8, tour());
    low.keys("home");
    low.mouse(MouseEventKind::ScrollDown, 10, 3);
    assert_eq!((low.model.tree.top, low.model.tree.cursor), (3, 3));
}

#[test]
fn undo_redo_copy_and_help_are_a_key_each() {
    let mut screen = Screen::tree(80, 24, tour());
    screen.keys("u ctrl+r y home L");
    assert!(matches!(
        &*screen.asked,
        [Effect::Undo, Effect::Redo, Effect::GetText { id }] if id == "q3"
    ));
    screen.check("label");
    screen.typed("x").keys("enter");
    assert!(screen.asked.contains(&Effect::Label {
        id: "q1".into(),
        label: "x".into()
    }));
    screen.keys("?");
    screen.check("help");
}

#[test]
fn keys_can_be_remapped() {
    let mut screen = Screen::tree(80, 24, tour());
    let remaps = toml::from_str("[tree]\nundo = \"x\"\ndown = [\"u\", \"down\"]").unwrap();
    screen.model.settings.keymap = Keymap::remapped(KeySet::Letters, &remaps).unwrap();
    screen.keys("home u x");
    assert_eq!(screen.model.tree.cursor, 1);
    assert_eq!(screen.asked, [Effect::Undo]);
}

/// The filtered tree has as many rows and the same revision, but other rows.
#[test]
fn rows_of_the_previous_filter_are_dropped() {
    let chain = |name: &str| -> Vec<Row> {
        (0..1000)
            .map(|at| row(&format!("{name}{at}"), "", &format!("{name} {at}")))
            .collect()
    };
    let mut screen = Screen::tree(80, 24, chain("old"));
    screen.keys("end home");
    screen.rows = chain("new");
    screen.keys("ctrl+o end");
    assert!(screen.text().contains("new 999"));
    assert!(!screen.text().contains("old"), "{}", screen.text());
}

#[test]
fn guides_take_a_sixth_of_the_screen() {
    // The widest screen has the preview beside the tree.
    for (columns, most) in [(40, 6), (80, 13), (200, 15)] {
        let mut screen = Screen::tree(columns, 24, tour());
        screen.silent = true;
        screen.keys("ctrl+o");
        let asked = screen.asked.pop();
        let Some(Effect::GetTree(query)) = asked else {
            panic!("{asked:?}")
        };
        assert_eq!(query.guide_columns, most);
        assert!(!query.folds.open_all);
    }
}

#[test]
fn the_help_uses_the_columns_of_a_wide_terminal() {
    let mut screen = Screen::tree(200, 50, tour());
    screen.keys("?");
    screen.check("help-wide");
}

/// The names of keys were cut.
#[test]
fn the_help_of_a_narrow_terminal_has_all_keys() {
    let mut screen = Screen::tree(40, 10, tour());
    screen.keys("?");
    let (mut before, mut lines) = (String::new(), Vec::new());
    while before != screen.text() {
        before = screen.text();
        lines.extend(before.lines().skip(1).take(7).map(str::to_owned));
        screen.keys("down");
    }
    assert!(lines.len() > 100, "{lines:#?}");
    let cut: Vec<&String> = lines.iter().filter(|line| line.contains('…')).collect();
    assert!(cut.is_empty(), "{cut:#?}");
}
