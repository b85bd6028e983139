//! `/undo`, and questions of the relay to the person at the editor.

use crate::live::{answer, is_announcement, start};
use crate::{AGENT, Editor, Folders, daemon};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Sends a command, and returns its id and the question that comes before its answer.
fn asked(editor: &mut Editor, session: &str, line: &str, method: &str) -> (u64, Value) {
    let prompt = json!([{ "type": "text", "text": line }]);
    let params = json!({ "sessionId": session, "prompt": prompt });
    let id = editor.begin("session/prompt", params);
    loop {
        let message = editor.next_message();
        if message["method"] == method {
            return (id, message);
        }
        assert_ne!(message["id"], id, "{message}");
    }
}

/// The texts and the states of the calls up to the end of a command, and the result of the command.
fn end_of(editor: &mut Editor, id: u64) -> (Vec<String>, Value) {
    let mut said = Vec::new();
    loop {
        let message = editor.next_message();
        if message["id"] == id {
            return (said, message["result"]["stopReason"].clone());
        }
        assert!(!is_announcement(&message), "{message}");
        let update = &message["params"]["update"];
        let text = update["content"]["text"].as_str();
        said.extend(text.or(update["status"].as_str()).map(str::to_owned));
    }
}

fn choose(editor: &mut Editor, question: &Value, result: Value) {
    editor.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": result }));
}

fn option(id: &str) -> Value {
    json!({ "outcome": { "outcome": "selected", "optionId": id } })
}

/// Runs `treelined files` beside the daemon of the test.
fn files(folders: &Folders, arguments: &[&str]) {
    let mut command = Command::new(daemon());
    command.arg("files").args(arguments);
    command.current_dir(folders.path("work"));
    command.env("TREELINED_FILES", folders.path("files"));
    command.env("TREELINED_FILES_FREE", "0");
    command.env("TREELINED_BIN", daemon());
    command.env("TREELINED_SESSION_DIR", folders.path("sessions"));
    let done = command.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{arguments:?}: {said}");
}

/// A conversation of two prompts; each has changed the file `a`, and `/tree` has waited for the record of each.
fn with_files(folders: &Folders) -> Editor {
    with_files_of(folders, &daemon())
}

/// Like [`with_files`], with another program as the daemon of the relay.
fn with_files_of(folders: &Folders, program: &Path) -> Editor {
    let file = folders.path("work/a");
    fs::write(&file, "before\n").unwrap();
    files(folders, &["on"]);
    let state = folders.path("files");
    let named = ("TREELINED_FILES", state.to_str().unwrap());
    let mut command = folders.command(program);
    command.args(["--live", "--", "python3", AGENT]);
    command.envs([named, ("TREELINED_FILES_FREE", "0")]);
    let mut editor = Editor::start(command);
    editor.ask("initialize", json!({ "protocolVersion": 1 }));
    let place = json!({ "cwd": folders.path("work").canonicalize().unwrap(), "mcpServers": [] });
    editor.ask("session/new", place);
    for text in ["one", "two"] {
        editor.prompt("s1", text);
        answer(&mut editor, "s1", "/tree");
        fs::write(&file, format!("{text}\n")).unwrap();
        files(folders, &["save"]);
    }
    editor
}

fn file(folders: &Folders) -> String {
    fs::read_to_string(folders.path("work/a")).unwrap()
}

#[test]
fn undo_takes_the_last_prompt_back() {
    let folders = Folders::new();
    let mut editor = start(&folders, &[]);
    let place = json!({ "cwd": folders.path("work"), "mcpServers": [] });
    editor.ask("session/new", place);
    editor.prompt("s1", "one");
    editor.prompt("s1", "two");
    let text = answer(&mut editor, "s1", "/undo files and more");
    assert_eq!(
        text,
        "It did not work: say /undo, /undo files or /undo conversation"
    );
    // If no files are saved, the relay asks nothing.
    for (line, expected) in [
        ("/undo", "Files and terminals stay as they are.\n"),
        (
            "/undo files",
            "There is nothing to bring back in the files.\n",
        ),
    ] {
        let text = answer(&mut editor, "s1", line);
        assert!(text.starts_with("— back before "), "{text}");
        assert!(text.ends_with(expected), "{text}");
    }
    let text = answer(&mut editor, "s1", "/undo");
    assert_eq!(
        text,
        "It did not work: there are 0 prompts before this position"
    );
    assert_eq!(editor.end(), 0);
}

