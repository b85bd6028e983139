//! The last message of a conversation: when it is imported, and what reports say before.

use super::*;
use rusqlite::Connection;
use std::time::Duration;

/// A time in the future. No import of a slow machine is later.
fn start() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(4_000_000_000)
}

fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

impl Home {
    fn write_at(&self, name: &str, bytes: impl AsRef<[u8]>, at: SystemTime) {
        let path = self.write(name, bytes);
        let file = fs::File::options().append(true).open(path).unwrap();
        file.set_modified(at).unwrap();
    }

    /// Imports while the tool may still write, at this time. Returns the number of new entries, and the number of
    /// entries that were held back.
    #[track_caller]
    fn grow(&self, at: SystemTime) -> (u64, u64) {
        let done = self.try_import_at(at, |request| request.is_final = false);
        let totals = done.unwrap().totals;
        assert_eq!((totals.failed, totals.revised), (0, 0));
        (totals.entries_added, totals.held)
    }
}

/// A record with a part of a model message, and with the reason why the message ended.
fn part(uuid: &str, parent: &str, text: &str, reason: &str) -> String {
    let message = format!(
        "{{\"id\":\"m1\",\"role\":\"assistant\",\"model\":\"m\",\"stop_reason\":{reason},\
         \"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}],\"usage\":{{}}}}"
    );
    record("assistant", uuid, parent, &message)
}

/// Once the last answer of Claude Code was imported ten minutes after its end, although the record of the answer says
/// that the answer has ended.
#[test]
fn a_marked_answer_is_imported_once_its_file_is_quiet_for_a_second() {
    for reason in ["end_turn", "stop_sequence", "refusal"] {
        let (home, start) = (Home::new(Tool::ClaudeCode), start());
        let reason = format!("\"{reason}\"");
        let text = user("u1", "", "one") + &part("a1", "u1", "done", &reason);
        home.write_at("s.jsonl", &text, start);
        assert_eq!(home.grow(start + millis(999)), (1, 1));
        // The file has not changed since the last import.
        assert_eq!(home.grow(start + millis(1000)), (1, 0));
        assert_eq!(home.grow(start + millis(1001)), (0, 0));
    }
}

/// Once a turn was imported a second after its end, although the tool's hook had reported the end. This happened even
/// if an import had just held back the turn.
#[test]
fn a_mark_counts_sooner_once_the_turn_has_ended() {
    let (home, start) = (Home::new(Tool::ClaudeCode), start());
    let text = user("u1", "", "one") + &part("a1", "u1", "done", "\"end_turn\"");
    home.write_at("s.jsonl", &text, start);
    let told = |at: u64, has_ended: bool| {
        let done = home.try_import_at(start + millis(at), |request| {
            request.is_final = false;
            request.has_ended = has_ended;
        });
        done.unwrap().totals.entries_added
    };
    assert_eq!(told(100, false), 1);
    assert_eq!(told(199, true), 0);
    assert_eq!(told(200, false), 0);
    assert_eq!(told(200, true), 1);
    // A message without a mark may still grow.
    let text = text
        + &user("u2", "a1", "two")
        + &part("a2", "u2", "so far", "null").replace("\"m1\"", "\"m2\"");
    home.write_at("s.jsonl", &text, start + millis(300));
    assert_eq!(told(900, true), 1);
}

#[test]
fn an_answer_without_a_mark_is_imported_after_ten_minutes() {
    for reason in ["null", "\"tool_use\"", "\"max_tokens\"", "\"pause_turn\""] {
        let (home, start) = (Home::new(Tool::ClaudeCode), start());
        let text = user("u1", "", "one") + &part("a1", "u1", "done", reason);
        home.write_at("s.jsonl", &text, start);
        assert_eq!(home.grow(start + millis(2_000)), (1, 1), "{reason}");
        assert_eq!(home.grow(start + millis(599_999)), (0, 1), "{reason}");
        assert_eq!(home.grow(start + millis(600_000)), (1, 0), "{reason}");
    }
}

