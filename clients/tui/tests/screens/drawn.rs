//! The drawing that all clients share (`tests/data/rows`).

use crate::harness::Screen;
use serde_json::Value;
use treelined_client::TreeNode;
use treelined_tui::daemon::row;

/// Each client once had only its own test of drawn rows, so marks and words were at different positions in each client.
#[test]
fn the_rows_of_the_fixture_are_drawn_as_in_all_clients() {
    let fixture = include_str!("../../../../tests/data/rows/left.json");
    let fixture: Value = serde_json::from_str(fixture).unwrap();
    let nodes: Vec<TreeNode> = serde_json::from_value(fixture["nodes"].clone()).unwrap();
    let lines: Vec<String> = serde_json::from_value(fixture["lines"].clone()).unwrap();
    let mut screen = Screen::tree(80, 50, nodes.into_iter().map(row).collect());
    screen.keys("F home");
    let text = screen.text();
    // The cursor, the mark of the active path and a space come first.
    let drawn = text.lines().map(|line| line.chars().skip(3).collect());
    let drawn: Vec<String> = drawn.collect();
    let first = drawn.iter().position(|line| Some(line) == lines.first());
    let first = first.unwrap_or_else(|| panic!("{text}"));
    assert_eq!(
        drawn.get(first..first + lines.len()).unwrap(),
        lines,
        "{text}"
    );
}
