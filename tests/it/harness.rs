//! The real binary over real pipes. Owns: starting and ending the daemon, framing by `\n`, claiming
//! of responses and notifications, and what must hold of *every* conversation (protocol.md §1, §7):
//! each stdout line is JSON-RPC 2.0, one response per id, `seq` without gaps, exit code 0, nothing on
//! stderr, and no message that no test asked for. What goes in is made by `fixture`.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub use crate::fixture::*;
pub use serde_json::json;
pub type Json = serde_json::Value;

const DEADLINE: Duration = Duration::from_secs(30);

/// Whether the long run was asked for (`tests/long/run`): the full numbers rather than those that
/// fit into a few seconds.
pub fn is_long_run() -> bool {
    std::env::var_os("TREELINED_TEST_LONG").is_some()
}

/// Notifications that follow from nearly every call; ignored by tests on other subjects.
pub const BOOKKEEPING: [&str; 6] = [
    "entries_appended",
    "session_opened",
    "session_closed",
    "session_tree",
    "session_info_changed",
    "session_before_tree",
];

/// Members that stand in each result of a method, though they may be null there (protocol.md §3, §4, §6).
const RESULTS: [(&str, &[&str]); 16] = [
    ("create_session", &["session"]),
    ("open_session", &["session", "diagnostics"]),
    ("append_message", &["entryId", "leafId", "durability"]),
    ("append_entries", &["entryIds", "leafId", "durability"]),
    ("append_label", &["entryId", "leafId", "durability"]),
    ("set_session_name", &["entryId", "leafId", "durability"]),
    ("get_leaf", &["leafId", "seq"]),
    ("set_leaf", &["oldLeafId", "newLeafId", "durability"]),
    ("branch", &["oldLeafId", "newLeafId", "durability"]),
    ("navigate_tree", &["cancelled", "oldLeafId", "newLeafId"]),
    ("undo_navigation", &["oldLeafId", "newLeafId", "durability"]),
    ("redo_navigation", &["oldLeafId", "newLeafId", "durability"]),
    ("get_entries", &["entries", "leafId", "seq"]),
    ("get_context", &["thinkingLevel", "model", "entryIds"]),
    (
        "get_tree",
        &[
            "nodes", "leafId", "rootIds", "total", "hidden", "offset", "revision", "seq",
        ],
    ),
    ("fork_session", &["cancelled"]),
];

/// The same for notifications (protocol.md §4, §5, §7).
const NOTIFICATIONS: [(&str, &[&str]); 5] = [
    (
        "session_before_tree",
        &["eventId", "timeoutMs", "preparation"],
    ),
    ("session_tree", &["newLeafId", "oldLeafId", "cause"]),
    ("event_resolved", &["eventId", "event", "outcome"]),
    (
        "entries_appended",
        &["origin", "entryIds", "leafId", "fileLeafId"],
    ),
    ("session_info_changed", &["name"]),
];

#[track_caller]
fn check_members(table: &[(&str, &[&str])], name: &str, value: &Json) {
    let Some((_, members)) = table.iter().find(|(known, _)| *known == name) else {
        return;
    };
    // A dry run answers with the preparation alone.
    if value.get("preparation").is_some() && name == "navigate_tree" {
        return;
    }
    for member in *members {
        assert!(
            value.get(member).is_some(),
            "{name} without {member}: {}",
            shorten(&value.to_string())
        );
    }
}

pub fn binary() -> PathBuf {
    option_env!("CARGO_BIN_EXE_treelined")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("TREELINED_BIN").map(PathBuf::from))
        .expect("run under `cargo test` of the package, or set TREELINED_BIN")
}

#[derive(Debug, Clone)]
pub struct RpcError {
    pub code: i64,
    pub kind: String,
    pub data: Box<Json>,
    pub message: String,
}

impl RpcError {
    fn parse(error: &Json) -> RpcError {
        RpcError {
            code: error["code"]
                .as_i64()
                .unwrap_or_else(|| panic!("error without a code: {error}")),
            kind: error["data"]["kind"]
                .as_str()
                .unwrap_or_else(|| panic!("error without data.kind: {error}"))
                .to_owned(),
            message: error["message"]
                .as_str()
                .unwrap_or_else(|| panic!("error without a message: {error}"))
                .to_owned(),
            data: Box::new(error["data"].clone()),
        }
    }

