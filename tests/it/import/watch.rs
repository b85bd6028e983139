//! `treelined import --watch`.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::conversation;
use crate::harness::*;
use rustix::process::{Pid, Signal, kill_process};

pub(super) struct Watcher {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Watcher {
    pub(super) fn start(home: &Home) -> Self {
        let path = home.files();
        let args = [
            "import",
            "--watch",
            "--from",
            "claude-code",
            path.to_str().unwrap(),
        ];
        let mut child = home.command(&args, &[]).spawn().unwrap();
        drop(child.stdin.take());
        let stdout = child.stdout.take().unwrap();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let read = Arc::clone(&lines);
        thread::spawn(move || collect(stdout, &read));
        Self { child, lines }
    }

    /// Waits for a line that has all of these words.
    pub(super) fn says(&self, words: &[&str]) {
        eventually(&format!("a line with {words:?}"), || {
            let lines = self.lines.lock().unwrap();
            let has = |line: &String| words.iter().all(|word| line.contains(word));
            lines.iter().any(has)
        });
    }

    /// How often the threads of the process continued after a wait, and the number of its threads.
    fn wake_ups(&self) -> (u64, usize) {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let (mut switches, mut threads) = (0, 0);
        for task in tasks {
            let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap();
            let count = status
                .lines()
                .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            switches += count.unwrap().trim().parse::<u64>().unwrap();
            threads += 1;
        }
        (switches, threads)
    }

    /// Waits until an import has begun and ended.
    fn imports_once(&self) {
        for is_running in [true, false] {
            eventually("an import runs, and ends", || {
                let is_idle = children(self.child.id()).trim().is_empty();
                is_idle != is_running
            });
        }
    }

    /// Interrupts the process as a terminal does, and returns its exit code and stderr.
    pub(super) fn interrupt(mut self) -> (Option<i32>, String) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        let code = wait(&mut self.child, DEADLINE);
        let mut stderr = String::new();
        let mut pipe = self.child.stderr.take().unwrap();
        pipe.read_to_string(&mut stderr).unwrap();
        (code, stderr)
    }
}

fn collect(stdout: ChildStdout, lines: &Mutex<Vec<String>>) {
    for line in BufReader::new(stdout).lines() {
        lines.lock().unwrap().push(line.unwrap());
    }
}

/// The children of a process, by their ids.
fn children(of: u32) -> String {
    fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default()
}

#[test]
fn a_watch_imports_what_is_written_and_sleeps_in_between() {
    let home = Home::in_memory();
    home.file("s.jsonl", conversation("s", 2).as_bytes());
    let watcher = Watcher::start(&home);
    // The last answer is held back, since it may still grow.
    watcher.says(&["kept claude-code: 3 entries of "]);
    watcher.says(&["held claude-code: 1 entry of ", "at most"]);
    watcher.says(&["--final"]);

    let text = conversation("t", 3);
    let path = home.files().join("t.jsonl");
    let mut file = fs::File::create(path).unwrap();
    let (first, rest) = text.as_bytes().split_at(text.len() / 2);
    file.write_all(first).unwrap();
    thread::sleep(Duration::from_millis(300));
    file.write_all(rest).unwrap();

    drop(file);
    watcher.says(&["kept claude-code: 5 entries of "]);
    eventually("the import ends", || {
        children(watcher.child.id()).trim().is_empty()
    });

    // Reading the sources is not a change.
    fs::read(home.files().join("t.jsonl")).unwrap();
    let mut before = watcher.wake_ups();
    let sleeps = (0..10).any(|_| {
        thread::sleep(Duration::from_secs(3));
        let earlier = std::mem::replace(&mut before, watcher.wake_ups());
        before == earlier
    });
    assert!(sleeps, "an idle watch does not wake up");

    // The tool deletes its file. The session and the kept source stay, and the answer that was held back is imported.
    fs::remove_file(home.files().join("s.jsonl")).unwrap();
    watcher.says(&["kept claude-code: 1 entry of "]);
    home.file("u.jsonl", conversation("u", 4).as_bytes());
    watcher.says(&["kept claude-code: 7 entries of "]);
    let sessions = home.session_files();
    let is_session = |path: &&std::path::PathBuf| !path.to_str().unwrap().contains("/sessions/.");
    assert_eq!(sessions.iter().filter(is_session).count(), 3);
    assert_eq!(
        fs::read_dir(home.sessions().join(".origins"))
            .unwrap()
            .count(),
        3
    );

    let (_, stderr) = watcher.interrupt();
    assert_eq!(stderr, "");
    let mut d = Daemon::quiet_in(&home);
    let result = d.ok("import_sessions", super::params(&home));
    assert_eq!(result["totals"]["failed"], 0);
    assert_eq!(
        result["totals"]["entriesAdded"], 2,
        "the held back ends of t and u"
    );
}

