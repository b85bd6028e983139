//! Imports that run at the same time as another one, or are cancelled.

use std::fs::File;
use std::thread;
use std::time::Duration;

use super::{conversation, params};
use crate::harness::*;

#[test]
fn an_import_during_another_one_is_refused() {
    let home = Home::new();
    home.file("s.jsonl", conversation("s", 2).as_bytes());
    let mut d = Daemon::quiet_in(&home);
    d.ok("import_sessions", params(&home));
    let lock = File::open(home.sessions().join(".imports/lock")).unwrap();
    lock.lock().unwrap();
    d.err_kind("import_sessions", params(&home), "importBusy");
    let path = home.files();
    let args = ["import", "--from", "claude-code", path.to_str().unwrap()];
    let output = home.run(&args, &[], "");
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("importBusy"), "{output:?}");
    // A dry run writes nothing, so it may run beside another import.
    let mut dry = params(&home);
    dry["dryRun"] = json!(true);
    d.ok("import_sessions", dry);
    drop(lock);
    d.ok("import_sessions", params(&home));
}

#[test]
fn a_cancelled_import_keeps_the_sessions_that_are_written() {
    const SESSIONS: usize = 150;
    let home = Home::in_memory();
    for number in 0..SESSIONS {
        let session = format!("s{number:03}");
        let text = conversation(&session, 60);
        home.file(&format!("{session}.jsonl"), text.as_bytes());
    }
    let mut d = Daemon::quiet_in(&home);
    let id = d.send("import_sessions", params(&home));
    let written = |home: &Home| {
        let files = home.session_files().into_iter();
        let root = home.sessions();
        let files = files.filter(|path| {
            let inner = path.strip_prefix(&root).unwrap().to_str().unwrap();
            !inner.starts_with('.')
        });
        files.collect::<Vec<_>>()
    };
    eventually("a session is written", || !written(&home).is_empty());
    d.notify("$/cancel_request", json!({"requestId": id}));
    let error = d.response(&id).expect_err("a cancelled import is an error");
    assert_eq!(error.code, -32800);
    let kept = written(&home);
    assert!(!kept.is_empty() && kept.len() < SESSIONS, "{}", kept.len());
    let before: Vec<Vec<u8>> = kept
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect();
    for bytes in &before {
        let last = String::from_utf8_lossy(bytes);
        let last: Json = serde_json::from_str(last.lines().last().unwrap()).unwrap();
        assert_eq!(last["customType"], "treelined.leaf");
    }
    thread::sleep(Duration::from_millis(100));
    assert_eq!(written(&home), kept, "nothing is written after the answer");
    let result = d.ok("import_sessions", params(&home));
    assert_eq!(result["totals"]["sessions"], SESSIONS);
    assert_eq!(result["totals"]["failed"], 0);
    assert_eq!(written(&home).len(), SESSIONS);
    let after: Vec<Vec<u8>> = kept
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect();
    assert!(
        before == after,
        "sessions that were written are not written again"
    );
}
