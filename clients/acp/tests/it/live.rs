//! Commands in the editor's prompts (`--live`).

use crate::moves::ABLE;
use crate::{AGENT, Editor, Folders, daemon, row};
use serde_json::{Value, json};
use std::process::Command;

pub(crate) fn start(folders: &Folders, variables: &[(&str, &str)]) -> Editor {
    let mut command = folders.command(&daemon());
    command.args(["--live", "--", "python3", AGENT]);
    command.envs(variables.iter().copied());
    Editor::start(command)
}

pub(crate) fn is_announcement(message: &Value) -> bool {
    message["params"]["update"]["sessionUpdate"] == "available_commands_update"
}

/// The names of the commands that were announced last.
fn announced(editor: &Editor) -> Vec<&str> {
    let mut messages = editor.received.iter().rev();
    let last = messages.find(|message| is_announcement(message));
    let commands = last.and_then(|last| last["params"]["update"]["availableCommands"].as_array());
    let names = commands.into_iter().flatten();
    let names = names.map(|command| &command["name"]);
    names.map(|name| name.as_str().unwrap()).collect()
}

/// Returns the answer to a command.
pub(crate) fn answer(editor: &mut Editor, session: &str, line: &str) -> String {
    let before = editor.received.len();
    let ended = editor.prompt(session, line);
    assert_eq!(ended, json!({ "stopReason": "end_turn" }));
    let received = editor.received[before..].iter();
    let received: Vec<_> = received
        .filter(|message| !is_announcement(message))
        .collect();
    let [update, _] = &received[..] else {
        panic!("{received:?}")
    };
    assert_eq!(update["params"]["sessionId"], session);
    let update = &update["params"]["update"];
    assert_eq!(update["sessionUpdate"], "agent_message_chunk");
    update["content"]["text"].as_str().unwrap().to_owned()
}

#[test]
fn commands_are_answered_and_never_reach_the_agent() {
    let folders = Folders::new();
    let mut editor = start(&folders, &[]);
    let work = json!({ "cwd": folders.path("work") });
    editor.ask("session/new", work);
    let empty = answer(&mut editor, "s1", "/tree");
    assert_eq!(empty, "There are no prompts yet.");
    assert_eq!(
        announced(&editor),
        ["tree", "back", "branches", "go", "label", "undo"]
    );
    editor.prompt("s1", "one");
    let labelled = answer(&mut editor, "s1", "/label a place");
    assert_eq!(labelled, "This place is labelled “a place”.");
    let fork = json!({ "sessionId": "s1", "cwd": folders.path("work") });
    editor.ask("session/fork", fork);
    assert_eq!(
        answer(&mut editor, "s2", "/label"),
        "This place has no label now."
    );
    editor.prompt("s1", "two");
    editor.prompt("s2", "other");
    answer(&mut editor, "s1", "/label ours");

    let tree = answer(&mut editor, "s2", "/tree");
    assert_eq!(
        tree,
        "```text\n● 1 one\n├─ ● 3 other ← here\n└─ ○ 2 two\n   ○ You said: two [ours]\n```\n"
    );
    let branches = answer(&mut editor, "s1", "/branches");
    let lines: Vec<_> = branches.lines().collect();
    assert_eq!(lines.len(), 4, "{branches}");
    assert!(
        lines[1].starts_with("● 2 two · ours (2 messages, 20"),
        "{branches}"
    );
    assert!(lines[1].ends_with(" ← here"), "{branches}");
    assert!(
        lines[2].starts_with("○ 3 other (2 messages, 20"),
        "{branches}"
    );

    assert_eq!(editor.end(), 0);
    let rows = folders.recorded();
    let messages: Vec<_> = rows.iter().filter(|(kind, ..)| kind == "user").collect();
    let texts: Vec<_> = messages.iter().map(|(_, text, _)| text).collect();
    assert_eq!(texts, ["one", "two", "other"]);
}

#[test]
fn a_name_that_the_agent_has_stays_the_agents() {
    let folders = Folders::new();
    let mut editor = start(&folders, &[("COMMANDS", "tree compact")]);
    editor.ask("session/new", json!({ "cwd": folders.path("work") }));
    // The agent's own list comes after its answer.
    while !announced(&editor).contains(&"compact") {
        editor.next_message();
    }
    editor.prompt("s1", "/tree");
    assert_eq!(
        announced(&editor),
        [
            "tl-tree", "back", "branches", "go", "label", "undo", "tree", "compact"
        ]
    );
    let tree = answer(&mut editor, "s1", "/tl-tree");
    assert_eq!(tree, "```text\n● 1 /tree ← here\n```\n");
    assert_eq!(editor.end(), 0);
    assert_eq!(
        folders.recorded()[2],
        row("assistant", "You said: /tree", Some(1))
    );
}

/// Except for commands and announcements, all messages are the same as without `--live`, in the same order.
#[test]
fn without_a_command_the_conversation_is_that_without_the_relay() {
    let folders = Folders::new();
    let talk = |mut command: Command| {
        command.env(
            "HISTORY",
            json!([["user_message_chunk", "half \u{10000} a"]]).to_string(),
        );
        command.env("COMMANDS", "compact");
        // If an agent does not promise a capability, the relay promises it.
        command.env(ABLE.0, ABLE.1);
        let mut editor = Editor::start(command);
        let work = json!({ "sessionId": "s1", "cwd": "/w", "mcpServers": [] });
        editor.ask("initialize", json!({ "protocolVersion": 1 }));
        editor.ask("session/new", work.clone());
        for text in [
            "think of a tool",
            "plan",
            "/unknown",
            "tree",
            "/tree\nand more",
        ] {
            editor.prompt("s1", text);
        }
        editor.ask("session/fork", work.clone());
        editor.ask("session/load", work.clone());
        editor.ask("session/resume", work);
        editor.ask("session/list", json!({}));
        editor.ask("_other", json!({ "sessionId": "s1" }));
        let received = std::mem::take(&mut editor.received);
        assert_eq!(editor.end(), 0);
        let others = received
            .into_iter()
            .filter(|message| !is_announcement(message));
        others
            .map(|message| message.to_string())
            .collect::<Vec<_>>()
    };
    let mut alone = Command::new("python3");
    alone.arg(AGENT);
    let mut live = folders.command(&daemon());
    live.args(["--live", "--", "python3", AGENT]);
    let expected = talk(alone);
    assert!(expected.len() > 20, "{expected:?}");
    assert_eq!(talk(live), expected);
}

#[test]
fn without_a_daemon_a_command_says_so_and_the_conversation_goes_on() {
    let folders = Folders::new();
    let mut command = folders.command(&folders.path("missing"));
    command.args(["--live", "--", "python3", AGENT]);
    let mut editor = Editor::start(command);
    editor.ask("session/new", json!({ "cwd": folders.path("work") }));
    let text = answer(&mut editor, "s1", "/tree");
    assert!(text.contains("no such program"), "{text}");
    editor.prompt("s1", "one");
    assert_eq!(editor.end(), 0);
}
