//! A daemon in a team, and its client.

use crate::support::Machine;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// The time within which everything that a test waits for must happen.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Daemon {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    /// Notifications that no caller has taken.
    notices: VecDeque<Value>,
    next: u64,
}

impl Daemon {
    pub(crate) fn start(machine: &Machine) -> Self {
        Self::started(machine.command(&[]))
    }

    /// Starts a daemon that uses no team, whatever the configuration of the machine says.
    pub(crate) fn without_team(machine: &Machine) -> Self {
        Self::started(machine.command(&["--log", "files"]))
    }

    /// Starts a daemon whose clock is wrong by `shift`, in the notation of `faketime`. Only the clock is wrong: pauses
    /// have their usual length.
    pub(crate) fn start_at(machine: &Machine, shift: &str) -> Self {
        let right = machine.command(&[]);
        let mut wrong = Command::new("faketime");
        wrong.env("DONT_FAKE_MONOTONIC", "1").args(["-f", shift]);
        wrong.arg(right.get_program()).args(right.get_args());
        for (name, value) in right.get_envs() {
            match value {
                Some(value) => wrong.env(name, value),
                None => wrong.env_remove(name),
            };
        }
        wrong.current_dir(right.get_current_dir().unwrap());
        Self::started(wrong)
    }

    fn started(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, messages) = mpsc::channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(serde_json::from_str(&line).unwrap()).is_err() {
                    break;
                }
            }
        });
        Self {
            input: child.stdin.take(),
            child,
            messages,
            notices: VecDeque::new(),
            next: 0,
        }
    }

    /// Sends a request; [`Self::answer`] waits for its response.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let request =
            json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params });
        writeln!(self.input.as_mut().unwrap(), "{request}").unwrap();
        self.next
    }

    /// The response to a request: its result, or its error.
    #[track_caller]
    pub(crate) fn answer(&mut self, id: u64) -> Result<Value, Value> {
        loop {
            let received = self.messages.recv_timeout(PATIENCE);
            let mut message = received.unwrap_or_else(|_| panic!("no answer to request {id}"));
            if message.get("method").is_some() {
                self.notices.push_back(message);
            } else if message["id"] == id {
                return match message.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(message["result"].take()),
                };
            }
        }
    }

    pub(crate) fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// The result of a call that must succeed.
    #[track_caller]
    pub(crate) fn done(&mut self, method: &str, params: Value) -> Value {
        let answer = self.call(method, params);
        answer.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// The kind of the error of a call that must fail.
    #[track_caller]
    pub(crate) fn kind(&mut self, method: &str, params: Value) -> String {
        match self.call(method, params) {
            Ok(done) => panic!("{method}: {done}"),
            Err(error) => error["data"]["kind"].as_str().unwrap().to_owned(),
        }
    }

    /// Appends a message of the user.
    #[track_caller]
    pub(crate) fn say(&mut self, session: &str, text: &str) -> Value {
        self.done("append_message", message(session, text))
    }

    /// The next notification for which `fits` returns true.
    #[track_caller]
    pub(crate) fn notice(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            if let Some(at) = self.notices.iter().position(&fits) {
                return self.notices.remove(at).unwrap();
            }
            let left = PATIENCE.saturating_sub(began.elapsed());
            let message = self.messages.recv_timeout(left);
            self.notices.push_back(message.unwrap());
        }
    }

    /// Drops the notifications that have arrived.
    pub(crate) fn forget(&mut self) {
        self.notices.clear();
    }

    /// Waits until the entry with this id, of another writer, is announced.
    #[track_caller]
    pub(crate) fn hears_of(&mut self, entry: &str) {
        self.notice(|message| {
            let params = &message["params"];
            let entries = params["entries"].as_array();
            params["origin"] == "other"
                && entries.is_some_and(|all| all.iter().any(|one| one["id"] == entry))
        });
    }

    /// The ids of entries of other writers that were announced, in the order of the notifications, without those that a
    /// caller has taken.
    pub(crate) fn heard(&self) -> Vec<String> {
        let of_others = |message: &&Value| message["params"]["origin"] == "other";
        let notices = self.notices.iter().filter(of_others);
        let ids = notices.filter_map(|message| message["params"]["entryIds"].as_array());
        ids.flatten()
            .filter_map(|id| id.as_str().map(str::to_owned))
            .collect()
    }

    /// The resident memory of the daemon, in bytes.
    pub(crate) fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.unwrap().trim().trim_end_matches(" kB");
        kilobytes.parse::<u64>().unwrap() << 10
    }

    /// Kills the daemon.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends the daemon by the end of its input.
    pub(crate) fn end(mut self) {
        self.input.take();
        self.child.wait().unwrap();
    }
}

pub(crate) fn message(session: &str, text: &str) -> Value {
    json!({ "sessionId": session, "message": { "role": "user", "content": text } })
}
