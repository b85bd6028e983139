//! 100,000 entries: what is fetched is what is looked at.

use crate::harness::{Screen, row};
use treelined_tui::message::Effect;
use treelined_tui::model::rows::Row;

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

/// Wherever one goes, every row of the screen is there once the answers are.
#[test]
fn no_row_stays_missing() {
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

/// The start of a branch that is far beyond what is here is found by fetching on.
#[test]
fn a_jump_goes_through_rows_that_are_not_here() {
    let mut screen = Screen::tree(80, 24, chain(20_000));
    screen.keys("ctrl+left");
    assert_eq!(screen.model.tree.cursor, 0);
    screen.keys("ctrl+right");
    // It folds nothing at the end of the chain, and goes there.
    assert!(screen.model.tree.cursor == 19_999 || screen.model.tree.folded.is_empty());
}

#[test]
fn rows_that_are_under_way_are_marked() {
    let mut screen = Screen::tree(80, 24, chain(100_000));
    screen.silent = true;
    screen.keys("home");
    assert!(screen.text().lines().nth(1).unwrap().contains('·'));
}

/// What is typed while the cursor is on its way is about where it goes.
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
    // Esc stays.
    screen.asked.clear();
    screen.keys("home");
    screen.silent = true;
    screen.keys("ctrl+o A M esc");
    assert_eq!(
        (screen.model.tree.cursor, screen.model.tree.marks.len()),
        (0, 1)
    );
}