/// One message is several records. Each of them may have the mark.
#[test]
fn a_mark_waits_for_the_other_records_of_its_message() {
    let (home, start) = (Home::new(Tool::ClaudeCode), start());
    let text = user("u1", "", "one") + &part("a1", "u1", "first", "\"end_turn\"");
    home.write_at("s.jsonl", &text, start);
    assert_eq!(home.grow(start + millis(900)), (1, 1));
    let text = text + &part("a2", "a1", "second", "\"end_turn\"");
    home.write_at("s.jsonl", &text, start + millis(950));
    assert_eq!(home.grow(start + millis(1_900)), (0, 1));
    let at = start + millis(1_950);
    let done = home.try_import_at(at, |request| request.is_final = false);
    let done = done.unwrap();
    assert_eq!((done.totals.entries_added, done.totals.held), (1, 0));
    let path = path_of(&done.sessions[0]);
    let content = &path[1]["message"]["content"];
    let texts: Vec<_> = (0..2).map(|at| &content[at]["text"]).collect();
    assert_eq!(texts, ["first", "second"]);
}

/// The tool was killed, or still writes, inside the next record.
#[test]
fn a_mark_does_not_count_before_an_unfinished_line() {
    let (home, start) = (Home::new(Tool::ClaudeCode), start());
    let text = user("u1", "", "one") + &part("a1", "u1", "done", "\"end_turn\"");
    home.write_at("s.jsonl", text + "{\"type\":\"assis", start);
    assert_eq!(home.grow(start + millis(5_000)), (1, 1));
}

/// If a call of the message has no result, the mark does not count.
#[test]
fn a_mark_does_not_end_a_message_whose_call_has_no_result() {
    let (home, start) = (Home::new(Tool::ClaudeCode), start());
    let called =
        call("a1", "u1", "c1").replace("\"usage\"", "\"stop_reason\":\"end_turn\",\"usage\"");
    home.write_at("s.jsonl", user("u1", "", "one") + &called, start);
    assert_eq!(home.grow(start + millis(5_000)), (1, 1));
}

#[test]
fn a_result_says_until_when_entries_are_held_back() {
    let (home, start) = (Home::new(Tool::ClaudeCode), start());
    let begin = user("u1", "", "one");
    home.write_at(
        "s.jsonl",
        begin.clone() + &assistant("a1", "u1", "x"),
        start,
    );
    let marked = user("u7", "", "two") + &part("a7", "u7", "done", "\"end_turn\"");
    home.write_at("t.jsonl", marked.replace("\"s\"", "\"t\""), start);
    let import = |at| {
        home.try_import_at(at, |request| request.is_final = false)
            .unwrap()
    };
    let until = |result: &ImportReport| {
        let rows = result.sessions.iter();
        let mut rows: Vec<_> = rows.map(|row| (row.held, row.held_until.clone())).collect();
        rows.sort();
        (rows, result.totals.held_until.clone())
    };
    let (second, minutes) = ("2096-10-02T07:06:41.000Z", "2096-10-02T07:16:40.000Z");
    let (second, minutes) = (Some(second.to_owned()), Some(minutes.to_owned()));
    let first = import(start);
    assert_eq!(
        until(&first),
        (vec![(1, second.clone()), (1, minutes.clone())], second)
    );
    let later = import(start + millis(1_000));
    assert_eq!(
        until(&later),
        (vec![(0, None), (1, minutes.clone())], minutes.clone())
    );
    // This also holds for a session that was not read again.
    let same = import(start + millis(2_000));
    assert_eq!((same.totals.unchanged, until(&same).1), (2, minutes));
    let done = home.import();
    assert_eq!((done.totals.held, done.totals.held_until), (0, None));
}

