//! The relay lists, loads and forks sessions for agents that cannot do so.

use crate::live::{answer, is_announcement, start};
use crate::moves::{begin, path, said, shown};
use crate::{Editor, Folders};
use serde_json::{Value, json};

/// The members of the agent's answer to `initialize`; with `STRICT`, the agent refuses methods that these capabilities
/// do not include.
fn promising(capabilities: &Value) -> String {
    json!({ "agentInfo": { "name": "scripted" }, "agentCapabilities": capabilities }).to_string()
}

/// Starts the relay and an agent that has these capabilities, and initializes them.
pub(crate) fn with(folders: &Folders, capabilities: &Value, others: &[(&str, &str)]) -> Editor {
    let about = promising(capabilities);
    let mut variables = vec![("ABOUT", about.as_str()), ("STRICT", "")];
    variables.extend(others);
    let mut editor = start(folders, &variables);
    editor.ask("initialize", json!({ "protocolVersion": 1 }));
    editor
}

fn refusal(editor: &mut Editor, method: &str, params: Value) -> String {
    let id = editor.begin(method, params);
    loop {
        let message = editor.next_message();
        if message["id"] == id {
            return message["error"]["message"].as_str().unwrap().to_owned();
        }
    }
}

/// The ids and the titles of a list.
fn rows(listed: &Value) -> Vec<(&str, &str)> {
    let rows = listed["sessions"].as_array().unwrap().iter();
    let row = |row| (text(row, "sessionId"), text(row, "title"));
    rows.map(row).collect()
}

fn text<'a>(row: &'a Value, name: &str) -> &'a str {
    row[name].as_str().unwrap()
}

#[test]
fn an_agent_that_lists_nothing_gets_a_list() {
    let folders = Folders::new();
    let loads = json!({ "loadSession": true });
    let mut editor = with(&folders, &loads, &[]);
    let capabilities = &editor.received[0]["result"]["agentCapabilities"];
    let expected =
        json!({ "loadSession": true, "sessionCapabilities": { "list": {}, "fork": {} } });
    assert_eq!(*capabilities, expected);
    let empty = editor.ask("session/list", json!({}));
    assert_eq!(empty, json!({ "sessions": [] }));
    let place = json!({ "cwd": folders.path("work"), "mcpServers": [] });
    editor.ask("session/new", place.clone());
    editor.prompt("s1", "one");
    answer(&mut editor, "s1", "/tree");
    let listed = editor.ask("session/list", json!({}));
    assert_eq!(rows(&listed), [("s1", "one")]);
    editor.prompt("s1", "two");
    answer(&mut editor, "s1", "/back");
    editor.prompt("s1", "other");
    answer(&mut editor, "s1", "/back");
    editor.prompt("s1", "third");
    answer(&mut editor, "s1", "/tree");
    assert_eq!(editor.end(), 0);

    let history = json!([
        ["user_message_chunk", "one"],
        ["agent_message_chunk", "You said: one"],
        ["user_message_chunk", "two"],
        ["agent_message_chunk", "You said: two"]
    ]);
    let history = history.to_string();
    let mut editor = with(&folders, &loads, &[("MADE", "3"), ("HISTORY", &history)]);
    let listed = editor.ask("session/list", json!({ "cwd": folders.path("work") }));
    let shown_rows = rows(&listed);
    assert_eq!(shown_rows[..2], [("s3", "⑂ third"), ("s2", "⑂ other")]);
    // The editor's session `s1` now continues in the agent session `s3`, so the id `s1` does not stand for the branch
    // “two”.
    assert!(shown_rows[2].0.starts_with("treelined:"), "{listed}");
    assert_eq!((shown_rows[2].1, shown_rows.len()), ("⑂ two", 3));
    let row = &listed["sessions"][0];
    assert_eq!(row["cwd"], json!(folders.path("work")));
    assert!(row["_meta"]["treelined"]["entry"].is_string(), "{row}");
    let elsewhere = editor.ask("session/list", json!({ "cwd": folders.path("state") }));
    assert_eq!(elsewhere, json!({ "sessions": [] }));
    // The agent loads its own sessions itself.
    let load = json!({ "sessionId": "s2", "cwd": folders.path("work"), "mcpServers": [] });
    editor.ask("session/load", load);
    assert!(is_announcement(&editor.next_message()));
    assert_eq!(shown(&mut editor, "s2").0, "s2");
    let branch = json!({ "sessionId": "treelined:a:b" });
    let text = refusal(&mut editor, "session/delete", branch);
    assert!(text.starts_with("This is a branch of a tree"), "{text}");
    assert_eq!(editor.end(), 0);
}

