//! `import_sessions`, `import_report` and `treelined import`. protocol.md §3.16, session-file.md §5.8.

mod damage;
mod forget;
mod hook;
mod interrupted;
mod kill;
mod large;
mod native_ids;
mod order;
mod places;
mod redact;
mod sessions;
mod watch;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use crate::harness::*;

/// A record of a Claude Code session.
fn record(session: &str, kind: &str, number: usize, message: &Json) -> String {
    let parent = number
        .checked_sub(1)
        .map(|parent| format!("{session}-{parent}"));
    let record = json!({
        "type": kind, "uuid": format!("{session}-{number}"), "parentUuid": parent, "sessionId": session,
        "timestamp": format!("2026-01-01T00:00:{:02}.001Z", number % 60), "cwd": "/w", "message": message,
    });
    format!("{record}\n")
}

/// A conversation with this number of turns.
fn conversation(session: &str, turns: usize) -> String {
    let turn = |turn: usize| {
        let asked = json!({"role": "user", "content": format!("question {turn}")});
        let said = json!({
            "id": format!("msg_{session}_{turn}"), "role": "assistant", "model": "m",
            "content": [{"type": "text", "text": format!("answer {turn}")}],
            "usage": {"input_tokens": 1, "output_tokens": 2},
        });
        let (asked, said) = (
            record(session, "user", 2 * turn, &asked),
            record(session, "assistant", 2 * turn + 1, &said),
        );
        asked + &said
    };
    (0..turns).map(turn).collect()
}

fn params(home: &Home) -> Json {
    json!({"from": "claude-code", "paths": [home.files()], "final": true})
}

fn imported(home: &Arc<Home>) -> (Daemon, Json) {
    home.file("s.jsonl", conversation("s", 2).as_bytes());
    let mut d = Daemon::quiet_in(home);
    let result = d.ok("import_sessions", params(home));
    (d, result)
}

