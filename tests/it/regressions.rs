//! Faults found in other software of this kind. The comment of each test describes the fault that it keeps
//! out of here.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::fixture::*;
use crate::harness::*;

fn opened(bytes: &[u8]) -> (Daemon, PathBuf) {
    let home = Home::new();
    let path = home.file("s.jsonl", bytes);
    let mut d = Daemon::quiet_in(&home);
    d.open(&path);
    (d, path)
}

/// Everything that walks the tree, in a session where walking could go wrong.
#[track_caller]
fn walk(d: &mut Daemon) {
    for id in d.ids() {
        d.path_ids(Some(&id));
    }
    for params in [
        json!({"filter": "all"}),
        json!({"format": "nested"}),
        json!({"render": "unicode", "order": "active-first"}),
    ] {
        d.ok("get_tree", params);
    }
    for method in [
        "get_context",
        "list_branches",
        "get_stats",
        "get_fork_messages",
        "get_navigation_log",
    ] {
        d.ok(method, json!({}));
    }
}

/// Two entries that name each other as parent, or an id that stands twice: walks never ended, or the
/// number of visits exploded with every copy.
#[test]
fn cycles_and_duplicate_ids_hang_or_explode() {
    let (mut d, _) = opened(include_bytes!("../data/cycle.jsonl"));
    walk(&mut d);
    let (mut d, _) = opened(include_bytes!("../data/duplicate-id.jsonl"));
    walk(&mut d);
    // Twenty layers, each with two copies of its id below both of the layer above: 2^20 visits if
    // copies count as nodes.
    let mut log = Log::new("s1").user("n0", "", "x");
    for n in 1..=20 {
        for copy in 0..2 {
            log = log.user(
                &format!("n{n}"),
                &format!("n{}", n - 1),
                &format!("copy {copy}"),
            );
        }
    }
    let (mut d, _) = opened(log.text().as_bytes());
    assert_eq!(d.ids().len(), 21);
    assert_eq!(d.ok("get_tree", json!({}))["total"], 21);
    walk(&mut d);
}

/// Trees sent as nested objects overflowed the serializer's or the client's stack at 2,000 levels.
#[test]
fn nested_trees_overflow_at_2000_levels() {
    on_a_big_stack(|| {
        let mut log = Log::new("s1").user("n0", "", "x");
        for n in 1..2_500 {
            log = log.user(&format!("n{n}"), &format!("n{}", n - 1), "x");
        }
        let (mut d, _) = opened(log.text().as_bytes());
        d.err_kind("get_tree", json!({"format": "nested"}), "nestingTooDeep");
        let id = d.send("get_tree", json!({"format": "nested", "maxDepth": 10000}));
        assert_eq!(d.response_text(&id).matches("\"children\":").count(), 2_500);
        assert_eq!(d.ok("get_tree", json!({}))["total"], 2_500);
        assert_eq!(d.path_ids(None).len(), 2_500);
    });
}

/// One node with very many children overflowed where the siblings were walked recursively or spread
/// into an argument list.
#[test]
fn a_wide_node_overflows() {
    let mut log = Log::new("s1").user("root", "", "x");
    for n in 0..20_000 {
        log = log.user(&format!("n{n}"), "root", "x");
    }
    let (mut d, _) = opened(log.text().as_bytes());
    let tree = d.ok("get_tree", json!({}));
    assert_eq!(
        (&tree["total"], &tree["nodes"][0]["childCount"]),
        (&json!(20_001), &json!(20_000))
    );
    assert_eq!(
        d.ok("list_branches", json!({}))["branches"]
            .as_array()
            .unwrap()
            .len(),
        20_000
    );
}

/// A line holding a bare number was taken for an entry, and became the leaf.
#[test]
fn a_scalar_line_becomes_the_leaf() {
    let text = format!(
        "{}42\n",
        Log::new("s1")
            .user("u1", "", "x")
            .assistant("a1", "u1", "y")
            .text()
    );
    let (mut d, _) = opened(text.as_bytes());
    assert_eq!(d.leaf(), "a1");
    d.user("u2", "on");
    assert_eq!(d.entry("u2")["parentId"], "a1");
}

