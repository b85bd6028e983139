use super::*;
use crate::member::Parent;
use crate::reader::Format;
use crate::tests::{MappedMember, imported};
use crate::{goose, opencode};
use std::fs;
use std::path::PathBuf;

const OPENCODE_DB: &str = "opencode/opencode.db";
const GOOSE_DB: &str = "goose/sessions.db";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data/import")
        .join(name)
}

fn lines(database: &Database, session: &str) -> Vec<u8> {
    let mut lines = Vec::new();
    let written = database.write_session(session, u64::MAX, &mut lines);
    written.unwrap();
    lines
}

/// The sessions in a fixture by title, in the order of their rows.
fn sessions(name: &str, tool: Tool, format: &dyn Format) -> Vec<MappedMember> {
    let scratch = tempfile::tempdir().unwrap();
    let database = Database::open(&fixture(name), tool, scratch.path()).unwrap();
    let ids = database.sessions().iter().map(|session| session.id.clone());
    ids.flat_map(|id| imported(format, &id, &lines(&database, &id)))
        .collect()
}

/// opencode itself wrote the fixture. It has three questions, a fork before the third, a revert to the position before
/// the third question, another question, a revert that was undone, a compaction, and one more question.
#[test]
fn opencode_gives_the_tree_that_was_made_with_reverted_messages_as_a_branch() {
    let sessions = sessions(OPENCODE_DB, Tool::Opencode, &opencode::Opencode);
    let [_, root, fork] = &*sessions else {
        panic!("three sessions")
    };
    assert_eq!(
        root.drawn(),
        r#"0 - user First question
1 0 assistant Answer 24.
2 1 user RUN the tests
3 2 assistant bash{"command":"echo hello","description":"say hello"}
4 3 toolresult hello
5 4 assistant Answer 26.
6 5 user Third question
7 6 assistant Answer 27.
8 5 user Third question, asked otherwise
9 8 assistant Answer 29.
10 9 compaction Answer 30.
11 10 user After the compaction
12 11 assistant Answer 31.*"#
    );
    assert_eq!(
        fork.drawn().lines().skip(6).collect::<Vec<_>>(),
        ["6 5 user In the fork", "7 6 assistant Answer 28.*"]
    );
    let copied = |session: &MappedMember| -> Vec<u64> {
        session
            .member
            .nodes
            .iter()
            .take(6)
            .map(|node| node.fingerprint)
            .collect()
    };
    assert_eq!(copied(root), copied(fork));
    assert_ne!(
        root.member.nodes[6].fingerprint,
        fork.member.nodes[6].fingerprint
    );
    assert_eq!(root.member.project, fork.member.project);
    assert_eq!(root.member.title.as_deref(), Some("Tree probe"));
    assert_eq!(fork.member.title.as_deref(), Some("Tree probe (fork #1)"));
    for session in &sessions {
        assert_eq!(
            session.member.disagreements, 0,
            "the replay equals the tables"
        );
        assert_eq!(session.member.cwd.as_deref(), Some("/srv/wave2/oc/proj"));
    }
}

#[test]
fn goose_forks_share_the_keys_of_their_messages() {
    let sessions = sessions(GOOSE_DB, Tool::Goose, &goose::Goose);
    let [root, fork] = &*sessions else {
        panic!("two sessions")
    };
    let turn = "<turn-context>\n<current-time>2026-11-22 02:53:00 +00:00</current-time>\n<working-directory>/srv/wave2/goose/p</working-directory>\n</turn-context>";
    let expected = format!(
        r#"0 - user First question
1 0 scaffolding {turn}
2 1 assistant Answer 35.
3 2 user RUN the tests
4 3 scaffolding {turn}
5 4 assistant unparseable_tool_call{{}}
6 5 toolresult -32600: Tool 'bash' was not advertised for this model turn !
7 6 assistant Answer 37.
8 7 user RUN the tests again
9 8 scaffolding {turn}
10 9 assistant shell{{"command":"echo hello","description":"say hello"}}
11 10 toolresult hello
12 11 assistant Answer 2.…*"#
    );
    assert_eq!(root.drawn(), expected);
    let keys = |session: &MappedMember| -> Vec<_> {
        session
            .member
            .nodes
            .iter()
            .map(|node| (node.key.clone(), node.fingerprint))
            .collect()
    };
    assert_eq!(keys(root), keys(fork));
    assert_eq!(root.bodies[11]["message"]["toolName"], "shell");
    assert_eq!(root.bodies[12]["message"]["model"], "stub-1");
}

