//! The numbers in a report, and origins that were deleted.

use super::*;

/// The entries of a session file, without leaf records.
fn entries(row: &ImportedSession) -> u64 {
    let text = fs::read_to_string(&row.path).unwrap();
    let lines = text.lines().skip(1);
    lines
        .filter(|line| !line.contains("treelined.leaf"))
        .count() as u64
}

/// Once the sum was smaller than the number of entries in the file, because labels of forks and names were not
/// counted.
#[test]
fn labels_and_names_count_as_added_entries() {
    let home = Home::new(Tool::Codex);
    codex(&home);
    let first = home.import();
    let labels =
        |row: &ImportedSession| fs::read_to_string(&row.path).unwrap().contains("\"label\"");
    assert!(first.sessions.iter().any(labels), "a fork has a label");
    for row in &first.sessions {
        assert_eq!(row.entries_added, entries(row), "{row:?}");
    }
    let home = Home::new(Tool::ClaudeCode);
    home.write("s.jsonl", conversation() + &title("one"));
    let before = home.import().sessions.remove(0);
    assert_eq!(before.entries_added, entries(&before));
    home.write("s.jsonl", conversation() + &title("one") + &title("two"));
    let after = home.import().sessions.remove(0);
    assert_eq!(after.entries_added, 1);
    assert_eq!(entries(&after), before.entries_added + 1);
}

/// The tool has gone back from the only tip of a session. Once this tip counted as a recovered branch, although the
/// session has no branch other than the first.
#[test]
fn no_more_branches_are_recovered_than_there_are() {
    let home = Home::new(Tool::ClaudeCode);
    let back = "{\"type\":\"last-prompt\",\"leafUuid\":\"a\",\"sessionId\":\"s\"}\n";
    let text = user("a", "", "1") + &assistant("b", "a", "2") + &user("c", "b", "3") + back;
    home.write("s.jsonl", text);
    let row = home.import().sessions.remove(0);
    assert_eq!((row.branches, row.recovered), (0, 0));
}

/// Once deleted origins of unchanged sources were never made again.
#[test]
fn origins_that_are_gone_are_kept_again() {
    let home = Home::new(Tool::ClaudeCode);
    home.write("s.jsonl", conversation());
    home.import();
    let files = home.files();
    fs::remove_dir_all(home.sessions().join(".origins")).unwrap();
    let again = home.import();
    assert_eq!(again.totals.entries_added, 0);
    assert_eq!(home.files(), files);
    let kept = fs::read_dir(home.sessions().join(".origins")).unwrap();
    assert_eq!(kept.count(), 1);
    assert_eq!(home.import().totals.unchanged, 1);
}
