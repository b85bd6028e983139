//! A conversation that a recorder has written and its import become one session (session-file.md §5.8, "Records").

use super::*;
use crate::place::NewFile;
use std::time::Duration;
use treelined_files::log::append::TryLock;

/// A conversation of an agent, and the session into which a recorder writes it.
struct Recording {
    tour: Tour,
    guest: Guest,
    native: String,
}

/// A question with a call, and its answer.
fn beginning() -> Vec<Value> {
    vec![
        json!({ "role": "user", "content": "FIRST question" }),
        json!({ "role": "assistant", "content": [{ "type": "text", "text": "I look." },
            { "type": "toolCall", "id": "call_1", "name": "bash", "arguments": { "command": "ls" } }] }),
        json!({ "role": "toolResult", "toolCallId": "call_1", "toolName": "bash", "isError": false,
            "content": [{ "type": "text", "text": "LISTED as the model saw it" }] }),
        json!({ "role": "assistant", "content": [{ "type": "text", "text": "One file." }] }),
    ]
}

fn text(role: &str, words: &str) -> Value {
    json!({ "role": role, "content": [{ "type": "text", "text": words }] })
}

fn native_id(prepared: &Prepared, tool: Tool) -> String {
    let NewFile { bytes, .. } = prepared.files.first().unwrap();
    let first = bytes.split(|byte| *byte == b'\n').next().unwrap();
    match (&prepared.native_id, tool) {
        (Some(id), _) => id.clone(),
        (None, Tool::Goose) => format!("goose-{}", prepared.id),
        (None, _) => {
            let header: Value = serde_json::from_slice(first).unwrap();
            header["sessionId"].as_str().unwrap().to_owned()
        }
    }
}

impl Recording {
    /// Adds these messages to the agent's file. The recorder has none of them yet.
    fn new(tool: Tool, messages: &[Value]) -> Self {
        let tour = Tour::new();
        fs::remove_file(tour.file()).unwrap();
        let prepared = tour.world.prepare(Some(tool), messages).unwrap();
        place(&prepared.files).unwrap();
        let native = native_id(&prepared, tool);
        let guest = Guest {
            tool,
            prepared,
            added: Vec::new(),
        };
        Self {
            tour,
            guest,
            native,
        }
    }

    /// The recorder makes a session.
    fn begin(&self) -> &Self {
        self.begin_in("record")
    }

    fn begin_in(&self, its: &str) -> &Self {
        let cwd = self.tour.world.at("project");
        let header = json!({ "type": "session", "version": 3, "id": "record",
            "timestamp": "2026-03-01T09:00:00.000Z", "cwd": cwd });
        let about = json!({ "type": "custom", "id": "about", "parentId": null,
            "timestamp": "2026-03-01T09:00:00.000Z", "customType": "acp.session",
            "data": { "agent": "agent", "sessionId": self.native, "in": its } });
        let path = self
            .tour
            .world
            .at("sessions/project/2026-03-01T09-00-00-000Z_record.jsonl");
        fs::write(path, format!("{header}\n{about}\n")).unwrap();
        self
    }

    /// The recorder writes these messages below an entry. Returns the id of the last one.
    fn record(&self, parent: &str, messages: &[Value]) -> String {
        let mut parent = parent.to_owned();
        for message in messages {
            let id = format!("a{:07x}", self.tour.text().len());
            self.tour
                .append(&json!({ "type": "message", "id": id, "parentId": parent,
                "timestamp": "2027-01-15T08:00:00.000Z", "message": message }));
            parent = id;
        }
        parent
    }

    #[track_caller]
    fn import(&self) -> Value {
        self.tour.import(&self.guest)
    }

    /// Checks that only the name of the session was written.
    #[track_caller]
    fn check_adopted(&self, messages: usize) {
        self.import();
        let text = self.tour.text();
        let there = text.matches("\"type\":\"message\"").count();
        assert_eq!(there, messages, "{:?} {text}", self.guest.tool);
        self.tour.check_settled(&[self.guest.tool]);
    }

    fn id(&self, words: &str) -> String {
        self.tour.entry(words)["id"].as_str().unwrap().to_owned()
    }
}

