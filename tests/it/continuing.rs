//! `continue_session`, `continuation_started` and `treelined continue`: a path continues in another agent. protocol.md
//! §3.18, session-file.md §4.6. `src/handoff` tests the files, and `tests/import` tests them with the agents.

use std::fs;
use std::path::{Path, PathBuf};

use crate::faults::shimmed;
use crate::harness::*;

fn last_line(path: &Path) -> Json {
    file_lines(path).pop().unwrap()
}

#[test]
fn the_record_of_a_continuation_moves_nobody() {
    let (mut d, path) = two_turns();
    d.set_leaf(Some("a1"));
    let log = d.ok("get_navigation_log", json!({}));
    let result = d.ok(
        "continue_session",
        json!({"tool": "codex", "entryId": "a2"}),
    );
    let record = last_line(&path);
    let members: Vec<_> = record["data"].as_object().unwrap().keys().collect();
    assert_eq!(members, ["from", "cause", "continuation"]);
    assert_eq!(
        (&record["parentId"], &record["data"]["from"]),
        (&json!("a1"), &json!("a1"))
    );
    let continuation = &record["data"]["continuation"];
    assert_eq!(continuation["id"], result["continuationId"]);
    assert_eq!(continuation["entryId"], "a2");
    assert_eq!(continuation["nativeId"], result["nativeId"]);
    assert_eq!(continuation["path"], result["files"][0]["path"]);
    assert_eq!(d.leaf(), "a1");
    assert_eq!(d.ids().len(), 4, "it is not an entry");
    assert_eq!(d.ok("get_navigation_log", json!({})), log);
    d.ok("undo_navigation", json!({}));
    assert_eq!(d.leaf(), "a2");
    d.err_kind("undo_navigation", json!({}), "nothingToUndo");
    let home = d.stop();
    let mut d = Daemon::quiet_in(&home);
    d.open(&path);
    assert_eq!(d.leaf(), "a2");
}

/// The record is at the position where the file opens. The leaf of the daemon may be elsewhere, and the record once
/// went to the empty position.
#[test]
fn a_daemon_whose_leaf_is_elsewhere_stays_there() {
    let (mut d, path) = two_turns();
    let mut other = Daemon::quiet();
    other.open(&path);
    other.user("u3", "from another daemon");
    d.set_leaf(Some("a1"));
    other.ok("continue_session", json!({"tool": "pi", "entryId": "a2"}));
    assert_eq!(other.leaf(), "u3");
    let record = last_line(&path);
    assert_eq!(
        (&record["parentId"], &record["data"]["from"]),
        (&json!("a1"), &json!("a1"))
    );
    other.assistant("a3", "goes on");
    assert_eq!(other.path_ids(None), ["u1", "a1", "u2", "a2", "u3", "a3"]);
}

#[test]
fn a_dry_run_and_a_text_write_nothing() {
    let (mut d, path) = two_turns();
    let (before, files) = (fs::read(&path).unwrap(), files_below(&home_of(&d)));
    for tool in ["claude-code", "codex", "opencode", "gemini", "goose", "pi"] {
        let result = d.ok("continue_session", json!({"tool": tool, "dryRun": true}));
        assert_eq!(result["messages"], 4);
        assert_eq!(
            (result.get("continuationId"), &result["durability"]),
            (None, &json!("none"))
        );
        assert!(!result["steps"].as_array().unwrap().is_empty());
    }
    let result = d.ok("continue_session", json!({"tool": "text"}));
    assert!(result["text"].as_str().unwrap().contains("text of a2"));
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(files_below(&home_of(&d)), files);
    // The agents read sessions that no one changes here.
    d.ok("close_session", json!({}));
    d.ok("open_session", json!({"path": path, "mode": "read"}));
    d.ok("continue_session", json!({"tool": "codex", "dryRun": true}));
    d.err_kind("continue_session", json!({"tool": "codex"}), "readOnly");
}