/// goose itself wrote the fixture. It compacted a conversation twice.
#[test]
fn goose_compactions_are_entries_and_commands_are_not_a_part_of_the_conversation() {
    let sessions = sessions("goose/compacted.db", Tool::Goose, &goose::Goose);
    let drawn = sessions[0].drawn();
    let lines = drawn.lines().filter(|line| {
        line.split(' ')
            .nth(1)
            .is_some_and(|word| word.parse::<u32>().is_ok() || word == "-")
    });
    let lines: Vec<&str> = lines.filter(|line| !line.contains("scaffolding")).collect();
    let expected = [
        "0 - user First question",
        "2 1 assistant Answer 8.",
        "3 2 user RUN the tests",
        r#"5 4 assistant shell{"command":"echo hello","description":"say hello"}"#,
        "6 5 toolresult hello",
        "7 6 assistant Answer 10.",
        "8 7 compaction Answer 11.",
        "10 9 custom",
        "11 10 custom",
        "12 11 user After the first compaction",
        "14 13 assistant Answer 12.",
        "15 14 compaction Answer 13.",
        "17 16 custom",
        "18 17 custom",
        "19 18 user RUN the tests again",
        r#"21 20 assistant shell{"command":"echo hello","description":"say hello"}"#,
        "22 21 toolresult hello",
        "23 22 assistant Answer 15.…*",
    ];
    assert_eq!(lines, expected);
}