#[test]
fn an_agent_that_loads_nothing_goes_on_all_the_same() {
    let folders = Folders::new();
    let none = json!({});
    let mut editor = with(&folders, &none, &[]);
    let place = json!({ "cwd": folders.path("work"), "mcpServers": [] });
    editor.ask("session/new", place);
    editor.prompt("s1", "one");
    assert_eq!(editor.end(), 0);

    let mut editor = with(&folders, &none, &[("MADE", "1")]);
    let listed = editor.ask("session/list", json!({}));
    assert_eq!(rows(&listed), [("s1", "one")]);
    let load = |session: &str| json!({ "sessionId": session, "cwd": folders.path("work"), "mcpServers": [] });
    let before = editor.received.len();
    editor.ask("session/load", load("s1"));
    let told = &editor.received[before..];
    let texts: Vec<_> = told
        .iter()
        .map(|message| &message["params"]["update"]["content"]["text"])
        .collect();
    assert_eq!(texts[..2], [&json!("one"), &json!("You said: one")]);
    let (session, _, prompt) = shown(&mut editor, "s1");
    assert_eq!((session.as_str(), prompt.len()), ("s2", 2), "as text");
    let text = prompt[0]["text"].as_str().unwrap();
    assert!(text.starts_with("<context ref=\"treelined:"), "{text}");
    assert!(text.ends_with("You said: one\n</context>\n"), "{text}");
    let missing = refusal(&mut editor, "session/load", load("s9"));
    assert_eq!(
        missing,
        "this session is not recorded, and the agent loads none"
    );
    assert_eq!(editor.end(), 0);
    let texts = path(&folders, "show");
    assert_eq!(texts, ["one", "You said: one", "show"]);
}

/// The editor had loaded a session under the id of the agent's first session. The relay once assumed that the agent had
/// its first session open, and the agent refused the next prompt.
#[test]
fn a_session_that_was_left_in_an_earlier_run_is_opened_before_it_goes_on() {
    let loads = json!({ "loadSession": true, "sessionCapabilities": { "list": {}, "close": {} } });
    let none = json!({});
    let ways = [
        (loads, "The agent continues its own session of this branch."),
        (none, "The agent gets what was said before as text"),
    ];
    for (capabilities, way) in ways {
        let folders = Folders::new();
        let memory = folders.path("memory");
        let remembers = ("REMEMBERS", memory.to_str().unwrap());
        let mut editor = with(&folders, &capabilities, &[remembers]);
        let place = json!({ "cwd": folders.path("work"), "mcpServers": [] });
        editor.ask("session/new", place.clone());
        editor.prompt("s1", "one");
        editor.prompt("s1", "two");
        answer(&mut editor, "s1", "/back");
        editor.prompt("s1", "other");
        assert_eq!(editor.end(), 0);

        let mut editor = with(&folders, &capabilities, &[remembers, ("MADE", "2")]);
        let load = json!({ "sessionId": "s1", "cwd": place["cwd"], "mcpServers": [] });
        editor.ask("session/load", load);
        editor.prompt("s1", "more");
        let text = answer(&mut editor, "s1", "/go 2");
        assert!(text.contains(way), "{text}");
        editor.prompt("s1", "again");
        assert_eq!(editor.end(), 0);
        let texts = path(&folders, "You said: again");
        let expected = ["one", "You said: one", "two", "You said: two", "again"];
        assert_eq!(texts[..5], expected);
    }
}

