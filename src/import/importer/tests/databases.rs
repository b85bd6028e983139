//! Databases that grow row by row, are damaged, are locked, or have another version.

use super::*;
use crate::importer::sqlite::Database;
use crate::records::Layout;
use rusqlite::{Connection, params};

const OPENCODE: &str = "opencode/opencode.db";

/// Copies a database of the test data into the home.
fn copy(home: &Home, name: &str, of: &str) -> Connection {
    let path = home.write(name, fs::read(fixture(of)).unwrap());
    Connection::open(path).unwrap()
}

/// Imports while the tool still writes.
fn import_growing(home: &Home) {
    let done = home.try_import(|request| request.is_final = false).unwrap();
    assert_eq!(done.totals.failed, 0, "{:?}", done.files);
}

#[track_caller]
fn check_grown(home: &Home, whole: &Home) {
    let (grown, whole) = (home.import(), whole.import());
    assert_eq!(leaf_paths(&grown), leaf_paths(&whole));
    assert_eq!(grown.totals.failed, 0);
    assert_eq!(home.import().totals.entries_added, 0);
}

/// Applies an event of opencode to its tables.
fn apply(database: &Connection, kind: &str, data: &Value) {
    let without = |value: &Value, names: &[&str]| {
        let mut value = value.clone();
        names.iter().for_each(|name| {
            value.as_object_mut().unwrap().remove(*name);
        });
        value.to_string()
    };
    let now = "unixepoch() * 1000";
    match kind {
        "message.updated.1" => {
            let info = &data["info"];
            let row = format!(
                "INSERT INTO message VALUES (?1, ?2, ?3, {now}, ?4)
                 ON CONFLICT DO UPDATE SET data = excluded.data, time_updated = excluded.time_updated"
            );
            let of = (
                info["id"].as_str(),
                info["sessionID"].as_str(),
                info["time"]["created"].as_i64(),
            );
            let text = without(info, &["id", "sessionID"]);
            database
                .execute(&row, params![of.0, of.1, of.2, text])
                .unwrap();
        }
        "message.part.updated.1" => {
            let part = &data["part"];
            let row = format!(
                "INSERT INTO part VALUES (?1, ?2, ?3, {now}, {now}, ?4)
                 ON CONFLICT DO UPDATE SET data = excluded.data, time_updated = excluded.time_updated"
            );
            let of = ["id", "messageID", "sessionID"].map(|name| part[name].as_str());
            let text = without(part, &["id", "messageID", "sessionID"]);
            database
                .execute(&row, params![of[0], of[1], of[2], text])
                .unwrap();
        }
        "message.removed.1" => {
            let id = data["messageID"].as_str();
            database
                .execute("DELETE FROM part WHERE message_id = ?1", [id])
                .unwrap();
            database
                .execute("DELETE FROM message WHERE id = ?1", [id])
                .unwrap();
        }
        _ => {}
    }
}

/// opencode writes a row of `event` with each change of the tables.
fn grow_opencode(has_events: bool) {
    let home = Home::new(Tool::Opencode);
    let database = copy(&home, "opencode.db", OPENCODE);
    database
        .execute_batch(
            "PRAGMA foreign_keys = off; PRAGMA synchronous = off;
             ATTACH ':memory:' AS whole;
             CREATE TABLE whole.event AS SELECT * FROM main.event ORDER BY rowid;
             CREATE TABLE whole.session AS SELECT * FROM main.session;
             DELETE FROM main.event; DELETE FROM main.session; DELETE FROM part; DELETE FROM message;",
        )
        .unwrap();
    let mut events = Vec::new();
    {
        let mut statement = database
            .prepare("SELECT rowid, aggregate_id, type, data FROM whole.event ORDER BY rowid")
            .unwrap();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let (number, session): (i64, String) = (row.get(0).unwrap(), row.get(1).unwrap());
            let (kind, data): (String, String) = (row.get(2).unwrap(), row.get(3).unwrap());
            events.push((number, session, kind, data));
        }
    }
    for (number, session, kind, data) in events {
        if has_events {
            let event = "INSERT INTO main.event SELECT * FROM whole.event WHERE rowid = ?1";
            database.execute(event, [number]).unwrap();
        }
        if kind == "session.created.1" {
            let row = "INSERT INTO main.session SELECT * FROM whole.session WHERE id = ?1";
            database.execute(row, [&session]).unwrap();
        }
        apply(&database, &kind, &serde_json::from_str(&data).unwrap());
        let row = "UPDATE main.session SET time_updated = unixepoch() * 1000 + ?2 WHERE id = ?1";
        database.execute(row, params![session, number]).unwrap();
        import_growing(&home);
    }
    let row = "UPDATE main.session SET time_updated = (SELECT time_updated FROM whole.session s WHERE s.id = session.id)";
    database.execute(row, []).unwrap();
    let whole = Home::new(Tool::Opencode);
    let other = copy(&whole, "opencode.db", OPENCODE);
    if !has_events {
        other.execute("DELETE FROM event", []).unwrap();
    }
    check_grown(&home, &whole);
}

