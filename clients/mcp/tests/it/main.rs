//! Tests the server with a real daemon, over MCP as an agent speaks it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

mod arguments;
mod completions;
mod gates;
mod recall;
mod records;
mod scope;
mod secrets;
mod tried;

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
        for folder in ["work/below", "elsewhere", "sessions", "run"] {
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

    /// Runs requests through its own daemon.
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

    /// A conversation of Codex, as the session `record` that was recorded over ACP, and as the session that an import makes.
    fn record_and_import(&self) {
        let (id, cwd) = ("019a0000-0000-7000-8000-000000000001", self.path("work"));
        let asked = "the zebra cache crossing";
        let said = "Clear the zebra cache at the crossing.";
        let at = |second: u32| format!("2026-01-01T00:00:{second:02}.000Z");
        let item = |second: u32, role: &str, kind: &str, text: &str| {
            let content = json!([{"type": kind, "text": text}]);
            let payload = json!({"type": "message", "role": role, "content": content});
            json!({"timestamp": at(second), "type": "response_item", "payload": payload})
        };
        let meta = json!({
            "id": id, "timestamp": at(0), "cwd": cwd, "originator": "codex", "cli_version": "0.169.0",
        });
        let lines = [
            json!({"timestamp": at(0), "type": "session_meta", "payload": meta}),
            item(1, "user", "input_text", asked),
            item(2, "assistant", "output_text", said),
        ];
        let folder = self.path("home/.codex/sessions/2026/01/01");
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join(format!("rollout-2026-01-01T00-00-00-{id}.jsonl"));
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(&file, text).unwrap();
        let about = json!({
            "type": "custom", "id": "about", "customType": "acp.session",
            "data": {"agent": "codex-acp", "sessionId": id},
        });
        let answer = json!({"role": "assistant", "content": [{"type": "text", "text": said}]});
        // An import that finds a record goes on in it.
        self.daemon(&[
            (
                "import_sessions",
                json!({"from": "codex", "paths": [file], "final": true}),
            ),
            ("create_session", json!({"sessionId": "record", "cwd": cwd})),
            ("append_entries", json!({"entries": [about]})),
            (
                "append_message",
                json!({"message": {"role": "user", "content": asked}}),
            ),
            ("append_message", json!({"message": answer})),
        ]);
    }

    fn server(&self, args: &[&str]) -> Peer {
        self.server_with(&daemon(), args)
    }

    fn server_with(&self, daemon: &Path, args: &[&str]) -> Peer {
        self.server_among(&[], daemon, args)
    }

    /// A server with these environment variables.
    fn server_among(&self, variables: &[(&str, &str)], daemon: &Path, args: &[&str]) -> Peer {
        let mut command = Command::new(env!("CARGO_BIN_EXE_treelined-mcp"));
        command.arg("--session-dir").arg(self.path("sessions"));
        command.arg("--daemon").arg(daemon);
        command.args(args).current_dir(self.path("work"));
        command.env_remove("TREELINED_SESSION");
        command.envs(variables.iter().copied());
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

/// A program that speaks JSON-RPC, one message on each line.
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

    /// The result of a call of a tool.
    fn tool(&mut self, name: &str, arguments: Value) -> Value {
        let params = json!({"name": name, "arguments": arguments});
        let answer = self.request("tools/call", params);
        assert!(answer.get("error").is_none(), "{name}: {answer}");
        answer["result"].clone()
    }

    /// The text of a call that succeeds. The answer has nothing else.
    fn text(&mut self, name: &str, arguments: Value) -> String {
        let result = self.tool(name, arguments);
        assert_ne!(result["isError"], json!(true), "{name}: {result}");
        assert!(result.get("structuredContent").is_none(), "{result}");
        assert_eq!(result["content"].as_array().unwrap().len(), 1, "{result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// The text of a call that fails.
    fn failure(&mut self, name: &str, arguments: Value) -> String {
        let result = self.tool(name, arguments);
        assert_eq!(result["isError"], json!(true), "{name}: {result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }
}

/// The value of a fact, which is a line before the record.
fn fact<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let mut lines = text.lines().skip(1).take_while(|line| !line.is_empty());
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// The ids in the lines `KIND ID, …` of a record.
fn ids<'t>(text: &'t str, kind: &str) -> Vec<&'t str> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(kind));
    let ids = lines.filter_map(|line| line.strip_prefix(' ')?.split([',', ' ']).next());
    ids.collect()
}

/// The quoted text of an answer, without the marks.
fn quotation(text: &str) -> String {
    let lines = text.lines().filter_map(|line| line.strip_prefix("> "));
    lines.map(|line| format!("{line}\n")).collect()
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
    assert_eq!(instructions.lines().count(), 5, "{instructions}");
    for tool in [
        "what_was_tried",
        "why_left",
        "files_history",
        "search_history",
        "read_branch",
        "read_entry",
    ] {
        assert!(instructions.contains(tool), "{tool}: {instructions}");
    }

    let text = server.text("search_history", json!({"query": "zebra"}));
    // The second hit is the summary, which quotes the user's text.
    assert!(
        text.contains("\nentry u2 of session s1, branch a2, a branch that was left, 2"),
        "{text}"
    );
    assert!(
        text.contains("\n> Clear the zebra cache.\n> left because: "),
        "{text}"
    );
    let abandoned = json!({"query": "import branch:left"});
    assert_eq!(
        fact(&server.text("search_history", abandoned), "hits"),
        Some("0")
    );

    let text = server.text("list_branches", json!({}));
    assert_eq!(
        (fact(&text, "session"), fact(&text, "branches")),
        (Some("s1"), Some("2"))
    );
    assert_eq!(ids(&text, "branch"), ["u3", "a2"]);
    assert!(text.contains("\nbranch u3, active, 1 messages, "), "{text}");
    assert!(text.contains("\nbranch a2, left, 2 messages, "), "{text}");
    assert!(text.contains("\n> name: Clear the zebra cache."), "{text}");

    let text = server.text("why_left", json!({"branch": "a2"}));
    assert_eq!(
        (fact(&text, "branch"), fact(&text, "reasons")),
        (Some("a2"), Some("1"))
    );
    assert!(
        text.contains(", summary written when it was left, "),
        "{text}"
    );
    assert_eq!(ids(&text, "entry")[1..], ["u2", "a2"]);
    let text = server.text("why_left", json!({"branch": "u3"}));
    assert!(
        fact(&text, "state").unwrap().starts_with("active"),
        "{text}"
    );

    let text = server.text("compare_branches", json!({"a": "a2", "b": "u3"}));
    for (name, value) in [
        ("ancestor", "a1"),
        ("a", "a2"),
        ("aEntries", "2"),
        ("b", "u3"),
    ] {
        assert_eq!(fact(&text, name), Some(value), "{text}");
    }
    assert!(text.contains("\n> Add the import.\n"), "{text}");
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
        let page = json!({"tip": "long", "from": from, "maxTokens": 4_000});
        let text = server.text("read_branch", page);
        assert!(text.len() <= 4_000 * 3, "{}", text.len());
        seen.extend(ids(&text, "entry").into_iter().map(str::to_owned));
        from = fact(&text, "nextFrom").map(str::to_owned);
        if from.is_none() {
            break;
        }
    }
    let mut expected: Vec<String> = (0..30).map(|number| format!("e{number}")).collect();
    expected.push("long".to_owned());
    assert_eq!(seen, expected);

    let (mut cursor, mut whole) = (json!(0), String::new());
    while !cursor.is_null() {
        let text = server.text("read_entry", json!({"entry": "long", "cursor": cursor}));
        assert!(text.len() <= 3_000 * 3);
        assert_eq!(fact(&text, "bytes"), Some("200000"));
        whole += quotation(&text).trim_end_matches('\n');
        let next = fact(&text, "nextCursor").map(|next| next.parse::<u64>().unwrap());
        cursor = json!(next);
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

/// `get_path` without pages once sent 30 MB for each page of such a branch.
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

    let first = server.text("read_branch", json!({"tip": "e99999"}));
    assert_eq!(ids(&first, "entry")[0], "e0");
    sent_since(300_000);
    let last = server.text("read_branch", json!({"tip": "e99999", "from": "e99990"}));
    assert_eq!(fact(&last, "entries"), Some("10"));
    assert_eq!(fact(&last, "nextFrom"), None);
    sent_since(300_000);
    // In its answer to a comparison the daemon sends the ids of all entries.
    let why = server.text("why_left", json!({"branch": "e99999"}));
    assert_eq!(ids(&why, "entry")[5], "e99999");
    sent_since(1_500_000);
    let compared = server.text("compare_branches", json!({"a": "e99999", "b": "leaf"}));
    assert_eq!(fact(&compared, "aEntries"), Some("99990"));
    assert!(fact(&compared, "aNextFrom").is_some() && fact(&compared, "bNextFrom").is_none());
    sent_since(1_500_000);
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
    assert_eq!(names(&mut server).len(), 12);
    let note =
        json!({"entry": "a2", "reason": "The cache is empty already.", "outcome": "abandoned"});
    server.text("leave_note", note);
    let text = server.text("label_entry", json!({"entry": "a2", "label": "dead end"}));
    assert!(text.starts_with("Labelled.\nentry: "), "{text}");
    server.text("name_session", json!({"name": "the import"}));
    let text = server.text("why_left", json!({"branch": "a2"}));
    assert_eq!(fact(&text, "reasons"), Some("3"));
    let places: Vec<_> = [
        "summary written when it was left",
        "note about a2",
        "label of a2",
    ]
    .iter()
    .map(|role| text.find(&format!(", {role}, ")))
    .collect();
    assert!(places.is_sorted() && places[0].is_some(), "{text}");
    assert!(
        text.contains("\n> abandoned: The cache is empty already.\n"),
        "{text}"
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
