//! `/back` and `/go`: the editor's session continues in another session of the agent.

use crate::live::{answer, start};
use crate::{AGENT, Editor, Folders, daemon, row};
use serde_json::{Value, json};

/// Returns the answer to a prompt. Fails if an update belongs to another session.
pub(crate) fn said(editor: &mut Editor, session: &str, text: &str) -> String {
    let before = editor.received.len();
    editor.prompt(session, text);
    let mut said = String::new();
    for message in &editor.received[before..] {
        if message["method"] == "session/update" {
            assert_eq!(message["params"]["sessionId"], session, "{message}");
            let text = &message["params"]["update"]["content"]["text"];
            said.push_str(text.as_str().unwrap_or_default());
        }
    }
    said
}

/// The agent's session, its mode, and the prompt as the agent got it.
pub(crate) fn shown(editor: &mut Editor, session: &str) -> (String, Value, Vec<Value>) {
    let said = said(editor, session, "show");
    let shown = said.strip_prefix("You said: show").unwrap();
    serde_json::from_str(shown).unwrap()
}

/// An agent that loads, lists and forks sessions by itself.
pub(crate) const ABLE: (&str, &str) = (
    "ABOUT",
    r#"{"agentCapabilities": {"loadSession": true, "sessionCapabilities": {"list": {}, "fork": {}}}}"#,
);

pub(crate) fn begin(folders: &Folders, variables: &[(&str, &str)]) -> Editor {
    let variables = [&[ABLE], variables].concat();
    let mut editor = start(folders, &variables);
    editor.ask("initialize", json!({ "protocolVersion": 1 }));
    let place = json!({ "cwd": folders.path("work"), "mcpServers": [] });
    editor.ask("session/new", place);
    editor
}

/// The texts of the path from the first entry to the entry with this text. Entries without a text are left out.
pub(crate) fn path(folders: &Folders, last: &str) -> Vec<String> {
    let rows = folders.recorded();
    let mut at = rows.iter().position(|(_, text, _)| text == last);
    let mut path = Vec::new();
    while let Some((_, text, parent)) = at.map(|at| &rows[at]) {
        path.extend((!text.is_empty()).then(|| text.clone()));
        at = *parent;
    }
    path.reverse();
    path
}

#[test]
fn a_move_goes_on_in_a_new_session_and_the_next_one_finds_the_old_one() {
    let folders = Folders::new();
    let about = r#"{"agentCapabilities": {"promptCapabilities": {"embeddedContext": true}}}"#;
    let mut editor = begin(&folders, &[("ABOUT", about)]);
    let mode = json!({ "sessionId": "s1", "modeId": "plan" });
    editor.ask("session/set_mode", mode);
    for text in ["one", "two", "three"] {
        editor.prompt("s1", text);
    }
    let text = answer(&mut editor, "s1", "/back 2");
    assert!(
        text.starts_with("— back before 2 “two” —\n\nThe agent gets what was said before as text"),
        "{text}"
    );
    let (session, mode, prompt) = shown(&mut editor, "s1");
    assert_eq!((session.as_str(), mode), ("s2", json!("plan")));
    assert_eq!(prompt.len(), 2, "{prompt:?}");
    assert_eq!(prompt[0]["type"], "resource");
    let handoff = prompt[0]["resource"]["text"].as_str().unwrap();
    assert!(handoff.starts_with("# one\n"), "{handoff}");
    assert!(handoff.contains("You said: one"), "{handoff}");
    assert!(!handoff.contains("two"), "{handoff}");
    // It is handed over once.
    assert_eq!(shown(&mut editor, "s1").2.len(), 1);

    // When a conversation came back to a session, the session once still had its old mode, and the editor showed another
    // one.
    let mode = json!({ "sessionId": "s1", "modeId": "build" });
    editor.ask("session/set_mode", mode);
    let text = answer(&mut editor, "s1", "/go 3");
    assert!(
        text.starts_with("— after 3 “three” —\n\nThe agent continues"),
        "{text}"
    );
    let (session, mode, prompt) = shown(&mut editor, "s1");
    assert_eq!((session.as_str(), mode), ("s1", json!("build")));
    assert_eq!(prompt.len(), 1);
    let text = answer(&mut editor, "s1", "/tree");
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines[1..7],
        [
            "● 1 one",
            "├─ ● 2 two",
            "│  ● 3 three",
            "│  ● 6 show ← here",
            "└─ ○ 4 show",
            "   ○ 5 show"
        ]
    );
    answer(&mut editor, "s1", "/go 5");
    editor.prompt("s1", "last");
    assert_eq!(editor.end(), 0);
    let rows = folders.recorded();
    let users: Vec<_> = rows
        .iter()
        .filter(|(kind, ..)| kind == "user")
        .map(|(_, text, _)| text)
        .collect();
    assert_eq!(
        users,
        ["one", "two", "three", "show", "show", "show", "last"]
    );
    let path = path(&folders, "You said: last");
    let users: Vec<_> = path
        .iter()
        .filter(|text| !text.starts_with("You said"))
        .collect();
    assert_eq!(users, ["one", "show", "show", "last"]);
}