/// Once the record of a conversation and its import were two sessions, and a search found each message twice.
#[test]
fn a_record_and_an_import_are_one_session() {
    for tool in Tool::AGENTS {
        let mut it = Recording::new(tool, &beginning());
        let mut messages = beginning();
        // The editor has another text of the result, and a title in place of the tool's name.
        messages[1]["content"][1]["name"] = json!("List files");
        messages[2]["content"][0]["text"] = json!("Shown to the editor");
        let last = it.begin().record("about", &messages);
        it.check_adopted(4);
        // The agent and the recorder continue.
        it.guest.say("QUESTION", "ANSWER");
        it.record(
            &last,
            &[text("user", "QUESTION"), text("assistant", "ANSWER")],
        );
        it.check_adopted(6);
        // Only the agent continues.
        it.guest.say("MORE", "FURTHER");
        it.check_adopted(8);
        it.tour.check_branch(&it.id("ANSWER"), "MORE", "FURTHER");
        // The recorder continues below the imported messages.
        it.guest.say("AGAIN", "INDEED");
        it.record(
            &it.id("FURTHER"),
            &[text("user", "AGAIN"), text("assistant", "INDEED")],
        );
        it.check_adopted(10);
        it.tour.check_branch(&it.id("FURTHER"), "AGAIN", "INDEED");
        assert_eq!(it.tour.words().last().unwrap(), "INDEED");
    }
}

/// An import makes the session, and then the recorder continues in it.
#[test]
fn a_recorder_goes_on_in_an_import() {
    for tool in Tool::AGENTS {
        let mut it = Recording::new(tool, &beginning());
        it.import();
        let last = it.tour.path().last().unwrap().entry_id.clone();
        it.tour
            .append(&json!({ "type": "custom", "id": "about", "parentId": last,
            "timestamp": "2027-01-15T08:00:00.000Z", "customType": "acp.session",
            "data": { "agent": "agent", "sessionId": it.native, "in": it.tour.id() } }));
        it.record(
            "about",
            &[text("user", "QUESTION"), text("assistant", "ANSWER")],
        );
        it.guest.say("QUESTION", "ANSWER");
        it.check_adopted(6);
        it.guest.say("MORE", "FURTHER");
        it.check_adopted(8);
        it.tour.check_branch(&it.id("ANSWER"), "MORE", "FURTHER");
    }
}

/// A conversation that was handed over continues below messages that a recorder has written.
#[test]
fn a_continuation_goes_on_behind_a_recorder() {
    for tool in Tool::AGENTS {
        let tour = Tour::new();
        let mut guest = tour.hand_over("e6", tool);
        let native = native_id(&guest.prepared, tool);
        tour.append(&json!({ "type": "custom", "id": "about", "parentId": "e6",
            "timestamp": "2027-01-15T08:00:00.000Z", "customType": "acp.session",
            "data": { "agent": "agent", "sessionId": native, "in": SESSION } }));
        guest.say("QUESTION", "ANSWER");
        let it = Recording {
            tour,
            guest,
            native,
        };
        it.record(
            "about",
            &[text("user", "QUESTION"), text("assistant", "ANSWER")],
        );
        it.check_adopted(9);
        let mut it = it;
        it.guest.say("MORE", "FURTHER");
        it.check_adopted(11);
        it.tour.check_branch(&it.id("ANSWER"), "MORE", "FURTHER");
    }
}

/// ACP does not say whether a message ends between two texts of a turn.
#[test]
fn one_message_of_a_record_may_be_several_nodes() {
    for tool in Tool::AGENTS {
        let mut native = beginning();
        native.insert(3, json!({ "role": "assistant", "content": [
            { "type": "toolCall", "id": "call_2", "name": "bash", "arguments": { "command": "id" } }] }));
        native.insert(4, json!({ "role": "toolResult", "toolCallId": "call_2", "toolName": "bash", "isError": false,
            "content": [{ "type": "text", "text": "SECOND" }] }));
        let it = Recording::new(tool, &native);
        let mut record = native.clone();
        let second = record.remove(3)["content"][0].clone();
        record[1]["content"].as_array_mut().unwrap().push(second);
        // The results follow, then the answer.
        assert_eq!(record[3]["toolCallId"], "call_2");
        it.begin().record("about", &record);
        it.check_adopted(5);
    }
}

/// The agent has a turn in its own window. Then the recorder resumes without a history.
#[test]
fn a_turn_that_the_record_lacks_is_a_branch_in_its_place() {
    for tool in Tool::AGENTS {
        let mut it = Recording::new(tool, &beginning());
        let last = it.begin().record("about", &beginning());
        it.guest.say("ELSEWHERE", "THERE");
        it.guest.say("QUESTION", "ANSWER");
        it.record(
            &last,
            &[text("user", "QUESTION"), text("assistant", "ANSWER")],
        );
        it.check_adopted(8);
        it.tour.check_branch(&last, "ELSEWHERE", "THERE");
        it.tour.check_branch(&last, "QUESTION", "ANSWER");
    }
}

