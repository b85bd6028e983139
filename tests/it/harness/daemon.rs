//! A connection to a daemon, which is a child process or serves a socket. It starts the daemon, reads slowly on
//! request, sends signals, and ends the daemon.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::checks::Sequence;
use super::web_socket::{Lines, Messages};
use super::*;

/// A message of the reader thread.
enum Received {
    Line(String),
    /// A line that is not UTF-8, or a last line without a line end.
    Broken(Vec<u8>),
    Eof,
}

/// While the gate is closed, the reader thread reads nothing from the daemon's stdout.
#[derive(Default)]
struct Gate {
    closed: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn wait(&self) {
        let mut closed = self.closed.lock().unwrap();
        while *closed {
            closed = self.opened.wait(closed).unwrap();
        }
    }
}

/// A running daemon. On drop, stdin is closed, which ends the daemon. Then the exit code must be 0, stderr must be empty,
/// and every response and notification must have been claimed or ignored.
pub(crate) struct Daemon {
    pub home: Arc<Home>,
    /// How long to wait for one message.
    pub deadline: Duration,
    /// `None` if the connection is a socket.
    child: Option<Child>,
    stdin: Option<Sender<Vec<u8>>>,
    /// The folder in `/proc` of the thread that writes to the daemon.
    writer: PathBuf,
    received: Receiver<Received>,
    gate: Arc<Gate>,
    stderr: Option<JoinHandle<String>>,
    /// Unclaimed notifications.
    pub(super) notifications: VecDeque<Json>,
    /// Unclaimed responses by their ids (JSON text): the line, and the line parsed.
    pub(super) responses: HashMap<String, (String, Json)>,
    /// Unclaimed responses whose id is null.
    pub(super) responses_with_null_id: VecDeque<Json>,
    /// Unanswered requests: their ids (JSON text) and methods.
    pub(super) pending: HashMap<String, String>,
    pub(super) order: Vec<String>,
    sequence: Sequence,
    pub(super) ignored: BTreeSet<String>,
    pub(super) next_id: u64,
    eof: bool,
    /// The exit code, if the daemon has ended; `Some(None)` if a signal ended it.
    exit: Option<Option<i32>>,
    killed: bool,
    stderr_is_allowed: bool,
}

impl Daemon {
    #[track_caller]
    pub(crate) fn start() -> Daemon {
        Daemon::start_in(&Home::new(), &[], &[])
    }

    /// Starts a daemon for a test that is not about notifications.
    #[track_caller]
    pub(crate) fn quiet() -> Daemon {
        Daemon::quiet_in(&Home::new())
    }

    #[track_caller]
    pub(crate) fn quiet_in(home: &Arc<Home>) -> Daemon {
        let mut daemon = Daemon::start_in(home, &[], &[]);
        daemon.ignore_bookkeeping();
        daemon
    }

    #[track_caller]
    pub(crate) fn start_with(args: &[&str], env: &[(&str, &str)]) -> Daemon {
        Daemon::start_in(&Home::new(), args, env)
    }