/// `null` on stdin, or as a line of a file, ended the server.
#[test]
fn a_null_line_kills_the_server() {
    let mut d = Daemon::start();
    d.bytes(b"null\n".to_vec());
    assert_eq!(d.response_to_nobody().kind, "invalidRequest");
    assert_eq!(d.ok("list_sessions", json!({}))["sessions"], json!([]));
    let text = format!("{}null\n", Log::new("s1").user("u1", "", "x").text());
    let (mut d, _) = opened(text.as_bytes());
    assert_eq!(d.leaf(), "u1");
}

/// The buffer was searched from its beginning with each block read: minutes for a large request.
#[test]
fn an_8_mb_request_line_takes_quadratic_time() {
    let mut d = Daemon::quiet();
    d.deadline = Duration::from_secs(60);
    d.create();
    let began = Instant::now();
    let text = "x".repeat(8 << 20);
    d.user("big", &text);
    assert_eq!(
        d.entry("big")["message"]["content"].as_str().map(str::len),
        Some(text.len())
    );
    assert!(
        began.elapsed() < Duration::from_secs(50),
        "took {:?}",
        began.elapsed()
    );
}

/// Reading stopped at the first bad line, and everything after it was gone without a word.
#[test]
fn a_torn_middle_line_cuts_off_history_silently() {
    let log = Log::new("s1")
        .user("u1", "", "x")
        .raw(r#"{"type":"message","id":"torn","par"#)
        .assistant("a1", "u1", "y");
    let home = Home::new();
    let path = log.save(&home);
    let mut d = Daemon::quiet_in(&home);
    let told = d.open(&path)["diagnostics"].clone();
    assert_eq!(told.as_array().unwrap().len(), 1, "not silently: {told}");
    assert_eq!(d.ids(), ["u1", "a1"]);
}

/// An append that failed half-way left bytes without a line end; the next entry was glued to them and
/// lost with them.
#[test]
fn a_failed_append_leaves_bytes_that_swallow_the_next_entry() {
    let text = format!(
        "{}{}",
        Log::new("s1").user("u1", "", "x").text(),
        r#"{"type":"message","id":"half","parentId":"u1","#
    );
    let (mut d, path) = opened(text.as_bytes());
    d.assistant("a1", "y");
    let home = d.stop();
    let mut d = Daemon::quiet_in(&home);
    d.open(&path);
    assert_eq!(d.path_ids(None), ["u1", "a1"]);
}

/// The leaf was moved first and the summary written after; when writing failed, the conversation stood
/// elsewhere without its summary.
#[test]
fn a_failed_summary_write_leaves_the_leaf_moved() {
    let mut d = Daemon::start_with(&["--summarizer", "outline"], &[]);
    d.ignore_bookkeeping();
    d.create();
    d.chain(&["u1", "a1", "u2", "a2"]);
    let path = d.home.only_file();
    let aside = path.with_extension("aside");
    fs::rename(&path, &aside).unwrap();
    d.err(
        "navigate_tree",
        json!({"targetId": "a1", "summarize": true}),
    );
    fs::rename(&aside, &path).unwrap();
    assert_eq!(d.leaf(), "a2");
    assert_eq!(file_lines(&path).len(), 5, "header and four messages");
}

/// The old format was rewritten in its own file; a process killed meanwhile left neither old nor new.
#[test]
fn migration_in_place_loses_the_file_when_killed() {
    let original = include_bytes!("../data/v1.jsonl");
    let home = Home::new();
    for round in 0..12_u64 {
        let path = home.file(&format!("s{round}.jsonl"), original);
        let mut d = Daemon::quiet_in(&home);
        d.open(&path);
        d.send(
            "append_message",
            json!({"message": user("x"), "entryId": "added"}),
        );
        std::thread::sleep(Duration::from_micros(round * 400));
        d.kill();
        let mut d = Daemon::quiet_in(&home);
        d.open(&path);
        let entries = d.ok("get_entries", json!({}))["entries"]
            .as_array()
            .unwrap()
            .clone();
        assert!(
            entries.len() == 10 || entries.len() == 11,
            "round {round}: {} entries",
            entries.len()
        );
        assert_eq!(entries[9]["message"]["content"], "five", "round {round}");
        assert_eq!(
            entries[7]["firstKeptEntryId"], entries[2]["id"],
            "round {round}"
        );
    }
}

/// Opening "repaired" a file without a final line end while another process was in the middle of
/// writing that very line.
#[test]
fn opening_appends_a_newline_into_another_writers_line() {
    let log = Log::new("s1").user("u1", "", "x");
    let line = entry_line(
        2,
        "message",
        "slow",
        "u1",
        json!({"message": user("written in two halves")}),
    );
    let (first, second) = line.split_at(50);
    let (mut d, path) = opened(format!("{}{first}", log.text()).as_bytes());
    foreign_append(&path, second);
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        format!("{}{line}\n", log.text())
    );
    d.ok(
        "append_message",
        json!({"message": assistant("y"), "entryId": "a1"}),
    );
    assert_eq!(d.ids(), ["u1", "slow", "a1"], "the other's line is whole");
}

