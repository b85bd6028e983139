//! `treelined import --hook` (protocol.md §3.17).

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::conversation;
use super::watch::Watcher;
use crate::harness::*;

/// A conversation whose last answer has the mark of its tool for the end of a turn.
fn ended(session: &str, turns: usize) -> String {
    let text = conversation(session, turns);
    let (begin, end) = text.rsplit_once("\"model\"").unwrap();
    format!("{begin}\"stop_reason\":\"end_turn\",\"model\"{end}")
}

/// The path where Claude Code keeps a conversation if `files` is the user's home.
fn transcript(home: &Home, session: &str) -> PathBuf {
    let folder = home.files().join(".claude/projects/p");
    fs::create_dir_all(&folder).unwrap();
    folder.join(format!("{session}.jsonl"))
}

fn said(home: &Home, session: &str) -> String {
    let path = transcript(home, session);
    let said = json!({"session_id": session, "transcript_path": path, "cwd": "/w", "hook_event_name": "Stop"});
    said.to_string()
}

/// Runs a hook as an agent does. The agent only gets the exit code, which says that the hook succeeded.
fn hook(home: &Home, args: &[&str], input: &str) {
    let args = [&["import", "--hook"], args].concat();
    let output = home.run(&args, &[("HOME", home.files().to_str().unwrap())], input);
    assert_eq!(output.code, Some(0), "{args:?} {}", output.stderr);
    assert_eq!(output.stdout, b"");
}

/// The entries of all sessions, by their texts.
fn texts(home: &Home) -> Vec<String> {
    let mut texts = Vec::new();
    for file in home.session_files() {
        if file
            .components()
            .any(|part| part.as_os_str().to_str().unwrap().starts_with('.'))
        {
            continue;
        }
        for line in fs::read_to_string(&file).unwrap().lines() {
            let Ok(entry) = serde_json::from_str::<Json>(line) else {
                continue;
            };
            let content = &entry["message"]["content"];
            let text = content.as_str().or(content[0]["text"].as_str());
            texts.extend(text.map(str::to_owned));
        }
    }
    texts.sort();
    texts
}

fn log(home: &Home) -> Vec<String> {
    let text = fs::read_to_string(home.sessions().join(".imports/hooks.log"));
    text.unwrap_or_default()
        .lines()
        .map(str::to_owned)
        .collect()
}

/// The answer was once imported a second after the turn or later, and without a watch it was never imported.
#[test]
fn a_hook_brings_the_turn_that_has_ended() {
    let home = Home::in_memory();
    fs::write(transcript(&home, "s"), ended("s", 2)).unwrap();
    fs::write(transcript(&home, "other"), ended("other", 1)).unwrap();
    hook(&home, &["claude-code"], &said(&home, "s"));
    let turns = ["answer 0", "answer 1", "question 0", "question 1"];
    eventually("the turn is there", || texts(&home) == turns);
    fs::write(transcript(&home, "s"), ended("s", 3)).unwrap();
    hook(&home, &["claude-code", &said(&home, "s")], "");
    eventually("the next turn is there", || texts(&home).len() == 6);
    assert_eq!(log(&home), [""; 0]);
}

/// A subagent has a file beside the conversation. If this file was newer than the conversation, the last answer of the
/// subagent was once skipped, and no later import brought it.
#[test]
fn a_hook_brings_the_subagents_of_its_conversation() {
    let home = Home::in_memory();
    fs::write(transcript(&home, "s"), ended("s", 1)).unwrap();
    let folder = transcript(&home, "s").with_extension("").join("subagents");
    fs::create_dir_all(&folder).unwrap();
    let agent = ended("s", 1)
        .replace("question 0", "the task")
        .replace("answer 0", "the result");
    let agent = agent.replace(
        "\"type\"",
        "\"isSidechain\":true,\"agentId\":\"a1\",\"type\"",
    );
    let path = folder.join("agent-a1.jsonl");
    fs::write(&path, agent.replace("s-", "x-").replace("msg_s", "msg_x")).unwrap();
    let file = fs::File::options().append(true).open(&path).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_millis(500))
        .unwrap();
    hook(&home, &["claude-code"], &said(&home, "s"));
    let all = ["answer 0", "question 0", "the result", "the task"];
    eventually("both are there", || texts(&home) == all);
}