    pub fn details(&self, member: &str) -> &Json {
        self.data["details"]
            .get(member)
            .unwrap_or_else(|| panic!("no details.{member} in {self:?}"))
    }
}

// ---------------------------------------------------------------------------------------------
// Places

/// One test's own world: a session directory, a working directory, and a folder for files.
pub struct Home {
    root: tempfile::TempDir,
}

impl Home {
    pub fn new() -> Arc<Home> {
        Home::made_in(&std::env::temp_dir())
    }

    /// Where a sync costs nothing, for tests that make very many files.
    pub fn in_memory() -> Arc<Home> {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() {
            Home::made_in(memory)
        } else {
            Home::new()
        }
    }

    fn made_in(folder: &Path) -> Arc<Home> {
        let root = tempfile::Builder::new()
            .prefix("treelined-it-")
            .tempdir_in(folder)
            .unwrap();
        for folder in ["sessions", "work", "files"] {
            fs::DirBuilder::new()
                .mode(0o700)
                .create(root.path().join(folder))
                .unwrap();
        }
        Arc::new(Home { root })
    }

    pub fn sessions(&self) -> PathBuf {
        self.root.path().join("sessions")
    }

    pub fn cwd(&self) -> PathBuf {
        self.root.path().join("work")
    }

    pub fn files(&self) -> PathBuf {
        self.root.path().join("files")
    }

    /// Writes a file beside, not in, the session directory.
    pub fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.files().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// All session files below the session directory, sorted; the trash is told by its folder.
    pub fn session_files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.sessions()];
        while let Some(folder) = folders.pop() {
            for item in fs::read_dir(folder).unwrap() {
                let path = item.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|e| e == "jsonl") {
                    found.push(path);
                }
            }
        }
        found.sort();
        found
    }

    #[track_caller]
    pub fn only_file(&self) -> PathBuf {
        let mut files = self.session_files();
        assert_eq!(
            files.len(),
            1,
            "exactly one session file expected: {files:?}"
        );
        files.remove(0)
    }

    pub fn command(&self, args: &[&str], env: &[(&str, &str)]) -> Command {
        let mut command = Command::new(binary());
        command
            .args(args)
            .current_dir(self.cwd())
            .env_remove("TREELINED_LOG")
            .env_remove("XDG_DATA_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .env("HOME", self.root.path())
            .env("TREELINED_SESSION_DIR", self.sessions())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for (name, value) in env {
            command.env(name, value);
        }
        command
    }

    /// Runs to the end with `input` on stdin, which is closed after it.
    #[track_caller]
    pub fn run(&self, args: &[&str], env: &[(&str, &str)], input: impl Into<Vec<u8>>) -> Output {
        let mut child = self.command(args, env).spawn().expect("the daemon starts");
        let mut stdin = child.stdin.take().unwrap();
        let input = input.into();
        let writer = thread::spawn(move || {
            // A daemon that exits early closes the pipe; the tests judge its output instead.
            let _ = stdin.write_all(&input);
        });
        let mut stdout = child.stdout.take().unwrap();
        let stdout = thread::spawn(move || {
            let mut bytes = Vec::new();
            stdout.read_to_end(&mut bytes).unwrap();
            bytes
        });
        let stderr = read_stderr(&mut child);
        let code = wait(&mut child, Duration::from_secs(60));
        writer.join().unwrap();
        Output {
            stdout: stdout.join().unwrap(),
            stderr: stderr.join().unwrap(),
            code,
        }
    }
}

#[derive(Debug)]
pub struct Output {
    pub stdout: Vec<u8>,
    pub stderr: String,
    pub code: Option<i32>,
}