/// The abort was looked at before the hook ran and not after: what came back from it was committed.
#[test]
fn an_abort_during_a_hook_commits_all_the_same() {
    let mut d = Daemon::quiet();
    d.ignore("event_resolved");
    d.init(json!({"answers": {"session_before_tree": {}}}));
    d.create();
    d.chain(&["u1", "a1", "u2"]);
    let path = d.home.only_file();
    let id = d.send(
        "navigate_tree",
        json!({"targetId": "a1", "summarize": true}),
    );
    let event = d.notification("session_before_tree");
    // Abort and answer in one write: whatever the order inside, nothing may be committed after the abort.
    let (abort, answer) = (json!("abort"), json!("answer"));
    d.send_together(&[
        (abort.clone(), "abort_navigation", json!({})),
        (
            answer.clone(),
            "answer_event",
            json!({"eventId": event["eventId"], "result": {"summary": {"summary": "S"}}}),
        ),
    ]);
    assert_eq!(d.response(&abort).unwrap()["aborted"], true);
    assert_eq!(
        d.response(&answer).expect_err("nobody waits any more").kind,
        "eventNotPending"
    );
    assert_eq!(d.response(&id).unwrap()["reason"], "aborted");
    assert_eq!(d.leaf(), "u2");
    assert_eq!(file_lines(&path).len(), 4);
}

fn labelled() -> Log {
    Log::new("s1")
        .user("u1", "", "one")
        .label("l1", "u1", "u1", json!("mark"))
        .assistant("a1", "l1", "two")
        .entry(
            "compaction",
            "k1",
            "a1",
            json!({"summary": "SUM", "firstKeptEntryId": "l1", "tokensBefore": 1}),
        )
        .assistant("a2", "k1", "three")
}

/// Labels were dropped from forks, but what hung below them still named them: the path broke off there.
#[test]
fn a_label_between_messages_breaks_the_forks_parent_chain() {
    let (mut d, _) = opened(labelled().text().as_bytes());
    d.ignore("session_before_fork");
    d.ignore("session_fork");
    let fork = d.ok("fork_session", json!({"entryId": "a2"}))["session"]["sessionId"].clone();
    let path = d.ok("get_path", json!({"sessionId": fork, "entryId": "a2"}));
    assert_eq!(ids(&path["entries"]), ["u1", "a1", "k1", "a2"]);
    let opened = d.ok("open_session", json!({"sessionId": fork}));
    assert_eq!(opened["diagnostics"], json!([]), "no orphans");
}