#[test]
fn two_hooks_at_once_beside_a_watch_bring_both_turns_once() {
    let home = Home::in_memory();
    for session in ["s", "t"] {
        fs::write(transcript(&home, session), ended(session, 1)).unwrap();
    }
    let watcher = Watcher::start(&home);
    eventually("the watch has imported", || texts(&home).len() == 4);
    for session in ["s", "t"] {
        fs::write(transcript(&home, session), ended(session, 2)).unwrap();
    }
    std::thread::scope(|scope| {
        for session in ["s", "t"] {
            let home = Arc::clone(&home);
            scope.spawn(move || hook(&home, &["claude-code"], &said(&home, session)));
        }
    });
    eventually("both turns are there", || texts(&home).len() == 8);
    let mut found = texts(&home);
    found.dedup();
    assert_eq!(found.len(), 4, "each text once in each session");
    assert_eq!(texts(&home).len(), 8);
    let (_, stderr) = watcher.interrupt();
    assert_eq!(stderr, "");
    assert_eq!(log(&home), [""; 0]);
}

/// The agent once had to wait for the import, and for another import that was running.
#[test]
fn the_agent_does_not_wait_while_another_import_runs() {
    let home = Home::in_memory();
    fs::write(transcript(&home, "s"), ended("s", 1)).unwrap();
    fs::create_dir_all(home.sessions().join(".imports")).unwrap();
    let lock = File::create(home.sessions().join(".imports/lock")).unwrap();
    lock.lock().unwrap();
    hook(&home, &["claude-code"], &said(&home, "s"));
    assert_eq!(texts(&home), [""; 0]);
    drop(lock);
    eventually("the turn is there", || texts(&home).len() == 2);
}

/// A hook reads its input until a pause, and leaves the import to another process. In this test
/// no import can run before the hook has ended. The agents keep the input of the hook open, and one agent writes nothing.
#[test]
fn the_agent_goes_on_at_once() {
    let home = Home::in_memory();
    fs::write(transcript(&home, "s"), ended("s", 1)).unwrap();
    fs::create_dir_all(home.sessions().join(".imports")).unwrap();
    let lock = File::create(home.sessions().join(".imports/lock")).unwrap();
    lock.lock().unwrap();
    for input in ["", &said(&home, "s")] {
        let (stdin, mut agent) = std::io::pipe().unwrap();
        std::io::Write::write_all(&mut agent, input.as_bytes()).unwrap();
        let mut command = home.command(&["import", "--hook", "claude-code"], &[]);
        let status = command.stdin(stdin).env("HOME", home.files()).status();
        assert!(status.unwrap().success());
    }
    assert_eq!(texts(&home), [""; 0]);
    drop(lock);
    eventually("the turn is there", || texts(&home).len() == 2);
    assert_eq!(log(&home).len(), 1, "{:?}", log(&home));
}