/// Once the last answer of a conversation was never imported if the tool deleted the conversation within ten minutes.
#[test]
fn the_end_of_a_deleted_source_is_imported_from_the_kept_bytes() {
    let (home, start) = (Home::new(Tool::ClaudeCode), start());
    home.write_at("s.jsonl", conversation(), start);
    let other = user("u7", "", "three") + &assistant("a7", "u7", "third");
    home.write_at("t.jsonl", other.replace("\"s\"", "\"t\""), start);
    assert_eq!(home.grow(start).1, 2);
    let files = home.root.path().join("files");
    fs::remove_file(files.join("s.jsonl")).unwrap();
    // A file that was moved still exists.
    fs::create_dir(files.join("moved")).unwrap();
    fs::rename(files.join("t.jsonl"), files.join("moved/t.jsonl")).unwrap();
    let at = start + millis(2_000);
    let done = home
        .try_import_at(at, |request| request.is_final = false)
        .unwrap();
    assert_eq!((done.totals.entries_added, done.totals.held), (1, 1));
    let row = done
        .sessions
        .iter()
        .find(|row| row.entries_added > 0)
        .unwrap();
    let last = path_of(row).pop().unwrap();
    assert_eq!(last["message"]["content"][0]["text"], "second");
    assert_eq!(home.grow(at), (0, 1));
    assert_eq!(home.import().totals.entries_added, 1);
    assert_eq!(home.import().totals.entries_added, 0);
}

/// The folder that the request names was deleted together with the source.
#[test]
fn the_end_of_a_source_is_imported_after_its_folder_was_deleted() {
    let (home, start) = (Home::new(Tool::ClaudeCode), start());
    home.write_at("s.jsonl", conversation(), start);
    assert_eq!(home.grow(start).1, 1);
    fs::remove_dir_all(home.root.path().join("files")).unwrap();
    assert_eq!(home.grow(start), (1, 0));
    let failed = home.try_import(|_| {}).unwrap_err();
    assert_eq!(failed.kind, treelined_core::error::Kind::InvalidParams);
}

/// Makes a database of goose. Each session has this last answer, and this time of its last change.
fn goose(home: &Home, at: SystemTime, metadata: &str) -> Connection {
    let path = home.write(
        "sessions.db",
        fs::read(fixture("goose/sessions.db")).unwrap(),
    );
    let database = Connection::open(&path).unwrap();
    let last = "id IN (SELECT max(id) FROM messages GROUP BY session_id)";
    let change = format!(
        "UPDATE messages SET metadata_json = json_remove(metadata_json, {metadata}) WHERE {last}"
    );
    database.execute(&change, []).unwrap();
    database
        .execute(
            "UPDATE sessions SET updated_at = datetime(4000000000, 'unixepoch')",
            [],
        )
        .unwrap();
    touch(&path, at);
    database
}

fn touch(path: &Path, at: SystemTime) {
    let file = fs::File::options().append(true).open(path).unwrap();
    file.set_modified(at).unwrap();
}

/// goose writes the number of an answer's tokens into the last row of the answer.
#[test]
fn an_answer_of_goose_with_its_usage_has_ended() {
    let (home, start) = (Home::new(Tool::Goose), start());
    let _database = goose(&home, start, "'$.none'");
    // Both sessions have the answer, because one is a fork of the other. Once it was counted twice, but added once.
    let (added, held) = home.grow(start);
    assert!(added > 0 && held == 1, "{added} {held}");
    assert_eq!(home.grow(start + millis(1_000)), (1, 0));

    let home = Home::new(Tool::Goose);
    let _database = goose(&home, start, "'$.usage'");
    assert_eq!(home.grow(start + millis(5_000)), (added, held));
    let result = home.try_import(|_| {}).unwrap();
    assert_eq!(result.totals.entries_added, 1);
}

/// Deletes the rows of a session, as goose does.
#[test]
fn the_end_of_a_session_that_was_deleted_from_a_database_is_imported() {
    let (home, start) = (Home::new(Tool::Goose), start());
    let database = goose(&home, start, "'$.usage'");
    assert_eq!(home.grow(start).1, 1);
    database
        .execute_batch("PRAGMA foreign_keys = off; DELETE FROM messages; DELETE FROM sessions;")
        .unwrap();
    assert_eq!(home.grow(start), (1, 0));
    assert_eq!(home.grow(start), (0, 0));
}