/// A client once showed the command of an agent that is not installed, and no message said so.
#[test]
fn a_program_that_is_not_installed_is_named() {
    let programs = tempfile::tempdir().unwrap();
    let codex = programs.path().join("codex");
    fs::write(&codex, "#!/bin/sh\n").unwrap();
    // A file that cannot be executed is not a program.
    fs::write(programs.path().join("pi"), "").unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&codex, executable).unwrap();
    let path = programs.path().display().to_string();
    let mut d = Daemon::start_with(&[], &[("PATH", &path)]);
    d.ignore_bookkeeping();
    d.create();
    d.chain(&["u1", "a1"]);
    let mut missing = |tool: &str| {
        let result = d.ok("continue_session", json!({"tool": tool, "dryRun": true}));
        result.get("missing").cloned()
    };
    assert_eq!(missing("codex"), None);
    assert_eq!(missing("pi"), Some(json!(["pi"])));
    assert_eq!(missing("opencode"), Some(json!(["opencode"])), "once");
    assert_eq!(missing("text"), None);
}

#[test]
fn each_agent_gets_a_private_file_and_the_source_keeps_its_bytes() {
    let (mut d, path) = two_turns();
    for tool in ["claude-code", "codex", "opencode", "gemini", "goose", "pi"] {
        let before = fs::read(&path).unwrap();
        let result = d.ok("continue_session", json!({"tool": tool}));
        let file = PathBuf::from(result["files"][0]["path"].as_str().unwrap());
        let status = fs::metadata(&file).unwrap();
        assert_eq!(result["files"][0]["bytes"], status.len());
        assert_eq!(
            std::os::unix::fs::PermissionsExt::mode(&status.permissions()) & 0o777,
            0o600
        );
        let after = fs::read(&path).unwrap();
        assert!(after.starts_with(&before), "one line more");
        assert_eq!(
            String::from_utf8(after[before.len()..].to_vec())
                .unwrap()
                .lines()
                .count(),
            1
        );
        assert_eq!(
            result["cwd"],
            fs::canonicalize(d.home.cwd()).unwrap().to_str().unwrap()
        );
    }
}

/// goose chooses the id of the session.
#[test]
fn an_id_that_the_agent_chose_is_noted_once() {
    let (mut d, path) = two_turns();
    let result = d.ok("continue_session", json!({"tool": "goose"}));
    assert_eq!(result.get("nativeId"), None);
    let started = json!({"continuationId": result["continuationId"], "nativeId": "20261124_3"});
    assert_ne!(
        d.ok("continuation_started", started.clone())["durability"],
        "none"
    );
    let record = last_line(&path);
    assert_eq!(record["data"]["continuation"]["nativeId"], "20261124_3");
    assert_eq!(
        record["data"]["continuation"]["id"],
        result["continuationId"]
    );
    let before = fs::read(&path).unwrap();
    assert_eq!(d.ok("continuation_started", started)["durability"], "none");
    assert_eq!(fs::read(&path).unwrap(), before);
    let unknown = json!({"continuationId": "0000000000000000", "nativeId": "x"});
    assert_eq!(
        d.err_kind("continuation_started", unknown, "invalidParams")
            .details("field"),
        "continuationId"
    );
    let blank = json!({"continuationId": result["continuationId"], "nativeId": ""});
    assert_eq!(
        d.err_kind("continuation_started", blank, "invalidParams")
            .details("field"),
        "nativeId"
    );
}

#[test]
fn a_question_at_the_end_is_the_prompt() {
    let (mut d, path) = two_turns();
    d.user("u3", "And now?");
    let result = d.ok("continue_session", json!({"tool": "claude-code"}));
    assert_eq!(result["prompt"], "And now?");
    assert_eq!(
        result["steps"][0].as_array().unwrap().last().unwrap(),
        "And now?"
    );
    assert_eq!(last_line(&path)["data"]["continuation"]["entryId"], "a2");
    let error = d.err_kind(
        "continue_session",
        json!({"tool": "codex", "entryId": "u1"}),
        "invalidParams",
    );
    assert_eq!(error.details("field"), "entryId");
}

