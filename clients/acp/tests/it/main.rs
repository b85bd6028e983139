//! The recorder between a test and an agent, and the sessions that it writes.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

mod capabilities;
mod completions;
mod gates;
mod imports;
mod left;
mod live;
mod many;
mod moves;
mod recovery;
mod setup;
mod signals;
mod undo;

use serde_json::{Value, json};
use std::cell::Cell;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a recorder still writes after the end of its agent.
const GRACE: Duration = Duration::from_secs(10);

thread_local! {
    /// Whether a recorder of this test may have ended before it had written everything. On a busy machine it may.
    static MAY_LACK: Cell<bool> = const { Cell::new(false) };
}

/// Notes that a recorder which began at this time may have ended before it had written everything.
fn note_slow(began: Instant) {
    MAY_LACK.set(MAY_LACK.get() || began.elapsed() >= GRACE);
}

/// The daemon that the workspace has built.
fn daemon() -> PathBuf {
    let given = std::env::var_os("TREELINED_BIN").map(PathBuf::from);
    given.unwrap_or_else(|| {
        PathBuf::from(env!("CARGO_BIN_EXE_treelined-acp")).with_file_name("treelined")
    })
}

const AGENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/agent.py");

struct Folders {
    root: tempfile::TempDir,
}

impl Folders {
    fn new() -> Folders {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("work")).unwrap();
        Folders { root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn recorder(&self, history: &Value) -> Editor {
        let mut command = self.command(&daemon());
        command.args(["--", "python3", AGENT]);
        command.env("HISTORY", history.to_string());
        Editor::start(command)
    }

    /// The recorder with this daemon, and without an agent.
    fn command(&self, daemon: &Path) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_treelined-acp"));
        command.arg("--session-dir").arg(self.path("sessions"));
        command.arg("--state").arg(self.path("state"));
        command.arg("--daemon").arg(daemon);
        command
    }

    /// Completes the records with the option `--recover`. The lock of a journal may still be held by a process that the
    /// killed recorder was starting.
    fn recover(&self) {
        let began = Instant::now();
        loop {
            let ended = self.command(&daemon()).arg("--recover").output().unwrap();
            assert!(ended.status.success(), "{ended:?}");
            let journals = self.journals();
            if journals.is_empty() {
                return;
            }
            assert!(began.elapsed() < Duration::from_secs(120), "{journals:?}");
        }
    }

    fn journals(&self) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.path("state/journals")).unwrap();
        files.map(|file| file.unwrap().path()).collect()
    }

    /// Asks a daemon for the entries of the only session: role or type, text, and the number of the parent.
    fn recorded(&self) -> Vec<(String, String, Option<usize>)> {
        if MAY_LACK.take() {
            self.recover();
        }
        let mut command = Command::new(daemon());
        command.arg("--session-dir").arg(self.path("sessions"));
        let mut peer = Editor::start(command);
        let sessions = peer.ask("list_sessions", json!({}))["sessions"].clone();
        assert_eq!(sessions.as_array().unwrap().len(), 1, "{sessions}");
        peer.ask("open_session", json!({"path": sessions[0]["path"]}));
        let entries = peer.ask("get_entries", json!({}))["entries"].clone();
        let entries = entries.as_array().unwrap();
        let place = |id: &Value| entries.iter().position(|entry| entry["id"] == *id);
        let rows = entries.iter().map(|entry| {
            let message = &entry["message"];
            let role = message.get("role").or(entry.get("customType"));
            let kind = role.or(entry.get("type")).unwrap();
            let text = match &message["content"] {
                Value::Array(blocks) => blocks.iter().map(shown).collect::<Vec<_>>().join("|"),
                Value::String(text) => text.clone(),
                _ => String::new(),
            };
            (
                kind.as_str().unwrap().to_owned(),
                text,
                place(&entry["parentId"]),
            )
        });
        let rows = rows.collect();
        assert_eq!(peer.end(), 0);
        rows
    }
}

fn shown(block: &Value) -> String {
    match block["type"].as_str().unwrap() {
        "thinking" => format!("({})", block["thinking"].as_str().unwrap()),
        "toolCall" => format!("{}{}", block["name"].as_str().unwrap(), block["arguments"]),
        _ => block["text"].as_str().unwrap().to_owned(),
    }
}

/// A peer that speaks JSON-RPC, a message a line.
struct Editor {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    /// All lines that were received.
    received: Vec<Value>,
    next: u64,
}