#[test]
fn an_imported_session_opens_and_continues() {
    let home = Home::new();
    let (mut d, result) = imported(&home);
    let row = &result["sessions"][0];
    assert_eq!(row["entriesAdded"], 4);
    assert_eq!(row["created"], true);
    d.open(&PathBuf::from(row["path"].as_str().unwrap()));
    assert_eq!(d.ids().len(), 4);
    let context = d.ok("get_context", json!({"format": "llm"}));
    let roles: Vec<&str> = context["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
    d.user("mine", "and now?");
    d.err_kind("undo_navigation", json!({}), "nothingToUndo");
}

#[test]
fn the_report_of_an_import_is_kept_with_the_session() {
    let home = Home::new();
    let (mut d, result) = imported(&home);
    d.open(&PathBuf::from(
        result["sessions"][0]["path"].as_str().unwrap(),
    ));
    let report = d.ok("import_report", json!({}));
    let imports = report["imports"].as_array().unwrap();
    assert_eq!(imports.len(), 1);
    assert_eq!(imports[0]["sourceLeaf"], d.leaf());
    assert_eq!(imports[0]["report"]["session"], result["sessions"][0]);
    assert_eq!(imports[0]["report"]["files"][0], result["files"][0]);
}

#[test]
fn clients_of_an_open_session_hear_of_imported_entries() {
    let home = Home::new();
    let (mut d, result) = imported(&home);
    d.open(&PathBuf::from(
        result["sessions"][0]["path"].as_str().unwrap(),
    ));
    let before = d.ids();
    home.file("s.jsonl", conversation("s", 3).as_bytes());
    d.ok("import_sessions", params(&home));
    let news = d.notification("entries_appended");
    assert_eq!(news["origin"], "other");
    assert_eq!(d.ids().len(), before.len() + 2);
}

#[test]
fn a_deleted_session_is_not_imported_again() {
    let home = Home::new();
    let (mut d, result) = imported(&home);
    let id = result["sessions"][0]["sessionId"].clone();
    d.ok("delete_session", json!({"sessionId": id}));
    let again = d.ok("import_sessions", params(&home));
    assert_eq!(again["sessions"][0]["skipped"], "trashed");
    assert_eq!(again["totals"]["entriesAdded"], 0);
    let mut wanted = params(&home);
    wanted["again"] = id.clone();
    let back = d.ok("import_sessions", wanted);
    assert_eq!(back["sessions"][0]["entriesAdded"], 4);
    assert_eq!(back["sessions"][0]["sessionId"], id);
}

#[test]
fn a_missing_path_and_one_inside_the_session_directory_are_refused() {
    let home = Home::new();
    let mut d = Daemon::quiet_in(&home);
    fs::create_dir_all(home.sessions()).unwrap();
    for path in [home.files().join("none"), home.sessions()] {
        d.err_kind("import_sessions", json!({"paths": [path]}), "invalidParams");
    }
    for since in ["last week", "2026-13-01"] {
        d.err_kind("import_sessions", json!({"since": since}), "invalidParams");
    }
}

#[test]
fn the_command_prints_the_result_and_its_exit_code_says_what_failed() {
    let home = Home::new();
    let path = home.file("s.jsonl", conversation("s", 2).as_bytes());
    let path = path.to_str().unwrap();
    let args = ["import", "--from", "claude-code", "--final", path];
    let output = home.run(&[&args[..], &["--dry-run", "--json"]].concat(), &[], "");
    assert_eq!(output.code, Some(0), "{output:?}");
    let result: Json = serde_json::from_str(&output.text()).unwrap();
    assert_eq!(result["totals"]["entriesAdded"], 4);
    let output = home.run(&args, &[], "").clean();
    assert!(output.text().contains("claude-code"), "{output:?}");
    assert!(output.text().contains("1 new session"), "{output:?}");
    let output = home.run(&args, &[], "").clean();
    assert!(output.text().contains("nothing new"), "{output:?}");
    let missing = home.run(&["import", "/does/not/exist"], &[], "");
    assert_eq!(missing.code, Some(2), "{missing:?}");
    let ours = home.sessions();
    let ours = home.run(&["import", ours.to_str().unwrap()], &[], "");
    assert_eq!(ours.code, Some(2), "{ours:?}");
    let broken = home.file("rollout-x.jsonl.zst", b"\x28\xb5\x2f\xfd no");
    let output = home.run(
        &["import", "--from", "codex", broken.to_str().unwrap()],
        &[],
        "",
    );
    assert_eq!(output.code, Some(1), "{output:?}");
}

/// The exit code was once 0 for a file in which nothing can be read.
#[test]
fn a_file_in_which_nothing_can_be_read_is_a_failure_if_it_is_named() {
    let home = Home::new();
    let good = conversation("s", 2);
    let torn = good.lines().next().unwrap().split_at(40).0;
    let junk = home.file("junk.jsonl", torn.as_bytes());
    let empty = home.file("empty.jsonl", b"");
    let good = home.file("s.jsonl", good.as_bytes());
    let import = |paths: &[&std::path::Path], options: &[&str]| {
        let paths = paths.iter().map(|path| path.to_str().unwrap());
        let args = ["import", "--from", "claude-code", "--final"].into_iter();
        let args: Vec<&str> = args.chain(options.iter().copied()).chain(paths).collect();
        home.run(&args, &[], "").code
    };
    for path in [&junk, &empty] {
        assert_eq!(import(&[path], &[]), Some(1), "{}", path.display());
        assert_eq!(import(&[path], &["--json"]), Some(1), "a second time");
    }
    let other = home.file("other.jsonl", torn.as_bytes());
    assert_eq!(import(&[&good, &other], &[]), Some(1), "one of two");
    assert_eq!(import(&[&good], &[]), Some(0), "nothing new");
    // Of another time, no conversation is wanted.
    assert_eq!(import(&[&good], &["--since", "2100-01-01"]), Some(0));
}

/// A line of 100 MB is read, and its entry keeps the beginning of its text.
#[test]
fn a_very_long_record_becomes_an_entry_with_its_text_cut() {
    let home = Home::in_memory();
    let bytes = if is_long_run() { 100 << 20 } else { 50 << 20 };
    let text = conversation("s", 2).replacen("answer 0", &"x".repeat(bytes), 1);
    home.file("s.jsonl", text.as_bytes());
    let mut d = Daemon::quiet_in(&home);
    let result = d.ok("import_sessions", params(&home));
    assert_eq!(result["totals"]["entriesAdded"], 4);
    let path = result["sessions"][0]["path"].as_str().unwrap();
    let lines = fs::read_to_string(path).unwrap();
    let entry: Json = serde_json::from_str(lines.lines().nth(2).unwrap()).unwrap();
    let text = entry["message"]["content"][0]["text"].as_str().unwrap();
    assert!(text.len() <= 48 << 20 && text.ends_with("x…"));
}

/// A record may have several entries, an entry may have several records, and a checkpoint of Gemini CLI has messages
/// inside. Files beside a source are not records of it.
#[test]
fn each_record_of_every_tool_is_accounted_for() {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/import");
    for (tool, folder) in [
        ("claude-code", "claude-code/subagent"),
        ("codex", "codex/0.130-rollback"),
        ("codex", "codex/0.169-legacy"),
        ("gemini", "gemini"),
        ("opencode", "opencode"),
        ("goose", "goose"),
        ("qwen-code", "qwen-code"),
        ("cline", "cline/data"),
        ("cline", "cline/globalStorage"),
        ("roo-code", "roo-code"),
        ("kilo-code", "kilo-code"),
        ("copilot-cli", "copilot-cli"),
        ("vscode-chat", "vscode-chat"),
        ("chatgpt", "chatgpt"),
        ("claude-ai", "claude-ai"),
    ] {
        let home = Home::new();
        let mut d = Daemon::quiet_in(&home);
        let wanted = json!({"from": tool, "paths": [data.join(folder)], "final": true});
        let result = d.ok("import_sessions", wanted);
        let sessions = result["sessions"].as_array().unwrap();
        assert!(!sessions.is_empty(), "{folder}");
        for row in sessions {
            let path = row["path"].as_str().unwrap();
            let output = home.run(&["doctor", "--origin", path], &[], "");
            assert_eq!(output.code, Some(0), "{folder}: {output:?}");
        }
    }
}

#[test]
fn a_rewritten_source_is_sound() {
    let home = Home::new();
    let (mut d, _) = imported(&home);
    let changed = conversation("s", 3).replace("answer 0", "another answer");
    home.file("s.jsonl", changed.as_bytes());
    let result = d.ok("import_sessions", params(&home));
    assert_eq!(result["totals"]["revised"], 1);
    let path = result["sessions"][0]["path"].as_str().unwrap();
    let output = home.run(&["doctor", "--origin", path], &[], "");
    assert_eq!(output.code, Some(0), "{output:?}");
}

#[test]
fn doctor_shows_from_which_files_a_session_was_imported() {
    let home = Home::new();
    let (mut d, result) = imported(&home);
    let path = result["sessions"][0]["path"].as_str().unwrap();
    let shown = |home: &Home| home.run(&["doctor", path], &[], "").clean().text();
    let text = shown(&home);
    let file = home.files().join("s.jsonl");
    let file = fs::canonicalize(file).unwrap().display().to_string();
    assert!(
        text.contains("  imported from claude-code s, at "),
        "{text}"
    );
    let line = format!("    {file}: 4 records, 4 entries\n");
    assert!(text.contains(&line), "{text}");

    let title = json!({"type": "custom-title", "customTitle": "x", "sessionId": "s"});
    let missing = record("s", "user", 8, &json!({"role": "user", "content": "later"}));
    let grown = format!("{}{title}\nno JSON\n{missing}", conversation("s", 2));
    home.file("s.jsonl", grown.as_bytes());
    d.ok("import_sessions", params(&home));
    let text = shown(&home);
    assert!(text.contains(" (2 imports), 1 gap\n"), "{text}");
    let at = grown.find("no JSON").unwrap();
    let lines = format!(
        "    {file}: 6 records, 5 entries, 1 in the origin only (1 custom-title), 1 gap\n      unparsable: offset {at}, 7 bytes\n"
    );
    assert!(text.contains(&lines), "{text}\nlacks\n{lines}");
}
