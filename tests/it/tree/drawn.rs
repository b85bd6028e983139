//! The drawing that all clients share. `tests/data/rows` has a session, its rows as the daemon sends them, and the lines
//! that each client draws from them.

use super::*;
use crate::readme::root;
use std::fs;

const ROWS: &str = "tests/data/rows/left.json";

/// A session directory with the session of the fixture.
fn home() -> (std::sync::Arc<Home>, std::path::PathBuf) {
    let home = Home::new();
    let path = home.sessions().join("rows.jsonl");
    fs::copy(root("tests/data/rows/session.jsonl"), &path).unwrap();
    (home, path)
}

fn fixture() -> Json {
    serde_json::from_str(&fs::read_to_string(root(ROWS)).unwrap()).unwrap()
}

/// Each client once had its own test of drawn rows, so marks, names and flags were at different positions in each
/// client.
///
/// With `TREELINED_UPDATE=1` the test writes the rows into the fixture.
#[test]
fn the_rows_of_the_fixture_are_those_of_the_daemon() {
    let mut fixture = fixture();
    let (home, path) = home();
    let mut d = Daemon::quiet_in(&home);
    d.open(&path);
    let tree = d.ok("get_tree", fixture["params"].clone());
    if std::env::var_os("TREELINED_UPDATE").is_some() {
        fixture["nodes"] = tree["nodes"].clone();
        let text = serde_json::to_string_pretty(&fixture).unwrap();
        fs::write(root(ROWS), text + "\n").unwrap();
    }
    assert_eq!(tree["nodes"], fixture["nodes"], "TREELINED_UPDATE=1");
    let count = |list: &str| fixture[list].as_array().unwrap().len();
    assert_eq!(count("nodes"), count("lines"));
}

#[test]
fn the_command_draws_the_lines_of_the_fixture() {
    let (home, path) = home();
    let fixture = fixture();
    let expand = fixture["params"]["expand"].as_array().unwrap().iter();
    let expand = expand.flat_map(|id| ["--expand", id.as_str().unwrap()]);
    let args = ["tree", path.to_str().unwrap(), "--archived"];
    let args: Vec<&str> = args.into_iter().chain(expand).collect();
    let text = home.run(&args, &[("COLUMNS", "80")], "").clean().text();
    let rows = text.split("\n\n").nth(1).unwrap().lines();
    // The mark of the active path and a space come first.
    let rows: Vec<String> = rows.map(|row| row.chars().skip(2).collect()).collect();
    assert_eq!(json!(rows), fixture["lines"], "{text}");
}