/// A compaction hides the messages before it. Their entries do not change.
#[test]
fn entries_of_a_goose_session_do_not_change_when_they_are_hidden_by_a_compaction() {
    let scratch = tempfile::tempdir().unwrap();
    let database =
        Database::open(&fixture("goose/compacted.db"), Tool::Goose, scratch.path()).unwrap();
    let after = String::from_utf8(lines(&database, &database.sessions()[0].id)).unwrap();
    let is_summary =
        |line: &&str| line.contains(r#"[{\"type\":\"text\",\"text\":\"Answer 13.\"}]"#);
    let second = after.lines().position(|line| is_summary(&line)).unwrap();
    let hidden = r#"\"agentVisible\":false"#;
    let shown = r#"\"agentVisible\":true"#;
    let first = after
        .lines()
        .position(|line| line.contains("Answer 11."))
        .unwrap();
    let before = after.lines().take(second).enumerate().map(|(at, line)| {
        let is_for_user = line.contains("/compact") || line.contains("Compaction complete");
        match at >= first && !is_for_user {
            true => format!("{}\n", line.replace(hidden, shown)),
            false => format!("{line}\n"),
        }
    });
    let mut closed = ClosedEntries::default();
    closed.check(&goose::Goose, before.collect::<String>().as_bytes());
    assert_eq!(closed.0.len(), 14);
    closed.check(&goose::Goose, after.as_bytes());
}

/// A database with one session of each kind of row that SQLite can store.
fn odd_database(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch(
            r#"CREATE TABLE session (id TEXT, directory TEXT, title, time_updated);
            CREATE TABLE message (id, session_id, time_created, data, "odd ""name""" );
            CREATE TABLE part (id, message_id, session_id, data);
            CREATE INDEX i ON part (session_id);
            INSERT INTO session VALUES ('s', '/w', NULL, 5), (7, x'00', 1.5, 'no time');
            INSERT INTO message (rowid, id, session_id, data) VALUES
                (9, 'late', 's', x'000102ff'), (3, 9e999, 's', -9e999), (4, 0.1, 's', CAST(x'61ff00e280a8' AS TEXT)),
                (5, 9223372036854775807, 7, 1e300), (6, NULL, NULL, ''), (7, 2.0, x'73', '');"#,
        )
        .unwrap();
    connection
}

#[test]
fn rows_keep_the_exact_values_in_the_order_of_rowids() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("odd.db");
    drop(odd_database(&path));
    let database = Database::open(&path, Tool::Opencode, folder.path()).unwrap();
    let expected = r#"{"table":"session","rowid":1,"row":{"id":"s","directory":"/w","title":null,"time_updated":5}}
{"table":"message","rowid":3,"row":{"id":1e999,"session_id":"s","time_created":null,"data":-1e999,"odd \"name\"":null}}
{"table":"message","rowid":4,"row":{"id":0.1,"session_id":"s","time_created":null,"data":"a�\u0000\u2028","odd \"name\"":null}}
{"table":"message","rowid":9,"row":{"id":"late","session_id":"s","time_created":null,"data":{"$blob":"AAEC/w=="},"odd \"name\"":null}}
"#;
    assert_eq!(String::from_utf8(lines(&database, "s")).unwrap(), expected);
    let other = String::from_utf8(lines(&database, "7")).unwrap();
    assert!(
        other.contains(r#""id":9223372036854775807,"session_id":7,"#),
        "{other}"
    );
    assert!(other.contains(r#""data":1e300"#), "{other}");
    let activity: Vec<_> = database
        .sessions()
        .iter()
        .map(|session| session.last_activity)
        .collect();
    assert_eq!(activity, [Some(5), None]);
}

#[test]
fn the_version_of_a_session_changes_with_its_rows_and_with_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("odd.db");
    let connection = odd_database(&path);
    let versions = || -> Vec<u64> {
        let database = Database::open(&path, Tool::Opencode, folder.path()).unwrap();
        database
            .sessions()
            .iter()
            .map(|session| session.version)
            .collect()
    };
    let mut before = versions();
    assert_eq!(before, versions());
    for change in [
        "INSERT INTO part (id, session_id) VALUES ('p', 's')",
        "DELETE FROM message WHERE rowid = 3",
        "UPDATE session SET time_updated = 6 WHERE id = 's'",
    ] {
        connection.execute(change, []).unwrap();
        let after = versions();
        assert_ne!(before[0], after[0], "{change}");
        assert_eq!(before[1], after[1], "{change}");
        before = after;
    }
}

fn fault(path: &Path, tool: Tool) -> (FaultKind, String) {
    let scratch = tempfile::tempdir().unwrap();
    let fault = match Database::open(path, tool, scratch.path()) {
        Ok(_) => panic!("{} was opened", path.display()),
        Err(NativeError::Source { kind, message }) => (kind, message),
        Err(NativeError::Output(error)) => panic!("{error}"),
    };
    assert_eq!(
        fs::read_dir(scratch.path()).unwrap().count(),
        0,
        "a copy is left"
    );
    fault
}

#[test]
fn a_database_that_cannot_be_read_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    assert_eq!(
        fault(&path("missing"), Tool::Goose).0,
        FaultKind::Unreadable
    );
    assert_eq!(fault(folder.path(), Tool::Goose).0, FaultKind::Unreadable);
    fs::write(path("encrypted"), [0xa7; 8192]).unwrap();
    assert_eq!(
        fault(&path("encrypted"), Tool::Goose).0,
        FaultKind::NotDatabase
    );
    fs::write(path("empty"), "").unwrap();
    assert_eq!(
        fault(&path("empty"), Tool::Goose),
        (
            FaultKind::UnknownSchema,
            "the database has no table sessions".into()
        )
    );
    drop(odd_database(&path("odd")));
    let open = |name: &str| Connection::open(path(name)).unwrap();
    open("odd")
        .execute("ALTER TABLE part DROP COLUMN message_id", [])
        .unwrap();
    let missing = "the table part has no column message_id";
    assert_eq!(
        fault(&path("odd"), Tool::Opencode),
        (FaultKind::UnknownSchema, missing.into())
    );
    fs::copy(fixture(GOOSE_DB), path("newer")).unwrap();
    open("newer")
        .execute("INSERT INTO schema_version VALUES (99, 0)", [])
        .unwrap();
    let (kind, message) = fault(&path("newer"), Tool::Goose);
    assert_eq!(kind, FaultKind::UnknownSchema);
    assert!(message.contains("99"), "{message}");
}

/// Reading a view runs its query. The query of this view never ends.
#[test]
fn a_view_in_place_of_a_table_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("view.db");
    let connection = odd_database(&path);
    let endless = "DROP TABLE part; CREATE VIEW part (id, message_id, session_id, data) AS
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, i, i, i FROM n";
    connection.execute_batch(endless).unwrap();
    assert_eq!(
        fault(&path, Tool::Opencode).1,
        "the database has no table part"
    );
}

