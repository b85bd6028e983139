//! Tests many moves with agents that have or lack each capability, kills between the steps of a move, and two editors.

use crate::capabilities::with;
use crate::live::answer;
use crate::moves::{path, said, shown};
use crate::{Editor, Folders};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A conversation, and the prompts on the path to each prompt.
struct Talk {
    editor: Editor,
    paths: Vec<Vec<String>>,
}

impl Talk {
    /// Sends the next prompt at a position. The agent must know the prompts up to this position, and no other prompts.
    fn prompt(&mut self, at: usize) {
        let text = format!("know {:02}", self.paths.len());
        let mut path = self.paths[at].clone();
        path.push(text.clone());
        let heard = said(&mut self.editor, "s1", &text);
        for prompt in self.paths.iter().flatten().chain([&text]) {
            assert_eq!(
                heard.contains(prompt),
                path.contains(prompt),
                "{prompt}: {heard}"
            );
        }
        self.paths.push(path);
    }
}

/// Makes ten moves to random positions. `/undo` and `/back` go to the position before a prompt, and `/go` to the
/// position after a prompt.
fn ten_moves(capabilities: &Value, seed: usize) {
    let folders = Folders::new();
    let memory = folders.path("memory");
    let remembers = ("REMEMBERS", memory.to_str().unwrap());
    let mut talk = Talk {
        editor: with(&folders, capabilities, &[remembers]),
        paths: vec![Vec::new()],
    };
    let place = json!({ "cwd": folders.path("work"), "mcpServers": [] });
    talk.editor.ask("session/new", place);
    for at in 0..3 {
        talk.prompt(at);
    }
    let mut here = 3;
    let mut seed = seed;
    for number in 0..10 {
        seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
        let count = talk.paths.len() - 1;
        let path = talk.paths[here].clone();
        let before = |back: usize| {
            let length = path.len() - back;
            let at = talk
                .paths
                .iter()
                .position(|other| other[..] == path[..length]);
            at.unwrap()
        };
        let (line, to) = match seed / 7 % 3 {
            0 => ("/undo".to_owned(), before(1)),
            1 if path.len() > 1 => ("/back 2".to_owned(), before(2)),
            _ => {
                let to = match seed / 21 % count + 1 {
                    same if same == here => same % count + 1,
                    other => other,
                };
                (format!("/go {to}"), to)
            }
        };
        let text = answer(&mut talk.editor, "s1", &line);
        assert!(text.starts_with("— "), "{number}, {line}: {text}");
        talk.prompt(to);
        here = talk.paths.len() - 1;
    }
    assert_eq!(talk.editor.end(), 0);
    for (number, expected) in talk.paths.iter().enumerate().skip(1) {
        let found = path(&folders, &format!("know {number:02}"));
        let users: Vec<_> = found
            .iter()
            .filter(|text| text.starts_with("know"))
            .collect();
        assert_eq!(users, expected.iter().collect::<Vec<_>>());
    }
}

#[test]
fn ten_moves_with_an_agent_that_can_everything() {
    let sessions = json!({ "list": {}, "fork": {}, "resume": {}, "close": {}, "delete": {} });
    let all = json!({ "loadSession": true, "promptCapabilities": { "embeddedContext": true }, "sessionCapabilities": sessions });
    ten_moves(&all, 1);
}

#[test]
fn ten_moves_with_an_agent_that_can_nothing() {
    ten_moves(&json!({}), 2);
}

#[test]
fn ten_moves_with_agents_that_lack_one_capability() {
    for (seed, lacks) in ["close", "delete", "list"].into_iter().enumerate() {
        let mut sessions = json!({ "list": {}, "close": {}, "delete": {} });
        sessions.as_object_mut().unwrap().remove(lacks);
        let all = json!({ "loadSession": true, "sessionCapabilities": sessions });
        ten_moves(&all, seed + 3);
    }
}

