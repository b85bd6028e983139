//! Families with a part that is found later.

use super::*;

/// The rollouts in a folder of the test data.
fn rollouts(folder: &str) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(fixture(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(&path).unwrap())
        })
        .filter(|(name, _)| name.starts_with("rollout"))
        .collect();
    files.sort();
    files
}

/// The messages on the path to the leaf, without ids.
fn messages(row: &ImportedSession) -> Vec<String> {
    let path = path_of(row);
    let messages = path.iter().filter(|entry| entry["type"] == "message");
    messages.map(|entry| entry["message"].to_string()).collect()
}

/// Once the base became a separate session, and the report did not say that both belong together.
#[test]
fn a_base_that_turns_up_after_its_fork_joins_the_session_of_the_fork() {
    let files = rollouts("codex/0.169-paginated");
    let home = Home::new(Tool::Codex);
    for (name, bytes) in files
        .iter()
        .filter(|(name, _)| name.contains("01a20124-4b01"))
    {
        home.write(name, bytes);
    }
    let before = home.import().sessions;
    assert_eq!((before.len(), before[0].gaps), (1, 1));
    for (name, bytes) in &files {
        home.write(name, bytes);
    }
    let after = home.import();
    assert_eq!(after.sessions.len(), 1, "{:?}", after.sessions);
    let row = &after.sessions[0];
    assert_eq!(row.session_id, before[0].session_id);
    assert_eq!(row.gaps, 1, "the gap stays");
    let whole = Home::new(Tool::Codex);
    files.iter().for_each(|(name, bytes)| {
        whole.write(name, bytes);
    });
    assert_eq!(messages(row), messages(&whole.import().sessions[0]));
    let files = home.files();
    assert_eq!(home.import().totals.entries_added, 0);
    fs::remove_dir_all(home.sessions().join(".imports")).unwrap();
    assert_eq!(home.import().totals.entries_added, 0);
    assert_eq!(home.files(), files);
}

/// Here the fork has a copy of its parent's records, so there is no gap.
#[test]
fn a_parent_that_turns_up_after_its_legacy_fork_joins_its_session() {
    let files = rollouts("codex/0.169-legacy");
    let home = Home::new(Tool::Codex);
    for (name, bytes) in files
        .iter()
        .filter(|(name, _)| name.contains("01a20126-d84d"))
    {
        home.write(name, bytes);
    }
    let before = home.import().sessions;
    for (name, bytes) in &files {
        home.write(name, bytes);
    }
    let after = home.import();
    let ids = |rows: &[ImportedSession]| -> Vec<String> {
        rows.iter().map(|row| row.session_id.clone()).collect()
    };
    assert_eq!(ids(&after.sessions), ids(&before));
    assert_eq!(after.totals.branches, 1);
}

/// Once a fork became a separate session if it was imported later and alone, by its path. Its links were looked up
/// only among the sources of the same import.
#[test]
fn a_fork_that_is_imported_alone_joins_its_family() {
    let record = |uuid: &str, session: &str, line: String| {
        let link = format!(
            r#""forkedFrom":{{"sessionId":"s","messageUuid":"{uuid}"}},"sessionId":"{session}""#
        );
        line.replace(r#""sessionId":"s""#, &link)
    };
    let home = Home::new(Tool::ClaudeCode);
    home.write("s.jsonl", conversation());
    let before = home.import().sessions;
    let fork = [
        record("u1", "f", user("u1", "", "one")),
        record("a1", "f", call("a1", "u1", "c1")),
        record("r1", "f", answer("r1", "a1", "c1")),
        user("fu", "r1", "another way").replace(r#""sessionId":"s""#, r#""sessionId":"f""#),
        assistant("fa", "fu", "done").replace(r#""sessionId":"s""#, r#""sessionId":"f""#),
    ];
    let fork = home.write("f.jsonl", fork.concat());
    let alone = home
        .try_import(|request| request.paths = vec![fork])
        .unwrap();
    assert_eq!(alone.sessions.len(), 1, "{:?}", alone.sessions);
    let row = &alone.sessions[0];
    assert_eq!(row.session_id, before[0].session_id);
    assert_eq!(
        (row.entries_added, row.branches),
        (3, 1),
        "two messages and a label"
    );
    assert_eq!(alone.totals.files, 2);
    // A rollout of Codex continues one that is in another folder.
    let home = Home::new(Tool::Codex);
    let is_fork = |name: &String| name.contains("01a20124-4b01");
    let mut forks = Vec::new();
    for (name, bytes) in rollouts("codex/0.169-paginated") {
        match is_fork(&name) {
            true => forks.push((name, bytes)),
            false => drop(home.write(&name, bytes)),
        }
    }
    let before = home.import().sessions;
    for (name, bytes) in forks {
        let fork = home.root.path().join(name);
        fs::write(&fork, bytes).unwrap();
        let alone = home
            .try_import(|request| request.paths = vec![fork])
            .unwrap();
        let row = &alone.sessions[0];
        assert_eq!((alone.sessions.len(), row.gaps), (1, 0));
        assert_eq!(row.session_id, before[0].session_id);
    }
}