#[test]
fn a_locked_database_is_reported_after_a_while() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locked.db");
    let connection = odd_database(&path);
    connection.execute_batch("BEGIN EXCLUSIVE").unwrap();
    assert_eq!(fault(&path, Tool::Opencode).0, FaultKind::Locked);
    connection.execute_batch("COMMIT").unwrap();
    let database = Database::open(&path, Tool::Opencode, folder.path()).unwrap();
    connection.execute_batch("BEGIN EXCLUSIVE").unwrap();
    match database.write_session("s", u64::MAX, &mut Vec::new()) {
        Err(NativeError::Source {
            kind: FaultKind::Locked,
            ..
        }) => {}
        other => panic!("{other:?}"),
    }
}

/// The files in a folder, each with its content.
fn content(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files
        .filter(|path| path.is_file())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn a_database_that_is_written_is_read_with_its_log_and_nothing_beside_it_changes() {
    let folder = tempfile::tempdir().unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.db");
    let connection = odd_database(&path);
    connection
        .pragma_update(None, "journal_mode", "WAL")
        .unwrap();
    connection
        .execute(
            "INSERT INTO part (id, session_id, data) VALUES ('p', 's', 'in the log')",
            [],
        )
        .unwrap();
    connection
        .execute_batch(
            "BEGIN IMMEDIATE; INSERT INTO part (id, session_id) VALUES ('uncommitted', 's')",
        )
        .unwrap();
    let before = content(folder.path());
    assert_eq!(before.len(), 3);
    let database = Database::open(&path, Tool::Opencode, scratch.path()).unwrap();
    let lines = String::from_utf8(lines(&database, "s")).unwrap();
    drop(database);
    assert!(lines.contains("in the log"), "{lines}");
    assert!(!lines.contains("uncommitted"), "{lines}");
    assert_eq!(content(folder.path()), before);
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    connection.execute_batch("COMMIT").unwrap();
}

#[test]
fn a_database_in_write_ahead_mode_that_is_closed_gets_no_files_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let path = folder.path().join("closed.db");
    let connection = odd_database(&path);
    connection
        .pragma_update(None, "journal_mode", "WAL")
        .unwrap();
    drop(connection);
    assert_eq!(content(folder.path()).len(), 1);
    let database = Database::open(&path, Tool::Opencode, scratch.path()).unwrap();
    assert_eq!(database.sessions().len(), 2);
    assert_eq!(content(folder.path()).len(), 1);
}

