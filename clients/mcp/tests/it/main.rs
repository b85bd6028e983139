//! The server against a real daemon, over MCP as an agent speaks it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

mod arguments;
mod completions;
mod secrets;

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The daemon that the workspace has built.
fn daemon() -> PathBuf {
    let given = std::env::var_os("TREELINED_BIN").map(PathBuf::from);
    given.unwrap_or_else(|| {
        let own = PathBuf::from(env!("CARGO_BIN_EXE_treelined-mcp"));
        own.with_file_name("treelined")
    })
}

struct Folders {
    root: tempfile::TempDir,
}

impl Folders {
    fn new() -> Folders {
        let root = tempfile::tempdir().unwrap();
        for folder in ["work/below", "elsewhere", "sessions"] {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        Folders { root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    /// A program with this text.
    fn script(&self, text: &str) -> PathBuf {
        let script = self.path("daemon.sh");
        std::fs::write(&script, text).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700)).unwrap();
        script
    }

    /// Runs requests through a daemon of its own.
    fn daemon(&self, requests: &[(&str, Value)]) -> Vec<Value> {
        let mut command = Command::new(daemon());
        command.arg("--session-dir").arg(self.path("sessions"));
        command
            .args(["--summarizer", "outline"])
            .current_dir(self.path("work"));
        let mut peer = Peer::start(command);
        let results = requests.iter().map(|(method, params)| {
            let answer = peer.request(method, params.clone());
            assert!(answer.get("error").is_none(), "{method}: {answer}");
            answer["result"].clone()
        });
        results.collect()
    }

    /// A session with a branch that was left: `u2` and `a2`, with a summary.
    fn conversation(&self, id: &str, cwd: &Path) {
        let say = |id: &str, role: &str, text: &str| {
            let content = json!([{"type": "text", "text": text}]);
            (
                "append_message",
                json!({"entryId": id, "message": {"role": role, "content": content}}),
            )
        };
        self.daemon(&[
            (
                "create_session",
                json!({"sessionId": id, "cwd": cwd, "name": "the build"}),
            ),
            say("u1", "user", "Why does the build fail?"),
            say("a1", "assistant", "A stale cache, or a missing import."),
            say("u2", "user", "Clear the zebra cache."),
            say(
                "a2",
                "assistant",
                "Cleared; see https://example.org/x. \u{202e}\u{1b}[31mIt fails still.",
            ),
            (
                "navigate_tree",
                json!({"targetId": "a1", "summarize": true}),
            ),
            say("u3", "user", "Add the import."),
        ]);
    }

    fn server(&self, args: &[&str]) -> Peer {
        self.server_with(&daemon(), args)
    }

    fn server_with(&self, daemon: &Path, args: &[&str]) -> Peer {
        let mut command = Command::new(env!("CARGO_BIN_EXE_treelined-mcp"));
        command.arg("--session-dir").arg(self.path("sessions"));
        command.arg("--daemon").arg(daemon);
        command.args(args).current_dir(self.path("work"));
        command.env_remove("TREELINED_SESSION");
        let mut peer = Peer::start(command);
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        peer.hello = peer.request("initialize", hello)["result"].clone();
        peer.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        peer
    }
}

/// A program that speaks JSON-RPC, a message a line.
struct Peer {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    next: u64,
    hello: Value,
}

impl Peer {
    fn start(mut command: Command) -> Peer {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        Peer {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
            next: 1,
            hello: Value::Null,
        }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin.as_ref().unwrap(), "{message}").unwrap();
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.next;
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "an answer");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == json!(id) {
                return message;
            }
        }
    }

    /// The result of a tool.
    fn tool(&mut self, name: &str, arguments: Value) -> Value {
        let params = json!({"name": name, "arguments": arguments});
        let answer = self.request("tools/call", params);
        assert!(answer.get("error").is_none(), "{name}: {answer}");
        answer["result"].clone()
    }

    /// The structured content of a tool that succeeds, and its text.
    fn data(&mut self, name: &str, arguments: Value) -> (Value, String) {
        let result = self.tool(name, arguments);
        assert_ne!(result["isError"], json!(true), "{name}: {result}");
        let text = result["content"][0]["text"].as_str().unwrap().to_owned();
        (result["structuredContent"].clone(), text)
    }

    /// The text of a tool that fails.
    fn failure(&mut self, name: &str, arguments: Value) -> String {
        let result = self.tool(name, arguments);
        assert_eq!(result["isError"], json!(true), "{name}: {result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let status = self.child.wait().unwrap();
        assert!(std::thread::panicking() || status.success(), "{status}");
    }
}