/// A kept range that began at such a label began nowhere in the fork: the kept messages vanished from
/// the context.
#[test]
fn a_compaction_boundary_on_a_left_out_label_is_lost_in_a_fork() {
    let (mut d, _) = opened(labelled().text().as_bytes());
    d.ignore("session_before_fork");
    d.ignore("session_fork");
    let before = d.ok("get_context", json!({}))["messages"].clone();
    assert_eq!(before.as_array().unwrap().len(), 3, "{before}");
    let fork = d.ok("fork_session", json!({"entryId": "a2"}))["session"]["sessionId"].clone();
    assert_eq!(
        d.ok("get_context", json!({"sessionId": fork, "leafId": "a2"}))["messages"],
        before
    );
}

/// After a label was cleared its timestamp was still reported, by the tree as by the label itself.
#[test]
fn labels_timestamps_leak() {
    let (mut d, path) = opened(labelled().text().as_bytes());
    let leaks = |d: &mut Daemon| {
        let label = d.ok("get_label", json!({"entryId": "u1"}));
        let row = d.ok("get_tree", json!({}))["nodes"][0].clone();
        [label, row]
            .iter()
            .any(|v| !v.get("labelTimestamp").is_none_or(Json::is_null))
    };
    assert!(leaks(&mut d), "while the label stands");
    d.ok("append_label", json!({"targetId": "u1", "label": null}));
    assert!(!leaks(&mut d));
    let home = d.stop();
    let mut d = Daemon::quiet_in(&home);
    d.open(&path);
    assert!(!leaks(&mut d));
}

/// Summaries named where the navigation went, not what had been left: the abandoned branch could not
/// be found again.
#[test]
fn from_id_names_the_destination() {
    let mut d = Daemon::start_with(&["--summarizer", "outline"], &[]);
    d.ignore_bookkeeping();
    d.create();
    d.chain(&["u1", "a1", "u2", "a2"]);
    let summary = d.ok(
        "navigate_tree",
        json!({"targetId": "u2", "summarize": true}),
    )["summaryEntry"]
        .clone();
    assert_eq!(
        (&summary["fromId"], &summary["parentId"]),
        (&json!("a2"), &json!("a1"))
    );
}

/// After a restart the conversation stood at the last line of the file, not where it had been left.
#[test]
fn the_position_is_lost_on_restart() {
    let mut d = Daemon::quiet();
    d.create();
    d.chain(&["u1", "a1", "u2", "a2"]);
    d.ok("navigate_tree", json!({"targetId": "a1"}));
    let path = d.home.only_file();
    let home = d.stop();
    let mut d = Daemon::quiet_in(&home);
    assert_eq!(d.open(&path)["session"]["leafId"], "a1");
}

/// At the end of stdin the process ended too, with answers still in its buffers.
#[test]
fn replies_are_lost_at_eof() {
    let mut input = String::new();
    for (id, method, params) in [
        (json!("c"), "create_session", json!({})),
        (
            json!("a"),
            "append_message",
            json!({"message": user(&"x".repeat(100_000)), "entryId": "u1"}),
        ),
    ] {
        input.push_str(&format!("{}\n", request(&id, method, &params)));
    }
    for n in 0..100 {
        input.push_str(&format!(
            "{}\n",
            request(&json!(n), "get_entry", &json!({"entryId": "u1"}))
        ));
    }
    let answers = Home::new().run(&[], &[], input).clean().responses();
    assert_eq!(answers.len(), 102);
    for n in 0..100 {
        let content = &answers[&n.to_string()]["result"]["entry"]["message"]["content"];
        assert_eq!(
            content.as_str().map(str::len),
            Some(100_000),
            "answer {n} is whole"
        );
    }
}