#[test]
fn a_fork_is_a_branch_with_every_agent() {
    let folders = Folders::new();
    let mut editor = with(
        &folders,
        &json!({ "loadSession": true }),
        &[("COMMANDS", "compact")],
    );
    let place = json!({ "cwd": folders.path("work"), "mcpServers": [] });
    editor.ask("session/new", place);
    let mode = json!({ "sessionId": "s1", "modeId": "plan" });
    editor.ask("session/set_mode", mode);
    editor.prompt("s1", "one");
    editor.prompt("s1", "two");
    let fork =
        json!({ "sessionId": "s1", "cwd": folders.path("work"), "mcpServers": [], "_meta": null });
    let made = editor.ask("session/fork", fork);
    assert_eq!(made, json!({ "sessionId": "s2" }));
    // The copy has the commands and the mode of the source.
    let announced = editor.next_message();
    assert_eq!(announced["params"]["sessionId"], "s2");
    let commands = &announced["params"]["update"]["availableCommands"];
    assert_eq!(
        commands.as_array().unwrap().last().unwrap()["name"],
        "compact"
    );
    let (session, mode, prompt) = shown(&mut editor, "s2");
    assert_eq!((session.as_str(), mode), ("s2", json!("plan")));
    assert!(
        prompt[0]["text"]
            .as_str()
            .unwrap()
            .contains("You said: two")
    );
    editor.prompt("s1", "three");
    let tree = answer(&mut editor, "s2", "/tree");
    assert!(
        tree.contains("show ← here") && tree.contains("three"),
        "{tree}"
    );
    assert_eq!(editor.end(), 0);
    let expected = ["one", "You said: one", "two", "You said: two", "show"];
    assert_eq!(path(&folders, "show"), expected);
    let texts = path(&folders, "You said: three");
    assert_eq!(
        texts[2..],
        ["two", "You said: two", "three", "You said: three"]
    );
}

/// The only agent session that ends at the target of the move is in use by another session of the editor.
#[test]
fn a_session_in_use_is_copied_before_the_agent_gets_a_text() {
    let folders = Folders::new();
    let memory = folders.path("memory");
    let remembers = ("REMEMBERS", memory.to_str().unwrap());
    let forks = json!({ "sessionCapabilities": { "fork": {}, "list": {} } });
    let mut editor = with(&folders, &forks, &[remembers]);
    let place = json!({ "cwd": folders.path("work"), "mcpServers": [] });
    editor.ask("session/new", place.clone());
    editor.prompt("s1", "one");
    editor.prompt("s1", "two");
    let fork = json!({ "sessionId": "s1", "cwd": place["cwd"], "mcpServers": [] });
    assert_eq!(editor.ask("session/fork", fork)["sessionId"], "s2");
    editor.prompt("s2", "three");
    let text = answer(&mut editor, "s2", "/back");
    assert!(
        text.starts_with("— back before 3 “three” —\n\nThe agent has copied its session."),
        "{text}"
    );
    let (session, _, prompt) = shown(&mut editor, "s2");
    assert_eq!((session.as_str(), prompt.len()), ("s3", 1));
    let heard = said(&mut editor, "s2", "know");
    let prompts = "Prompts: [\"one\", \"two\", \"show\", \"know\"]";
    assert!(heard.starts_with(prompts), "{heard}");
    // The session that was copied continues without the prompts of the copy.
    let heard = said(&mut editor, "s1", "know again");
    let prompts = "Prompts: [\"one\", \"two\", \"know again\"]";
    assert!(heard.starts_with(prompts), "{heard}");
    assert_eq!(editor.end(), 0);
    let expected = ["one", "You said: one", "two", "You said: two", "show"];
    assert_eq!(path(&folders, "show"), expected);
}

#[test]
fn a_fork_ends_at_the_message_that_it_names() {
    let folders = Folders::new();
    // If a fork names a message, even an agent that can fork is not asked: in ACP, `session/fork` cannot name a
    // message.
    let all = json!({ "loadSession": true, "sessionCapabilities": { "fork": {}, "list": {} } });
    let mut editor = with(&folders, &all, &[("IDS", "")]);
    let place = json!({ "cwd": folders.path("work"), "mcpServers": [] });
    editor.ask("session/new", place);
    for text in ["one", "two", "three"] {
        editor.prompt("s1", text);
    }
    let fork = |id: &str| {
        json!({ "sessionId": "s1", "cwd": folders.path("work"), "mcpServers": [],
        "_meta": { "treelined": { "messageId": id } } })
    };
    // The first fork ends after the second answer, and the second fork ends before the second prompt.
    for (id, session, text) in [("m2", "s2", "behind"), ("p2", "s3", "before")] {
        let made = editor.ask("session/fork", fork(id));
        assert_eq!(made, json!({ "sessionId": session }));
        editor.prompt(session, text);
    }
    let text = refusal(&mut editor, "session/fork", fork("m9"));
    assert_eq!(
        text,
        "no message with the id m9 is recorded in this conversation"
    );
    assert_eq!(editor.end(), 0);
    let texts = path(&folders, "behind");
    assert_eq!(
        texts,
        ["one", "You said: one", "two", "You said: two", "behind"]
    );
    assert_eq!(path(&folders, "before"), ["one", "You said: one", "before"]);
}

