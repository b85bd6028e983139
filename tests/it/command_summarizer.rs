//! The `command` summarizer: its input, output and failures. semantics.md §3.4.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::{file, script, with_child};
use crate::harness::*;

fn commanded(home: &Arc<Home>, body: &str) -> Daemon {
    commanded_for(home, body, 60_000)
}

fn commanded_for(home: &Arc<Home>, body: &str, timeout_ms: u64) -> Daemon {
    let program = script(home, "summarize", body);
    let path = file(
        home,
        &format!(
            "[summarizer]\nuse = \"command\"\n[summarizer.command]\nargv = [{program:?}, \"$HOME `id`\"]\n\
             timeout_ms = {timeout_ms}\nmax_output_bytes = 10000\n"
        ),
    );
    let mut d = Daemon::start_in(home, &["--config", &path], &[]);
    d.ignore_bookkeeping();
    let said = d.init(json!({"summaryDeltas": {}}));
    assert_eq!(said["capabilities"]["summarizer"], "command");
    d.create();
    d.chain(&["u1", "a1", "u2"]);
    let call = assistant_with(json!([tool_call("k", "read", json!({"path": "r.rs"}))]));
    d.ok("append_message", json!({"message": call, "entryId": "c1"}));
    d
}

fn go(d: &mut Daemon) -> Result<Json, RpcError> {
    let params = json!({"targetId": "a1", "summarize": true, "customInstructions": "focus"});
    d.call("navigate_tree", params)
}

#[test]
fn the_program_reads_the_request_and_its_output_is_the_summary() {
    let home = Home::new();
    let (heard, argument) = (home.files().join("request"), home.files().join("argument"));
    let body = format!(
        "printf %s \"$1\" > {}; cat > {}; printf '\\n\\303'; sleep 0.1; printf '\\251t\\303\\251 \\n'; sleep 0.1; echo end",
        argument.display(),
        heard.display()
    );
    let mut d = commanded(&home, &body);
    let result = go(&mut d).unwrap();
    let entry = &result["summaryEntry"];
    let summary = entry["summary"].as_str().unwrap();
    assert!(
        summary.contains("\n\nété \nend\n\n<read-files>\nr.rs\n</read-files>"),
        "{summary}"
    );
    assert_eq!(
        entry["details"],
        json!({"readFiles": ["r.rs"], "modifiedFiles": []})
    );
    assert!(entry.get("fromHook").is_none() && entry.get("usage").is_none());
    let mut found = String::new();
    while found.len() < summary.len() {
        found.push_str(d.notification("summary_delta")["delta"].as_str().unwrap());
    }
    assert_eq!(found, summary, "the deltas are the text of the entry");

    let request: Json = serde_json::from_slice(&fs::read(heard).unwrap()).unwrap();
    assert_eq!(request["subject"], "branch");
    assert_eq!(request["customInstructions"], "focus");
    assert_eq!(request["replaceInstructions"], false);
    assert_eq!(request["readFiles"], json!(["r.rs"]));
    assert_eq!(ids(&request["entries"]), ["u2", "c1"]);
    assert!(
        request["conversation"]
            .as_str()
            .unwrap()
            .contains("[User]: text of u2")
    );
    assert!(
        request["prompt"]["user"]
            .as_str()
            .unwrap()
            .contains("<conversation>")
    );
    assert_eq!(
        fs::read_to_string(argument).unwrap(),
        "$HOME `id`",
        "no shell between"
    );
}

#[test]
fn output_that_is_not_a_summary_is_a_failure_and_changes_nothing() {
    for (body, cause) in [
        ("exit 7", "program"),
        ("kill -9 $$", "program"),
        ("echo text; exit 1", "program"),
        ("true", "empty"),
        ("echo '  '", "empty"),
        ("printf '\\377'", "badResponse"),
        ("head -c 20000 /dev/zero | tr '\\0' x", "tooLong"),
        ("sleep 30", "timeout"),
    ] {
        let home = Home::new();
        let timeout_ms = if cause == "timeout" { 1000 } else { 60_000 };
        let mut d = commanded_for(&home, body, timeout_ms);
        d.ignore("summary_delta");
        let before = fs::read(home.only_file()).unwrap();
        let error = go(&mut d).unwrap_err();
        assert_eq!(
            (error.code, error.kind.as_str()),
            (1301, "summarizerFailed"),
            "{body}"
        );
        assert_eq!(error.details("cause"), cause, "{body}");
        assert_eq!(d.leaf(), "c1");
        assert_eq!(fs::read(home.only_file()).unwrap(), before);
    }
}

