//! Files that grow between imports.

use super::*;

/// Imports the file cut at each record boundary in turn, then whole. The path and its entries equal those of one import
/// of the whole.
fn check(tool: Tool, name: &str, bytes: &[u8], step: usize) {
    let home = Home::new(tool);
    let ends = memchr::memchr_iter(b'\n', bytes).map(|end| end + 1);
    for end in ends.step_by(step) {
        home.write(name, &bytes[..end]);
        home.try_import(|request| request.is_final = false).unwrap();
    }
    home.write(name, bytes);
    let grown = home.import();
    let whole = Home::new(tool);
    whole.write(name, bytes);
    let whole = whole.import();
    let paths = |result: &ImportSessionsResult| {
        let paths = result.sessions.iter().map(|row| texts(&path_of(row)));
        let mut paths: Vec<_> = paths.collect();
        paths.sort();
        paths
    };
    assert_eq!(paths(&grown), paths(&whole), "{name}");
    assert_eq!(grown.totals.failed, 0);
}

#[test]
fn importing_while_a_file_grows_ends_at_the_same_path() {
    check(Tool::ClaudeCode, "s.jsonl", conversation().as_bytes(), 1);
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/import");
    for folder in [
        "codex/0.169-paginated",
        "codex/0.130-rollback",
        "codex/0.169-legacy",
    ] {
        for file in fs::read_dir(data.join(folder)).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if name.starts_with("rollout") && name.ends_with(".jsonl") {
                check(Tool::Codex, name, &fs::read(&path).unwrap(), 1);
            }
        }
    }
    let pi = fs::read(data.join("pi/agentsview-session.jsonl")).unwrap();
    check(Tool::Pi, "p.jsonl", &pi, 1);
}

/// Real files of Claude Code, with `TREELINED_IMPORT_DATA` set to a folder that has `claude-code`.
#[test]
fn real_files_that_grow_end_at_the_same_path() {
    for path in crate::import::tests::testing::real_files("claude-code") {
        let name = path.file_name().unwrap().to_str().unwrap();
        let bytes = fs::read(&path).unwrap();
        if name.ends_with(".jsonl") && bytes.len() < 1 << 20 {
            let records = memchr::memchr_iter(b'\n', &bytes).count();
            check(Tool::ClaudeCode, name, &bytes, records / 30 + 1);
        }
    }
}

#[test]
fn a_message_that_may_still_grow_is_held_back() {
    let home = Home::new(Tool::ClaudeCode);
    let beginning = [user("u1", "", "one"), call("a1", "u1", "c1")].concat();
    home.write("s.jsonl", &beginning);
    let imported = home.try_import(|request| request.is_final = false).unwrap();
    assert_eq!(
        (imported.totals.entries_added, imported.totals.held),
        (1, 1)
    );
    assert_eq!(imported.files[0].held, Some(1));
    // The source is complete.
    let done = home.import();
    assert_eq!((done.totals.entries_added, done.totals.held), (1, 0));
}
