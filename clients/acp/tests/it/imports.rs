//! A conversation that a recorder records and an import reads from the store of the agent is one session
//! (session-file.md §5.8).

use crate::{AGENT, Editor, Folders, daemon};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// Writes the agent's file of a conversation with these questions. Each question has an answer of the agent.
fn store(folders: &Folders, session: &str, questions: &[&str]) {
    let mut text = String::new();
    let mut parent: Option<String> = None;
    for (number, question) in questions.iter().enumerate() {
        let answer = json!({"id": format!("msg_{number}"), "role": "assistant", "model": "m", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": format!("You said: {question}")}],
            "usage": {"input_tokens": 10, "output_tokens": 2}});
        for (role, message) in [
            ("user", json!({"role": "user", "content": question})),
            ("assistant", answer),
        ] {
            let id = format!("{session}-{role}-{number}");
            let record = json!({"type": role, "uuid": id, "parentUuid": parent, "sessionId": session,
                "timestamp": "2026-03-01T09:00:00.000Z", "cwd": folders.path("work"), "message": message});
            text.push_str(&format!("{record}\n"));
            parent = Some(id);
        }
    }
    let folder = folders.path("home/.claude/projects/work");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("{session}.jsonl")), text).unwrap();
}

impl Folders {
    /// Ends a recorder, and completes its record. The recorder itself has only ten seconds for the rest, which is too
    /// short on a busy machine.
    fn end(&self, editor: Editor) {
        assert_eq!(editor.end(), 0);
        let done = self.command(&daemon()).arg("--recover").output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }

    fn treelined(&self, args: &[&str]) -> String {
        let mut command = Command::new(daemon());
        command.arg("--session-dir").arg(self.path("sessions"));
        command.args(args).env("HOME", self.path("home"));
        let done = command.current_dir(self.path("work")).output().unwrap();
        assert!(done.status.success(), "{args:?} {done:?}");
        String::from_utf8(done.stdout).unwrap()
    }

    /// Imports, and returns the number of new entries.
    fn import(&self) -> u64 {
        let home = self.path("home/.claude");
        let args = ["import", "--final", "--json", "--from", "claude-code"];
        let report = self.treelined(&[&args[..], &[home.to_str().unwrap()]].concat());
        let report: Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["totals"]["failed"], 0, "{report}");
        report["totals"]["entriesAdded"].as_u64().unwrap()
    }

    /// Checks that there is one session, and that it has each question and its answer once, on one path.
    #[track_caller]
    fn check_once(&self, questions: &[&str]) {
        let rows = self.recorded();
        let said = rows
            .iter()
            .filter(|(kind, ..)| matches!(&**kind, "user" | "assistant"));
        let said: Vec<(&str, &str)> = said.map(|(kind, text, _)| (&**kind, &**text)).collect();
        let answers: Vec<String> = questions
            .iter()
            .map(|text| format!("You said: {text}"))
            .collect();
        let wanted = questions.iter().zip(&answers);
        let wanted: Vec<(&str, &str)> = wanted
            .flat_map(|(question, answer)| [("user", *question), ("assistant", &**answer)])
            .collect();
        assert_eq!(said, wanted, "{rows:#?}");
        let mut at = rows.iter().rposition(|(kind, ..)| kind == "assistant");
        let mut way = Vec::new();
        while let Some((kind, text, parent)) = at.and_then(|at| rows.get(at)) {
            way.push((&**kind, &**text));
            at = *parent;
        }
        way.retain(|(kind, _)| matches!(*kind, "user" | "assistant"));
        way.reverse();
        assert_eq!(way, wanted, "{rows:#?}");
    }

    fn history(questions: &[&str]) -> Value {
        let told = questions.iter().flat_map(|question| {
            [
                json!(["user_message_chunk", question]),
                json!(["agent_message_chunk", format!("You said: {question}")]),
            ]
        });
        told.collect()
    }

    fn load(&self, session: &str, questions: &[&str], question: &str) {
        let mut editor = self.recorder(&Self::history(questions));
        let cwd = self.path("work");
        editor.ask("session/load", json!({"sessionId": session, "cwd": cwd}));
        editor.prompt(session, question);
        self.end(editor);
    }
}