/// A record names a conversation, but has none of its messages.
#[test]
fn a_forged_record_takes_nothing() {
    for tool in Tool::AGENTS {
        let it = Recording::new(tool, &beginning());
        it.begin().record(
            "about",
            &[
                text("user", "Another question"),
                text("assistant", "One file."),
            ],
        );
        let before = it.tour.text();
        assert_eq!(it.import()["totals"]["created"], 1, "{tool:?}");
        let record = it.tour.files().into_values().find(|text| *text == before);
        assert!(record.is_some(), "{tool:?}: the record is as it was");
        // A record that was copied from another session is ignored.
        let it = Recording::new(tool, &beginning());
        it.begin_in("another").record("about", &beginning());
        assert_eq!(it.import()["totals"]["created"], 1, "{tool:?}");
    }
}

/// goose and opencode make an empty conversation at the start. It once became a separate session, and later messages
/// went into this session and not into the record.
#[test]
fn a_recorded_conversation_that_says_nothing_waits() {
    for tool in [Tool::Opencode, Tool::Goose] {
        let it = Recording::new(tool, &beginning());
        it.begin();
        it.guest.arrange(&it.tour.world);
        let store = it.tour.world.at(place_of(tool));
        match tool {
            Tool::Goose => {
                let database = rusqlite::Connection::open(store.join("sessions.db")).unwrap();
                database.execute("DELETE FROM messages", []).unwrap();
            }
            _ => fs::remove_dir_all(store.join("storage/message")).unwrap(),
        }
        let before = it.tour.text();
        it.tour.import_from(tool);
        assert_eq!(it.tour.text(), before, "{tool:?}");
        it.record("about", &beginning());
        it.check_adopted(4);
    }
}

/// The recorder writes after the comparison and before the import writes.
#[test]
fn a_session_that_grows_during_the_comparison_is_left_to_the_next_import() {
    let is_seen = [100, 400, 1_500].into_iter().any(|pause| {
        let mut it = Recording::new(Tool::Codex, &beginning());
        let last = it.begin().record("about", &beginning());
        it.guest.say("QUESTION", "ANSWER");
        it.guest.arrange(&it.tour.world);
        let store = Store::new(it.tour.world.at("sessions"));
        let at = treelined_files::os::file::Location::of_path(&it.tour.file()).unwrap();
        let mut opened = store.open(at, &Cancel::new()).unwrap();
        let lock = opened.log.try_lock().unwrap();
        assert!(matches!(lock, TryLock::Locked(_)));
        let report = std::thread::scope(|scope| {
            let import = scope.spawn(|| it.tour.try_import(Tool::Codex, |_| {}).unwrap());
            std::thread::sleep(Duration::from_millis(pause));
            it.record(
                &last,
                &[text("user", "QUESTION"), text("assistant", "ANSWER")],
            );
            drop(lock);
            import.join().unwrap()
        });
        it.check_adopted(6);
        let error = &report["files"][0]["error"]["kind"];
        assert!(
            report["totals"]["failed"] == 0 || error == "sessionLocked",
            "{report}"
        );
        report["totals"]["failed"] == 1
    });
    assert!(is_seen, "no import compared the session before it grew");
}

/// The time at which all messages of the agents are written.
const SAID: &str = "2027-01-15T07:00:00.000Z";

/// Once a repeated message of the user was taken for the first one, and the second answer of the agent was written
/// below the first message.
#[test]
fn the_same_words_said_later_are_not_those_of_the_record() {
    let mut it = Recording::new(Tool::ClaudeCode, &beginning());
    let last = it.begin().record("about", &beginning());
    it.record(
        &last,
        &[text("user", "Go on"), text("assistant", "RECORDED")],
    );
    // The agent's file has a turn that the record lacks. Then it has the same text again, an hour after the text was
    // recorded.
    it.guest.say("ELSEWHERE", "THERE");
    it.guest.say("Go on", "OTHERWISE");
    it.guest.arrange(&it.tour.world);
    let file = &it.guest.file().path;
    let said = fs::read_to_string(file).unwrap();
    fs::write(file, said.replace(SAID, "2027-01-15T09:00:00.000Z")).unwrap();
    it.tour.import_from(Tool::ClaudeCode);
    let asked = it.tour.entry("OTHERWISE")["parentId"].clone();
    assert_ne!(asked, it.tour.entry("RECORDED")["parentId"]);
    let text = it.tour.text();
    assert_eq!(text.matches("Go on").count(), 2, "{text}");
    let own = text
        .lines()
        .find(|line| line.contains(asked.as_str().unwrap()));
    assert!(own.unwrap().contains(it.id("THERE").as_str()), "{text}");
}

