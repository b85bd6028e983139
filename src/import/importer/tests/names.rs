//! The ids under which conversations are imported.

use super::*;

fn goose(home: &Home, name: &str, change: &str) {
    let data =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/import/goose/sessions.db");
    let path = home.write(name, fs::read(data).unwrap());
    let database = rusqlite::Connection::open(path).unwrap();
    database.execute_batch(change).unwrap();
}

const OTHER: &str = "UPDATE messages SET message_id = 'x' || message_id, created_timestamp = created_timestamp + 90000";

fn ids(result: &ImportReport) -> Vec<String> {
    let rows = result.sessions.iter();
    let mut ids: Vec<String> = rows.map(|row| row.session_id.clone()).collect();
    ids.sort();
    ids
}

/// goose numbers the sessions of each database, and begins again on each day. So different conversations may have equal
/// ids.
#[test]
fn conversations_of_two_databases_with_one_id_are_two_sessions() {
    let home = Home::new(Tool::Goose);
    goose(&home, "a.db", "");
    goose(&home, "b.db", OTHER);
    let both = home.import();
    assert_eq!(both.totals.failed, 0, "{:?}", both.files);
    let found = ids(&both);
    assert_eq!(found.len(), 2);
    assert!(both.sessions.iter().all(|row| row.branches == 0));
    let files = home.files();
    assert_eq!(ids(&home.import()), found);
    goose(
        &home,
        "b.db",
        &format!("{OTHER}; UPDATE sessions SET name = 'renamed'"),
    );
    assert_eq!(ids(&home.import()), found, "its id stays");
    assert_eq!(home.files().len(), files.len());

    // The databases are imported one after the other.
    let apart = Home::new(Tool::Goose);
    goose(&apart, "a.db", "");
    let first = ids(&apart.import());
    assert_eq!(apart.files().len(), 1);
    fs::remove_file(apart.root.path().join("files/a.db")).unwrap();
    goose(&apart, "b.db", OTHER);
    let second = ids(&apart.import());
    assert_ne!(first, second);
    assert_eq!(apart.files().len(), 2);
}

#[test]
fn a_copy_of_a_database_has_the_same_sessions() {
    let home = Home::new(Tool::Goose);
    goose(&home, "a.db", "");
    let first = ids(&home.import());
    goose(&home, "copy.db", "UPDATE sessions SET name = 'renamed'");
    let again = home.import();
    assert_eq!((ids(&again), again.totals.entries_added), (first, 0));
}

/// The first records of a file may name one session, and later records another one.
#[test]
fn a_file_that_later_names_another_session_keeps_its_own() {
    let home = Home::new(Tool::ClaudeCode);
    home.write("x.jsonl", conversation());
    let first = ids(&home.import());
    let more = user("u3", "a3", "three").replace("\"sessionId\":\"s\"", "\"sessionId\":\"t\"");
    home.write("x.jsonl", conversation() + &more);
    let second = home.import();
    assert_eq!((ids(&second), second.totals.entries_added), (first, 1));
}
