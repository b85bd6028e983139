//! Sessions of the agent that the conversation has left: they are used again, closed or deleted.

use crate::capabilities::with;
use crate::live::{answer, is_announcement};
use crate::moves::{path, said, shown};
use crate::{AGENT, Editor, Folders, daemon};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The sessions that the agent was asked to close and to delete.
fn asked(editor: &mut Editor, session: &str) -> Value {
    let said = said(editor, session, "calls");
    let list = said.split("Asked: ").nth(1).unwrap();
    let list = list.split("You said").next().unwrap();
    serde_json::from_str(list).unwrap()
}

fn capabilities(sessions: &Value) -> Value {
    json!({ "loadSession": true, "sessionCapabilities": sessions })
}

fn open(editor: &mut Editor, folders: &Folders) {
    let place = json!({ "cwd": folders.path("work"), "mcpServers": [] });
    editor.ask("session/new", place);
}

#[test]
fn a_session_without_a_prompt_is_deleted_when_it_is_left() {
    let folders = Folders::new();
    let all = capabilities(&json!({ "delete": {}, "list": {} }));
    let mut editor = with(&folders, &all, &[("LISTS", "s1 s2")]);
    open(&mut editor, &folders);
    editor.prompt("s1", "one");
    editor.prompt("s1", "two");
    answer(&mut editor, "s1", "/back");
    // The session is not listed, since the branch that it shows is listed.
    let listed = editor.ask("session/list", json!({}));
    assert_eq!(
        listed,
        json!({ "sessions": [{ "sessionId": "s1", "cwd": "/w" }] })
    );
    answer(&mut editor, "s1", "/go 2");
    assert_eq!(asked(&mut editor, "s1"), json!([["delete", "s2"]]));
    // A session that has got a prompt is not deleted, and the conversation never continues in a deleted session.
    answer(&mut editor, "s1", "/back 2");
    editor.prompt("s1", "other");
    answer(&mut editor, "s1", "/go 2");
    assert_eq!(asked(&mut editor, "s1"), json!([["delete", "s2"]]));
    answer(&mut editor, "s1", "/go 4");
    assert_eq!(shown(&mut editor, "s1").0, "s3");
    assert_eq!(editor.end(), 0);
}

/// The files that were made in the agent's store.
fn placed(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    for path in entries.map(|entry| entry.unwrap().path()) {
        match path.is_dir() {
            true => found.extend(placed(&path)),
            false => found.push(path),
        }
    }
    found
}

/// An agent that cannot delete sessions keeps the files that it has written itself.
#[test]
fn a_file_that_was_made_for_a_session_without_a_prompt_goes_with_it() {
    let folders = Folders::new();
    let store = folders.path("claude");
    std::fs::create_dir(&store).unwrap();
    let start = || {
        let mut command = folders.command(&daemon());
        command.args(["--live", "--", "python3", AGENT]);
        let about = json!({ "agentInfo": { "name": "claude" }, "agentCapabilities": { "loadSession": true } });
        command.env("ABOUT", about.to_string());
        command.env("CLAUDE_CONFIG_DIR", &store);
        let mut editor = Editor::start(command);
        editor.ask("initialize", json!({ "protocolVersion": 1 }));
        editor
    };
    let mut editor = start();
    open(&mut editor, &folders);
    editor.prompt("s1", "one");
    editor.prompt("s1", "two");
    let back = |editor: &mut Editor| {
        let text = answer(editor, "s1", "/back");
        assert!(
            text.contains("The agent has what was said before."),
            "{text}"
        );
        let files = placed(&store);
        files.last().unwrap().clone()
    };
    let first = back(&mut editor);
    answer(&mut editor, "s1", "/go 2");
    assert!(!first.exists());
    let second = back(&mut editor);
    std::fs::write(&second, "of the agent").unwrap();
    answer(&mut editor, "s1", "/go 2");
    assert!(second.exists());
    std::fs::remove_file(second).unwrap();
    // At the end too.
    let third = back(&mut editor);
    assert_eq!(editor.end(), 0);
    assert!(!third.exists());
    let users = path(&folders, "two");
    assert_eq!(users, ["one", "You said: one", "two"]);
}

#[test]
fn three_sessions_that_were_left_stay_open_and_a_closed_one_is_loaded_again() {
    let folders = Folders::new();
    let memory = folders.path("memory");
    let all = capabilities(&json!({ "close": {} }));
    let remembers = [("REMEMBERS", memory.to_str().unwrap())];
    let mut editor = with(&folders, &all, &remembers);
    open(&mut editor, &folders);
    // The first session is loaded again, since it is recorded as it is. The other sessions have the conversation as
    // text.
    editor.prompt("s1", "one");
    for text in ["two", "three", "four", "five", "six"] {
        editor.prompt("s1", text);
        answer(&mut editor, "s1", "/back");
    }
    let expected = json!([["close", "s1"], ["close", "s2"]]);
    assert_eq!(asked(&mut editor, "s1"), expected);
    let text = answer(&mut editor, "s1", "/go 2");
    assert!(text.contains("The agent continues"), "{text}");
    assert_eq!(shown(&mut editor, "s1").0, "s1");
    assert_eq!(editor.end(), 0);
}

/// In the next run a branch continues in the session of the agent that ended with it, unless another program has
/// continued this session.
#[test]
fn a_session_of_an_earlier_run_is_gone_on_with() {
    for is_elsewhere in [false, true] {
        let folders = Folders::new();
        let memory = folders.path("memory");
        let remembers = ("REMEMBERS", memory.to_str().unwrap());
        let mut editor = with(&folders, &capabilities(&json!({})), &[remembers]);
        open(&mut editor, &folders);
        editor.prompt("s1", "one");
        editor.prompt("s1", "two");
        answer(&mut editor, "s1", "/back");
        editor.prompt("s1", "other");
        assert_eq!(editor.end(), 0);
        if is_elsewhere {
            let mut known: Value =
                serde_json::from_slice(&std::fs::read(&memory).unwrap()).unwrap();
            let told = known["s1"].as_array_mut().unwrap();
            told.push(json!(["user_message_chunk", "in a terminal"]));
            std::fs::write(&memory, known.to_string()).unwrap();
        }
        let mut editor = with(
            &folders,
            &capabilities(&json!({})),
            &[remembers, ("MADE", "2")],
        );
        let listed = editor.ask("session/list", json!({}));
        let tip = listed["sessions"][0]["sessionId"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(tip, "s2");
        let load = json!({ "sessionId": tip, "cwd": folders.path("work"), "mcpServers": [] });
        editor.ask("session/load", load);
        assert!(is_announcement(&editor.next_message()));
        let before = editor.received.len();
        let text = answer(&mut editor, "s2", "/go 2");
        assert_eq!(editor.received.len(), before + 2, "its history is not told");
        assert_eq!(
            text.contains("The agent continues"),
            !is_elsewhere,
            "{text}"
        );
        let session = if is_elsewhere { "s3" } else { "s1" };
        assert_eq!(shown(&mut editor, "s2").0, session);
        assert_eq!(editor.end(), 0);
        assert_eq!(
            path(&folders, "show")[..4],
            ["one", "You said: one", "two", "You said: two"]
        );
    }
}
