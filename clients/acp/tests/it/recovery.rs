//! Records are completed after the recorder was killed.

use crate::{AGENT, Editor, Folders, daemon, note_slow, row};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

impl Folders {
    /// Has a conversation with this number of turns, and kills the recorder within the next turn.
    fn killed_after(&self, daemon: &Path, turns: usize) {
        let mut command = self.command(daemon);
        command.args(["--", "python3", AGENT]);
        let mut editor = Editor::start(command);
        editor.ask("session/new", json!({"cwd": self.path("work")}));
        for turn in 0..turns {
            editor.prompt("s1", &format!("turn {turn}"));
        }
        let prompt = json!([{"type": "text", "text": "slow"}]);
        editor.begin(
            "session/prompt",
            json!({"sessionId": "s1", "prompt": prompt}),
        );
        while editor.next_message()["params"]["update"]["content"]["text"] != "slow" {}
        editor.child.kill().unwrap();
        editor.child.wait().unwrap();
    }

    /// Checks the record of a conversation that was killed: one path, and each text once.
    fn check_turns(&self, turns: usize) {
        let mut expected = vec![row("acp.session", "", None)];
        for turn in (0..turns)
            .map(|turn| format!("turn {turn}"))
            .chain(["slow".to_owned()])
        {
            let last = expected.len() - 1;
            expected.push(row("user", &turn, Some(last)));
            expected.push(row(
                "assistant",
                &format!("You said: {turn}"),
                Some(last + 1),
            ));
        }
        assert_eq!(self.recorded(), expected);
    }
}

/// Once 100 turns were answered, but only 32 of them were recorded: the others were not in the journal yet.
#[test]
fn every_turn_that_was_answered_before_a_kill_is_recorded() {
    // The first records nothing while it runs.
    for daemon in [PathBuf::from("/nonexistent/treelined"), daemon()] {
        let folders = Folders::new();
        folders.killed_after(&daemon, 100);
        folders.recover();
        folders.check_turns(100);
    }
}

/// A recorder may be killed between any two of its three writes: to the session, to the file of the position, and to
/// the journal, which notes that both are done.
#[test]
fn a_change_that_was_made_before_a_kill_is_not_made_again() {
    let folders = Folders::new();
    folders.killed_after(Path::new("/nonexistent/treelined"), 3);
    let [path] = &folders.journals()[..] else {
        panic!("one journal")
    };
    let journal = std::fs::read(path).unwrap();
    folders.recover();
    folders.check_turns(3);
    // Nothing is noted.
    std::fs::write(path, &journal).unwrap();
    folders.recover();
    folders.check_turns(3);
    // Nor is the position known.
    std::fs::remove_dir_all(folders.path("state/sessions")).unwrap();
    std::fs::write(path, &journal).unwrap();
    folders.recover();
    folders.check_turns(3);
    // The conversation goes on at its end.
    let mut editor = folders.recorder(&json!([]));
    let cwd = folders.path("work");
    editor.ask("session/resume", json!({"sessionId": "s1", "cwd": cwd}));
    editor.prompt("s1", "thanks");
    assert_eq!(editor.end(), 0);
    assert_eq!(folders.recorded()[9], row("user", "thanks", Some(8)));
}

#[test]
fn the_record_of_an_agent_is_completed_by_the_start_of_another() {
    let folders = Folders::new();
    folders.killed_after(Path::new("/nonexistent/treelined"), 1);
    let began = Instant::now();
    let ended = folders
        .command(&daemon())
        .args(["--", "true"])
        .output()
        .unwrap();
    assert!(ended.status.success(), "{ended:?}");
    note_slow(began);
    folders.check_turns(1);
    let mut editor = folders.recorder(&json!([]));
    let cwd = folders.path("work");
    editor.ask("session/resume", json!({"sessionId": "s1", "cwd": cwd}));
    editor.prompt("s1", "thanks");
    assert_eq!(editor.end(), 0);
    assert_eq!(folders.recorded()[5], row("user", "thanks", Some(4)));
}