/// The new session begins with the lesson of the dead end: the summary that was written when the branch was left, or a
/// new summary.
#[test]
fn the_first_words_have_the_summary_of_the_branch_that_is_left() {
    let home = Home::new();
    let mut d = Daemon::start_in(&home, &["--summarizer", "outline"], &[]);
    d.ignore_bookkeeping();
    d.create();
    d.chain(&["u1", "a1", "u2", "a2"]);
    let learned = |d: &mut Daemon, entry: &str| {
        let params = json!({"tool": "codex", "entryId": entry, "learned": true, "dryRun": true});
        d.ok("continue_session", params)
    };
    let result = learned(&mut d, "a1");
    let prompt = result["prompt"].as_str().unwrap();
    assert!(
        prompt.contains("What was learned there") && prompt.contains("text of u2"),
        "{prompt}"
    );
    let nothing = learned(&mut d, "a2");
    assert_eq!(nothing.get("prompt"), None, "no branch is left");
    d.ok(
        "branch",
        json!({"entryId": "a1", "summary": {"summary": "The cache is stale."}}),
    );
    d.ignore("session_tree");
    d.chain(&["u4"]);
    d.set_leaf(Some("a2"));
    // A branch below the summary is left, and the leaf goes to the entry before the summary.
    d.ok(
        "branch",
        json!({"entryId": "u1", "summary": {"summary": "Cold caches too."}}),
    );
    d.set_leaf(Some("a2"));
    // The later summary is about a branch that begins further up.
    let again = learned(&mut d, "a1");
    let prompt = again["prompt"].as_str().unwrap();
    assert!(prompt.contains("The cache is stale."), "{prompt}");
}

/// A prompt above the point of going on was once told as what was tried and left, although the conversation goes on from
/// it.
#[test]
fn what_is_above_the_point_of_going_on_was_not_left() {
    let home = Home::new();
    let mut d = Daemon::start_in(&home, &["--summarizer", "outline"], &[]);
    d.ignore_bookkeeping();
    d.create();
    d.chain(&["u0", "a0", "u1", "a1", "a2", "u2", "a3"]);
    for (entry, told, untold) in [
        ("a1", "text of u2", "text of u1"),
        ("u1", "text of u2", "Tried “text of u1”"),
    ] {
        let params = json!({"tool": "codex", "entryId": entry, "learned": true, "dryRun": true});
        let result = d.ok("continue_session", params);
        let prompt = result["prompt"].as_str().unwrap();
        assert!(prompt.contains(told), "{entry}: {prompt}");
        assert!(!prompt.contains(untold), "{entry}: {prompt}");
    }
    // Nobody has asked anything below `a1`.
    d.set_leaf(Some("a2"));
    let params = json!({"tool": "codex", "entryId": "a1", "learned": true, "dryRun": true});
    let result = d.ok("continue_session", params);
    let prompt = result["prompt"].as_str().unwrap();
    assert!(prompt.contains("text of a2"), "{prompt}");
    assert!(!prompt.contains("text of u1"), "{prompt}");
}

#[test]
fn more_than_the_limit_is_refused_or_replaced_by_a_summary() {
    let home = Home::new();
    let mut d = Daemon::start_in(&home, &["--summarizer", "outline"], &[]);
    d.ignore_bookkeeping();
    d.create();
    for turn in 0..20 {
        d.user(
            &format!("u{turn}"),
            &format!("question {turn} {}", "x".repeat(400)),
        );
        d.assistant(
            &format!("a{turn}"),
            &format!("answer {turn} {}", "y".repeat(400)),
        );
    }
    let error = d.err_kind(
        "continue_session",
        json!({"tool": "pi", "limit": 1000}),
        "contextTooLarge",
    );
    assert_eq!(error.details("limit"), 1000);
    let path = d.home.only_file();
    let entries = d.ids();
    let result = d.ok(
        "continue_session",
        json!({"tool": "pi", "limit": 1500, "compact": true}),
    );
    assert_eq!(d.ids(), entries, "the tree is not changed");
    let continuation = last_line(&path)["data"]["continuation"].clone();
    assert!(
        continuation["summary"]
            .as_str()
            .unwrap()
            .contains("question")
    );
    assert!(
        continuation["from"]
            .as_str()
            .unwrap()
            .starts_with(['u', 'a'])
    );
    assert!(result["tokens"].as_u64().unwrap() <= 1500, "{result}");
    let last = d.ok(
        "continue_session",
        json!({"tool": "pi", "limit": 1000, "last": 2, "dryRun": true}),
    );
    assert_eq!(
        (&last["messages"], &last["losses"][0]["kind"]),
        (&json!(4), &json!("earlierTurns"))
    );
    let all = d.ok(
        "continue_session",
        json!({"tool": "pi", "limit": 0, "dryRun": true}),
    );
    assert_eq!(all["messages"], 40);
    d.err_kind(
        "continue_session",
        json!({"tool": "pi", "last": 0}),
        "invalidParams",
    );
}