#[test]
fn importing_after_each_event_of_opencode_ends_at_the_same_path() {
    grow_opencode(true);
}

/// Older versions have no events, and their tables lose the rows that a revert removes.
#[test]
fn importing_after_each_change_of_opencode_without_events_ends_at_the_same_path() {
    grow_opencode(false);
}

/// The files of older versions, in the order in which opencode writes them: the session, each message, its parts.
#[test]
fn importing_while_the_folder_of_opencode_grows_ends_at_the_same_path() {
    for folder in ["storage_legacy", "storage_v2"] {
        let from = fixture("opencode").join(folder);
        let mut files = Vec::new();
        let mut waiting = vec![from.clone()];
        while let Some(path) = waiting.pop() {
            match fs::read_dir(&path) {
                Ok(inside) => waiting.extend(inside.map(|entry| entry.unwrap().path())),
                Err(_) => files.push(path),
            }
        }
        let rank = |path: &PathBuf| {
            let inner = path
                .strip_prefix(&from)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            (
                !inner.starts_with("session"),
                !inner.starts_with("message"),
                inner,
            )
        };
        files.sort_by_key(rank);
        let home = Home::new(Tool::Opencode);
        let root = home.root.path().join("files");
        for folder in ["session", "message", "part"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        for file in &files {
            let to = root.join(file.strip_prefix(&from).unwrap());
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(file, to).unwrap();
            import_growing(&home);
        }
        let whole = Home::new(Tool::Opencode);
        for file in &files {
            let to = whole
                .root
                .path()
                .join("files")
                .join(file.strip_prefix(&from).unwrap());
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(file, to).unwrap();
        }
        check_grown(&home, &whole);
    }
}

/// goose writes a row for each message. A compaction hides all rows from the model and gives them new numbers.
fn grow_goose(of: &str) {
    let home = Home::new(Tool::Goose);
    let database = copy(&home, "sessions.db", of);
    database
        .execute_batch(
            "PRAGMA foreign_keys = off; PRAGMA synchronous = off;
             ATTACH ':memory:' AS whole;
             CREATE TABLE whole.messages AS SELECT * FROM main.messages ORDER BY id;
             CREATE TABLE whole.sessions AS SELECT * FROM main.sessions;
             DELETE FROM main.messages; DELETE FROM main.sessions;",
        )
        .unwrap();
    let summary = "json_extract(metadata_json, '$.userVisible') = 0 AND json_extract(metadata_json, '$.turnContext') IS NULL AND role = 'user'";
    let mut numbers: Vec<(i64, String, bool)> = Vec::new();
    {
        let query = format!("SELECT id, session_id, {summary} FROM whole.messages ORDER BY id");
        let mut statement = database.prepare(&query).unwrap();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            numbers.push((
                row.get(0).unwrap(),
                row.get(1).unwrap(),
                row.get(2).unwrap(),
            ));
        }
    }
    let mut moved = 0;
    for (number, session, is_summary) in numbers {
        if is_summary {
            moved += 1000;
            let hidden = "UPDATE main.messages SET id = id + 1000, metadata_json = json_set(metadata_json, '$.agentVisible', json('false')) WHERE session_id = ?1";
            database.execute(hidden, [&session]).unwrap();
        }
        let row = "INSERT OR IGNORE INTO main.sessions SELECT * FROM whole.sessions WHERE id = ?1";
        database.execute(row, [&session]).unwrap();
        let columns =
            "message_id, session_id, role, content_json, created_timestamp, timestamp, tokens";
        let row = format!(
            "INSERT INTO main.messages (id, {columns}, metadata_json)
             SELECT id + ?2, {columns}, json_set(metadata_json, '$.agentVisible', json('true')) FROM whole.messages WHERE id = ?1"
        );
        database.execute(&row, params![number, moved]).unwrap();
        let row = "UPDATE main.sessions SET updated_at = datetime('now') WHERE id = ?1";
        database.execute(row, [&session]).unwrap();
        import_growing(&home);
    }
    database
        .execute_batch(
            "DELETE FROM main.messages; INSERT INTO main.messages SELECT * FROM whole.messages;
             DELETE FROM main.sessions; INSERT INTO main.sessions SELECT * FROM whole.sessions;",
        )
        .unwrap();
    let whole = Home::new(Tool::Goose);
    drop(copy(&whole, "sessions.db", of));
    check_grown(&home, &whole);
}