/// Warnings of a library went to stdout and broke the client's parser.
#[test]
fn logs_appear_on_stdout() {
    let home = Home::new();
    let path = home.file("s.jsonl", include_bytes!("../data/invalid-json.jsonl"));
    for level in ["trace", "debug", "info", "not-a-level"] {
        let input = format!(
            "{}\nnonsense\n",
            request(&json!(1), "open_session", &json!({"path": path}))
        );
        let output = home.run(&[], &[("TREELINED_LOG", level)], input);
        assert_eq!(output.code, Some(0), "{level}: {output:?}");
        // `lines` refuses whatever is not JSON-RPC.
        assert!(output.lines().iter().any(|m| m["id"] == 1), "{level}");
    }
}

/// Output and input shared a thread: a client that was busy writing could not be answered, and both
/// waited for each other.
#[test]
fn a_stalled_reader_blocks_answers() {
    let mut d = Daemon::start_with(&["--max-queued-bytes", "50000000"], &[]);
    d.ignore_bookkeeping();
    d.ignore("event_resolved");
    d.init(json!({"answers": {"session_before_tree": {}}}));
    d.create();
    d.user("u1", &"x".repeat(30_000));
    d.chain(&["a1"]);
    let navigation = d.send("navigate_tree", json!({"targetId": "u1"}));
    let event = d.notification("session_before_tree");
    d.stop_reading();
    // Far more than both pipes hold, and less than the daemon is willing to queue.
    let asked: Vec<_> = (0..30)
        .map(|_| d.send("get_entry", json!({"entryId": "u1"})))
        .collect();
    let answer = d.send(
        "answer_event",
        json!({"eventId": event["eventId"], "result": {}}),
    );
    let path = d.home.only_file();
    eventually("the navigation commits while nobody reads", || {
        fs::read_to_string(&path)
            .unwrap()
            .contains("treelined.leaf")
    });
    d.read_on();
    for id in asked.iter().chain([&answer, &navigation]) {
        d.response(id).expect("answered");
    }
}

/// A script's first requests wait for `create_session`, and were let go together: two threads then
/// raced for the session, and the append overtook the branch that it was to follow. Later, an append let
/// go on another thread was held back for those that were being read, and the branch overtook it.
#[test]
fn requests_that_wait_for_their_session_keep_their_order() {
    for _ in 0..20 {
        let home = Home::new();
        let step = |id: u32, method: &str, params: Json| {
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
        };
        let mut lines = vec![step(0, "create_session", json!({"sessionId": "s"}))];
        let first = json!({"message": user("u"), "entryId": "e1"});
        lines.push(step(1, "append_message", first));
        for n in 2..12 {
            let id = format!("e{n}");
            let message = json!({"message": user("u"), "entryId": id, "sessionId": "s"});
            lines.push(step(2 * n, "append_message", message));
            lines.push(step(2 * n + 1, "branch", json!({"entryId": "e1"})));
        }
        script_in(&home, &[], &lines);
        let lines = file_lines(&home.only_file());
        let entries: Vec<_> = lines.iter().filter(|l| l["type"] == "message").collect();
        assert_eq!(entries.len(), 11);
        for entry in &entries[1..] {
            assert_eq!(entry["parentId"], "e1");
        }
    }
}

/// A fork held the session's turn and waited for the registry, `close_session` held the registry and
/// waited for the turn: neither was ever answered, and the end of the input did not end the daemon.
#[test]
fn a_fork_and_a_close_behind_it_wait_for_each_other() {
    for handshake in [true, false] {
        for second in ["close_session", "delete_session"] {
            let mut d = Daemon::quiet();
            d.ignore("session_before_fork");
            d.ignore("session_fork");
            if handshake {
                d.init(json!({}));
            }
            let session = d.create();
            d.chain(&["a", "b", "c"]);
            let fork = json!({"sessionId": session, "entryId": "b", "position": "at"});
            let fork = d.send("fork_session", fork);
            let second = d.send(second, json!({"sessionId": session}));
            assert_eq!(d.response(&fork).expect("forked")["cancelled"], false);
            d.response(&second).expect("closed");
        }
    }
}