#[test]
fn a_program_may_leave_its_input_unread() {
    let home = Home::new();
    let mut d = commanded(&home, "exec <&-; echo short");
    d.ignore("summary_delta");
    d.user("u9", &"x".repeat(1 << 20));
    let result = go(&mut d).unwrap();
    assert!(
        result["summaryEntry"]["summary"]
            .as_str()
            .unwrap()
            .contains("\n\nshort")
    );
}

#[test]
fn an_abort_kills_the_program_and_its_children_within_100_ms() {
    takes_at_most(Duration::from_millis(100), || {
        let home = Home::new();
        let child = home.files().join("child");
        let mut d = commanded(&home, &with_child(&child));
        let id = d.send(
            "navigate_tree",
            json!({"targetId": "a1", "summarize": true}),
        );
        eventually("the program runs", || child.exists());
        assert!(runs(&child));
        let before = Instant::now();
        d.ok("abort_navigation", json!({}));
        let result = d.response(&id).unwrap();
        let took = before.elapsed();
        assert_eq!(
            (&result["cancelled"], &result["reason"]),
            (&json!(true), &json!("aborted"))
        );
        assert_eq!(d.leaf(), "c1");
        eventually("its child is dead", || !runs(&child));
        took
    });
}

/// A daemon that was ending once dropped requests that took longer than 5 s: it did not answer them, and it lost
/// messages queued for the end of a turn.
#[test]
fn a_summary_that_runs_too_long_after_the_end_of_stdin_is_aborted() {
    for after_eof in [false, true] {
        let home = Home::new();
        let child = home.files().join("child");
        let mut d = commanded(&home, &with_child(&child));
        let first = d.ok("list_sessions", json!({}))["sessions"][0]["sessionId"].clone();
        let second = d.create();
        let waiting =
            json!({"sessionId": second, "customType": "x", "content": "late", "display": true});
        d.ok("begin_turn", json!({"sessionId": second}));
        assert_eq!(d.ok("send_message", waiting)["disposition"], "queued");
        let id = d.send(
            "navigate_tree",
            json!({"sessionId": first, "targetId": "a1", "summarize": true}),
        );
        eventually("the program runs", || child.exists());
        if after_eof {
            d.close_stdin();
        }
        d.signal(rustix::process::Signal::TERM);
        let before = Instant::now();
        assert_eq!(d.exited(), Some(0));
        assert!(before.elapsed() >= Duration::from_secs(4), "it has 5 s");
        let result = d.response(&id).unwrap();
        assert_eq!(
            (&result["cancelled"], &result["reason"]),
            (&json!(true), &json!("aborted"))
        );
        let second = second.as_str();
        let is_second = |path: &PathBuf| path.to_string_lossy().contains(second);
        let file = home.session_files().into_iter().find(is_second).unwrap();
        assert_eq!(file_lines(&file).last().unwrap()["content"], "late");
    }
}

#[test]
fn a_compaction_runs_the_program_once_for_the_history_and_once_for_a_cut_turn() {
    let home = Home::new();
    let heard = home.files().join("requests");
    let body = format!("cat >> {}; echo text", heard.display());
    let mut d = commanded(&home, &body);
    let result = d.ok(
        "compact",
        json!({"keepRecentTokens": 1, "customInstructions": "focus"}),
    );
    let entry = &result["compactionEntry"];
    d.notification("session_compact");
    d.ignore("session_before_compact");
    assert_eq!(entry["firstKeptEntryId"], "c1");
    let requests = fs::read_to_string(heard).unwrap();
    let subjects: Vec<Json> = requests
        .lines()
        .map(|line| {
            let request = parse(line).unwrap();
            assert_eq!(request["customInstructions"], "focus");
            request["subject"].clone()
        })
        .collect();
    assert_eq!(subjects, ["context", "turnPrefix"]);
}