    #[track_caller]
    pub(crate) fn start_in(home: &Arc<Home>, args: &[&str], env: &[(&str, &str)]) -> Daemon {
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

    /// Starts a daemon with a command that a test has made from [`Home::command`].
    #[track_caller]
    pub(crate) fn spawned(home: &Arc<Home>, mut command: Command) -> Daemon {
        let mut child = command.spawn().expect("the daemon starts");
        let input = write_to(child.stdin.take().unwrap(), |_| ());
        let stderr = read_stderr(&mut child);
        let output = child.stdout.take().unwrap();
        let mut daemon = Daemon::over(home, input, output);
        daemon.child = Some(child);
        daemon.stderr = Some(stderr);
        daemon
    }

    /// A connection to the daemon that serves this socket.
    #[track_caller]
    pub(crate) fn connected(home: &Arc<Home>, socket: &Path) -> Daemon {
        let stream = UnixStream::connect(socket).expect("the daemon listens");
        let input = write_to(stream.try_clone().unwrap(), |stream| {
            let _ = stream.shutdown(Shutdown::Write);
        });
        Daemon::over(home, input, stream)
    }

    /// A connection to the WebSocket at this port.
    #[track_caller]
    pub(crate) fn over_web_socket(home: &Arc<Home>, port: u16, token: &str) -> Daemon {
        let WebSocket { stream } = WebSocket::with_token(port, token);
        let lines = Lines {
            stream: stream.try_clone().unwrap(),
            unfinished: Vec::new(),
        };
        let messages = Messages {
            stream,
            left: Vec::new(),
        };
        Daemon::over(home, write_to(lines, Lines::end), messages)
    }

    fn over(
        home: &Arc<Home>,
        (input, writer): (Sender<Vec<u8>>, PathBuf),
        output: impl Read + Send + 'static,
    ) -> Daemon {
        let gate = Arc::new(Gate::default());
        let received = read_from(output, gate.clone());
        Daemon {
            home: home.clone(),
            deadline: DEADLINE,
            child: None,
            stdin: Some(input),
            writer,
            received,
            gate,
            stderr: None,
            notifications: VecDeque::new(),
            responses: HashMap::new(),
            responses_with_null_id: VecDeque::new(),
            pending: HashMap::new(),
            order: Vec::new(),
            sequence: Sequence::default(),
            ignored: BTreeSet::new(),
            next_id: 1,
            eof: false,
            exit: None,
            killed: false,
            stderr_is_allowed: false,
        }
    }

    /// Pipes a script without handshake into a daemon, closes stdin, and returns all lines of stdout.
    #[track_caller]
    pub(crate) fn script(lines: &[String]) -> Vec<Json> {
        script_in(&Home::new(), &[], lines)
    }
}

impl Daemon {
    pub(crate) fn bytes(&mut self, bytes: Vec<u8>) {
        // If the daemon has ended, the test fails because an answer is missing.
        let _ = self.stdin.as_ref().expect("stdin is open").send(bytes);
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Receives one message. Fails at the time `until`, with `wanted` as the name of the awaited message.
    #[track_caller]
    pub(super) fn receive(&mut self, until: Instant, wanted: &str) {
        assert!(
            !self.eof,
            "stdout ended while waiting for {wanted}; stderr: {}",
            self.stderr_text()
        );
        let left = until.saturating_duration_since(Instant::now());
        match self.received.recv_timeout(left) {
            Ok(Received::Line(text)) => self.accept(text),
            Ok(Received::Broken(bytes)) => panic!(
                "not a whole UTF-8 line: {:?}",
                shorten(&String::from_utf8_lossy(&bytes))
            ),
            Ok(Received::Eof) | Err(RecvTimeoutError::Disconnected) => self.eof = true,
            Err(RecvTimeoutError::Timeout) => panic!(
                "timed out waiting for {wanted}; unclaimed: {:?}",
                self.notifications
                    .iter()
                    .map(|n| shorten(&n.to_string()))
                    .collect::<Vec<_>>()
            ),
        }
    }

    /// Checks a line of stdout, and keeps it until a test claims it.
    #[track_caller]
    fn accept(&mut self, text: String) {
        let message = parse_message(&text);
        if let Some(method) = message.get("method") {
            assert!(
                message.get("id").is_none(),
                "the daemon sends no requests: {}",
                shorten(&text)
            );
            let method = method.as_str().expect("method is a string").to_owned();
            self.sequence.check(&method, &message["params"]);
            check_notification(&method, &message["params"]);
            self.order.push(method);
            self.notifications.push_back(message);
            return;
        }
        let id = message
            .get("id")
            .unwrap_or_else(|| panic!("a response without id: {}", shorten(&text)));
        if id.is_null() {
            self.order.push("=null".to_owned());
            self.responses_with_null_id.push_back(message);
            return;
        }
        let key = id.to_string();
        let method = self
            .pending
            .remove(&key)
            .unwrap_or_else(|| panic!("answered twice or never asked: {}", shorten(&text)));
        check_response(&method, &message);
        self.order.push(format!("={method}"));
        self.responses.insert(key, (text, message));
    }

    pub(crate) fn stop_reading(&mut self) {
        *self.gate.closed.lock().unwrap() = true;
    }

    pub(crate) fn read_on(&mut self) {
        *self.gate.closed.lock().unwrap() = false;
        self.gate.opened.notify_all();
    }

    /// Waits until the threads of the daemon, and the thread that writes to the daemon, have not run for half a second.
    /// On a busy machine a daemon whose requests are not written yet would otherwise look idle.
    pub(crate) fn until_idle(&self) {
        let tasks = format!("/proc/{}/task", self.pid().as_raw_nonzero());
        let runs = |task: &Path| {
            let status = std::fs::read_to_string(task.join("stat"));
            status.is_ok_and(|status| !status.contains(") S "))
        };
        let mut quiet = 0;
        while quiet < 10 {
            std::thread::sleep(Duration::from_millis(50));
            let is_busy = runs(&self.writer)
                || std::fs::read_dir(&tasks)
                    .is_ok_and(|mut all| all.any(|task| runs(&task.unwrap().path())));
            quiet = if is_busy { 0 } else { quiet + 1 };
        }
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(self.pid(), signal).unwrap();
    }

    pub(crate) fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(self.child.as_ref().expect("a child process"))
    }

    /// Waits until the daemon ends the connection or ends itself, and receives the rest of its output.
    #[track_caller]
    pub(crate) fn exited(&mut self) -> Option<i32> {
        if let Some(code) = self.exit {
            return code;
        }
        let until = Instant::now() + self.deadline;
        while !self.eof {
            self.receive(until, "the end of stdout");
        }
        let code = match &mut self.child {
            Some(child) => wait(child, self.deadline),
            None => Some(0),
        };
        self.exit = Some(code);
        code
    }