/// The close looked for a running navigation before the one ahead of it had begun, closed the session
/// under it, and the navigation was told that there was no such session.
#[test]
fn a_close_right_behind_a_navigation_aborts_it() {
    for _ in 0..10 {
        let mut d = Daemon::quiet();
        d.ignore("event_resolved");
        d.init(json!({"answers": {"session_before_tree": {}}}));
        d.create();
        d.chain(&["a", "b", "c"]);
        d.send_together(&[
            (json!("go"), "navigate_tree", json!({"targetId": "a"})),
            (json!("close"), "close_session", json!({})),
        ]);
        assert_eq!(
            d.response(&json!("go")).expect("aborted")["reason"],
            "aborted"
        );
        d.response(&json!("close")).expect("closed");
        let told = d.order();
        let last = |name: &str| told.iter().rposition(|told| told == name);
        assert!(last("event_resolved") < last("session_closed"), "{told:?}");
    }
}

/// The first attempt had moved the leaf, so the second found it moved.
#[test]
fn a_retry_with_an_expected_leaf_disappoints_itself() {
    let mut d = Daemon::quiet();
    d.create();
    d.chain(&["a"]);
    let params = json!({"message": user("again"), "entryId": "r", "expectedLeafId": "a"});
    let first = d.ok("append_message", params.clone());
    assert_eq!(d.ok("append_message", params)["entryId"], first["entryId"]);
}

/// A question to the client about a fork kept the session's turn.
#[test]
fn reads_wait_for_the_question_about_a_fork() {
    let mut d = Daemon::quiet();
    d.ignore("event_resolved");
    d.init(json!({"answers": {"session_before_fork": {}}}));
    d.create();
    d.chain(&["a", "b"]);
    let fork = d.send("fork_session", json!({"entryId": "b", "position": "at"}));
    let event = d.notification("session_before_fork");
    assert_eq!(d.ok("get_leaf", json!({}))["leafId"], "b");
    d.ok(
        "answer_event",
        json!({"eventId": event["eventId"], "result": {"cancel": true}}),
    );
    assert_eq!(d.response(&fork).expect("answered")["cancelled"], true);
}

/// `get_entry` named a record that nobody can ask for, where the record stood behind what names it.
#[test]
fn a_reference_to_a_later_leaf_record_is_delivered_unresolved() {
    let home = Home::new();
    let path = Log::new("later")
        .user("a", "", "x")
        .label("l", "a", "r", json!("L"))
        .record("r", "a", "l")
        .save(&home);
    let mut d = Daemon::quiet_in(&home);
    d.ok("open_session", json!({"path": path}));
    assert_eq!(d.ok("get_label", json!({"entryId": "a"}))["label"], "L");
    assert_eq!(
        d.ok("get_entry", json!({"entryId": "l"}))["entry"]["targetId"],
        "a"
    );
}

/// A tree read anew began its revisions again, so that a cursor of the old one could be taken for one
/// of the new, and pages of two trees be put together.
#[test]
fn a_cursor_does_not_outlive_the_tree_of_a_replaced_file() {
    let home = Home::new();
    let session = |ids: [&str; 3]| {
        let mut log = Log::new("twice");
        for (at, id) in ids.iter().enumerate() {
            log = log.user(id, at.checked_sub(1).map_or("", |above| ids[above]), "x");
        }
        log
    };
    let path = session(["a", "b", "c"]).save(&home);
    let mut d = Daemon::quiet_in(&home);
    d.ok("open_session", json!({"path": path}));
    let page = d.ok("get_tree", json!({"limit": 1}));
    let next = home.files().join("next");
    fs::write(&next, session(["a", "d", "c"]).text()).unwrap();
    fs::rename(&next, &path).unwrap();
    let next_page = json!({"limit": 1, "cursor": page["nextCursor"]});
    d.err_kind("get_tree", next_page, "treeChanged");
    let all = d.ok("get_tree", json!({}));
    assert_eq!(all["nodes"][1]["id"], "d");
}
