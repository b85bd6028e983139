//! Files that grow between imports.

use super::*;

/// Imports the file again and again, each time with more of its records, and at last whole. The result has the same
/// path and entries as one import of the whole file.
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
    assert_eq!(leaf_paths(&grown), leaf_paths(&whole), "{name}");
    assert_eq!(grown.totals.failed, 0);
}

#[test]
fn importing_while_a_file_grows_ends_at_the_same_path() {
    check(Tool::ClaudeCode, "s.jsonl", conversation().as_bytes(), 1);
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/import");
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

/// Does the same with the related files in a folder, one file after the other. A fork and a revert come after the file
/// that they continue.
fn check_family(tool: Tool, folder: &str, step: usize) {
    let mut files: Vec<PathBuf> = fs::read_dir(fixture(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .collect();
    files.sort();
    let (home, whole) = (Home::new(tool), Home::new(tool));
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    for path in files {
        let bytes = fs::read(&path).unwrap();
        let ends = memchr::memchr_iter(b'\n', &bytes).map(|end| end + 1);
        for end in ends.step_by(step) {
            home.write(&name(&path), &bytes[..end]);
            home.try_import(|request| request.is_final = false).unwrap();
        }
        home.write(&name(&path), &bytes);
        whole.write(&name(&path), &bytes);
    }
    let (grown, whole) = (home.import(), whole.import());
    let rows = |result: &ImportReport| result.sessions.len();
    assert_eq!(
        rows(&grown),
        rows(&whole),
        "{folder}: {:#?}",
        grown.sessions
    );
    assert_eq!(leaf_paths(&grown), leaf_paths(&whole), "{folder}");
    assert_eq!(grown.totals.failed, 0);
    assert_eq!(home.import().totals.entries_added, 0);
}

#[test]
fn importing_while_the_files_of_a_family_grow_ends_at_the_same_path() {
    check_family(Tool::Codex, "codex/0.169-paginated", 1);
    check_family(Tool::Codex, "codex/0.130-rollback", 1);
    check_family(Tool::Codex, "codex/0.169-legacy", 1);
    check_family(Tool::Gemini, "gemini", 1);
}

/// Gemini CLI before 0.4x wrote the whole document again for each message.
#[test]
fn importing_while_a_document_of_gemini_grows_ends_at_the_same_path() {
    let bytes = fs::read(fixture("gemini/large.json")).unwrap();
    let document: Value = serde_json::from_slice(&bytes).unwrap();
    let messages = document["messages"].as_array().unwrap();
    let home = Home::new(Tool::Gemini);
    for count in 1..messages.len() {
        let mut part = document.clone();
        part["messages"] = messages[..count].into();
        home.write("s.json", part.to_string());
        home.try_import(|request| request.is_final = false).unwrap();
    }
    home.write("s.json", &bytes);
    let grown = home.import();
    let whole = Home::new(Tool::Gemini);
    whole.write("s.json", &bytes);
    assert_eq!(leaf_paths(&grown), leaf_paths(&whole.import()));
    assert_eq!(grown.sessions.len(), 1);
}

/// Uses real files of Claude Code, if `TREELINED_IMPORT_DATA` names a folder that has `claude-code`.
#[test]
fn real_files_that_grow_end_at_the_same_path() {
    for path in crate::tests::testing::real_files("claude-code") {
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
    // A final import treats the source as complete.
    let done = home.import();
    assert_eq!((done.totals.entries_added, done.totals.held), (1, 0));
}

/// The last answer of a session has nothing after it, so it may still grow. A fork has a copy of the answer, with a
/// message after the copy, so the copy is complete. Once the answer was imported as part of the fork, and again when
/// the session continued.
#[test]
fn an_open_message_with_a_complete_copy_is_imported_once() {
    let home = Home::new(Tool::ClaudeCode);
    let fork = conversation().replace("\"s\"", "\"f\"")
        + &user("f3", "a3", "in the fork").replace("\"s\"", "\"f\"");
    let fork = fork.replace("00.001Z", "05.001Z");
    home.write("s.jsonl", conversation());
    home.write("f.jsonl", &fork);
    let growing = home.try_import(|request| request.is_final = false).unwrap();
    assert_eq!((growing.sessions.len(), growing.totals.held), (1, 0));
    let done = home.import();
    assert_eq!(done.totals.entries_added, 0);
    let more = user("u3", "a3", "in the root");
    home.write("s.jsonl", conversation() + &more);
    let done = home.import();
    assert_eq!((done.totals.entries_added, done.totals.branches), (1, 1));
}