#[test]
fn a_move_that_fails_changes_nothing() {
    let folders = Folders::new();
    let mut editor = begin(&folders, &[("NEW", "1")]);
    let text = answer(&mut editor, "s1", "/back");
    assert_eq!(
        text,
        "It did not work: there are 0 prompts before this position"
    );
    editor.prompt("s1", "one");
    editor.prompt("s1", "two");
    for (line, expected) in [
        (
            "/back",
            "the agent answers session/new with: no more sessions",
        ),
        (
            "/back 0",
            "give the number of prompts to go back, such as /back 2",
        ),
        (
            "/back x",
            "give the number of prompts to go back, such as /back 2",
        ),
        ("/back 3", "there are 2 prompts before this position"),
        (
            "/go",
            "name a prompt by its number in /tree, or a label, such as /go 3",
        ),
        (
            "/go 9",
            "there is no \"9\": name a prompt by its number in /tree, or a label",
        ),
        ("/go 2", "the conversation is already at this position"),
    ] {
        let text = answer(&mut editor, "s1", line);
        assert_eq!(text, format!("It did not work: {expected}"), "{line}");
    }
    assert_eq!(shown(&mut editor, "s1").0, "s1");
    assert_eq!(editor.end(), 0);
    let rows = folders.recorded();
    assert_eq!(rows.len(), 7, "{rows:?}");
    assert_eq!(rows[5], row("user", "show", Some(4)));
}

#[test]
fn a_running_turn_is_ended_first_and_its_questions_are_answered() {
    let folders = Folders::new();
    let mut editor = begin(&folders, &[]);
    editor.prompt("s1", "one");
    let prompt = json!([{ "type": "text", "text": "ask" }]);
    let running = editor.begin(
        "session/prompt",
        json!({ "sessionId": "s1", "prompt": prompt }),
    );
    let question = loop {
        let message = editor.next_message();
        if message["method"] == "session/request_permission" {
            break message["id"].clone();
        }
    };
    let back = json!([{ "type": "text", "text": "/back" }]);
    let back = editor.begin(
        "session/prompt",
        json!({ "sessionId": "s1", "prompt": back }),
    );
    let mut ended = Vec::new();
    while ended.len() < 2 {
        let message = editor.next_message();
        if message.get("method").is_none() {
            ended.push((
                message["id"].clone(),
                message["result"]["stopReason"].clone(),
            ));
        }
    }
    let expected = [
        (json!(running), json!("cancelled")),
        (json!(back), json!("end_turn")),
    ];
    assert_eq!(ended, expected);
    // The editor answers too late. If this answer reached the agent, the agent would report it.
    let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "yes" } });
    editor.send(&json!({ "jsonrpc": "2.0", "id": question, "result": outcome }));
    let said = said(&mut editor, "s1", "two");
    assert_eq!(said, "You said: two");
    assert_eq!(editor.end(), 0);
    assert_eq!(
        path(&folders, "You said: two"),
        ["one", "You said: one", "two", "You said: two"]
    );
}