    /// Ends the daemon and returns what it wrote to stderr.
    #[track_caller]
    pub(crate) fn end_and_stderr(&mut self) -> String {
        self.close_stdin();
        assert_eq!(self.exited(), Some(0));
        self.stderr_text()
    }

    /// Ends the daemon by closing stdin, with all checks.
    #[track_caller]
    pub(crate) fn stop(self) -> Arc<Home> {
        let home = self.home.clone();
        drop(self);
        home
    }

    /// The ids (JSON text) of the requests that succeeded before a kill. An incomplete last line is not an answer.
    pub(crate) fn successes_to_the_end(&mut self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        while let Ok(Received::Line(text)) = self.received.recv_timeout(self.deadline) {
            let message = parse_message(&text);
            if message.get("result").is_some() {
                found.insert(message["id"].to_string());
            }
        }
        found.extend(
            self.responses
                .iter()
                .filter(|(_, (_, message))| message.get("result").is_some())
                .map(|(id, _)| id.clone()),
        );
        self.eof = true;
        found
    }

    pub(crate) fn kill(mut self) -> Arc<Home> {
        self.killed = true;
        self.kill_child();
        self.home.clone()
    }

    fn kill_child(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub(super) fn stderr_text(&mut self) -> String {
        match self.stderr.take() {
            Some(thread) if self.eof || self.exit.is_some() => thread.join().unwrap_or_default(),
            Some(thread) => {
                self.stderr = Some(thread);
                String::from("(still running)")
            }
            None => String::new(),
        }
    }

    /// Allows output on stderr, for tests in which the daemon has a reason to warn.
    pub(crate) fn allow_stderr(&mut self) {
        self.stderr_is_allowed = true;
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.read_on();
        if thread::panicking() || self.killed {
            self.kill_child();
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
            .chain(
                self.responses_with_null_id
                    .iter()
                    .map(|m| shorten(&m.to_string())),
            )
            .collect();
        assert!(
            leftovers.is_empty(),
            "messages that the test did not claim: {leftovers:#?}"
        );
        assert!(
            self.pending.is_empty(),
            "requests never answered: {:?}",
            self.pending
        );
        let stderr = self.stderr_text();
        assert_eq!(code, Some(0), "exit code; stderr: {stderr}");
        assert!(
            stderr.is_empty() || self.stderr_is_allowed,
            "stderr: {stderr}"
        );
    }
}

/// Writes to the daemon on a separate thread, so that a test does not block when the daemon does not read. Also returns
/// the folder of this thread in `/proc`.
fn write_to<W: Write + Send + 'static>(mut stdin: W, end: fn(&W)) -> (Sender<Vec<u8>>, PathBuf) {
    let (sender, blocks) = channel::<Vec<u8>>();
    let (begun, writer) = channel();
    thread::spawn(move || {
        let own = std::fs::read_link("/proc/thread-self").unwrap();
        begun.send(Path::new("/proc").join(own)).unwrap();
        for bytes in blocks {
            if stdin.write_all(&bytes).is_err() {
                break;
            }
        }
        end(&stdin);
    });
    (sender, writer.recv().unwrap())
}

/// Reads lines of the daemon on a separate thread while the gate is open.
fn read_from(mut stdout: impl Read + Send + 'static, gate: Arc<Gate>) -> Receiver<Received> {
    let (sender, received) = channel();
    thread::spawn(move || {
        let mut line = Vec::new();
        let mut block = vec![0; 64 * 1024];
        loop {
            gate.wait();
            let n = stdout.read(&mut block).unwrap_or(0);
            if n == 0 {
                break;
            }
            let mut rest = &block[..n];
            while let Some(end) = memchr::memchr(b'\n', rest) {
                line.extend_from_slice(&rest[..end]);
                let whole = match String::from_utf8(std::mem::take(&mut line)) {
                    Ok(text) => Received::Line(text),
                    Err(bad) => Received::Broken(bad.into_bytes()),
                };
                if sender.send(whole).is_err() {
                    return;
                }
                rest = &rest[end + 1..];
            }
            line.extend_from_slice(rest);
        }
        if !line.is_empty() {
            let _ = sender.send(Received::Broken(line));
        }
        let _ = sender.send(Received::Eof);
    });
    received
}

pub(super) fn read_stderr(child: &mut Child) -> JoinHandle<String> {
    let mut stderr = child.stderr.take().unwrap();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stderr.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Waits for the exit code; `None` if a signal ended the process. After `limit` it kills the process and fails.
#[track_caller]
pub(crate) fn wait(child: &mut Child, limit: Duration) -> Option<i32> {
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

/// Whether the process whose id is in this file runs.
pub(crate) fn runs(pid_file: &Path) -> bool {
    let pid = fs::read_to_string(pid_file).unwrap();
    // A zombie has ended, although its parent has not waited for it.
    fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
        .is_ok_and(|stat| !stat.contains(") Z "))
}