/// An answer was once imported ten minutes after its end, although its record said that it had ended.
#[test]
fn a_watch_imports_a_marked_answer_in_its_first_round_after_the_end() {
    let home = Home::in_memory();
    let watcher = Watcher::start(&home);
    let marked = |session: &str| {
        let text = conversation(session, 2);
        let (begin, end) = text.rsplit_once("\"model\"").unwrap();
        format!("{begin}\"stop_reason\":\"end_turn\",\"model\"{end}")
    };
    home.file("s.jsonl", conversation("s", 3).as_bytes());
    watcher.says(&["kept claude-code: 5 entries of "]);
    home.file("t.jsonl", marked("t").as_bytes());
    // The answer is not held back until a later round: an answer without a mark waits for ten minutes, longer than this
    // test.
    watcher.says(&["kept claude-code: 4 entries of "]);
    let (_, stderr) = watcher.interrupt();
    assert_eq!(stderr, "");
}

/// If another import was running, a watch that began then once failed, and a watch that had begun earlier slept for a
/// minute.
#[test]
fn a_watch_waits_for_another_import() {
    let home = Home::in_memory();
    home.file("s.jsonl", conversation("s", 2).as_bytes());
    fs::create_dir_all(home.sessions().join(".imports")).unwrap();
    let lock = fs::File::create(home.sessions().join(".imports/lock")).unwrap();
    lock.lock().unwrap();
    let watcher = Watcher::start(&home);
    // The watch has found the lock taken once.
    watcher.imports_once();
    drop(lock);
    watcher.says(&["kept claude-code: 3 entries of "]);
    let lock = fs::File::open(home.sessions().join(".imports/lock")).unwrap();
    lock.lock().unwrap();
    home.file("t.jsonl", conversation("t", 3).as_bytes());
    watcher.imports_once();
    drop(lock);
    watcher.says(&["kept claude-code: 5 entries of "]);
    let (_, stderr) = watcher.interrupt();
    assert_eq!(stderr, "");
}

/// The running import ends with the watch, and leaves complete sessions.
#[test]
fn an_interrupt_during_an_import_leaves_whole_sessions_and_no_process() {
    let home = Home::in_memory();
    for number in 0..60 {
        let session = format!("s{number:02}");
        let text = conversation(&session, 60);
        home.file(&format!("{session}.jsonl"), text.as_bytes());
    }
    let watcher = Watcher::start(&home);
    eventually("an import runs", || {
        !children(watcher.child.id()).trim().is_empty()
    });
    let import = children(watcher.child.id());
    eventually("a session is written", || {
        home.session_files()
            .iter()
            .any(|path| !path.to_str().unwrap().contains("/sessions/."))
    });
    let (_, stderr) = watcher.interrupt();
    assert_eq!(stderr, "");
    for child in import.split_whitespace() {
        eventually("the import ends", || {
            // A zombie has ended too: its parent has not waited for it yet.
            let stat = fs::read_to_string(format!("/proc/{child}/stat"));
            !stat.is_ok_and(|stat| !stat.contains(") Z "))
        });
    }
    for path in home.session_files() {
        if !path.to_str().unwrap().contains("/sessions/.") {
            let text = fs::read_to_string(&path).unwrap();
            let last: Json = serde_json::from_str(text.lines().last().unwrap()).unwrap();
            assert_eq!(last["customType"], "treelined.leaf", "{path:?}");
        }
    }
}