/// A question that begins like the recorded question was once taken for the recorded question, in the middle and at the
/// beginning of a conversation.
#[test]
fn a_question_that_begins_as_another_is_its_own() {
    for tool in Tool::AGENTS {
        let mut it = Recording::new(tool, &beginning());
        let last = it.begin().record("about", &beginning());
        it.record(
            &last,
            &[
                text("user", "QUESTION and more"),
                text("assistant", "ANSWER to it"),
            ],
        );
        it.guest.say("QUESTION", "OTHERWISE");
        it.check_adopted(8);
        let asked = it.tour.entry("OTHERWISE")["parentId"].clone();
        assert_ne!(asked, it.id("QUESTION and more"), "{tool:?}");
        let mut native = beginning();
        native[0]["content"] = json!("FIRST");
        let it = Recording::new(tool, &native);
        it.begin().record("about", &beginning());
        assert_eq!(it.import()["totals"]["created"], 1, "{tool:?}");
    }
}

/// If there are many sessions, the rows of the list say which sessions have a record. This session gets its record
/// after the import of all sessions, so the ledger does not have it.
#[test]
fn a_record_is_known_among_many_sessions() {
    let mut it = Recording::new(Tool::ClaudeCode, &beginning());
    let imported = it.import()["sessions"][0].clone();
    let (session, leaf) = (&imported["sessionId"], it.id("One file."));
    let mut others = Vec::new();
    for _ in 0..9 {
        let other = it.tour.world.prepare(Some(Tool::ClaudeCode), &beginning());
        let other = Guest {
            tool: Tool::ClaudeCode,
            prepared: other.unwrap(),
            added: Vec::new(),
        };
        place(&other.prepared.files).unwrap();
        others.push(other);
    }
    assert_eq!(it.import()["totals"]["created"], 9);
    let time = "2027-01-15T08:00:00.000Z";
    let record = [
        json!({ "type": "custom", "id": "about", "parentId": leaf, "timestamp": time, "customType": "acp.session",
            "data": { "agent": "agent", "sessionId": it.native, "in": session } }),
        json!({ "type": "message", "id": "q", "parentId": "about", "timestamp": time,
            "message": text("user", "QUESTION") }),
        json!({ "type": "message", "id": "a", "parentId": "q", "timestamp": time,
            "message": text("assistant", "ANSWER") }),
    ];
    let path = imported["path"].as_str().unwrap();
    let mut lines = fs::read_to_string(path).unwrap();
    lines.extend(record.iter().map(|entry| format!("{entry}\n")));
    fs::write(path, lines).unwrap();
    it.guest.say("QUESTION", "ANSWER");
    for other in &mut others {
        other.say("OTHER", "INDEED");
        other.arrange(&it.tour.world);
    }
    let report = it.import();
    assert_eq!(report["totals"]["entriesAdded"], 18, "{report}");
}

/// A session from an import got messages from a recorder later. When the session was written again, the new file once
/// lacked these messages, because the ledger did not have them.
#[test]
fn a_session_with_a_record_is_not_written_anew() {
    for tool in Tool::AGENTS {
        let it = Recording::new(tool, &beginning());
        it.import();
        let session = it.tour.id();
        let anew = || {
            it.tour
                .try_import(tool, |request| request.again = Some(session.clone()))
        };
        assert_eq!(anew().unwrap()["totals"]["failed"], 0, "{tool:?}");
        let last = it.tour.path().last().unwrap().entry_id.clone();
        it.tour
            .append(&json!({ "type": "custom", "id": "about", "parentId": last,
            "timestamp": "2027-01-15T08:00:00.000Z", "customType": "acp.session",
            "data": { "agent": "agent", "sessionId": it.native, "in": session } }));
        it.record("about", &[text("user", "QUESTION")]);
        let before = it.tour.files();
        assert_eq!(anew().unwrap_err().kind, Kind::ImportFailed, "{tool:?}");
        assert!(it.tour.files() == before, "{tool:?}");
    }
}