/// A conversation that was recorded and then imported once became two sessions, and a search returned each hit twice.
#[test]
fn recorder_and_import_go_on_in_turns() {
    let folders = Folders::new();
    let mut editor = folders.recorder(&json!([]));
    editor.ask("session/new", json!({"cwd": folders.path("work")}));
    editor.prompt("s1", "one");
    folders.end(editor);
    store(&folders, "s1", &["one"]);
    assert_eq!(folders.import(), 0);
    folders.check_once(&["one"]);
    // In the agent's own window, then in the editor again.
    store(&folders, "s1", &["one", "two"]);
    assert_eq!(folders.import(), 2);
    folders.load("s1", &["one", "two"], "three");
    folders.check_once(&["one", "two", "three"]);
    store(&folders, "s1", &["one", "two", "three"]);
    assert_eq!(folders.import(), 0);
    // The editor does not ask for the history.
    store(&folders, "s1", &["one", "two", "three", "four"]);
    assert_eq!(folders.import(), 2);
    let mut editor = folders.recorder(&json!([]));
    let cwd = folders.path("work");
    editor.ask("session/resume", json!({"sessionId": "s1", "cwd": cwd}));
    editor.prompt("s1", "five");
    folders.end(editor);
    let all = ["one", "two", "three", "four", "five"];
    store(&folders, "s1", &all);
    assert_eq!(folders.import(), 0);
    folders.check_once(&all);
    std::fs::remove_dir_all(folders.path("sessions/.imports")).unwrap();
    assert_eq!(folders.import(), 0);
    folders.check_once(&all);
}

/// The recorder of an imported conversation once made a second session of it.
#[test]
fn a_recorder_goes_on_in_the_session_of_an_import() {
    let folders = Folders::new();
    store(&folders, "s1", &["one", "two"]);
    assert!(folders.import() >= 4);
    // The last turn is not imported yet.
    folders.load("s1", &["one", "two", "three"], "four");
    folders.check_once(&["one", "two", "three", "four"]);
    store(&folders, "s1", &["one", "two", "three", "four"]);
    assert_eq!(folders.import(), 0);
    folders.check_once(&["one", "two", "three", "four"]);
}

/// The recorder was killed before it wrote anything, and an import came before the next start.
#[test]
fn a_turn_that_an_import_brought_is_not_recorded_again() {
    let folders = Folders::new();
    let mut command = folders.command(Path::new("/nonexistent/treelined"));
    command.args(["--", "python3", AGENT]);
    let mut editor = Editor::start(command);
    editor.ask("session/new", json!({"cwd": folders.path("work")}));
    editor.prompt("s1", "one");
    editor.prompt("s1", "two");
    editor.child.kill().unwrap();
    editor.child.wait().unwrap();
    store(&folders, "s1", &["one"]);
    assert!(folders.import() >= 2);
    let recover = || {
        let done = folders
            .command(&daemon())
            .arg("--recover")
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    recover();
    folders.check_once(&["one", "two"]);
    store(&folders, "s1", &["one", "two"]);
    assert_eq!(folders.import(), 0);
    folders.load("s1", &["one", "two"], "three");
    folders.check_once(&["one", "two", "three"]);
    store(&folders, "s1", &["one", "two", "three"]);
    assert_eq!(folders.import(), 0);
    folders.check_once(&["one", "two", "three"]);
}

/// A path is handed over, and the editor loads the new session. The record of this session was once a separate session.
#[test]
fn a_recorder_goes_on_where_a_path_was_handed_over() {
    let folders = Folders::new();
    let mut editor = folders.recorder(&json!([]));
    editor.ask("session/new", json!({"cwd": folders.path("work")}));
    editor.prompt("s1", "one");
    folders.end(editor);
    let session = folders.treelined(&["list", "--all", "--json"]);
    let session: Value = serde_json::from_str(session.lines().next().unwrap()).unwrap();
    let id = session["sessionId"]
        .as_str()
        .or(session["sessions"][0]["sessionId"].as_str());
    let continued = [
        "continue",
        id.unwrap(),
        "--in",
        "claude-code",
        "--json",
        "--no-run",
    ];
    let continued = folders.treelined(&continued);
    let continued: Value = serde_json::from_str(&continued).unwrap();
    let native = continued["nativeId"].as_str().unwrap();
    folders.load(native, &["one"], "two");
    folders.check_once(&["one", "two"]);
    let path = continued["files"][0]["path"].as_str().unwrap();
    let handed = std::fs::read_to_string(path).unwrap();
    store(&folders, native, &["one", "two"]);
    assert!(!handed.is_empty());
    assert_eq!(folders.import(), 0);
    folders.check_once(&["one", "two"]);
}

/// A program between the recorder and its daemon. It imports before the first entries with a text are appended.
const IMPORTER: &str = r#"
import os, subprocess, sys
daemon, text, home, *options = sys.argv[1:]
child = subprocess.Popen([daemon, *options], stdin=subprocess.PIPE)
is_imported = False
for line in sys.stdin.buffer:
    if not is_imported and b'"append_entries"' in line and text.encode() in line:
        is_imported = True
        sessions = options[options.index("--session-dir") + 1]
        command = [daemon, "--session-dir", sessions, "import", "--final", "--from", "claude-code", home + "/.claude"]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=dict(os.environ, HOME=home))
    child.stdin.write(line)
    child.stdin.flush()