/// The editor uses the first id of the conversation, also in the next run.
#[test]
fn a_moved_conversation_goes_on_in_the_next_run() {
    let folders = Folders::new();
    let mut editor = begin(&folders, &[]);
    editor.prompt("s1", "one");
    editor.prompt("s1", "two");
    answer(&mut editor, "s1", "/back");
    editor.prompt("s1", "other");
    assert_eq!(editor.end(), 0);

    let history = json!([
        ["user_message_chunk", "# a handoff"],
        ["user_message_chunk", "other"],
        ["agent_message_chunk", "You said: other"]
    ]);
    let mut editor = start(&folders, &[("HISTORY", &history.to_string())]);
    let place = json!({ "sessionId": "s1", "cwd": folders.path("work"), "mcpServers": [] });
    editor.ask("session/load", place);
    let (session, _, prompt) = shown(&mut editor, "s1");
    assert_eq!((session.as_str(), prompt.len()), ("s2", 1));
    editor.prompt("s1", "last");
    assert_eq!(editor.end(), 0);
    let path = path(&folders, "You said: last");
    let users: Vec<_> = path
        .iter()
        .filter(|text| !text.starts_with("You said"))
        .collect();
    assert_eq!(users, ["one", "other", "show", "last"]);
    assert!(
        !folders
            .recorded()
            .iter()
            .any(|(_, text, _)| text.contains("handoff"))
    );
}

