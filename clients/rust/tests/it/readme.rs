//! Tests that the example in the README works as described.

use crate::fixture::program;
use std::process::Command;

/// The example, which a test compares with the README.
mod trip {
    include!("../../examples/trip.rs");

    /// Run by `the_example_runs` in a process whose `PATH` has the daemon.
    #[test]
    #[ignore = "run by the_example_runs"]
    fn run() {
        main().unwrap();
    }
}

#[test]
fn the_example_is_the_one_in_the_readme() {
    let readme = include_str!("../../README.md");
    let (_, rest) = readme.split_once("```rust\n").unwrap();
    let (shown, _) = rest.split_once("```").unwrap();
    assert_eq!(shown, include_str!("../../examples/trip.rs"));
}

#[test]
fn the_example_runs() {
    let folder = tempfile::tempdir().unwrap();
    let mut path = vec![program().parent().unwrap().to_owned()];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    let ran = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "readme::trip::run", "--ignored", "--nocapture"])
        .env("PATH", std::env::join_paths(path).unwrap())
        .env("TREELINED_SESSION_DIR", folder.path())
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&ran.stdout);
    assert!(
        ran.status.success(),
        "{stdout}{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    for expected in [
        "again: By plane.",
        "[by plane]",
        "A flight at noon; see a2.",
        "EntryNotFound): get_entry: ",
    ] {
        assert!(stdout.contains(expected), "{stdout}");
    }
}