impl Output {
    pub fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).expect("stdout is UTF-8")
    }

    #[track_caller]
    pub fn lines(&self) -> Vec<Json> {
        let text = self.text();
        assert!(
            text.is_empty() || text.ends_with('\n'),
            "the last line is whole"
        );
        text.lines().map(parse_message).collect()
    }

    /// Responses only, by id as JSON text; `null` ids are not in it.
    #[track_caller]
    pub fn responses(&self) -> HashMap<String, Json> {
        let mut found = HashMap::new();
        for line in self.lines() {
            if line.get("method").is_none() && !line["id"].is_null() {
                let id = line["id"].to_string();
                assert!(
                    found.insert(id.clone(), line).is_none(),
                    "two responses to {id}"
                );
            }
        }
        found
    }

    #[track_caller]
    pub fn clean(self) -> Output {
        assert_eq!(self.code, Some(0), "exit code; stderr: {}", self.stderr);
        assert_eq!(self.stderr, "", "stderr stays empty");
        self
    }
}

// ---------------------------------------------------------------------------------------------
// The daemon

enum Heard {
    Line(String),
    NotUtf8(Vec<u8>),
    Eof,
}

/// While closed, the reader thread takes nothing out of the daemon's stdout.
#[derive(Default)]
struct Gate {
    closed: Mutex<bool>,
    opened: Condvar,
}

pub struct Daemon {
    pub home: Arc<Home>,
    pub deadline: Duration,
    child: Child,
    stdin: Option<Sender<Vec<u8>>>,
    heard: Receiver<Heard>,
    gate: Arc<Gate>,
    stderr: Option<JoinHandle<String>>,
    notifications: VecDeque<Json>,
    responses: HashMap<String, (String, Json)>,
    to_nobody: VecDeque<Json>,
    pending: HashMap<String, String>,
    order: Vec<String>,
    seqs: HashMap<String, u64>,
    ignored: BTreeSet<String>,
    next_id: u64,
    eof: bool,
    exit: Option<Option<i32>>,
    killed: bool,
    complains: bool,
}

impl Daemon {
    #[track_caller]
    pub fn start() -> Daemon {
        Daemon::start_in(&Home::new(), &[], &[])
    }

    /// For tests whose subject is not the notifications.
    #[track_caller]
    pub fn quiet() -> Daemon {
        Daemon::quiet_in(&Home::new())
    }

    #[track_caller]
    pub fn quiet_in(home: &Arc<Home>) -> Daemon {
        let mut daemon = Daemon::start_in(home, &[], &[]);
        daemon.ignore_bookkeeping();
        daemon
    }

    #[track_caller]
    pub fn start_with(args: &[&str], env: &[(&str, &str)]) -> Daemon {
        Daemon::start_in(&Home::new(), args, env)
    }

    #[track_caller]
    pub fn start_in(home: &Arc<Home>, args: &[&str], env: &[(&str, &str)]) -> Daemon {
        let sessions = home.sessions();
        let mut all = vec!["--session-dir", sessions.to_str().unwrap()];
        all.extend(args);
        let mut command = home.command(&all, env);
        command.env_remove("TREELINED_SESSION_DIR");
        for (name, value) in env {
            command.env(name, value);
        }
        Daemon::spawned(home, command)
    }

    /// A daemon started by a command of the test's own, made by [`Home::command`].
    #[track_caller]
    pub fn spawned(home: &Arc<Home>, mut command: Command) -> Daemon {
        let mut child = command.spawn().expect("the daemon starts");

        let mut to_child = child.stdin.take().unwrap();
        let (stdin, lines) = channel::<Vec<u8>>();
        thread::spawn(move || {
            for bytes in lines {
                if to_child.write_all(&bytes).is_err() {
                    break;
                }
            }
        });

        let mut from_child = child.stdout.take().unwrap();
        let (tell, heard) = channel();
        let gate = Arc::new(Gate::default());
        let reader_gate = gate.clone();
        thread::spawn(move || {
            let mut line = Vec::new();
            let mut block = vec![0; 64 * 1024];
            loop {
                let mut closed = reader_gate.closed.lock().unwrap();
                while *closed {
                    closed = reader_gate.opened.wait(closed).unwrap();
                }
                drop(closed);
                let n = from_child.read(&mut block).unwrap_or(0);
                if n == 0 {
                    break;
                }
                let mut rest = &block[..n];
                while let Some(end) = rest.iter().position(|&b| b == b'\n') {
                    line.extend_from_slice(&rest[..end]);
                    let whole = match String::from_utf8(std::mem::take(&mut line)) {
                        Ok(text) => Heard::Line(text),
                        Err(bad) => Heard::NotUtf8(bad.into_bytes()),
                    };
                    if tell.send(whole).is_err() {
                        return;
                    }
                    rest = &rest[end + 1..];
                }
                line.extend_from_slice(rest);
            }
            if !line.is_empty() {
                let _ = tell.send(Heard::NotUtf8(line));
            }
            let _ = tell.send(Heard::Eof);
        });

        let stderr = read_stderr(&mut child);
        Daemon {
            home: home.clone(),
            deadline: DEADLINE,
            child,
            stdin: Some(stdin),
            heard,
            gate,
            stderr: Some(stderr),
            notifications: VecDeque::new(),
            responses: HashMap::new(),
            to_nobody: VecDeque::new(),
            pending: HashMap::new(),
            order: Vec::new(),
            seqs: HashMap::new(),
            ignored: BTreeSet::new(),
            next_id: 1,
            eof: false,
            exit: None,
            killed: false,
            complains: false,
        }
    }