impl Editor {
    fn start(mut command: Command) -> Editor {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.stderr(Stdio::piped()).spawn().unwrap();
        Editor {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
            received: Vec::new(),
            next: 1,
        }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin.as_ref().unwrap(), "{message}").unwrap();
    }

    fn begin(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        loop {
            let message = self.next_message();
            if message["method"] == "session/request_permission" {
                let outcome = json!({"outcome": {"outcome": "selected", "optionId": "yes"}});
                self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": outcome}));
            } else if message["method"] == "terminal/create" {
                let made = json!({"terminalId": "t1"});
                self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": made}));
            } else if message["id"] == json!(id) {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
        }
    }

    fn next_message(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.stdout.read_line(&mut line).unwrap() > 0, "a message");
        let message: Value = serde_json::from_str(&line).unwrap();
        self.received.push(message.clone());
        message
    }

    fn prompt(&mut self, session: &str, text: &str) -> Value {
        let prompt = json!([{"type": "text", "text": text}]);
        self.ask(
            "session/prompt",
            json!({"sessionId": session, "prompt": prompt}),
        )
    }

    /// Closes stdin and waits for the exit code.
    fn end(mut self) -> i32 {
        let began = Instant::now();
        drop(self.stdin.take());
        let code = self.child.wait().unwrap().code().unwrap();
        note_slow(began);
        code
    }
}

fn row(kind: &str, text: &str, parent: Option<usize>) -> (String, String, Option<usize>) {
    (kind.to_owned(), text.to_owned(), parent)
}

#[test]
fn a_conversation_becomes_a_session() {
    let folders = Folders::new();
    let mut editor = folders.recorder(&json!([]));
    editor.ask("initialize", json!({"protocolVersion": 1}));
    let made = editor.ask(
        "session/new",
        json!({"cwd": folders.path("work"), "mcpServers": []}),
    );
    let session = made["sessionId"].as_str().unwrap();
    let ended = editor.prompt(session, "think of a tool");
    assert_eq!(ended["stopReason"], "end_turn");
    editor.prompt(session, "thanks");
    assert_eq!(editor.end(), 0);
    assert_eq!(
        folders.recorded(),
        [
            row("acp.session", "", None),
            row("user", "think of a tool", Some(0)),
            row(
                "assistant",
                "(Let me think.)|You said: think of a tool|bash{\"command\":\"ls -l\"}",
                Some(1)
            ),
            row("toolResult", "total 0", Some(2)),
            row("acp.permission", "", Some(3)),
            row("assistant", "It is empty.", Some(4)),
            row("user", "thanks", Some(5)),
            row("assistant", "You said: thanks", Some(6)),
        ]
    );
    assert!(
        std::fs::read_dir(folders.path("state/journals"))
            .unwrap()
            .next()
            .is_none()
    );
}

#[test]
fn a_loaded_history_is_aligned_and_branches_where_it_differs() {
    let folders = Folders::new();
    let mut editor = folders.recorder(&json!([]));
    editor.ask("session/new", json!({"cwd": folders.path("work")}));
    editor.prompt("s1", "one");
    editor.prompt("s1", "two");
    assert_eq!(editor.end(), 0);
    let before = folders.recorded();

    // The agent has forgotten the second turn, and has another one.
    let history = json!([
        ["user_message_chunk", "one"],
        ["agent_message_chunk", "You said: "],
        ["agent_message_chunk", "one"],
        ["user_message_chunk", "another"],
        ["agent_message_chunk", "Yes."],
    ]);
    let mut editor = folders.recorder(&history);
    editor.ask(
        "session/load",
        json!({"sessionId": "s1", "cwd": folders.path("work")}),
    );
    editor.prompt("s1", "three");
    assert_eq!(editor.end(), 0);
    let mut expected = before.clone();
    expected.extend([
        row("user", "another", Some(2)),
        row("assistant", "Yes.", Some(5)),
        row("user", "three", Some(6)),
        row("assistant", "You said: three", Some(7)),
    ]);
    assert_eq!(folders.recorded(), expected);

    // The same again: nothing is written.
    let mut history = history.as_array().unwrap().clone();
    history.push(json!(["user_message_chunk", "three"]));
    history.push(json!(["agent_message_chunk", "You said: three"]));
    let mut editor = folders.recorder(&json!(history));
    editor.ask(
        "session/load",
        json!({"sessionId": "s1", "cwd": folders.path("work")}),
    );
    assert_eq!(editor.end(), 0);
    assert_eq!(folders.recorded(), expected);
}

