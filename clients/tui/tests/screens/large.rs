//! 100,000 entries: only rows around the view are requested.

use crate::harness::{Screen, row};
use treelined_tui::message::Effect;
use treelined_tui::message::Row;

fn chain(count: usize) -> Vec<Row> {
    let entry = |at: usize| Row {
        parent: (at > 0).then(|| format!("e{}", at - 1)),
        children: u64::from(at + 1 < count),
        is_leaf: at + 1 == count,
        on_active_path: true,
        ..row(&format!("e{at}"), "", &format!("entry {at}"))
    };
    (0..count).map(entry).collect()
}

#[test]
fn opening_and_scrolling_fetch_pages_around_the_view() {
    let mut screen = Screen::tree(80, 24, chain(100_000));
    assert!(screen.text().contains("entry 99999"));
    assert!(screen.fetched <= 400, "{}", screen.fetched);
    for _ in 0..50 {
        screen.keys("pageup");
    }
    screen.keys("home end home");
    assert!(screen.text().contains("entry 0"));
    assert!(screen.fetched <= 4000, "{}", screen.fetched);
    assert!(screen.model.tree.rows.len() <= 4000);
}

/// After every jump, all rows of the screen arrive.
#[test]
fn all_visible_rows_are_loaded_after_a_jump() {
    let mut screen = Screen::tree(80, 24, chain(5000));
    for keys in [
        "home", "pagedown", "pagedown", "end", "pageup", "up", "home", "down", "end",
    ] {
        for _ in 0..7 {
            screen.keys(keys);
            let tree = &screen.model.tree;
            assert!(tree.view().all(|at| tree.rows.get(at).is_some()), "{keys}");
        }
    }
}

/// The start of the branch is far beyond the loaded rows.
#[test]
fn a_jump_continues_through_rows_that_are_not_loaded() {
    let mut screen = Screen::tree(80, 24, chain(20_000));
    screen.keys("ctrl+left");
    assert_eq!(screen.model.tree.cursor, 0);
    screen.keys("ctrl+right");
    // The chain has no branch point before its end.
    assert_eq!(screen.model.tree.cursor, 19_999);
}

#[test]
fn rows_being_loaded_are_marked() {
    let mut screen = Screen::tree(80, 24, chain(100_000));
    screen.silent = true;
    screen.keys("home");
    assert!(screen.text().lines().nth(1).unwrap().contains('·'));
}

/// Keys pressed while the cursor is going to an entry apply to that entry.
#[test]
fn keys_wait_for_the_cursor() {
    let mut screen = Screen::tree(80, 24, chain(20_000));
    screen.keys("home");
    screen.silent = true;
    screen.keys("ctrl+o A M y");
    assert!(screen.model.tree.marks.is_empty());
    screen.silent = false;
    for effect in std::mem::take(&mut screen.asked) {
        screen.ask(effect);
    }
    assert_eq!(screen.model.tree.marks[0].0, "e19999");
    assert_eq!(
        screen.asked,
        [Effect::GetText {
            id: "e19999".into()
        }]
    );
    // Esc stops the cursor.
    screen.asked.clear();
    screen.keys("home");
    screen.silent = true;
    screen.keys("ctrl+o A M esc");
    assert_eq!(
        (screen.model.tree.cursor, screen.model.tree.marks.len()),
        (0, 1)
    );
}