    /// A piped script without handshake: all lines in, stdin closed, all lines out.
    #[track_caller]
    pub fn script(lines: &[String]) -> Vec<Json> {
        script_in(&Home::new(), &[], lines)
    }

    // --- sending ---

    #[track_caller]
    pub fn initialize(&mut self, params: Json) -> Json {
        self.ok("initialize", params)
    }

    /// A handshake with these capabilities.
    #[track_caller]
    pub fn init(&mut self, capabilities: Json) -> Json {
        self.initialize(json!({
            "protocolVersion": 1,
            "clientInfo": {"name": "it", "version": "1"},
            "capabilities": capabilities,
        }))
    }

    #[track_caller]
    pub fn send(&mut self, method: &str, params: Json) -> Json {
        let id = self.fresh_id();
        self.send_as(id.clone(), method, params);
        id
    }

    /// For a request.
    pub fn fresh_id(&mut self) -> Json {
        let id = json!(self.next_id);
        self.next_id += 1;
        id
    }

    #[track_caller]
    pub fn send_as(&mut self, id: Json, method: &str, params: Json) {
        self.send_together(&[(id, method, params)]);
    }

    pub fn notify(&mut self, method: &str, params: Json) {
        self.raw_line(
            json!({"jsonrpc": "2.0", "method": method, "params": params})
                .to_string()
                .as_bytes(),
        );
    }