#[test]
fn a_fork_is_a_branch_of_the_same_tree() {
    let folders = Folders::new();
    let mut editor = folders.recorder(&json!([]));
    editor.ask("session/new", json!({"cwd": folders.path("work")}));
    editor.prompt("s1", "one");
    editor.ask(
        "session/fork",
        json!({"sessionId": "s1", "cwd": folders.path("work")}),
    );
    editor.prompt("s1", "two");
    editor.prompt("s2", "other");
    assert_eq!(editor.end(), 0);
    let recorded = folders.recorded();
    assert_eq!(recorded.len(), 8, "{recorded:#?}");
    assert_eq!(recorded[3], row("acp.session", "", Some(2)));
    assert_eq!(recorded[4], row("user", "two", Some(2)));
    assert_eq!(recorded[6], row("user", "other", Some(3)));
}

/// Two branches begin with the same words. The loaded history of the second branch was once taken for the first branch,
/// so its rest was recorded again.
#[test]
fn a_loaded_history_is_found_on_its_own_branch() {
    let folders = Folders::new();
    let mut editor = folders.recorder(&json!([]));
    let work = json!({"sessionId": "s1", "cwd": folders.path("work")});
    editor.ask("session/new", work.clone());
    editor.prompt("s1", "one");
    editor.ask("session/fork", work);
    editor.prompt("s1", "again");
    editor.prompt("s2", "again");
    editor.prompt("s2", "three");
    assert_eq!(editor.end(), 0);
    let before = folders.recorded();
    let told = ["one", "again", "three"].into_iter().flat_map(|text| {
        let answer = format!("You said: {text}");
        [
            json!(["user_message_chunk", text]),
            json!(["agent_message_chunk", answer]),
        ]
    });
    let mut editor = folders.recorder(&told.collect());
    let load = json!({"sessionId": "s2", "cwd": folders.path("work")});
    editor.ask("session/load", load);
    assert_eq!(editor.end(), 0);
    assert_eq!(folders.recorded(), before);
}

/// opencode 1.18 sends the history before it answers `session/fork`. The history was once taken for new messages, and
/// the copy had every message twice.
#[test]
fn a_fork_that_tells_its_history_is_aligned() {
    let folders = Folders::new();
    let work = json!({"sessionId": "s1", "cwd": folders.path("work")});
    let first = [
        json!(["user_message_chunk", "one"]),
        json!(["agent_message_chunk", "You said: one"]),
    ];
    let start = || {
        let mut command = folders.command(&daemon());
        command.args(["--", "python3", AGENT]);
        command.env("HISTORY", json!(first).to_string());
        command.env("REPLAYS_FORKS", "");
        Editor::start(command)
    };
    let mut editor = start();
    editor.ask("session/new", json!({"cwd": folders.path("work")}));
    editor.prompt("s1", "one");
    editor.ask("session/fork", work.clone());
    editor.prompt("s2", "other");
    editor.prompt("s1", "two");
    assert_eq!(editor.end(), 0);
    let recorded = folders.recorded();
    assert_eq!(recorded.len(), 8, "{recorded:#?}");
    assert_eq!(recorded[3], row("acp.session", "", Some(2)));
    assert_eq!(recorded[4], row("user", "other", Some(3)));
    assert_eq!(recorded[6], row("user", "two", Some(2)));

    // A copy that ends before its source.
    let mut editor = start();
    editor.ask("session/resume", work.clone());
    editor.ask("session/fork", work);
    editor.prompt("s2", "third");
    assert_eq!(editor.end(), 0);
    let recorded = folders.recorded();
    assert_eq!(recorded.len(), 11, "{recorded:#?}");
    assert_eq!(recorded[8], row("acp.session", "", Some(2)));
    assert_eq!(recorded[9], row("user", "third", Some(8)));
}

/// Like the tests in `gaps`, but with the limit on the length of a message that the README names.
#[test]
fn a_first_update_of_48_mebibytes_leaves_a_gap() {
    let folders = Folders::new();
    let mut editor = folders.recorder(&json!([]));
    editor.ask("session/new", json!({"cwd": folders.path("work")}));
    editor.prompt("s1", "huge");
    editor.prompt("s1", "two");
    assert_eq!(editor.end(), 0);
    assert_eq!(
        folders.recorded()[1..],
        [
            row("user", "huge", Some(0)),
            row("assistant", "You said: huge", Some(1)),
            row("acp.gap", "", Some(2)),
            row("user", "two", Some(3)),
            row("assistant", "You said: two", Some(4)),
        ]
    );
}