#[test]
fn the_files_go_back_if_the_person_says_so() {
    let folders = Folders::new();
    let mut editor = with_files(&folders);
    let permission = "session/request_permission";
    let (id, question) = asked(&mut editor, "s1", "/undo", permission);
    assert_eq!(question["params"]["sessionId"], "s1");
    let shown = &question["params"]["toolCall"]["content"][0]["content"]["text"];
    assert!(shown.as_str().unwrap().contains("replace a"), "{shown}");
    assert_eq!(question["params"]["options"][0]["optionId"], "conversation");
    choose(&mut editor, &question, option("nothing"));
    let ended = (vec!["failed".to_owned()], json!("cancelled"));
    assert_eq!(end_of(&mut editor, id), ended);
    // If the editor cancels the command, the question ends. A late answer to the question is dropped.
    let (id, question) = asked(&mut editor, "s1", "/undo", permission);
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s1" } });
    editor.send(&cancel);
    assert_eq!(end_of(&mut editor, id), ended);
    choose(&mut editor, &question, option("files"));
    assert_eq!(file(&folders), "two\n");

    let (id, question) = asked(&mut editor, "s1", "/undo", permission);
    fs::write(folders.path("work/a"), "mine\n").unwrap();
    choose(&mut editor, &question, option("files"));
    let (said, _) = end_of(&mut editor, id);
    let expected = "It did not work: the files have changed since the question: send /undo again";
    assert_eq!(said, ["completed", expected]);
    assert_eq!(file(&folders), "mine\n");

    let (id, question) = asked(&mut editor, "s1", "/undo", permission);
    choose(&mut editor, &question, option("files"));
    let (said, reason) = end_of(&mut editor, id);
    assert_eq!((said[0].as_str(), reason), ("completed", json!("end_turn")));
    assert!(said[1].starts_with("— back before 2 “two” —"), "{said:?}");
    assert!(said[1].contains("1 file written"), "{said:?}");
    assert_eq!(file(&folders), "one\n");
    files(&folders, &["undo", "--yes"]);
    assert_eq!(file(&folders), "mine\n");
    let tree = answer(&mut editor, "s1", "/tree");
    assert!(tree.contains("● 1 one ← here"), "{tree}");
    assert_eq!(editor.end(), 0);
}

/// `treelined files watch` saves the files a moment after the end of a turn. A person who was faster once got the
/// answer that there were no files to restore.
#[test]
fn an_undo_waits_for_the_files_of_the_last_turn() {
    let folders = Folders::new();
    let program = folders.path("treelined");
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = files ] && mkdir '{}' 2>/dev/null; then exit 0; fi\nexec '{}' \"$@\"\n",
        folders.path("called").display(),
        daemon().display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut editor = with_files_of(&folders, &program);
    let text = answer(&mut editor, "s1", "/undo files");
    assert!(text.contains("1 file written"), "{text}");
    assert!(folders.path("called").exists());
    assert_eq!(file(&folders), "one\n");
    assert_eq!(editor.end(), 0);
}

#[test]
fn the_conversation_goes_back_alone() {
    let folders = Folders::new();
    let mut editor = with_files(&folders);
    let (id, question) = asked(&mut editor, "s1", "/undo", "session/request_permission");
    choose(&mut editor, &question, option("conversation"));
    let (said, _) = end_of(&mut editor, id);
    assert!(
        said[1].ends_with("Files and terminals stay as they are.\n"),
        "{said:?}"
    );
    assert_eq!(file(&folders), "two\n");
    // Said beforehand, nothing is asked.
    let text = answer(&mut editor, "s1", "/go 2");
    assert!(text.starts_with("— after 2 “two” —"), "{text}");
    let text = answer(&mut editor, "s1", "/undo files");
    assert!(text.contains("The files went back too"), "{text}");
    assert_eq!(file(&folders), "one\n");
    assert_eq!(editor.end(), 0);
}

/// An editor that shows forms lets the person choose a branch.
#[test]
fn a_branch_is_chosen_in_a_form() {
    let folders = Folders::new();
    let mut editor = start(&folders, &[]);
    let forms = json!({ "elicitation": { "form": {} } });
    let hello = json!({ "protocolVersion": 1, "clientCapabilities": forms });
    editor.ask("initialize", hello);
    let place = json!({ "cwd": folders.path("work"), "mcpServers": [] });
    editor.ask("session/new", place);
    editor.prompt("s1", "one");
    // If there is only one branch, the relay does not ask.
    answer(&mut editor, "s1", "/tree");
    editor.prompt("s1", "two");
    answer(&mut editor, "s1", "/back");
    editor.prompt("s1", "other");
    let method = "elicitation/create";
    let (id, question) = asked(&mut editor, "s1", "/tree", method);
    let params = &question["params"];
    assert_eq!(
        (&params["mode"], &params["sessionId"]),
        (&json!("form"), &json!("s1"))
    );
    let choices = &params["requestedSchema"]["properties"]["place"]["oneOf"];
    let titles: Vec<_> = choices.as_array().unwrap().iter().collect();
    let titles: Vec<_> = titles
        .iter()
        .map(|choice| choice["title"].as_str().unwrap())
        .collect();
    assert_eq!(titles.len(), 2, "{titles:?}");
    assert!(
        titles[0].starts_with("3 other (") && titles[0].ends_with("← here"),
        "{titles:?}"
    );
    assert!(titles[1].starts_with("2 two ("), "{titles:?}");
    let tip = choices[1]["const"].clone();
    choose(&mut editor, &question, json!({ "action": "decline" }));
    assert_eq!(end_of(&mut editor, id).0, ["Nothing was chosen."]);

    let (id, question) = asked(&mut editor, "s1", "/branches", method);
    let chosen = json!({ "action": "accept", "content": { "place": tip } });
    choose(&mut editor, &question, chosen);
    let (said, _) = end_of(&mut editor, id);
    assert!(said[0].starts_with("— after 2 “two” —"), "{said:?}");
    let (id, question) = asked(&mut editor, "s1", "/tree", method);
    let error = json!({ "code": -32601, "message": "no forms" });
    editor.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "error": error }));
    let (said, _) = end_of(&mut editor, id);
    assert!(said[0].contains("● 2 two ← here"), "{said:?}");
    let text = answer(&mut editor, "s1", "/tree text");
    assert_eq!(said[0], text);
    assert_eq!(editor.end(), 0);
}