/// Thoughts and earlier turns that are left out once counted, so that a path was summarized although it fits.
#[test]
fn what_is_left_out_makes_nobody_summarize() {
    let mut d = Daemon::quiet();
    d.create();
    let long = "x".repeat(8000);
    for turn in ["1", "2"] {
        d.user(&format!("u{turn}"), "Why?");
        let content =
            json!([{"type": "thinking", "thinking": long}, {"type": "text", "text": "So."}]);
        d.ok(
            "append_message",
            json!({"message": assistant_with(content), "entryId": format!("a{turn}")}),
        );
    }
    let params = |more: Json| {
        let mut params = json!({"tool": "pi", "limit": 1000, "compact": true, "dryRun": true});
        let more = more.as_object().unwrap().clone();
        params.as_object_mut().unwrap().extend(more);
        params
    };
    let fits = d.ok("continue_session", params(json!({})));
    assert_eq!(fits["losses"][0]["kind"], "thoughts");
    assert_eq!(fits["losses"].as_array().unwrap().len(), 1, "{fits}");
    d.user("u3", &"y".repeat(8000));
    d.assistant("a3", "I see.");
    d.user("u4", "Why?");
    d.assistant("a4", "So.");
    let last = d.ok("continue_session", params(json!({"last": 1})));
    let mut losses = last["losses"].as_array().unwrap().iter();
    assert!(losses.all(|loss| loss["kind"] != "compacted"), "{last}");
}

#[test]
fn a_missing_folder_is_named() {
    let (mut d, path) = two_turns();
    let before = fs::read(&path).unwrap();
    for cwd in ["/no/such/folder", "relative"] {
        let params = json!({"tool": "codex", "cwd": cwd});
        let error = d.err_kind("continue_session", params, "invalidParams");
        assert_eq!(error.details("field"), "cwd");
        assert!(error.message.contains(cwd), "{error:?}");
    }
    assert_eq!(fs::read(&path).unwrap(), before);
}

/// Nothing is run in the folder. Once, if the folder was removed, the conversation could not be read as text.
#[test]
fn a_text_needs_no_folder() {
    let mut d = Daemon::quiet();
    let gone = d.home.cwd().join("gone");
    fs::create_dir(&gone).unwrap();
    d.ok("create_session", json!({"cwd": gone}));
    d.chain(&["u1", "a1"]);
    fs::remove_dir(&gone).unwrap();
    let error = d.err_kind(
        "continue_session",
        json!({"tool": "codex"}),
        "invalidParams",
    );
    assert_eq!(error.details("field"), "cwd");
    let result = d.ok("continue_session", json!({"tool": "text"}));
    assert!(result["text"].as_str().unwrap().contains("text of a1"));
}

/// A record without a file names a session that never begins. Nothing else is left, and the next attempt succeeds.
#[test]
fn a_file_that_cannot_be_made_leaves_the_session_as_it_was() {
    let (mut d, path) = two_turns();
    let codex = home_of(&d).join(".codex");
    fs::write(&codex, "a file, not a folder").unwrap();
    let error = d.err("continue_session", json!({"tool": "codex"}));
    assert!(
        ["storageIo", "pathDenied"].contains(&error.kind.as_str()),
        "{error:?}"
    );
    assert_eq!(fs::read_to_string(&codex).unwrap(), "a file, not a folder");
    assert_eq!(d.leaf(), "a2");
    assert_eq!(d.ids().len(), 4);
    fs::remove_file(&codex).unwrap();
    let result = d.ok("continue_session", json!({"tool": "codex"}));
    assert!(Path::new(result["files"][0]["path"].as_str().unwrap()).is_file());
    assert_eq!(
        last_line(&path)["data"]["continuation"]["id"],
        result["continuationId"]
    );
}