#[test]
fn a_turn_without_an_end_is_kept_as_aborted() {
    let folders = Folders::new();
    let mut editor = folders.recorder(&json!([]));
    editor.ask("session/new", json!({"cwd": folders.path("work")}));
    let prompt = json!([{"type": "text", "text": "die"}]);
    editor.begin(
        "session/prompt",
        json!({"sessionId": "s1", "prompt": prompt}),
    );
    let mut stderr = String::new();
    editor
        .child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut stderr)
        .unwrap();
    assert_eq!(stderr, "agent starts\n");
    assert_eq!(editor.end(), 7, "the agent's exit code");
    assert_eq!(
        folders.recorded()[2],
        row("assistant", "You said: die", Some(1))
    );
}

#[test]
fn a_plan_does_not_take_part_in_the_alignment() {
    let folders = Folders::new();
    let mut editor = folders.recorder(&json!([]));
    editor.ask("session/new", json!({"cwd": folders.path("work")}));
    editor.prompt("s1", "plan");
    editor.prompt("s1", "plan with a tool");
    assert_eq!(editor.end(), 0);
    let before = folders.recorded();
    assert_eq!(
        before[2..6],
        [
            row("assistant", "You said: planThen that.", Some(1)),
            row("acp.plan", "", Some(2)),
            row("user", "plan with a tool", Some(3)),
            row(
                "assistant",
                "You said: plan with a toolThen that.|bash{\"command\":\"ls -l\"}",
                Some(4)
            ),
        ]
    );

    // The agent replays neither the plan nor the question for permission.
    let call = json!({"toolCallId": "c1", "title": "ls -l", "kind": "execute", "status": "completed", "name": "bash"});
    let history = json!([
        ["user_message_chunk", "plan"],
        ["agent_message_chunk", "You said: plan"],
        ["agent_message_chunk", "Then that."],
        ["user_message_chunk", "plan with a tool"],
        [
            "agent_message_chunk",
            "You said: plan with a toolThen that."
        ],
        ["tool_call", call],
        ["agent_message_chunk", "It is empty."],
    ]);
    let mut editor = folders.recorder(&history);
    let load = json!({"sessionId": "s1", "cwd": folders.path("work")});
    editor.ask("session/load", load.clone());
    editor.prompt("s1", "go on");
    assert_eq!(editor.end(), 0);
    let mut expected = before.clone();
    let last = before.len() - 1;
    expected.extend([
        row("user", "go on", Some(last)),
        row("assistant", "You said: go on", Some(last + 1)),
    ]);
    assert_eq!(folders.recorded(), expected);

    // An agent that replays only its plan has not replayed any part of the conversation.
    let mut editor = folders.recorder(&json!([["plan", "this"]]));
    editor.ask("session/load", load);
    editor.prompt("s1", "thanks");
    assert_eq!(editor.end(), 0);
    assert_eq!(
        folders.recorded()[last + 3],
        row("user", "thanks", Some(last + 2))
    );
}

/// The bytes have lines of other protocols, bytes that are not text, and an end without a line break.
#[test]
fn bytes_pass_untouched() {
    let folders = Folders::new();
    let mut bytes = b"Content-Length: 2\r\n\r\n{}\n\n{\"a\":\"\xe2\x80\xa8\"}\r\n\0\xff\n".to_vec();
    bytes.extend((0..1_000_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8));
    for options in [&[][..], &["--live"]] {
        let mut command = folders.command(&daemon());
        command.args(options);
        command.args(["--", "sh", "-c", "cat; echo over >&2; exit 3"]);
        let mut editor = Editor::start(command);
        let mut stdin = editor.stdin.take().unwrap();
        let sent = bytes.clone();
        let sender = std::thread::spawn(move || stdin.write_all(&sent).unwrap());
        let (mut received, mut said) = (Vec::new(), String::new());
        editor.stdout.read_to_end(&mut received).unwrap();
        sender.join().unwrap();
        let stderr = editor.child.stderr.take();
        stderr.unwrap().read_to_string(&mut said).unwrap();
        assert!(received == bytes, "{options:?}: {} bytes", received.len());
        assert_eq!(said, "over\n");
        assert_eq!(editor.end(), 3);
    }
}