/// When a branch is opened, its messages have ids, and a fork can end at each of these messages.
#[test]
fn a_branch_that_is_opened_can_be_forked_at_its_messages() {
    let folders = Folders::new();
    let mut editor = begin(&folders, &[]);
    editor.prompt("s1", "one");
    editor.prompt("s1", "two");
    assert_eq!(editor.end(), 0);
    let mut editor = with(&folders, &json!({}), &[("MADE", "1")]);
    let at = json!({ "cwd": folders.path("work"), "mcpServers": [] });
    let params = |session: &str, meta: Value| {
        let mut params = at.clone();
        params["sessionId"] = json!(session);
        params["_meta"] = meta;
        params
    };
    let before = editor.received.len();
    editor.ask("session/load", params("s1", Value::Null));
    let told: Vec<_> = editor.received[before..]
        .iter()
        .map(|message| &message["params"]["update"])
        .collect();
    assert_eq!(told[2]["content"]["text"], "two");
    let id = told[2]["messageId"].clone();
    let meta = json!({ "treelined": { "messageId": id } });
    let made = editor.ask("session/fork", params("s1", meta));
    let session = made["sessionId"].as_str().unwrap().to_owned();
    editor.prompt(&session, "two again");
    assert_eq!(editor.end(), 0);
    assert_eq!(
        path(&folders, "two again"),
        ["one", "You said: one", "two again"]
    );
}

/// avante sends a prompt before `session/load` is answered. opencode does not know the session yet, and refused the
/// prompt, and avante then began a new session.
#[test]
fn a_prompt_waits_until_its_session_is_open() {
    let folders = Folders::new();
    let place = json!({ "sessionId": "s1", "cwd": folders.path("work"), "mcpServers": [] });
    let mut editor = with(&folders, &json!({ "loadSession": true }), &[("LATE", "")]);
    editor.begin("session/load", place.clone());
    assert_eq!(said(&mut editor, "s1", "one"), "You said: one");
    // A command waits too.
    editor.begin("session/load", place.clone());
    let tree = said(&mut editor, "s1", "/tree");
    assert_eq!(tree, "```text\n● 1 one ← here\n```\n");
    // The editor can cancel a prompt that waits. The agent then never gets it.
    let load = editor.begin("session/load", place.clone());
    let prompt = json!([{ "type": "text", "text": "two" }]);
    let held = editor.begin(
        "session/prompt",
        json!({ "sessionId": "s1", "prompt": prompt }),
    );
    let about = json!({ "sessionId": "s1" });
    editor.send(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": about }));
    let cancelled = editor.next_message();
    assert_eq!(cancelled["id"], held, "{cancelled}");
    assert_eq!(cancelled["result"]["stopReason"], "cancelled");
    while editor.next_message()["id"] != load {}
    assert_eq!(said(&mut editor, "s1", "three"), "You said: three");
    assert_eq!(editor.end(), 0);
    // If the agent cannot load sessions, the relay opens the session.
    let mut editor = with(&folders, &json!({}), &[("MADE", "1")]);
    editor.begin("session/load", place);
    let told = said(&mut editor, "s1", "/label here");
    assert!(told.ends_with("This place is labelled “here”."), "{told}");
    assert_eq!(editor.end(), 0);
    let texts: Vec<_> = folders
        .recorded()
        .into_iter()
        .map(|(_, text, _)| text)
        .collect();
    assert!(!texts.contains(&"two".to_owned()), "{texts:?}");
}