/// treelined can make sessions of this agent, so the agent gets one. In this test a script with the name of the agent
/// replaces the import command of the agent.
#[test]
fn a_session_of_the_agents_own_kind_is_made_and_loaded() {
    use std::os::unix::fs::PermissionsExt;
    let folders = Folders::new();
    let program = folders.path("goose");
    let script = format!(
        "#!/bin/sh\nif [ \"$2\" = import ]; then cp \"$3\" '{}'; echo Session 20260301_7; exit; fi\nexec python3 {AGENT}\n",
        folders.path("handed").display()
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    let mut command = folders.command(&daemon());
    command.args(["--live", "--"]).arg(&program).arg("acp");
    command.env(
        "ABOUT",
        r#"{"agentInfo": {"name": "goose"}, "agentCapabilities": {"loadSession": true}}"#,
    );
    let history = json!([
        ["user_message_chunk", "one"],
        ["agent_message_chunk", "You said: one"]
    ]);
    command.env("HISTORY", history.to_string());
    let mut editor = Editor::start(command);
    editor.ask("initialize", json!({ "protocolVersion": 1 }));
    editor.ask(
        "session/new",
        json!({ "cwd": folders.path("work"), "mcpServers": [] }),
    );
    editor.prompt("s1", "one");
    editor.prompt("s1", "two");
    // Its history is muted.
    let text = answer(&mut editor, "s1", "/back");
    assert!(
        text.contains("\n\nThe agent has what was said before. Files"),
        "{text}"
    );
    let handed = std::fs::read_to_string(folders.path("handed")).unwrap();
    assert!(
        handed.contains("You said: one") && !handed.contains("two"),
        "{handed}"
    );
    let (session, _, prompt) = shown(&mut editor, "s1");
    assert_eq!((session.as_str(), prompt.len()), ("20260301_7", 1));
    assert_eq!(editor.end(), 0);
    let path = path(&folders, "show");
    assert_eq!(path, ["one", "You said: one", "show"]);
}

/// If the recorder is killed at any point of a move, the next run continues at the last prompt. No prompt came after
/// the move, so this is the position before the move.
#[test]
fn a_killed_move_changes_nothing() {
    for delay in [0, 5, 15, 40, 120] {
        let folders = Folders::new();
        let mut editor = begin(&folders, &[]);
        editor.prompt("s1", "one");
        editor.prompt("s1", "two");
        let back = json!([{ "type": "text", "text": "/back" }]);
        editor.begin(
            "session/prompt",
            json!({ "sessionId": "s1", "prompt": back }),
        );
        std::thread::sleep(std::time::Duration::from_millis(delay));
        editor.child.kill().unwrap();
        editor.child.wait().unwrap();

        let history = ["one", "two"].map(|text| {
            [
                json!(["user_message_chunk", text]),
                json!(["agent_message_chunk", format!("You said: {text}")]),
            ]
        });
        let history = json!(history.concat()).to_string();
        let mut editor = start(&folders, &[("HISTORY", &history)]);
        let place = json!({ "sessionId": "s1", "cwd": folders.path("work"), "mcpServers": [] });
        editor.ask("session/load", place);
        assert_eq!(shown(&mut editor, "s1").0, "s1", "{delay}");
        editor.prompt("s1", "last");
        assert_eq!(editor.end(), 0);
        let path = path(&folders, "You said: last");
        let users: Vec<_> = path
            .iter()
            .filter(|text| !text.starts_with("You said"))
            .collect();
        assert_eq!(users, ["one", "two", "show", "last"], "{delay}");
        let rows = folders.recorded();
        assert_eq!(
            rows.iter().filter(|(kind, ..)| kind == "user").count(),
            4,
            "{rows:?}"
        );
    }
}

/// When a session that had been left was loaded, the editor once got the history of its predecessor in place of its own
/// history.
#[test]
fn a_session_that_was_left_can_be_loaded() {
    let folders = Folders::new();
    let history = json!([
        ["user_message_chunk", "one"],
        ["agent_message_chunk", "You said: one"]
    ]);
    let mut editor = begin(&folders, &[("HISTORY", &history.to_string())]);
    editor.prompt("s1", "one");
    editor.prompt("s1", "two");
    answer(&mut editor, "s1", "/back");
    editor.prompt("s1", "other");
    let load = json!({ "sessionId": "s2", "cwd": folders.path("work"), "mcpServers": [] });
    let id = editor.begin("session/load", load.clone());
    let refused = editor.next_message();
    assert_eq!(refused["id"], id);
    let text = refused["error"]["message"].as_str();
    assert_eq!(
        text,
        Some("The session s1 is open, and goes on in this one.")
    );
    answer(&mut editor, "s1", "/go 2");
    let before = editor.received.len();
    editor.ask("session/load", load);
    let told = &editor.received[before..];
    assert_eq!(told.len(), 3, "{told:?}");
    assert_eq!(told[0]["params"]["sessionId"], "s2");
    assert_eq!(shown(&mut editor, "s2").0, "s2");
    assert_eq!(shown(&mut editor, "s1").0, "s1");
    assert_eq!(editor.end(), 0);
}

/// A row of the list once opened a different branch from the one that it names.
#[test]
fn each_row_of_the_list_opens_its_branch() {
    let folders = Folders::new();
    let mut editor = begin(&folders, &[("LISTS", "s1 s2")]);
    editor.prompt("s1", "one");
    editor.prompt("s1", "two with a tool");
    answer(&mut editor, "s1", "/back");
    editor.prompt("s1", "other");
    let listed = editor.ask("session/list", json!({}));
    let rows = listed["sessions"].as_array().unwrap();
    let left = rows[1]["sessionId"].as_str().unwrap().to_owned();
    for (session, here) in [(left.as_str(), "two with a tool"), ("s1", "other")] {
        let place = json!({ "sessionId": session, "cwd": folders.path("work"), "mcpServers": [] });
        editor.ask("session/load", place);
        let tree = answer(&mut editor, session, "/tree");
        let here = format!(" {here} ← here\n");
        assert!(tree.contains(&here), "{session}: {tree}");
    }
    assert_eq!(editor.end(), 0);
}

#[test]
fn a_branch_without_a_session_of_the_agent_is_listed_and_can_be_opened() {
    let folders = Folders::new();
    let mut editor = begin(&folders, &[("LISTS", "s1 s2")]);
    editor.prompt("s1", "one");
    editor.prompt("s1", "two with a tool");
    answer(&mut editor, "s1", "/back");
    editor.prompt("s1", "other");
    let listed = editor.ask("session/list", json!({}));
    // The editor's session continues in s2, so one row stands for both sessions. Once the branch that it had left had no row,
    // and the other branch had two.
    let rows = listed["sessions"].as_array().unwrap();
    let titles: Vec<_> = rows.iter().map(|row| row["title"].clone()).collect();
    assert_eq!(titles, ["⑂ other", "⑂ two with a tool"]);
    assert_eq!(rows[0]["sessionId"], "s1");
    for row in rows {
        let about = &row["_meta"]["treelined"];
        assert!(
            about["session"].is_string() && about["entry"].is_string(),
            "{row}"
        );
    }
    assert_eq!(editor.end(), 0);

    let mut editor = start(&folders, &[ABLE, ("LISTS", "s2"), ("MADE", "2")]);
    editor.ask("initialize", json!({ "protocolVersion": 1 }));
    let listed = editor.ask("session/list", json!({}));
    let rows = listed["sessions"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert_eq!(
        (&rows[0]["sessionId"], &rows[0]["cwd"]),
        (&json!("s2"), &json!("/w"))
    );
    assert_eq!(
        (&rows[1]["title"], &rows[1]["cwd"]),
        (&json!("⑂ two with a tool"), &json!("/w"))
    );
    let branch = rows[1]["sessionId"].as_str().unwrap().to_owned();
    let load = json!({ "sessionId": branch, "cwd": folders.path("work"), "mcpServers": [] });
    let before = editor.received.len();
    editor.ask("session/load", load.clone());
    let told = &editor.received[before..];
    let kinds = told
        .iter()
        .map(|message| &message["params"]["update"]["sessionUpdate"]);
    let kinds: Vec<_> = kinds.filter_map(Value::as_str).collect();
    assert_eq!(
        kinds,
        [
            "user_message_chunk",
            "agent_message_chunk",
            "user_message_chunk",
            "agent_message_chunk",
            "tool_call",
            "tool_call_update",
            "agent_message_chunk"
        ]
    );
    assert!(
        told[..7]
            .iter()
            .all(|message| message["params"]["sessionId"] == branch),
        "{told:?}"
    );
    let (session, _, prompt) = shown(&mut editor, &branch);
    assert_eq!((session.as_str(), prompt.len()), ("s3", 2));
    let tree = answer(&mut editor, &branch, "/tree");
    assert!(tree.contains("● 4 show ← here\n"), "{tree}");
    assert_eq!(editor.end(), 0);
    let path = path(&folders, "show");
    let users: Vec<_> = path
        .iter()
        .filter(|text| !text.starts_with("You said"))
        .collect();
    let expected = ["one", "two with a tool", "total 0", "It is empty.", "show"];
    assert_eq!(users, expected);

    // The next run continues in the agent's session.
    let mut editor = start(&folders, &[("MADE", "3"), ("LISTS", "")]);
    editor.ask("session/load", load);
    assert_eq!(shown(&mut editor, &branch).0, "s3");
    let missing = json!({ "sessionId": "treelined:x:y", "cwd": "/", "mcpServers": [] });
    let id = editor.begin("session/load", missing);
    let refused = loop {
        let message = editor.next_message();
        if message["id"] == id {
            break message;
        }
    };
    assert!(
        refused["error"]["message"].as_str().unwrap().contains("y"),
        "{refused}"
    );
    assert_eq!(editor.end(), 0);
}

/// The notice says that terminals stay. The editor gets no request to end one.
#[test]
fn a_move_leaves_the_terminals_of_the_editor_as_they_are() {
    let folders = Folders::new();
    let mut editor = begin(&folders, &[]);
    editor.prompt("s1", "terminal");
    let said = answer(&mut editor, "s1", "/back");
    assert!(
        said.ends_with("Files and terminals stay as they are.\n"),
        "{said}"
    );
    editor.prompt("s1", "other");
    let methods = editor
        .received
        .iter()
        .filter_map(|message| message["method"].as_str());
    let about: Vec<_> = methods
        .filter(|method| method.starts_with("terminal/"))
        .collect();
    assert_eq!(about, ["terminal/create"]);
    assert_eq!(editor.end(), 0);
}