/// A crash left an incomplete transaction, together with the journal that rolls it back.
#[test]
fn a_half_written_transaction_is_taken_back_in_a_copy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("crashed.db");
    let connection = odd_database(&path);
    connection
        .execute_batch("PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN")
        .unwrap();
    let insert = "INSERT INTO part (id, session_id, data) VALUES ('p', 's', randomblob(9000))";
    for _ in 0..50 {
        connection.execute(insert, []).unwrap();
    }
    let crashed = tempfile::tempdir().unwrap();
    let copy = crashed.path().join("crashed.db");
    for ending in ["", "-journal"] {
        let from = format!("{}{ending}", path.display());
        fs::copy(from, format!("{}{ending}", copy.display())).unwrap();
    }
    let before = content(crashed.path());
    let database = Database::open(&copy, Tool::Opencode, folder.path()).unwrap();
    let lines = String::from_utf8(lines(&database, "s")).unwrap();
    assert_eq!(lines.lines().count(), 4, "{lines}");
    assert_eq!(content(crashed.path()), before);
}

/// Reads as much of a database as possible. Returns whether all of it was readable.
fn read_all(path: &Path, scratch: &Path) -> bool {
    let Ok(database) = Database::open(path, Tool::Opencode, scratch) else {
        return false;
    };
    let ids: Vec<String> = database
        .sessions()
        .iter()
        .map(|session| session.id.clone())
        .collect();
    let mut is_whole = true;
    for id in ids {
        let mut lines = Vec::new();
        is_whole &= database.write_session(&id, u64::MAX, &mut lines).is_ok();
        imported(&opencode::Opencode, &id, &lines);
    }
    is_whole
}

#[test]
fn damaged_databases_fail_or_give_valid_entries() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.db");
    let whole = fs::read(fixture(OPENCODE_DB)).unwrap();
    fs::write(&path, &whole).unwrap();
    assert!(read_all(&path, folder.path()));
    let mut failed = 0;
    for at in (0..whole.len()).step_by(whole.len() / 40) {
        fs::write(&path, &whole[..at]).unwrap();
        failed += u32::from(!read_all(&path, folder.path()));
    }
    assert!(failed > 30, "{failed}");
    // In each case one byte differs, somewhere in a page or at its beginning, where the structure of the page is.
    for (number, start) in (0..whole.len()).step_by(3 * 4096).enumerate() {
        for at in [start + number * 37 % 4096, start + number % 12] {
            let mut bytes = whole.clone();
            bytes[at] ^= 0xff;
            fs::write(&path, &bytes).unwrap();
            read_all(&path, folder.path());
        }
    }
}

#[test]
fn a_row_of_many_megabytes_is_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("huge.db");
    let connection = odd_database(&path);
    let insert = "INSERT INTO part (id, message_id, session_id, data) VALUES ('p', 'm', 's', ?1)";
    let text = format!(r#"{{"type":"text","text":"{}"}}"#, "x".repeat(40 << 20));
    connection.execute(insert, [&text]).unwrap();
    connection
        .execute(
            "INSERT INTO message (id, session_id, data) VALUES ('m', 's', '{\"role\":\"user\"}')",
            [],
        )
        .unwrap();
    let database = Database::open(&path, Tool::Opencode, folder.path()).unwrap();
    let members = imported(&opencode::Opencode, "s", &lines(&database, "s"));
    let entry = &members[0].bodies[0]["message"]["content"][0]["text"];
    assert_eq!(entry.as_str().map(str::len), Some(40 << 20));
}

/// The closed entries of successive states of one source. No entry changes, and none is lost.
#[derive(Default)]
struct ClosedEntries(BTreeMap<Box<str>, (Option<Box<str>>, serde_json::Value)>);