/// The next run continues at the last prompt, whichever request of the move was the last one that the agent got.
#[test]
fn a_kill_between_the_steps_of_a_move_changes_nothing() {
    for stalls in [
        "session/cancel",
        "session/new",
        "session/set_mode",
        "session/delete",
    ] {
        let folders = Folders::new();
        let (memory, reached) = (folders.path("memory"), folders.path("reached"));
        let remembers = ("REMEMBERS", memory.to_str().unwrap());
        let sessions = json!({ "loadSession": true, "sessionCapabilities": { "delete": {} } });
        let stalling = format!("{stalls} {}", reached.display());
        let mut editor = with(&folders, &sessions, &[remembers, ("STALLS", &stalling)]);
        let place = json!({ "cwd": folders.path("work"), "mcpServers": [] });
        editor.ask("session/new", place.clone());
        editor.prompt("s1", "one");
        let begin = |editor: &mut Editor, text: &str| {
            let prompt = json!([{ "type": "text", "text": text }]);
            editor.begin(
                "session/prompt",
                json!({ "sessionId": "s1", "prompt": prompt }),
            );
        };
        match stalls {
            "session/cancel" => begin(&mut editor, "slow"),
            "session/set_mode" => {
                // The first one is answered.
                editor.ask(stalls, json!({ "sessionId": "s1", "modeId": "plan" }));
                editor.prompt("s1", "two");
            }
            _ => {
                editor.prompt("s1", "two");
            }
        }
        begin(&mut editor, "/back");
        if stalls == "session/delete" {
            begin(&mut editor, "/go 2");
        }
        let began = Instant::now();
        while !reached.exists() {
            assert!(began.elapsed() < Duration::from_secs(60), "{stalls}");
            std::thread::sleep(Duration::from_millis(5));
        }
        editor.child.kill().unwrap();
        editor.child.wait().unwrap();

        let mut editor = with(&folders, &sessions, &[remembers, ("MADE", "2")]);
        let mut load = place;
        load["sessionId"] = json!("s1");
        editor.ask("session/load", load);
        assert_eq!(shown(&mut editor, "s1").0, "s1", "{stalls}");
        let tree = answer(&mut editor, "s1", "/tree");
        assert!(
            tree.contains("● 1 one") && tree.contains("show ← here"),
            "{tree}"
        );
        assert_eq!(editor.end(), 0);
        let texts = path(&folders, "show");
        let last = if stalls == "session/cancel" {
            "slow"
        } else {
            "two"
        };
        assert_eq!(
            texts,
            [
                "one",
                "You said: one",
                last,
                &format!("You said: {last}"),
                "show"
            ]
        );
    }
}

#[test]
fn two_editors_go_on_in_one_tree() {
    let folders = Folders::new();
    let memory = folders.path("memory");
    let remembers = ("REMEMBERS", memory.to_str().unwrap());
    let sessions = json!({ "loadSession": true });
    let mut first = with(&folders, &sessions, &[remembers]);
    let mut place = json!({ "cwd": folders.path("work"), "mcpServers": [] });
    first.ask("session/new", place.clone());
    first.prompt("s1", "one");
    first.prompt("s1", "two");
    answer(&mut first, "s1", "/tree");
    let mut second = with(&folders, &sessions, &[remembers, ("MADE", "5")]);
    place["sessionId"] = json!("s1");
    second.ask("session/load", place);
    answer(&mut second, "s1", "/back");
    first.prompt("s1", "three");
    second.prompt("s1", "other");
    first.prompt("s1", "four");
    second.prompt("s1", "others");
    answer(&mut second, "s1", "/tree");
    let tree = answer(&mut first, "s1", "/tree");
    let lines: Vec<_> = tree.lines().collect();
    assert!(tree.contains("four ← here"), "{tree}");
    assert_eq!(lines.len(), 8, "{tree}");
    assert_eq!(first.end(), 0);
    assert_eq!(second.end(), 0);
    let users = |last: &str| {
        let path = path(&folders, last);
        let users = path
            .into_iter()
            .filter(|text| !text.starts_with("You said"));
        users.collect::<Vec<_>>()
    };
    assert_eq!(users("You said: four"), ["one", "two", "three", "four"]);
    assert_eq!(users("You said: others"), ["one", "other", "others"]);
}