child.stdin.close()
sys.exit(child.wait())
"#;

/// The recorder looks whether an import has already written the turn, and then appends it. Once an import came between
/// these two steps, and the session had the turn twice.
#[test]
fn an_import_between_look_and_append_is_seen() {
    for text in ["two", "You said: two"] {
        let folders = Folders::new();
        let script = folders.path("importer.py");
        std::fs::write(&script, IMPORTER).unwrap();
        let program = folders.path("daemon");
        let (own, home) = (daemon(), folders.path("home"));
        let line = format!(
            "#!/bin/sh\nexec python3 '{}' '{}' '{text}' '{}' \"$@\"\n",
            script.display(),
            own.display(),
            home.display()
        );
        std::fs::write(&program, line).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).unwrap();
        let mut command = folders.command(&program);
        command.args(["--", "python3", AGENT]).env("HISTORY", "[]");
        let mut editor = Editor::start(command);
        editor.ask("session/new", json!({"cwd": folders.path("work")}));
        editor.prompt("s1", "one");
        store(&folders, "s1", &["one", "two"]);
        editor.prompt("s1", "two");
        editor.prompt("s1", "three");
        folders.end(editor);
        folders.check_once(&["one", "two", "three"]);
        store(&folders, "s1", &["one", "two", "three"]);
        assert_eq!(folders.import(), 0, "{text}");
        folders.check_once(&["one", "two", "three"]);
    }
}

/// Some agents use an id again. A second conversation was once recorded in the session of the first.
#[test]
fn another_conversation_with_an_id_that_was_recorded_is_a_session_of_its_own() {
    let folders = Folders::new();
    for question in ["one", "another"] {
        let mut editor = folders.recorder(&json!([]));
        editor.ask("session/new", json!({"cwd": folders.path("work")}));
        editor.prompt("s1", question);
        folders.end(editor);
    }
    let listed = folders.treelined(&["list", "--all", "--json"]);
    for question in ["one", "another"] {
        let first = format!("\"firstMessage\":\"{question}\"");
        assert_eq!(listed.matches(&first).count(), 1, "{listed}");
    }
}

/// The recorder once looked for the end of an import only within a thousand entries, and continued in the middle of a
/// longer import.
#[test]
fn a_recorder_goes_on_behind_a_long_import() {
    let folders = Folders::new();
    let mut editor = folders.recorder(&json!([]));
    editor.ask("session/new", json!({"cwd": folders.path("work")}));
    editor.prompt("s1", "one");
    folders.end(editor);
    let mut questions = vec!["one".to_owned()];
    questions.extend((2..=520).map(|number| format!("question {number}")));
    let mut questions: Vec<&str> = questions.iter().map(String::as_str).collect();
    store(&folders, "s1", &questions);
    assert_eq!(folders.import(), 2 * 519);
    let mut editor = folders.recorder(&json!([]));
    let cwd = folders.path("work");
    editor.ask("session/resume", json!({"sessionId": "s1", "cwd": cwd}));
    editor.prompt("s1", "the end");
    folders.end(editor);
    questions.push("the end");
    store(&folders, "s1", &questions);
    assert_eq!(folders.import(), 0);
    folders.check_once(&questions);
}