/// On a busy machine an agent once wrote its input more than 120 ms after the start of the hook, and the turn was lost.
/// On a machine that is even busier, one of several agents may take more than a second.
#[test]
fn an_agent_may_write_late_and_in_pieces() {
    let home = Home::in_memory();
    fs::write(transcript(&home, "s"), ended("s", 1)).unwrap();
    let said = said(&home, "s");
    let (begin, end) = said.as_bytes().split_at(20);
    let is_heard = || {
        let before = log(&home).len();
        let mut command = home.command(&["import", "--hook", "claude-code"], &[]);
        let mut child = command.env("HOME", home.files()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::thread::sleep(Duration::from_millis(400));
        let begun = std::io::Write::write_all(&mut stdin, begin);
        std::thread::sleep(Duration::from_millis(20));
        let written = begun.and_then(|()| std::io::Write::write_all(&mut stdin, end));
        assert!(child.wait().unwrap().success());
        written.is_ok() && log(&home).len() == before
    };
    assert!((0..50).any(|_| is_heard()), "{:?}", log(&home));
    eventually("the turn is there", || texts(&home).len() == 2);
}

#[test]
fn hostile_hooks_harm_nothing() {
    let home = Home::in_memory();
    let secret = home.file("secret.jsonl", ended("s", 1).as_bytes());
    let link = transcript(&home, "link");
    std::os::unix::fs::symlink(&secret, &link).unwrap();
    let named = |path: &std::path::Path| json!({"transcript_path": path}).to_string();
    let hostile = [
        "no JSON".to_owned(),
        "[1]".to_owned(),
        "{\"transcript_path\":[]}".to_owned(),
        "{}".to_owned(),
        format!("{{\"session_id\":\"{}", "x".repeat(5 << 20)),
        "[".repeat(200_000),
        named(&secret),
        named(&link),
        named("/dev/zero".as_ref()),
        named(
            &home
                .files()
                .join(".claude/projects/p/../../../secret.jsonl"),
        ),
        "{\"transcript_path\":\"\\u001b[31m\\n\"}".to_owned(),
    ];
    for (number, input) in hostile.iter().enumerate() {
        hook(&home, &["claude-code"], input);
        assert_eq!(log(&home).len(), number + 1, "{input:.80}");
    }
    assert!(
        log(&home)
            .iter()
            .all(|line| line.len() < 2_000 && !line.contains('\u{1b}'))
    );
    assert_eq!(texts(&home), [""; 0]);
    // Some agents take exit code 2 as the order to continue.
    for args in [
        &["nonsense"][..],
        &["claude-code", "--watch"],
        &[],
        &["codex", "--no-such-option"],
    ] {
        hook(&home, args, "");
    }
    for config in ["/no/such/config.toml", "/dev/null/x"] {
        hook(&home, &["codex", "--config", config], "{}");
    }
}

/// A hook that had to wait more than ten seconds for another import once lost its turn.
#[test]
fn the_next_import_takes_over_what_a_hook_has_asked_for() {
    let home = Home::in_memory();
    let path = transcript(&home, "s");
    fs::write(&path, ended("s", 1)).unwrap();
    let folder = home.sessions().join(".imports/requests");
    fs::create_dir_all(&folder).unwrap();
    let request = json!({"tool": "claude-code", "paths": [path], "hasEnded": true});
    fs::write(folder.join("1.json"), request.to_string()).unwrap();
    home.run(&["import", "--from", "pi"], &[], "");
    assert_eq!(texts(&home).len(), 2);
    let left = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["lock"]);
}

/// Only some tools write the git branch of a conversation into their files, and few write its commit.
#[test]
fn a_hook_says_where_in_git_the_conversation_is() {
    let home = Home::in_memory();
    let work = home.files().join("work");
    fs::create_dir_all(work.join(".git/refs/heads")).unwrap();
    fs::write(work.join(".git/HEAD"), "ref: refs/heads/fix/cache\n").unwrap();
    let commit = "0123456789abcdef0123456789abcdef01234567";
    fs::write(
        work.join(".git/packed-refs"),
        format!("{commit} refs/heads/fix/cache\n"),
    )
    .unwrap();
    let input = said(&home, "s").replace("\"/w\"", &json!(work).to_string());
    fs::write(transcript(&home, "s"), ended("s", 1)).unwrap();
    hook(&home, &["claude-code"], &input);
    eventually("the turn is there", || texts(&home).len() == 2);
    let list = |branch: &str| {
        let arguments = ["list", "--all", "--json", "--branch", branch];
        let listed: Json = serde_json::from_str(&home.run(&arguments, &[], "").text()).unwrap();
        listed["sessions"].clone()
    };
    let place = json!({"branch": "fix/cache", "commit": commit, "worktree": work});
    assert_eq!(list("fix/cache")[0]["git"], place);
    assert_eq!(list("main"), json!([]));
    assert_eq!(log(&home), [""; 0]);
}