/// The record is written first, then the file. After a full disk, or a kill between the two writes, there is no file
/// and no part of one. The record then names a session that never begins.
#[test]
fn a_fault_between_the_record_and_the_file_leaves_no_part_of_a_file() {
    let Some((shim, mut d, path)) = shimmed(&[]) else {
        return skip(Needs::Faults, "failing calls: there is no C compiler");
    };
    let sessions = home_of(&d).join(".codex/sessions");
    shim.act("write pass 0\nwrite error 28\n");
    d.err_kind("continue_session", json!({"tool": "codex"}), "storageFull");
    shim.is_done();
    let full = last_line(&path)["data"]["continuation"].clone();
    assert_eq!(files_below(&sessions), Vec::<PathBuf>::new());
    shim.act("write pass 0\nwrite pause 5000\n");
    d.send("continue_session", json!({"tool": "codex"}));
    eventually("the record is written", || {
        last_line(&path)["data"]["continuation"]["id"] != full["id"]
    });
    let home = d.kill();
    let mut d = Daemon::quiet_in(&home);
    d.open(&path);
    assert_eq!((d.leaf(), d.ids().len()), (json!("a1"), 2));
    let killed = last_line(&path)["data"]["continuation"].clone();
    assert_ne!(killed["id"], full["id"]);
    assert!(!Path::new(killed["path"].as_str().unwrap()).exists());
    let result = d.ok("continue_session", json!({"tool": "codex"}));
    let file = PathBuf::from(result["files"][0]["path"].as_str().unwrap());
    assert_eq!(
        files_below(&sessions),
        [file],
        "the part of the other one is removed"
    );
}

/// Old files in treelined's own folder are removed. Their agents have copies.
#[test]
fn files_older_than_thirty_days_are_removed() {
    let (mut d, _) = two_turns();
    let result = d.ok("continue_session", json!({"tool": "opencode"}));
    let first = PathBuf::from(result["files"][0]["path"].as_str().unwrap());
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(31 * 24 * 60 * 60);
    fs::File::options()
        .write(true)
        .open(&first)
        .unwrap()
        .set_modified(old)
        .unwrap();
    let result = d.ok("continue_session", json!({"tool": "goose"}));
    assert!(!first.exists() && Path::new(result["files"][0]["path"].as_str().unwrap()).exists());
    let rows = d.ok("list_sessions", json!({}));
    assert_eq!(
        rows["sessions"].as_array().unwrap().len(),
        1,
        "they are not sessions"
    );
}

#[test]
fn the_command_says_what_is_lost_and_what_to_run() {
    let (mut d, path) = two_turns();
    d.ok("append_message", json!({"entryId": "a3", "message": {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "it's done"}], "provider": "p", "model": "m",
        "api": "x", "stopReason": "stop", "timestamp": 1, "usage": {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0,
        "totalTokens": 2, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}}}}));
    d.user("u4", "it's next");
    let home = d.stop();
    let session = path.to_str().unwrap();
    let before = fs::read(&path).unwrap();
    let run = |args: &[&str]| home.run(&[&["continue", session], args].concat(), &[], "");
    let printed = run(&["--in", "codex", "--print"]);
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    assert!(
        printed.stderr.contains("lost: 1 thought left out"),
        "{}",
        printed.stderr
    );
    assert!(
        printed.text().contains("&& codex resume ") && printed.text().contains(r"'it'\''s next'"),
        "{}",
        printed.text()
    );
    assert_eq!(fs::read(&path).unwrap(), before);
    let text = run(&["a2", "--in", "text"]);
    assert!(text.text().contains("text of a2") && !text.text().contains("it's done"));
    assert_eq!(fs::read(&path).unwrap(), before);
    // Without a terminal the command makes the session, and prints the command line to run.
    let made = run(&["a2", "--in", "claude-code"]);
    let file = made.text().lines().next().unwrap().to_owned();
    assert!(Path::new(&file).is_file(), "{}", made.text());
    assert!(made.text().contains("claude --resume"));
    let back = "treelined import --from claude-code brings the answers";
    assert!(made.stderr.contains(back), "{}", made.stderr);
    let wrong = run(&["no-such-entry", "--in", "codex"]);
    assert_eq!(wrong.code, Some(3), "{}", wrong.stderr);
    let json = run(&["--in", "pi", "--json"]);
    let json: Json = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["tool"], "pi");
}
