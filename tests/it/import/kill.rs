//! An import that is killed: all files that exist are complete, and the next import does the rest.

use std::process::Stdio;
use std::thread;
use std::time::Duration;

use super::{conversation, params};
use crate::harness::*;

/// The session files by name, with each line parsed.
fn sessions(home: &Home) -> Vec<(String, Vec<Json>)> {
    let read = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.ends_with('\n'), "{path:?} is whole");
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, lines.collect())
    };
    let files = home.session_files();
    let root = home.sessions();
    let is_session = |path: &std::path::PathBuf| {
        let inner = path.strip_prefix(&root).unwrap().to_str().unwrap();
        !inner.starts_with('.')
    };
    files.into_iter().filter(is_session).map(read).collect()
}

#[test]
fn a_killed_import_is_completed_by_the_next_one() {
    let kills = if is_long_run() { 200 } else { 12 };
    let mut random = seeded_random(20_260_201);
    for kill in 0..kills {
        let home = Home::in_memory();
        for number in 0..20 {
            let session = format!("s{number}");
            let text = conversation(&session, 40);
            home.file(&format!("{session}.jsonl"), text.as_bytes());
        }
        for _ in 0..2 {
            let mut d = Daemon::quiet_in(&home);
            d.send("import_sessions", params(&home));
            thread::sleep(Duration::from_millis(random.below(60) as u64));
            d.kill();
            for (name, lines) in sessions(&home) {
                assert_eq!(lines[0]["type"], "session", "kill {kill}: {name}");
                let last = lines.last().unwrap();
                assert_eq!(last["customType"], "treelined.leaf", "kill {kill}: {name}");
            }
        }
        let mut d = Daemon::quiet_in(&home);
        let result = d.ok("import_sessions", params(&home));
        assert_eq!(result["totals"]["failed"], 0, "kill {kill}");
        let found = sessions(&home);
        assert_eq!(found.len(), 20, "kill {kill}");
        for (name, lines) in found {
            // The header, 80 messages and one leaf record: nothing twice.
            assert_eq!(lines.len(), 82, "kill {kill}: {name}");
        }
        let again = d.ok("import_sessions", params(&home));
        assert_eq!(again["totals"]["entriesAdded"], 0, "kill {kill}");
        assert_eq!(again["totals"]["unchanged"], 20, "kill {kill}");
    }
}

/// The command once used its own daemon, which continued after the command was killed, so the next import found the
/// lock taken.
#[test]
fn a_killed_command_leaves_no_import_under_way() {
    let home = Home::in_memory();
    for number in 0..40 {
        let session = format!("s{number}");
        home.file(
            &format!("{session}.jsonl"),
            conversation(&session, 200).as_bytes(),
        );
    }
    let folder = home.files().to_str().unwrap().to_owned();
    let args = ["import", "--final", "--json", &folder];
    let mut random = seeded_random(20_261_122);
    for _ in 0..8 {
        let mut command = home.command(&args, &[]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        thread::sleep(Duration::from_millis(random.below(120) as u64));
        child.kill().unwrap();
        child.wait().unwrap();
        home.run(&args, &[], "").clean();
        for (_, lines) in sessions(&home) {
            // The header, 400 messages and one leaf record.
            assert_eq!(lines.len(), 402);
        }
    }
}