#[test]
fn an_agent_finds_what_was_tried_and_why_it_was_left() {
    let folders = Folders::new();
    folders.conversation("s1", &folders.path("work"));
    let mut server = folders.server(&[]);
    let instructions = server.hello["instructions"].as_str().unwrap();
    assert!(instructions.contains("about session s1"), "{instructions}");

    let (found, text) = server.data("search_history", json!({"query": "zebra"}));
    // The second hit is the summary, which names the user's text.
    let hit = &found["hits"][0];
    assert_eq!(
        (&hit["entryId"], &hit["branch"]),
        (&json!("u2"), &json!("a2"))
    );
    assert_eq!(hit["abandoned"], true);
    assert!(text.contains("> Clear the zebra cache."), "{text}");
    let (left, _) = server.data(
        "search_history",
        json!({"query": "import", "branches": "abandoned"}),
    );
    assert_eq!(left["total"], 0);

    let (branches, _) = server.data("list_branches", json!({}));
    let tips: Vec<_> = branches["branches"].as_array().unwrap().iter().collect();
    assert_eq!(tips.len(), 2);
    assert_eq!(
        (&tips[0]["tip"], &tips[0]["active"]),
        (&json!("u3"), &json!(true))
    );

    let (why, text) = server.data("why_left", json!({"branch": "a2"}));
    assert_eq!(
        why["reasons"][0]["role"],
        "summary written when it was left"
    );
    assert_eq!(why["end"][1]["entryId"], "a2");
    assert!(text.contains("What was said about it"), "{text}");
    let (why, _) = server.data("why_left", json!({"branch": "u3"}));
    assert_eq!(why["active"], true);
}

#[test]
fn records_are_quoted_and_inert() {
    let folders = Folders::new();
    folders.conversation("s1", &folders.path("work"));
    let mut server = folders.server(&[]);
    let (branch, text) = server.data("read_branch", json!({"tip": "a2"}));
    assert!(
        text.starts_with("Record of an earlier conversation."),
        "{text}"
    );
    assert!(text.contains("> Cleared; see https[:]//example.org/x. [31mIt fails still."));
    let ids: Vec<_> = branch["passages"].as_array().unwrap().iter().collect();
    assert_eq!(ids.len(), 4);
    for line in text.lines().skip(2).filter(|line| !line.is_empty()) {
        assert!(
            line.starts_with("> ") || line.starts_with("entry "),
            "{line}"
        );
    }
    let (entry, _) = server.data("read_entry", json!({"entry": "a1"}));
    assert_eq!(entry["text"], "A stale cache, or a missing import.");
}