#[test]
fn a_torn_journal_and_lines_that_are_not_json_are_not_an_obstacle() {
    let folders = Folders::new();
    folders.killed_after(Path::new("/nonexistent/treelined"), 2);
    let [path] = &folders.journals()[..] else {
        panic!("one journal")
    };
    let mut journal = std::fs::read(path).unwrap();
    for line in [
        "{\"agent\":starting}\n",
        "{\"agent\":1,\"done\":9}\n",
        "\n",
        "\"gap\"\n",
        "{\"agent\":{\"me",
    ] {
        journal.extend_from_slice(line.as_bytes());
    }
    std::fs::write(path, &journal).unwrap();
    folders.recover();
    let recorded = folders.recorded();
    assert_eq!(recorded[6], row("assistant", "You said: slow", Some(5)));
    assert_eq!(recorded[7].0, "acp.gap");
}

#[test]
fn a_long_conversation_does_not_fill_the_journal() {
    let folders = Folders::new();
    let mut editor = folders.recorder(&json!([]));
    editor.ask("session/new", json!({"cwd": folders.path("work")}));
    let text = "word ".repeat(20_000);
    for _turn in 0..20 {
        editor.prompt("s1", &text);
    }
    // Nothing is open: the journal is emptied once the last turn is written.
    let end = std::time::Instant::now() + Duration::from_secs(60);
    let length = || folders.journals()[0].metadata().unwrap().len();
    while length() > 512 << 10 {
        assert!(std::time::Instant::now() < end, "{} bytes", length());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(editor.end(), 0);
    assert_eq!(folders.recorded().len(), 41);
}

#[test]
fn a_killed_recorder_loses_nothing_and_writes_nothing_twice() {
    let folders = Folders::new();
    for round in 0..6_u64 {
        let mut editor = folders.recorder(&json!([]));
        if round == 0 {
            editor.ask("session/new", json!({"cwd": folders.path("work")}));
        } else {
            editor.ask(
                "session/resume",
                json!({"sessionId": "s1", "cwd": folders.path("work")}),
            );
        }
        editor.prompt("s1", &format!("prompt {round}"));
        let prompt = json!([{"type": "text", "text": format!("slow {round}")}]);
        editor.begin(
            "session/prompt",
            json!({"sessionId": "s1", "prompt": prompt}),
        );
        while editor.next_message()["params"]["update"]["content"]["text"]
            != format!("slow {round}")
        {}
        std::thread::sleep(Duration::from_millis(round * 70));
        editor.child.kill().unwrap();
        editor.child.wait().unwrap();
    }
    let mut editor = folders.recorder(&json!([]));
    editor.ask("initialize", json!({}));
    assert_eq!(editor.end(), 0);
    let texts: Vec<_> = folders
        .recorded()
        .into_iter()
        .map(|(_, text, _)| text)
        .collect();
    for round in 0..6 {
        for text in [format!("prompt {round}"), format!("slow {round}")] {
            let count = texts.iter().filter(|other| **other == text).count();
            assert_eq!(count, 1, "{text}: {texts:#?}");
        }
        let text = format!("You said: prompt {round}");
        assert_eq!(
            texts.iter().filter(|other| **other == text).count(),
            1,
            "{text}: {texts:#?}"
        );
    }
}

#[test]
fn without_a_daemon_the_conversation_goes_on() {
    let folders = Folders::new();
    let mut command = folders.command(Path::new("/nonexistent/treelined"));
    command.args(["--", "python3", AGENT]);
    let mut editor = Editor::start(command);
    editor.ask("session/new", json!({"cwd": folders.path("work")}));
    editor.prompt("s1", "one");
    assert_eq!(editor.end(), 0);
    // The next start records it.
    let mut editor = folders.recorder(&json!([]));
    editor.ask("initialize", json!({}));
    assert_eq!(editor.end(), 0);
    assert_eq!(folders.recorded()[2].1, "You said: one");
}
