//! A conversation was handed over to another agent. What setup has written brings the turns of that agent back: the
//! hooks of Claude Code and Codex, and the units of pi and Gemini CLI (session-file.md §5.8, "Home").

use crate::{Home, treelined, with};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SESSION: &str = "01a20124-4777-7de2-915b-ef7ddcee9bbf";
const AGENTS: [&str; 4] = ["claude-code", "codex", "gemini", "pi"];
const TIME: &str = "2026-03-01T10:00:00.000Z";
/// The tokens of an answer before the handoff, and of an answer that an agent adds after it.
const TOKENS: [u64; 2] = [100, 7];
const PATIENCE: Duration = Duration::from_secs(60);

/// A session of two turns, and agents that are set up.
struct Story {
    home: Home,
    treelined: PathBuf,
    /// The processes of the units, which watch for changes.
    units: Vec<Child>,
}

/// An agent to which the conversation was handed over.
struct Guest {
    agent: &'static str,
    native: String,
    file: PathBuf,
    /// The text of the agent's file.
    text: String,
    messages: usize,
}

impl Story {
    /// `None` if the program is not built.
    fn new() -> Option<Story> {
        let (home, treelined) = (Home::new(), treelined()?);
        let sessions = home.path("sessions");
        let options = [
            "--yes",
            "--no-import",
            "--daemon",
            treelined.to_str().unwrap(),
            "--session-dir",
            sessions.to_str().unwrap(),
        ];
        home.ok(&with(&AGENTS, &options));
        fs::create_dir_all(home.path("work")).unwrap();
        let header = json!({"type": "session", "version": 3, "id": SESSION, "timestamp": TIME,
            "cwd": home.path("work")});
        let mut text = format!("{header}\n");
        for number in 0..4 {
            let message = match number % 2 {
                0 => json!({"role": "user", "content": format!("first question {number}")}),
                _ => pi_answer(&format!("first answer {number}"), TOKENS[0]),
            };
            let parent = (number > 0).then(|| format!("e{}", number - 1));
            let entry = json!({"type": "message", "id": format!("e{number}"), "parentId": parent,
                "timestamp": TIME, "message": message});
            text += &format!("{entry}\n");
        }
        let mode = fs::Permissions::from_mode(0o700);
        fs::create_dir(&sessions).unwrap();
        fs::set_permissions(&sessions, mode).unwrap();
        home.file(
            &format!("sessions/project/2026-03-01T10-00-00-000Z_{SESSION}.jsonl"),
            &text,
        );
        Some(Story {
            home,
            treelined,
            units: Vec::new(),
        })
    }

    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .env_clear()
            .env("HOME", self.home.path(""))
            .env("PATH", "/usr/bin:/bin")
            .env("XDG_RUNTIME_DIR", self.home.path("run"))
            .current_dir(self.home.path("work"));
        command
    }

    fn treelined(&self, args: &[&str]) -> Value {
        let mut command = self.command(&self.treelined);
        command.arg("--session-dir").arg(self.home.path("sessions"));
        let done = command.args(args).stdin(Stdio::null()).output().unwrap();
        assert!(done.status.success(), "{args:?} {done:?}");
        serde_json::from_slice(&done.stdout).unwrap()
    }

    /// Starts the program of an agent's unit, as systemd does.
    fn start_unit(&mut self, agent: &str) {
        let unit = format!(".config/systemd/user/treelined-import-{agent}.service");
        let unit = self.home.read(&unit);
        let line = unit
            .lines()
            .find_map(|line| line.strip_prefix("ExecStart="));
        let mut words = line.unwrap().split(' ');
        let mut command = self.command(words.next().unwrap());
        let child = command
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        self.units.push(child.spawn().unwrap());
    }

    fn go_on(&self, entry: &str, agent: &'static str) -> Guest {
        let made = self.treelined(&[
            "continue", SESSION, entry, "--in", agent, "--no-run", "--json",
        ]);
        let mut file = PathBuf::from(made["files"][0]["path"].as_str().unwrap());
        let text = fs::read_to_string(&file).unwrap();
        if agent == "gemini" {
            // Gemini CLI keeps a copy in its own folder.
            let chats = self.home.path(".gemini/tmp/project/chats");
            fs::create_dir_all(&chats).unwrap();
            file = chats.join(file.file_name().unwrap());
        }
        Guest {
            agent,
            native: made["nativeId"].as_str().unwrap_or_default().to_owned(),
            file,
            text,
            messages: 0,
        }
    }

    /// Ends a turn of the agent: runs its hook, if it has one.
    fn end_turn(&self, guest: &Guest) {
        fs::write(&guest.file, &guest.text).unwrap();
        let input = match guest.agent {
            "claude-code" => json!({"hook_event_name": "Stop", "session_id": guest.native,
                "transcript_path": guest.file, "cwd": self.home.path("work")}),
            _ => json!({"type": "agent-turn-complete", "thread-id": guest.native}),
        };
        let mut command = match guest.agent {
            "claude-code" => {
                let settings = self.home.read(".claude/settings.json");
                let settings: Value = serde_json::from_str(&settings).unwrap();
                let hook = settings["hooks"]["Stop"][0]["hooks"][0]["command"].clone();
                let mut command = self.command("/bin/sh");
                command.args(["-c", hook.as_str().unwrap()]);
                command
            }
            "codex" => {
                let settings = self.home.read(".codex/config.toml");
                let notify = settings
                    .lines()
                    .find_map(|line| line.strip_prefix("notify = "));
                let notify: Vec<String> = serde_json::from_str(notify.unwrap()).unwrap();
                let mut command = self.command(&notify[0]);
                command.args(&notify[1..]).arg(input.to_string());
                command
            }
            _ => return,
        };
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // Codex gives all input as arguments, so its hook may not read stdin.
        let _closed = stdin.write_all(input.to_string().as_bytes());
        drop(stdin);
        assert!(child.wait().unwrap().success());
    }

    /// The entries of the only session.
    fn entries(&self) -> Vec<Value> {
        let files = self.home.files();
        let is_session = |path: &&PathBuf| {
            let name = path.strip_prefix(self.home.path("sessions"));
            let name = name.map(|name| name.to_str().unwrap().to_owned());
            name.is_ok_and(|name| !name.starts_with('.') && name.ends_with(".jsonl"))
        };
        let sessions: Vec<&PathBuf> = files.keys().filter(is_session).collect();
        let [session] = sessions[..] else {
            panic!("{sessions:?}")
        };
        let text = String::from_utf8(files[session].0.clone()).unwrap();
        let lines = text.lines();
        lines
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// Waits until a turn is below an entry, and checks that no entry is there twice. Returns the id of the answer.
    #[track_caller]
    fn comes_home(&self, entry: &str, [question, answer]: [&str; 2], turns: u64) -> String {
        let until = Instant::now() + PATIENCE;
        while !self.entries().iter().any(|entry| words(entry) == answer) {
            assert!(
                Instant::now() < until,
                "{answer} did not come: {}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        let entries = self.entries();
        let named = |name: &str| {
            let named: Vec<&Value> = entries.iter().filter(|it| words(it) == name).collect();
            assert_eq!(named.len(), 1, "{name}: {named:?}");
            named[0]
        };
        let (asked, answered) = (named(question), named(answer));
        assert_eq!(asked["parentId"], entry, "{question}");
        assert_eq!(answered["parentId"], asked["id"], "{answer}");
        let messages = entries.iter().filter(|entry| entry["type"] == "message");
        assert_eq!(messages.count() as u64, 4 + 2 * turns);
        let tokens = |entry: &Value| entry["message"]["usage"]["input"].as_u64();
        let tokens: u64 = entries.iter().filter_map(tokens).sum();
        assert_eq!(tokens, 2 * TOKENS[0] + turns * TOKENS[1]);
        answered["id"].as_str().unwrap().to_owned()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.home.path("sessions/.imports/hooks.log")).unwrap_or_default()
    }
}

impl Drop for Story {
    fn drop(&mut self) {
        for unit in &mut self.units {
            let _ended = kill_process(Pid::from_child(unit), Signal::INT);
            let _status = unit.wait();
        }
    }
}

/// The text of an entry; empty if it has none.
fn words(entry: &Value) -> &str {
    let content = &entry["message"]["content"];
    let text = content.as_str().or_else(|| content[0]["text"].as_str());
    text.unwrap_or_default()
}

fn pi_answer(text: &str, tokens: u64) -> Value {
    json!({"role": "assistant", "content": [{"type": "text", "text": text}], "api": "a", "provider": "p",
        "model": "m", "stopReason": "stop",
        "usage": {"input": tokens, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": tokens + 1}})
}

impl Guest {
    /// Adds a turn to the agent's file.
    fn say(&mut self, [question, answer]: [&str; 2]) {
        for (role, words) in [("user", question), ("assistant", answer)] {
            let name = self.file.file_stem().unwrap().to_string_lossy();
            let id = format!("{name}-{}", self.messages);
            self.messages += 1;
            for record in self.records(role, words, &id) {
                self.text += &format!("{record}\n");
            }
        }
        if self.agent == "gemini" {
            // The agent's mark for the end of a turn.
            self.text += "{\"$set\":{\"summary\":\"About it\"}}\n";
        }
    }

    /// The last value of a member in the records of the file.
    fn last(&self, member: &str) -> Value {
        let records = self.text.lines().rev();
        let mut records = records.map(|line| serde_json::from_str::<Value>(line).unwrap());
        let found = records.find_map(|record| Some(record.get(member)?.clone()));
        found.unwrap_or_default()
    }

    fn records(&self, role: &str, words: &str, id: &str) -> Vec<Value> {
        let is_user = role == "user";
        match self.agent {
            "claude-code" => {
                let mut message = json!({"role": role, "content": words});
                if !is_user {
                    message = json!({"id": format!("msg_{id}"), "role": role, "model": "claude-x",
                        "content": [{"type": "text", "text": words}], "stop_reason": "end_turn",
                        "usage": {"input_tokens": TOKENS[1], "output_tokens": 1}});
                }
                vec![
                    json!({"type": role, "uuid": id, "parentUuid": self.last("uuid"),
                    "sessionId": self.native, "timestamp": TIME, "message": message}),
                ]
            }
            "codex" => {
                let record = |kind: &str, payload: Value| json!({"timestamp": TIME, "type": kind, "payload": payload});
                let kind = if is_user { "input_text" } else { "output_text" };
                let message = json!({"type": "message", "role": role, "content": [{"type": kind, "text": words}]});
                let message = record("response_item", message);
                if is_user {
                    let started =
                        record("event_msg", json!({"type": "task_started", "turn_id": id}));
                    let shown = record(
                        "event_msg",
                        json!({"type": "user_message", "message": words}),
                    );
                    return vec![started, message, shown];
                }
                let usage = |turns: u64| {
                    json!({"input_tokens": turns * TOKENS[1], "output_tokens": turns,
                        "total_tokens": turns * (TOKENS[1] + 1)})
                };
                let all = usage(self.messages as u64 / 2);
                let info = json!({"last_token_usage": usage(1), "total_token_usage": all});
                let counted = record("event_msg", json!({"type": "token_count", "info": info}));
                let ended = record("event_msg", json!({"type": "task_complete", "turn_id": id}));
                vec![message, counted, ended]
            }
            "gemini" if is_user => {
                vec![
                    json!({"id": id, "timestamp": TIME, "type": "user", "content": [{"text": words}]}),
                ]
            }
            "gemini" => {
                let tokens = json!({"input": TOKENS[1], "output": 1, "total": TOKENS[1] + 1});
                vec![
                    json!({"id": id, "timestamp": TIME, "type": "gemini", "content": words, "model": "gemini-x",
                    "tokens": tokens}),
                ]
            }
            _ => {
                let message = match is_user {
                    true => json!({"role": "user", "content": words}),
                    false => pi_answer(words, TOKENS[1]),
                };
                vec![
                    json!({"type": "message", "id": id, "parentId": self.last("id"), "timestamp": TIME,
                    "message": message}),
                ]
            }
        }
    }
}

/// The conversation goes from one agent to another and back, and then continues in the first conversation of the first
/// agent. The turns that a hook or a unit imported were once a separate session.
#[test]
fn turns_of_agents_come_home_by_hooks_and_units() {
    for hops in [
        ["claude-code", "codex", "claude-code"],
        ["pi", "gemini", "pi"],
        ["codex", "pi", "codex"],
    ] {
        let Some(mut story) = Story::new() else {
            return;
        };
        for agent in ["gemini", "pi"] {
            story.start_unit(agent);
        }
        let mut above = "e3".to_owned();
        let mut guests: Vec<(Guest, String)> = Vec::new();
        for (hop, agent) in (0..).zip(hops) {
            let mut guest = story.go_on(&above, agent);
            let said = [
                format!("question of hop {hop}"),
                format!("answer of hop {hop}"),
            ];
            let said = [said[0].as_str(), said[1].as_str()];
            guest.say(said);
            story.end_turn(&guest);
            above = story.comes_home(&above, said, hop + 1);
            guests.push((guest, above.clone()));
        }
        let (mut first, answer) = guests.swap_remove(0);
        let said = ["another question", "another answer"];
        first.say(said);
        story.end_turn(&first);
        story.comes_home(&answer, said, 4);
        // Then everything is imported again at once, without the ledger of earlier imports. This brings nothing new.
        for unit in story.units.drain(..) {
            kill_process(Pid::from_child(&unit), Signal::INT).unwrap();
            assert!(unit.wait_with_output().is_ok());
        }
        for is_forgotten in [false, true] {
            if is_forgotten {
                fs::remove_dir_all(story.home.path("sessions/.imports")).unwrap();
            }
            let report = story.treelined(&["import", "--final", "--json"]);
            let totals = &report["totals"];
            assert_eq!(totals["entriesAdded"], 0, "{hops:?} {report}");
            assert_eq!(totals["failed"], 0, "{hops:?} {report}");
        }
        assert_eq!(story.log(), "", "{hops:?}");
    }
}