#[test]
fn long_branches_and_entries_come_in_pages() {
    let folders = Folders::new();
    let long = "word ".repeat(40_000);
    let mut requests = vec![(
        "create_session",
        json!({"sessionId": "s1", "cwd": folders.path("work")}),
    )];
    for number in 0..30 {
        let text = format!("{number} {}", &long[..3_000]);
        let message = json!({"role": "user", "content": text});
        requests.push((
            "append_message",
            json!({"entryId": format!("e{number}"), "message": message}),
        ));
    }
    let message = json!({"role": "user", "content": long});
    requests.push((
        "append_message",
        json!({"entryId": "long", "message": message}),
    ));
    folders.daemon(&requests);
    let mut server = folders.server(&[]);

    let (mut from, mut seen) = (None::<String>, Vec::new());
    for _page in 0..40 {
        let result = server.tool(
            "read_branch",
            json!({"tip": "long", "from": from, "maxTokens": 4_000}),
        );
        assert!(
            result.to_string().len() < 4_000 * 3,
            "{}",
            result.to_string().len()
        );
        let page = &result["structuredContent"];
        for passage in page["passages"].as_array().unwrap() {
            seen.push(passage["entryId"].as_str().unwrap().to_owned());
        }
        from = page["nextFrom"].as_str().map(str::to_owned);
        if from.is_none() {
            break;
        }
    }
    let mut expected: Vec<String> = (0..30).map(|number| format!("e{number}")).collect();
    expected.push("long".to_owned());
    assert_eq!(seen, expected);

    let (mut cursor, mut whole) = (json!(0), String::new());
    while !cursor.is_null() {
        let result = server.tool("read_entry", json!({"entry": "long", "cursor": cursor}));
        assert!(result.to_string().len() < 25_000 * 3);
        whole += result["structuredContent"]["text"].as_str().unwrap();
        cursor = result["structuredContent"]["nextCursor"].clone();
    }
    assert_eq!(whole, long);
}

/// A daemon that writes a copy of its answers to `answers`.
fn copying_daemon(folders: &Folders, answers: &Path) -> PathBuf {
    let (daemon, answers) = (daemon(), answers.display());
    let text = format!(
        "#!/bin/sh\n'{}' \"$@\" | tee '{answers}'\n",
        daemon.display()
    );
    folders.script(&text)
}