    /// A request with params as text, for what a JSON value cannot hold.
    #[track_caller]
    pub fn send_text(&mut self, method: &str, params: &str) -> Json {
        let id = json!(self.next_id);
        self.next_id += 1;
        self.pending.insert(id.to_string(), method.to_owned());
        self.bytes(
            format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n"
            )
            .into_bytes(),
        );
        id
    }

    /// One line as it is; `\n` is added. A well-formed request in it is expected to be answered.
    #[track_caller]
    pub fn raw_line(&mut self, line: &[u8]) {
        if let Ok(Json::Object(message)) = serde_json::from_slice(line)
            && let (Some(id), Some(Json::String(method))) =
                (message.get("id"), message.get("method"))
        {
            self.pending.insert(id.to_string(), method.clone());
        }
        self.bytes([line, b"\n"].concat());
    }

    /// Several requests in one write.
    #[track_caller]
    pub fn send_together(&mut self, requests: &[(Json, &str, Json)]) {
        let mut bytes = Vec::new();
        for (id, method, params) in requests {
            self.pending.insert(id.to_string(), (*method).to_owned());
            bytes.extend_from_slice(request(id, method, params).as_bytes());
            bytes.push(b'\n');
        }
        self.bytes(bytes);
    }

    pub fn bytes(&mut self, bytes: Vec<u8>) {
        // A daemon that has gone is noticed by what it did not answer.
        let _ = self.stdin.as_ref().expect("stdin is open").send(bytes);
    }

    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    // --- receiving ---

    #[track_caller]
    pub fn call(&mut self, method: &str, params: Json) -> Result<Json, RpcError> {
        let id = self.send(method, params);
        self.response(&id)
    }

    #[track_caller]
    pub fn ok(&mut self, method: &str, params: Json) -> Json {
        let shown = shorten(&params.to_string());
        match self.call(method, params) {
            Ok(result) => result,
            Err(error) => panic!("{method} {shown} failed: {error:?}"),
        }
    }

    #[track_caller]
    pub fn err(&mut self, method: &str, params: Json) -> RpcError {
        let shown = shorten(&params.to_string());
        match self.call(method, params) {
            Ok(result) => panic!(
                "{method} {shown} succeeded: {}",
                shorten(&result.to_string())
            ),
            Err(error) => error,
        }
    }

    #[track_caller]
    pub fn err_kind(&mut self, method: &str, params: Json, kind: &str) -> RpcError {
        let shown = shorten(&params.to_string());
        let error = self.err(method, params);
        assert_eq!(error.kind, kind, "{method} {shown}: {error:?}");
        error
    }

    #[track_caller]
    pub fn response(&mut self, id: &Json) -> Result<Json, RpcError> {
        let (_, message) = self.response_message(id);
        match message.get("error") {
            Some(error) => Err(RpcError::parse(error)),
            None => Ok(message["result"].clone()),
        }
    }

    /// The response line, byte for byte.
    #[track_caller]
    pub fn response_text(&mut self, id: &Json) -> String {
        self.response_message(id).0
    }

    #[track_caller]
    fn response_message(&mut self, id: &Json) -> (String, Json) {
        let key = id.to_string();
        let until = Instant::now() + self.deadline;
        loop {
            if let Some(found) = self.responses.remove(&key) {
                return found;
            }
            self.pump(until, &format!("the response to {key}"));
        }
    }

    /// The next response with id null.
    #[track_caller]
    pub fn response_to_nobody(&mut self) -> RpcError {
        let until = Instant::now() + self.deadline;
        loop {
            if let Some(found) = self.to_nobody.pop_front() {
                return RpcError::parse(&found["error"]);
            }
            self.pump(until, "a response with id null");
        }
    }

    /// Waits for the next notification of this name, in order, claims it and gives its params.
    #[track_caller]
    pub fn notification(&mut self, name: &str) -> Json {
        let until = Instant::now() + self.deadline;
        loop {
            if let Some(at) = self.notifications.iter().position(|n| n["method"] == name) {
                return self.notifications.remove(at).unwrap()["params"].clone();
            }
            self.pump(until, &format!("notification {name}"));
        }
    }

    /// Claims all notifications of this name heard so far, without waiting for more.
    #[track_caller]
    pub fn heard(&mut self, name: &str) -> Vec<Json> {
        self.ok("list_sessions", json!({"limit": 1}));
        let (found, others): (VecDeque<Json>, _) = std::mem::take(&mut self.notifications)
            .into_iter()
            .partition(|n| n["method"] == name);
        self.notifications = others;
        found.into_iter().map(|n| n["params"].clone()).collect()
    }

    /// Everything heard so far holds no (more) notification of this name.
    #[track_caller]
    pub fn no_notification(&mut self, name: &str) {
        self.ok("list_sessions", json!({}));
        let found: Vec<_> = self
            .notifications
            .iter()
            .filter(|n| n["method"] == name)
            .collect();
        assert!(found.is_empty(), "unexpected: {found:?}");
    }

    /// Nothing answers this request for a while, though other requests are answered.
    #[track_caller]
    pub fn still_waits(&mut self, id: &Json) {
        self.ok("list_sessions", json!({}));
        assert!(
            !self.responses.contains_key(&id.to_string()),
            "answered already: {id}"
        );
    }

    /// For tests that give the daemon a reason to say something on stderr.
    pub fn let_complain(&mut self) {
        self.complains = true;
    }

    /// Ends the daemon and gives what it has said on stderr.
    #[track_caller]
    pub fn said(&mut self) -> String {
        self.close_stdin();
        assert_eq!(self.exited(), Some(0));
        self.stderr_text()
    }

    pub fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.child)
    }

    pub fn ignore(&mut self, name: &str) {
        self.ignored.insert(name.to_owned());
    }

    pub fn ignore_bookkeeping(&mut self) {
        for name in BOOKKEEPING {
            self.ignore(name);
        }
    }

    /// Names of what arrived, in order: a notification's method, `=method` for a response.
    pub fn order(&self) -> &[String] {
        &self.order
    }

    pub fn forget_order(&mut self) {
        self.order.clear();
    }

    #[track_caller]
    fn pump(&mut self, until: Instant, wanted: &str) {
        assert!(
            !self.eof,
            "stdout ended while waiting for {wanted}; stderr: {}",
            self.stderr_text()
        );
        let left = until.saturating_duration_since(Instant::now());
        match self.heard.recv_timeout(left) {
            Ok(heard) => self.hear(heard),
            Err(RecvTimeoutError::Timeout) => panic!(
                "timed out waiting for {wanted}; unclaimed: {:?}",
                self.notifications
                    .iter()
                    .map(|n| shorten(&n.to_string()))
                    .collect::<Vec<_>>()
            ),
            Err(RecvTimeoutError::Disconnected) => self.eof = true,
        }
    }

    #[track_caller]
    fn hear(&mut self, heard: Heard) {
        let text = match heard {
            Heard::Line(text) => text,
            Heard::NotUtf8(bytes) => panic!(
                "not a whole UTF-8 line: {:?}",
                shorten(&String::from_utf8_lossy(&bytes))
            ),
            Heard::Eof => {
                self.eof = true;
                return;
            }
        };
        let message = parse_message(&text);
        if let Some(method) = message.get("method") {
            assert!(
                message.get("id").is_none(),
                "the daemon sends no requests: {}",
                shorten(&text)
            );
            let method = method.as_str().expect("method is a string").to_owned();
            self.check_seq(&method, &message["params"]);
            check_members(&NOTIFICATIONS, &method, &message["params"]);
            self.order.push(method);
            self.notifications.push_back(message);
            return;
        }
        let id = message
            .get("id")
            .unwrap_or_else(|| panic!("a response without id: {}", shorten(&text)));
        if id.is_null() {
            self.order.push("=null".to_owned());
            self.to_nobody.push_back(message);
            return;
        }
        let key = id.to_string();
        let method = self
            .pending
            .remove(&key)
            .unwrap_or_else(|| panic!("answered twice or never asked: {}", shorten(&text)));
        if let Some(result) = message.get("result") {
            check_members(&RESULTS, &method, result);
        }
        self.order.push(format!("={method}"));
        self.responses.insert(key, (text, message));
    }

    #[track_caller]
    fn check_seq(&mut self, method: &str, params: &Json) {
        if method == "summary_delta" || method == "progress" {
            return;
        }
        let session = params["sessionId"]
            .as_str()
            .unwrap_or_else(|| panic!("{method} without sessionId: {params}"));
        if method == "events_lost" {
            self.seqs.remove(session);
            return;
        }
        let seq = params["seq"]
            .as_u64()
            .unwrap_or_else(|| panic!("{method} without seq: {params}"));
        let before = self.seqs.insert(session.to_owned(), seq);
        if let Some(before) = before
            && method != "session_opened"
        {
            assert_eq!(seq, before + 1, "seq of {method} in {session}");
        }
        if method == "session_closed" {
            self.seqs.remove(session);
        }
    }

    // --- reading slowly ---

    pub fn stop_reading(&mut self) {
        *self.gate.closed.lock().unwrap() = true;
    }

    pub fn read_on(&mut self) {
        *self.gate.closed.lock().unwrap() = false;
        self.gate.opened.notify_all();
    }

    // --- ending ---

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits until the daemon ends by itself. What it still says is heard.
    #[track_caller]
    pub fn exited(&mut self) -> Option<i32> {
        if let Some(code) = self.exit {
            return code;
        }
        let until = Instant::now() + self.deadline;
        while !self.eof {
            self.pump(until, "the end of stdout");
        }
        let code = wait(&mut self.child, self.deadline);
        self.exit = Some(code);
        code
    }

    /// Ends it in the ordinary way, with all checks.
    #[track_caller]
    pub fn stop(self) -> Arc<Home> {
        let home = self.home.clone();
        drop(self);
        home
    }

    /// After a kill: which requests had been answered with a result (ids as JSON text). Half a line
    /// at the end is no answer.
    pub fn successes_to_the_end(&mut self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        while let Ok(Heard::Line(text)) = self.heard.recv_timeout(self.deadline) {
            let message = parse_message(&text);
            if message.get("result").is_some() {
                found.insert(message["id"].to_string());
            }
        }
        let waiting = self.responses.iter();
        found.extend(
            waiting
                .filter(|(_, (_, message))| message.get("result").is_some())
                .map(|(id, _)| id.clone()),
        );
        self.eof = true;
        found
    }

    pub fn kill(mut self) -> Arc<Home> {
        self.killed = true;
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.home.clone()
    }

    fn stderr_text(&mut self) -> String {
        match self.stderr.take() {
            Some(thread) if self.eof || self.exit.is_some() => thread.join().unwrap_or_default(),
            kept => {
                self.stderr = kept;
                String::from("(still running)")
            }
        }
    }

    // --- the calls most tests make ---

    /// A session that is written with its first entry.
    #[track_caller]
    pub fn create(&mut self) -> String {
        let made = self.ok("create_session", json!({"write": "first-entry"}));
        made["session"]["sessionId"]
            .as_str()
            .expect("sessionId")
            .to_owned()
    }

    #[track_caller]
    pub fn open(&mut self, path: &Path) -> Json {
        self.ok("open_session", json!({"path": path}))
    }

    #[track_caller]
    pub fn user(&mut self, id: &str, text: &str) -> Json {
        self.ok(
            "append_message",
            json!({"message": user(text), "entryId": id}),
        )
    }

    #[track_caller]
    pub fn assistant(&mut self, id: &str, text: &str) -> Json {
        self.ok(
            "append_message",
            json!({"message": assistant(text), "entryId": id}),
        )
    }

    /// Messages one below the other; an id with `u` is a user's, any other the assistant's; the text
    /// names the id.
    #[track_caller]
    pub fn chain(&mut self, ids: &[&str]) {
        for id in ids {
            let text = format!("text of {id}");
            if id.starts_with('u') {
                self.user(id, &text)
            } else {
                self.assistant(id, &text)
            };
        }
    }

    /// A message somewhere else than at the leaf.
    #[track_caller]
    pub fn below(&mut self, parent: Option<&str>, id: &str) {
        let text = format!("text of {id}");
        let message = if id.starts_with('u') {
            user(&text)
        } else {
            assistant(&text)
        };
        self.ok(
            "append_message",
            json!({"message": message, "entryId": id, "parentId": parent}),
        );
    }

    #[track_caller]
    pub fn leaf(&mut self) -> Json {
        self.ok("get_leaf", json!({}))["leafId"].clone()
    }

    #[track_caller]
    pub fn set_leaf(&mut self, id: Option<&str>) -> Json {
        self.ok("set_leaf", json!({"leafId": id}))
    }

    #[track_caller]
    pub fn entry(&mut self, id: &str) -> Json {
        self.ok("get_entry", json!({"entryId": id}))["entry"].clone()
    }

    /// Ids of all entries in file order.
    #[track_caller]
    pub fn ids(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        let mut since = json!({});
        loop {
            let page = self.ok("get_entries", since);
            all.extend(ids(&page["entries"]));
            match page.get("nextCursor") {
                Some(cursor) => since = json!({"since": cursor}),
                None => return all,
            }
        }
    }

    #[track_caller]
    pub fn path_ids(&mut self, entry: Option<&str>) -> Vec<String> {
        let params = entry.map_or(json!({}), |id| json!({"entryId": id}));
        ids(&self.ok("get_path", params)["entries"])
    }

    #[track_caller]
    pub fn answer(&mut self, event: &Json, result: Json) -> Json {
        self.ok(
            "answer_event",
            json!({"eventId": event["eventId"], "result": result}),
        )
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.read_on();
        if thread::panicking() || self.killed {
            let _ = self.child.kill();
            let _ = self.child.wait();
            return;
        }
        self.close_stdin();
        let code = self.exited();
        let leftovers: Vec<_> = self
            .notifications
            .iter()
            .filter(|n| {
                !self
                    .ignored
                    .contains(n["method"].as_str().unwrap_or_default())
            })
            .map(|n| shorten(&n.to_string()))
            .chain(self.responses.values().map(|(text, _)| shorten(text)))
            .chain(self.to_nobody.iter().map(|m| shorten(&m.to_string())))
            .collect();
        assert!(
            leftovers.is_empty(),
            "messages nobody claimed: {leftovers:#?}"
        );
        assert!(
            self.pending.is_empty(),
            "requests never answered: {:?}",
            self.pending
        );
        let stderr = self.stderr_text();
        assert_eq!(code, Some(0), "exit code; stderr: {stderr}");
        assert!(stderr.is_empty() || self.complains, "stderr: {stderr}");
    }
}