#[test]
fn importing_after_each_message_of_goose_ends_at_the_same_path() {
    grow_goose("goose/sessions.db");
    grow_goose("goose/compacted.db");
}

#[test]
fn the_rows_of_a_session_cut_at_every_byte_of_their_end_are_read_as_far_as_they_go() {
    for (tool, of) in [
        (Tool::Opencode, OPENCODE),
        (Tool::Goose, "goose/sessions.db"),
        (Tool::Goose, "goose/compacted.db"),
    ] {
        let database = Database::open(&fixture(of), tool, &std::env::temp_dir()).unwrap();
        for session in database.sessions() {
            let mut rows = Vec::new();
            database
                .write_session(&session.id, u64::MAX, &mut rows)
                .unwrap();
            crate::tests::cuts::check(tool, of, Layout::Lines, &rows);
        }
    }
}

/// A damaged database is either imported, or reported with tool, path and reason.
fn check_damaged(home: &Home, tool: Tool, name: &str, bytes: &[u8], case: &str) {
    let path = home.write(name, bytes);
    let done = home.import();
    for file in done.files.iter().filter(|file| file.error.is_some()) {
        let error = file.error.as_ref().unwrap();
        // The damage may hide which tool wrote the database.
        let named = file.tool.as_deref();
        assert!(
            named.is_none_or(|named| named == tool.name()),
            "{case}: {named:?}"
        );
        let canonical = fs::canonicalize(&path).unwrap();
        let is_its = file.path.starts_with(canonical.to_str().unwrap());
        assert!(is_its, "{case}: {}", file.path);
        assert!(
            ["damaged", "notDatabase", "unknownSchema"].contains(&&*error.kind),
            "{case}: {error:?}"
        );
        assert!(!error.message.is_empty(), "{case}");
    }
    let failures = done
        .files
        .iter()
        .filter(|file| file.error.is_some())
        .count() as u64;
    assert_eq!(done.totals.failed, failures, "{case}");
}

#[test]
fn a_truncated_or_damaged_database_is_reported_and_the_others_are_imported() {
    for (tool, of, name, other) in [
        (Tool::Opencode, OPENCODE, "opencode-a.db", "opencode-b.db"),
        (Tool::Goose, "goose/sessions.db", "a.db", "b.db"),
    ] {
        let whole = fs::read(fixture(of)).unwrap();
        let mut failed = 0;
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        for case in 0..60 {
            let home = Home::new(tool);
            let mut bytes = whole.clone();
            if case < 40 {
                // The file is cut by single bytes at its end, then anywhere.
                let cut = if case < 25 {
                    7 * case * case
                } else {
                    whole.len() * (case - 24) / 16
                };
                bytes.truncate(whole.len() - cut.min(whole.len()));
            } else {
                for _ in 0..64 {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    let at = usize::try_from(random >> 20).unwrap() % bytes.len();
                    bytes[at] ^= random.to_le_bytes()[0] | 1;
                }
            }
            check_damaged(&home, tool, name, &bytes, &format!("{name}, {case}"));
            failed += u64::from(home.files().is_empty());
            home.write(other, &whole);
            let both = home.import();
            assert!(!both.sessions.is_empty(), "{name}, {case}");
            assert!(!home.files().is_empty(), "{name}, {case}");
        }
        assert!(failed > 0, "no damage of {name} matters");
    }
}

/// Once the state of the tables was imported, and the report did not say that the events have another result.
#[test]
fn events_that_end_otherwise_than_the_tables_are_reported() {
    let home = Home::new(Tool::Opencode);
    let database = copy(&home, "opencode.db", OPENCODE);
    let alike = home
        .try_import(|request| request.is_dry_run = true)
        .unwrap();
    assert!(alike.files.iter().all(|file| file.disagreements.is_none()));
    let changed = database
        .execute(
            "UPDATE part SET data = json_set(data, '$.text', 'another text') WHERE id =
             (SELECT id FROM part WHERE json_extract(data, '$.type') = 'text' LIMIT 1)",
            [],
        )
        .unwrap();
    assert_eq!(changed, 1);
    drop(database);
    let done = home.import();
    let counts: Vec<u64> = done
        .files
        .iter()
        .filter_map(|file| file.disagreements)
        .collect();
    assert_eq!(counts, [1]);
}