/// `get_path` without pages sent 30 MB for each page of such a branch.
#[test]
fn a_page_of_a_branch_of_100000_entries_reads_little_of_it() {
    let folders = Folders::new();
    let cwd = folders.path("work").display().to_string();
    let header = json!({"type": "session", "version": 3, "id": "s1", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": cwd});
    let mut file = format!("{header}\n");
    let mut add = |id: &str, parent: Option<&str>| {
        let text = format!("message {id} {}", "word ".repeat(30));
        let message = json!({"role": "user", "content": text});
        let entry = json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-01T00:00:01.000Z", "message": message});
        file += &format!("{entry}\n");
    };
    let mut parent = None;
    for number in 0..100_000 {
        let id = format!("e{number}");
        add(&id, parent.as_deref());
        parent = Some(id);
    }
    add("leaf", Some("e9"));
    std::fs::write(folders.path("sessions").join("s1.jsonl"), file).unwrap();
    let answers = folders.path("answers");
    let mut server = folders.server_with(&copying_daemon(&folders, &answers), &[]);
    let mut sent = 0;
    let mut sent_since = |most: u64| {
        let all = std::fs::metadata(&answers).unwrap().len();
        assert!(all - sent <= most, "{} bytes for one call", all - sent);
        sent = all;
    };

    let (first, _) = server.data("read_branch", json!({"tip": "e99999"}));
    assert_eq!(first["passages"][0]["entryId"], "e0");
    sent_since(300_000);
    let (last, _) = server.data("read_branch", json!({"tip": "e99999", "from": "e99990"}));
    assert_eq!(last["passages"].as_array().unwrap().len(), 10);
    assert!(last.get("nextFrom").is_none());
    sent_since(300_000);
    // The daemon answers a comparison with all ids.
    let (why, _) = server.data("why_left", json!({"branch": "e99999"}));
    assert_eq!(why["end"][5]["entryId"], "e99999");
    sent_since(1_500_000);
    let (compared, _) = server.data("compare_branches", json!({"a": "e99999", "b": "leaf"}));
    assert_eq!(compared["a"]["entries"], 99_990);
    sent_since(1_500_000);
}

#[test]
fn sessions_of_other_directories_need_all() {
    let folders = Folders::new();
    folders.conversation("here", &folders.path("work/below"));
    folders.conversation("away", &folders.path("elsewhere"));
    let listed = |server: &mut Peer| {
        let (list, _) = server.data("list_sessions", json!({}));
        let rows = list["sessions"].as_array().unwrap().iter();
        let mut ids: Vec<_> = rows
            .map(|row| row["sessionId"].as_str().unwrap().to_owned())
            .collect();
        ids.sort();
        ids
    };
    let mut server = folders.server(&[]);
    assert_eq!(listed(&mut server), ["here"]);
    let (found, _) = server.data("search_history", json!({"query": "zebra"}));
    let hits = found["hits"].as_array().unwrap().iter();
    assert!(hits.clone().count() > 0 && hits.clone().all(|hit| hit["sessionId"] == "here"));
    let text = server.failure("read_branch", json!({"session": "away", "tip": "a2"}));
    assert!(text.contains("--all"), "{text}");
    // It is closed again: the next call opens another one.
    server.data("list_branches", json!({"session": "here"}));
    assert_eq!(listed(&mut folders.server(&["--all"])), ["away", "here"]);
}

#[test]
fn notes_need_permission_and_do_not_move_the_conversation() {
    let folders = Folders::new();
    folders.conversation("s1", &folders.path("work"));
    let names = |server: &mut Peer| {
        let tools = server.request("tools/list", json!({}));
        let tools = tools["result"]["tools"].as_array().unwrap().iter();
        tools
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert!(!names(&mut folders.server(&[])).contains(&"leave_note".to_owned()));

    let mut server = folders.server(&["--allow-notes"]);
    assert_eq!(names(&mut server).len(), 10);
    let note =
        json!({"entry": "a2", "reason": "The cache is empty already.", "outcome": "abandoned"});
    server.data("leave_note", note);
    server.data("label_entry", json!({"entry": "a2", "label": "dead end"}));
    server.data("name_session", json!({"name": "the import"}));
    let (why, _) = server.data("why_left", json!({"branch": "a2"}));
    let roles: Vec<_> = why["reasons"]
        .as_array()
        .unwrap()
        .iter()
        .map(|reason| &reason["role"])
        .collect();
    assert_eq!(
        roles,
        [
            "summary written when it was left",
            "note about a2: abandoned",
            "label of a2"
        ]
    );
    let text = server.failure(
        "leave_note",
        json!({"entry": "nothing", "reason": "x", "outcome": "x"}),
    );
    assert!(text.contains("nothing"), "{text}");
    drop(server);

    let results = folders.daemon(&[
        ("open_session", json!({"sessionId": "s1"})),
        ("append_message", json!({"entryId": "u4", "expectedLeafId": "u3", "message": {"role": "user", "content": "On."}})),
        ("get_path", json!({})),
    ]);
    assert_eq!(results[0]["session"]["name"], "the import");
    let path = results[2]["entries"].as_array().unwrap();
    assert!(
        path.iter().any(|entry| entry["id"] == "u3"),
        "the conversation goes on where it was"
    );
}

#[test]
fn resources_are_sessions_and_branches() {
    let folders = Folders::new();
    folders.conversation("s1", &folders.path("work"));
    let mut server = folders.server(&[]);
    let list = server.request("resources/list", json!({}));
    assert_eq!(
        list["result"]["resources"][0]["uri"],
        "treelined://session/s1"
    );
    let templates = server.request("resources/templates/list", json!({}));
    assert_eq!(
        templates["result"]["resourceTemplates"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let read = |server: &mut Peer, uri: &str| server.request("resources/read", json!({"uri": uri}));
    let text = read(&mut server, "treelined://session/s1/branch/a2").to_string();
    assert!(text.contains("Clear the zebra cache."), "{text}");
    let text = read(&mut server, "treelined://session/s1").to_string();
    assert!(text.contains("branch a2"), "{text}");
    let refused = read(&mut server, "treelined://session/none");
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("none"),
        "{refused}"
    );
}

#[test]
fn the_daemons_command_mcp_starts_the_server_beside_it() {
    let output = Command::new(daemon())
        .args(["mcp", "--help"])
        .output()
        .unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success() && help.contains("--allow-notes"),
        "{help}"
    );
}