#[track_caller]
pub fn script_in(home: &Home, args: &[&str], lines: &[String]) -> Vec<Json> {
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    home.run(args, &[], input).clean().lines()
}

fn read_stderr(child: &mut Child) -> JoinHandle<String> {
    let mut stderr = child.stderr.take().unwrap();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stderr.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// The exit code, or None if a signal ended it. Kills what does not end in time.
#[track_caller]
pub fn wait(child: &mut Child, limit: Duration) -> Option<i32> {
    let until = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if Instant::now() > until {
            let _ = child.kill();
            let _ = child.wait();
            panic!("the process did not end within {limit:?}");
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Checks a time that is promised on a machine that may be busy with other things: of a few attempts the
/// quickest counts.
#[track_caller]
pub fn takes_at_most(limit: Duration, mut attempt: impl FnMut() -> Duration) {
    let mut took = Vec::new();
    while took.len() < 5 {
        took.push(attempt());
        if took.last().is_some_and(|took| *took < limit) {
            return;
        }
    }
    panic!("at most {limit:?} were promised: {took:?}");
}

/// Whether a process runs whose id stands in this file.
pub fn runs(pid_file: &Path) -> bool {
    let pid = fs::read_to_string(pid_file).unwrap();
    // What nobody has waited for yet is dead all the same.
    fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
        .is_ok_and(|stat| !stat.contains(") Z "))
}

/// Repeats until it holds; for what the daemon does on its own time.
#[track_caller]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < until, "never came true: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

// ---------------------------------------------------------------------------------------------
// Messages

#[track_caller]
fn parse_message(line: &str) -> Json {
    let message =
        parse(line).unwrap_or_else(|e| panic!("stdout line is not JSON ({e}): {}", shorten(line)));
    assert_eq!(message["jsonrpc"], "2.0", "{}", shorten(line));
    if message.get("method").is_none() {
        assert_ne!(
            message.get("result").is_some(),
            message.get("error").is_some(),
            "result or error, not both: {}",
            shorten(line)
        );
    }
    message
}

/// Parses without a depth limit, and lets lone surrogate escapes pass, which stored text may hold.
pub fn parse(text: &str) -> Result<Json, serde_json::Error> {
    let deep = |text: &str| {
        let mut reader = serde_json::Deserializer::from_str(text);
        reader.disable_recursion_limit();
        let value = <Json as serde::Deserialize>::deserialize(&mut reader)?;
        reader.end()?;
        Ok(value)
    };
    deep(text).or_else(|_: serde_json::Error| deep(&replace_lone_surrogates(text)))
}

fn replace_lone_surrogates(text: &str) -> String {
    let unit = |at: usize| -> Option<u32> {
        let escape = text.get(at..at + 6)?;
        u32::from_str_radix(escape.strip_prefix("\\u")?, 16).ok()
    };
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(found) = text[at..].find('\\') {
        let escape = at + found;
        out.push_str(&text[at..escape]);
        let taken = match unit(escape) {
            Some(0xD800..=0xDBFF) if matches!(unit(escape + 6), Some(0xDC00..=0xDFFF)) => 12,
            Some(0xD800..=0xDFFF) => {
                out.push_str("\\ufffd");
                at = escape + 6;
                continue;
            }
            Some(_) => 6,
            None => 2,
        };
        let end = (escape + taken).min(text.len());
        out.push_str(&text[escape..end]);
        at = end;
    }
    out.push_str(&text[at..]);
    out
}

pub fn shorten(text: &str) -> String {
    match text.char_indices().nth(600) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

pub fn request(id: &Json, method: &str, params: &Json) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

/// For values deep enough to overflow a test thread when parsed or dropped.
pub fn on_a_big_stack(body: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new()
        .stack_size(512 << 20)
        .spawn(body)
        .unwrap();
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}