impl ClosedEntries {
    fn check(&mut self, format: &dyn Format, lines: &[u8]) {
        let mut found = BTreeMap::new();
        for session in imported(format, "", lines) {
            let nodes = &session.member.nodes;
            for (node, body) in nodes
                .iter()
                .zip(&session.bodies)
                .filter(|(node, _)| !node.is_open)
            {
                let parent = match &node.parent {
                    Parent::Node(parent) => Some(nodes[*parent as usize].key.clone()),
                    _ => None,
                };
                found.insert(node.key.clone(), (parent, body.clone()));
            }
        }
        for (key, entry) in &self.0 {
            assert_eq!(found.get(key), Some(entry), "{key}");
        }
        self.0 = found;
    }
}

/// An import while opencode writes must hold back every entry that changes later. The test imports after each event
/// of the fixture, with the tables at that time.
#[test]
fn entries_of_a_growing_opencode_session_never_change_once_they_are_closed() {
    let scratch = tempfile::tempdir().unwrap();
    let database = Database::open(&fixture(OPENCODE_DB), Tool::Opencode, scratch.path()).unwrap();
    let without = |mut value: serde_json::Value, names: [&str; 3]| {
        names
            .iter()
            .for_each(|name| drop(value.as_object_mut().unwrap().remove(*name)));
        value.to_string()
    };
    for session in database.sessions() {
        let lines = String::from_utf8(lines(&database, &session.id)).unwrap();
        let rows: Vec<serde_json::Value> = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let mut state: BTreeMap<(&str, String), serde_json::Value> = BTreeMap::new();
        state.insert(("session", "".into()), rows[0]["row"].clone());
        let mut events = String::new();
        let mut closed = ClosedEntries::default();
        for event in rows.iter().filter(|row| row["table"] == "event") {
            let data: serde_json::Value =
                serde_json::from_str(event["row"]["data"].as_str().unwrap()).unwrap();
            let (info, part) = (&data["info"], &data["part"]);
            let id = |value: &serde_json::Value| value["id"].as_str().unwrap().to_owned();
            match event["row"]["type"].as_str().unwrap() {
                "message.updated.1" => {
                    let data = without(info.clone(), ["id", "sessionID", ""]);
                    let row = serde_json::json!({"id": info["id"], "time_created": info["time"]["created"], "data": data});
                    state.insert(("message", id(info)), row);
                }
                "message.part.updated.1" => {
                    let data = without(part.clone(), ["id", "sessionID", "messageID"]);
                    let row = serde_json::json!({"id": part["id"], "message_id": part["messageID"], "data": data});
                    state.insert(("part", id(part)), row);
                }
                "message.removed.1" => {
                    state.remove(&("message", data["messageID"].as_str().unwrap().to_owned()));
                    state.retain(|_, row| row["message_id"] != data["messageID"]);
                }
                _ => {
                    // The row of the session has the pending revert.
                    let revert = info["revert"]
                        .as_object()
                        .map(|revert| serde_json::json!(revert).to_string());
                    state.get_mut(&("session", String::new())).unwrap()["revert"] = revert.into();
                }
            }
            events.push_str(&format!("{event}\n"));
            let rows = state.iter().map(
                |((table, _), row)| serde_json::json!({"table": table, "rowid": 1, "row": row}),
            );
            let mut now: String = rows.map(|row| format!("{row}\n")).collect();
            now.push_str(&events);
            closed.check(&opencode::Opencode, now.as_bytes());
        }
        closed.check(&opencode::Opencode, lines.as_bytes());
        assert!(closed.0.len() >= 4, "{}", closed.0.len());
    }
}

#[test]
fn entries_of_a_growing_goose_session_never_change_once_they_are_closed() {
    let scratch = tempfile::tempdir().unwrap();
    let database = Database::open(&fixture(GOOSE_DB), Tool::Goose, scratch.path()).unwrap();
    let lines = lines(&database, &database.sessions()[0].id);
    let mut closed = ClosedEntries::default();
    for (at, _) in lines.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
        closed.check(&goose::Goose, &lines[..=at]);
    }
    assert_eq!(closed.0.len(), 12);
}
